//! Kept connections where servers and callers go away at any moment: no answer goes to another call, nothing is sent twice,
//! nothing hangs, and nothing stays open.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use bytes::Bytes;
use cepa_core::{Error, ErrorKind};
use cepa_providers::http::{HttpClient, HttpRequest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::server::{LONG, Server, post, settings, soon};

/// A server on threads of its own: it goes on while the runtime of a test does not.
fn apart<F: Future<Output = ()> + Send + 'static>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().to_string()).unwrap();
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(tcp));
            }
        });
    });
    format!("http://{}/v1/chat", told.recv().unwrap())
}

/// Reads the head of a request and what came with it; `None` when the client has closed.
async fn head(tcp: &mut TcpStream) -> Option<(usize, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            return Some((length.map_or(0, |length| length.parse().unwrap()), bytes.split_off(end + 4)));
        }
        if tcp.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

async fn rest(tcp: &mut TcpStream, length: usize, mut body: Vec<u8>) -> Option<String> {
    while body.len() < length {
        if tcp.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    assert_eq!(body.len(), length, "nothing comes after the announced body");
    Some(String::from_utf8(body).unwrap())
}

async fn request(tcp: &mut TcpStream) -> Option<String> {
    let (length, begin) = head(tcp).await?;
    rest(tcp, length, begin).await
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn call(client: &HttpClient, url: &str) -> Result<Bytes, Error> {
    soon(post(client, url).await?.collect()).await
}

/// What a server does with a request, by the number in it.
async fn misbehave(mut tcp: TcpStream, seen: Arc<Mutex<HashMap<String, usize>>>) {
    tcp.set_nodelay(true).unwrap();
    while let Some((length, begin)) = head(&mut tcp).await {
        let Some(body) = rest(&mut tcp, length, begin).await else { return };
        let id = body.trim_end().to_owned();
        *seen.lock().unwrap().entry(id.clone()).or_default() += 1;
        let number: usize = id.parse().unwrap();
        let send = async |tcp: &mut TcpStream, text: String| tcp.write_all(text.as_bytes()).await.is_ok();
        let chunked = |pieces: &[&str]| {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
            pieces.iter().fold(head, |all, piece| all + &format!("{:x}\r\n{piece}\r\n", piece.len()))
        };
        let sent = match number % 14 {
            0 => send(&mut tcp, chunked(&[&id, ""])).await,
            1 => {
                send(&mut tcp, answer(&id)).await;
                return;
            }
            2 => {
                send(&mut tcp, answer(&id).replacen("\r\n", "\r\nconnection: close\r\n", 1)).await;
                return;
            }
            3 => {
                send(&mut tcp, format!("HTTP/1.0 200 OK\r\n\r\n{id}")).await;
                return;
            }
            4 => send(&mut tcp, "HTTP/1.1 100 Continue\r\n\r\n".to_owned() + &answer(&id)).await,
            5 => send(&mut tcp, answer(&id) + &answer("EVIL")).await,
            6 => {
                send(&mut tcp, answer(&id)).await;
                sleep(Duration::from_millis(1)).await;
                send(&mut tcp, "EVIL".to_owned()).await
            }
            7 => {
                tcp.set_zero_linger().unwrap();
                return;
            }
            8 => {
                send(&mut tcp, answer(&id)).await;
                let _ = tcp.shutdown().await;
                continue;
            }
            9 => {
                let _ = send(&mut tcp, chunked(&[&id])).await;
                sleep(Duration::from_millis(5)).await;
                send(&mut tcp, "0\r\n\r\n".to_owned()).await
            }
            10 => {
                sleep(Duration::from_millis(number as u64 % 20)).await;
                send(&mut tcp, answer(&id)).await
            }
            11 => {
                send(&mut tcp, answer(&id)).await;
                // It goes away in the middle of the next request.
                let mut byte = [0];
                let _ = tcp.read(&mut byte).await;
                return;
            }
            _ => send(&mut tcp, answer(&id)).await,
        };
        if !sent {
            return;
        }
    }
}

#[test]
fn a_storm_of_calls_leaves_nothing_behind() {
    const CALLS: usize = 1600;
    let seen = Arc::new(Mutex::new(HashMap::new()));
    let open = Arc::new(());
    let (counted, counting) = (seen.clone(), open.clone());
    let url = apart(move |tcp| {
        let (seen, connection) = (counted.clone(), counting.clone());
        async move {
            misbehave(tcp, seen).await;
            drop(connection);
        }
    });
    let runtime = Builder::new_multi_thread().worker_threads(8).enable_all().build().unwrap();
    let client = HttpClient::new(settings());
    let one = async |client: HttpClient, url: String, number: usize| -> Option<Result<(), Error>> {
        let pad = if number.is_multiple_of(5) { 100_000 } else { 1 };
        let text = format!("{number}{}", " ".repeat(pad));
        let request = HttpRequest::post(&url, vec![Bytes::from(text)]).unwrap();
        let cancel = CancellationToken::new();
        let whole = async {
            let mut response = client.send(request, &cancel).await?;
            if number.is_multiple_of(11) {
                response.next_chunk().await?;
                return Ok(());
            }
            let body = response.collect().await?;
            assert_eq!(body, number.to_string().as_bytes(), "the answer of another call");
            Ok(())
        };
        let soon_over = Duration::from_micros(number as u64 * 7919 % 9000);
        match number % 7 {
            0 => timeout(soon_over, whole).await.ok(),
            1 => {
                let later = async {
                    sleep(soon_over).await;
                    cancel.cancel();
                };
                Some(tokio::join!(whole, later).0)
            }
            _ => Some(timeout(LONG, whole).await.expect("a call hangs")),
        }
    };
    let mut fine = 0;
    runtime.block_on(async {
        for start in (0..CALLS).step_by(400) {
            let calls: Vec<_> =
                (start..start + 400).map(|number| tokio::spawn(one(client.clone(), url.clone(), number))).collect();
            for (number, call) in (start..).zip(calls) {
                match call.await.unwrap() {
                    None => {}
                    Some(Ok(())) => fine += 1,
                    Some(Err(error)) => {
                        // What the server did, to this call or behind the one before.
                        let is_expected = match error.kind() {
                            ErrorKind::Decode | ErrorKind::Network => true,
                            ErrorKind::Cancelled => number % 7 == 1,
                            _ => false,
                        };
                        assert!(is_expected, "{error}");
                    }
                }
            }
        }
    });
    assert!(fine > CALLS / 2, "{fine} of {CALLS}");
    let twice: Vec<_> =
        seen.lock().unwrap().iter().filter(|(_, times)| **times > 1).map(|(id, _)| id.clone()).collect();
    assert!(twice.is_empty(), "sent twice: {twice:?}");
    drop(client);
    let begin = Instant::now();
    // This one's, and the server's.
    while Arc::strong_count(&open) > 2 {
        assert!(begin.elapsed() < LONG, "{} connections are open", Arc::strong_count(&open) - 2);
        std::thread::sleep(Duration::from_millis(20));
    }
}

// The connection died while the caller's thread was busy with something else, so that nobody has seen it yet.
#[test]
fn a_connection_that_died_while_the_runtime_stood_still_fails_no_call() {
    for reset in [false, true] {
        let url = apart(move |mut tcp| async move {
            request(&mut tcp).await;
            let _ = tcp.write_all(answer("ok").as_bytes()).await;
            sleep(Duration::from_millis(50)).await;
            if reset {
                tcp.set_zero_linger().unwrap();
            }
        });
        let (runtime, client) = (runtime(), HttpClient::new(settings()));
        for call_number in 0..5 {
            let body = runtime.block_on(call(&client, &url));
            assert_eq!(body.unwrap_or_else(|error| panic!("call {call_number}: {error}")), "ok");
            std::thread::sleep(Duration::from_millis(150));
        }
        let url = url.clone();
        runtime.block_on(async {
            for call_number in 0..5 {
                let body = call(&client, &url).await;
                assert_eq!(body.unwrap_or_else(|error| panic!("call {call_number}: {error}")), "ok");
                std::thread::sleep(Duration::from_millis(150));
            }
        });
    }
}

// Its tasks are gone with a runtime, and so are its connections.
#[test]
fn a_client_outlives_its_runtime() {
    let url = apart(|mut tcp| async move {
        while request(&mut tcp).await.is_some() {
            let _ = tcp.write_all(answer("ok").as_bytes()).await;
        }
    });
    let client = HttpClient::new(settings());
    for _ in 0..3 {
        assert_eq!(runtime().block_on(call(&client, &url)).unwrap(), "ok");
        let many = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        assert_eq!(many.block_on(call(&client, &url)).unwrap(), "ok");
    }
}

// One that is there, and not run: nothing that hangs on it is waited for.
#[test]
fn a_runtime_that_stands_still_holds_up_no_other() {
    let url = apart(|mut tcp| async move {
        while request(&mut tcp).await.is_some() {
            let _ = tcp.write_all(answer("ok").as_bytes()).await;
        }
    });
    let client = HttpClient::new(settings());
    let (one, other) = (runtime(), runtime());
    for _ in 0..3 {
        assert_eq!(one.block_on(call(&client, &url)).unwrap(), "ok");
        assert_eq!(other.block_on(call(&client, &url)).unwrap(), "ok");
    }
}

// What a server sends unasked is nobody's answer.
#[tokio::test]
async fn what_comes_behind_a_body_is_no_answer() {
    for pause in [0, 5] {
        let server = Server::start(move |mut peer| async move {
            while peer.request().await.is_some() {
                peer.send(answer("ok")).await;
                sleep(Duration::from_millis(pause)).await;
                peer.send(answer("EVIL")).await;
            }
        })
        .await;
        let client = HttpClient::new(settings());
        for _ in 0..10 {
            assert_eq!(call(&client, &server.url()).await.unwrap(), "ok");
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(server.connections(), 10);
    }
    let server = Server::start(move |mut peer| async move {
        while peer.request().await.is_some() {
            peer.send(answer("ok") + &answer("EVIL")).await;
        }
    })
    .await;
    let client = HttpClient::new(settings());
    for _ in 0..100 {
        assert_eq!(call(&client, &server.url()).await.unwrap(), "ok");
    }
}

// An early refusal: the rest of such a body is sent to nobody, and the next call does not wait for one after the other.
#[tokio::test]
async fn connections_that_still_send_hold_up_no_call() {
    let url = apart(|mut tcp| async move {
        let Some((length, _)) = head(&mut tcp).await else { return };
        let _ = tcp.write_all(answer("ok").as_bytes()).await;
        if length > 1000 {
            sleep(LONG).await;
        }
    });
    let client = HttpClient::new(settings());
    let body: Arc<[u8]> = vec![b'x'; 16 * 1024 * 1024].into();
    let large = Bytes::from_owner(body.clone());
    let calls: Vec<_> = (0..60)
        .map(|_| {
            let (client, request) = (client.clone(), HttpRequest::post(&url, vec![large.clone()]).unwrap());
            tokio::spawn(async move {
                let response = client.send(request, &CancellationToken::new()).await?;
                response.collect().await
            })
        })
        .collect();
    for one in calls {
        assert_eq!(soon(one).await.unwrap().unwrap(), "ok");
    }
    let begin = Instant::now();
    assert_eq!(call(&client, &url).await.unwrap(), "ok");
    assert!(begin.elapsed() < Duration::from_millis(200), "{:?}", begin.elapsed());
    // Who drives such a connection is gone with the body.
    drop(large);
    while Arc::strong_count(&body) > 1 {
        assert!(begin.elapsed() < LONG / 2, "the body is still there");
        sleep(Duration::from_millis(20)).await;
    }
}

// The caller's thread does something else as soon as it has its answer.
#[test]
fn a_connection_is_kept_where_the_runtime_stands_still_between_two_calls() {
    let open = Arc::new(Mutex::new(0));
    let counted = open.clone();
    let url = apart(move |mut tcp| {
        *counted.lock().unwrap() += 1;
        async move {
            while request(&mut tcp).await.is_some() {
                let _ = tcp.write_all(answer("ok").as_bytes()).await;
            }
        }
    });
    let (runtime, client) = (runtime(), HttpClient::new(settings()));
    for _ in 0..5 {
        assert_eq!(runtime.block_on(call(&client, &url)).unwrap(), "ok");
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(*open.lock().unwrap(), 1);
}
