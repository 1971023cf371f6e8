//! What the servers of a parent are sent of a zone's DS: what its CDS say, once, and again until
//! one of them has taken it.

use std::fmt::Write as _;

use dnssec::tree::Tree;
use wire::{Name, NameBuf, Rtype};

/// When it is tried again after the first failure; twice as long after each of those that follow.
const RETRY_AFTER: u64 = 5;

/// The DS that a zone is to have at its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The zone.
    pub apex: NameBuf,
    /// The name of its policy.
    pub policy: String,
    /// The TTL of the records.
    pub ttl: u32,
    /// Their data; none if the zone is to have no DS.
    pub ds: Vec<Vec<u8>>,
}

/// What came of a push: who took it, or why nobody does.
pub type PushOutcome = Result<String, String>;

/// What was sent, and what is to be.
#[derive(Debug, Default)]
pub(super) struct Pushes {
    /// What a server took last, and when.
    sent: Option<(Vec<Vec<u8>>, u64)>,
    is_under_way: bool,
    failures: u32,
    /// When it is tried again.
    again_at: u64,
    /// How it stands, in words.
    said: Option<String>,
}

/// Returns the DS that the CDS of a zone ask for, and their TTL; `None` if there are no CDS.
fn wanted(tree: &Tree) -> Option<(u32, Vec<Vec<u8>>)> {
    let set = tree.set(tree.apex(), Rtype::CDS)?;
    let mut ds: Vec<Vec<u8>> = set.records().map(<[u8]>::to_vec).collect();
    if ds.is_empty() {
        return None;
    }
    // RFC 8078 §4: algorithm 0 asks for no DS at all.
    if ds.iter().any(|cds| cds.get(2) == Some(&0)) {
        ds.clear();
    }
    ds.sort();
    Some((set.ttl(), ds))
}

impl Pushes {
    /// Reads what [`Pushes::write`] wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let at = words.next()?.parse().ok()?;
        let ds: Option<Vec<Vec<u8>>> = words.map(|word| wire::text::read_hex(word.as_bytes())).collect();
        let said = Some(format!("sent to the parent at {} UTC", dnssec::write_compact(at)));
        Some(Self { sent: Some((ds?, at)), said, ..Self::default() })
    }

    /// Writes what a server took, for after a restart.
    pub(super) fn write(&self) -> Option<String> {
        let (ds, at) = self.sent.as_ref()?;
        let mut text = at.to_string();
        for ds in ds {
            text.push(' ');
            for octet in ds {
                let _ = write!(text, "{octet:02x}");
            }
        }
        Some(text)
    }

    /// Returns how it stands, in words.
    pub(super) fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    /// Returns what is to be sent now of a zone as it is signed, and when to look again.
    pub(super) fn due(&mut self, tree: &Tree, policy: &str, now: u64) -> (Option<Push>, Option<u64>) {
        let Some((ttl, ds)) = wanted(tree) else {
            (self.failures, self.again_at) = (0, 0);
            return (None, None);
        };
        if self.is_under_way || self.sent.as_ref().is_some_and(|(sent, _)| *sent == ds) {
            return (None, None);
        }
        if now < self.again_at {
            return (None, Some(self.again_at));
        }
        self.is_under_way = true;
        (Some(Push { apex: tree.apex().to_buf(), policy: policy.to_owned(), ttl, ds }), None)
    }

    /// Notes what came of sending these. After failures it is tried again within `interval`.
    pub(super) fn note(&mut self, ds: Vec<Vec<u8>>, outcome: &PushOutcome, interval: u64, now: u64) {
        self.is_under_way = false;
        match outcome {
            Ok(server) => {
                self.said = Some(match ds.len() {
                    0 => format!("{server} was told at {} UTC to have none", dnssec::write_compact(now)),
                    count => format!("{server} took {count} at {} UTC", dnssec::write_compact(now)),
                });
                self.sent = Some((ds, now));
                (self.failures, self.again_at) = (0, 0);
            }
            Err(why) => {
                let wait = RETRY_AFTER.checked_shl(self.failures).unwrap_or(u64::MAX).min(interval.max(1));
                self.failures = self.failures.saturating_add(1).min(32);
                self.again_at = now.saturating_add(wait);
                self.said =
                    Some(format!("not taken: {why}; again at {} UTC", dnssec::write_compact(self.again_at)));
            }
        }
    }

    /// The parent lacks what one of its servers took `interval` ago: it is sent again.
    pub(super) fn is_missed(&mut self, interval: u64, now: u64) {
        if self.sent.as_ref().is_some_and(|&(_, at)| now >= at.saturating_add(interval)) {
            self.sent = None;
        }
    }
}

/// Returns whether these data are the DS of a key.
pub(super) fn is_among(ds: &[Vec<u8>], apex: Name<'_>, dnskey: dnssec::Dnskey<'_>) -> bool {
    ds.iter().filter_map(|ds| dnssec::Ds::parse(ds)).any(|ds| ds.is_of(apex, dnskey))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CDS: [u8; 6] = [0, 1, 13, 2, 0xaa, 0xbb];
    const DELETE: [u8; 5] = [0, 0, 0, 0, 0];

    fn tree(cds: &[&[u8]]) -> Tree {
        let apex = NameBuf::from_text("example.org").expect("a name");
        let mut tree = Tree::new(apex.as_name());
        let soa = [&[0, 0][..], &[0; 20]].concat();
        tree.push(apex.as_name(), Rtype::SOA, 60, &soa);
        for cds in cds {
            tree.push(apex.as_name(), Rtype::CDS, 300, cds);
        }
        tree
    }

    #[test]
    fn what_cds_ask_for_is_sent_once_and_again_after_a_failure() {
        let mut pushes = Pushes::default();
        let signed = tree(&[&CDS]);
        assert_eq!(pushes.due(&tree(&[]), "p", 1000), (None, None));
        let (push, _) = pushes.due(&signed, "p", 1000);
        let push = push.expect("something is due");
        assert_eq!((push.ttl, push.ds.as_slice()), (300, &[CDS.to_vec()][..]));
        assert_eq!(pushes.due(&signed, "p", 1001), (None, None), "it is under way");
        let mut now = 1002;
        for wait in [5, 10, 20, 40, 80, 160, 300, 300] {
            pushes.note(push.ds.clone(), &Err("nobody is there".to_owned()), 300, now);
            assert!(pushes.said().is_some_and(|said| said.contains("nobody is there")));
            assert_eq!(pushes.due(&signed, "p", now), (None, Some(now + wait)));
            now += wait;
            assert_eq!(pushes.due(&signed, "p", now).0.as_ref(), Some(&push));
        }
        pushes.note(push.ds.clone(), &Ok("192.0.2.1:53".to_owned()), 300, now);
        assert!(pushes.said().is_some_and(|said| said.starts_with("192.0.2.1:53 took 1 at ")));
        assert_eq!(pushes.due(&signed, "p", now + 9000), (None, None));
        // After a restart neither, but when the parent lacks it, or other CDS come.
        let text = pushes.write().expect("something was sent");
        let mut pushes = Pushes::parse(&text).expect("it can be read");
        assert_eq!(pushes.due(&signed, "p", now + 9000), (None, None));
        pushes.is_missed(300, now + 299);
        assert_eq!(pushes.due(&signed, "p", now + 9000), (None, None));
        pushes.is_missed(300, now + 300);
        assert!(pushes.due(&signed, "p", now + 9000).0.is_some());
    }

    #[test]
    fn cds_that_ask_for_no_ds_send_none() {
        let mut pushes = Pushes::default();
        let (push, _) = pushes.due(&tree(&[&DELETE]), "p", 1000);
        assert_eq!(push.map(|push| push.ds), Some(Vec::new()));
        pushes.note(Vec::new(), &Ok("192.0.2.1:53".to_owned()), 300, 1000);
        let text = pushes.write().expect("something was sent");
        let mut pushes = Pushes::parse(&text).expect("it can be read");
        assert_eq!(pushes.due(&tree(&[&DELETE]), "p", 1000), (None, None));
        assert!(pushes.due(&tree(&[&CDS]), "p", 1000).0.is_some());
    }
}
