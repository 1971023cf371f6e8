//! The HTTP client of all jobs: one configuration of TLS, time limits, and who resolves names.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::DefaultConnector;

/// What a request of ours says about itself.
const USER_AGENT: &str = concat!("gannet/", env!("CARGO_PKG_VERSION"));
/// Redirections that are followed by those who may be led elsewhere.
const REDIRECTS_MAX: u32 = 5;

/// Whom to believe about who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those whom everybody trusts (Mozilla's list, built in).
    Usual,
    /// Those in a file of certificates.
    File(std::path::PathBuf),
    /// Anybody.
    Everybody,
}

/// Makes a client that has names resolved by this.
pub(crate) fn agent(patience: Duration, trust: &Trust, resolver: impl Resolver) -> io::Result<Agent> {
    agent_following(REDIRECTS_MAX, patience, trust, resolver)
}

/// Makes a client that follows so many redirections.
pub(crate) fn agent_following(
    redirects_max: u32,
    patience: Duration,
    trust: &Trust,
    resolver: impl Resolver,
) -> io::Result<Agent> {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let tls = match trust {
        Trust::Usual => tls.root_certs(RootCerts::WebPki),
        Trust::File(file) => tls.root_certs(RootCerts::Specific(Arc::new(certificates(file)?))),
        Trust::Everybody => tls.disable_verification(true),
    };
    let config = Agent::config_builder()
        .tls_config(tls.build())
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(redirects_max)
        .user_agent(USER_AGENT)
        // What the environment says about proxies is meant for people's programs.
        .proxy(None)
        .build();
    Ok(Agent::with_parts(config, DefaultConnector::default(), resolver))
}

fn certificates(file: &Path) -> io::Result<Vec<Certificate<'static>>> {
    let text = std::fs::read(file)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {}: {error}", file.display())))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(io::Error::other(format!("{}: {error}", file.display()))),
        }
    }
    if found.is_empty() {
        return Err(io::Error::other(format!("{} holds no certificate", file.display())));
    }
    Ok(found)
}
