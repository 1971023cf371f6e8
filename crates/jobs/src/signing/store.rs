//! Keys of zones as files in a directory: BIND's pairs, which other programs read too. Private ones
//! are their owner's alone, or say in which token the key is.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dnssec::keys::{ZoneKey, bind};
use values::TokenUri;
use wire::Name;

use super::token::Tokens;

/// Rights of files with private keys: their owner's alone.
const PRIVATE: u32 = 0o600;
/// Octets of a key's file: the largest RSA key takes some 14 thousand.
const FILE_OCTETS_MAX: u64 = 1 << 16;

/// A directory with keys.
#[derive(Clone)]
pub struct KeyStore {
    directory: PathBuf,
    tokens: Arc<Tokens>,
    /// How a token is reached now, whatever files of keys say.
    reached: Option<TokenUri>,
}

/// A key and where it is.
#[derive(Debug)]
pub struct StoredKey {
    /// The key.
    pub key: ZoneKey,
    /// Its files' name without an ending.
    pub stem: String,
    /// Whether others than the owner may read the private key.
    pub is_open: bool,
}

impl KeyStore {
    /// Uses a directory, which need not exist yet. Keys that are in tokens are looked for in
    /// `tokens` when they are to sign.
    pub fn new(directory: impl Into<PathBuf>, tokens: &Arc<Tokens>) -> Self {
        Self { directory: directory.into(), tokens: Arc::clone(tokens), reached: None }
    }

    /// Has keys of this token reached as it says, by module and PIN, and not as their files say.
    #[must_use]
    pub fn reaching(self, token: Option<&TokenUri>) -> Self {
        Self { reached: token.cloned(), ..self }
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the keys of a zone, or all, in the order of their files' names. A key whose private
    /// file is missing is left out.
    pub fn keys(&self, zone: Option<Name<'_>>) -> Result<Vec<StoredKey>, String> {
        let mut stems = Vec::new();
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("cannot read \"{}\": {error}", self.directory.display())),
        };
        for entry in entries {
            let entry =
                entry.map_err(|error| format!("cannot read \"{}\": {error}", self.directory.display()))?;
            if let Some(stem) = entry.file_name().to_str().and_then(|name| name.strip_suffix(".private"))
                && stem.starts_with('K')
            {
                stems.push(stem.to_owned());
            }
        }
        stems.sort();
        let mut keys = Vec::new();
        for stem in stems {
            // The name says the zone, so that other zones' private keys are not touched.
            if let Some(zone) = zone
                && !stem.starts_with(&dnssec::keys::stem_start(zone))
            {
                continue;
            }
            let key = self.read(&stem)?;
            if zone.is_none_or(|zone| key.key.owner.as_name() == zone) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    fn read(&self, stem: &str) -> Result<StoredKey, String> {
        let private = self.directory.join(format!("{stem}.private"));
        let key = read_reaching(&private, &self.tokens, self.reached.as_ref())?;
        let is_readable = fs::metadata(&private).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
        // The file of a key that is elsewhere has nothing to hide.
        let is_open = is_readable && key.secret.place().is_none();
        Ok(StoredKey { key, stem: stem.to_owned(), is_open })
    }

    /// Writes a key; returns its files' name. One that is there already is not written over.
    pub fn put(&self, key: &ZoneKey) -> Result<String, String> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|error| format!("cannot make \"{}\": {error}", self.directory.display()))?;
        let stem = key.file_stem();
        let private = self.directory.join(format!("{stem}.private"));
        let text = bind::write_private(key).map_err(|fault| fault.to_string())?;
        // The private part first: a DNSKEY that nobody can sign with would be published.
        write(&private, text.as_bytes(), PRIVATE, Overwrites::No)
            .map_err(|error| cannot_write(&private, &error))?;
        let public = self.directory.join(format!("{stem}.key"));
        write(&public, bind::write_public(key).as_bytes(), 0o644, Overwrites::Yes)
            .map_err(|error| cannot_write(&public, &error))?;
        Ok(stem)
    }

    /// Removes a key's files.
    pub fn remove(&self, stem: &str) -> io::Result<()> {
        for end in ["key", "private"] {
            match fs::remove_file(self.directory.join(format!("{stem}.{end}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => format!("\"{}\" exists already", path.display()),
        _ => format!("cannot write \"{}\": {error}", path.display()),
    }
}

/// Reads a key from its `.private` file and the `.key` beside it. No token is asked for a key that
/// is in one.
pub fn read_pair(private: &Path, tokens: &Arc<Tokens>) -> Result<ZoneKey, String> {
    read_reaching(private, tokens, None)
}

fn read_reaching(
    private: &Path,
    tokens: &Arc<Tokens>,
    reached: Option<&TokenUri>,
) -> Result<ZoneKey, String> {
    let public = private.with_extension("key");
    let read =
        |path: &Path| read_text(path).map_err(|error| format!("cannot read \"{}\": {error}", path.display()));
    let (public_text, private_text) = (read(&public)?, zeroize::Zeroizing::new(read(private)?));
    let open: bind::Opener<'_> = &|algorithm, label| tokens.holder(algorithm, label, reached);
    bind::read(&public_text, &private_text, open)
        .map_err(|fault| format!("\"{}\": {fault}", private.display()))
}

/// Reads a small text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let len = fs::metadata(path)?.len();
    if len > FILE_OCTETS_MAX {
        return Err(io::Error::other(format!("larger than {FILE_OCTETS_MAX} octets")));
    }
    fs::read_to_string(path)
}

/// Whether a file that is there is written over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Overwrites {
    /// It is replaced, in one step.
    Yes,
    /// It stays, and that is an error.
    No,
}

/// Writes a file so that it is there as a whole or not at all, and stays over a power cut.
pub fn write(path: &Path, octets: &[u8], mode: u32, overwrites: Overwrites) -> io::Result<()> {
    if overwrites == Overwrites::No && path.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    drop(fs::remove_file(&new));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    let written = file.write_all(octets).and_then(|()| file.sync_all()).and_then(|()| match overwrites {
        Overwrites::Yes => fs::rename(&new, path),
        // A link fails where a rename would write over what came meanwhile.
        Overwrites::No => fs::hard_link(&new, path).and_then(|()| fs::remove_file(&new)),
    });
    if written.is_err() {
        drop(fs::remove_file(&new));
    }
    written?;
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Removes what a process left that was killed while it wrote: files that [`write`] has not given
/// their names. Those of processes that live are being written.
pub(super) fn remove_leftovers(directory: &Path) {
    remove_new(directory, |_| true);
}

/// The same of one file alone.
pub(crate) fn remove_leftovers_of(path: &Path) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    remove_new(directory, |other| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
}

fn remove_new(directory: &Path, is_it: impl Fn(&str) -> bool) {
    // Without it nobody knows who lives.
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_str().filter(|name| is_it(name));
        let writer = name.and_then(|name| name.strip_suffix(".new")?.rsplit('.').next()?.parse().ok());
        let Some(writer) = writer else { continue };
        let writer: u32 = writer;
        // Whoever had our number before us is gone, and we have written nothing yet.
        if writer == std::process::id() || !processes.join(writer.to_string()).exists() {
            let path = entry.path();
            match fs::remove_file(&path) {
                Ok(()) => {
                    tracing::info!(file = %path.display(), "removed what a process left that was killed");
                }
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "what a process left that was killed cannot be removed");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnssec::{Algorithm, KeySize, SecretKey, flags_of};
    use wire::NameBuf;

    fn key(zone: &str) -> ZoneKey {
        ZoneKey {
            owner: NameBuf::from_text(zone).expect("a name"),
            flags: flags_of(true),
            secret: SecretKey::generate(Algorithm::ED25519, KeySize::Bits2048).expect("a key").into(),
            times: dnssec::keys::Times::default(),
        }
    }

    #[test]
    fn keys_are_their_owners_alone_and_are_not_written_over() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let store = KeyStore::new(directory.path().join("keys"), &Arc::default());
        assert!(store.keys(None).expect("no keys").is_empty());
        let (one, other) = (key("example.org"), key("example.org.example.net"));
        let stem = store.put(&one).expect("a key is written");
        store.put(&other).expect("a key is written");
        let mode = |end: &str| {
            let path = store.directory().join(format!("{stem}.{end}"));
            fs::metadata(path).expect("a file").permissions().mode() & 0o777
        };
        assert_eq!(mode("private"), 0o600);
        assert!(store.put(&one).expect_err("it is there").contains("exists already"));
        let zone = NameBuf::from_text("Example.org").expect("a name");
        let found = store.keys(Some(zone.as_name())).expect("keys");
        assert_eq!(found.iter().map(|key| key.stem.as_str()).collect::<Vec<_>>(), [stem.as_str()]);
        assert!(!found[0].is_open && found[0].key.dnskey() == one.dnskey());
        assert_eq!(store.keys(None).expect("keys").len(), 2);
        let path = store.directory().join(format!("{stem}.private"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our file");
        assert!(store.keys(Some(zone.as_name())).expect("keys")[0].is_open);
        store.remove(&stem).expect("removed");
        assert_eq!(store.keys(None).expect("keys").len(), 1);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let dead = {
            let mut child = std::process::Command::new("true").spawn().expect("a process");
            child.wait().expect("it ends");
            child.id()
        };
        let alive = std::os::unix::process::parent_id();
        let names = [
            format!("example.org.signed.{dead}.new"),
            format!("example.org.signed.{}.new", std::process::id()),
            format!("example.org.signed.{alive}.new"),
            "example.org.signed".to_owned(),
            // A zone may be called so.
            "new".to_owned(),
            "example.new".to_owned(),
        ];
        for name in &names {
            fs::write(directory.path().join(name), "x").expect("a writable directory");
        }
        remove_leftovers(directory.path());
        let is_there: Vec<bool> = names.iter().map(|name| directory.path().join(name).exists()).collect();
        assert_eq!(is_there, [false, false, true, true, true, true]);
    }

    #[test]
    fn files_of_keys_in_tokens_say_where_they_are() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let store = KeyStore::new(directory.path(), &Arc::default());
        // Nobody asks the token, and it need not be there.
        let place = "pkcs11:token=one;object=a%20key;id=%01?module-path=/nowhere.so&pin-source=file:/nowhere";
        let holder = store.tokens.holder(Algorithm::ED25519, place, None).expect("a place");
        let public = key("example.org").secret.public().to_vec();
        let held = SecretKey::held(Algorithm::ED25519, &public, holder).expect("a key");
        let stem = store.put(&ZoneKey { secret: held.into(), ..key("example.org") }).expect("written");
        let path = store.directory().join(format!("{stem}.private"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our file");
        let found = store.keys(None).expect("keys");
        assert!(!found[0].is_open, "there is nothing to hide");
        assert_eq!((found[0].key.secret.place(), found[0].key.secret.public()), (Some(place), &*public));
        let why = found[0].key.secret.sign(b"message", &mut Vec::new()).expect_err("there is no module");
        let why = why.to_string();
        assert!(
            why.starts_with("cannot sign: the module cannot be loaded: ") && why.ends_with(place),
            "{why}"
        );
        // The policy says how it is reached now.
        let found_by = |uri: &str| {
            let uri = TokenUri::parse(uri).expect("a URI");
            let keys = store.clone().reaching(Some(&uri)).keys(None).expect("keys");
            keys[0].key.secret.place().map(str::to_owned)
        };
        assert_eq!(
            found_by("pkcs11:token=one?module-path=/new.so").as_deref(),
            Some("pkcs11:token=one;object=a%20key;id=%01?module-path=/new.so")
        );
        assert_eq!(found_by("pkcs11:token=other?module-path=/new.so").as_deref(), Some(place));
        // The label of another program, or one with a PIN in it.
        for (label, expect) in [
            ("example.org-ksk", "is no PKCS#11 URI"),
            ("pkcs11:object=a?pin-value=123456", "pin-source=file:"),
        ] {
            let mut base64 = String::new();
            wire::text::write_base64(&mut base64, label.as_bytes()).expect("a text");
            let text = format!("Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\nLabel: {base64}\n");
            fs::write(&path, text).expect("our file");
            let why = store.keys(None).expect_err("it cannot be used");
            assert!(why.contains(": line 3: ") && why.contains(expect) && !why.contains("123456"), "{why}");
        }
    }
}
