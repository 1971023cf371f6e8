//! Debian packages that tests read files of, and that would change this machine if they were
//! installed: they are unpacked only.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{is_installed, output, run};

/// Who gives name servers to a resolver: Debian's resolvconf, the other program of that name, and
/// two clients of DHCP with their hooks.
const PACKAGES: [&str; 4] = ["resolvconf", "openresolv", "isc-dhcp-client", "dhcpcd-base"];

/// Unpacks each package into a folder of its name below `place`, unless it is there. A package that
/// cannot be had is named, and its tests are skipped: Debian may have it no more.
pub(super) fn unpack(place: &Path) -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES.into_iter().filter(|name| !place.join(name).is_dir()).collect();
    if missing.is_empty() {
        println!("files of {} are in {}", PACKAGES.join(", "), place.display());
        return Ok(());
    }
    if !is_installed("apt-get") {
        println!("no files of {}, whose tests are skipped: apt-get is not installed", missing.join(", "));
        return Ok(());
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", place.display());
    let arrived = place.join("arrived");
    if arrived.exists() {
        fs::remove_dir_all(&arrived).map_err(wrong)?;
    }
    fs::create_dir_all(&arrived).map_err(wrong)?;
    // What is downloaded by root, root may read: nobody else has to.
    let options = ["-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download"];
    let download = |name: &&str| run(Command::new("apt-get").current_dir(&arrived).args(options).arg(name));
    let absent: Vec<&str> = missing.iter().copied().filter(|name| download(name).is_err()).collect();
    if !absent.is_empty() {
        // The lists may be absent or old. Only root may renew them.
        if let Err(why) = output(Command::new("apt-get").args(["-q", "update"])) {
            println!("the lists of packages are as they were: {why}");
        }
        for name in absent {
            if let Err(why) = download(&name) {
                println!("no files of {name}, whose tests are skipped: {why}");
            }
        }
    }
    for file in fs::read_dir(&arrived).map_err(wrong)? {
        let file = file.map_err(wrong)?.path();
        // NAME_VERSION_ARCHITECTURE.deb
        let name = file.file_name().and_then(|name| name.to_str()?.split('_').next());
        let name = name.ok_or_else(|| format!("{} is no package", file.display()))?;
        // A folder that is there is complete.
        let half = arrived.join(name);
        run(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(&half))?;
        fs::rename(&half, place.join(name)).map_err(wrong)?;
    }
    fs::remove_dir_all(&arrived).map_err(wrong)
}
