//! The asking side of the control socket, as the command line uses it.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::{Request, Response, to_json_line};

/// Octets of a response, so that a confused server cannot fill our memory; hundreds of thousands of
/// zones have reports.
const RESPONSE_OCTETS_MAX: u64 = 256 << 20;

/// Why there is no response.
#[derive(Debug)]
pub enum AskError {
    /// Nobody listens at any of the paths; each with what the system said.
    NotRunning(Vec<(PathBuf, io::Error)>),
    /// The connection broke or took too long.
    Io(PathBuf, io::Error),
    /// The response is not one we know; perhaps the server is of another version.
    Unreadable(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning(tried) => {
                write!(f, "no running gannet found; tried")?;
                for (index, (path, error)) in tried.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {} ({})", path.display(), explain(path, error))?;
                }
                Ok(())
            }
            Self::Io(path, error) if is_timeout(error) => {
                write!(f, "the server at {} did not answer in time", path.display())
            }
            Self::Io(path, error) => write!(f, "the server at {} broke off: {error}", path.display()),
            Self::Unreadable(why) => {
                write!(f, "the server's response cannot be read ({why}); is it of another version?")
            }
        }
    }
}

impl std::error::Error for AskError {}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn explain(path: &Path, error: &io::Error) -> String {
    let is_socket = || path.metadata().is_ok_and(|found| found.file_type().is_socket());
    match error.kind() {
        io::ErrorKind::ConnectionRefused if !is_socket() => "is no socket".into(),
        io::ErrorKind::NotFound => "not there".into(),
        io::ErrorKind::ConnectionRefused => "left behind by a server that is gone".into(),
        io::ErrorKind::PermissionDenied => "not permitted; try with sudo".into(),
        _ => error.to_string(),
    }
}

/// Sends `request` to the first of `paths` where a server listens and waits for its response.
pub fn ask(paths: &[PathBuf], request: &Request, patience: Duration) -> Result<Response, AskError> {
    let mut response = None;
    ask_for_all(paths, request, patience, |first| {
        response = Some(first);
        More::No
    })?;
    response.ok_or_else(|| AskError::Unreadable("it is empty".to_owned()))
}

/// Whether another response to the same request is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// This one was the last.
    No,
    /// There is another one.
    Yes,
}

/// Sends `request` to the first of `paths` where a server listens and hands each response to
/// `take`, which says whether there is another one.
pub fn ask_for_all(
    paths: &[PathBuf],
    request: &Request,
    patience: Duration,
    take: impl FnMut(Response) -> More,
) -> Result<(), AskError> {
    let mut tried = Vec::new();
    for path in paths {
        match UnixStream::connect(path) {
            Ok(stream) => return converse(path, stream, request, patience, take),
            Err(error) => tried.push((path.clone(), error)),
        }
    }
    Err(AskError::NotRunning(tried))
}

fn converse(
    path: &Path,
    mut stream: UnixStream,
    request: &Request,
    patience: Duration,
    mut take: impl FnMut(Response) -> More,
) -> Result<(), AskError> {
    let broke = |error| AskError::Io(path.to_owned(), error);
    stream.set_read_timeout(Some(patience)).map_err(broke)?;
    stream.set_write_timeout(Some(patience)).map_err(broke)?;
    stream.write_all(to_json_line(request).as_bytes()).map_err(broke)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        (&mut reader).take(RESPONSE_OCTETS_MAX).read_line(&mut line).map_err(broke)?;
        if line.is_empty() {
            return Err(broke(io::ErrorKind::UnexpectedEof.into()));
        }
        if take(read(&line)?) == More::No {
            return Ok(());
        }
    }
}

/// Reads a line that a server has answered with.
///
/// # Errors
///
/// It is no response that we know.
pub fn read(line: &str) -> Result<Response, AskError> {
    serde_json::from_str(line).map_err(|error| AskError::Unreadable(error.to_string()))
}

/// Sends a body over HTTP to the first of `paths` where a server listens; returns the status and
/// the text of the response.
///
/// # Errors
///
/// Nobody listens, the connection breaks, or the response cannot be understood.
pub fn send(
    paths: &[PathBuf],
    asked: (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
    patience: Duration,
) -> Result<(u16, String), AskError> {
    send_from(paths, asked, headers, (&mut &*body, body.len() as u64), patience)
}

/// Like [`send`], with a body of so many octets that is read while it is sent. `patience` is for
/// each part of it.
///
/// # Errors
///
/// As those, and it cannot be read.
pub fn send_from(
    paths: &[PathBuf],
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    (body, octets): (&mut dyn Read, u64),
    patience: Duration,
) -> Result<(u16, String), AskError> {
    let (mut stream, path) = connect(paths, patience)?;
    let broke = |error| AskError::Io(path.clone(), error);
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers.iter().chain(&[("Content-Length", octets.to_string().as_str())]) {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let written = stream
        .write_all(head.as_bytes())
        .and_then(|()| io::copy(&mut body.take(octets), &mut stream).map(drop));
    let mut response = Vec::new();
    // Who is refused before the end hears why.
    let heard = (&mut stream).take(RESPONSE_OCTETS_MAX).read_to_end(&mut response);
    if response.is_empty() {
        written.and(heard.map(drop)).map_err(broke)?;
    }
    response_of(&response)
}

/// Asks for something over HTTP of the first of `paths` where a server listens, and writes it to
/// `to`; returns the status, and the text of a response that is another than 200.
///
/// # Errors
///
/// Nobody listens, the connection breaks before the end, or it cannot be written.
pub fn fetch(
    paths: &[PathBuf],
    target: &str,
    to: &mut dyn Write,
    patience: Duration,
) -> Result<(u16, String), AskError> {
    let (mut stream, path) = connect(paths, patience)?;
    let broke = |error| AskError::Io(path.clone(), error);
    let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).map_err(broke)?;
    taken(BufReader::new(stream), to).map_err(broke)
}

/// Connects to the first of `paths` where a server listens; returns which that is.
fn connect(paths: &[PathBuf], patience: Duration) -> Result<(UnixStream, &PathBuf), AskError> {
    let mut tried = Vec::new();
    for path in paths {
        match UnixStream::connect(path) {
            Ok(stream) => {
                let broke = |error| AskError::Io(path.clone(), error);
                stream.set_read_timeout(Some(patience)).map_err(broke)?;
                stream.set_write_timeout(Some(patience)).map_err(broke)?;
                return Ok((stream, path));
            }
            Err(error) => tried.push((path.clone(), error)),
        }
    }
    Err(AskError::NotRunning(tried))
}

/// Octets of a line of a head.
const HEAD_LINE_OCTETS_MAX: u64 = 16 << 10;

/// Reads a response whose length is said.
fn taken(mut reader: impl BufRead, to: &mut dyn Write) -> io::Result<(u16, String)> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "this is no response of HTTP");
    let (mut status, mut octets) = (None, None);
    loop {
        let mut line = String::new();
        (&mut reader).take(HEAD_LINE_OCTETS_MAX).read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or_else(wrong)?;
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => octets = value.parse().ok(),
            Some(_) => {}
            None => status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()),
        }
    }
    let (status, octets): (u16, u64) = (status.ok_or_else(wrong)?, octets.ok_or_else(wrong)?);
    let mut body = reader.take(octets);
    if status != 200 {
        let mut text = String::new();
        body.read_to_string(&mut text)?;
        return Ok((status, text));
    }
    match io::copy(&mut body, to)? == octets {
        true => Ok((status, String::new())),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Takes a response apart: the status, and the text behind the head.
fn response_of(response: &[u8]) -> Result<(u16, String), AskError> {
    let wrong = || AskError::Unreadable("it is no response of HTTP".to_owned());
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(wrong)?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    Ok((status.ok_or_else(wrong)?, body.to_owned()))
}

/// Reads what a server has answered with.
///
/// # Errors
///
/// It is something else.
pub fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, AskError> {
    serde_json::from_str(text).map_err(|error| AskError::Unreadable(error.to_string()))
}

/// Returns what a problem of the HTTP API says for a person, with everything that the checker
/// found; `None` if it is none.
pub fn problem(text: &str) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_str(text).ok()?;
    let found = problem.get("diagnostics").and_then(serde_json::Value::as_array);
    let texts = found.into_iter().flatten().filter_map(|found| found.get("text")?.as_str());
    let all: Vec<&str> = texts.map(str::trim_end).collect();
    match all.is_empty() {
        true => detail(text),
        false => Some(all.join("\n")),
    }
}

/// Returns what a problem of the HTTP API (RFC 9457) says for a person; `None` if it is none.
pub fn detail(problem: &str) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_str(problem).ok()?;
    Some(problem.get("detail")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_its_own_words() {
        assert_eq!(detail("{\"status\": 403, \"detail\": \"no\"}"), Some("no".to_owned()));
        assert_eq!(detail("<html>"), None);
        let found =
            "{\"detail\": \"two\", \"diagnostics\": [{\"text\": \"line 1: x\"}, {\"text\": \"line 2: y\"}]}";
        assert_eq!(problem(found).as_deref(), Some("line 1: x\nline 2: y"));
        assert_eq!(problem("{\"detail\": \"one\"}").as_deref(), Some("one"));
    }

    #[test]
    fn a_response_of_http_is_taken_apart() {
        let read = |text: &str| response_of(text.as_bytes()).ok();
        assert_eq!(read("HTTP/1.1 200 OK\r\nx: y\r\n\r\n{}"), Some((200, "{}".to_owned())));
        assert_eq!(read("HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(read("nonsense\r\n\r\n"), None);
    }
}
