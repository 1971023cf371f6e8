//! A backup that was laid down for the next start, and how it takes the place of what is there.
//!
//! What is laid down is complete and checked when its folder has its name. From then on each part
//! moves on its own, and a start that is killed in their midst is gone on with by the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of what is laid down, in the state directory.
const READY: &str = "restore.ready";
/// Its description, which stays behind as [`DONE`].
pub const MANIFEST: &str = "manifest.json";
/// Says that a backup was taken up, until somebody has told of it.
const DONE: &str = "restored.json";
/// A file with the name of the folder that what was there moves to.
const BEFORE: &str = "before";

/// Returns the folder in which a backup is laid down; nothing is there before it is complete.
pub fn ready(state: &Path) -> PathBuf {
    state.join(READY)
}

/// Names the folder that what was there moves to, in a backup that is being laid down.
///
/// # Errors
///
/// It cannot be written.
pub fn note_before(laid: &Path, name: &str) -> io::Result<()> {
    fs::write(laid.join(BEFORE), name)?;
    File::open(laid.join(BEFORE))?.sync_all()
}

/// Takes up a backup that was laid down: what it has takes the place of what is there, which moves
/// to a folder of its own. Returns whether there was one.
///
/// # Errors
///
/// Something cannot be moved; the next start goes on.
pub fn take_up(state: &Path) -> io::Result<bool> {
    let laid = ready(state);
    let parts = match fs::read_dir(&laid) {
        Ok(parts) => parts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let before = fs::read_to_string(laid.join(BEFORE))?;
    let before = state.join(before.trim());
    for part in parts {
        let part = part?;
        if !part.file_type()?.is_dir() {
            continue;
        }
        let place = state.join(part.file_name());
        if place.symlink_metadata().is_ok() {
            fs::create_dir_all(&before)?;
            fs::rename(&place, before.join(part.file_name()))?;
        }
        fs::rename(part.path(), &place)?;
    }
    File::open(state)?.sync_all()?;
    match fs::rename(laid.join(MANIFEST), state.join(DONE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir_all(&laid)?;
    File::open(state)?.sync_all()?;
    Ok(true)
}

/// Returns the description of a backup that was taken up, once.
pub fn taken_up(state: &Path) -> Option<Vec<u8>> {
    let file = state.join(DONE);
    let text = fs::read(&file).ok()?;
    // It is told of again if it cannot be removed.
    drop(fs::remove_file(&file));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_down(state: &Path) {
        let laid = ready(state);
        for (folder, text) in [("changes", "new"), ("zones", "new")] {
            fs::create_dir_all(laid.join(folder)).expect("a folder");
            fs::write(laid.join(folder).join("a"), text).expect("written");
        }
        fs::write(laid.join(MANIFEST), "{}").expect("written");
        note_before(&laid, "before-restore").expect("written");
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
                ("changes", "before-restore/changes"),
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
            let found =
                ["changes/a", "zones/a", "sets/a", "before-restore/changes/a"].map(|it| read(state, it));
            assert_eq!(found, ["new", "new", "old", "old"], "{killed_at}");
            assert!(taken_up(state).is_some() && taken_up(state).is_none());
            assert!(take_up(state).is_ok_and(|is_some| !is_some));
        }
    }
}
