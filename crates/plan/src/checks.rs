//! Health checks of record targets.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use wire::{NameBuf, Rtype};

/// How something is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What records call it.
    pub name: String,
    /// What is tried.
    pub kind: CheckKind,
    /// Where.
    pub port: u16,
    /// How often.
    pub interval: Duration,
    /// How long it may take.
    pub timeout: Duration,
    /// How often in a row it must work to count as working again.
    pub rise: u32,
    /// How often in a row it must fail to count as failed.
    pub fall: u32,
}

/// Checks that are equal have equal hashes; what seldom tells them apart is not looked at.
impl Hash for Check {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.port.hash(state);
        if let CheckKind::Http { host, .. } = &self.kind {
            host.hash(state);
        }
    }
}

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// To connect.
    Tcp,
    /// To get a page.
    Http {
        /// Whether over TLS.
        is_secure: bool,
        /// Whether the certificate must be right.
        verifies: bool,
        /// The authorities that may vouch for it; `None`: those that Mozilla trusts.
        roots: Option<Arc<[CertificateDer<'static>]>>,
        /// The name of the host; empty: the owner of the record.
        host: String,
        /// The path.
        path: String,
        /// What the status may be.
        statuses: Vec<RangeInclusive<u16>>,
    },
}

/// One address of one record that is watched.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The zone.
    pub zone: NameBuf,
    /// The owner of the record.
    pub name: NameBuf,
    /// The type of the record.
    pub rtype: Rtype,
    /// Its address.
    pub address: IpAddr,
    /// How it is checked.
    pub check: Arc<Check>,
    /// The records of its alternative that do not work, a bit each; read by those who answer.
    pub down: Arc<AtomicU64>,
    /// Which of them this is.
    pub bit: u8,
}

impl Watched {
    /// Returns whether its record is left out.
    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed) >> self.bit & 1 == 1
    }

    /// Leaves its record out, or brings it back.
    pub fn set_down(&self, is_down: bool) {
        match is_down {
            true => self.down.fetch_or(1 << self.bit, Ordering::Relaxed),
            false => self.down.fetch_and(!(1 << self.bit), Ordering::Relaxed),
        };
    }
}

impl Check {
    /// Returns it with the name of the host, if that is the owner's.
    #[must_use]
    pub fn of(self: &Arc<Self>, owner: NameBuf) -> Arc<Self> {
        match &self.kind {
            CheckKind::Http { is_secure, verifies, roots, host, path, statuses } if host.is_empty() => {
                let kind = CheckKind::Http {
                    is_secure: *is_secure,
                    verifies: *verifies,
                    roots: roots.as_ref().map(Arc::clone),
                    host: owner.to_string().trim_end_matches('.').to_owned(),
                    path: path.clone(),
                    statuses: statuses.clone(),
                };
                Arc::new(Self { kind, ..Self::clone(self) })
            }
            _ => Arc::clone(self),
        }
    }
}
