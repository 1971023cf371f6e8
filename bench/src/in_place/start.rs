//! From the start of a server to its first validated answer, with the files of Debian's package, on
//! a simulated internet in a network namespace.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use testkit::world::{HOSTS, Options, World};
use wire::Flags;

use super::{Arguments, Figure, PATIENCE, SIDES, Side, own_directory, question, spawn, until, write};
use crate::probe;
use crate::process::Server;
use crate::queries::Extras;
use crate::world::namespace::Namespace;

/// The files of the package, as tests have them.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/unbound/debian/root");
/// Top-level domains and zones: a server asks as many as it needs for one name.
const TLDS: u32 = 20;
const ZONES: u32 = 400;
const SEED: u64 = 20_261_127;
/// Where a server answers: the namespace is its own.
const PORT: u16 = 5353;

pub(super) fn measure(arguments: &Arguments, directory: &Path) -> Result<Vec<Figure>, String> {
    let options = Options { seed: SEED, tlds: TLDS, zones: ZONES, signed: 1_000, ..Options::default() };
    let world = World::new(options);
    let namespace = Namespace::new()?;
    let _inside = namespace.enter()?;
    let _internet = serve(arguments, directory)?;
    let mut time = Figure::new("start to validated answer", "ms");
    for round in 0..arguments.rounds {
        for side in SIDES {
            let own = own_directory(directory, side)?;
            lay_out(&own, directory)?;
            // A zone that nobody has asked for: what is signed once is kept by the internet.
            let zone = world.zone_text((2 * round + usize::from(side == Side::Gannet)) as u32 % ZONES);
            let ask = question(&format!("{}.{zone}", HOSTS[0]));
            let extras = Extras { wants_verdict: true, edns_size: Some(1232), ..Extras::default() };
            let begun = Instant::now();
            let mut server = spawn(arguments, side, &own)?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
            let is_validated =
                |heard: &probe::Heard| heard.flags().has(Flags::AD) && !heard.addresses.is_empty();
            let took = until(&mut server, address, (&ask, extras), &is_validated, begun)?;
            time.add(side, took.as_secs_f64() * 1e3);
        }
    }
    Ok(vec![time])
}

/// Serves the internet in this namespace, its hints and its anchor in `directory`.
fn serve(arguments: &Arguments, directory: &Path) -> Result<Server, String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot find this tool itself: {error}"))?;
    let mut command = Command::new(this);
    command.arg("world").arg("--write").arg(directory);
    for (name, value) in [
        ("--seed", SEED.to_string()),
        ("--tlds", TLDS.to_string()),
        ("--zones", ZONES.to_string()),
        ("--signed", "1000".to_owned()),
        ("--prepare", "1".to_owned()),
    ] {
        command.args([name, &value]);
    }
    // Not where the servers are.
    let core = usize::from(arguments.cores.contains(&0));
    let mut server = Server::start(command, &[core], &directory.join("internet.log"))?;
    let begun = Instant::now();
    while probe::world_kinds(Namespace::control()).is_err() {
        if let Some(obituary) = server.obituary() {
            return Err(format!("the internet {obituary}"));
        }
        if begun.elapsed() > PATIENCE {
            return Err("the internet does not answer".to_owned());
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    Ok(server)
}

/// Lays the package's files into a directory: paths lead there, the root is that of the internet,
/// and one more file says where to answer.
fn lay_out(own: &Path, internet: &Path) -> Result<(), String> {
    let here = own.display().to_string();
    let moved = |from: &Path, to: &Path| {
        let text = fs::read_to_string(from).map_err(|error| format!("{}: {error}", from.display()))?;
        write(
            to,
            &text
                .replace("/etc/unbound/", &format!("{here}/"))
                .replace("/var/lib/unbound/", &format!("{here}/"))
                .replace("/run/", &format!("{here}/")),
        )
    };
    let tree = PathBuf::from(TREE).join("etc/unbound");
    let parts = own.join("unbound.conf.d");
    fs::create_dir_all(&parts).map_err(|error| format!("{}: {error}", parts.display()))?;
    moved(&tree.join("unbound.conf"), &own.join("unbound.conf"))?;
    let found = fs::read_dir(tree.join("unbound.conf.d")).map_err(|error| format!("{TREE}: {error}"))?;
    for entry in found.flatten() {
        moved(&entry.path(), &parts.join(entry.file_name()))?;
    }
    let anchor = fs::read_to_string(internet.join("root.ds")).map_err(|error| format!("root.ds: {error}"))?;
    write(&own.join("root.key"), &anchor)?;
    write(
        &parts.join("here.conf"),
        &format!(
            "server:\n interface: 127.0.0.1@{PORT}\n root-hints: \"{}\"\n username: \"\"\n chroot: \"\"\n \
             directory: \"{here}\"\n pidfile: \"{here}/unbound.pid\"\n do-not-query-localhost: no\n use-syslog: no\n",
            internet.join("root.hints").display()
        ),
    )
}
