//! What Unbound says, for programs that wait for it.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// What it does to a query, by the names of its modules.
const MODULES: &str = "respip dns64 validator iterator";

/// Returns what `-V` prints.
pub(super) fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("Version {version} (gannet, in the place of unbound)\n\nLinked modules: {MODULES}\n")
}

/// Says that clients are answered from now on: service managers and tests wait for this line.
pub(super) fn tell_start() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (process, version) = (std::process::id(), env!("CARGO_PKG_VERSION"));
    let line = format!("[{since}] unbound[{process}:0] info: start of service (gannet {version}).");
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
