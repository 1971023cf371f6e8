//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Service parameters of SVCB and HTTPS records (RFC 9460).

use std::net::IpAddr;

use wire::rdata::SvcKey;
use wire::{Full, Name, Record, Rtype, Writer};

use super::{Draft, put_record, reaches};

/// Keys of service parameters: one bit each for the keys below 64; no larger one is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SvcKeys(u64);

impl SvcKeys {
    /// Returns these keys and another; `None` for a key of 64 or more.
    pub const fn with(self, key: SvcKey) -> Option<Self> {
        if key.0 >= 64 { None } else { Some(Self(self.0 | 1 << key.0)) }
    }

    /// Returns whether the key is among them.
    const fn has(self, key: SvcKey) -> bool {
        key.0 < 64 && self.0 >> key.0 & 1 != 0
    }

    /// RFC 9460 §7.1.1: without ALPN there is nothing for `no-default-alpn` to exclude.
    const fn goes(self, key: SvcKey) -> bool {
        self.has(key) || (key.0 == SvcKey::NO_DEFAULT_ALPN.0 && self.has(SvcKey::ALPN))
    }
}

/// Takes the first parameter off: its key, its value, and what follows.
fn split(params: &[u8]) -> Option<(SvcKey, &[u8], &[u8])> {
    let (&[k0, k1, l0, l1], rest) = params.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((SvcKey(u16::from_be_bytes([k0, k1])), value, rest))
}

/// Returns where in the data the parameters begin: behind priority and target.
fn params_at(rdata: &[u8]) -> Option<usize> {
    let (target, _) = Name::parse(rdata.get(2..)?).ok()?;
    Some(2 + target.len())
}

fn params(rdata: &[u8]) -> &[u8] {
    params_at(rdata).and_then(|at| rdata.get(at..)).unwrap_or(&[])
}

/// Returns whether `f` holds for an address among the hints.
pub(super) fn hints(rdata: &[u8], f: &impl Fn(IpAddr) -> bool) -> bool {
    let mut rest = params(rdata);
    while let Some((key, value, after)) = split(rest) {
        rest = after;
        let holds = match key {
            SvcKey::IPV4HINT => value.as_chunks::<4>().0.iter().any(|&octets| f(IpAddr::from(octets))),
            SvcKey::IPV6HINT => value.as_chunks::<16>().0.iter().any(|&octets| f(IpAddr::from(octets))),
            _ => false,
        };
        if holds {
            return true;
        }
    }
    false
}

/// Hands the data without the parameters of these keys to `emit`, piece by piece.
fn without(rdata: &[u8], keys: SvcKeys, mut emit: impl FnMut(&[u8]) -> Result<(), Full>) -> Result<(), Full> {
    // What cannot be read stays as it is: it is not ours to repair.
    let Some(at) = params_at(rdata) else { return emit(rdata) };
    emit(rdata.get(..at).ok_or(Full)?)?;
    let mut rest = rdata.get(at..).ok_or(Full)?;
    while let Some((key, value, after)) = split(rest) {
        let whole = rest.get(..rest.len() - after.len()).ok_or(Full)?;
        rest = after;
        if keys.goes(key) {
            continue;
        }
        if key != SvcKey::MANDATORY {
            emit(whole)?;
            continue;
        }
        // RFC 9460 §8: what is mandatory must be there.
        let listed =
            || value.as_chunks::<2>().0.iter().filter(|&&key| !keys.goes(SvcKey(u16::from_be_bytes(key))));
        let octets = listed().count() * 2;
        if octets > 0 {
            emit(&SvcKey::MANDATORY.0.to_be_bytes())?;
            emit(&(octets as u16).to_be_bytes())?;
            listed().try_for_each(|key| emit(key))?;
        }
    }
    emit(rest)
}

fn is_service(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::SVCB | Rtype::HTTPS)
}

fn has_any(rdata: &[u8], keys: SvcKeys) -> bool {
    let mut rest = params(rdata);
    while let Some((key, _, after)) = split(rest) {
        if keys.goes(key) {
            return true;
        }
        rest = after;
    }
    false
}

impl Draft<'_> {
    /// Removes parameters from the SVCB and HTTPS records of all sections, and signatures over
    /// those. Returns whether anything changed.
    pub fn strip_params(&mut self, keys: SvcKeys) -> Result<bool, Full> {
        let mut first = None;
        let mut is_movable = true;
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            if let Some(limit) = first {
                is_movable &= !reaches(self.message, &place, limit);
            } else if is_service(place.rtype) && has_any(place.rdata(self.message), keys) {
                first = Some(place.at);
            }
        }
        let Some(first) = first else { return Ok(false) };
        if is_movable {
            self.strip_in_place(first, keys)?;
        } else {
            self.rebuild(|_, record, writer| match is_service(record.rtype) {
                true => put_without(writer, record, keys),
                false => put_record(writer, record, None),
            })?;
        }
        self.retain(|message, place| !place.covers(message).is_some_and(is_service))?;
        Ok(true)
    }

    /// Writes everything from the first record that changes on anew, where nothing leads to it.
    fn strip_in_place(&mut self, first: usize, keys: SvcKeys) -> Result<(), Full> {
        let mut to = first;
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            if place.at < first {
                continue;
            }
            let data_at = place.rdata_at() - (place.at - to);
            self.message.copy_within(place.at..place.rdata_at(), to);
            if !is_service(place.rtype) {
                self.message.copy_within(place.rdata_at()..place.end, data_at);
                to = data_at + (place.end - place.rdata_at());
                continue;
            }
            // The data may overlap its new place, so it takes the way through the spare buffer.
            let mut octets = 0;
            let spare = &mut *self.spare;
            without(place.rdata(self.message), keys, |piece| {
                spare.get_mut(octets..octets + piece.len()).ok_or(Full)?.copy_from_slice(piece);
                octets += piece.len();
                Ok(())
            })?;
            let (Some(room), Some(data)) =
                (self.message.get_mut(data_at - 2..data_at + octets), spare.get(..octets))
            else {
                return Err(Full);
            };
            let (length, room) = room.split_at_mut(2);
            length.copy_from_slice(&(octets as u16).to_be_bytes());
            room.copy_from_slice(data);
            to = data_at + octets;
        }
        self.shape.octets = to - self.shape.body_at;
        Ok(())
    }
}

fn put_without(writer: &mut Writer<'_>, record: &Record<'_>, keys: SvcKeys) -> Result<(), Full> {
    let owner = record.owner.expand().map_err(|_| Full)?;
    writer.record(record.section, owner.as_name(), record.rtype, record.class, record.ttl(), |writer| {
        without(record.rdata, keys, |piece| writer.bytes(piece))
    })
}
