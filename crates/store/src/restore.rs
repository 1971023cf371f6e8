//! A backup that was laid down for the next start, and how it takes the place of what is there.
//!
//! What is laid down is complete and checked when its folder has its name. From then on each part
//! moves on its own, and a start that is killed in their midst is gone on with by the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of what is laid down, in the state directory.
const READY: &str = "restore.ready";
/// One that is only to be removed.
const USED: &str = "restore.done";
/// The folder with dynamic sets and copies of fetched lists.
const SETS: &str = "sets";
/// Its description, which stays behind as [`DONE`].
pub const MANIFEST: &str = "manifest.json";
/// Says that a backup was taken up, until somebody has told of it.
const DONE: &str = "restored.json";
/// A file with who wants it, which stays behind as the second.
const BY: &str = "by";
const DONE_BY: &str = "restored.by";
/// A file with the name of the folder that what was there moves to.
const BEFORE: &str = "before";

/// Folders of the state directory that every backup has.
pub const FOLDERS: [&str; 4] = ["changes", "zones", SETS, "anchors"];
/// Those that one with secrets has, too.
pub const SECRET_FOLDERS: [&str; 3] = ["keys", "signing", "certificates"];

/// Returns the folder in which a backup is laid down; nothing is there before it is complete.
pub fn ready(state: &Path) -> PathBuf {
    state.join(READY)
}

/// Returns whether a backup has a file of the folder with sets: copies of fetched lists are made
/// again, and stay where they are.
pub fn is_kept_of_sets(name: &str) -> bool {
    name.contains(".dynamic")
}

/// Notes in a backup that is being laid down the folder that what was there moves to, and who wants
/// it.
///
/// # Errors
///
/// It cannot be written.
pub fn note(laid: &Path, before: &str, by: &str) -> io::Result<()> {
    for (name, text) in [(BY, by), (BEFORE, before)] {
        fs::write(laid.join(name), text)?;
        File::open(laid.join(name))?.sync_all()?;
    }
    Ok(())
}

/// Has a backup that is complete be taken up by the next start, in place of one that nobody has
/// taken up yet.
///
/// # Errors
///
/// It cannot be moved.
pub fn make_ready(state: &Path, laid: &Path) -> io::Result<()> {
    // Whole folders change their names: what is removed piece by piece is never taken up.
    put_away(state)?;
    fs::rename(laid, ready(state))?;
    sync(state)?;
    drop(fs::remove_dir_all(state.join(USED)));
    Ok(())
}

/// Has the folder of what is laid down be one that is only to be removed.
fn put_away(state: &Path) -> io::Result<()> {
    let used = state.join(USED);
    match fs::remove_dir_all(&used) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::rename(ready(state), used) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync(state),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Returns whether this is a name that a server gives to the folder with what was there before.
fn is_before(name: &str) -> bool {
    let time = name.strip_prefix("before-restore-").unwrap_or_default();
    !time.is_empty() && time.bytes().all(|octet| octet.is_ascii_digit() || b"TZ".contains(&octet))
}

/// Returns whether there is a folder; a file or a symbolic link in its place is an error.
fn is_folder(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(strange(&format!("{} is no folder", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes up a backup that was laid down: what it has takes the place of what is there, which moves
/// to a folder of its own. Returns whether there was one.
///
/// It may run as root in a folder of the user who serves: only names that the server gives are
/// taken, and no symbolic link is followed.
///
/// # Errors
///
/// Something cannot be moved; the next start goes on.
pub fn take_up(state: &Path) -> io::Result<bool> {
    let laid = ready(state);
    if !is_folder(&laid)? {
        // One that was taken up by a start that was killed then.
        drop(fs::remove_dir_all(state.join(USED)));
        return Ok(false);
    }
    let noted = laid.join(BEFORE);
    match noted.symlink_metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(strange("the name of the folder for what was there is no file")),
        // It is there until all is in its place: what is left was being removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            put_away(state)?;
            drop(fs::remove_dir_all(state.join(USED)));
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    let before = fs::read_to_string(noted)?;
    let before = Some(before.trim()).filter(|name| is_before(name));
    let before =
        state.join(before.ok_or_else(|| strange("what was there cannot move to a folder of that name"))?);
    for name in FOLDERS.iter().chain(&SECRET_FOLDERS) {
        let (part, place) = (laid.join(name), state.join(name));
        if !is_folder(&part)? {
            continue;
        }
        if place.symlink_metadata().is_ok() {
            if *name == SETS {
                move_fetched(&place, &part)?;
            }
            if !is_folder(&before)? {
                fs::create_dir(&before)?;
            }
            fs::rename(&place, before.join(name))?;
        }
        fs::rename(part, &place)?;
    }
    sync(state)?;
    for (from, to) in [(BY, DONE_BY), (MANIFEST, DONE)] {
        match fs::rename(laid.join(from), state.join(to)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    put_away(state)?;
    drop(fs::remove_dir_all(state.join(USED)));
    Ok(true)
}

/// Moves copies of fetched lists to where they are to stay.
fn move_fetched(from: &Path, to: &Path) -> io::Result<()> {
    if !is_folder(from)? {
        return Ok(());
    }
    for file in fs::read_dir(from)? {
        let file = file?;
        let name = file.file_name();
        if file.file_type()?.is_file() && !name.to_str().is_none_or(is_kept_of_sets) {
            fs::rename(file.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Returns the description of a backup that was taken up, and who wanted it, until it is
/// [told](told).
pub fn taken_up(state: &Path) -> Option<(Vec<u8>, Option<String>)> {
    let text = fs::read(state.join(DONE)).ok()?;
    Some((text, fs::read_to_string(state.join(DONE_BY)).ok()))
}

/// Forgets that a backup was taken up. It is told of again if that fails.
pub fn told(state: &Path) {
    for name in [DONE, DONE_BY] {
        drop(fs::remove_file(state.join(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "before-restore-20261127T121200Z";

    fn lay_down(state: &Path) {
        let laid = ready(state);
        for (folder, text) in [("changes", "new"), ("zones", "new")] {
            fs::create_dir_all(laid.join(folder)).expect("a folder");
            fs::write(laid.join(folder).join("a"), text).expect("written");
        }
        fs::write(laid.join(MANIFEST), "{}").expect("written");
        note(&laid, NAME, "anna").expect("written");
    }

    fn read(state: &Path, path: &str) -> String {
        fs::read_to_string(state.join(path)).unwrap_or_default()
    }

    #[test]
    fn a_start_that_is_killed_at_any_move_is_gone_on_with() {
        for killed_at in 0..5 {
            let folder = tempfile::tempdir().expect("a temporary directory");
            let state = folder.path();
            for place in ["changes", "sets"] {
                fs::create_dir_all(state.join(place)).expect("a folder");
                fs::write(state.join(place).join("a"), "old").expect("written");
            }
            lay_down(state);
            // What a start has done that was killed.
            let moves: [(&str, &str); 3] = [
                ("changes", "before-restore-20261127T121200Z/changes"),
                ("restore.ready/changes", "changes"),
                ("restore.ready/zones", "zones"),
            ];
            for (from, to) in moves.iter().take(killed_at) {
                fs::create_dir_all(state.join(to).parent().expect("a folder")).expect("a folder");
                fs::rename(state.join(from), state.join(to)).expect("moved");
            }
            if killed_at == 4 {
                fs::rename(state.join("restore.ready").join(MANIFEST), state.join(DONE)).expect("moved");
            }
            assert!(take_up(state).is_ok_and(|is_some| is_some), "{killed_at}");
            let found = ["changes/a", "zones/a", "sets/a", "before-restore-20261127T121200Z/changes/a"]
                .map(|it| read(state, it));
            assert_eq!(found, ["new", "new", "old", "old"], "{killed_at}");
            let (_, by) = taken_up(state).expect("it was taken up");
            assert_eq!(by.as_deref(), Some("anna"));
            told(state);
            assert!(taken_up(state).is_none());
            assert!(take_up(state).is_ok_and(|is_some| !is_some));
            assert!(!state.join(USED).exists());
        }
    }

    #[test]
    fn what_a_start_that_was_killed_has_left_to_remove_is_in_no_start_s_way() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let state = folder.path();
        for left in [READY, USED] {
            fs::create_dir_all(state.join(left).join("zones")).expect("a folder");
        }
        assert!(take_up(state).is_ok_and(|is_some| !is_some));
        assert!(!state.join(READY).exists() && !state.join(USED).exists() && !state.join("zones").exists());
        // One that nobody has taken up makes way for a later one.
        lay_down(state);
        fs::create_dir_all(state.join("restore.new/sets")).expect("a folder");
        make_ready(state, &state.join("restore.new")).expect("moved");
        assert!(ready(state).join("sets").exists() && !ready(state).join("zones").exists());
        assert!(!state.join(USED).exists());
    }

    #[test]
    fn only_names_that_a_server_gives_are_taken_and_no_link_is_followed() {
        for name in ["/etc", "../a", "before-restore-", "before-restore-2026/..", "changes", ""] {
            assert!(!is_before(name), "{name}");
        }
        type Twist = fn(&Path, &Path);
        let twists: [Twist; 4] = [
            |state, elsewhere| {
                let name = elsewhere.display().to_string();
                note(&ready(state), &name, "anna").expect("written");
            },
            |state, elsewhere| {
                std::os::unix::fs::symlink(elsewhere, state.join(NAME)).expect("linked");
            },
            |state, elsewhere| {
                fs::remove_dir_all(ready(state).join("zones")).expect("removed");
                std::os::unix::fs::symlink(elsewhere, ready(state).join("zones")).expect("linked");
            },
            |state, elsewhere| {
                fs::remove_file(ready(state).join(BEFORE)).expect("removed");
                fs::write(elsewhere.join("name"), NAME).expect("written");
                std::os::unix::fs::symlink(elsewhere.join("name"), ready(state).join(BEFORE))
                    .expect("linked");
            },
        ];
        for (number, twist) in twists.into_iter().enumerate() {
            let (folder, elsewhere) = (tempfile::tempdir(), tempfile::tempdir());
            let (folder, elsewhere) = (folder.expect("a folder"), elsewhere.expect("a folder"));
            let state = folder.path();
            fs::create_dir_all(state.join("changes")).expect("a folder");
            lay_down(state);
            twist(state, elsewhere.path());
            assert!(take_up(state).is_err(), "{number}");
            assert!(!elsewhere.path().join("changes").exists(), "{number}");
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        lay_down(folder.path());
        fs::create_dir_all(ready(folder.path()).join("bin")).expect("a folder");
        assert!(take_up(folder.path()).is_ok_and(|is_some| is_some));
        assert!(!folder.path().join("bin").exists());
    }

    #[test]
    fn copies_of_fetched_lists_stay_and_members_of_sets_are_those_of_the_backup() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let state = folder.path();
        fs::create_dir_all(state.join("sets")).expect("a folder");
        for file in ["bad-00", "x.dynamic"] {
            fs::write(state.join("sets").join(file), "old").expect("written");
        }
        lay_down(state);
        fs::create_dir_all(ready(state).join("sets")).expect("a folder");
        assert!(take_up(state).is_ok_and(|is_some| is_some));
        assert_eq!(read(state, "sets/bad-00"), "old");
        assert!(!state.join("sets/x.dynamic").exists());
        assert_eq!(read(state, &format!("{NAME}/sets/x.dynamic")), "old");
    }
}
