//! Certificates that are ordered, as their operator sees them.

use acme::CertificateState;
use control::api;

use super::{Operator, OperatorError, What, unix_seconds};

impl Operator {
    /// Says how one certificate stands, or every one.
    ///
    /// # Errors
    ///
    /// No such certificate is ordered.
    pub fn certificates(&self, name: Option<&str>) -> Result<Vec<api::OrderedCertificate>, OperatorError> {
        let now = unix_seconds();
        let states = self.components.certificates.states().into_iter();
        let wanted = states.filter(|state| name.is_none_or(|name| state.name == name));
        let shown: Vec<_> = wanted.map(|state| shown(state, now)).collect();
        match name {
            Some(name) if shown.is_empty() => Err(OperatorError::not_found(What::Certificate, name)),
            _ => Ok(shown),
        }
    }

    /// Has a certificate ordered now, and says how it stands.
    ///
    /// # Errors
    ///
    /// No such certificate is ordered.
    pub fn certificate_renew(&self, name: &str) -> Result<Vec<api::OrderedCertificate>, OperatorError> {
        let renewed = self.components.certificates.renew(name);
        renewed.map_err(|_| OperatorError::not_found(What::Certificate, name))?;
        self.certificates(Some(name))
    }
}

fn shown(state: CertificateState, now: u64) -> api::OrderedCertificate {
    let time = |seconds: u64| {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string()
    };
    let left = |seconds: u64| i64::try_from(i128::from(seconds) - i128::from(now)).unwrap_or(i64::MAX);
    api::OrderedCertificate {
        name: state.name,
        names: state.names,
        authority: state.authority,
        begins: state.life.map(|(begins, _)| time(begins)),
        ends: state.life.map(|(_, ends)| time(ends)),
        ends_in_s: state.life.map(|(_, ends)| left(ends)),
        next_in_s: state.next_at.saturating_sub(now),
        window_begins: state.window.map(|window| time(window.start)),
        window_ends: state.window.map(|window| time(window.end)),
        attempts: state.attempts,
        failures: state.failures,
        failed_s_ago: state.trouble.as_ref().map(|(at, _)| now.saturating_sub(*at)),
        trouble: state.trouble.map(|(_, why)| why),
        is_at_work: state.is_at_work,
    }
}
