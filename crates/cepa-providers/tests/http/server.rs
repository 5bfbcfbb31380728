//! A server that does what a test says, byte by byte, and counts what it sees.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cepa_core::Error;
use cepa_providers::http::{HttpClient, HttpRequest, HttpResponse, HttpSettings, Proxy};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// No test waits longer for anything.
pub(crate) const LONG: Duration = Duration::from_secs(10);

pub(crate) struct Server {
    pub(crate) address: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Runs `serve` for each connection.
    pub(crate) async fn start<F>(serve: impl Fn(Peer) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let server = Self { address, connections: connections.clone(), requests: requests.clone() };
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tcp.set_nodelay(true).unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(Peer { tcp, requests: requests.clone() }));
            }
        });
        server
    }

    /// Answers each request on each connection with these bytes.
    pub(crate) async fn answering(answer: &'static str) -> Self {
        Self::start(move |mut peer| async move {
            while peer.request().await.is_some() {
                peer.send(answer).await;
            }
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/chat", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Posts `{}` with these settings.
    pub(crate) async fn post(&self, settings: HttpSettings) -> Result<HttpResponse, Error> {
        post(&HttpClient::new(settings), &self.url()).await
    }
}

pub(crate) struct Peer {
    pub(crate) tcp: TcpStream,
    requests: Arc<AtomicUsize>,
}

impl Peer {
    /// Reads one request: its head and its body. `None` when the client has closed.
    pub(crate) async fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if self.tcp.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        let mut body = bytes.split_off(head);
        while body.len() < length {
            if self.tcp.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
        assert_eq!(body.len(), length, "nothing comes after the announced body");
        self.requests.fetch_add(1, Ordering::SeqCst);
        Some((text, body))
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A client that has gone is what some tests are about.
        let _ = self.tcp.write_all(bytes.as_ref()).await;
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn closed(&mut self) {
        let mut bytes = Vec::new();
        while matches!(self.tcp.read_buf(&mut bytes).await, Ok(count) if count > 0) {}
    }
}

/// Settings that do not look at the proxies of the machine that runs the tests.
pub(crate) fn settings() -> HttpSettings {
    let mut settings = HttpSettings::default();
    settings.proxy = Proxy::None;
    settings
}

pub(crate) fn json(text: &'static str) -> Vec<Bytes> {
    vec![Bytes::from_static(text.as_bytes())]
}

pub(crate) async fn post(client: &HttpClient, url: &str) -> Result<HttpResponse, Error> {
    soon(client.send(HttpRequest::post(url, json("{}")).unwrap(), &CancellationToken::new())).await
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("this takes too long")
}
