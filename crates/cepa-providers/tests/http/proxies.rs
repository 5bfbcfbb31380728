//! Requests through a proxy. The hosts behind it do not exist: only a proxy can answer for them.

use std::sync::{Arc, Mutex};

use cepa_core::ErrorKind;
use cepa_providers::http::{HttpClient, HttpSettings, Proxy};

use crate::server::{Server, post, soon};

/// A proxy that answers by itself and keeps the heads it got.
async fn proxy(answer: &'static str) -> (Server, Arc<Mutex<Vec<String>>>, HttpSettings) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let log = heads.clone();
    let server = Server::start(move |mut peer| {
        let log = log.clone();
        async move {
            while let Some((head, _)) = peer.request().await {
                log.lock().unwrap().push(head);
                peer.send(answer).await;
            }
        }
    })
    .await;
    let mut settings = HttpSettings::default();
    settings.proxy = Proxy::Url(format!("http://user:hunter2@{}", server.address));
    (server, heads, settings)
}

const LOGIN: &str = "\r\nproxy-authorization: Basic dXNlcjpodW50ZXIy\r\n";

#[tokio::test]
async fn plain_requests_are_sent_to_the_proxy_whole() {
    let (_server, heads, settings) = proxy("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let response = post(&HttpClient::new(settings), "http://model.invalid/v1/chat").await.unwrap();
    assert_eq!(soon(response.collect()).await.unwrap(), "ok");
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("POST http://model.invalid/v1/chat HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains("\r\nhost: model.invalid\r\n") && heads[0].contains(LOGIN), "{heads:?}");
}

#[tokio::test]
async fn secure_requests_go_through_a_tunnel_that_the_proxy_may_refuse() {
    let (server, heads, settings) =
        proxy("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await;
    let error = post(&HttpClient::new(settings), "https://model.invalid/v1/chat").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    for part in [server.address.as_str(), "did not connect to model.invalid", "authorization required"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert!(!format!("{error:?}").contains("hunter2"));
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("CONNECT model.invalid:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].to_lowercase().contains(&LOGIN.to_lowercase()), "{heads:?}");
}

#[tokio::test]
async fn this_machine_is_reached_without_the_proxy() {
    let (proxy, _, settings) = proxy("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(server.post(settings).await.unwrap().status(), 200);
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn an_unusable_or_absent_proxy_is_said_to_be_the_reason() {
    let mut settings = HttpSettings::default();
    settings.proxy = Proxy::Url("socks5://user:hunter2@127.0.0.1:1".to_owned());
    let error = post(&HttpClient::new(settings.clone()), "http://model.invalid/").await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidConfig, false));
    assert!(error.message().contains("socks5") && error.message().contains("model.invalid"), "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));

    settings.proxy = Proxy::Url("127.0.0.1:1".to_owned());
    for url in ["http://model.invalid/", "https://model.invalid/"] {
        let error = post(&HttpClient::new(settings.clone()), url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Network);
        assert!(error.message().contains("the proxy 127.0.0.1:1 did not connect to model.invalid"), "{error}");
    }
}
