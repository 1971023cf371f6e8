//! The right answer to a question, told by who knows all zones.

use wire::{Name, NameBuf, Rcode, Rtype};

use super::contents::{Found, Node};
use super::places::Labels;
use super::{World, Zone};

/// Aliases in a row at most; there are never so many.
const ALIASES_MAX: usize = 8;

/// What a resolver has to answer.
#[derive(Clone, Debug)]
pub struct Truth {
    /// The response code.
    pub rcode: Rcode,
    /// Whether all of it can be proved (AD, RFC 4035 §3.2.3).
    pub is_secure: bool,
    /// Owner, type and data of the records, aliases first; names in the data are in full.
    pub records: Vec<(NameBuf, Rtype, Vec<u8>)>,
}

impl World {
    /// Returns the right answer for a name and type.
    pub fn truth(&self, qname: Name<'_>, qtype: Rtype) -> Truth {
        let mut truth = Truth { rcode: Rcode::NOERROR, is_secure: true, records: Vec::new() };
        let mut name = qname.to_buf();
        for _ in 0..ALIASES_MAX {
            let labels = Labels::new(name.as_name());
            let zone = self.zone_of(name.as_name(), qtype);
            let found = self.find(zone, &labels);
            // A name that is left out of the chain may exist or not (RFC 5155 §9.2).
            let is_left_out = match found {
                Found::Absent(_) => self.opts_out(zone),
                Found::Node(Node::Cut(child)) => self.opts_out(zone) && !self.is_signed(child),
                _ => false,
            };
            truth.is_secure &= self.is_signed(zone) && !is_left_out;
            let set = match found {
                Found::Node(node) | Found::Wildcard(node, _) => self.set_or_alias(zone, node, qtype),
                // The closest zone has none below it.
                Found::Below(_) => None,
                Found::Absent(_) => {
                    truth.rcode = Rcode::NXDOMAIN;
                    None
                }
            };
            let Some(set) = set else { return truth };
            let target = match (set.rtype, set.data.first().map(|data| Name::parse(data))) {
                (Rtype::CNAME, Some(Ok((target, _)))) if qtype != Rtype::CNAME => Some(target.to_buf()),
                _ => None,
            };
            truth.records.extend(set.data.into_iter().map(|data| (name, set.rtype, data)));
            match target {
                Some(target) => name = target,
                None => return truth,
            }
        }
        truth
    }

    /// Returns the zone that answers with authority: for DS, the one above a cut.
    pub(crate) fn zone_of(&self, qname: Name<'_>, qtype: Rtype) -> Zone {
        let zone = self.closest_zone(qname);
        match zone {
            Zone::Tld(_) if qtype == Rtype::DS && qname.label_count() == 1 => Zone::Root,
            Zone::Leaf(leaf) if qtype == Rtype::DS && qname.label_count() == 2 => {
                Zone::Tld(leaf % self.options().tlds)
            }
            _ => zone,
        }
    }
}
