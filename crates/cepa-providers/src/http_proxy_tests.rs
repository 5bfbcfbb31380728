//! Which hosts go through which proxy.

use std::collections::HashMap;

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Proxies {
    let map: HashMap<String, String> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Proxies::new(&Proxy::Environment, |name| map.get(name).cloned())
}

/// The proxy's address for this one, `-` without.
fn route(proxies: &Proxies, url: &str) -> String {
    match proxies.route(&url.parse().unwrap()) {
        Ok(Some(server)) => server.url.authority().unwrap().to_string(),
        Ok(None) => "-".to_owned(),
        Err(why) => why,
    }
}

#[test]
fn the_environment_is_read_as_other_programs_read_it() {
    for (pairs, http, https) in [
        (&[][..], "-", "-"),
        (&[("HTTPS_PROXY", "http://p:1")], "-", "p:1"),
        (&[("http_proxy", "p:1"), ("https_proxy", "http://q:2/")], "p:1", "q:2"),
        (&[("ALL_PROXY", "p:1")], "p:1", "p:1"),
        (&[("ALL_PROXY", "p:1"), ("HTTPS_PROXY", "q:2")], "p:1", "q:2"),
        (&[("https_proxy", "p:1"), ("HTTPS_PROXY", "q:2")], "-", "p:1"),
        (&[("https_proxy", " "), ("HTTPS_PROXY", "q:2")], "-", "q:2"),
        (&[("HTTP_PROXY", "p:1")], "p:1", "-"),
        (&[("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET")], "-", "-"),
        (&[("http_proxy", "p:1"), ("REQUEST_METHOD", "GET")], "p:1", "-"),
        (&[("HTTP_PROXY", "[2001:db8::1]:3128")], "[2001:db8::1]:3128", "-"),
    ] {
        let proxies = environment(pairs);
        assert_eq!(route(&proxies, "http://api.example/v1"), http, "{pairs:?}");
        assert_eq!(route(&proxies, "https://api.example/v1"), https, "{pairs:?}");
    }
}

#[test]
fn this_machine_is_asked_directly() {
    let proxies = Proxies::new(&Proxy::Url("http://p:1".to_owned()), |_| None);
    for url in [
        "http://localhost:11434/",
        "http://LOCALHOST/",
        "https://127.0.0.1/",
        "http://127.8.9.1:8080/",
        "http://[::1]:1/",
    ] {
        assert_eq!(route(&proxies, url), "-", "{url}");
    }
    for url in ["http://10.0.0.1/", "https://api.example/", "http://localhost.example/"] {
        assert_eq!(route(&proxies, url), "p:1", "{url}");
    }
    let none = Proxies::new(&Proxy::None, |_| Some("http://p:1".to_owned()));
    assert_eq!(route(&none, "https://api.example/"), "-");
}

#[test]
fn no_proxy_names_hosts_networks_and_ports() {
    for (rules, direct, proxied) in [
        ("*", "http://api.example/", ""),
        (
            "example.com",
            "http://example.com/ http://a.b.EXAMPLE.com/",
            "http://notexample.com/ http://example.com.evil/",
        ),
        (".example.com", "http://example.com/ http://a.example.com/", "http://aexample.com/"),
        ("*.example.com", "http://a.example.com/", "http://aexample.com/"),
        ("a, b\tc", "http://a/ http://b/ http://c/ http://x.a/", "http://d/ http://ab/"),
        (
            "example.com:8080",
            "http://example.com:8080/ https://example.com:8080/",
            "http://example.com/ http://example.com:80/",
        ),
        ("example.com:443", "https://example.com/", "http://example.com/"),
        (
            "10.0.0.0/8, 192.168.1.7",
            "http://10.9.8.7/ http://192.168.1.7/",
            "http://11.0.0.1/ http://192.168.1.8/ http://[2001:db8::1]/",
        ),
        (
            "2001:db8::/32 [2001:db9::1]",
            "http://[2001:db8:1::2]/ http://[2001:db9::1]/",
            "http://[2001:db9::2]/ http://10.0.0.1/",
        ),
        ("0.0.0.0/0", "http://9.9.9.9/", "http://a/"),
        (", ,/,x/y,a:b,1.2.3.4/x", "", "http://a/ http://x/ http://1.2.3.4/"),
    ] {
        let proxies = environment(&[("ALL_PROXY", "p:1"), ("NO_PROXY", rules)]);
        for url in direct.split_whitespace() {
            assert_eq!(route(&proxies, url), "-", "{rules}: {url}");
        }
        for url in proxied.split_whitespace() {
            assert_eq!(route(&proxies, url), "p:1", "{rules}: {url}");
        }
    }
}

#[test]
fn a_login_becomes_a_header_and_is_shown_nowhere() {
    let proxies = environment(&[("HTTPS_PROXY", "http://us%40er:p%3Ass@w%rd@proxy.example:3128")]);
    let server = proxies.route(&"https://api.example/".parse().unwrap()).unwrap().unwrap();
    let expected = format!("Basic {}", BASE64_STANDARD.encode("us@er:p:ss@w%rd"));
    assert_eq!(server.authorization.as_ref().unwrap(), expected.as_str());
    assert_eq!(server.url, "http://proxy.example:3128/");
    let shown = format!("{proxies:?} {:?}", Proxy::Url("http://user:hunter2@p".to_owned()));
    assert!(!shown.contains("Basic") && !shown.contains("w%rd") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn an_unusable_proxy_is_an_error_where_it_is_needed_and_shows_no_password() {
    for (value, why) in [
        (
            "socks5://user:hunter2@p:1",
            "the environment variable HTTPS_PROXY names a socks5 proxy: only http:// proxies are supported",
        ),
        (
            "https://user:hunter2@p:1",
            "the environment variable HTTPS_PROXY names a https proxy: only http:// proxies are supported",
        ),
        ("http://user:hunter2@", "the environment variable HTTPS_PROXY is not an address like http://host:port"),
        ("http://user:hunter2@p:port", "the environment variable HTTPS_PROXY is not an address like http://host:port"),
        ("http://p:1/path", "the environment variable HTTPS_PROXY is not an address like http://host:port"),
    ] {
        let proxies = environment(&[("HTTPS_PROXY", value)]);
        assert_eq!(route(&proxies, "https://api.example/"), why);
        assert_eq!(route(&proxies, "http://api.example/"), "-");
        assert_eq!(route(&proxies, "https://localhost/"), "-");
        assert!(!format!("{proxies:?}").contains("hunter2"), "{proxies:?}");
    }
}
