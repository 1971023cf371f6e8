//! The kernel program of `crates/xdp`: compiled here, committed beside its source, so that nobody
//! else needs a compiler for it.

use crate::run::{is_installed, output, root, run};
use std::path::Path;
use std::process::Command;

/// Whose output the committed object is. Another version writes other instructions for the same
/// source.
const CLANG: &str = "14.";

const SOURCE: &str = "crates/xdp/bpf/filter.c";
const OBJECT: &str = "crates/xdp/bpf/filter.o";

const FLAGS: [&str; 11] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g0",
    "-fno-ident",
    "-fno-addrsig",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-c",
];

/// What is to be done with the object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// It is written anew.
    Write,
    /// It is compared with what the source compiles to.
    Compare,
}

/// Compiles the program. Where the right compiler is missing, comparing says so and passes.
pub(crate) fn bpf(what: Object) -> Result<(), String> {
    if what == Object::Compare && !is_installed("clang") {
        println!("skipped: clang is not installed");
        return Ok(());
    }
    let version = output(Command::new("clang").arg("--version"))?;
    if what == Object::Compare && !is_ours(&version) {
        let found = version.lines().next().unwrap_or("an unknown compiler");
        println!("skipped: the object was made by clang {CLANG}x, and this is {found}");
        return Ok(());
    }
    if what == Object::Write {
        compile(&root().join(OBJECT))?;
        println!("wrote {OBJECT}");
        return Ok(());
    }
    let compiled = std::env::temp_dir().join(format!("gannet-filter-{}.o", std::process::id()));
    let outcome = compile(&compiled).and_then(|()| {
        let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        if read(&compiled)? == read(&root().join(OBJECT))? {
            println!("{OBJECT} is what {SOURCE} compiles to");
            Ok(())
        } else {
            Err(format!("{OBJECT} is not what {SOURCE} compiles to; run `cargo xtask bpf` and commit it"))
        }
    });
    let _ = std::fs::remove_file(compiled);
    outcome
}

fn compile(to: &Path) -> Result<(), String> {
    run(Command::new("clang").current_dir(root()).args(FLAGS).arg(SOURCE).arg("-o").arg(to))
}

/// Returns whether `clang --version` speaks of the version that made the object.
fn is_ours(version: &str) -> bool {
    version.split("version ").nth(1).is_some_and(|number| number.starts_with(CLANG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        assert!(is_ours("Debian clang version 14.0.6\nTarget: x86_64"));
        assert!(!is_ours("Ubuntu clang version 18.1.3 (1ubuntu1)"));
        assert!(!is_ours("Apple clang version 140.0.0"));
        assert!(!is_ours(""));
    }
}
