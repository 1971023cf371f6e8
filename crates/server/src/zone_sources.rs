//! Where zones come from that are not here: the addresses of hosts, found by the server itself, and
//! files on web servers.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::zones::{Elsewhere, Validators, WebFile, WebReply};
use cache::Security;
use driver::Probing;
use jobs::web;
use tracing::debug;
use wire::{Name, NameBuf, Rtype, Section};

use crate::anchors::Prober;
use crate::lock;

/// The resolver that hosts are looked up with, if it runs.
const RESOLVER: &str = "default";
/// Addresses of one host that are tried.
const ADDRESSES_MAX: usize = 16;

/// For how long what was found of a host is used again: many zones may come from one.
const KEPT: Duration = Duration::from_secs(10);
/// Hosts of which that is kept.
const HOSTS_MAX: usize = 256;

/// What was found of a host: its addresses, or why they are not known.
type Found = Result<Vec<IpAddr>, String>;

/// Fetches files from web servers, and looks up hosts.
pub(crate) struct ZoneSources(Arc<HostTable>);

/// Looks up hosts with the resolver, if there is one, else as those of web servers with lists are.
struct HostTable {
    prober: Arc<Prober>,
    /// What was found of late. Held while a host is looked up: one at a time.
    found: Mutex<HashMap<Vec<u8>, (Instant, Found)>>,
}

impl ZoneSources {
    pub(crate) fn new(prober: Arc<Prober>) -> Self {
        Self(Arc::new(HostTable { prober, found: Mutex::default() }))
    }
}

impl ZoneSources {
    /// Returns what finds web servers.
    pub(crate) fn hosts(&self) -> Arc<dyn web::Hosts> {
        Arc::clone(&self.0) as _
    }
}

impl HostTable {
    fn look_up(&self, host: NameBuf) -> Found {
        let Some(resolver) = self.prober.tables.plan_of(RESOLVER) else {
            return self.prober.orders.addresses(&host);
        };
        let mut found = Vec::new();
        let mut trouble = "it has none".to_owned();
        for rtype in [Rtype::A, Rtype::AAAA] {
            let resolution = match self.prober.ask(&resolver, (host, rtype), Probing::Checked) {
                Ok(resolution) if resolution.security != Security::Bogus => resolution,
                Ok(_) => {
                    trouble = "what is said of them is bogus".to_owned();
                    continue;
                }
                Err(why) => {
                    trouble = why;
                    continue;
                }
            };
            let records = resolution.records().filter(|record| record.section == Section::Answer);
            found.extend(records.filter_map(|record| address(record.rtype, record.rdata)));
        }
        found.truncate(ADDRESSES_MAX);
        if found.is_empty() { Err(trouble) } else { Ok(found) }
    }
}

impl HostTable {
    fn addresses(&self, host: Name<'_>) -> Found {
        let folded = host.to_folded().as_bytes().to_vec();
        let mut known = lock(&self.found);
        if let Some((at, found)) = known.get(&folded).filter(|(at, _)| at.elapsed() < KEPT) {
            debug!(%host, age_ms = at.elapsed().as_millis() as u64, "a host was looked up of late");
            return found.clone();
        }
        let found = self.look_up(host.to_buf());
        known.retain(|_, (at, _)| at.elapsed() < KEPT);
        if known.len() < HOSTS_MAX {
            known.insert(folded, (Instant::now(), found.clone()));
        }
        found
    }
}

impl Elsewhere for ZoneSources {
    fn addresses(&self, host: Name<'_>) -> Found {
        self.0.addresses(host)
    }

    fn fetch(&self, file: &WebFile<'_>) -> Result<WebReply, String> {
        let known = file.known.map(|known| web::Validators {
            etag: known.etag.clone(),
            last_modified: known.last_modified.clone(),
        });
        let (url, timeout, octets_max) = (file.url, file.patience, file.octets_max);
        let file = web::WebFile { url, known: known.as_ref(), timeout, octets_max, proves_itself: false };
        let hosts: Arc<dyn web::Hosts> = Arc::clone(&self.0) as _;
        Ok(match web::fetch(&file, &hosts)? {
            web::WebReply::Unchanged => WebReply::Unchanged,
            web::WebReply::Whole(octets, web::Validators { etag, last_modified }) => {
                WebReply::Whole(octets, Validators { etag, last_modified })
            }
        })
    }
}

impl web::Hosts for HostTable {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let name: NameBuf = host.parse().map_err(|_| "this is not a name".to_owned())?;
        self.addresses(name.as_name())
    }
}

impl fmt::Debug for HostTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTable").finish_non_exhaustive()
    }
}

/// Returns the address that a record is.
fn address(rtype: Rtype, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Rtype::A => <[u8; 4]>::try_from(rdata).ok().map(|octets| Ipv4Addr::from(octets).into()),
        Rtype::AAAA => <[u8; 16]>::try_from(rdata).ok().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}
