//! The programs that tests call and cargo does not bring: real DNS clients and servers, and what counts instructions.

use crate::run::{is_installed, output, run};
use std::process::Command;

/// A program and the Debian package that has it.
const TOOLS: [(&str, &str); 11] = [
    ("dig", "bind9-dnsutils"),
    ("delv", "bind9-dnsutils"),
    ("dnssec-verify", "bind9-utils"),
    ("ldns-verify-zone", "ldnsutils"),
    ("kdig", "knot-dnsutils"),
    ("dnsperf", "dnsperf"),
    ("valgrind", "valgrind"),
    ("dnsdist", "dnsdist"),
    ("unbound", "unbound"),
    ("kresd", "knot-resolver"),
    ("curl", "curl"),
];

/// Installs what is missing, if it may; otherwise the error says what to install.
pub(crate) fn install_missing() -> Result<(), String> {
    let missing: Vec<_> = TOOLS.into_iter().filter(|(program, _)| !is_installed(program)).collect();
    if missing.is_empty() {
        println!("{} are installed", TOOLS.map(|(program, _)| program).join(", "));
        return Ok(());
    }
    let programs: Vec<_> = missing.iter().map(|&(program, _)| program).collect();
    let packages: Vec<_> = missing.iter().map(|&(_, package)| package).collect();
    let by_hand = format!(
        "the tests call {}, which this machine lacks; install by hand: {}",
        programs.join(", "),
        packages.join(" ")
    );
    if !is_installed("apt-get") {
        return Err(format!("{by_hand} (no apt-get here to do it)"));
    }
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
    let may_sudo = || is_installed("sudo") && output(Command::new("sudo").args(["-n", "true"])).is_ok();
    if !is_root && !may_sudo() {
        return Err(format!("{by_hand} (neither root nor sudo without a password)"));
    }
    println!("installing {}", packages.join(" "));
    let apt = |arguments: &[&str]| {
        let mut command = if is_root {
            Command::new("apt-get")
        } else {
            let mut sudo = Command::new("sudo");
            sudo.args(["-n", "apt-get"]);
            sudo
        };
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-q", "-o", "Acquire::Retries=3"])
            .args(arguments);
        run(&mut command)
    };
    let install = || {
        let mut arguments = vec!["install", "-y", "--no-install-recommends"];
        arguments.extend(&packages);
        apt(&arguments)
    };
    // The lists may be absent or old: fetch them, and try what is there if that fails.
    apt(&["update"])
        .and_then(|()| install())
        .or_else(|_| install())
        .map_err(|why| format!("{by_hand} ({why})"))
}
