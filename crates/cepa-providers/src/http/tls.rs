//! Which servers are trusted: the system's roots, read once, when the first https host is asked for (P4).

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use tokio::sync::OnceCell;

use super::connect::ConnectError;

/// The configuration of all clients that trust the system's roots and no other. Reading them takes tens of milliseconds.
static SYSTEM: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// The TLS side of one client.
#[derive(Debug, Default)]
pub(super) struct Tls {
    with_own_roots: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    /// The configuration, made at the first call, off the runtime's threads. A failure is not kept: roots may be installed.
    pub(super) async fn config(
        &self,
        own_roots: &[CertificateDer<'static>],
    ) -> Result<Arc<ClientConfig>, ConnectError> {
        let cell = if own_roots.is_empty() { &SYSTEM } else { &self.with_own_roots };
        let load = || async {
            let own_roots = own_roots.to_vec();
            let loaded = tokio::task::spawn_blocking(move || load(own_roots)).await;
            loaded.map_err(|error| ConnectError::Roots(error.to_string()))?
        };
        cell.get_or_try_init(load).await.cloned()
    }
}

fn load(own_roots: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, ConnectError> {
    let mut roots = RootCertStore::empty();
    for root in own_roots {
        roots
            .add(root)
            .map_err(|error| ConnectError::Roots(format!("a given root certificate is unusable: {error}")))?;
    }
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if roots.is_empty() {
        let errors: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
        let why = if errors.is_empty() { "none are installed".to_owned() } else { errors.join("; ") };
        return Err(ConnectError::Roots(why));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Roots(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
