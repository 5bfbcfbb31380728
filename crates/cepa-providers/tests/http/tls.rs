//! TLS against servers with certificates made for the test: trust, names, and both HTTP versions.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use cepa_core::ErrorKind;
use cepa_providers::http::{HttpClient, HttpSettings};
use hyper::{
    Request, Response,
    body::{Body, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc},
};
use tokio_rustls::TlsAcceptor;

use crate::server::{post, settings, soon};

/// A body that is whatever is sent into a channel.
struct Fed(mpsc::Receiver<Bytes>);

impl Body for Fed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}

/// A server with TLS whose answers drip forever, or that says which version was spoken.
struct Secure {
    port: u16,
    authority: String,
    connections: Arc<AtomicUsize>,
    /// Hears of each dripping answer whose client has gone.
    gone: mpsc::Receiver<()>,
}

impl Secure {
    async fn start(names: &[&str], alpn: &[&[u8]]) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        let mut config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![certificate.der().clone()],
                    PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
                )
                .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (leave, gone) = mpsc::channel(8);
        let counter = connections.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let (acceptor, leave) = (acceptor.clone(), leave.clone());
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(tcp).await else { return };
                    let h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
                    let last = Arc::new(Notify::new());
                    let is_last = last.clone();
                    let service = service_fn(move |request: Request<Incoming>| {
                        if request.uri().path() == "/last" {
                            is_last.notify_one();
                        }
                        answer(request, leave.clone())
                    });
                    let io = TokioIo::new(tls);
                    let _ = if h2 {
                        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let mut serving = pin!(builder.serve_connection(io, service));
                        tokio::select! {
                            served = &mut serving => served,
                            () = last.notified() => {
                                serving.as_mut().graceful_shutdown();
                                serving.await
                            }
                        }
                    } else {
                        hyper::server::conn::http1::Builder::new().serve_connection(io, service).await
                    };
                });
            }
        });
        Self { port, authority: authority.pem(), connections, gone }
    }

    fn trusting(&self) -> HttpSettings {
        settings().with_root_certificates(self.authority.as_bytes()).unwrap()
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.port)
    }
}

async fn answer(
    request: Request<Incoming>,
    leave: mpsc::Sender<()>,
) -> Result<Response<Fed>, std::convert::Infallible> {
    let (send, receive) = mpsc::channel(1);
    let version = Bytes::from(format!("{:?}", request.version()));
    tokio::spawn(async move {
        if request.uri().path() == "/drip" {
            while send.send(Bytes::from_static(b"drip")).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let _ = leave.send(()).await;
        } else {
            let _ = send.send(version).await;
        }
    });
    Ok(Response::new(Fed(receive)))
}

#[tokio::test]
async fn the_newest_version_that_the_server_offers_is_spoken() {
    for (alpn, version) in
        [(&[&b"h2"[..], b"http/1.1"][..], "HTTP/2.0"), (&[b"http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")]
    {
        let server = Secure::start(&["localhost", "127.0.0.1"], alpn).await;
        let client = HttpClient::new(server.trusting());
        for host in ["localhost", "127.0.0.1"] {
            for _ in 0..2 {
                let response = post(&client, &server.url(host, "/")).await.unwrap();
                assert_eq!(soon(response.collect()).await.unwrap(), version);
            }
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), 2, "one for each host, each used twice");
    }
}

#[tokio::test]
async fn one_http2_connection_carries_many_requests_and_dropping_one_harms_no_other() {
    let mut server = Secure::start(&["localhost"], &[b"h2"]).await;
    let client = HttpClient::new(server.trusting());
    let mut kept = post(&client, &server.url("localhost", "/drip")).await.unwrap();
    let mut dropped = post(&client, &server.url("localhost", "/drip")).await.unwrap();
    assert_eq!(soon(dropped.next_chunk()).await.unwrap().unwrap(), "drip");
    drop(dropped);
    soon(server.gone.recv()).await.unwrap();
    for _ in 0..5 {
        assert_eq!(soon(kept.next_chunk()).await.unwrap().unwrap(), "drip");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

// A server that asks to go (GOAWAY) gets no further request, and none fails for it.
#[tokio::test]
async fn an_http2_connection_that_the_server_ends_is_replaced() {
    let server = Secure::start(&["localhost"], &[b"h2"]).await;
    let client = HttpClient::new(server.trusting());
    for pause in [0, 0, 0, 1, 1, 20] {
        for path in ["/", "/last"] {
            let response = post(&client, &server.url("localhost", path)).await.unwrap();
            assert_eq!(soon(response.collect()).await.unwrap(), "HTTP/2.0");
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
    assert!(server.connections.load(Ordering::SeqCst) <= 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn many_http2_requests_at_once_of_which_some_are_dropped() {
    let server = Secure::start(&["localhost"], &[b"h2"]).await;
    let client = HttpClient::new(server.trusting());
    for _ in 0..3 {
        let calls: Vec<_> = (0..100)
            .map(|number: usize| {
                let (client, url) =
                    (client.clone(), server.url("localhost", if number.is_multiple_of(3) { "/drip" } else { "/" }));
                tokio::spawn(async move {
                    let mut response = post(&client, &url).await?;
                    if number.is_multiple_of(3) {
                        return response.next_chunk().await.map(Option::unwrap);
                    }
                    soon(response.collect()).await
                })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap(), if number.is_multiple_of(3) { "drip" } else { "HTTP/2.0" });
        }
    }
    // All but the first burst share one.
    let before = server.connections.load(Ordering::SeqCst);
    post(&client, &server.url("localhost", "/")).await.unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_is_refused_with_the_reason() {
    let server = Secure::start(&["model.example"], &[]).await;
    let error = post(&HttpClient::new(settings()), &server.url("localhost", "/")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, false));
    // On a machine without any roots the reason is another one.
    assert!(error.message().contains("SSL_CERT_FILE"), "{error}");

    let error = post(&HttpClient::new(server.trusting()), &server.url("localhost", "/")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, false));
    assert!(error.message().contains("another name: check the base URL"), "{error}");
}

#[test]
fn roots_that_are_no_certificates_are_refused() {
    for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        let error = settings().with_root_certificates(pem.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains("root certificates are unusable"), "{error}");
    }
}
