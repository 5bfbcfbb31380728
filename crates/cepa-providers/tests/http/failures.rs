//! Hosts that are not there, do not answer, or go away: the error says so, and nothing is sent twice.

use std::time::{Duration, Instant};

use cepa_core::{Error, ErrorKind};
use cepa_providers::{
    http::{HttpClient, HttpRequest, HttpSettings},
    retry::{RetryPolicy, retry},
    secret::ApiKey,
};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;

use crate::server::{Server, json, post, settings, soon};

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const KEY: &str = "sk-case-key-that-must-not-leak";

/// Posts with a key to this address and gives the error, which shows no key anywhere.
async fn failure(settings: HttpSettings, url: &str) -> Error {
    let mut request = HttpRequest::post(url, json("{}")).unwrap();
    request.headers_mut().insert("authorization", ApiKey::new(KEY).unwrap().bearer());
    let client = HttpClient::new(settings);
    let error = soon(client.send(request.clone(), &CancellationToken::new())).await.unwrap_err();
    let mut shown = format!("{error} {error:?} {client:?} {request:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        shown.push_str(&format!("{cause} {cause:?}"));
        source = cause.source();
    }
    assert!(!shown.contains("must-not-leak"), "{shown}");
    error
}

#[tokio::test]
async fn a_port_where_nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = failure(settings(), &format!("http://{address}/v1")).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true));
    assert!(error.message().contains(&format!("nothing listens at {address}")), "{error}");
    assert!(error.message().contains("is the server running"), "{error}");
}

#[tokio::test]
async fn a_name_that_does_not_exist() {
    let error = failure(settings(), "http://no-such-host.invalid:81/v1").await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true));
    assert!(error.message().contains("no-such-host.invalid:81 cannot be resolved"), "{error}");
}

#[tokio::test]
async fn a_host_that_accepts_and_says_nothing_while_connecting() {
    let server = Server::start(|mut peer| async move { peer.closed().await }).await;
    let mut quick = settings();
    quick.connect_timeout = Duration::from_millis(300);
    let error = failure(quick, &format!("https://{}/v1", server.address)).await;
    // Nothing was sent, so it is not a `timeout`: it may be tried again without a doubt.
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true));
    assert!(error.message().contains("could not be reached within 300ms"), "{error}");
}

#[tokio::test]
async fn a_server_that_speaks_something_else() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send("SSH-2.0-OpenSSH_9.6\r\n").await;
        peer.closed().await;
    })
    .await;
    let error = failure(settings(), &server.url()).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Decode, false));
    assert!(error.message().contains("not HTTP"), "{error}");
}

/// On a runtime of one thread, which hyper would keep for itself as long as there is something to read.
#[tokio::test]
async fn interim_answers_without_end_are_given_up() {
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\nx-a: b\r\n\r\n",
        "\r\n\nHTTP/1.0 103 Early Hints\nlink: </a>\n\n",
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut tcp, _) = listener.accept().unwrap();
            let _ = tcp.read(&mut [0; 4096]).unwrap();
            let flood = interim.repeat(10_000);
            while tcp.write_all(flood.as_bytes()).is_ok() {}
        });
        let error = failure(settings(), &format!("http://{address}/v1")).await;
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Decode, false), "{error}");
        assert!(error.message().contains("interim answers (HTTP 1xx) without end"), "{error}");
        server.join().unwrap();
    }
}

#[tokio::test]
async fn interim_answers_with_an_end_are_passed_over_for_each_request_anew() {
    let server = Server::start(|mut peer| async move {
        while peer.request().await.is_some() {
            peer.send("HTTP/1.1 102 Processing\r\nx-still: at work\r\n\r\n".repeat(4000)).await;
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n").await;
            peer.send("HTTP/1.1 100 Continue\r\n\r\n".repeat(8000)).await;
        }
    })
    .await;
    let client = HttpClient::new(settings());
    for _ in 0..3 {
        let response = post(&client, &server.url()).await.unwrap();
        assert_eq!(soon(response.collect()).await.unwrap().len(), 200_000);
    }
    assert_eq!((server.requests(), server.connections()), (3, 1));
}

#[tokio::test]
async fn more_headers_than_are_read_are_no_other_protocol() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        let headers: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
        peer.send(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n")).await;
        peer.closed().await;
    })
    .await;
    let error = failure(settings(), &server.url()).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Decode, false));
    assert!(error.message().contains("too many or too large headers"), "{error}");
}

#[tokio::test]
async fn https_to_a_server_that_speaks_http() {
    let server = Server::start(|mut peer| async move {
        use tokio::io::AsyncReadExt;
        let _ = peer.tcp.read_buf(&mut Vec::new()).await;
        peer.send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        peer.closed().await;
    })
    .await;
    let error = failure(settings(), &format!("https://{}/v1", server.address)).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, false));
    assert!(error.message().contains("try http://"), "{error}");
}

#[tokio::test]
async fn no_answer_in_time_is_a_timeout_and_closes_the_connection() {
    let (closed, mut is_closed) = mpsc::channel(1);
    let server = Server::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await;
            peer.closed().await;
            let _ = closed.send(()).await;
        }
    })
    .await;
    let mut quick = settings();
    quick.response_timeout = Duration::from_millis(200);
    let error = failure(quick, &server.url()).await;
    assert_eq!((error.kind(), error.is_retryable(), error.status()), (ErrorKind::Timeout, true, None));
    assert!(error.message().contains(&format!("{} did not answer within 200ms", server.address)), "{error}");
    soon(is_closed.recv()).await.unwrap();
    assert_eq!(server.requests(), 1);
}

// L11: cancellation reaches the model call
#[tokio::test]
async fn cancelling_or_dropping_a_waiting_request_closes_its_connection() {
    let (closed, mut is_closed) = mpsc::channel(1);
    let server = Server::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await;
            peer.closed().await;
            let _ = closed.send(()).await;
        }
    })
    .await;
    let client = HttpClient::new(settings());
    let request = HttpRequest::post(&server.url(), json("{}")).unwrap();
    let cancel = CancellationToken::new();
    let start = Instant::now();
    let (result, ()) = tokio::join!(soon(client.send(request.clone(), &cancel)), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(1));
    soon(is_closed.recv()).await.unwrap();

    let never = CancellationToken::new();
    assert!(tokio::time::timeout(Duration::from_millis(50), client.send(request.clone(), &never)).await.is_err());
    soon(is_closed.recv()).await.unwrap();
    assert_eq!(server.requests(), 2);

    assert_eq!(soon(client.send(request, &cancel)).await.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(server.requests(), 2, "a cancelled request is not sent");
}

/// The client itself repeats nothing that was read, on a new connection or on a kept one; the policy may.
#[tokio::test]
async fn a_request_that_the_server_read_is_not_sent_again_by_the_client() {
    for answered_before in [0, 1, 3] {
        let server = Server::start(move |mut peer| async move {
            for _ in 0..answered_before {
                peer.request().await;
                peer.send(EMPTY).await;
            }
            peer.request().await;
        })
        .await;
        let client = HttpClient::new(settings());
        for _ in 0..answered_before {
            post(&client, &server.url()).await.unwrap();
        }
        let error = post(&client, &server.url()).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true));
        assert!(error.message().contains("closed the connection before it answered"), "{error}");
        assert_eq!((server.connections(), server.requests()), (1, answered_before + 1));
    }
}

/// Like the above, but with a reset instead of a close.
#[tokio::test]
async fn a_reset_connection_is_a_network_error() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.tcp.set_zero_linger().unwrap();
    })
    .await;
    let error = failure(settings(), &server.url()).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true));
    assert_eq!(server.requests(), 1);
}

/// A refusal that comes while a large body is still on its way is not lost in the broken connection.
#[tokio::test]
async fn an_early_refusal_of_a_large_body_is_read() {
    let server = Server::start(|mut peer| async move {
        use tokio::io::AsyncReadExt;
        let _ = peer.tcp.read_buf(&mut Vec::with_capacity(1024)).await;
        peer.send("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig").await;
        peer.closed().await;
    })
    .await;
    let body = vec![bytes::Bytes::from(vec![b' '; 20_000_000])];
    let request = HttpRequest::post(&server.url(), body).unwrap();
    let response = soon(HttpClient::new(settings()).send(request, &CancellationToken::new())).await.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(soon(response.error_text()).await, "big");
}

// W5: only what is retryable; a timeout after sending is not
#[tokio::test]
async fn the_policy_decides_what_is_sent_again() {
    let quick_policy =
        |retry_timeouts| RetryPolicy { base: Duration::from_millis(1), retry_timeouts, ..RetryPolicy::default() };
    let run = async |server: &Server, policy: RetryPolicy| {
        let mut quick = settings();
        quick.response_timeout = Duration::from_millis(150);
        let client = HttpClient::new(quick);
        let cancel = CancellationToken::new();
        let result = retry(&policy, &cancel, |_| async { Ok(post(&client, &server.url()).await?) });
        soon(result).await.map(|response| response.status())
    };

    let silent = Server::start(|mut peer| async move {
        peer.request().await;
        peer.closed().await;
    });
    let silent = silent.await;
    assert_eq!(run(&silent, quick_policy(false)).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(silent.requests(), 1);
    assert_eq!(run(&silent, quick_policy(true)).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(silent.requests(), 4);

    let closing = Server::start(|mut peer| async move {
        peer.request().await;
    });
    let closing = closing.await;
    assert_eq!(run(&closing, quick_policy(false)).await.unwrap_err().kind(), ErrorKind::Network);
    assert_eq!(closing.requests(), 3);
}
