//! `gannet certificates`: those that the server orders.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request};

use super::{LOOK_PATIENCE, ask, counted, span};
use crate::cli::{CertificatesArgs, CertificatesCommand};
use crate::out;

/// Runs `gannet certificates …`.
pub(super) fn run(args: &CertificatesArgs) -> ExitCode {
    let of = |name: Option<&String>| Request::Certificates(api::CertificatesOf { name: name.cloned() });
    let (remote, request) = match &args.command {
        None => (&args.remote, of(None)),
        Some(CertificatesCommand::List(remote)) => (remote, of(None)),
        Some(CertificatesCommand::Show(args)) => (&args.remote, of(Some(&args.name))),
        Some(CertificatesCommand::Renew(args)) => {
            (&args.remote, Request::CertificateRenew(api::CertificateName { name: args.name.clone() }))
        }
    };
    ask(remote, &request, LOOK_PATIENCE)
}

/// Lays out how certificates stand.
pub(super) fn text(certificates: &[api::OrderedCertificate]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let names = out::escaped(&certificate.names.join(", "));
        let _ = writeln!(text, "{}: {names}", out::escaped(&certificate.name));
        let _ = writeln!(text, "    {}", state(certificate));
        if let Some(authority) = &certificate.authority {
            let _ = writeln!(text, "    by {}", out::escaped(authority));
        }
        if let (Some(begins), Some(ends)) = (&certificate.window_begins, &certificate.window_ends) {
            let _ = writeln!(text, "    the authority wants it renewed between {begins} and {ends}");
        }
        if let Some(trouble) = &certificate.trouble {
            let when =
                certificate.failed_s_ago.map_or_else(String::new, |since| format!(" {} ago", span(since)));
            let _ = writeln!(text, "    failed{when}: {}", out::escaped(trouble));
        }
    }
    if certificates.is_empty() {
        text.push_str("no certificates are ordered (setting certificates)\n");
    }
    text
}

fn state(certificate: &api::OrderedCertificate) -> String {
    let mut parts = Vec::new();
    parts.push(match (&certificate.ends, certificate.ends_in_s) {
        (Some(ends), Some(left)) => match u64::try_from(left) {
            Ok(left) => format!("holds for {} (until {ends})", span(left)),
            Err(_) => format!("expired {} ago ({ends})", span(left.unsigned_abs())),
        },
        _ => "none yet: clients get one that the server has signed itself".to_owned(),
    });
    parts.push(match (certificate.is_at_work, certificate.next_in_s) {
        (true, _) => "is being ordered".to_owned(),
        (false, 0) => "is ordered now".to_owned(),
        (false, seconds) => format!("ordered in {}", span(seconds)),
    });
    if certificate.failures > 0 {
        parts.push(counted(certificate.failures.into(), "failure"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_says_until_when_it_holds_and_what_failed() {
        let good = api::OrderedCertificate {
            name: "dns".into(),
            names: vec!["dns.example.org".into(), "192.0.2.1".into()],
            authority: Some("https://ca.example.org/directory".into()),
            ends: Some("2026-12-01T00:00:00Z".into()),
            ends_in_s: Some(90_000),
            next_in_s: 3_700,
            ..api::OrderedCertificate::default()
        };
        let failing = api::OrderedCertificate {
            ends: None,
            ends_in_s: None,
            authority: None,
            failures: 1,
            trouble: Some("no\nway".into()),
            failed_s_ago: Some(7),
            ..good.clone()
        };
        assert_eq!(
            text(&[good, failing]),
            "dns: dns.example.org, 192.0.2.1\n    \
             holds for 1d1h (until 2026-12-01T00:00:00Z), ordered in 1h1m\n    \
             by https://ca.example.org/directory\n\
             dns: dns.example.org, 192.0.2.1\n    \
             none yet: clients get one that the server has signed itself, ordered in 1h1m, 1 failure\n    \
             failed 7s ago: no\\u{a}way\n"
        );
    }
}
