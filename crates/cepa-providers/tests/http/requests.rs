//! What leaves, and over which connection.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cepa_core::ErrorKind;
use cepa_providers::{
    http::{HttpClient, HttpRequest, HttpSettings},
    secret::ApiKey,
};
use http::HeaderValue;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, post, settings, soon};

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A server that keeps the requests it gets.
async fn recording() -> (Server, Arc<Mutex<Vec<(String, Vec<u8>)>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let server = Server::start(move |mut peer| {
        let log = log.clone();
        async move {
            while let Some(request) = peer.request().await {
                log.lock().unwrap().push(request);
                peer.send(EMPTY).await;
            }
        }
    })
    .await;
    (server, seen)
}

// P2: a body is sent as pieces with an exact length
#[tokio::test]
async fn pieces_arrive_as_one_body_under_their_exact_length() {
    let (server, seen) = recording().await;
    let big = Bytes::from("x".repeat(3_000_000));
    let pieces = vec![Bytes::from_static(b"{\"a\":["), big.clone(), Bytes::new(), Bytes::from_static(b"]}")];
    let request = HttpRequest::post(&server.url(), pieces).unwrap();
    let client = HttpClient::new(settings());
    for _ in 0..2 {
        let response = soon(client.send(request.clone(), &CancellationToken::new())).await.unwrap();
        assert!(response.is_success());
    }
    let seen = seen.lock().unwrap();
    let expected = [b"{\"a\":[", &big[..], b"]}"].concat();
    for (head, body) in seen.iter() {
        assert!(head.starts_with("POST /v1/chat HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-length: 3000008\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nhost: {}\r\n", server.address)), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert!(*body == expected);
    }
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn a_get_has_no_body_and_keeps_its_query() {
    let (server, seen) = recording().await;
    let request = HttpRequest::get(&format!("{}?a=%20b", server.url())).unwrap();
    soon(HttpClient::new(settings()).send(request, &CancellationToken::new())).await.unwrap();
    let seen = seen.lock().unwrap();
    let (head, _) = &seen[0];
    assert!(head.starts_with("GET /v1/chat?a=%20b HTTP/1.1\r\n") && !head.contains("content-"), "{head}");
}

#[tokio::test]
async fn a_requests_headers_win_over_the_settings_and_none_spoils_the_framing() {
    let (server, seen) = recording().await;
    let settings = settings()
        .with_header("x-team", "a")
        .and_then(|settings| settings.with_header("User-Agent", "mine"))
        .and_then(|settings| settings.with_header("x-api-key", "of the settings"))
        .and_then(|settings| settings.with_header("content-length", "7"))
        .and_then(|settings| settings.with_header("transfer-encoding", "chunked"))
        .unwrap();
    let mut request = HttpRequest::post(&server.url(), vec![Bytes::from_static(b"{}")]).unwrap();
    request.headers_mut().insert("x-api-key", ApiKey::new("k-123").unwrap().header());
    request.headers_mut().append("x-many", HeaderValue::from_static("1"));
    request.headers_mut().append("x-many", HeaderValue::from_static("2"));
    soon(HttpClient::new(settings).send(request, &CancellationToken::new())).await.unwrap();
    let seen = seen.lock().unwrap();
    let (head, body) = &seen[0];
    for line in [
        "x-team: a",
        "user-agent: mine",
        "x-api-key: k-123",
        "x-many: 1",
        "x-many: 2",
        "content-length: 2",
        "accept-encoding: identity",
    ] {
        assert_eq!(head.matches(&format!("\r\n{line}\r\n")).count(), 1, "{line} in {head}");
    }
    assert!(!head.contains("of the settings") && !head.contains("chunked"), "{head}");
    assert_eq!(body, b"{}");
}

#[test]
fn headers_that_http_does_not_allow_are_refused() {
    for (name, value, why) in [
        ("x y", "1", "a name"),
        ("", "1", "a name"),
        ("x", "1\r\ny: 2", "a line break"),
        ("x", "\u{0}", "a line break"),
    ] {
        let error = settings().with_header(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn addresses_that_cannot_work_are_refused_and_their_secrets_not_shown() {
    for (url, why) in [
        ("api.example/v1", "http:// or https://"),
        ("ftp://api.example/", "http:// or https://"),
        ("/v1", "http:// or https://"),
        ("", "http:// or https://"),
        ("http://", "cannot be used"),
        ("http://:80/", "cannot be used"),
        ("http://a b/", "cannot be used"),
        ("http://bücher.example/", "cannot be used"),
        ("http://host:99999/", "cannot be used"),
        ("https://user:hunter2@api.example/", "user or password"),
        ("http://x y?key=hunter2", "cannot be used"),
    ] {
        let error = HttpRequest::get(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{url}");
        assert!(error.message().contains(why), "{url}: {error}");
        assert!(!error.message().contains("hunter2"), "{error}");
    }
    let request = HttpRequest::get(" https://api.example:8443/v1?key=hunter2 ").unwrap();
    assert_eq!(request.host(), "api.example:8443");
    assert!(!format!("{request:?}").contains("hunter2"));
}

// P4: making a client does nothing, not even need a runtime
#[test]
fn a_client_is_made_without_a_runtime() {
    let client = HttpClient::new(HttpSettings::default().with_header("x-api-key", "hunter2").unwrap());
    let shown = format!("{client:?}");
    assert!(shown.contains("x-api-key") && !shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn connections_are_kept_and_shared_by_clones() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    let client = HttpClient::new(settings());
    for client in [client.clone(), client.clone(), client] {
        assert_eq!(post(&client, &server.url()).await.unwrap().collect().await.unwrap(), "{}");
    }
    assert_eq!((server.connections(), server.requests()), (1, 3));
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own_which_are_kept() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    let client = HttpClient::new(settings());
    let url = server.url();
    for _ in 0..3 {
        let [one, two, three] = [post(&client, &url), post(&client, &url), post(&client, &url)];
        let (one, two, three) = tokio::join!(one, two, three);
        for response in [one, two, three] {
            assert_eq!(response.unwrap().collect().await.unwrap(), "{}");
        }
    }
    assert_eq!((server.connections(), server.requests()), (3, 9));
}

/// Each request has the host that it is for, and no connection leads to another server than it was made for.
#[tokio::test]
async fn each_server_has_its_own_connections() {
    let servers = [recording().await, recording().await];
    let client = HttpClient::new(settings());
    for _ in 0..3 {
        for (server, _) in &servers {
            post(&client, &server.url()).await.unwrap();
        }
    }
    for (server, seen) in servers {
        assert_eq!((server.connections(), server.requests()), (1, 3));
        let host = format!("\r\nhost: {}\r\n", server.address);
        assert!(seen.lock().unwrap().iter().all(|(head, _)| head.contains(&host)));
    }
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed() {
    let (closed, mut is_closed) = tokio::sync::mpsc::channel(1);
    let server = Server::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await;
            peer.send(EMPTY).await;
            peer.closed().await;
            closed.send(()).await.unwrap();
        }
    })
    .await;
    let client = HttpClient::new(settings());
    post(&client, &server.url()).await.unwrap();
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(51)).await;
    tokio::time::resume();
    soon(is_closed.recv()).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_used_again() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send(EMPTY).await;
    })
    .await;
    let client = HttpClient::new(settings());
    for _ in 0..5 {
        post(&client, &server.url()).await.unwrap();
        // The close arrives.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!((server.connections(), server.requests()), (5, 5));
}
