//! Tasks of the project: `cargo xtask check|test|tools|tidy|bench|fuzz|bpf|docs|package`.
//!
//! Never part of what is shipped: only developers and CI run it.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command line tool talks to the person who runs it")]

mod bpf;
mod fuzz;
mod instructions;
mod package;
mod programs;
mod run;
mod tidy;
mod tools;
mod upkeep;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <what>

  check                   before a commit: format, tidy, lints, tests of the packages that changed
  test                    everything, as CI runs it; installs the tools that tests need
  tools                   installs the tools that tests need
  tidy                    the rules of this repository that no compiler knows
  bench [arguments…]      the benchmark tool (`cargo xtask bench --help`)
  instructions [--accept] what a query costs in instructions, beside what was accepted (needs valgrind)
  fuzz [--executions N] [TARGET…]
                          the fuzz targets, each N times (default: 100000)
  bpf                     compiles the kernel program of crates/xdp anew (needs clang 14)
  package deb|archive [--program FILE]
                          Debian packages, or a release archive with its bill of materials and
                          checksums, in target/package, of a program that is built for them or of this one
  package archive --target TRIPLE
                          the same for another machine (needs its compiler and linker)
  docs                    writes the generated pages of docs/ anew
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((what, rest)) = arguments.split_first() else {
        print!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match (what.as_str(), rest) {
        ("check", []) => upkeep::check(),
        ("test", []) => upkeep::test(),
        ("tools", []) => tools::install_missing(),
        ("tidy", []) => upkeep::tidy(),
        ("bench", rest) => upkeep::bench(rest),
        ("instructions", rest) => instructions::instructions(rest),
        ("fuzz", rest) => fuzz::fuzz(rest),
        ("bpf", []) => bpf::bpf(bpf::Object::Write),
        ("docs", []) => upkeep::docs(),
        ("package", rest) => package::package(rest),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        ("check" | "test" | "tools" | "tidy" | "bpf" | "docs", [extra, ..]) => {
            Err(format!("`{what}` takes no `{extra}`\n\n{USAGE}"))
        }
        _ => Err(format!("unknown chore `{what}`\n\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
