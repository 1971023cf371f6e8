//! Release archives: the program, its manual pages, completions and units, with a bill of materials
//! and checksums beside them.

use super::{Tree, bill, version};
use crate::run::{output, run, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine that xtask runs on.
pub(super) const HERE: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// What Linux calls the machines that archives are made for.
const MACHINES: [(&str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "x86_64"), ("aarch64-unknown-linux-gnu", "aarch64")];

/// Makes the archive of `program`, built for `triple`, and returns it, its bill of materials and
/// the file of checksums. `printer` is the program of this machine that prints manual pages.
pub(super) fn make(program: &Path, printer: &Path, triple: &str) -> Result<Vec<PathBuf>, String> {
    let name = format!("gannet-{}-linux-{}", version()?, machine(triple)?);
    let tree = Tree::begin(&name, "share/doc/gannet")?;
    tree.copy(program, "bin/gannet", 0o755)?;
    tree.add_what_it_prints(printer, "share")?;
    tree.add_units("lib")?;
    let folder = target().join("package");
    let archive = folder.join(format!("{name}.tar.gz"));
    pack(&folder, &name, &archive)?;
    let materials = folder.join(format!("{name}.cdx.json"));
    let text = bill::of_materials(triple, &version()?)?;
    fs::write(&materials, text).map_err(|error| format!("{}: {error}", materials.display()))?;
    let sums = folder.join(format!("{name}.sha256"));
    let files = [archive, materials];
    fs::write(&sums, checksums(&folder, &files)?).map_err(|error| format!("{}: {error}", sums.display()))?;
    let [archive, materials] = files;
    Ok(vec![archive, materials, sums])
}

/// Returns what Linux calls the machine of a target.
pub(super) fn machine(triple: &str) -> Result<&'static str, String> {
    let machine = MACHINES.iter().find(|(known, _)| *known == triple).map(|&(_, machine)| machine);
    machine.ok_or_else(|| {
        let known: Vec<_> = MACHINES.iter().map(|(known, _)| *known).collect();
        format!("no archive is made for {triple}, only for {}", known.join(", "))
    })
}

/// Packs a folder, the same octets from the same files.
fn pack(folder: &Path, name: &str, archive: &Path) -> Result<(), String> {
    let mut command = Command::new("tar");
    command.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    command.arg(format!("--mtime=@{}", committed()?)).args(["--use-compress-program", "gzip -9 -n"]);
    run(command.arg("--file").arg(archive).arg("--directory").arg(folder).arg(name))
}

/// Returns when the source was committed, in seconds since 1970; without a repository, 1980, the
/// first year that every archive format knows.
fn committed() -> Result<u64, String> {
    let mut git = Command::new("git");
    git.current_dir(crate::run::root()).args(["log", "-1", "--format=%ct"]);
    match output(&mut git) {
        Ok(seconds) => seconds.trim().parse().map_err(|_| format!("git says {seconds:?} of the last commit")),
        Err(_) => Ok(315_532_800),
    }
}

/// Returns a line for each file, as `sha256sum --check` reads it in their folder.
fn checksums(folder: &Path, files: &[PathBuf]) -> Result<String, String> {
    let names = files.iter().filter_map(|file| file.file_name());
    output(Command::new("sha256sum").current_dir(folder).args(names))
}
