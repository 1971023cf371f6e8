//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Class CHAOS: what a server says about itself (RFC 4892). Hidden unless configured.

use wire::{Class, Rtype};

/// What this server tells about itself; empty means hidden.
#[derive(Clone, Debug, Default)]
pub struct Chaos {
    /// `version.bind` and `version.server`.
    pub version: Box<[u8]>,
    /// `hostname.bind`.
    pub hostname: Box<[u8]>,
    /// `id.server`.
    pub identity: Box<[u8]>,
    /// `trustanchor.unbound`: a text for each zone that is trusted, with the tags of its keys.
    pub trust_anchors: Box<[Box<[u8]>]>,
    /// The NSID option (RFC 5001).
    pub nsid: Box<[u8]>,
}

/// Octets of a text in a reply: one character-string (RFC 1035 §3.3).
const TEXT_OCTETS_MAX: usize = 255;

impl Chaos {
    /// Returns the text for a question of class CHAOS; `None` when hidden or unknown.
    pub fn text(&self, qname: wire::Name<'_>, qtype: Rtype) -> Option<&[u8]> {
        if qtype != Rtype::TXT && qtype != Rtype::ANY {
            return None;
        }
        let mut labels = qname.labels();
        let (first, second, third) = (labels.next()?, labels.next()?, labels.next());
        let is = |a: &[u8], b: &[u8]| first.eq_ignore_ascii_case(a) && second.eq_ignore_ascii_case(b);
        let text = if third.is_some() {
            return None;
        } else if is(b"version", b"bind") || is(b"version", b"server") {
            &self.version
        } else if is(b"hostname", b"bind") {
            &self.hostname
        } else if is(b"id", b"server") {
            &self.identity
        } else {
            return None;
        };
        if text.is_empty() { None } else { Some(text.get(..TEXT_OCTETS_MAX).unwrap_or(text)) }
    }

    /// Returns which zones are trusted, if that is what is asked for, and shown.
    pub(crate) fn trust_anchors(&self, qname: wire::Name<'_>, qtype: Rtype) -> Option<&[Box<[u8]>]> {
        let is_it = qname.label_count() == 2
            && qname.labels().zip([&b"trustanchor"[..], b"unbound"]).all(|(a, b)| a.eq_ignore_ascii_case(b));
        let is_text = qtype == Rtype::TXT || qtype == Rtype::ANY;
        (is_it && is_text && !self.trust_anchors.is_empty()).then_some(&*self.trust_anchors)
    }

    /// Writes a TXT record of the question's name; returns its octets.
    pub(crate) fn put(text: &[u8], buffer: &mut [u8], at: usize) -> Option<usize> {
        let [t0, t1] = Rtype::TXT.0.to_be_bytes();
        let [c0, c1] = Class::CH.0.to_be_bytes();
        let length = text.len() as u8;
        let [l0, l1] = (u16::from(length) + 1).to_be_bytes();
        let fixed = [0xc0, 12, t0, t1, c0, c1, 0, 0, 0, 0, l0, l1, length];
        let (head, tail) = buffer.get_mut(at..at + fixed.len() + text.len())?.split_at_mut(fixed.len());
        head.copy_from_slice(&fixed);
        tail.copy_from_slice(text);
        Some(fixed.len() + text.len())
    }
}
