//! Certificates that are ordered, as metrics.

use super::Exposition;
use crate::api;

/// Adds how certificates stand that are ordered.
pub(super) fn add(out: &mut Exposition, certificates: &[api::OrderedCertificate]) {
    for certificate in certificates {
        let labels = [("certificate", certificate.name.as_str())];
        // As long as there is none, no time is left.
        let left = certificate.ends_in_s.map_or(0, |left| u64::try_from(left).unwrap_or(0));
        let help = "How long the ordered certificate still holds; 0 if it has expired or there is none.";
        out.gauge("gannet_certificate_left_seconds", help, &labels, left);
        let help = "Orders of the certificate that were begun.";
        out.counter("gannet_certificate_orders_total", help, &labels, certificate.attempts);
        let help = "Orders of the certificate that failed since the last one that did not.";
        out.gauge("gannet_certificate_failures", help, &labels, certificate.failures.into());
    }
}
