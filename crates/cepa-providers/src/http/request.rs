//! A request: a checked address, headers, and a body in pieces.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use cepa_core::{Error, ErrorKind};
use http::{
    HeaderMap, HeaderValue, Method, Request, Uri,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, PROXY_AUTHORIZATION, TRANSFER_ENCODING, USER_AGENT},
    uri::{Authority, Scheme},
};
use hyper::body::{Body, Frame, SizeHint};

use super::HttpSettings;

/// One request. Cloning it copies no body.
#[derive(Clone)]
pub struct HttpRequest {
    method: Method,
    url: Uri,
    headers: HeaderMap,
    body: Vec<Bytes>,
}

impl fmt::Debug for HttpRequest {
    /// Without headers and body, and without the address's query, which may hold a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("host", &self.host())
            .field("path", &self.url.path())
            .finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// A POST of a JSON body, given in pieces that are sent one after another under their exact length.
    ///
    /// # Errors
    /// `invalid_config` if the address is not an absolute `http://` or `https://` one.
    pub fn post(url: &str, body: Vec<Bytes>) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { method: Method::POST, url: parse(url)?, headers, body })
    }

    /// A GET.
    ///
    /// # Errors
    /// As [`HttpRequest::post`].
    pub fn get(url: &str) -> Result<Self, Error> {
        Ok(Self { method: Method::GET, url: parse(url)?, headers: HeaderMap::new(), body: Vec::new() })
    }

    /// Whether an address can be used, as somebody wrote it: before a path is added, so that an error quotes what was given.
    pub(crate) fn check_url(url: &str) -> Result<(), Error> {
        parse(url).map(|_| ())
    }

    /// The headers, to add to.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// The host and, if given, the port: how messages name the server.
    pub fn host(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }

    /// What is the same in each request like this one, and its body.
    pub(super) fn prepare(self, settings: &HttpSettings) -> (Prepared, Vec<Bytes>) {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("cepa/", env!("CARGO_PKG_VERSION"))));
        for more in [settings.headers.clone(), self.headers] {
            // Whole names are replaced, not single values added.
            for name in more.keys() {
                headers.remove(name);
            }
            headers.extend(more);
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove(TRANSFER_ENCODING);
        headers.remove(CONTENT_LENGTH);
        if self.method != Method::GET {
            // Each request puts its own in this place.
            headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
        }
        let host = host(&self.url);
        // Without TLS there is no HTTP/2, which has another place for it.
        if let Some(host) = host.clone().filter(|_| self.url.scheme() == Some(&Scheme::HTTP)) {
            headers.entry(HOST).or_insert(host);
        }
        // Room for what each request adds: a full map would grow in each of them.
        headers.reserve(4);
        let name = self.url.authority().map_or("", Authority::as_str).into();
        let path = self.url.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
        (Prepared { method: self.method, url: self.url, path, host, name, headers }, self.body)
    }
}

/// The host, and the port where it is not the usual one.
fn host(url: &Uri) -> Option<HeaderValue> {
    let authority = url.authority()?;
    let usual = if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let is_usual = authority.port_u16().is_none_or(|port| port == usual);
    HeaderValue::from_str(if is_usual { authority.host() } else { authority.as_str() }).ok()
}

/// A request without its body: address and headers, made once for many requests.
#[derive(Clone)]
pub(crate) struct Prepared {
    method: Method,
    url: Uri,
    /// The address as the server itself is asked for it.
    path: Uri,
    host: Option<HeaderValue>,
    name: Arc<str>,
    headers: HeaderMap,
}

impl fmt::Debug for Prepared {
    /// As [`HttpRequest`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("method", &self.method).field("host", &self.name).finish_non_exhaustive()
    }
}

impl Prepared {
    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// How messages name the server.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What hyper sends, once it is addressed: these headers, and those that describe the body.
    pub(super) fn request(&self, body: Vec<Bytes>, proxy: Option<HeaderValue>) -> Request<Pieces> {
        let body = Pieces::new(body);
        let mut headers = self.headers.clone();
        if self.method != Method::GET {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.left));
        }
        if let Some(proxy) = proxy {
            headers.insert(PROXY_AUTHORIZATION, proxy);
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = headers;
        request
    }

    /// For a connection of HTTP/1.1.
    pub(super) fn address_http1(&self, request: &mut Request<Pieces>, is_proxied: bool) {
        *request.uri_mut() = if is_proxied { &self.url } else { &self.path }.clone();
        if let Some(host) = self.host.clone().filter(|_| self.url.scheme() == Some(&Scheme::HTTPS)) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
    }

    /// For a connection of HTTP/2.
    pub(super) fn address_http2(&self, request: &mut Request<Pieces>) {
        *request.uri_mut() = self.url.clone();
    }
}

fn parse(url: &str) -> Result<Uri, Error> {
    // The address is not repeated whole: its query may hold a key, and what stands before an `@` a password.
    let shown = if url.contains('@') { "" } else { url.split('?').next().unwrap_or_default() };
    let refuse =
        |why: &str| Error::new(ErrorKind::InvalidConfig, format!("the base URL {shown:?} cannot be used: {why}"));
    // Before the address is parsed: without its scheme it has no form at all, and the parser says only that.
    let scheme = url.trim().split_once("://").map_or("", |(scheme, _)| scheme);
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(refuse("it must begin with http:// or https://"));
    }
    let uri: Uri = url.trim().parse().map_err(|error| refuse(&format!("{error}")))?;
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err(refuse("it holds a user or password: give the key as the API key"))
        }
        Some(authority) if is_host_and_port(authority) => Ok(uri),
        _ => Err(refuse("it has no host, or a port that is not a number")),
    }
}

/// `host` or `host:port`, and no more. (`http` lets any text pass as a port.)
pub(super) fn is_host_and_port(authority: &Authority) -> bool {
    !authority.host().is_empty() && (authority.port_u16().is_some() || authority.as_str() == authority.host())
}

/// A body whose pieces are known beforehand, and so its length.
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl Pieces {
    fn new(mut pieces: Vec<Bytes>) -> Self {
        pieces.retain(|piece| !piece.is_empty());
        let pieces = VecDeque::from(pieces);
        let left = pieces.iter().fold(0_u64, |sum, piece| sum.saturating_add(length(piece)));
        Self { pieces, left }
    }
}

fn length(piece: &Bytes) -> u64 {
    u64::try_from(piece.len()).unwrap_or(u64::MAX)
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let piece = self.pieces.pop_front();
        self.left = self.left.saturating_sub(piece.as_ref().map_or(0, length));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
