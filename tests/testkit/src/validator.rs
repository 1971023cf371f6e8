//! BIND's validator, which trusts the keys that it is told.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::program::Server;

/// The file in a server's directory that has what its validator trusts.
const ANCHOR: &str = "anchor";

/// Returns all that a program said.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the DS records of DNSKEY records in text, as `dnssec-dsfromkey` makes them, or what it
/// has against these; `directory` is where it may write.
///
/// # Panics
///
/// When it is not installed.
pub fn ds_of_keys(directory: &Path, zone: &str, keys: &str) -> Result<String, String> {
    std::fs::write(directory.join("dnskey"), format!("{keys}\n")).expect("writable");
    let mut command = Command::new("dnssec-dsfromkey");
    let output = command.args(["-2", "-f", "dnskey", zone]).current_dir(directory).output();
    let output = output.expect("dnssec-dsfromkey runs");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(said(&output)),
    }
}

/// Writes what `delv` trusts to a server's directory: DS records in text.
///
/// # Panics
///
/// When it cannot be written.
pub fn write_anchor(directory: &Path, zone: &str, ds: &str) {
    let mut text = String::from("trust-anchors {\n");
    for line in ds.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "IN", "DS", tag, algorithm, digest, ref hash @ ..] = words[..] else { continue };
        let _ = writeln!(text, "  {zone}. static-ds {tag} {algorithm} {digest} \"{}\";", hash.concat());
    }
    text.push_str("};\n");
    std::fs::write(directory.join(ANCHOR), text).expect("writable");
}

impl Server {
    /// Runs `delv` against it, which trusts what [`write_anchor`] wrote of the zone, and returns
    /// all that it said.
    ///
    /// # Panics
    ///
    /// When it is not installed.
    pub fn delv(&self, zone: &str, name: &str, rtype: &str) -> String {
        let address = self.address();
        let (at, port) = (format!("@{}", address.ip()), address.port().to_string());
        let root = format!("+root={zone}");
        let arguments = [&at, "-p", &port, "-a", ANCHOR, &root, name, rtype];
        said(&Command::new("delv").args(arguments).current_dir(self.directory()).output().expect("delv runs"))
    }
}
