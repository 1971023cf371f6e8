//! Counts what the hot path costs in instructions: the same on every run, however busy the machine
//! is.
//!
//! Each case of `bench/instructions` runs under callgrind, which collects inside one function of
//! it: neither the set-up counts nor the queries that warm it up. Only instructions of the program
//! itself count: the C library chooses its copying routines by processor. What callgrind shows the
//! program of the processor is the same wherever AVX2 exists. The counts hold for one compiler, so
//! the accepted ones name theirs.

use crate::run::{cargo, is_installed, output, root, run, target};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Queries that count; as many come before them.
const TIMES: u64 = 2000;

/// The function that asks them.
const COUNTED: &str = "gannet_instructions::counted*";

/// Growth beyond this share fails.
const GROWTH_MAX: f64 = 0.03;

/// Cases that may cost more than others by that share alone, in one and the same run: what is
/// compiled in and not met.
const BESIDE: [(&str, &str); 3] = [
    ("unmet_views_tags", "unmet_nothing"),
    ("unmet_rpz", "unmet_nothing"),
    ("unmet_rpz_addresses", "unmet_nothing"),
];

/// Functions named when a case has grown.
const NAMED: usize = 5;

/// The accepted counts, in the repository.
const ACCEPTED: &str = "bench/instructions.tsv";

/// Where instructions were spent: a function, and the source file of what was inlined into it.
type Place = (String, String);

/// Instructions of one query, by place.
type Counts = BTreeMap<Place, f64>;

/// Counts every case and compares with what was accepted; `--accept` writes the counts down
/// instead.
pub(crate) fn instructions(arguments: &[String]) -> Result<(), String> {
    let accepts = match arguments {
        [] => false,
        [only] if only == "--accept" => true,
        [other, ..] => return Err(format!("`instructions` takes `--accept` and no `{other}`")),
    };
    if !is_installed("valgrind") {
        return Err("valgrind is not installed: `apt-get install valgrind`".to_string());
    }
    run(&mut cargo(["build", "--profile", "measure", "--package", "gannet-instructions"]))?;
    let program = target().join("measure/gannet-instructions");
    let mut found = BTreeMap::new();
    for case in output(&mut Command::new(&program))?.lines() {
        found.insert(case.to_string(), count(&program, case)?);
    }
    let compiler = compiler()?;
    let path = root().join(ACCEPTED);
    if accepts {
        std::fs::write(&path, written(&found, &compiler)).map_err(|error| format!("{ACCEPTED}: {error}"))?;
        println!("wrote {ACCEPTED}");
        return Ok(());
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{ACCEPTED}: {error}"))?;
    let (accepted, accepted_by) = parse(&text)?;
    let grown = compare(&found, &accepted) + compare_beside(&found);
    if grown == 0 {
        return Ok(());
    }
    let advice = "if that is meant, `cargo xtask instructions --accept` writes the new counts down";
    if accepted_by == compiler {
        Err(format!("{grown} cases grew by more than {:.0} %; {advice}", 100.0 * GROWTH_MAX))
    } else {
        println!("not held against anybody: accepted with {accepted_by}, counted with {compiler}; {advice}");
        Ok(())
    }
}

/// Returns the compiler's version and what it builds for.
fn compiler() -> Result<String, String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let line =
        |label: &str| said.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default().to_string();
    Ok(format!("rustc {} for {}", line("release: "), line("host: ")))
}

/// Returns the instructions of one query of `case`.
fn count(program: &Path, case: &str) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for (place, instructions) in profile(program, case)? {
        let each = instructions as f64 / TIMES as f64;
        // What is not done for every other query at least is no part of one.
        if each >= 0.5 {
            counts.insert(place, each);
        }
    }
    Ok(counts)
}

/// Runs `case` under callgrind.
fn profile(program: &Path, case: &str) -> Result<BTreeMap<Place, u64>, String> {
    let out: PathBuf = std::env::temp_dir().join(format!("gannet-callgrind-{}", std::process::id()));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]);
    command.arg(format!("--toggle-collect={COUNTED}"));
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(program).arg(case).arg(TIMES.to_string());
    let done = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let text = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    if !done.status.success() {
        return Err(format!("valgrind: {}", String::from_utf8_lossy(&done.stderr)));
    }
    let text = text.map_err(|error| format!("{}: {error}", out.display()))?;
    Ok(spent(&text, &program.display().to_string()))
}

/// Adds up what callgrind attributes to the functions of `program` themselves.
fn spent(profile: &str, program: &str) -> BTreeMap<Place, u64> {
    let mut places = BTreeMap::new();
    let (mut is_ours, mut function, mut file) = (false, String::new(), String::new());
    let mut is_call = false;
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_ours = object == program;
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = function_name(name);
        } else if let Some(path) = ["fl=", "fi=", "fe="].iter().find_map(|label| line.strip_prefix(label)) {
            file = file_name(path);
        } else if line.starts_with("calls=") {
            // The next line is what the called function cost, which is counted there.
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if let Some(cost) = cost.filter(|_| is_ours && !is_call) {
                *places.entry((function.clone(), file.clone())).or_insert(0) += cost;
            }
            is_call = false;
        }
    }
    places
}

/// Leaves out what differs from build to build: the crate's hash and the recursion mark of
/// callgrind.
fn function_name(name: &str) -> String {
    let name = name.split_once('\'').map_or(name, |(name, _)| name);
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => {
            path.to_string()
        }
        _ => name.to_string(),
    }
}

/// Leaves out where the repository, the registry or the compiler lie.
fn file_name(path: &str) -> String {
    let from = |at: usize| path.get(at..).unwrap_or(path).to_string();
    if let Some(at) = path.find("/registry/src/") {
        let rest = from(at + "/registry/src/".len());
        return rest.split_once('/').map_or(rest.clone(), |(_, rest)| rest.to_string());
    }
    let ours = path.rfind("/crates/").or_else(|| path.rfind("/bench/instructions/"));
    match ours.or_else(|| path.find("/library/")) {
        Some(at) => from(at + 1),
        None => path.to_string(),
    }
}

fn sum(counts: &Counts) -> f64 {
    counts.values().sum()
}

/// Prints every case beside what was accepted; returns how many have grown too much.
fn compare(found: &BTreeMap<String, Counts>, accepted: &BTreeMap<String, Counts>) -> usize {
    let mut grown = 0;
    println!("instructions a query:");
    for (case, counts) in found {
        let now = sum(counts);
        let Some(before) = accepted.get(case) else {
            println!("  {case:<20} {now:>8.1}   new: not accepted yet");
            continue;
        };
        let change = now / sum(before).max(1.0) - 1.0;
        println!("  {case:<20} {now:>8.1}  {:>+6.1} %", 100.0 * change);
        if change > GROWTH_MAX {
            grown += 1;
            for line in blame(counts, before) {
                println!("    {line}");
            }
        }
    }
    for case in accepted.keys().filter(|case| !found.contains_key(*case)) {
        println!("  {case:<20} is gone");
    }
    grown
}

/// Prints the cases of [`BESIDE`] beside those that they are held against; returns how many cost
/// too much.
fn compare_beside(found: &BTreeMap<String, Counts>) -> usize {
    let mut above = 0;
    for (case, plain) in BESIDE {
        let (Some(counts), Some(without)) = (found.get(case), found.get(plain)) else { continue };
        let change = sum(counts) / sum(without).max(1.0) - 1.0;
        println!("  {case:<20} {:>+8.1} % beside {plain}", 100.0 * change);
        if change > GROWTH_MAX {
            above += 1;
            for line in blame(counts, without) {
                println!("    {line}");
            }
        }
    }
    above
}

/// Names the functions that grew most, each with the file in which it grew most.
fn blame(now: &Counts, before: &Counts) -> Vec<String> {
    let growth =
        |place: &Place| now.get(place).copied().unwrap_or(0.0) - before.get(place).copied().unwrap_or(0.0);
    let mut functions: BTreeMap<&str, (f64, (f64, &str))> = BTreeMap::new();
    let places: std::collections::BTreeSet<&Place> = now.keys().chain(before.keys()).collect();
    for place in places {
        let growth = growth(place);
        let (sum, worst) = functions.entry(&place.0).or_insert((0.0, (0.0, "")));
        *sum += growth;
        if growth > worst.0 {
            *worst = (growth, &place.1);
        }
    }
    let mut functions: Vec<_> = functions.into_iter().filter(|(_, (sum, _))| *sum > 0.0).collect();
    functions.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
    functions.truncate(NAMED);
    let line = |(function, (sum, (most, file))): &(&str, (f64, (f64, &str)))| {
        format!("{sum:>+8.1} in {function} ({most:+.1} of it in {file})")
    };
    functions.iter().map(line).collect()
}

/// Writes counts as the accepted ones.
fn written(found: &BTreeMap<String, Counts>, compiler: &str) -> String {
    let mut text = format!(
        "# Instructions of one query on the hot path, by function and by source file of what is inlined into it.\n\
         # Written by `cargo xtask instructions --accept`; `cargo xtask test` fails where the sum of a case grows by more \
         than {:.0} %.\n# {compiler}\n",
        100.0 * GROWTH_MAX
    );
    for (case, counts) in found {
        for ((function, file), count) in counts {
            let _ = writeln!(text, "{case}\t{function}\t{file}\t{count:.1}");
        }
    }
    text
}

/// Reads the accepted counts and the compiler they hold for.
fn parse(text: &str) -> Result<(BTreeMap<String, Counts>, String), String> {
    let mut accepted: BTreeMap<String, Counts> = BTreeMap::new();
    let mut compiler = String::new();
    for (at, line) in text.lines().enumerate() {
        if let Some(comment) = line.strip_prefix("# ") {
            comment.clone_into(&mut compiler);
            continue;
        }
        let fault = || format!("{ACCEPTED}:{}: expected case, function, file and count", at + 1);
        let fields: Vec<&str> = line.split('\t').collect();
        let [case, function, file, count] = fields[..] else { return Err(fault()) };
        let count = count.parse().map_err(|_| fault())?;
        accepted.entry(case.to_string()).or_default().insert((function.to_string(), file.to_string()), count);
    }
    Ok((accepted, compiler))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "events: Ir\n\
        ob=/t/instructions\nfl=/w/crates/engine/src/run.rs\nfn=engine::run::interpret::h0123456789abcdef\n\
        10 5\nfi=/w/crates/wire/src/name.rs\n11 7\nfe=/w/crates/engine/src/run.rs\n\
        cob=/lib/libc.so.6\ncfn=memcpy\ncalls=1 0\n12 1000\n13 2\n\
        ob=/lib/libc.so.6\nfl=???\nfn=memcpy\n0 1000\n";

    fn place(function: &str, file: &str) -> Place {
        (function.to_string(), file.to_string())
    }

    #[test]
    fn only_what_the_program_spends_itself_counts() {
        let expect = BTreeMap::from([
            (place("engine::run::interpret", "crates/engine/src/run.rs"), 7),
            (place("engine::run::interpret", "crates/wire/src/name.rs"), 7),
        ]);
        assert_eq!(spent(PROFILE, "/t/instructions"), expect);
    }

    #[test]
    fn names_do_not_depend_on_where_they_were_built() {
        assert_eq!(function_name("a::b::h0123456789abcdef'2"), "a::b");
        assert_eq!(function_name("a::b::hello"), "a::b::hello");
        assert_eq!(file_name("/rustc/59807616/library/core/src/num/mod.rs"), "library/core/src/num/mod.rs");
        assert_eq!(
            file_name("/root/.cargo/registry/src/index-1/siphasher-1.0/src/sip.rs"),
            "siphasher-1.0/src/sip.rs"
        );
        assert_eq!(file_name("crates/wire/src/name.rs"), "crates/wire/src/name.rs");
    }

    fn counts(interpret: f64, name: f64) -> BTreeMap<String, Counts> {
        let counts = Counts::from([
            (place("interpret", "crates/engine/src/run.rs"), interpret),
            (place("interpret", "crates/wire/src/name.rs"), name),
            (place("finish", "crates/engine/src/finish.rs"), 50.0),
        ]);
        BTreeMap::from([("cached".to_string(), counts)])
    }

    #[test]
    fn growth_over_three_per_cent_is_blamed_on_its_function() {
        assert_eq!(compare(&counts(102.0, 50.0), &counts(100.0, 50.0)), 0);
        assert_eq!(compare(&counts(101.0, 56.0), &counts(100.0, 50.0)), 1);
        assert_eq!(
            blame(&counts(101.0, 56.0)["cached"], &counts(100.0, 50.0)["cached"]),
            ["    +7.0 in interpret (+6.0 of it in crates/wire/src/name.rs)"]
        );
    }

    #[test]
    fn a_new_case_and_a_lost_one_fail_nothing() {
        assert_eq!(compare(&counts(100.0, 50.0), &BTreeMap::new()), 0);
        assert_eq!(compare(&BTreeMap::new(), &counts(100.0, 50.0)), 0);
    }

    #[test]
    fn what_is_not_met_may_cost_three_per_cent() {
        let of = |unmet: f64| {
            let case = |sum: f64| Counts::from([(place("interpret", "crates/engine/src/run.rs"), sum)]);
            let plain = BESIDE.iter().map(|(_, plain)| (plain.to_string(), case(100.0)));
            let unmet = BESIDE.iter().map(|(name, _)| (name.to_string(), case(unmet)));
            plain.chain(unmet).collect::<BTreeMap<_, _>>()
        };
        assert_eq!([compare_beside(&of(102.0)), compare_beside(&of(104.0))], [0, BESIDE.len()]);
        assert_eq!(compare_beside(&BTreeMap::new()), 0);
    }

    #[test]
    fn what_is_accepted_is_read_back() {
        let text = written(&counts(100.0, 50.5), "rustc 1.0 for here");
        assert_eq!(parse(&text), Ok((counts(100.0, 50.5), "rustc 1.0 for here".to_string())));
        assert!(parse("cached\tinterpret\t5").unwrap_err().contains(":1:"));
    }
}
