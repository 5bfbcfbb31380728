//! How bodies are read, bounded, and given up.

use std::time::{Duration, Instant};

use cepa_core::ErrorKind;
use cepa_providers::{
    http::{HttpClient, HttpRequest},
    secret::ApiKey,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, json, post, settings, soon};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

#[tokio::test]
async fn a_body_is_collected_however_it_is_framed() {
    for (answer, body) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody", "body"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\nx-trailer: 1\r\n\r\n",
            "abcdef",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 1\r\n\r\nx", "x"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", "x"),
    ] {
        let server = Server::answering(answer).await;
        let response = server.post(settings()).await.unwrap();
        assert!(response.is_success());
        assert_eq!(soon(response.collect()).await.unwrap(), body, "{answer}");
    }
    let until_close = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\n\r\nto the end").await;
    });
    let response = until_close.await.post(settings()).await.unwrap();
    assert_eq!(soon(response.collect()).await.unwrap(), "to the end");
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused_and_not_read() {
    let mut small = settings();
    small.max_body_bytes = 5;
    for (answer, fits) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9999999999999\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n123\r\n3\r\n456\r\n", false),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\n123456\r\n0\r\n\r\n", false),
    ] {
        let server = Server::answering(answer).await;
        let result = soon(server.post(small.clone()).await.unwrap().collect()).await;
        match result {
            Ok(body) => assert!(fits && body == "12345", "{answer}"),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::Decode, "{answer}: {error}");
                assert!(error.message().contains("larger than 5 bytes"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn pieces_come_as_they_are_sent() {
    let (send, receive) = mpsc::channel::<String>(1);
    let receive = std::sync::Arc::new(tokio::sync::Mutex::new(receive));
    let server = Server::start(move |mut peer| {
        let receive = receive.clone();
        async move {
            peer.request().await;
            peer.send(CHUNKED).await;
            while let Some(data) = receive.lock().await.recv().await {
                peer.send(data).await;
            }
        }
    })
    .await;
    let mut response = server.post(settings()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    for data in ["data: 1\n\n", "data: 2", "\n\n"] {
        send.send(chunk(data)).await.unwrap();
        assert_eq!(soon(response.next_chunk()).await.unwrap().unwrap(), data);
    }
    send.send("0\r\n\r\n".to_owned()).await.unwrap();
    assert_eq!(soon(response.next_chunk()).await.unwrap(), None);
    assert_eq!(soon(response.next_chunk()).await.unwrap(), None);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error_and_stays_one() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nnonsense\r\n",
    ] {
        let server = Server::start(move |mut peer| async move {
            peer.request().await;
            peer.send(answer).await;
        })
        .await;
        let mut response = server.post(settings()).await.unwrap();
        assert_eq!(soon(response.next_chunk()).await.unwrap().unwrap(), "half");
        for _ in 0..2 {
            let error = soon(response.next_chunk()).await.unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true), "{answer}");
            assert!(error.message().contains(&server.address), "{error}");
        }
        let response = server.post(settings()).await.unwrap();
        assert_eq!(soon(response.collect()).await.unwrap_err().kind(), ErrorKind::Network, "{answer}");
        let response = server.post(settings()).await.unwrap();
        assert_eq!(soon(response.error_text()).await, "half", "{answer}");
    }
}

#[tokio::test]
async fn silence_between_pieces_ends_the_stream_and_comments_are_life() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send(CHUNKED).await;
        for _ in 0..6 {
            peer.send(chunk(": keep-alive\n")).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        peer.closed().await;
    })
    .await;
    let mut quick = settings();
    quick.idle_timeout = Duration::from_millis(400);
    let mut response = server.post(quick).await.unwrap();
    let start = Instant::now();
    let mut pieces = 0;
    let error = loop {
        match soon(response.next_chunk()).await {
            Ok(piece) => pieces += usize::from(piece.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!(pieces, 6);
    assert!(start.elapsed() >= Duration::from_millis(800), "{:?}", start.elapsed());
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
    assert!(error.message().contains("sent nothing for 400ms"), "{error}");
    assert_eq!(soon(response.next_chunk()).await.unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_collected_body_has_one_limit_from_the_start_of_the_request() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send(CHUNKED).await;
        loop {
            peer.send(chunk("drip")).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut quick = settings();
    quick.response_timeout = Duration::from_millis(200);
    let start = Instant::now();
    let error = soon(server.post(quick).await.unwrap().collect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("did not answer within 200ms"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

// L11: cancellation reaches the model call
#[tokio::test]
async fn cancelling_ends_a_body_at_once_and_closes_the_connection() {
    let (closed, mut is_closed) = mpsc::channel(1);
    let server = Server::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await;
            peer.send(format!("{CHUNKED}{}", chunk("first"))).await;
            peer.closed().await;
            let _ = closed.send(()).await;
        }
    })
    .await;
    let cancel = CancellationToken::new();
    let request = HttpRequest::post(&server.url(), json("{}")).unwrap();
    let mut response = soon(HttpClient::new(settings()).send(request, &cancel)).await.unwrap();
    assert_eq!(soon(response.next_chunk()).await.unwrap().unwrap(), "first");
    let (result, ()) = tokio::join!(soon(response.next_chunk()), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    soon(is_closed.recv()).await.unwrap();
    assert_eq!(soon(response.next_chunk()).await.unwrap_err().kind(), ErrorKind::Cancelled);
}

// Case "drop closes connection": nobody has to cancel.
#[tokio::test]
async fn dropping_a_response_closes_the_connection_even_while_it_is_fed() {
    let (closed, mut is_closed) = mpsc::channel(1);
    let server = Server::start(move |mut peer| {
        let closed = closed.clone();
        async move {
            use tokio::io::AsyncWriteExt;
            peer.request().await;
            peer.send(CHUNKED).await;
            while peer.tcp.write_all(chunk("more").as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let _ = closed.send(()).await;
        }
    })
    .await;
    let client = HttpClient::new(settings());
    let mut response = post(&client, &server.url()).await.unwrap();
    soon(response.next_chunk()).await.unwrap();
    drop(response);
    let start = Instant::now();
    soon(is_closed.recv()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_finished_stream_leaves_its_connection_for_the_next_request() {
    let server = Server::start(|mut peer| async move {
        while peer.request().await.is_some() {
            peer.send(format!("{CHUNKED}{}", chunk("data: [DONE]\n\n"))).await;
            tokio::time::sleep(Duration::from_millis(3)).await;
            peer.send("0\r\n\r\n").await;
        }
    })
    .await;
    let client = HttpClient::new(settings());
    for _ in 0..3 {
        let mut response = post(&client, &server.url()).await.unwrap();
        assert_eq!(soon(response.next_chunk()).await.unwrap().unwrap(), "data: [DONE]\n\n");
        soon(response.finish()).await;
        // The connection goes back to the pool in a task of its own.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((server.connections(), server.requests()), (1, 3));
}

#[tokio::test]
async fn finishing_does_not_wait_for_a_server_that_goes_on() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send(format!("{CHUNKED}{}", chunk("data: [DONE]\n\n"))).await;
        peer.closed().await;
    })
    .await;
    let mut response = server.post(settings()).await.unwrap();
    soon(response.next_chunk()).await.unwrap();
    let start = Instant::now();
    response.finish().await;
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}

#[tokio::test]
async fn an_encoding_that_was_not_asked_for_is_said_and_hides_no_status() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc").await;
    let error = server.post(settings()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.message().contains("gzip"), "{error}");
    let server = Server::answering("HTTP/1.1 503 Down\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc").await;
    let response = server.post(settings()).await.unwrap();
    assert_eq!((response.status(), response.is_success()), (503, false));
    assert_eq!(soon(response.error_text()).await, "");
}

#[tokio::test]
async fn an_error_body_is_read_as_far_as_it_makes_sense() {
    let server = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 500 No\r\n\r\n\u{fffd}").await;
        loop {
            peer.send([b'x'; 4096]).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    let text = soon(server.post(settings()).await.unwrap().error_text()).await;
    assert!(text.len() <= 256 * 1024 + 3 && text.len() > 200 * 1024, "{}", text.len());
}

// W4
#[tokio::test]
async fn a_refusal_becomes_an_error_with_what_its_body_says() {
    let server = Server::answering(
        "HTTP/1.1 429 Slow\r\nretry-after: 7\r\nx-request-id: r1\r\ncontent-length: 78\r\n\r\n\
         {\"error\":{\"message\":\"wait, sk-case-key-that-must-not-leak\",\"type\":\"requests\"}}",
    )
    .await;
    let key = ApiKey::new("sk-case-key-that-must-not-leak").unwrap();
    let error = soon(server.post(settings()).await.unwrap().into_error("acme", Some(&key))).await;
    assert_eq!(error.to_string(), "rate_limit: wait, [api key] (provider acme, status 429, code requests, request r1)");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));

    let broken = Server::start(|mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 503 Down\r\ncontent-length: 100\r\n\r\nhalf").await;
    })
    .await;
    let error = soon(broken.post(settings()).await.unwrap().into_error("acme", None)).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::Server, Some(503)));
    assert_eq!(error.message(), "HTTP 503 Service Unavailable: half");
}
