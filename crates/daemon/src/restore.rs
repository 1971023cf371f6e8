//! `gannet restore --offline`: a backup for the next start of a server that does not run.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use commands::cli::{CheckFormat, ConfigArgs, RestoreArgs};
use commands::{configuration, out, progress, remote};
use control::api;
use diagnostic::Diagnostic;
use server::BackupError;
use settings::{Loaded, Origin};

use crate::privileges::Become;
use crate::run::USUAL_USER;

/// Who wants it, as the audit log has it: there is no telling who is at the keyboard.
const BY: &str = "restore --offline";

/// Mode of a state directory that is made.
const MODE: u32 = 0o700;

/// Why a backup is not restored.
enum Refusal {
    /// The configuration, or with it what is in the backup.
    Mistakes(Vec<Diagnostic>),
    /// Anything else.
    Because(String),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

/// Runs `gannet restore --offline`.
pub(crate) fn run(args: &RestoreArgs) -> ExitCode {
    let output = args.remote.output;
    let origin = configuration::find(&ConfigArgs { config: args.config.clone() });
    match restore(&origin, args) {
        Ok(restored) => {
            match output.json {
                true => out::print(&api::to_json(&restored)),
                false => out::print(&remote::shown_restored(&restored)),
            }
            out::FINE
        }
        Err(Refusal::Mistakes(found)) => {
            let format = if output.json { CheckFormat::Json } else { CheckFormat::Human };
            configuration::report(&origin, &found, format)
        }
        Err(Refusal::Because(why)) => out::failed(&why, output),
    }
}

fn restore(origin: &Origin, args: &RestoreArgs) -> Result<api::Restored, Refusal> {
    if let Origin::Unbound(_) = origin {
        return Err("this configuration keeps nothing beside it".to_owned().into());
    }
    let mut files = origin.load().map_err(Refusal::Mistakes)?;
    devices::interfaces::look_up(&mut files).map_err(Refusal::Mistakes)?;
    let startup = &files.settings.startup;
    let state = startup.state_directory.as_path();
    let wrong = |error: io::Error| Refusal::Because(format!("{}: {error}", state.display()));
    let _made = match state.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let user = Become::plan(Some(startup.user.as_deref().unwrap_or(USUAL_USER))).map_err(wrong)?;
            make(state, user.owner()).map_err(wrong)?;
            args.dry_run.then(|| Made(state))
        }
        _ => None,
    };
    is_ours(state).map_err(wrong)?;
    let held = authority::hold(state);
    let held = held.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Refusal::Because(format!(
            "a server uses {}: leave out --offline, or end that server first",
            state.display()
        )),
        _ => wrong(error),
    })?;
    if held.is_none() {
        return Err(Refusal::Because(format!(
            "{}: nothing can be locked there, so a server may use it: restore through that server, without --offline",
            state.display()
        )));
    }
    let key = startup.audit_key.as_ref().and_then(|it| it.key.reveal().try_into().ok());
    let check = |changes: &Path| {
        let layers = authority::layers_in_copy(changes, key);
        let layers = layers.map_err(|error| BackupError::Wrong(error.to_string()))?;
        let fits = files.with_changes(&layers, &environment::System).and_then(compiles);
        fits.map_err(BackupError::Unfit)
    };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    server::lay_down(state, &args.file, (at, BY, args.dry_run), check).map_err(|error| match error {
        BackupError::Io(what, error) => format!("{what}: {error}").into(),
        BackupError::Wrong(why) => why.into(),
        BackupError::Unfit(found) => Refusal::Mistakes(found),
    })
}

/// Returns an error if the next start could not run on a configuration with what is in a backup.
fn compiles(mut loaded: Loaded) -> Result<(), Vec<Diagnostic>> {
    // They come with it.
    loaded.settings.has_added_zones = true;
    progress::shown(|machine| server::compile(&loaded, &[], None, machine)).map(drop)
}

/// A state directory that was made for a check alone, and goes with it.
struct Made<'p>(&'p Path);

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // What is in it stays.
        drop(fs::remove_dir(self.0));
    }
}

/// Makes a state directory that is not there, as a first start does, for the server's user.
fn make(state: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    if let Some(above) = state.parent() {
        fs::create_dir_all(above)?;
    }
    fs::DirBuilder::new().mode(MODE).create(state)?;
    owner.map_or(Ok(()), |(user, group)| chown(state, Some(user), Some(group)))
}

/// Returns an error unless a state directory belongs to who runs this, and nobody else can write to
/// it: what is laid down there is to be read by its owner, and nobody is to lead root anywhere in
/// it. A symbolic link is not followed.
fn is_ours(state: &Path) -> io::Result<()> {
    let (found, own) = (fs::symlink_metadata(state)?, fs::metadata("/proc/self")?.uid());
    let (owner, group, mode) = (found.uid(), found.gid(), found.mode() & 0o7777);
    if !found.is_dir() {
        return Err(io::Error::other("it is not a directory: say where it is without a symbolic link"));
    }
    if owner != own {
        return Err(io::Error::other(format!(
            "it belongs to the user {owner}: restore as that user, such as with \"setpriv --reuid={owner} \
             --regid={group} --clear-groups\""
        )));
    }
    if mode & 0o022 != 0 {
        return Err(io::Error::other(format!(
            "others than its owner can write to it (mode {mode:04o}): take that away with \"chmod go-w\""
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_state_directory_is_made_and_taken_only_if_nobody_else_writes_to_it() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().join("lib/gannet");
        assert_eq!(is_ours(&state).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        make(&state, None).expect("made");
        assert_eq!(fs::metadata(&state).expect("there").mode() & 0o7777, MODE);
        is_ours(&state).expect("it is");
        let link = place.path().join("link");
        symlink(&state, &link).expect("a link");
        assert!(is_ours(&link).is_err_and(|error| error.to_string().contains("symbolic link")));
        for mode in [0o770, 0o707, 0o1777] {
            fs::set_permissions(&state, fs::Permissions::from_mode(mode)).expect("it is ours");
            assert!(is_ours(&state).is_err_and(|error| error.to_string().contains("chmod go-w")), "{mode:o}");
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("it is ours");
        is_ours(&state).expect("others may look");
        drop(Made(&state));
        assert!(!state.exists());
    }
}
