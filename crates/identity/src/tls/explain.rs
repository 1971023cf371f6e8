//! What is wrong with a server's TLS, in words for a person.

use std::io;

use rustls::{CertificateError, OtherError};

/// Says why a connection could not be secured, for a person.
pub fn explain(error: &io::Error) -> String {
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return error.to_string();
    };
    explain_tls(error)
}

/// Says what a TLS error means, for a person.
pub(super) fn explain_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(cause) => explain_certificate(cause),
        rustls::Error::AlertReceived(alert) => format!("the server refused: TLS alert {alert:?}"),
        rustls::Error::NoApplicationProtocol => "the server does not speak this protocol (ALPN)".to_owned(),
        other => format!("TLS: {other}"),
    }
}

fn explain_certificate(cause: &CertificateError) -> String {
    match cause {
        CertificateError::Expired => "the server's certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("the server's certificate expired {} ago", span(time.as_secs(), not_after.as_secs()))
        }
        CertificateError::NotValidYet => "the server's certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the server's certificate is not valid for another {}: is this machine's clock right?",
            span(not_before.as_secs(), time.as_secs())
        ),
        CertificateError::NotValidForName => "the server's certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let presented = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("the server's certificate is for {presented}, not for {}", expected.to_str())
        }
        CertificateError::UnknownIssuer => {
            "the server's certificate is from an authority that is not trusted".to_owned()
        }
        CertificateError::BadSignature => {
            "the server's certificate is not signed by the authority that it names".to_owned()
        }
        CertificateError::Other(OtherError(other)) => other.to_string(),
        other => format!("the server's certificate cannot be used: {other}"),
    }
}

/// Returns a name without what the library puts around it: `DnsName("dns.example")`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.map_or(name, |inner| inner.trim_matches('"'))
}

/// Says how long `later` is after `earlier`, both in seconds.
pub fn span(later: u64, earlier: u64) -> String {
    let seconds = later.saturating_sub(earlier);
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        assert_eq!(span(100, 99), "1 second");
        assert_eq!(span(10_000, 400), "2 hours");
        assert_eq!(span(1_000_000, 0), "11 days");
        assert_eq!(span(0, 5), "0 seconds");
    }
}
