//! Versions from other servers are written to a master file, for people and other programs.

use std::fmt::Write as _;
use std::fs::{File, rename};
use std::io::{self, Write as _};
use std::path::Path;

use tracing::warn;
use zone::Zone;

use crate::lock::lock;
use crate::managed::ManagedZone;

impl ManagedZone {
    /// Writes the current version to the zone's file, if there is to be one.
    pub(crate) fn write_copy(&self) {
        let loaded = self.loaded();
        let Some(path) = &loaded.plan.copy else { return };
        let Some(zone) = lock(&self.current).zone.clone() else { return };
        if let Err(error) = write(path, &zone) {
            warn!(zone = %self.apex, file = %path.display(), %error, "the zone cannot be written to its file");
        }
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
