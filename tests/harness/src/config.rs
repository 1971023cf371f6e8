//! No text makes the configuration's reader panic, and every mistake has a place in it.

use std::io;
use std::path::{Path, PathBuf};

use settings::overlay::{Layer, SettingPath, difference, export};

/// A machine without files or variables.
struct Nothing;

impl environment::Environment for Nothing {
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

    fn processors(&self) -> usize {
        1
    }

    fn random(&self, octets: &mut [u8]) {
        octets.fill(1);
    }
}

/// One text in so many that are right is also shown, read again and compiled, which takes much
/// longer than reading it.
const DEEP_EVERY: u32 = 16;

/// Returns whether this text is one of those; the same text always is.
fn goes_deep(text: &str) -> bool {
    let hash = text.bytes().fold(0u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16).is_multiple_of(DEEP_EVERY)
}

/// Returns the text that octets begin with.
fn text_of(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("checked"),
    }
}

/// A machine with one file.
struct OneFile<'t>(&'t str);

impl environment::Environment for OneFile<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        Nothing.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new(UNBOUND) { Ok(self.0.into()) } else { Nothing.read(path) }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        Nothing.list(directory)
    }

    fn resolv_conf(&self) -> PathBuf {
        Nothing.resolv_conf()
    }

    fn hosts_file(&self) -> PathBuf {
        Nothing.hosts_file()
    }

    fn processors(&self) -> usize {
        Nothing.processors()
    }

    fn random(&self, octets: &mut [u8]) {
        Nothing.random(octets);
    }
}

/// The only file there is.
const UNBOUND: &str = "/unbound.conf";

/// A configuration of Unbound: what is right is printed as YAML that means the same.
pub fn unbound(bytes: &[u8]) {
    let environment = OneFile(text_of(bytes));
    match settings::load_unbound_in(Path::new(UNBOUND), &environment) {
        Ok(loaded) => {
            let imported = import::unbound(Path::new(UNBOUND), &environment).expect("it was just read");
            let again = settings::load_text(Path::new("/gannet.yaml"), &imported.text, &environment);
            assert!(again.is_ok_and(|again| again.settings == loaded.settings), "{}", imported.text);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a refusal has a reason");
            for diagnostic in diagnostics {
                assert!(!diagnostic.to_string().is_empty());
            }
        }
    }
}

/// A configuration: the text that the octets begin with.
pub fn config(bytes: &[u8]) {
    let text = text_of(bytes);
    match settings::load_text(Path::new("fuzz.yaml"), text, &Nothing) {
        Ok(loaded) if goes_deep(text) => {
            let shown = settings::print::show(&loaded);
            assert!(
                settings::load_text(Path::new("shown.yaml"), &shown, &Nothing).is_ok(),
                "what is shown can be read"
            );
            // A cache takes the memory it is given.
            if loaded.settings.caches.iter().map(|cache| cache.size).sum::<u64>() < 1 << 28 {
                let _ = gannet_tests::configured::compile(&loaded, &Nothing);
            }
        }
        Ok(_) => {}
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a refusal has a reason");
            for diagnostic in diagnostics {
                assert!(!diagnostic.to_string().is_empty());
            }
        }
    }
}

/// What a file says under the changes of [`overlay`].
const FILE: &str = "local: {nas.home.arpa: 192.0.2.1}\ncookies: {secret: 00112233445566778899aabbccddeeff}\n\
                    cache: {main: {size: 1MiB}}\n";

/// A change of a setting: a line with its path, and behind it what is said there.
pub fn overlay(bytes: &[u8]) {
    let text = text_of(bytes);
    let (path, said) = text.split_once('\n').unwrap_or((text, ""));
    let path = match SettingPath::parse(path) {
        Ok(path) => path,
        Err(why) => return assert!(!why.is_empty(), "a refusal has a reason"),
    };
    assert_eq!(SettingPath::parse(&path.to_string()).as_ref(), Ok(&path), "a path is read as it is written");
    let base = settings::load_text(Path::new("fuzz.yaml"), FILE, &Nothing).expect("it is right");
    let layer = Layer::new(path, Some(said.into()), "change 1 by anna".to_owned());
    match base.with_changes(std::slice::from_ref(&layer), &Nothing) {
        Ok(loaded) => {
            let one = std::slice::from_ref(&layer);
            let same = difference(&base, [one, one], &Nothing);
            assert!(same.is_empty(), "it is the same: {same:?}");
            for without in [export(&loaded, false), settings::print::show(&loaded)] {
                assert!(!without.contains("00112233445566778899"), "a secret is shown: {without}");
            }
            let back = loaded.without_changes(&Nothing).expect("the file is right alone");
            assert!(back.settings == base.settings, "a change that is taken back is gone");
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a refusal has a reason");
            for diagnostic in diagnostics {
                assert!(!diagnostic.to_string().is_empty());
            }
        }
    }
}
