//! Files with certificates and keys to what speaks TLS.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diagnostic::{At, FileId, Problem, io_text};
use plan::Secret;
use plan::certificates::CertificatePlan;
use plan::tls::{
    CertificateDer, CertificateFacts, Identity, IdentityError, Pem, PrivateKeyDer, TICKET_KEY_OCTETS,
    TlsPlan, check_authority,
};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use wire::NameBuf;

use crate::zones::remote;
use environment::Environment;
use settings::{Certificate, OrderedCertificate, Settings, TlsVersionWord, TrustedRoots};

const DAY: i64 = 86_400;
/// For how long a certificate holds that the server signs itself: nobody trusts it anyway.
const SELF_SIGNED_DAYS: i64 = 30;

/// A certificate that the server shows to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCertificate {
    /// Its file.
    pub file: PathBuf,
    /// The names that it is for.
    pub names: Vec<String>,
    /// Until when it is valid, in seconds since 1970.
    pub ends: i64,
}

/// Returns the certificates that are ordered, with their files below the directory for state.
pub(super) fn ordered(
    settings: &Settings,
    state_directory: &Path,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<CertificatePlan>> {
    let mut placed = |certificate: &OrderedCertificate| {
        let update = certificate.update.iter();
        let update = update.filter_map(|at| remote(at, &settings.keys, environment, problems)).collect();
        let file = state_directory.join(&certificate.plan.file);
        CertificatePlan { file, update, ..(*certificate.plan).clone() }
    };
    settings.certificates.iter().map(|certificate| Arc::new(placed(certificate))).collect()
}

/// Compiles what the configuration says about TLS; `None` if there is no certificate, or a mistake.
/// Notes the server's name in its first certificate.
pub(super) fn compile(
    (settings, ordered): (&Settings, &[Arc<CertificatePlan>]),
    (server_name, shown): (&mut Option<NameBuf>, &mut Vec<OwnCertificate>),
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Arc<TlsPlan>> {
    let tls = &settings.tls;
    *server_name = None;
    shown.clear();
    if tls.certificates.is_empty() && ordered.is_empty() {
        return None;
    }
    let files = Files { environment };
    let mut identities = Vec::new();
    for certificate in &tls.certificates {
        match files.identity(certificate, problems) {
            Ok((identity, name, own)) => {
                if identities.is_empty() {
                    *server_name = name;
                }
                shown.push(own);
                identities.push(identity);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    let is_complete = identities.len() == tls.certificates.len();
    for plan in ordered {
        match files.ordered(plan) {
            Ok((identity, name, own)) => {
                if identities.is_empty() {
                    *server_name = name;
                }
                shown.push(own);
                identities.push(identity);
            }
            Err(why) => problems.push(Problem::of_file(FileId(0), why)),
        }
    }
    let mut client_roots = Vec::new();
    for file in &tls.client_ca {
        match files.chain(file) {
            Ok(roots) => {
                let refused = roots.iter().find_map(|root| check_authority(root).err());
                problems.extend(refused.map(|why| {
                    wrong(file, &format!("the certificate of an authority cannot be used: {why}"))
                }));
                client_roots.extend(roots);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    if !is_complete || identities.is_empty() {
        return None;
    }
    let mut ticket_keys = Vec::new();
    for file in &tls.ticket_keys {
        match files.ticket_key(file, problems) {
            Ok(key) => ticket_keys.push(key),
            Err(problem) => problems.push(*problem),
        }
    }
    let speaks_tls12 = tls.min_version == TlsVersionWord::V12;
    let suites = tls.ciphers.clone();
    Some(Arc::new(TlsPlan { identities, speaks_tls12, client_roots, suites, ticket_keys }))
}

/// Returns who we are to a server that asks for a certificate; `None` if there is a mistake in it.
pub(super) fn client_identity(
    certificate: &Certificate,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Arc<Identity>> {
    let made = Files { environment }.identity(certificate, problems);
    made.map(|(identity, ..)| Arc::new(identity)).map_err(|problem| problems.push(*problem)).ok()
}

/// Returns the files that it is made of, and those of what is shown to other servers.
pub(super) fn files(settings: &Settings) -> impl Iterator<Item = &PathBuf> {
    let dnstap = settings.dnstap.as_ref();
    let certificates = settings.tls.certificates.iter().chain(dnstap.and_then(|it| it.certificate.as_ref()));
    let dnstap_roots = dnstap.and_then(|it| match &it.roots.value {
        TrustedRoots::File(file) => Some(file),
        TrustedRoots::Mozilla => None,
    });
    let pairs = certificates.flat_map(|certificate| [&certificate.chain.value, &certificate.key.value]);
    let more = settings.tls.client_ca.iter().chain(&settings.tls.ticket_keys);
    pairs.chain(more.map(|file| &file.value)).chain(dnstap_roots)
}

struct Files<'a> {
    environment: &'a dyn Environment,
}

impl Files<'_> {
    fn pem(&self, file: &At<PathBuf>) -> Result<Pem, Box<Problem>> {
        let path = &file.value;
        let octets = self.environment.read(path).map_err(|error| {
            let problem = wrong(file, &format!("cannot read it: {}", io_text(&error)));
            match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    problem.hint("the user that the server runs as (\"server.user\") must be able to read it")
                }
                _ => problem,
            }
        })?;
        Pem::parse(&octets)
            .map_err(|line| wrong(file, &format!("what begins after line {line} is not PEM")).into())
    }

    /// Reads a key of session tickets.
    fn ticket_key(&self, file: &At<PathBuf>, problems: &mut Vec<Problem>) -> Result<Secret, Box<Problem>> {
        let octets = self.environment.read(&file.value);
        let octets = octets.map_err(|error| wrong(file, &format!("cannot read it: {}", io_text(&error))))?;
        if octets.len() != TICKET_KEY_OCTETS {
            return Err(wrong(file, &format!("it has {} octets", octets.len()))
                .expected(format!("{TICKET_KEY_OCTETS} octets"))
                .hint("\"openssl rand -out FILE 80\" makes such a file")
                .into());
        }
        if self.environment.is_open_to_all(&file.value) {
            let message = format!(
                "every user of this machine can read the keys of sessions in \"{}\"",
                shown(&file.value)
            );
            problems.push(
                Problem::warning(file.span, message).hint("\"chmod o-rwx\" keeps it to those who need it"),
            );
        }
        Ok(Secret::new(octets))
    }

    fn chain(&self, file: &At<PathBuf>) -> Result<Vec<CertificateDer<'static>>, Box<Problem>> {
        let pem = self.pem(file)?;
        let content = pem.content();
        let chain = pem.certificates();
        if chain.is_empty() {
            return Err(wrong(file, &content).expected("a file with a certificate in PEM form").into());
        }
        Ok(chain)
    }

    fn key(&self, file: &At<PathBuf>) -> Result<PrivateKeyDer<'static>, Box<Problem>> {
        let pem = self.pem(file)?;
        let (content, has_locked_key) = (pem.content(), pem.has_locked_key());
        pem.key().ok_or_else(|| {
            if has_locked_key {
                wrong(file, "the private key is locked with a password")
                    .hint("\"openssl pkey -in FILE -out FILE\" writes it without one")
            } else {
                wrong(file, &content).expected("a file with a private key in PEM form")
            }
            .into()
        })
    }

    /// Returns who the server is by a certificate, the first name in it that is one server's, and
    /// what is shown of it.
    fn identity(
        &self,
        certificate: &Certificate,
        problems: &mut Vec<Problem>,
    ) -> Result<(Identity, Option<NameBuf>, OwnCertificate), Box<Problem>> {
        let Certificate { chain: chain_file, key: key_file } = certificate;
        let chain = self.chain(chain_file)?;
        let facts = chain.first().and_then(|first| CertificateFacts::parse(first));
        let facts = facts.ok_or_else(|| wrong(chain_file, "it does not begin with an X.509 certificate"))?;
        let key = self.key(key_file)?;
        if self.environment.is_open_to_all(&key_file.value) {
            problems.push(
                Problem::warning(
                    key_file.span,
                    format!(
                        "every user of this machine can read the private key in \"{}\"",
                        shown(&key_file.value)
                    ),
                )
                .hint("\"chmod o-rwx\" keeps it to those who need it"),
            );
        }
        self.check_time(chain_file, &facts, problems);
        let is_name = |name: &&String| name.parse::<IpAddr>().is_err() && !name.starts_with('*');
        let name = facts.names.iter().find(is_name).and_then(|name| name.parse().ok());
        let own =
            OwnCertificate { file: chain_file.value.clone(), names: facts.names.clone(), ends: facts.ends };
        let identity = Identity::new(chain, &key, facts.names).map_err(|error| match error {
            IdentityError::Mismatch => {
                let chain = shown(&chain_file.value);
                wrong(key_file, &format!("the key is not that of the certificate in \"{chain}\""))
            }
            IdentityError::Key(why) => wrong(key_file, &format!("this kind of key cannot be used: {why}"))
                .expected("an ECDSA (P-256, P-384, P-521), Ed25519 or RSA (2048 bits or more) key"),
            IdentityError::Certificate(why) => {
                wrong(chain_file, &format!("the certificate cannot be used: {why}"))
            }
        })?;
        Ok((identity, name, own))
    }

    /// Returns who the server is by a certificate that it orders: by the one that it has, or by one
    /// that it signs itself as long as it has none. That one is never written down: whoever sees it
    /// learns nothing by seeing it again.
    fn ordered(&self, plan: &CertificatePlan) -> Result<(Identity, Option<NameBuf>, OwnCertificate), String> {
        let named = |names: &[String]| {
            let is_name = |name: &&String| name.parse::<IpAddr>().is_err() && !name.starts_with('*');
            names.iter().find(is_name).and_then(|name| name.parse().ok())
        };
        let octets = self.environment.read(&plan.file).ok();
        // Whatever is in the way of it, the server runs: the certificate is ordered again.
        if let Some((identity, facts)) = octets.and_then(|octets| plan::certificates::identity(&octets).ok())
        {
            let (names, ends) = (facts.names, facts.ends);
            let name = named(&names);
            return Ok((identity, name, OwnCertificate { file: plan.file.clone(), names, ends }));
        }
        let names: Vec<String> = plan.identifiers.iter().map(ToString::to_string).collect();
        let now = self.environment.unix_seconds();
        let made = self_signed(&names, now);
        let made = made.map_err(|error| error.to_string()).and_then(|(chain, key)| {
            Identity::new(chain, &key, names.clone()).map_err(|error| error.to_string())
        });
        let made =
            made.map_err(|why| format!("no certificate for the time being for \"{}\": {why}", plan.name))?;
        let (name, ends) = (named(&names), now + SELF_SIGNED_DAYS * DAY);
        Ok((made, name, OwnCertificate { file: plan.file.clone(), names, ends }))
    }

    /// Warns about a certificate that clients will refuse now. The server runs all the same: its
    /// other listeners need none.
    fn check_time(&self, file: &At<PathBuf>, facts: &CertificateFacts, problems: &mut Vec<Problem>) {
        let now = self.environment.unix_seconds();
        let days = |seconds: i64| match seconds / DAY {
            0 => "today".to_owned(),
            1 => "a day ago".to_owned(),
            days => format!("{days} days ago"),
        };
        let warning = if now >= facts.ends {
            Some(format!("the certificate expired {}; clients will refuse it", days(now - facts.ends)))
        } else if now < facts.begins {
            Some(
                "the certificate is not valid yet, by this machine's clock; clients may refuse it".to_owned(),
            )
        } else {
            None
        };
        if let Some(message) = warning {
            let message = format!("\"{}\": {message}", shown(&file.value));
            problems.push(Problem::warning(file.span, message));
        }
    }
}

/// Makes a certificate for the time until there is a better one.
fn self_signed(
    names: &[String],
    now: i64,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    let at = |seconds: i64| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.max(0).unsigned_abs());
    (params.not_before, params.not_after) = (at(now - DAY), at(now + SELF_SIGNED_DAYS * DAY));
    let certificate = params.self_signed(&key)?;
    Ok((vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into())))
}

fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}

fn wrong(file: &At<PathBuf>, what: &str) -> Problem {
    Problem::error(file.span, format!("\"{}\": {what}", shown(&file.value)))
}
