//! The certificate that servers under test show, and how clients check it.
//!
//! Made anew for each session, on the curve that certificates of the web have: ECDSA P-256.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

/// What the servers are called.
pub const NAME: &str = "dns.bench.example.org";

/// The files it is in.
const CERTIFICATE_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "key.pem";

/// How DNS over TLS is called in a handshake.
const ALPN_DOT: &[u8] = b"dot";

/// A certificate and its key, in files and at hand.
pub struct Certificate {
    /// The file with the certificate.
    pub file: PathBuf,
    /// The file with its key.
    pub key_file: PathBuf,
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Certificate {
    /// Makes one and writes it into `directory`.
    pub fn make(directory: &Path) -> Result<Self, String> {
        let failed = |error: rcgen::Error| format!("cannot make a certificate: {error}");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let names = vec![NAME.to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let (file, key_file) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
        for (path, text) in [(&file, certificate.pem()), (&key_file, key.serialize_pem())] {
            fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let der = certificate.der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(str::to_owned)?;
        Ok(Self { file, key_file, der, key })
    }

    /// Reads what [`Certificate::make`] wrote into `directory`.
    pub fn read(directory: &Path) -> Result<Self, String> {
        let (file, key_file) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
        let der =
            CertificateDer::from_pem_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let key = PrivateKeyDer::from_pem_file(&key_file)
            .map_err(|error| format!("{}: {error}", key_file.display()))?;
        Ok(Self { file, key_file, der, key })
    }

    /// Returns how a client asks that makes a full handshake each time.
    pub fn client(&self) -> Result<Secure, String> {
        let failed = |error: rustls::Error| format!("cannot speak TLS: {error}");
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).map_err(failed)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![ALPN_DOT.to_vec()];
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(NAME).map_err(|error| error.to_string())?;
        Ok(Secure { config: Arc::new(config), name })
    }

    /// Returns how a server shows it that speaks these protocols.
    pub fn server(&self, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, String> {
        let failed = |error: rustls::Error| format!("cannot speak TLS: {error}");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
        let chain = vec![self.der.clone()];
        let mut config =
            builder.with_no_client_auth().with_single_cert(chain, self.key.clone_key()).map_err(failed)?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Arc::new(config))
    }
}

/// How a client speaks TLS, and with whom.
#[derive(Clone, Debug)]
pub struct Secure {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Secure {
    /// Returns how to speak another protocol, and with whom.
    pub fn for_protocol(&self, protocol: &[u8]) -> (Arc<ClientConfig>, ServerName<'static>) {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.to_vec()];
        (Arc::new(config), self.name.clone())
    }

    /// Begins a session.
    pub fn begin(&self) -> io::Result<ClientConnection> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(io::Error::other)
    }
}
