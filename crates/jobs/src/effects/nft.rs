//! nftables: puts addresses into sets, many in one transaction (`linux/netfilter/nf_tables.h`).
//!
//! What kind a set is (single addresses or intervals, with timeouts or without) is asked of the
//! kernel, so that it stands in one place.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::jobs::{Nftset, Timeout};
use tracing::warn;

use super::elements::{Element, Known, Shape, Write};
use super::{Counts, Effect, EffectError, Occurrence};
use crate::netlink::{self, CREATE, Filter, REQUEST, Request};

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u8 = 10;
const NEW_SET: u16 = kind(9);
const GET_SET: u16 = kind(10);
const NEW_ELEMENT: u16 = kind(12);
const DELETE_ELEMENT: u16 = kind(14);
/// `NFT_MSG_DESTROYSETELEM`: as above, and no error if it is not there. Since Linux 6.3.
const DESTROY_ELEMENT: u16 = kind(30);

/// `NFT_SET_INTERVAL`, `NFT_SET_TIMEOUT`.
const SET_INTERVAL: u32 = 0x4;
const SET_TIMEOUT: u32 = 0x10;
/// `NFT_SET_ELEM_INTERVAL_END`.
const INTERVAL_END: u32 = 1;

/// Elements of one transaction.
const BATCH_MAX: usize = 256;
/// How long the kind of a set is believed; after trouble it is asked again at once.
const KIND_HOLDS: Duration = Duration::from_secs(60);

const fn kind(command: u16) -> u16 {
    (SUBSYSTEM as u16) << 8 | command
}

/// A set in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    family: u8,
    table: String,
    set: String,
}

/// What a set takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    has_intervals: bool,
    has_timeouts: bool,
    key_octets: u32,
}

/// A set of an effect, and what we put there.
struct Target {
    place: Place,
    /// Whether it is to take IPv4 addresses; `None`: the kernel knows.
    is_v4: Option<bool>,
    known: Known,
}

/// Writes to the sets of one effect.
pub(crate) struct Nft {
    filter: Option<Filter>,
    shape: Shape,
    targets: Vec<Target>,
    kinds: HashMap<Place, (Kind, Instant)>,
    /// Whether the kernel can destroy what may not be there; found out by trying.
    can_destroy: bool,
    has_told_timeouts: bool,
}

impl Nft {
    /// Prepares the effect.
    pub(crate) fn new(settings: &Nftset) -> Self {
        let family = settings.family.number();
        let sets = [(&settings.set4, Some(true)), (&settings.set6, Some(false)), (&settings.set, None)];
        let targets = sets.into_iter().filter_map(|(set, is_v4)| {
            let place = Place { family, table: settings.table.clone(), set: set.clone()? };
            Some(Target { place, is_v4, known: Known::default() })
        });
        Self {
            filter: None,
            shape: Shape { prefix4: settings.prefix4, prefix6: settings.prefix6, timeout: settings.timeout },
            targets: targets.collect(),
            kinds: HashMap::new(),
            can_destroy: true,
            has_told_timeouts: false,
        }
    }

    /// Writes all of `writes` into one set; what could not be written is returned with why.
    fn write(&mut self, place: &Place, kind: Kind, writes: &[Write]) -> (usize, Vec<(Element, EffectError)>) {
        let (mut written, mut failed) = (0, Vec::new());
        for chunk in writes.chunks(BATCH_MAX) {
            match self.transact(place, kind, chunk) {
                Ok(None) => written += chunk.len(),
                // One refused element refuses all of the transaction: each for itself, then.
                Ok(Some(_)) => {
                    for write in chunk {
                        match self.transact(place, kind, std::slice::from_ref(write)) {
                            // Another interval covers it, or somebody put it there.
                            Ok(None | Some(libc::EEXIST)) => written += 1,
                            Ok(Some(errno)) => {
                                failed.push((
                                    write.element,
                                    EffectError::io(&io::Error::from_raw_os_error(errno)),
                                ));
                            }
                            Err(error) => failed.push((write.element, EffectError::io(&error))),
                        }
                    }
                }
                Err(error) => {
                    // Whatever was acknowledged later must not be taken for an answer to something
                    // else.
                    self.filter = None;
                    failed.extend(chunk.iter().map(|write| (write.element, EffectError::io(&error))));
                }
            }
        }
        if !failed.is_empty() {
            self.kinds.remove(place);
        }
        (written, failed)
    }

    /// Carries out one transaction; returns the error it was refused with, if it was.
    fn transact(&mut self, place: &Place, kind: Kind, writes: &[Write]) -> io::Result<Option<i32>> {
        loop {
            let remove = match (kind.has_timeouts, self.can_destroy) {
                (false, _) => Removal::None,
                (true, true) => Removal::Destroy,
                (true, false) => Removal::Delete,
            };
            let filter = self.filter()?;
            let mut request = filter.request();
            let last = transaction(&mut request, place, kind, writes, remove);
            let answer = filter.send(&request, last)?;
            let Some(refusal) = answer.refusal() else { return Ok(None) };
            match (remove, refusal.errno) {
                // An older kernel does not know the word.
                (Removal::Destroy, libc::EINVAL | libc::EOPNOTSUPP) if self.can_destroy => {
                    self.can_destroy = false;
                }
                // What was to be deleted is gone: it is only to be added.
                (Removal::Delete, libc::ENOENT) if writes.iter().any(|write| write.is_again) => {
                    let fresh: Vec<Write> =
                        writes.iter().map(|write| Write { is_again: false, ..*write }).collect();
                    return self.transact(place, kind, &fresh);
                }
                (_, errno) => return Ok(Some(errno)),
            }
        }
    }

    fn filter(&mut self) -> io::Result<&mut Filter> {
        match &mut self.filter {
            Some(filter) => Ok(filter),
            slot @ None => Ok(slot.insert(Filter::open()?)),
        }
    }

    /// Returns what kind of set it is.
    fn kind(&mut self, place: &Place, wanted: Option<bool>) -> Result<Kind, EffectError> {
        let now = Instant::now();
        if let Some((kind, asked)) = self.kinds.get(place)
            && now.duration_since(*asked) < KIND_HOLDS
        {
            return Ok(*kind);
        }
        let asked = self.ask_kind(place, wanted);
        if asked.is_err() {
            self.filter = None;
        }
        let kind = asked?;
        self.kinds.insert(place.clone(), (kind, now));
        Ok(kind)
    }

    fn ask_kind(&mut self, place: &Place, wanted: Option<bool>) -> Result<Kind, EffectError> {
        let filter = self.filter().map_err(|error| EffectError::io(&error))?;
        let mut request = filter.request();
        let number = request.message(GET_SET, REQUEST, place.family, 0, |attributes| {
            attributes.text(1, &place.table);
            attributes.text(2, &place.set);
        });
        let answer = filter.send(&request, number).map_err(|error| EffectError::io(&error))?;
        if let Some(refusal) = answer.refusal() {
            return Err(match refusal.errno {
                libc::ENOENT => EffectError::refused(format!(
                    "there is no set \"{}\" in the table \"{}\"",
                    place.set, place.table
                )),
                errno => EffectError::io(&io::Error::from_raw_os_error(errno)),
            });
        }
        let found = answer.messages.iter().find(|(kind, _)| *kind == NEW_SET);
        let Some((_, attributes)) = found else {
            return Err(EffectError::refused("the kernel does not say what kind of set it is"));
        };
        let flags = netlink::number(attributes, 3).unwrap_or(0);
        let kind = Kind {
            has_intervals: flags & SET_INTERVAL != 0,
            has_timeouts: flags & SET_TIMEOUT != 0,
            key_octets: netlink::number(attributes, 5).unwrap_or(0),
        };
        self.fits(place, kind, wanted)?;
        Ok(kind)
    }

    /// Returns why addresses cannot be put into a set of this kind.
    fn fits(&mut self, place: &Place, kind: Kind, wanted: Option<bool>) -> Result<(), EffectError> {
        let set = &place.set;
        let (octets, prefix) = match kind.key_octets {
            octets @ 4 => (octets, self.shape.prefix4),
            octets @ 16 => (octets, self.shape.prefix6),
            _ => return Err(EffectError::refused(format!("the set \"{set}\" does not hold addresses"))),
        };
        if wanted.is_some_and(|is_v4| is_v4 != (octets == 4)) {
            return Err(EffectError::refused(format!(
                "the set \"{set}\" holds addresses of the other family"
            )));
        }
        if u32::from(prefix) < octets * 8 && !kind.has_intervals {
            return Err(EffectError::refused(format!(
                "the set \"{set}\" holds single addresses; networks need \"flags interval\""
            )));
        }
        if self.shape.timeout != Timeout::None && !kind.has_timeouts && !self.has_told_timeouts {
            self.has_told_timeouts = true;
            warn!(%set, "the set has no \"flags timeout\": addresses stay in it");
        }
        Ok(())
    }

    fn carry_out_in(&mut self, target: &mut Target, batch: &[Arc<Occurrence>], counts: &Counts) {
        if batch.iter().all(|occurrence| occurrence.addresses.is_empty()) {
            return;
        }
        let kind = match self.kind(&target.place, target.is_v4) {
            Ok(kind) => kind,
            Err(trouble) => return counts.fail(&trouble),
        };
        let is_v4 = kind.key_octets == 4;
        let wants = |address: IpAddr| address.is_ipv4() == is_v4;
        let writes = target.known.writes(&self.shape, batch.iter().map(AsRef::as_ref), wants, Instant::now());
        let (written, failed) = self.write(&target.place, kind, &writes);
        counts.done.add(written as u64);
        for (element, trouble) in failed {
            target.known.forget(&element);
            counts.fail(&trouble);
        }
    }
}

impl Effect for Nft {
    fn carry_out(&mut self, batch: &[Arc<Occurrence>], counts: &Counts) {
        let mut targets = std::mem::take(&mut self.targets);
        for target in &mut targets {
            self.carry_out_in(target, batch, counts);
        }
        self.targets = targets;
    }
}

/// What becomes of an element that is there already, so that its time begins anew: adding it again
/// leaves its time as it is on kernels before 6.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    None,
    /// Destroyed whether or not it is there.
    Destroy,
    /// Deleted if we wrote it before.
    Delete,
}

/// Writes the transaction; returns the number of the message whose verdict comes last.
fn transaction(request: &mut Request, place: &Place, kind: Kind, writes: &[Write], remove: Removal) -> u32 {
    request.begin(SUBSYSTEM);
    let mut last = 0;
    for write in writes {
        match remove {
            Removal::Destroy => {
                element(request, DESTROY_ELEMENT, place, kind, write);
            }
            Removal::Delete if write.is_again => {
                element(request, DELETE_ELEMENT, place, kind, write);
            }
            Removal::Delete | Removal::None => {}
        }
        last = element(request, NEW_ELEMENT, place, kind, write);
    }
    request.end(SUBSYSTEM);
    last
}

/// Writes one element as a message of its own, so that a refusal says which it was.
fn element(request: &mut Request, command: u16, place: &Place, kind: Kind, write: &Write) -> u32 {
    let flags = if command == NEW_ELEMENT { REQUEST | CREATE } else { REQUEST };
    request.message(command, flags, place.family, 0, |attributes| {
        attributes.text(1, &place.table);
        attributes.text(2, &place.set);
        attributes.nested(3, |list| {
            list.nested(1, |one| {
                one.nested(1, |key| key.put(1, &write.element.first()));
                if let Some(timeout) = write.timeout.filter(|_| kind.has_timeouts && command == NEW_ELEMENT) {
                    let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                    one.put(4, &ms.to_be_bytes());
                }
            });
            if let (true, Some(end)) = (kind.has_intervals, write.element.end()) {
                list.nested(1, |one| {
                    one.put(3, &INTERVAL_END.to_be_bytes());
                    one.nested(1, |key| key.put(1, &end));
                });
            }
        });
    })
}
