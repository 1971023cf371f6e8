//! Backups of what is in the state directory and nowhere else, taken while the server runs, and
//! laid down for the next start.

mod tar;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use authority::LAST_GOOD;
use aws_lc_rs::digest::{Context, SHA256};
use control::api::{self, BackupFile, BackupManifest, Restored};
use diagnostic::Diagnostic;
use store::restore::{self, FOLDERS, MANIFEST, SECRET_FOLDERS};
use store::{AUDIT_KEY, Store};

/// The version of the format.
const FORMAT: u32 = 1;
/// Folders of the state directory in which a backup is made, and unpacked.
const MADE: &str = "backup.new";
const UNPACKED: &str = "restore.new";
/// Files of a backup.
const FILES_MAX: usize = 100_000;
/// Octets of an archive.
pub const ARCHIVE_OCTETS_MAX: u64 = 4 << 30;
/// Octets of its description.
const MANIFEST_OCTETS_MAX: u64 = 64 << 20;
/// How often a zone is copied again because a file of it was written anew meanwhile.
const TRIES_MAX: usize = 10;

/// Why there is no backup.
#[derive(Debug)]
pub enum BackupError {
    /// The machine.
    Io(&'static str, io::Error),
    /// What is to be restored is none, or not as it was written.
    Wrong(String),
    /// Its settings do not go with the files of this server.
    Unfit(Vec<Diagnostic>),
}

fn wrong(why: impl Into<String>) -> BackupError {
    BackupError::Wrong(why.into())
}

fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).read(true).create_new(true).mode(0o600).open(path)
}

/// A folder that is gone when this is.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Removes what a server that was killed has left of backups: there may be keys in it.
pub(crate) fn clear(state: &Path) {
    for part in [MADE, UNPACKED] {
        drop(fs::remove_dir_all(state.join(part)));
    }
}

/// Makes a backup of a state directory: an archive that is gone when the file is closed. `copy`
/// puts a copy of the store into a folder, and returns its revision and what is left out.
pub(crate) fn make(
    state: &Path,
    (with_secrets, at): (bool, u64),
    copy: impl FnOnce(&Path) -> Result<(u64, Vec<String>), String>,
) -> Result<File, BackupError> {
    let failed = |error| BackupError::Io("the backup cannot be written", error);
    let scratch = Scratch(state.join(MADE));
    drop(fs::remove_dir_all(&scratch.0));
    let changes = scratch.0.join("changes");
    folder(&changes).map_err(failed)?;
    let kept = state.join("changes");
    if with_secrets {
        // Both follow the store, and earlier ones go with it: later ones would say that it has lost
        // changes.
        let is_behind = |name: &str| [LAST_GOOD, AUDIT_KEY].contains(&name);
        copy_files(&kept, &changes, &is_behind).map_err(failed)?;
    }
    let (revision, left_out) = copy(&changes).map_err(wrong)?;
    copy_files(&kept, &changes, &|name| is_of_store(name, with_secrets)).map_err(failed)?;
    copy_zones(&state.join("zones"), &scratch.0.join("zones")).map_err(failed)?;
    copy_files(&state.join("sets"), &scratch.0.join("sets"), &restore::is_kept_of_sets).map_err(failed)?;
    copy_files(&state.join("anchors"), &scratch.0.join("anchors"), &|_| true).map_err(failed)?;
    if with_secrets {
        // A state names keys, and not the other way round.
        for part in ["signing", "keys", "certificates"] {
            copy_all(&state.join(part), &scratch.0.join(part), 0).map_err(failed)?;
        }
    }
    let mut files = Vec::new();
    list(&scratch.0, "", &mut files).map_err(failed)?;
    let manifest = BackupManifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at: jiff::Timestamp::from_second(at as i64).unwrap_or_default().to_string(),
        revision,
        has_secrets: with_secrets,
        left_out,
        files,
    };
    if manifest.files.len() > FILES_MAX {
        return Err(wrong(format!("this would have more than {FILES_MAX} files, and could not be restored")));
    }
    let file = archive(&scratch.0, &manifest, at).map_err(failed)?;
    check_size(file.metadata().map_err(failed)?.len())?;
    Ok(file)
}

/// Refuses an archive that nobody could send back.
fn check_size(octets: u64) -> Result<(), BackupError> {
    match octets > ARCHIVE_OCTETS_MAX {
        true => Err(wrong(format!(
            "this would have {octets} octets, and at most {ARCHIVE_OCTETS_MAX} can be restored: stop the \
             server and save the state directory"
        ))),
        false => Ok(()),
    }
}

fn archive(from: &Path, manifest: &BackupManifest, at: u64) -> io::Result<File> {
    let path = from.join("archive");
    let file = create(&path)?;
    // Nobody finds it but who holds it.
    fs::remove_file(&path)?;
    let mut to = BufWriter::new(&file);
    let text = api::to_json(manifest);
    tar::put(&mut to, MANIFEST, (text.len() as u64, at), text.as_bytes())?;
    for BackupFile { path, octets, .. } in &manifest.files {
        tar::put(&mut to, path, (*octets, at), File::open(from.join(path))?)?;
    }
    tar::end(&mut to)?;
    to.flush()?;
    drop(to);
    (&file).rewind()?;
    Ok(file)
}

/// Returns whether a file in the folder of the store is one that a backup has, besides the
/// database, what follows it, and its large texts.
fn is_of_store(name: &str, with_secrets: bool) -> bool {
    name == "audit-sign.pub" || with_secrets && store::OTHER_KEYS.contains(&name)
}

/// Copies the plain files of a folder that are wanted.
pub(crate) fn copy_files(from: &Path, to: &Path, is_wanted: &dyn Fn(&str) -> bool) -> io::Result<()> {
    let Ok(all) = fs::read_dir(from) else { return Ok(()) };
    for file in all {
        let file = file?;
        let name = file.file_name();
        let is_wanted = name.to_str().is_some_and(|name| is_wanted(name) && !is_unfinished(name));
        if is_wanted && file.file_type()?.is_file() {
            folder(to)?;
            copy_file(&file.path(), &to.join(&name))?;
        }
    }
    Ok(())
}

fn is_unfinished(name: &str) -> bool {
    [".new", ".tmp"].iter().any(|end| name.ends_with(end))
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    // What is added meanwhile is of a later moment.
    let octets = from.metadata()?.len();
    io::copy(&mut (&mut from).take(octets), &mut create(to)?).map(drop)
}

/// Copies a folder with those in it.
fn copy_all(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    copy_files(from, to, &|_| true)?;
    let Ok(all) = fs::read_dir(from) else { return Ok(()) };
    for part in all.flatten().filter(|part| depth < 4 && part.file_type().is_ok_and(|it| it.is_dir())) {
        copy_all(&part.path(), &to.join(part.file_name()), depth + 1)?;
    }
    Ok(())
}

/// Copies journals of zones, each zone as it is at one moment: what is written anew while it is
/// copied is copied again.
fn copy_zones(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(all) = fs::read_dir(from) else { return Ok(()) };
    let mut zones = BTreeMap::<String, BTreeSet<String>>::new();
    for file in all {
        let file = file?;
        let name = file.file_name();
        let Some(name) = name.to_str().filter(|name| !is_unfinished(name)) else { continue };
        if file.file_type().is_ok_and(|it| it.is_file()) {
            let zone = name.rsplit_once('.').map_or(name, |(zone, _)| zone);
            zones.entry(zone.to_owned()).or_default().insert(name.to_owned());
        }
    }
    zones.into_iter().try_for_each(|(zone, mut files)| {
        // Either may be begun or be gone by then.
        files.extend(["base", "log"].map(|end| format!("{zone}.{end}")));
        copy_zone((from, to), &files, || {})
            .map_err(|error| io::Error::new(error.kind(), format!("the zone {zone}: {error}")))
    })
}

/// Copies the files of a zone; `copied` is called when they were copied once more.
fn copy_zone(
    (from, to): (&Path, &Path),
    files: &BTreeSet<String>,
    mut copied: impl FnMut(),
) -> io::Result<()> {
    let standing = || -> io::Result<Vec<(&String, u64)>> {
        let mut found = Vec::new();
        for name in files {
            match from.join(name).symlink_metadata() {
                Ok(file) => found.push((name, file.ino())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    };
    folder(to)?;
    for _ in 0..TRIES_MAX {
        let before = standing()?;
        let copy = before.iter().try_for_each(|(name, _)| copy_file(&from.join(name), &to.join(name)));
        copied();
        match copy {
            Ok(()) if standing()? == before => return Ok(()),
            // A file that is gone has made way for another.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for name in files {
            drop(fs::remove_file(to.join(name)));
        }
    }
    Err(io::Error::other("its files are written anew all the time"))
}

/// Lists files with their hashes, in order.
fn list(of: &Path, below: &str, files: &mut Vec<BackupFile>) -> io::Result<()> {
    let mut all = fs::read_dir(of.join(below))?.collect::<io::Result<Vec<_>>>()?;
    all.sort_by_key(fs::DirEntry::file_name);
    for file in all {
        let Some(name) = file.file_name().to_str().map(str::to_owned) else { continue };
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if file.file_type()?.is_dir() {
            list(of, &path, files)?;
        } else {
            let (octets, sha256) = digest(File::open(file.path())?, &mut io::sink())?;
            files.push(BackupFile { path, octets, sha256 });
        }
    }
    Ok(())
}

/// Copies octets; returns how many, and their SHA-256.
fn digest(mut from: impl Read, to: &mut impl Write) -> io::Result<(u64, String)> {
    let (mut context, mut octets, mut part) = (Context::new(&SHA256), 0, vec![0; 64 << 10]);
    loop {
        let len = from.read(&mut part)?;
        let Some(part) = part.get(..len).filter(|part| !part.is_empty()) else { break };
        context.update(part);
        to.write_all(part)?;
        octets += len as u64;
    }
    let hash = context.finish();
    Ok((octets, hash.as_ref().iter().map(|octet| format!("{octet:02x}")).collect()))
}

/// Returns whether a backup may have a file there: below one of our folders, and nowhere else.
fn is_place(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let is_ours = |part: Component<'_>| {
        let known = FOLDERS.iter().chain(&SECRET_FOLDERS);
        known.into_iter().any(|folder| part.as_os_str() == *folder)
    };
    parts.next().is_some_and(is_ours)
        && parts.clone().count() > 0
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && !path.contains(['\0', '\n'])
        && !path.contains("//")
        && !path.ends_with('/')
}

/// Checks a backup, and lays it down for the next start unless it is only to be checked. `check`
/// says whether this server can run on the store in a folder. Given are the time in seconds since
/// 1970, who wants it, and whether it is only to be checked.
///
/// # Errors
///
/// It is no backup, not as it was written, `check` refuses it, or it cannot be laid down.
pub fn lay_down(
    state: &Path,
    archive: &Path,
    (at, by, is_dry_run): (u64, &str, bool),
    check: impl FnOnce(&Path) -> Result<(), BackupError>,
) -> Result<Restored, BackupError> {
    let failed = |error| BackupError::Io("the backup cannot be laid down", error);
    let file = File::open(archive).map_err(failed)?;
    let scratch = Scratch(state.join(UNPACKED));
    drop(fs::remove_dir_all(&scratch.0));
    folder(&scratch.0).map_err(failed)?;
    let manifest = unpack(BufReader::new(file), &scratch.0)?;
    let changes = scratch.0.join("changes");
    let revision = Store::check_copy(&changes).map_err(|error| wrong(error.to_string()))?;
    if revision.revision != manifest.revision {
        return Err(wrong("the store in it is of another revision than it says"));
    }
    check(&changes)?;
    if !is_dry_run {
        let time = jiff::Timestamp::from_second(at as i64).unwrap_or_default();
        let name = format!("before-restore-{}", time.strftime("%Y%m%dT%H%M%SZ"));
        restore::note(&scratch.0, &name, by).map_err(failed)?;
        sync(&scratch.0).map_err(failed)?;
        restore::make_ready(state, &scratch.0).map_err(failed)?;
    }
    Ok(Restored {
        at: manifest.at,
        revision: manifest.revision,
        files: manifest.files.len() as u64,
        has_secrets: manifest.has_secrets,
        is_ready: !is_dry_run,
    })
}

/// Takes an archive apart: everything that its description says is there, and nothing else.
fn unpack(from: impl Read, to: &Path) -> Result<BackupManifest, BackupError> {
    let unread = |error: io::Error| wrong(format!("this is no backup, or a part of one: {error}"));
    let failed = |error| BackupError::Io("the backup cannot be laid down", error);
    let mut reader = tar::Reader::new(from);
    let first = reader.next().map_err(unread)?;
    if first.is_none_or(|(name, octets)| name != MANIFEST || octets > MANIFEST_OCTETS_MAX) {
        return Err(wrong(format!("this is no backup: it does not begin with {MANIFEST}")));
    }
    let mut text = Vec::new();
    reader.read_to_end(&mut text).map_err(unread)?;
    let manifest = BackupManifest::parse(&text).map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
    if manifest.format != FORMAT {
        return Err(wrong(format!(
            "the backup has format {} (gannet {}), and this is gannet {}, which knows {FORMAT}",
            manifest.format,
            manifest.version,
            env!("CARGO_PKG_VERSION")
        )));
    }
    if manifest.files.len() > FILES_MAX {
        return Err(wrong(format!("the backup has more than {FILES_MAX} files")));
    }
    for BackupFile { path, octets, sha256 } in &manifest.files {
        if !is_place(path) {
            return Err(wrong(format!(
                "the backup has a file \"{path}\", which is none of a state directory"
            )));
        }
        let next = reader.next().map_err(unread)?;
        if next.as_ref() != Some(&(path.clone(), *octets)) {
            return Err(wrong(format!("the file {path} is missing in the backup")));
        }
        let place = to.join(path);
        place.parent().map_or(Ok(()), folder).map_err(failed)?;
        let mut file = create(&place).map_err(failed)?;
        let (found, hash) = digest(&mut reader, &mut file).map_err(unread)?;
        if (found, &hash) != (*octets, sha256) {
            return Err(wrong(format!("the file {path} is not as it was written")));
        }
        file.sync_all().map_err(failed)?;
    }
    if let Some((name, _)) = reader.next().map_err(unread)? {
        return Err(wrong(format!("the backup has a file \"{name}\" that its {MANIFEST} does not know")));
    }
    // What was not there then is not to be there: a folder without files takes the place of one.
    let secret_folders: &[&str] = if manifest.has_secrets { &SECRET_FOLDERS } else { &[] };
    for part in FOLDERS.iter().chain(secret_folders) {
        folder(&to.join(part)).map_err(failed)?;
    }
    let write = || {
        let mut file = create(&to.join(MANIFEST))?;
        file.write_all(&text)?;
        file.sync_all()
    };
    write().map_err(failed)?;
    Ok(manifest)
}

/// Has folders with what is in them be on disk.
fn sync(of: &Path) -> io::Result<()> {
    for part in fs::read_dir(of)? {
        let part = part?;
        if part.file_type()?.is_dir() {
            sync(&part.path())?;
        }
    }
    File::open(of)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_has_files_below_our_folders_alone() {
        for path in ["changes/changes.db", "zones/example.org.base", "certificates/accounts/a.json"] {
            assert!(is_place(path), "{path}");
        }
        for path in [
            "changes",
            "changes/",
            "/changes/a",
            "changes/../a",
            "../changes/a",
            "etc/passwd",
            "",
            "zones/a\n",
            "changes//a",
            "control.sock",
        ] {
            assert!(!is_place(path), "{path}");
        }
    }

    /// Returns a state directory with a store, and a backup of it.
    fn backed_up(with_secrets: bool) -> (tempfile::TempDir, Vec<u8>) {
        let state = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(&state.path().join("changes")).expect("a store");
        let put = store::Put {
            space: "settings".to_owned(),
            name: "local.a".to_owned(),
            text: Some("192.0.2.1".to_owned()),
            until: None,
            expected: store::Expected::Any,
        };
        let change = store::Change {
            by: "anna".to_owned(),
            why: String::new(),
            at: 1,
            expected: None,
            puts: vec![put],
            differences: Vec::new(),
            differences_more: 0,
        };
        store.commit(&change).expect("kept");
        for (path, text) in
            [("zones/a.base", "base"), ("sets/bad.dynamic", "a"), ("keys/Ka.private", "hunter2")]
        {
            folder(state.path().join(path).parent().expect("a folder")).expect("a folder");
            fs::write(state.path().join(path), text).expect("written");
        }
        fs::write(state.path().join("changes").join(LAST_GOOD), "of before").expect("written");
        let copy = |to: &Path| {
            let copied = store.copy(&to.join("changes.db"), None).map_err(|error| error.to_string())?;
            // What goes on meanwhile.
            for name in [LAST_GOOD, AUDIT_KEY] {
                fs::write(state.path().join("changes").join(name), "of a later moment").expect("written");
            }
            Ok((copied.revision, Vec::new()))
        };
        let mut file = make(state.path(), (with_secrets, 1), copy).expect("a backup");
        let mut octets = Vec::new();
        file.read_to_end(&mut octets).expect("readable");
        (state, octets)
    }

    #[test]
    fn what_is_backed_up_is_restored_at_the_next_start_and_keys_only_if_they_are_asked_for() {
        for with_secrets in [false, true] {
            let (_from, octets) = backed_up(with_secrets);
            let state = tempfile::tempdir().expect("a temporary directory");
            let archive = state.path().join("archive");
            fs::write(&archive, &octets).expect("written");
            // What was not there then.
            for path in ["anchors/a.key", "signing/a"] {
                folder(state.path().join(path).parent().expect("a folder")).expect("a folder");
                fs::write(state.path().join(path), "now").expect("written");
            }
            let unfit = lay_down(state.path(), &archive, (2, "anna", false), |_| Err(wrong("unfit")));
            assert!(unfit.is_err() && !restore::ready(state.path()).exists());
            let checked =
                lay_down(state.path(), &archive, (2, "anna", true), |_| Ok(())).expect("it is right");
            assert!(!checked.is_ready && !restore::ready(state.path()).exists());
            let laid = lay_down(state.path(), &archive, (2, "anna", false), |_| Ok(())).expect("it is right");
            assert!(laid.is_ready && laid.revision == 1 && laid.has_secrets == with_secrets);
            assert!(restore::take_up(state.path()).expect("moved"));
            let store = Store::open(&state.path().join("changes")).expect("a store");
            assert_eq!(store.entries("settings").expect("readable")[0].text, "192.0.2.1");
            assert_eq!(fs::read(state.path().join("zones/a.base")).expect("there"), b"base");
            assert_eq!(state.path().join("keys/Ka.private").exists(), with_secrets);
            assert!(!state.path().join("anchors/a.key").exists());
            assert_eq!(state.path().join("signing/a").exists(), !with_secrets);
            let has = |text: &[u8]| octets.windows(text.len()).any(|part| part == text);
            assert_eq!((has(b"hunter2"), has(b"of before")), (with_secrets, with_secrets));
            assert!(!has(b"of a later moment"), "what follows the store is never ahead of it");
        }
    }

    #[test]
    fn no_larger_archive_is_made_than_can_be_restored() {
        assert!(check_size(ARCHIVE_OCTETS_MAX).is_ok() && check_size(ARCHIVE_OCTETS_MAX + 1).is_err());
    }

    #[test]
    fn a_zone_that_is_written_anew_while_it_is_copied_is_copied_again() {
        let (from, to) = (tempfile::tempdir(), tempfile::tempdir());
        let (from, to) = (from.expect("a folder"), to.expect("a folder"));
        let files: BTreeSet<String> = ["a.base", "a.log"].map(str::to_owned).into();
        for name in &files {
            fs::write(from.path().join(name), "before").expect("written");
        }
        let mut times = 0;
        let write_anew = || {
            times += 1;
            if times == 1 {
                fs::write(from.path().join("a.new"), "after").expect("written");
                fs::rename(from.path().join("a.new"), from.path().join("a.base")).expect("moved");
                fs::remove_file(from.path().join("a.log")).expect("removed");
            }
        };
        copy_zone((from.path(), to.path()), &files, write_anew).expect("copied");
        assert_eq!(times, 2);
        assert_eq!(fs::read(to.path().join("a.base")).expect("there"), b"after");
        assert!(!to.path().join("a.log").exists());
        fs::write(from.path().join("b.new"), "unfinished").expect("written");
        let to = to.path().join("all");
        copy_zones(from.path(), &to).expect("copied");
        assert_eq!(fs::read_dir(to).expect("a folder").count(), 1);
    }

    #[test]
    fn a_backup_that_is_cut_is_refused_and_no_other_octet_changes_what_is_laid_down() {
        let (_from, octets) = backed_up(true);
        let state = tempfile::tempdir().expect("a temporary directory");
        let archive = state.path().join("archive");
        let check = |octets: &[u8]| {
            fs::write(&archive, octets).expect("written");
            drop(fs::remove_dir_all(restore::ready(state.path())));
            let laid = lay_down(state.path(), &archive, (2, "anna", false), |_| Ok(()));
            assert_eq!(restore::ready(state.path()).exists(), laid.is_ok());
            laid.is_ok()
        };
        let end = octets.len() - 1024;
        for at in (0..end).step_by(4_001) {
            assert!(!check(&octets[..at]), "cut at {at}");
        }
        for at in (0..end).step_by(977) {
            let mut changed = octets.clone();
            changed[at] ^= 1;
            if check(&changed) {
                // It was what fills a block, or a name or a time that means nothing.
                let laid = restore::ready(state.path());
                let read = |path: &str| fs::read(laid.join(path)).unwrap_or_default();
                let found = ["zones/a.base", "sets/bad.dynamic", "keys/Ka.private"].map(read);
                assert_eq!(found, [b"base".to_vec(), b"a".to_vec(), b"hunter2".to_vec()], "octet {at}");
            }
        }
        assert!(check(&octets), "as it was");
    }
}
