//! Files with keys and certificates to what speaks DNSCrypt.

use std::path::PathBuf;
use std::sync::Arc;

use ::dnscrypt::{CERTIFICATE_OCTETS, Certificate, KEY_OCTETS, ResolverKey, public_key};
use diagnostic::{At, Problem, io_text};
use environment::Environment;
use plan::dnscrypt::{ProviderPlan, ResolverKeyPlan};
use settings::Settings;

/// Compiles what the configuration says about DNSCrypt; `None` if it says nothing, or there is a
/// mistake.
pub(super) fn compile(
    settings: &Settings,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Arc<ProviderPlan>> {
    let dnscrypt = &settings.dnscrypt;
    let provider = dnscrypt.provider.as_ref()?;
    let before = problems.len();
    let mut secrets = Vec::new();
    for file in &dnscrypt.keys {
        let octets = read::<KEY_OCTETS>(file, environment);
        let read = octets.and_then(|secret| {
            let public = public_key(&secret).map_err(|why| wrong(file, &why.to_string()))?;
            Ok((public, secret))
        });
        match read {
            Ok(pair) => secrets.push((file, pair, false)),
            Err(problem) => problems.push(*problem),
        }
        if environment.is_open_to_all(&file.value) {
            let path = file.value.display();
            let message = format!("every user of this machine can read the private key in \"{path}\"");
            problems.push(
                Problem::warning(file.span, message).hint("\"chmod o-rwx\" keeps it to those who need it"),
            );
        }
    }
    let given = dnscrypt.certificates.iter().map(|file| (file, true));
    let mut keys: Vec<ResolverKeyPlan> = Vec::new();
    for (file, is_published) in given.chain(dnscrypt.rotated.iter().map(|file| (file, false))) {
        match resolver_key(file, &mut secrets, environment, problems) {
            Ok((octets, key)) => {
                let magic = key.certificate().magic;
                if keys.iter().any(|other| other.key.certificate().magic == magic) {
                    let problem = wrong(file, "another certificate has the same client magic");
                    problems.push(problem.expected("one that tells its queries apart"));
                }
                keys.push(ResolverKeyPlan { key, published: is_published.then_some(octets) });
            }
            Err(problem) => problems.push(*problem),
        }
    }
    for (file, _, is_used) in &secrets {
        if !is_used {
            let message = format!("\"{}\": no certificate is for this key", file.value.display());
            problems.push(Problem::warning(file.span, message));
        }
    }
    let has_mistake = problems.get(before..).unwrap_or(&[]).iter().any(Problem::is_error);
    (!has_mistake).then(|| {
        Arc::new(ProviderPlan {
            name: provider.value,
            keys,
            agreed_octets: usize::try_from(dnscrypt.agreed_octets).unwrap_or(usize::MAX),
            replay_octets: usize::try_from(dnscrypt.replay_octets).unwrap_or(usize::MAX),
        })
    })
}

/// A secret key: its file, its public half and itself, and whether there is a certificate for it.
type SecretKey<'s> = (&'s At<PathBuf>, ([u8; KEY_OCTETS], [u8; KEY_OCTETS]), bool);

/// Reads a certificate and finds its key.
fn resolver_key(
    file: &At<PathBuf>,
    secrets: &mut [SecretKey<'_>],
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Result<([u8; CERTIFICATE_OCTETS], ResolverKey), Box<Problem>> {
    let octets = read::<CERTIFICATE_OCTETS>(file, environment)?;
    let certificate = Certificate::parse_own(&octets).map_err(|why| wrong(file, &why.to_string()))?;
    let Some((_, (_, secret), is_used)) =
        secrets.iter_mut().find(|(_, (public, _), _)| *public == certificate.key)
    else {
        let problem = wrong(file, "its key is not there");
        return Err(problem.expected("a file with the key under \"dnscrypt: keys:\"").into());
    };
    *is_used = true;
    let now = environment.unix_seconds();
    if now > i64::from(certificate.valid.1) {
        problems.push(
            Problem::warning(
                file.span,
                format!(
                    "\"{}\": the certificate has expired; nobody is served with it",
                    file.value.display()
                ),
            )
            .hint("\"gannet dnscrypt certificate\" makes a new one"),
        );
    }
    let key = ResolverKey::new(certificate, secret).map_err(|why| wrong(file, &why.to_string()))?;
    Ok((octets, key))
}

/// Returns the files that it is made of.
pub(super) fn files(settings: &Settings) -> impl Iterator<Item = &PathBuf> {
    let dnscrypt = &settings.dnscrypt;
    let all = [&dnscrypt.keys, &dnscrypt.certificates, &dnscrypt.rotated];
    all.into_iter().flatten().map(|file| &file.value)
}

/// Reads a file of so many octets.
fn read<const N: usize>(file: &At<PathBuf>, environment: &dyn Environment) -> Result<[u8; N], Box<Problem>> {
    let octets = environment
        .read(&file.value)
        .map_err(|error| wrong(file, &format!("cannot read it: {}", io_text(&error))))?;
    let has = octets.len();
    octets.try_into().map_err(|_| {
        wrong(file, &format!("it has {has} octets"))
            .expected(format!("{N} octets"))
            .hint("\"gannet dnscrypt certificate\" makes such files")
            .into()
    })
}

fn wrong(file: &At<PathBuf>, what: &str) -> Problem {
    Problem::error(file.span, format!("\"{}\": {what}", file.value.display()))
}
