//! A local HTTP server that answers with scripted replies, in the order of the requests, and tells what it saw.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cepa_core::RawJson;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::wire::Eof;

/// One scripted reply.
#[derive(Clone, Deserialize)]
pub(crate) struct HttpReply {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<RawJson>,
    body_text: Option<String>,
    sse: Option<String>,
    eof: Option<Eof>,
    delay_ms: Option<u64>,
    tail: Option<Tail>,
    close: Option<String>,
}

/// What is sent again and again behind a body.
#[derive(Clone, Deserialize)]
struct Tail {
    every_ms: u64,
    sse: String,
}

impl HttpReply {
    /// An answer of this status, headers and body.
    pub(crate) fn new(status: u16, headers: BTreeMap<String, String>, body: String) -> Self {
        let (status, body_text) = (Some(status), Some(body));
        Self { status, headers, body: None, body_text, sse: None, eof: None, delay_ms: None, tail: None, close: None }
    }

    /// The text of the body.
    pub(crate) fn text(&self) -> &str {
        let text = self.sse.as_deref().or(self.body_text.as_deref());
        text.or(self.body.as_ref().map(RawJson::as_str)).unwrap_or_default()
    }

    /// Whether the body is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.sse.is_some()
    }
}

/// A running server. It ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    task: tokio::task::JoinHandle<()>,
}

/// What the server saw and did.
struct Seen {
    replies: Vec<HttpReply>,
    requests: Mutex<Vec<String>>,
    /// When the last byte of each reply was sent, in order of sending: (its number, when).
    sent: watch::Sender<Vec<usize>>,
    closed: Mutex<Option<Instant>>,
}

impl Server {
    /// Starts a server on a free port of this machine.
    pub(crate) async fn start(replies: Vec<HttpReply>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen {
            replies,
            requests: Mutex::default(),
            sent: watch::Sender::new(Vec::new()),
            closed: Mutex::default(),
        });
        let inside = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = inside.clone();
                // A connection that breaks concerns nobody else.
                tokio::spawn(async move { serve(stream, &seen).await });
            }
        });
        Ok(Self { address, seen, task })
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The body of each request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the last byte of a reply was sent.
    pub(crate) fn when_sent(&self, reply: usize) -> impl Future<Output = ()> + Send + 'static {
        let mut sent = self.seen.sent.subscribe();
        async move {
            // A server that is gone sends nothing any more.
            if sent.wait_for(|sent| sent.contains(&reply)).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// When a client last closed a connection on which a reply was still being sent.
    pub(crate) fn closed(&self) -> Option<Instant> {
        *self.seen.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, seen: &Seen) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(body) = read_request(&mut stream, &mut buffer).await? {
        let number = {
            let mut requests = seen.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(body);
            requests.len() - 1
        };
        let Some(reply) = seen.replies.get(number) else {
            let text = r#"{"error":{"message":"the server has no more replies","type":"server_error"}}"#;
            let head = format!(
                "HTTP/1.1 500 No More\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            stream.write_all(format!("{head}{text}").as_bytes()).await?;
            continue;
        };
        if let Some(delay) = reply.delay_ms {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        if reply.close.is_some() {
            return Ok(());
        }
        send(&mut stream, seen, number, reply).await?;
    }
    Ok(())
}

async fn send(stream: &mut TcpStream, seen: &Seen, number: usize, reply: &HttpReply) -> io::Result<()> {
    let status = reply.status.unwrap_or(200);
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    let framing = ["content-length", "transfer-encoding", "connection"];
    for (name, value) in reply.headers.iter().filter(|(name, _)| !framing.contains(&name.to_lowercase().as_str())) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let text = reply.text();
    if !reply.is_stream() {
        head.push_str(&format!("content-length: {}\r\n\r\n{text}", text.len()));
        stream.write_all(head.as_bytes()).await?;
        told(seen, number);
        return Ok(());
    }
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    stream.write_all(format!("{head}{}", chunk(text)).as_bytes()).await?;
    told(seen, number);
    if reply.eof == Some(Eof::Clean) && reply.tail.is_none() {
        return stream.write_all(b"0\r\n\r\n").await;
    }
    let end = stay_open(stream, reply.tail.as_ref()).await;
    *seen.closed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    end
}

fn told(seen: &Seen, number: usize) {
    seen.sent.send_modify(|sent| sent.push(number));
}

fn chunk(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{:x}\r\n{text}\r\n", text.len()) }
}

/// Sends the tail until the client closes; then this is an error, so that the connection ends here too.
async fn stay_open(stream: &mut TcpStream, tail: Option<&Tail>) -> io::Result<()> {
    let (mut read, mut write) = stream.split();
    let sending = async {
        match tail {
            None => std::future::pending().await,
            Some(Tail { every_ms, sse }) => loop {
                tokio::time::sleep(Duration::from_millis((*every_ms).max(1))).await;
                if let Err(error) = write.write_all(chunk(sse).as_bytes()).await {
                    return error;
                }
            },
        }
    };
    let mut byte = [0];
    let closed = async {
        match read.read(&mut byte).await {
            Ok(0) => io::Error::from(io::ErrorKind::ConnectionAborted),
            Ok(_) => io::Error::from(io::ErrorKind::InvalidData),
            Err(error) => error,
        }
    };
    tokio::select! {
        error = sending => Err(error),
        error = closed => Err(error),
    }
}

/// The body of the next request; `None` when the client closes.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<String>> {
    let end_of_head = loop {
        if let Some(end) = find(buffer, b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(buffer.get(..end_of_head).unwrap_or_default()).to_lowercase();
    buffer.drain(..end_of_head);
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
    let mut body = Vec::new();
    if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        loop {
            let line = take_line(stream, buffer).await?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            body.extend(take(stream, buffer, size).await?);
            take_line(stream, buffer).await?;
            if size == 0 {
                break;
            }
        }
    } else {
        let length = header("content-length").map_or(Ok(0), str::parse).map_err(io::Error::other)?;
        body = take(stream, buffer, length).await?;
    }
    Ok(Some(String::from_utf8_lossy(&body).into_owned()))
}

async fn take(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.drain(..length).collect())
}

async fn take_line(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<String> {
    loop {
        if let Some(end) = find(buffer, b"\r\n") {
            let line = String::from_utf8_lossy(buffer.get(..end).unwrap_or_default()).into_owned();
            buffer.drain(..end + 2);
            return Ok(line);
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn find(buffer: &[u8], what: &[u8]) -> Option<usize> {
    buffer.windows(what.len()).position(|window| window == what)
}
