//! Encrypted connections: [`Tls`].

use std::fmt;
use std::sync::Arc;

use estimand_tensor::{Error, Result};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// The certificate of a server, and whom it lets in.
///
/// ```no_run
/// use estimand_serve::{Server, Tls};
///
/// let read = |path: &str| std::fs::read(path).map_err(|e| estimand_tensor::Error::io(path, "read", &e));
/// let tls = Tls::from_pem(&read("server.pem")?, &read("server_key.pem")?)?;
/// Server::new().model("census", "exports/census").tls(tls).run()?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Tls {
    certificates: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    client_authority: Option<Arc<RootCertStore>>,
}

impl fmt::Debug for Tls {
    /// The key is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.certificates.len();
        f.debug_struct("Tls")
            .field("n_certificates", &n)
            .field("asks_clients", &self.client_authority.is_some())
            .finish()
    }
}

fn wrong(what: &str, error: impl fmt::Display) -> Error {
    Error::config(format!("{what} cannot be used: {error}"))
        .help("expected PEM: -----BEGIN ..----- and lines of base 64")
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<std::result::Result<Vec<_>, _>>();
    let all = all.map_err(|error| wrong(what, error))?;
    if all.is_empty() { Err(wrong(what, "it holds no certificate")) } else { Ok(all) }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl Tls {
    /// A certificate (with those between it and its authority) and its private key, as PEM.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Tls> {
        let tls = Tls {
            certificates: certificates("the certificate of the server", certificate)?,
            key: Arc::new(PrivateKeyDer::from_pem_slice(key).map_err(|e| wrong("the key of the server", e))?),
            client_authority: None,
        };
        // A key of another certificate is found now, not at the first connection.
        tls.config()?;
        Ok(tls)
    }

    /// Lets only clients in that have a certificate of this authority, as PEM. By default no client
    /// needs one.
    pub fn client_authority(mut self, authority: &[u8]) -> Result<Tls> {
        const WHAT: &str = "the authority of clients";
        let mut roots = RootCertStore::empty();
        for certificate in certificates(WHAT, authority)? {
            roots.add(certificate).map_err(|error| wrong(WHAT, error))?;
        }
        self.client_authority = Some(Arc::new(roots));
        Ok(self)
    }

    /// The settings of connections: HTTP/2 for clients that can, or HTTP/1.
    pub(crate) fn config(&self) -> Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| wrong("TLS", error))?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider()).build();
                builder.with_client_cert_verifier(verifier.map_err(|e| wrong("the authority of clients", e))?)
            }
        };
        let mut config = builder
            .with_single_cert(self.certificates.clone(), self.key.clone_key())
            .map_err(|error| wrong("the certificate or its key", error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
