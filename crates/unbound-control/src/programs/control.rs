//! `unbound-control`: gives a command to a running server and prints what it says.

use std::io::{self, BufRead as _, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use diagnostic::io_text;
use environment::System;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use unbound::{Facts, OptionValue};

use super::arguments::Arguments;
use super::{CONFIGURATION, file, log, say};
use crate::commands::{InputEnd, end_of_input};
use crate::tls;

const NAME: &str = "unbound-control";
/// The exit code of `status` when no server listens.
const STOPPED: u8 = 3;
/// Octets of an answer that are looked at for the word that says that it is an error.
const HEAD_OCTETS: usize = 5;

/// Where the server is.
enum Place {
    Address(SocketAddr),
    Path(PathBuf),
}

/// Why there is no answer.
enum Failure {
    /// Nobody listens there.
    Refused(String),
    /// Something else.
    Other(String),
}

pub(super) fn run(arguments: Vec<String>) -> ExitCode {
    let arguments = match Arguments::read(arguments, "cs", "qh") {
        Ok(arguments) if !arguments.has('h') && !arguments.rest.is_empty() => arguments,
        _ => return usage(),
    };
    let configuration = arguments.value('c').unwrap_or(CONFIGURATION);
    let command = arguments.rest.join(" ");
    if command == "start" {
        // This program under its other name, wherever it is.
        let program = std::env::current_exe().unwrap_or_else(|_| "gannet".into());
        let error = Command::new(program).args(["unbound", "-c", configuration]).exec();
        log(NAME, "fatal error", format_args!("could not exec unbound: {}", io_text(&error)));
        return ExitCode::FAILURE;
    }
    if command == "stats_shm" {
        log(NAME, "fatal error", "statistics are not in shared memory: \"stats\" asks the server for them");
        return ExitCode::FAILURE;
    }
    let outcome = Facts::open_without_lists(Path::new(configuration), &System)
        .map_err(|error| Failure::Other(format!("Could not open {configuration}: {}", io_text(&error))))
        .and_then(|facts| {
            if !facts.is("control-enable") && arguments.value('s').is_none() {
                log(NAME, "warning", "control-enable is 'no' in the config file.");
            }
            ask(&facts, arguments.value('s'), &command, arguments.has('q'))
        });
    match outcome {
        Ok(code) => code,
        Err(Failure::Refused(why)) => {
            log(NAME, "error", format_args!("connect: {why}"));
            if command == "status" {
                say("unbound is stopped");
                return ExitCode::from(STOPPED);
            }
            ExitCode::FAILURE
        }
        Err(Failure::Other(why)) => {
            log(NAME, "error", why);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    say("Usage:\tunbound-control [options] command");
    say("Gives a command to the running server, and prints what it says.");
    say("  -c FILE\tthe configuration (default /etc/unbound/unbound.conf)");
    say("  -s PLACE\twhere the server is: an address, perhaps with @PORT, or the path of a socket");
    say("  -q\t\tprint nothing if all is well");
    say("  -h\t\tprint this");
    say("Commands besides \"start\":");
    let names: Vec<&str> = crate::commands::names().collect();
    for names in names.chunks(5) {
        say(format_args!("  {}", names.join(", ")));
    }
    say(super::version());
    ExitCode::FAILURE
}

/// Returns where the server is.
fn place(facts: &Facts, wanted: Option<&str>) -> Result<Place, Failure> {
    let port = facts.value("control-port");
    let first = match facts.option("control-interface") {
        OptionValue::Values(values) => values.into_iter().next(),
        OptionValue::Unknown => None,
    };
    let text = wanted.map(str::to_owned).or(first).unwrap_or_else(|| "127.0.0.1".to_owned());
    if text.starts_with('/') {
        return Ok(Place::Path(text.into()));
    }
    let (host, port) = text.split_once('@').unwrap_or((&text, &port));
    let address: IpAddr = match host {
        // A server that listens everywhere is here, too.
        "0.0.0.0" => IpAddr::from([127, 0, 0, 1]),
        "::" => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        host => match host.parse() {
            Ok(address) => address,
            // One address of a device is as good as another.
            Err(_) => devices::interfaces::first_address(host)
                .map_err(|_| Failure::Other(format!("could not parse IP: {text}")))?,
        },
    };
    let port = port.parse().map_err(|_| Failure::Other(format!("could not parse IP: {text}")))?;
    Ok(Place::Address(SocketAddr::new(address, port)))
}

fn connect_failed(error: &io::Error, place: impl std::fmt::Display) -> Failure {
    let why = format!("{} for {place}", capital(&io_text(error)));
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::Refused(why),
        _ => Failure::Other(format!("connect: {why}")),
    }
}

/// Returns a text with a capital letter, as the system writes it.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(facts: &Facts, wanted: Option<&str>) -> Result<Box<dyn Stream>, Failure> {
    match place(facts, wanted)? {
        Place::Path(path) => {
            let stream = UnixStream::connect(&path);
            Ok(Box::new(stream.map_err(|error| connect_failed(&error, path.display()))?))
        }
        Place::Address(address) => {
            let shown = format!("{} port {}", address.ip(), address.port());
            let stream = TcpStream::connect(address).map_err(|error| connect_failed(&error, shown))?;
            if !facts.is("control-use-cert") {
                return Ok(Box::new(stream));
            }
            let [server, own, key] =
                ["server-cert-file", "control-cert-file", "control-key-file"].map(|it| file(facts, it));
            let config = tls::client(&server, &own, &key).map_err(Failure::Other)?;
            let connection = ClientConnection::new(config, ServerName::IpAddress(address.ip().into()))
                .map_err(|error| Failure::Other(error.to_string()))?;
            Ok(Box::new(StreamOwned::new(connection, stream)))
        }
    }
}

fn ask(facts: &Facts, wanted: Option<&str>, command: &str, is_quiet: bool) -> Result<ExitCode, Failure> {
    let mut stream = connect(facts, wanted)?;
    let broken = |error: io::Error| Failure::Other(format!("the connection broke: {}", io_text(&error)));
    writeln!(stream, "UBCT1 {command}").and_then(|()| stream.flush()).map_err(broken)?;
    if let Some(end) = end_of_input(command) {
        // A server that has seen enough says why.
        let _ = pass_on(&mut stream, end);
    }
    let mut answer = Vec::new();
    let mut out = io::stdout().lock();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let len = match stream.read(&mut chunk) {
            Ok(len) => len,
            // Some servers end without a farewell.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(broken(error)),
        };
        let Some(octets) = chunk.get(..len).filter(|octets| !octets.is_empty()) else { break };
        if answer.len() < HEAD_OCTETS {
            answer.extend_from_slice(octets);
            if answer.len() < HEAD_OCTETS {
                continue;
            }
            show(&mut out, &answer, &answer, is_quiet);
        } else {
            show(&mut out, &answer, octets, is_quiet);
        }
    }
    if answer.len() < HEAD_OCTETS {
        show(&mut out, &answer, &answer, is_quiet);
    }
    Ok(if is_error(&answer) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn is_error(answer: &[u8]) -> bool {
    answer.starts_with(b"error")
}

fn show(out: &mut impl Write, answer: &[u8], octets: &[u8], is_quiet: bool) {
    if !is_quiet || is_error(answer) {
        let _ = out.write_all(octets);
    }
}

/// Passes standard input on, with the line that ends it.
fn pass_on(stream: &mut Box<dyn Stream>, end: InputEnd) -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            break;
        }
        stream.write_all(line.as_bytes())?;
        if end == InputEnd::Word && line.trim_end() == "EOF" {
            return stream.flush();
        }
    }
    let last: &[u8] = match end {
        InputEnd::Mark => b"\x04\n",
        InputEnd::Word => b"EOF\n",
    };
    stream.write_all(last)?;
    stream.flush()
}
