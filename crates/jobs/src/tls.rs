//! Connections inside of TLS, for what is not HTTP.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use identity::tls::anybody;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::http::Trust;

/// A connection inside of TLS.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Prepares to speak TLS to servers that are trusted like this.
pub(crate) fn client(trust: &Trust) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = match trust {
        Trust::Everybody => builder.dangerous().with_custom_certificate_verifier(anybody(provider)),
        Trust::Usual => {
            builder.with_root_certificates(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
        }
        Trust::File(file) => {
            let wrong = |error: &dyn std::fmt::Display| {
                io::Error::other(format!("cannot read {}: {error}", file.display()))
            };
            let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            let found: Vec<CertificateDer<'_>> =
                found.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
            let roots = roots_of(&found).map_err(|error| wrong(&error))?;
            if roots.is_empty() {
                return Err(io::Error::other(format!("{} holds no certificate", file.display())));
            }
            builder.with_root_certificates(roots)
        }
    };
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Prepares to speak TLS to servers that one of these authorities vouches for.
pub(crate) fn client_trusting(authorities: &[CertificateDer<'static>]) -> io::Result<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(Arc::new(builder.with_root_certificates(roots_of(authorities)?).with_no_client_auth()))
}

fn roots_of(authorities: &[CertificateDer<'_>]) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        roots.add(certificate.clone().into_owned()).map_err(io::Error::other)?;
    }
    Ok(roots)
}

/// Speaks TLS on a connection; the first octets that are sent or awaited shake hands.
pub(crate) fn wrap(config: &Arc<ClientConfig>, name: &str, stream: TcpStream) -> io::Result<TlsStream> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}
