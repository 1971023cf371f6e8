//! Versions from other servers are written to a master file, for people and other programs, and the
//! first one is read from there.

use std::fmt::Write as _;
use std::fs::{File, rename};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use tracing::{info, warn};
use wire::HashKey;
use zone::Zone;

use crate::journal::Found;
use crate::load::LoadedZone;
use crate::lock::lock;
use crate::managed::{ManagedZone, is_taken};

/// How long a zone's file is left alone after it was written, in times of what writing took: it
/// takes a hundredth of a processor at most.
const COPY_PAUSE: u32 = 100;

/// When a zone's file is written.
pub(crate) struct Copying {
    not_before: Instant,
    /// When it is, if there is a version that it does not have.
    due: Option<Instant>,
}

impl Default for Copying {
    fn default() -> Self {
        Self { not_before: Instant::now(), due: None }
    }
}

impl ManagedZone {
    /// Takes the zone's file for its first version, if it comes from other servers and none was
    /// kept: another program may have written it.
    pub(crate) fn first_version(found: Found, loaded: &LoadedZone, key: HashKey, now: u64) -> Found {
        let plan = &loaded.plan;
        let Some(path) = plan.copy.as_ref().filter(|_| plan.is_secondary()) else { return found };
        let modified = std::fs::metadata(path).and_then(|facts| facts.modified());
        let Ok(modified) = modified else { return found };
        let text = std::fs::read(path).map_err(|error| error.to_string());
        let apex = plan.apex.as_name();
        let zone = text.and_then(|text| zone::receive(apex, &text, key).map_err(|why| why.to_string()));
        match zone {
            Ok(zone) if is_taken(&zone, loaded) => {
                let serial = zone.facts().serial;
                info!(zone = %plan.apex, file = %path.display(), serial, "the first version is that of the file");
                // It is as old as its file: that counts for EXPIRE.
                let since = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                Found { zone: Some(Arc::new(zone)), refreshed_at: since.min(now), ..found }
            }
            Ok(_) => found,
            Err(why) => {
                warn!(zone = %plan.apex, file = %path.display(), why, "the zone's file is not read");
                found
            }
        }
    }

    /// Writes the current version to the zone's file, if there is to be one; of a large zone that
    /// changes all the time, not each version.
    pub(crate) fn write_copy(&self) {
        let now = Instant::now();
        let mut copying = lock(&self.copying);
        if now < copying.not_before {
            copying.due = Some(copying.not_before);
            return;
        }
        copying.due = None;
        drop(copying);
        let loaded = self.loaded();
        let Some(path) = &loaded.plan.copy else { return };
        let Some(zone) = lock(&self.current).zone.clone() else { return };
        if let Err(error) = write(path, &zone) {
            warn!(zone = %self.apex, file = %path.display(), %error, "the zone cannot be written to its file");
        }
        lock(&self.copying).not_before = Instant::now() + now.elapsed() * COPY_PAUSE;
    }

    /// Returns when the zone's file is to be written that was not for the last version.
    pub(crate) fn copy_due(&self) -> Option<Instant> {
        lock(&self.copying).due
    }
}

/// Writes a zone, one record a line; whoever reads the file meanwhile reads the version before.
fn write(path: &Path, zone: &Zone) -> io::Result<()> {
    let mut text = String::new();
    zone.for_each_record(|owner, rtype, ttl, rdata| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        // A text takes what is written.
        let _ = writeln!(text, "{owner}\t{}\tIN\t{rtype}\t{data}", ttl.seconds());
    });
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    rename(&new, path)
}
