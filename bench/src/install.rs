//! Fetches rivals and tools, and only when asked to.
//!
//! Never starts what it installs: Debian's packages of name servers begin to serve on port 53
//! unless told not to. Never replaces what the system has: the newest releases are unpacked into a
//! directory of their own, with their own libraries.

mod newest;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rival::{Install, Rival};

/// Programs that make load or change records, and their Debian packages.
const TOOLS: [(&str, &str); 2] = [("dnsperf", "dnsperf"), ("kxdpgun", "knot-dnsutils")];
/// Asked by Debian's packages whether a service may be started.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// The answer "no, and that is no error" (invoke-rc.d, "policy-rc.d interface").
const REFUSAL: &str =
    "#!/bin/sh\n# Written by gannet-bench while it installs; services are not to start.\nexit 101\n";

/// Installs the load generators that are missing.
pub fn install_tools() -> Result<(), String> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| !is_installed(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { apt(&missing) }
}

/// Installs `rival` into `programs` unless it is there: the newest release that Debian has, a Go
/// module or a crate at its pinned version. Where the system's own package is named, that is
/// installed, unless the program is found.
pub fn install(rival: &Rival, programs: &Path) -> Result<(), String> {
    let Install { debian, system, go: module, cargo: package } = &rival.install;
    let is_known = rival.find(&[]).is_ok();
    if let (Some(system), false) = (system, is_known) {
        return apt(&[system]);
    }
    fs::create_dir_all(programs).map_err(|error| format!("{}: {error}", programs.display()))?;
    let program = programs.join(&rival.program);
    let program = std::path::absolute(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    if program.exists() {
        return Ok(());
    }
    match (debian, module, package) {
        (Some(package), ..) => newest::install(package, program.parent().unwrap_or(programs)),
        (None, Some(module), _) => go(module, &program),
        (None, None, Some(package)) => cargo(package, &program),
        (None, None, None) if is_known => Ok(()),
        (None, None, None) => Err("its file does not say where it comes from".to_owned()),
    }
}

/// Installs Debian packages without starting services.
fn apt(packages: &[&str]) -> Result<(), String> {
    let policy =
        Policy::set().map_err(|error| format!("{POLICY}: {error} (root is needed to install packages)"))?;
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-o", "Acquire::Retries=3"]);
        run(command.args(arguments))
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    // The lists may be absent or old: fetch them, and try again.
    let result = apt_get(&install).or_else(|_| apt_get(&["update"]).and_then(|()| apt_get(&install)));
    drop(policy);
    result
}

/// The refusal to start services, as long as this lives; a policy that exists is left as it is.
struct Policy {
    is_ours: bool,
}

impl Policy {
    fn set() -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY);
        match file {
            Ok(mut file) => {
                io::Write::write_all(&mut file, REFUSAL.as_bytes())?;
                Ok(Self { is_ours: true })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Self { is_ours: false }),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.is_ours {
            // If it cannot be removed, services stay off, which harms nobody.
            let _ = fs::remove_file(POLICY);
        }
    }
}

/// Builds a module in Go's cache as it was released; `go install` would refuse one with replaced
/// dependencies.
fn go(module: &str, program: &Path) -> Result<(), String> {
    let output = Command::new("go").args(["mod", "download", "-json", module]).output();
    let output = output.map_err(|error| format!("cannot start go: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let source = text.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    let source = source.ok_or_else(|| format!("go mod download {module}: {}", text.trim()))?;
    let version = module.rsplit_once('@').map_or("", |(_, version)| version);
    let mut command = Command::new("go");
    command.current_dir(source).env("CGO_ENABLED", "0");
    command.args(["build", "-trimpath", "-ldflags", &format!("-s -w -X main.version={version}"), "-o"]);
    run(command.arg(program).arg("."))
}

/// Builds a crate with the versions of its dependencies that it was released with.
fn cargo(package: &str, program: &Path) -> Result<(), String> {
    // cargo puts programs into `bin` below its root; ours go where the others are.
    let scratch = env::temp_dir().join(format!("gannet-bench-cargo-{}", std::process::id()));
    let mut command = Command::new("cargo");
    command.args(["install", "--locked", "--no-track", "--root"]).arg(&scratch).arg(package);
    let name: PathBuf = program.file_name().map(PathBuf::from).unwrap_or_default();
    let result = run(&mut command).and_then(|()| {
        let built = scratch.join("bin").join(name);
        fs::copy(&built, program).map(|_| ()).map_err(|error| format!("{}: {error}", built.display()))
    });
    let _ = fs::remove_dir_all(&scratch);
    result
}

/// Returns whether `program` is in PATH or where Debian keeps servers.
fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(system).any(|directory| directory.join(program).is_file())
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{} {status}", command.get_program().display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_without_a_source_says_so() {
        let text = "name = \"x\"\nprogram = \"x\"\nabout = \"\"\nstart = []\n[settings]\n";
        let rival: Rival = toml::from_str(text).expect("a rival's file");
        let programs = env::temp_dir().join(format!("gannet-bench-install-{}", std::process::id()));
        let fault = install(&rival, &programs).unwrap_err();
        fs::remove_dir_all(&programs).expect("was made");
        assert!(fault.contains("where it comes from"), "{fault}");
    }

    #[test]
    fn a_program_that_is_there_is_not_fetched_again() {
        let text = "name = \"x\"\nprogram = \"x\"\nabout = \"\"\nstart = []\ninstall.go = \"nowhere.example/x@v1\"\n";
        let rival: Rival = toml::from_str(text).expect("a rival's file");
        let programs = env::temp_dir().join(format!("gannet-bench-there-{}", std::process::id()));
        fs::create_dir_all(&programs).expect("a writable directory");
        fs::write(programs.join("x"), "").expect("a writable directory");
        let result = install(&rival, &programs);
        fs::remove_dir_all(&programs).expect("was made");
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(is_installed("sh") && !is_installed("no-such-program"));
    }
}
