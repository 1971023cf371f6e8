//! `gannet restore --offline`: a backup for the next start of a server that does not run.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use commands::cli::{CheckFormat, ConfigArgs, RestoreArgs};
use commands::{configuration, out, progress, remote};
use control::api;
use diagnostic::Diagnostic;
use server::BackupError;
use settings::{Loaded, Origin};

/// Who wants it, as the audit log has it: there is no telling who is at the keyboard.
const BY: &str = "restore --offline";

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
    is_ours(state).map_err(wrong)?;
    let held = authority::hold(state);
    let _held = held.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Refusal::Because(format!(
            "a server uses {}: leave out --offline, or end that server first",
            state.display()
        )),
        _ => wrong(error),
    })?;
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

/// Returns an error unless a state directory belongs to who runs this: what is laid down there is
/// to be read by its owner, and nobody else is to lead root anywhere in it.
fn is_ours(state: &Path) -> io::Result<()> {
    let (owner, own) = (fs::metadata(state)?.uid(), fs::metadata("/proc/self")?.uid());
    match owner == own {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "it belongs to the user {owner}: restore as that user, such as with \"setpriv --reuid={owner}\""
        ))),
    }
}
