//! Counts what the hot path costs in instructions: the same on every run, however busy the machine is.

use crate::run::{cargo, is_installed, output, root, run};
use std::process::Command;

/// Runs of a case in the shorter of the two measurements; the longer has twice as many.
const TIMES: u64 = 2000;

/// Prints the instructions of one query for every case of the engine's `instructions` example.
pub(crate) fn instructions() -> Result<(), String> {
    if !is_installed("valgrind") {
        return Err("valgrind is not installed: `apt-get install valgrind`".to_string());
    }
    run(&mut cargo(["build", "--release", "--package", "gannet-engine", "--example", "instructions"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let program = target.join("release/examples/instructions");
    let cases = output(&mut Command::new(&program))?;
    println!("instructions a query:");
    for case in cases.lines() {
        let count = |times: u64| {
            let mut command = Command::new("valgrind");
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            command.arg(&program).arg(case).arg(times.to_string());
            let done = command.output().map_err(|error| format!("valgrind: {error}"))?;
            let said = String::from_utf8_lossy(&done.stderr);
            collected(&said).ok_or_else(|| format!("valgrind did not say how many: {said}"))
        };
        let each = (count(2 * TIMES)? - count(TIMES)?) / TIMES;
        println!("  {case:<16} {each:>6}");
    }
    Ok(())
}

/// Finds the total in what callgrind says at its end.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        assert_eq!(collected("==1== \n==1== Events    : Ir\n==1== Collected : 123456\n"), Some(123_456));
        assert_eq!(collected("==1== aborted"), None);
    }
}
