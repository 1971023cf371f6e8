//! Seeds of the fuzz targets, as they are and damaged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn fuzz(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(path)
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(fuzz("seeds").join(target)).expect("every target has a folder of seeds");
    folder.map(|seed| fs::read(seed.expect("a seed").path()).expect("a file")).collect()
}

/// Makes a test of each target that replays its seeds, and a list of the targets.
macro_rules! targets {
    ($($target:ident)*) => {
        /// The targets by name.
        const TARGETS: &[&str] = &[$(stringify!($target)),*];

        mod replayed {
            $(
                #[test]
                fn $target() {
                    let seeds = super::seeds(stringify!($target));
                    assert!(!seeds.is_empty(), "a target without seeds");
                    seeds.iter().for_each(|seed| harness::$target(seed));
                }
            )*
        }
    };
}

targets! {
    authority config denials dnscrypt engine forwarders frames http2 journal lists name network overlay proxy query rdata_text reply search
    signed token transfer unbound update zone_file
}

/// Returns what is in a folder of `fuzz/`, without the extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz(folder)).expect("a folder of the repository");
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.expect("an entry").path())).collect()
}

/// The programs of `fuzz/` are compiled only when somebody fuzzes: they may not hold anything that
/// can be wrong.
#[test]
fn every_fuzz_program_calls_its_harness_and_does_nothing_else() {
    let targets: BTreeSet<String> = TARGETS.iter().map(ToString::to_string).collect();
    assert_eq!(names("seeds"), targets);
    assert_eq!(names("fuzz_targets"), targets);
    let manifest = fs::read_to_string(fuzz("Cargo.toml")).expect("a file");
    assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
    for target in TARGETS {
        let program = fs::read_to_string(fuzz("fuzz_targets").join(format!("{target}.rs"))).expect("a file");
        let call = format!("libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::{target}(bytes));");
        assert_eq!(program, format!("#![no_main]\n\n{call}\n"));
        let entry = format!("[[bin]]\nname = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"\n");
        assert!(manifest.contains(&entry), "fuzz/Cargo.toml lacks {target}");
    }
}

/// Runs a target on its seeds with each octet of them changed, and cut anywhere.
fn damage(target: &str, run: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(seeds.len() > 3, "{} seeds", seeds.len());
    for seed in seeds {
        for at in 0..seed.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = seed.clone();
                changed[at] ^= change;
                run(&changed);
            }
            run(&seed[..at]);
        }
    }
}

#[test]
fn strangers_are_not_believed() {
    damage("signed", harness::signed);
}

#[test]
fn transfers_make_zones_or_nothing() {
    damage("transfer", harness::transfer);
}

#[test]
fn updates_do_what_they_say() {
    damage("update", harness::update);
}

#[test]
fn damaged_journals_are_read_as_far_as_they_are_sound() {
    damage("journal", harness::journal);
}

#[test]
fn damaged_replies_end_each_question() {
    damage("authority", harness::authority);
}

#[test]
fn a_network_that_lies_ends_each_question() {
    damage("network", harness::network);
}

#[test]
fn forwarders_that_lie_end_each_question() {
    damage("forwarders", harness::forwarders);
}
