//! ipset: puts addresses into sets of iptables, many at once (`linux/netfilter/ipset/ip_set.h`).
//!
//! An element that is there already gets the new timeout: the kernel does that by itself unless
//! told to refuse.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::jobs::Ipset;

use super::elements::{Element, Known, Shape, Write};
use super::{Counts, Effect, EffectError, Occurrence};
use crate::netlink::{Filter, NET_ORDER, REQUEST, Request};

/// `NFNL_SUBSYS_IPSET << 8 | IPSET_CMD_ADD`.
const ADD: u16 = 6 << 8 | 9;
/// `IPSET_PROTOCOL` as every kernel since 3.0 speaks it.
const PROTOCOL: u8 = 6;
/// Elements of one request.
const BATCH_MAX: usize = 256;

/// Writes to the sets of one effect.
pub(crate) struct IpSet {
    filter: Option<Filter>,
    shape: Shape,
    set4: Option<String>,
    set6: Option<String>,
    known4: Known,
    known6: Known,
}

impl IpSet {
    /// Prepares the effect.
    pub(crate) fn new(settings: &Ipset) -> Self {
        Self {
            filter: None,
            shape: Shape { prefix4: settings.prefix4, prefix6: settings.prefix6, timeout: settings.timeout },
            set4: settings.set4.clone(),
            set6: settings.set6.clone(),
            known4: Known::default(),
            known6: Known::default(),
        }
    }

    fn write(&mut self, set: &str, writes: &[Write], counts: &Counts) -> Vec<Element> {
        let mut failed = Vec::new();
        for chunk in writes.chunks(BATCH_MAX) {
            match self.try_write(set, chunk) {
                Ok(errors) => {
                    counts.done.add((chunk.len() - errors.len()) as u64);
                    for (element, errno) in errors {
                        counts.fail(&refusal(set, errno));
                        failed.push(element);
                    }
                }
                Err(error) => {
                    self.filter = None;
                    failed.extend(chunk.iter().map(|write| write.element));
                    chunk.iter().for_each(|_| counts.fail(&EffectError::io(&error)));
                }
            }
        }
        failed
    }

    /// Returns the elements that were refused.
    fn try_write(&mut self, set: &str, writes: &[Write]) -> io::Result<Vec<(Element, i32)>> {
        let filter = match &mut self.filter {
            Some(filter) => filter,
            slot @ None => slot.insert(Filter::open()?),
        };
        let mut request = filter.request();
        let first = request.next();
        let mut last = first;
        for write in writes {
            last = add(&mut request, set, write);
        }
        // Refused as the first of many, the others are carried out all the same: one at a time says
        // which.
        let answer = filter.send(&request, last)?;
        if answer.refusal().is_none() || writes.len() == 1 {
            let refused = answer.refusal().and_then(|refusal| Some((writes.first()?.element, refusal.errno)));
            return Ok(refused.into_iter().collect());
        }
        let mut failed = Vec::new();
        for write in writes {
            let mut request = filter.request();
            let number = add(&mut request, set, write);
            if let Some(refusal) = filter.send(&request, number)?.refusal() {
                failed.push((write.element, refusal.errno));
            }
        }
        Ok(failed)
    }
}

impl Effect for IpSet {
    fn carry_out(&mut self, batch: &[Arc<Occurrence>], counts: &Counts) {
        for is_v4 in [true, false] {
            let Some(set) = (if is_v4 { self.set4.clone() } else { self.set6.clone() }) else { continue };
            let known = if is_v4 { &mut self.known4 } else { &mut self.known6 };
            let wants = |address: IpAddr| address.is_ipv4() == is_v4;
            let writes = known.writes(&self.shape, batch.iter().map(AsRef::as_ref), wants, Instant::now());
            let failed = self.write(&set, &writes, counts);
            let known = if is_v4 { &mut self.known4 } else { &mut self.known6 };
            failed.iter().for_each(|element| known.forget(element));
        }
    }
}

/// Writes the request for one element.
fn add(request: &mut Request, set: &str, write: &Write) -> u32 {
    let (family, address, full) = match write.element.address {
        IpAddr::V4(_) => (libc::AF_INET, 1, 32),
        IpAddr::V6(_) => (libc::AF_INET6, 2, 128),
    };
    request.message(ADD, REQUEST, family as u8, 0, |attributes| {
        attributes.put(1, &[PROTOCOL]);
        attributes.text(2, set);
        attributes.nested(7, |data| {
            data.nested(1, |ip| ip.put(address | NET_ORDER, &write.element.first()));
            if write.element.prefix < full {
                data.put(3, &[write.element.prefix]);
            }
            if let Some(timeout) = write.timeout {
                data.put(6 | NET_ORDER, &seconds(timeout).to_be_bytes());
            }
        });
    })
}

/// Whole seconds, at least one: none would mean for ever.
fn seconds(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX).max(1)
}

/// Says what the kernel means; numbers from 4096 on are ipset's own (`enum ipset_errno`).
fn refusal(set: &str, errno: i32) -> EffectError {
    EffectError::refused(match errno {
        libc::ENOENT => format!("there is no set \"{set}\""),
        4104 | 4105 => format!("the set \"{set}\" does not hold networks"),
        4106 | 4109 | 4110 => format!("the set \"{set}\" holds addresses of the other family"),
        4107 => format!("the set \"{set}\" was made without timeouts"),
        4352 => format!("the set \"{set}\" is full"),
        4096.. => format!("the set \"{set}\" refuses it with code {errno}"),
        errno => return EffectError::io(&io::Error::from_raw_os_error(errno)),
    })
}
