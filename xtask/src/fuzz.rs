//! Builds and runs the targets of `fuzz/` with libFuzzer, on the stable toolchain.

use crate::run::{cargo, output, root, run};
use std::path::PathBuf;
use std::process::Command;

/// Executions per target when nobody says otherwise: seconds, not hours.
const EXECUTIONS: u64 = 100_000;

/// Octets of the longest input: more than any message that arrives whole in a datagram, and a quick
/// one still.
const INPUT_OCTETS_MAX: u32 = 4096;

/// The same for a configuration, which takes longer to read: room for some dozen settings.
const CONFIG_OCTETS_MAX: u32 = 1280;

/// Lines shown of what a failed target said.
const LINES_OF_FAILURE: usize = 60;

/// What `cargo fuzz` passes as well: coverage for libFuzzer.
/// The sanitizers need a nightly toolchain; safe code gains little from them.
const FLAGS: &str = "--cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares -C codegen-units=1";

/// Runs all targets, or those named, that many times each.
pub(crate) fn fuzz(arguments: &[String]) -> Result<(), String> {
    let request = Request::parse(arguments)?;
    let all = targets(&manifest()?);
    for name in &request.targets {
        if !all.contains(name) {
            return Err(format!("no fuzz target `{name}`; there are: {}", all.join(", ")));
        }
    }
    let chosen = if request.targets.is_empty() { all } else { request.targets };
    let directory = build()?;
    for name in &chosen {
        println!("{name}: {} executions", request.executions);
        start(&directory, name, request.executions)?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    executions: u64,
    targets: Vec<String>,
}

impl Request {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { executions: EXECUTIONS, targets: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--executions" {
                let number = arguments.next().map(|number| number.replace('_', ""));
                let parsed = number.as_deref().unwrap_or("").parse();
                request.executions = parsed.map_err(|_| "`--executions` needs a whole number".to_string())?;
            } else if argument.starts_with('-') {
                return Err(format!("`fuzz` takes no `{argument}`"));
            } else {
                request.targets.push(argument.clone());
            }
        }
        Ok(request)
    }
}

fn manifest() -> Result<String, String> {
    std::fs::read_to_string(root().join("fuzz/Cargo.toml"))
        .map_err(|error| format!("fuzz/Cargo.toml: {error}"))
}

/// Returns the names of the programs in a manifest.
fn targets(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    for section in manifest.split("[[bin]]").skip(1) {
        let section = section.split("\n[").next().unwrap_or("");
        let name = section.lines().find_map(|line| line.strip_prefix("name = "));
        names.extend(name.map(|name| name.trim_matches(['"', ' ']).to_string()));
    }
    names
}

/// Builds all targets and returns where they are.
fn build() -> Result<PathBuf, String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say what it builds for")?;
    let target_directory =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let target_directory = target_directory.join("fuzz");
    // Naming the target keeps the flags away from build scripts.
    let mut build =
        cargo(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host, "--target-dir"]);
    run(build.arg(&target_directory).env("RUSTFLAGS", FLAGS))?;
    Ok(target_directory.join(host).join("release"))
}

/// Runs one target, first over its seeds; zero executions mean these alone.
fn start(programs: &std::path::Path, name: &str, executions: u64) -> Result<(), String> {
    let seeds = root().join("fuzz/seeds").join(name);
    let corpus = root().join("fuzz/corpus").join(name);
    let artifacts = root().join("fuzz/artifacts").join(name);
    for directory in [&corpus, &artifacts] {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let mut command = Command::new(programs.join(name));
    command.current_dir(root().join("fuzz"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let octets_max = if name == "config" { CONFIG_OCTETS_MAX } else { INPUT_OCTETS_MAX };
    command.args([format!("-runs={executions}"), format!("-max_len={octets_max}")]);
    command.args(["-timeout=5", "-verbosity=0", "-print_final_stats=1"]);
    // The first directory receives what is found; seeds are only read.
    if executions > 0 {
        command.arg(&corpus);
    }
    if seeds.is_dir() {
        command.arg(&seeds);
    }
    // libFuzzer has much to say; of interest is how fast it was, or, if it failed, the end.
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        for line in said.lines().filter(|line| line.contains("exec_per_sec") || line.contains("units_added"))
        {
            println!("  {line}");
        }
        return Ok(());
    }
    let lines: Vec<_> = said.lines().collect();
    let last = lines.len().saturating_sub(LINES_OF_FAILURE);
    println!("{}", lines.get(last..).unwrap_or(&[]).join("\n"));
    Err(format!("{name} ended with {}; the input is in {}", output.status, artifacts.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_programs_of_the_manifest() {
        let manifest = "[package]\nname = \"a\"\n\n[[bin]]\nname = \"query\"\npath = \"x.rs\"\n\n[[bin]]\npath = \"y.rs\"\nname = \"name\"\n\n[lints]\nname = \"z\"\n";
        assert_eq!(targets(manifest), ["query", "name"]);
    }

    #[test]
    fn requests_are_understood_or_refused() {
        let parse =
            |text: &str| Request::parse(&text.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        let request = |executions, targets: &[&str]| {
            Ok(Request { executions, targets: targets.iter().map(ToString::to_string).collect() })
        };
        assert_eq!(parse(""), request(EXECUTIONS, &[]));
        assert_eq!(parse("query --executions 10_000_000 name"), request(10_000_000, &["query", "name"]));
        assert!(
            parse("--executions").is_err() && parse("--executions x").is_err() && parse("--fast").is_err()
        );
    }
}
