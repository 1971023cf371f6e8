//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `redirect(…)` and `rewrite(…)`: the steps after it ask for another name, and the client gets
//! their answer for the name that it asked for.

use std::sync::Arc;

use sets::{Blocklist, NameSet};
use wire::reply::write_record;
use wire::{Class, Header, Message, Name, NameBuf, Query, Rcode, Rtype, Section, Ttl, Writer};

use crate::answer::written::Written;
use crate::matchers::Facts;

/// The TTL of our CNAME before an answer without records; otherwise it is that of the records.
const ALIAS_TTL_MAX: Ttl = Ttl::new(300);

/// Another name in place of the one asked for.
pub struct Rewrite {
    /// Which name.
    pub targets: Targets,
    /// What the client sees of it.
    pub style: Style,
}

/// What the client sees of a rewritten name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A CNAME to it, and its records.
    Cname {
        /// Its TTL; `None`: the least of the records.
        ttl: Option<Ttl>,
        /// Whether the answer sets AA.
        authoritative: bool,
    },
    /// Its records, under the name asked for.
    Restored,
}

/// Which name stands in for which.
pub enum Targets {
    /// One for all.
    One(Target),
    /// The one beside the pattern that a name fits, the closest of those on labels; other names
    /// stay as they are.
    Table {
        /// The patterns; the line of each is the number of its target, from 1.
        patterns: Box<NameSet>,
        /// The targets.
        targets: Box<[Target]>,
    },
    /// The one that a list wants the query answered with, if it wants an alias. The step before
    /// does what else the list says, and does so again for the other name.
    Listed(Arc<Blocklist>),
}

/// What a name becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This name.
    Name(NameBuf),
    /// What stands before another name, and this name after it.
    Below {
        /// The other name.
        old: NameBuf,
        /// What stands in its place.
        new: NameBuf,
    },
}

impl Rewrite {
    /// Returns how many steps before the next one the other name begins with.
    pub(crate) const fn steps_back(&self) -> u16 {
        if self.follows_list() { 2 } else { 0 }
    }

    /// Returns whether the other name is what an alias from a list leads to.
    pub(crate) const fn follows_list(&self) -> bool {
        matches!(self.targets, Targets::Listed(_))
    }

    /// Returns whether what it writes sets AA.
    pub(crate) const fn is_own(&self) -> bool {
        matches!(self.style, Style::Cname { authoritative: true, .. })
    }

    /// Returns what a query is to ask for; `None` leaves it as it is.
    pub(crate) fn target(&self, facts: &Facts<'_>) -> Option<NameBuf> {
        let qname = facts.request.query.question.qname;
        let target = match &self.targets {
            Targets::Listed(list) => {
                let ruling = list.rule(&facts.asking()).filter(|ruling| !ruling.is_allowed)?;
                return ruling.treatment.target(qname).filter(|name| name.as_name() != qname);
            }
            Targets::One(target) => target,
            Targets::Table { patterns, targets } => {
                let rule = patterns.find(&facts.request.sought)?.rule.number();
                targets.get(rule.checked_sub(1)? as usize)?
            }
        };
        let name = target.of(qname)?;
        // A name that stands for itself needs nothing done.
        if name.as_name() == qname { None } else { Some(name) }
    }
}

impl Target {
    /// Returns what `qname` becomes. `None` when it is not below the other name, or too long then.
    fn of(&self, qname: Name<'_>) -> Option<NameBuf> {
        match self {
            Self::Name(name) => Some(*name),
            Self::Below { old, new } => {
                if !qname.is_at_or_below(old.as_name()) {
                    return None;
                }
                let own = qname.label_count() - old.as_name().label_count();
                let mut name = NameBuf::root();
                for label in qname.labels().take(own).chain(new.as_name().labels()) {
                    name.push_label(label).ok()?;
                }
                Some(name)
            }
        }
    }
}

/// Writes `message`, which answers another name's question, as an answer to `query`.
pub(crate) fn restore(
    style: Style,
    message: &Message<'_>,
    query: &Query<'_>,
    out: &mut [u8],
) -> Option<Written> {
    let asked = message.question?.qname;
    let mut writer = Writer::new(&mut *out, usize::from(u16::MAX), 0, message.header.flags);
    writer.question(&query.question).ok()?;
    let body_at = writer.len();
    let qname = query.question.qname;
    // A refusal says nothing of names.
    if let Style::Cname { ttl: own, .. } = style
        && message.rcode() != Rcode::REFUSED
    {
        let answers = message.records().take_while(|record| record.section == Section::Answer);
        let ttl = own.unwrap_or_else(|| answers.map(|record| record.ttl()).min().unwrap_or(ALIAS_TTL_MAX));
        writer.record(Section::Answer, qname, Rtype::CNAME, Class::IN, ttl, |w| w.name(asked)).ok()?;
    }
    for record in message.records() {
        if matches!(record.rtype, Rtype::OPT | Rtype::TSIG) {
            continue;
        }
        let owner = record.owner.expand().ok()?;
        let is_asked = style == Style::Restored && owner.as_name() == asked;
        // It signs the other name.
        if is_asked && record.rtype == Rtype::RRSIG {
            continue;
        }
        let owner = if is_asked { qname } else { owner.as_name() };
        write_record(&record, owner, record.ttl(), &mut writer).ok()?;
    }
    let len = writer.finish();
    debug_assert!(body_at >= Header::LEN, "the question comes first");
    Written::new(out, len, body_at, message.rcode())
}
