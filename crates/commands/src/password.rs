//! Passwords as people give them to commands: typed where nobody sees them, or in a file; never as
//! an argument, which every user of the machine can read.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::Path;

use control::api::Secret;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

/// Octets of a file that are read.
const OCTETS_MAX: u64 = 4096;
/// What keys of a terminal send.
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const ERASE_LINE: u8 = 0x15;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// Reads a password: the first line of a file (`-`: of standard input), or what is typed twice.
pub(crate) fn read(file: Option<&Path>) -> Result<Secret, String> {
    match file {
        Some(file) if file == Path::new("-") => first_line(&mut io::stdin().lock(), "standard input"),
        Some(path) => {
            let cannot =
                |error: &io::Error| format!("cannot read the password in {}: {error}", path.display());
            let mut file = File::open(path).map_err(|error| cannot(&error))?;
            first_line(&mut file, &path.display().to_string())
        }
        None => {
            let mut terminal = terminal().ok_or_else(|| {
                "there is no terminal to ask for a password: name a file with --password-file (\"-\" is standard input)"
                    .to_owned()
            })?;
            let first = typed(&mut terminal, "Password: ")?;
            let second = typed(&mut terminal, "Again: ")?;
            match first == second {
                true => Ok(Secret(first.to_string())),
                false => Err("the two are not the same".to_owned()),
            }
        }
    }
}

/// Returns the terminal of the person who runs the command, if there is one.
fn terminal() -> Option<File> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    // Who gives the command something else to read is not there to be asked.
    terminal.ok().filter(|it| it.is_terminal() && io::stdin().is_terminal())
}

/// Returns whether there is somebody to ask.
pub(crate) fn can_ask() -> bool {
    terminal().is_some()
}

/// Asks for something that is not shown, once.
pub(crate) fn ask(prompt: &str) -> Result<Secret, String> {
    let mut terminal = terminal().ok_or_else(|| "there is no terminal".to_owned())?;
    typed(&mut terminal, prompt).map(|text| Secret(text.to_string()))
}

fn first_line(from: &mut impl Read, name: &str) -> Result<Secret, String> {
    let mut text = Zeroizing::new(String::new());
    from.take(OCTETS_MAX)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot read the password in {name}: {error}"))?;
    let mut lines = text.lines();
    let line = lines.next().unwrap_or("");
    match lines.all(str::is_empty) {
        _ if line.is_empty() => Err(format!("there is no password in {name}")),
        true => Ok(Secret(line.to_owned())),
        false => Err(format!("there is more than a password in {name}: expected one line")),
    }
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Blind<'t> {
    terminal: &'t File,
    before: Termios,
}

impl<'t> Blind<'t> {
    fn new(terminal: &'t File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut blind = before.clone();
        // Key by key, so that an interrupt leaves the terminal as it was.
        blind.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        blind.special_codes[SpecialCodeIndex::VMIN] = 1;
        blind.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &blind)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Blind<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Asks on a terminal for a line, of which nothing is shown.
fn typed(terminal: &mut File, prompt: &str) -> Result<Zeroizing<String>, String> {
    let cannot = |error: io::Error| format!("the terminal cannot be read: {error}");
    let shared = terminal.try_clone().map_err(cannot)?;
    let blind = Blind::new(&shared).map_err(cannot)?;
    terminal.write_all(prompt.as_bytes()).map_err(cannot)?;
    let line = line(terminal);
    drop(blind);
    // Enter was not shown either.
    terminal.write_all(b"\n").map_err(cannot)?;
    line
}

/// Reads keys up to Enter.
fn line(keys: &mut impl Read) -> Result<Zeroizing<String>, String> {
    let mut line = Zeroizing::new(Vec::new());
    let mut key = [0];
    loop {
        match keys.read(&mut key) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("the terminal cannot be read: {error}")),
        }
        match key {
            [b'\r' | b'\n'] => break,
            [INTERRUPT | END] => return Err("interrupted".to_owned()),
            [ERASE_LINE] => line.clear(),
            [key] if BACKSPACE.contains(&key) => {
                // A whole character of UTF-8.
                while line.pop().is_some_and(|octet: u8| octet & 0xc0 == 0x80) {}
            }
            [key] if (line.len() as u64) < OCTETS_MAX => line.push(key),
            _ => {}
        }
    }
    match str::from_utf8(&line) {
        Ok("") => Err("that is no password".to_owned()),
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err("what was typed is not UTF-8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_terminal_make_a_line() {
        let check = |keys: &[u8], expect: Option<&str>| {
            let typed = line(&mut &*keys).ok();
            assert_eq!(typed.as_ref().map(|text| text.as_str()), expect, "{keys:?}");
        };
        check(b"secret\rmore", Some("secret"));
        check(b"secred\x7ft\n", Some("secret"));
        check("a\u{e4}\u{8}b\n".as_bytes(), Some("ab"));
        check(b"wrong\x15secret\n", Some("secret"));
        check(b"\x7f\x7fa\n", Some("a"));
        check(b"secr\x03", None);
        check(b"\n", None);
        check(b"\xff\n", None);
    }

    #[test]
    fn a_file_holds_one_password() {
        let check = |text: &str, expect: Option<&str>| {
            let read = first_line(&mut text.as_bytes(), "x").ok();
            assert_eq!(read.map(|secret| secret.0).as_deref(), expect, "{text:?}");
        };
        check("secret\n", Some("secret"));
        check(" se cret ", Some(" se cret "));
        check("secret\r\n\n", Some("secret"));
        check("secret\nmore\n", None);
        check("\n", None);
    }
}
