//! Aliases in a reply, from the question's name to the edge of the zone.

use wire::{Class, Message, Name, NameBuf, Rcode, Rtype, Section};

use super::sets::{Set, take_signed};
use super::work::Unreadable;
use super::{Asked, Terms};
use crate::heap_name::HeapName;

/// Aliases of one reply that are read. More than a question may follow in all.
const LINKS_MAX: usize = 16;

/// Types of one name that are taken from an answer to ANY: each may cost a signature check.
const TYPES_MAX: usize = 24;

/// Where a chain leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// To the RRset that was asked for, or to all of a name.
    Data,
    /// To this name of the zone, of which the reply has nothing.
    Open(NameBuf),
    /// Out of the zone, or further than anybody follows.
    Outside,
    /// To no name: it would be too long.
    TooLong,
}

/// What the answer section has for the question.
pub(super) struct Chain {
    pub(super) sets: Vec<Set>,
    /// What the question's name itself is an alias for.
    pub(super) first_target: Option<HeapName>,
    pub(super) end: End,
    pub(super) has_dname: bool,
}

/// One step of a chain.
enum Link {
    Data(Vec<Set>),
    Alias { sets: Vec<Set>, target: NameBuf },
    TooLong(Set),
    None,
}

impl Chain {
    /// Follows the aliases of a reply; `None` if it cannot be read.
    pub(super) fn follow(message: &Message<'_>, asked: &Asked<'_>, terms: &Terms<'_>) -> Option<Self> {
        let mut chain = Self { sets: Vec::new(), first_target: None, end: End::Outside, has_dname: false };
        let mut name = asked.qname.to_buf();
        for _ in 0..LINKS_MAX {
            match link(message, asked, name.as_name(), terms)? {
                Link::Data(sets) => {
                    chain.add(sets);
                    chain.end = End::Data;
                    break;
                }
                Link::TooLong(dname) => {
                    chain.has_dname = true;
                    chain.sets.push(dname);
                    chain.end = End::TooLong;
                    break;
                }
                Link::None => {
                    chain.end = End::Open(name);
                    break;
                }
                Link::Alias { sets, target } => {
                    chain.has_dname |= sets.iter().any(|set| set.rtype == Rtype::DNAME);
                    chain.add(sets);
                    // The question is for the alias itself: its target does not matter.
                    let is_denied = says_that_target_is_gone(message, asked);
                    if matches!(asked.qtype, Rtype::CNAME | Rtype::ANY) && !is_denied {
                        chain.end = End::Data;
                        break;
                    }
                    chain.first_target.get_or_insert_with(|| HeapName::new(target.as_name()));
                    name = target;
                    // What a DNAME leads to is asked for by itself: one that is forged would bring
                    // names along that nobody asked for.
                    if chain.has_dname || !asked.covers(name.as_name()) {
                        break;
                    }
                }
            }
        }
        Some(chain)
    }

    /// Adds the RRsets of one more name: nearly always there is no other.
    fn add(&mut self, sets: Vec<Set>) {
        if self.sets.is_empty() {
            self.sets = sets;
        } else {
            self.sets.extend(sets);
        }
    }
}

/// Returns what the answer section says of a name.
fn link(message: &Message<'_>, asked: &Asked<'_>, name: Name<'_>, terms: &Terms<'_>) -> Option<Link> {
    let set_of = |owner: Name<'_>, rtype| take_signed(message, Section::Answer, owner, rtype, terms).ok();
    // Of a CNAME that was asked for below a DNAME only the DNAME can be believed.
    let is_made = || -> Option<bool> {
        Some(asked.qtype == Rtype::CNAME && nearest_dname(message, asked, name, terms).ok()?.is_some())
    };
    if asked.qtype == Rtype::ANY {
        let sets = all_of(message, name, terms).ok()?;
        if !sets.is_empty() {
            return Some(Link::Data(sets));
        }
    } else if !says_that_target_is_gone(message, asked)
        && let Some(set) = set_of(name, asked.qtype)?
        && !is_made()?
    {
        return Some(Link::Data(vec![set]));
    }
    // A CNAME beside a DNAME is what its sender made of it.
    if let Some(owner) = nearest_dname(message, asked, name, terms).ok()? {
        let mut dname = set_of(owner.as_name(), Rtype::DNAME)??;
        dname.records.truncate(1);
        return substitute(name, &dname).map(|target| match target {
            Some(target) => {
                let data = target.as_name().as_bytes().into();
                let cname = Set::new(HeapName::new(name), Rtype::CNAME, dname.ttl, vec![data]);
                Link::Alias { sets: vec![dname, cname], target }
            }
            None => Link::TooLong(dname),
        });
    }
    if let Some(mut cname) = set_of(name, Rtype::CNAME)? {
        // RFC 2181 §10.1: there is one.
        cname.records.truncate(1);
        let (target, _) = Name::parse(cname.records.first()?).ok()?;
        let target = target.to_buf();
        return Some(Link::Alias { sets: vec![cname], target });
    }
    Some(Link::None)
}

/// Returns whether a server followed the alias that it was asked for, and says that its target does
/// not exist: it speaks of the name at the end (RFC 6604 §3), which is asked for then.
fn says_that_target_is_gone(message: &Message<'_>, asked: &Asked<'_>) -> bool {
    asked.qtype == Rtype::CNAME && message.rcode() == Rcode::NXDOMAIN
}

/// Takes all RRsets that the answer section has of a name.
fn all_of(message: &Message<'_>, name: Name<'_>, terms: &Terms<'_>) -> Result<Vec<Set>, Unreadable> {
    let mut sets: Vec<Set> = Vec::new();
    for record in message.records() {
        terms.work.pass()?;
        let is_new = record.section == Section::Answer
            && record.class == Class::IN
            && record.rtype != Rtype::RRSIG
            && sets.len() < TYPES_MAX
            && !sets.iter().any(|set| set.rtype == record.rtype);
        if is_new && terms.work.owner(&record)?.as_name() == name {
            sets.extend(take_signed(message, Section::Answer, name, record.rtype, terms)?);
        }
    }
    Ok(sets)
}

/// Returns the owner of the closest DNAME above a name, in one walk however many labels it has.
fn nearest_dname(
    message: &Message<'_>,
    asked: &Asked<'_>,
    name: Name<'_>,
    terms: &Terms<'_>,
) -> Result<Option<NameBuf>, Unreadable> {
    let mut nearest: Option<NameBuf> = None;
    for record in message.records().take_while(|record| record.section == Section::Answer) {
        terms.work.pass()?;
        let is_dname = record.rtype == Rtype::DNAME && record.class == Class::IN;
        if !is_dname {
            continue;
        }
        let owner = terms.work.owner(&record)?;
        let fits =
            owner.as_name() != name && name.is_at_or_below(owner.as_name()) && asked.covers(owner.as_name());
        if fits && nearest.as_ref().is_none_or(|known| owner.as_name().len() > known.as_name().len()) {
            nearest = Some(owner);
        }
    }
    Ok(nearest)
}

/// Puts a DNAME's target in place of its owner at the end of a name (RFC 6672 §2.2); `Some(None)`
/// if that is too long, `None` if the record cannot be read.
pub(crate) fn substitute(name: Name<'_>, dname: &Set) -> Option<Option<NameBuf>> {
    let (target, _) = Name::parse(dname.records.first()?).ok()?;
    let kept = name.len().checked_sub(dname.owner.as_name().len())?;
    let labels = name.as_bytes().get(..kept)?;
    Some(NameBuf::below(labels, target).ok())
}
