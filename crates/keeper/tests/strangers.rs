//! What the fuzz targets hold true, on their seeds and on seeds with an octet changed.

use std::path::Path;

#[path = "../../../fuzz/src/between.rs"]
mod target;

/// Runs a target on its seeds, with each octet of them changed, and cut anywhere.
fn check(name: &str, run: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("a folder of seeds") {
        let seed = std::fs::read(seed.expect("a seed").path()).expect("a file");
        run(&seed);
        count += 1;
        for at in 0..seed.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = seed.clone();
                changed[at] ^= change;
                run(&changed);
            }
            run(&seed[..at]);
        }
    }
    assert!(count > 3, "{count} seeds");
}

#[test]
fn strangers_are_not_believed() {
    check("signed", target::signed);
}

#[test]
fn transfers_make_zones_or_nothing() {
    check("transfer", target::transfer);
}

#[test]
fn updates_do_what_they_say() {
    check("update", target::update);
}

#[test]
fn damaged_journals_are_read_as_far_as_they_are_sound() {
    check("journal", target::journal);
}
