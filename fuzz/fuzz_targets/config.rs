//! No text makes the configuration's reader panic, and every mistake has a place in it.
#![no_main]

use std::io;
use std::path::{Path, PathBuf};

/// A machine without files or variables.
struct Nothing;

impl config::Surroundings for Nothing {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn list(&self, _directory: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn resolv_conf(&self) -> PathBuf {
        PathBuf::new()
    }

    fn hosts_file(&self) -> PathBuf {
        PathBuf::new()
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(diagnostics) = config::load_text(Path::new("fuzz.yaml"), text, &Nothing) {
        assert!(!diagnostics.is_empty(), "a refusal has a reason");
        for diagnostic in diagnostics {
            assert!(!diagnostic.to_string().is_empty());
        }
    }
});
