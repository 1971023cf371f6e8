//! The tasks, one function each.

use crate::programs::{self, Program};
use crate::run::{Beside, Steps, cargo, is_installed, output, root, run, run_watched, target, xtask};
use crate::{bpf, package, tidy, tools};
use std::collections::BTreeSet;
use std::process::Command;

/// What a developer runs before a commit.
pub(crate) fn check() -> Result<(), String> {
    let mut steps = Steps::begin();
    steps.step("tidy", tidy);
    steps.step("format", format);
    steps.step("lints", lints);
    steps.step("licences and advisories", deny);
    let packages = changed_packages()?;
    if packages.is_empty() {
        steps.step("tests of what changed", || {
            println!("no package changed since main");
            Ok(())
        });
    } else if steps.all_passed() {
        steps.step(&format!("tests of {}", packages.join(", ")), || {
            let mut command = cargo(["test", "--quiet"]);
            for package in &packages {
                command.args(["--package", package]);
            }
            run(&mut command)
        });
    }
    steps.finish()
}

/// What CI runs: everything, from a clean clone, with one target directory and one set of flags.
pub(crate) fn test() -> Result<(), String> {
    let mut steps = Steps::begin();
    let mut results = Vec::new();
    // What is fetched comes while we compile, and what only reads does so as well.
    let tools = Beside::start(xtask("tools"));
    let tidy = Beside::start(xtask("tidy"));
    steps.step("format", format);
    // One call builds programs and tests alike, so that the system tests find the program that fits
    // them and nothing is compiled a second time with other features.
    // The one example is what the tests of AF_XDP send to.
    steps.step("build", || {
        let build = ["build", "--workspace", "--lib", "--bins", "--tests", "--example", "echo_frames"];
        run(&mut cargo(build))
    });
    steps.step("tidy", || tidy.finish());
    steps.step("tools for the tests", || tools.finish());
    steps.step("kernel program", || bpf::bpf(bpf::Object::Compare));
    if steps.all_passed_but(&["tidy", "format", "kernel program", "tools for the tests"]) {
        steps.step("examples in comments", || {
            let mut tests = cargo(["test", "--workspace", "--doc", "--no-fail-fast"]);
            run_watched(&mut tests, |line| keep_result(line, &mut results))
        });
        test_what_is_built(&mut steps, &mut results);
    } else {
        steps.step("lints", lints);
    }
    steps.step("licences and advisories", deny);
    if let Some(total) = total(&results) {
        println!("{total}");
    }
    steps.finish()
}

/// Runs the test programs, and beside them, since tests mostly wait, what compiles by itself or
/// waits as well.
fn test_what_is_built(steps: &mut Steps, results: &mut Vec<String>) {
    let mut programs = Vec::new();
    steps.step("test programs", || {
        programs = programs::built()?;
        println!("{} of them", programs.len());
        Ok(())
    });
    let (programs, greedy) = programs::parted(programs);
    let browser = programs.iter().find(|program| program.name == "tests/system").map(Program::command);
    let instructions = Beside::start(with_half_the_processors(xtask("instructions")));
    let lints = Beside::start(with_half_the_processors(clippy()));
    steps.step("tests", || programs::run(programs, |line| keep_result(line, results)));
    steps.step("a browser", || browser.map_or_else(|| Err("no program".to_string()), self::browser));
    steps.step("smoke run of the benchmarks", || run(&mut smoke()));
    steps.step("instructions of the hot path", || instructions.finish());
    steps.step("lints", || lints.finish());
    steps.step("packages", package::try_out);
    steps.step("tests that need all processors", || programs::run(greedy, |line| keep_result(line, results)));
}

/// Keeps the closing line of a test program.
fn keep_result(line: &str, results: &mut Vec<String>) {
    if line.starts_with("test result:") {
        results.push(line.to_string());
    }
}

/// Adds up the closing lines of the test programs, in cargo's own words.
fn total(results: &[String]) -> Option<String> {
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    for line in results {
        for part in line.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<u64>() else { continue };
            match what {
                "passed" => passed += count,
                "failed" => failed += count,
                "ignored" => ignored += count,
                _ => {}
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let programs = results.len();
    (programs > 0).then(|| {
        format!(
            "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; in {programs} test programs"
        )
    })
}

/// The rules of this repository.
pub(crate) fn tidy() -> Result<(), String> {
    let report = tidy::check_repository(&root())?;
    for finding in &report.findings {
        println!("{finding}");
    }
    let largest: Vec<_> = report.largest.iter().map(|(name, lines)| format!("{name} {lines}")).collect();
    println!("the largest crates, in lines: {}", largest.join(", "));
    match report.findings.len() {
        0 => {
            println!("tidy");
            Ok(())
        }
        errors => Err(format!("{errors} findings")),
    }
}

/// Hands over to the benchmark tool, built like the server as packages hold it.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    let build = ["build", "--profile", "dist", "--package", "gannet-daemon", "--package", "gannet-bench"];
    run(&mut cargo(build))?;
    run(cargo(["run", "--quiet", "--profile", "dist", "--package", "gannet-bench", "--"]).args(arguments))
}

/// Has a browser resolve names through the server, if there is one.
fn browser(mut tests: Command) -> Result<(), String> {
    if !is_installed(tools::BROWSER) {
        println!("skipped: {} is not installed", tools::BROWSER);
        return Ok(());
    }
    run(tests.args(["--ignored", "conformance::"]))
}

/// Returns what starts every scenario once with the programs built for the tests, and with what
/// rivals are installed.
fn smoke() -> Command {
    let target = target();
    let mut command = Command::new(target.join("debug/gannet-bench"));
    command.args(["run", "--smoke", "--scenario", "all", "--server", "all", "--gannet"]);
    command.arg(target.join("debug/gannet"));
    command
}

/// Writes the generated pages anew: the tests that compare them write them when told to.
pub(crate) fn docs() -> Result<(), String> {
    let pages = [
        ("manual/settings.md and manual/unbound-keywords.md", ["--package", "gannet-settings", "--lib"]),
        ("openapi.json", ["--package", "gannet-api", "--lib"]),
        ("manual/commands.md", ["--package", "gannet-commands", "--lib"]),
    ];
    for (page, target) in pages {
        let mut command = cargo(["test", "--quiet"]);
        run(command.args(target).arg("manual").env("GANNET_UPDATE_MANUAL", "1"))?;
        println!("wrote docs/{page}");
    }
    Ok(())
}

fn format() -> Result<(), String> {
    run(&mut cargo(["fmt", "--all", "--", "--check"]))
}

fn lints() -> Result<(), String> {
    run(&mut clippy())
}

fn clippy() -> Command {
    cargo(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// Leaves half of the processors to what runs beside this command.
fn with_half_the_processors(mut command: Command) -> Command {
    let half = std::thread::available_parallelism().map_or(1, |all| usize::max(all.get() / 2, 1));
    command.env("CARGO_BUILD_JOBS", half.to_string());
    command
}

fn deny() -> Result<(), String> {
    if !is_installed("cargo-deny") {
        println!("skipped: cargo-deny is not installed");
        return Ok(());
    }
    run(&mut cargo(["deny", "--workspace", "check"]))
}

/// Returns the packages with a file that differs from `main`, or that is not committed.
fn changed_packages() -> Result<Vec<String>, String> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root()).args(arguments));
    let base = ["origin/main", "main"].into_iter().find_map(|main| git(&["merge-base", "HEAD", main]).ok());
    let base = base.unwrap_or_else(|| "HEAD".to_string());
    let mut files = git(&["diff", "--name-only", base.trim()])?;
    files.push_str(&git(&["ls-files", "--others", "--exclude-standard"])?);
    Ok(packages_of(files.lines(), |folder| root().join(folder).join("Cargo.toml").is_file()))
}

/// Returns the packages that hold these files, as far as there still is a package in their folder;
/// a changed lock file or root manifest changes none of them by itself.
fn packages_of<'a>(files: impl Iterator<Item = &'a str>, is_package: impl Fn(&str) -> bool) -> Vec<String> {
    let mut packages = BTreeSet::new();
    for file in files {
        let mut parts = file.split('/');
        let (folder, package) = match (parts.next(), parts.next(), parts.next()) {
            (Some("crates"), Some(name), Some(_)) => (format!("crates/{name}"), name),
            (Some("tests"), Some("testkit"), Some(_)) => ("tests/testkit".to_string(), "testkit"),
            (Some("tests"), Some("harness"), Some(_)) | (Some("fuzz"), _, _) => {
                ("tests/harness".to_string(), "fuzz-harness")
            }
            (Some("bench"), Some("instructions"), Some(_)) => {
                ("bench/instructions".to_string(), "instructions")
            }
            (Some(top @ ("tests" | "xtask" | "bench")), Some(_), _) => (top.to_string(), top),
            _ => continue,
        };
        if is_package(&folder) {
            packages.insert(format!("gannet-{package}"));
        }
    }
    packages.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_lead_to_their_packages() {
        let files = [
            "crates/wire/src/name.rs",
            "crates/wire/Cargo.toml",
            "tests/testkit/src/lib.rs",
            "fuzz/seeds/query/plain",
            "README.md",
            "Cargo.lock",
            "xtask/src/main.rs",
            // Deleted: its crate has another name now.
            "crates/gone/src/lib.rs",
        ];
        assert_eq!(
            packages_of(files.into_iter(), |folder| folder != "crates/gone"),
            ["gannet-fuzz-harness", "gannet-testkit", "gannet-wire", "gannet-xtask"]
        );
    }

    #[test]
    fn closing_lines_are_added_up() {
        let line = |passed, failed| {
            format!(
                "test result: ok. {passed} passed; {failed} failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s"
            )
        };
        assert_eq!(
            total(&[line(3, 0), line(4, 2)]).as_deref(),
            Some("test result: FAILED. 7 passed; 2 failed; 2 ignored; in 2 test programs")
        );
        assert_eq!(total(&[]), None);
    }
}
