//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Addresses of the hosts that records name: of servers in a referral, and beside MX, SRV, SVCB and
//! HTTPS.

use wire::{Full, Name, Rcode, Rtype, Section};

use super::{Missing, Run, Step};
use crate::block::{Block, Hosts, Rrset};
use crate::target::target_at;
use crate::zone::Zone;

/// Hosts whose addresses are looked for, so that an RRset of thousands cannot hold a worker.
const HOSTS_MAX: usize = 64;

/// Hosts whose addresses are written already.
struct Seen {
    places: [usize; HOSTS_MAX],
    count: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { places: [0; HOSTS_MAX], count: 0 }
    }
}

impl Seen {
    /// Returns whether this is the first time.
    fn add(&mut self, host: Block<'_>) -> bool {
        let place = host.address();
        if self.places.iter().take(self.count).any(|&other| other == place) {
            return false;
        }
        if let Some(free) = self.places.get_mut(self.count) {
            *free = place;
            self.count += 1;
        }
        true
    }
}

impl<'r> Run<'r, '_> {
    /// Answers with an RRset that names hosts, and with their addresses.
    #[cold]
    pub(super) fn positive_with_hosts(
        &mut self,
        zone: &'r Zone,
        name: Name<'_>,
        rrset: &Rrset<'r>,
        missing: Option<&Missing<'r, '_>>,
    ) -> Result<Step, Full> {
        let hosts = self.hosts_of(Section::Answer, name, rrset);
        self.positive(zone, name, rrset, missing)?;
        self.prove_expansions()?;
        // A referral to servers without addresses would lead nowhere.
        if rrset.rtype == Rtype::NS || !self.asked.manner.minimal {
            self.hosts(zone, rrset, hosts, name);
        }
        Ok(Step::Done(Rcode::NOERROR))
    }

    /// Refers to the servers of a zone cut (RFC 1034 §4.3.2 step 3b).
    #[cold]
    pub(super) fn refer(&mut self, zone: &'r Zone, block: Block<'r>, owner: Name<'_>) -> Result<Step, Full> {
        self.is_authoritative = false;
        let Some(servers) = block.rrset(Rtype::NS) else { return Ok(Step::Done(Rcode::SERVFAIL)) };
        let hosts = match self.expansions {
            [None, ..] => self.hosts_of(Section::Authority, owner, &servers),
            [Some(_), ..] => Hosts::new(&servers),
        };
        self.whole(|run| {
            run.prove_expansions()?;
            run.unsigned(Section::Authority, owner, &servers)?;
            if !run.asked.wants_dnssec {
                return Ok(());
            }
            match block.rrset(Rtype::DS) {
                Some(ds) if ds.signature_count > 0 => run.rrset(Section::Authority, owner, &ds),
                // Without a signature nobody believes it: the zone is not signed.
                Some(_) => Ok(()),
                None => run.prove_no_ds(zone, block, owner),
            }
        })?;
        let mut seen = Seen::default();
        // RFC 9471 §3.1: addresses of servers below the cut must all be there; those of others may.
        for is_required in [true, false] {
            for (record, place) in hosts.clone().take(HOSTS_MAX) {
                let Ok((server, _)) = Name::parse(record.rdata) else { continue };
                if !server.is_at_or_below(zone.apex()) || server.is_at_or_below(owner) != is_required {
                    continue;
                }
                let Some(host) = self.find_host(zone, server).filter(|host| seen.add(*host)) else {
                    continue;
                };
                let written = self.addresses(host, server, place);
                if is_required {
                    written?;
                }
            }
        }
        Ok(Step::Done(Rcode::NOERROR))
    }

    /// Writes the addresses of the hosts that records name; what does not fit is left out (RFC 2181
    /// §9).
    #[cold]
    pub(super) fn hosts(&mut self, zone: &'r Zone, rrset: &Rrset<'_>, hosts: Hosts<'_>, owner: Name<'_>) {
        let Some(target_at) = target_at(rrset.rtype) else { return };
        let mut seen = Seen::default();
        for (record, place) in hosts.take(HOSTS_MAX) {
            let Some(Ok((target, _))) = record.rdata.get(target_at..).map(Name::parse) else { continue };
            let is_service = matches!(rrset.rtype, Rtype::SVCB | Rtype::HTTPS);
            // RFC 9460 §2.5: a dot stands for the owner, unless it is an alias.
            let target = match (target.is_root(), is_service && !record.rdata.starts_with(&[0, 0])) {
                (true, true) => owner,
                (true, false) => continue,
                (false, _) => target,
            };
            let zone = match self.zones.certainly_in(target, zone) {
                true => Some(zone),
                false => self.zones.zone_of(target),
            };
            let zone = zone.filter(|zone| self.may_answer(Some(zone)));
            let zone = zone.filter(|zone| self.zones.admits(zone.apex(), self.asked.from));
            let found = zone.and_then(|zone| self.find_host(zone, target));
            if let Some(host) = found.filter(|host| seen.add(*host)) {
                // RFC 9460 §4.1: what an alias names has records of the same type.
                if is_service
                    && record.rdata.starts_with(&[0, 0])
                    && let Some(service) = host.rrset(rrset.rtype)
                {
                    let _ = self.rrset(Section::Additional, target, &service);
                }
                let _ = self.addresses(host, target, place);
            }
        }
    }

    /// Walks the hosts of an RRset that is written next.
    pub(super) fn hosts_of<'z>(&self, section: Section, owner: Name<'_>, rrset: &Rrset<'z>) -> Hosts<'z> {
        match self.cuts_of(section, owner, rrset) {
            Some((cuts, above)) => Hosts::cut(rrset, &cuts, above, self.writer.len()),
            None => Hosts::new(rrset),
        }
    }

    /// Writes a host's addresses to the additional section; `place` is where its name is in the
    /// message, if that is known.
    fn addresses(&mut self, host: Block<'_>, name: Name<'_>, place: Option<u16>) -> Result<(), Full> {
        for rtype in [Rtype::A, Rtype::AAAA] {
            if let Some(rrset) = host.rrset(rtype) {
                match place {
                    Some(place) => self.under(Section::Additional, &rrset, place)?,
                    None => self.rrset(Section::Additional, name, &rrset)?,
                }
            }
        }
        Ok(())
    }
}
