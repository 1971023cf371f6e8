//! The folder for state: it, and what of it is ours, belong to the user that the server becomes.
//!
//! A server that was first run as root leaves files that the user who serves later could not read.
//! They are handed over at the start, while we are root. Nobody else's files are: names that are
//! not ours stay as they are, symbolic links are not followed, and a file with a second name
//! elsewhere is left alone.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use settings::Settings;
use tracing::{info, warn};

use crate::privileges::Become;

/// Mode of the folder.
const MODE: u32 = 0o750;
/// Folders and files in it, besides those that the configuration names.
const NAMES: [&str; 6] = ["changes", "control.sock", "keys", "sets", "signing", "zones"];
/// How deep folders may lie in each other.
const DEPTH_MAX: usize = 8;
/// The user whose files are handed over.
const ROOT: u32 = 0;

/// Sees to it that the folder is there and belongs to the user we are going to be.
pub(super) fn prepare(settings: &Settings, user: &Become) -> io::Result<()> {
    let folder = &settings.startup.state_directory;
    if folder.is_dir() {
        if let Some(owner) = user.owner() {
            hand_over(folder, &names(settings), owner);
        }
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(MODE))?;
    match user.owner() {
        Some((uid, gid)) => std::os::unix::fs::chown(folder, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

/// Returns the names in the folder that are ours.
fn names(settings: &Settings) -> Vec<OsString> {
    let mut names: Vec<OsString> = NAMES.iter().map(Into::into).collect();
    names.extend(settings.caches.iter().filter_map(|cache| Some(cache.dump_file.as_ref()?.into())));
    if let Some(recorder) = &settings.recorder {
        names.extend(server::recorder_files(&settings.startup.state_directory.join(&recorder.file)));
    }
    names
}

/// Gives what root has in the folder to `owner`, and the folder if nothing else is in it.
fn hand_over(folder: &Path, names: &[OsString], owner: (u32, u32)) {
    let mut handing = Handing { owner, count: 0 };
    let mut is_ours = true;
    // The folder itself may be wherever the operator wants it.
    let opened = std::fs::canonicalize(folder).and_then(|folder| open(&folder, libc::O_DIRECTORY));
    let all = opened.and_then(|opened| Ok((entries(&opened)?, opened)));
    let (all, opened) = match all {
        Ok(all) => all,
        Err(error) => return failed(folder, &error),
    };
    for name in all {
        if names.contains(&name) {
            handing.give(&within(&opened, &name), &folder.join(&name), DEPTH_MAX);
        } else if std::fs::symlink_metadata(folder.join(&name)).is_ok_and(|found| found.uid() == ROOT) {
            is_ours = false;
        }
    }
    match opened.metadata() {
        Ok(found) if found.uid() == ROOT && is_ours => handing.change(&opened, folder),
        Ok(found) if found.uid() == ROOT => {
            warn!(
                folder = %folder.display(),
                "the folder for state belongs to root and has other files than the server's in it: it stays root's"
            );
        }
        Ok(_) | Err(_) => {}
    }
    if handing.count > 0 {
        info!(
            folder = %folder.display(),
            count = handing.count,
            "files and folders that root had made belong to the server's user now"
        );
    }
}

/// Files on their way to another user.
struct Handing {
    owner: (u32, u32),
    count: usize,
}

impl Handing {
    /// Gives a file, or a folder with what is in it; `shown` is its name for people.
    fn give(&mut self, path: &Path, shown: &Path, depth: usize) {
        let Ok(found) = std::fs::symlink_metadata(path) else { return };
        let is_folder = found.is_dir();
        if !is_folder && (!found.is_file() || found.uid() != ROOT) {
            return;
        }
        let opened = match open(path, if is_folder { libc::O_DIRECTORY } else { 0 }) {
            Ok(opened) => opened,
            Err(error) => return failed(shown, &error),
        };
        // What was opened counts, not what was there before.
        let Ok(found) = opened.metadata() else { return };
        if found.is_dir() && depth > 0 {
            match entries(&opened) {
                Ok(all) => {
                    for name in all {
                        self.give(&within(&opened, &name), &shown.join(&name), depth - 1);
                    }
                }
                Err(error) => failed(shown, &error),
            }
        }
        if found.uid() == ROOT {
            if found.is_file() && found.nlink() > 1 {
                warn!(path = %shown.display(), "stays root's: the file has another name somewhere");
            } else {
                self.change(&opened, shown);
            }
        }
    }

    fn change(&mut self, opened: &File, shown: &Path) {
        let (uid, gid) = self.owner;
        match fchown(opened, Some(uid), Some(gid)) {
            Ok(()) => self.count += 1,
            Err(error) => failed(shown, &error),
        }
    }
}

/// Opens a file or folder, but never by way of a symbolic link at the end of its path, and waits
/// for nobody.
fn open(path: &Path, also: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | also).open(path)
}

/// Returns where something in an opened folder is, whatever becomes of the folder's path (proc(5)).
fn within(folder: &File, name: &std::ffi::OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// Returns the names in a folder.
fn entries(folder: &File) -> io::Result<Vec<OsString>> {
    std::fs::read_dir(within(folder, ".".as_ref()))?.map(|entry| Ok(entry?.file_name())).collect()
}

fn failed(path: &Path, error: &io::Error) {
    warn!(path = %path.display(), %error, "cannot be handed to the server's user");
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    const OWNER: (u32, u32) = (65_534, 65_534);

    fn owner(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("it is there").uid()
    }

    /// Only root can give files away: for everybody else there is nothing to show.
    #[test]
    fn what_root_made_is_handed_over_and_nothing_besides() {
        if crate::sys::effective_user() != ROOT {
            return;
        }
        let place = tempfile::tempdir().expect("a temporary directory");
        let (folder, outside) = (place.path().join("state"), place.path().join("outside"));
        for made in [&folder.join("zones/a"), &outside] {
            std::fs::create_dir_all(made).expect("made");
        }
        for file in ["state/zones/a/journal", "state/queries.db", "state/zones/linked", "outside/secret"] {
            std::fs::write(place.path().join(file), "x").expect("written");
        }
        std::fs::hard_link(folder.join("zones/linked"), outside.join("second name")).expect("linked");
        symlink(outside.join("secret"), folder.join("zones/link")).expect("linked");
        symlink(&outside, folder.join("sets")).expect("linked");
        let other = folder.join("zones/somebody's");
        std::fs::write(&other, "x").expect("written");
        chown(&other, Some(1234), None).expect("root may");
        let names: Vec<OsString> = ["zones", "sets", "queries.db"].iter().map(Into::into).collect();
        hand_over(&folder, &names, OWNER);
        for given in ["state", "state/zones", "state/zones/a", "state/zones/a/journal", "state/queries.db"] {
            assert_eq!(owner(&place.path().join(given)), OWNER.0, "{given}");
        }
        for kept in ["outside", "outside/secret", "outside/second name", "state/zones/link", "state/sets"] {
            assert_eq!(owner(&place.path().join(kept)), ROOT, "{kept}");
        }
        assert_eq!(owner(&other), 1234);
    }

    #[test]
    fn a_folder_that_is_not_only_ours_stays_root_s() {
        if crate::sys::effective_user() != ROOT {
            return;
        }
        let place = tempfile::tempdir().expect("a temporary directory");
        for file in ["queries.db", "passwd"] {
            std::fs::write(place.path().join(file), "x").expect("written");
        }
        hand_over(place.path(), &["queries.db".into()], OWNER);
        assert_eq!(owner(&place.path().join("queries.db")), OWNER.0);
        assert_eq!((owner(place.path()), owner(&place.path().join("passwd"))), (ROOT, ROOT));
    }
}
