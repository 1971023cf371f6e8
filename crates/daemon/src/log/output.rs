//! Where lines of the log go: standard error, a file that can be moved away, the system's log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, fchown};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use settings::{Log, LogPlace};
use tracing::warn;

use crate::sys;

/// Where the system's log takes messages.
const SYSLOG: &str = "/dev/log";
/// The facility of daemons, as part of a priority (RFC 3164 §4.1.1).
const DAEMON: u8 = 3 << 3;
/// Mode of a file.
const MODE: u32 = 0o640;
/// Names of months in the system's log.
pub(super) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Where lines go.
#[derive(Debug, Default)]
pub(crate) struct Output {
    sink: Mutex<Sink>,
    file: Option<PathBuf>,
}

#[derive(Debug, Default)]
enum Sink {
    #[default]
    Stderr,
    File(File),
    Syslog(UnixDatagram, String),
}

impl Output {
    /// Opens where the settings want lines to go.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub(crate) fn open(log: &Log) -> Result<Self, String> {
        let (sink, file) = match &log.place {
            LogPlace::Stderr => (Sink::Stderr, None),
            LogPlace::File(path) => {
                let file = open(path)
                    .map_err(|error| format!("cannot open {} for the log: {error}", path.display()))?;
                (Sink::File(file), Some(path.clone()))
            }
            LogPlace::Syslog => match syslog() {
                Ok(socket) => (Sink::Syslog(socket, log.identity.clone()), None),
                // A machine without one still has whoever started us.
                Err(_) => (Sink::Stderr, None),
            },
        };
        Ok(Self { sink: Mutex::new(sink), file })
    }

    /// Returns whether lines go to standard error.
    pub(crate) fn is_stderr(&self) -> bool {
        matches!(&*self.lock(), Sink::Stderr)
    }

    /// Gives the file to the user that the server becomes.
    pub(crate) fn give_to(&self, owner: Option<(u32, u32)>) {
        if let (Some((user, group)), Sink::File(file)) = (owner, &*self.lock()) {
            // Who cannot own it can still write what is open.
            let _ = fchown(file, Some(user), Some(group));
        }
    }

    /// Opens the file again, as whoever moved it away wants a new one.
    pub(crate) fn reopen(&self) {
        let Some(path) = &self.file else { return };
        match open(path) {
            Ok(file) => *self.lock() = Sink::File(file),
            Err(error) => {
                warn!(file = %path.display(), %error, "the log cannot be opened again, and stays where it was");
            }
        }
    }

    /// Returns what a line is written to.
    pub(super) fn writer(self: &Arc<Self>) -> Writer {
        Writer(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

fn syslog() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SYSLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Writes one line, which comes whole.
pub(super) struct Writer(Arc<Output>);

impl Write for Writer {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut *self.0.lock() {
            Sink::Stderr => io::stderr().lock().write_all(octets)?,
            Sink::File(file) => file.write_all(octets)?,
            Sink::Syslog(socket, identity) => {
                let message = message(identity, octets);
                // A log that takes nothing keeps nobody; one that was started again is found again.
                if socket.send(&message).is_err()
                    && let Ok(again) = syslog()
                {
                    *socket = again;
                    let _ = socket.send(&message);
                }
            }
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a message as the system's log takes it (RFC 3164).
fn message(identity: &str, line: &[u8]) -> Vec<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // What the line says of its importance stands behind the numbers of process and thread.
    let text = String::from_utf8_lossy(line);
    let word = text.split("] ").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or("");
    let priority = match word {
        "error" => 3,
        "warning" => 4,
        "debug" => 7,
        _ => 6,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let time = sys::local_time(now);
    let month = usize::try_from(time.month).ok().and_then(|at| MONTHS.get(at)).unwrap_or(&"Jan");
    format!(
        "<{}>{month} {:2} {:02}:{:02}:{:02} {identity}: {text}",
        DAEMON | priority,
        time.day,
        time.hour,
        time.minute,
        time.second
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_moved_away_is_made_again() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("log");
        let log = Log {
            format: settings::LogFormat::Text,
            place: LogPlace::File(path.clone()),
            identity: "x".to_owned(),
            time: settings::LogTime::Seconds,
            tags_queries: false,
        };
        let output = Arc::new(Output::open(&log).expect("it opens"));
        output.writer().write_all(b"one\n").expect("written");
        let moved = place.path().join("moved");
        std::fs::rename(&path, &moved).expect("moved");
        output.writer().write_all(b"two\n").expect("written");
        output.reopen();
        output.writer().write_all(b"three\n").expect("written");
        assert_eq!(std::fs::read_to_string(moved).expect("there"), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(path).expect("there"), "three\n");
    }

    #[test]
    fn importance_is_told_to_the_system_s_log() {
        let of = |line: &str| String::from_utf8(message("unbound", line.as_bytes())).expect("text");
        let error = of("[17:0] error: it is broken\n");
        assert!(
            error.starts_with("<27>") && error.ends_with(" unbound: [17:0] error: it is broken"),
            "{error}"
        );
        assert!(of("[17:0] info: fine").starts_with("<30>"));
        assert!(of("anything").starts_with("<30>"));
    }
}
