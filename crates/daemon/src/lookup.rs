//! `gannet query`: a small, readable dig.
//!
//! A stub resolver: it asks one server at a time, over UDP with TCP when the reply is truncated.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use control::api;
use wire::{
    Class, EdeCode, Flags, Header, Message, NameBuf, OptionCode, Question, Rcode, Rtype, Section, Writer,
    rdata,
};

use crate::cli::QueryArgs;
use crate::{out, remote};

/// Times a question is sent over UDP before the server counts as silent.
const ATTEMPTS: u32 = 3;
/// The largest UDP reply we ask for (DNS flag day 2020).
const UDP_OCTETS_MAX: u16 = 1232;
/// Where a local server is looked for when none is running under our control.
const LOCAL_PORTS: [u16; 2] = [53, 5300];
/// The port of DNS.
const PORT: u16 = 53;

/// Runs `gannet query`.
pub(crate) fn run(args: &QueryArgs) -> ExitCode {
    let words = match Words::parse(&args.words) {
        Ok(words) => words,
        Err(why) => {
            out::complain(&why);
            return out::wrong_usage();
        }
    };
    let servers = match servers(&words, args) {
        Ok(servers) => servers,
        Err(why) => {
            out::complain(&why);
            return out::negative();
        }
    };
    let query = write_query(&words, args);
    let is_tcp = args.tcp || words.is_tcp;
    let mut tried = String::new();
    for server in servers {
        match ask(server, &query, is_tcp, args.timeout) {
            Ok(exchange) => return show(&exchange, args),
            Err(silence) => {
                let comma = if tried.is_empty() { "" } else { ", " };
                let _ = write!(tried, "{comma}{server} ({silence})");
            }
        }
    }
    out::complain(&format!("no answer; tried {tried}"));
    if words.server.is_none() {
        out::complain("start a server with: gannet run");
    }
    out::negative()
}

/// What is asked, of whom.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) name: NameBuf,
    pub(crate) rtype: Rtype,
    class: Class,
    server: Option<String>,
    is_tcp: bool,
}

impl Words {
    /// Reads names, types, classes and `@server` in any order that can be told apart.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let (mut name, mut rtype, mut class, mut server) = (None, None, None, None);
        for word in words {
            if let Some(at) = word.strip_prefix('@') {
                if server.replace(at.to_owned()).is_some() {
                    return Err(format!("\"{word}\" is a second server"));
                }
            } else if name.is_none() {
                name = Some(word.as_str());
            } else if let Some(known) = class_of(word).filter(|_| class.is_none()) {
                class = Some(known);
            } else if rtype.is_none() {
                rtype = Some(word.as_str());
            } else {
                return Err(format!("\"{word}\" is one word too many: expected NAME [TYPE] [@SERVER]"));
            }
        }
        let mut name = name.ok_or("a name to ask for is missing")?;
        // "MX example.org" can only mean one thing.
        if let Some(second) = rtype
            && second.parse::<Rtype>().is_err()
            && name.parse::<Rtype>().is_ok()
        {
            rtype = Some(std::mem::replace(&mut name, second));
        }
        let asked = match rtype {
            None => None,
            Some(text) => {
                Some(text.parse::<Rtype>().map_err(|_| format!("\"{text}\" is not a record type"))?)
            }
        };
        let (name, default) = match name.parse::<IpAddr>() {
            Ok(address) => (reverse_name(address), Rtype::PTR),
            Err(_) => (name.parse().map_err(|_| format!("\"{name}\" is not a domain name"))?, Rtype::A),
        };
        let is_tcp = server.as_deref().is_some_and(|server| server.starts_with("tcp://"));
        let server = server.map(|text| {
            let bare = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("udp://")).unwrap_or(&text);
            bare.trim_end_matches('/').to_owned()
        });
        Ok(Self { name, rtype: asked.unwrap_or(default), class: class.unwrap_or(Class::IN), server, is_tcp })
    }
}

fn class_of(word: &str) -> Option<Class> {
    match word.to_ascii_uppercase().as_str() {
        "IN" => Some(Class::IN),
        "CH" => Some(Class::CH),
        "HS" => Some(Class::HS),
        _ => None,
    }
}

/// Returns the name that holds an address's PTR record (RFC 1035 §3.5, RFC 3596 §2.5).
fn reverse_name(address: IpAddr) -> NameBuf {
    let text = match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let mut text = String::new();
            for octet in address.octets().iter().rev() {
                let _ = write!(text, "{:x}.{:x}.", octet & 0xf, octet >> 4);
            }
            text + "ip6.arpa"
        }
    };
    text.parse().expect("digits and dots of a bounded number make a name")
}

/// Returns the servers to try, the likeliest first.
fn servers(words: &Words, args: &QueryArgs) -> Result<Vec<SocketAddr>, String> {
    if let Some(server) = &words.server {
        return server_addresses(server, args.port);
    }
    let here = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if let Some(port) = args.port {
        return Ok(vec![here(port)]);
    }
    let running = remote::status(&args.remote.socket).and_then(|status| {
        let addresses = status.listeners.iter().map(|listener| listener.at.parse::<SocketAddr>());
        addresses.flatten().next().map(reachable)
    });
    let mut servers: Vec<SocketAddr> = running.into_iter().collect();
    if servers.is_empty() {
        servers.extend(LOCAL_PORTS.map(here));
    }
    Ok(servers)
}

/// Returns where to send for a listener at `address`: "every address" includes the loopback one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

/// Reads `address`, `address:port`, `[address]:port`, `address@port`, `address#port`, `host` or `host:port`.
fn server_addresses(text: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, String> {
    let port_or_default = port.unwrap_or(PORT);
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(vec![(ip, port_or_default).into()]);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let (host, port) = match text.rsplit_once(['#', '@', ':']) {
        Some((host, digits)) => match digits.parse() {
            Ok(port) => (host, port),
            Err(_) => return Err(format!("\"{digits}\" in \"@{text}\" is not a port")),
        },
        None => (text, port_or_default),
    };
    match (host.trim_start_matches('[').trim_end_matches(']'), port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            Err(format!("the address of the server \"{}\" is not known: {error}", out::escaped(host)))
        }
    }
}

/// A question in wire form.
struct Packet {
    id: u16,
    bytes: Vec<u8>,
    question_len: usize,
}

fn write_query(words: &Words, args: &QueryArgs) -> Packet {
    let id = rand::random();
    let mut flags = Flags::default();
    if !args.no_recurse {
        flags = flags.with(Flags::RD);
    }
    if args.no_check {
        flags = flags.with(Flags::CD);
    }
    let mut bytes = vec![0; 512];
    let mut writer = Writer::new(&mut bytes, 512, id, flags);
    let question = Question { qname: words.name.as_name(), qtype: words.rtype, qclass: words.class };
    writer.question(&question).expect("a name of 255 octets and an OPT fit in 512");
    let question_len = writer.len() - Header::LEN;
    let opt = writer.opt(UDP_OCTETS_MAX, Rcode::NOERROR, args.dnssec, |_| Ok(()));
    opt.expect("a name of 255 octets and an OPT fit in 512");
    let len = writer.finish();
    bytes.truncate(len);
    Packet { id, bytes, question_len }
}

impl Packet {
    /// Returns whether `reply` answers this question and not another (RFC 5452 §9).
    fn is_answered_by(&self, reply: &[u8]) -> bool {
        let Some(header) = Header::parse(reply) else { return false };
        let question =
            |bytes: &[u8]| bytes.get(Header::LEN..Header::LEN + self.question_len).map(<[u8]>::to_vec);
        let is_same_question = match (question(reply), question(&self.bytes)) {
            (Some(theirs), Some(ours)) => theirs.eq_ignore_ascii_case(&ours),
            _ => false,
        };
        // A server that could not read the question need not repeat it.
        let is_complaint = header.questions == 0 && header.flags.rcode() == Rcode::FORMERR;
        header.id == self.id && header.flags.has(Flags::QR) && (is_same_question || is_complaint)
    }
}

/// A question answered.
struct Exchange {
    server: SocketAddr,
    transport: &'static str,
    time: Duration,
    reply: Vec<u8>,
}

/// Asks `server`; the text of an error says in what way it was silent.
fn ask(server: SocketAddr, query: &Packet, is_tcp: bool, timeout: Duration) -> Result<Exchange, String> {
    let begin = Instant::now();
    if !is_tcp {
        let reply = ask_udp(server, query, timeout).map_err(|error| silence(&error))?;
        let is_whole = Header::parse(&reply).is_none_or(|header| !header.flags.has(Flags::TC));
        if is_whole {
            return Ok(Exchange { server, transport: "udp", time: begin.elapsed(), reply });
        }
    }
    let reply = ask_tcp(server, query, timeout).map_err(|error| silence(&error))?;
    Ok(Exchange { server, transport: "tcp", time: begin.elapsed(), reply })
}

fn silence(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there".into(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no reply in time".into(),
        io::ErrorKind::UnexpectedEof => "hung up without a reply".into(),
        _ => error.to_string(),
    }
}

fn ask_udp(server: SocketAddr, query: &Packet, timeout: Duration) -> io::Result<Vec<u8>> {
    let any =
        if server.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    for _ in 0..ATTEMPTS {
        socket.send(&query.bytes)?;
        let until = Instant::now() + timeout;
        // Ends: `left` shrinks, whatever a stranger sends in the meantime.
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv(&mut buffer) {
                Ok(len) => {
                    let reply = buffer.get(..len).unwrap_or_default();
                    if query.is_answered_by(reply) {
                        return Ok(reply.to_vec());
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn ask_tcp(server: SocketAddr, query: &Packet, timeout: Duration) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let length = u16::try_from(query.bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), query.bytes.as_slice()].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply)?;
    if query.is_answered_by(&reply) {
        Ok(reply)
    } else {
        Err(io::Error::other("it answered another question"))
    }
}

fn show(exchange: &Exchange, args: &QueryArgs) -> ExitCode {
    let Ok(message) = Message::parse(&exchange.reply) else {
        out::complain(&format!(
            "the reply of {} cannot be read ({} octets)",
            exchange.server,
            exchange.reply.len()
        ));
        return out::negative();
    };
    let lookup = describe(exchange, &message);
    out::print(&if args.remote.output.json {
        api::to_json(&lookup)
    } else if args.short {
        lookup.answer.iter().map(|record| format!("{}\n", record.data)).collect()
    } else {
        text(&lookup)
    });
    if message.rcode() == Rcode::NOERROR { out::FINE } else { out::negative() }
}

/// Turns a reply into text, piece by piece.
fn describe(exchange: &Exchange, message: &Message<'_>) -> api::Lookup {
    let question = message.question.map(|question| api::Question {
        name: question.qname.to_string(),
        rtype: question.qtype.to_string(),
        class: question.qclass.to_string(),
    });
    api::Lookup {
        server: exchange.server.to_string(),
        transport: exchange.transport.to_owned(),
        time_ms: (exchange.time.as_secs_f64() * 1e6).round() / 1e3,
        size_octets: exchange.reply.len(),
        status: message.rcode().to_string(),
        rcode: message.rcode().0,
        flags: flag_names(message.header.flags),
        question: question.unwrap_or_default(),
        answer: section(message, Section::Answer),
        authority: section(message, Section::Authority),
        additional: section(message, Section::Additional),
        extended_errors: extended_errors(message),
    }
}

/// Turns the records of one section into text.
pub(crate) fn section(message: &Message<'_>, wanted: Section) -> Vec<api::Record> {
    let records = message.records().filter(|record| record.section == wanted && record.rtype != Rtype::OPT);
    records.map(|record| describe_record(&record)).collect()
}

/// Turns the Extended DNS Errors of a reply into text.
pub(crate) fn extended_errors(message: &Message<'_>) -> Vec<api::ExtendedError> {
    let options = message.edns.into_iter().flat_map(|edns| edns.options());
    options
        .filter(|option| option.code == OptionCode::EDE)
        .filter_map(|option| {
            let (&code, text) = option.data.split_first_chunk::<2>()?;
            let code = u16::from_be_bytes(code);
            let name = EdeCode(code).to_string();
            let text = String::from_utf8_lossy(text);
            Some(api::ExtendedError { code, name, text: text.trim_end_matches('\0').to_owned() })
        })
        .collect()
}

pub(crate) fn flag_names(flags: Flags) -> Vec<String> {
    const NAMES: [(Flags, &str); 7] = [
        (Flags::QR, "qr"),
        (Flags::AA, "aa"),
        (Flags::TC, "tc"),
        (Flags::RD, "rd"),
        (Flags::RA, "ra"),
        (Flags::AD, "ad"),
        (Flags::CD, "cd"),
    ];
    NAMES.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, name)| (*name).to_owned()).collect()
}

fn describe_record(record: &wire::Record<'_>) -> api::Record {
    api::Record {
        name: record.owner.to_string(),
        ttl: record.ttl().seconds(),
        class: record.class.to_string(),
        rtype: record.rtype.to_string(),
        data: rdata::display(record.rtype, record.owner.message(), record.rdata_at..record.end()).to_string(),
    }
}

/// Lays a reply out in columns.
fn text(lookup: &api::Lookup) -> String {
    let mut text = format!("status     {}  flags: {}\n", lookup.status, lookup.flags.join(" "));
    let question = &lookup.question;
    let _ = writeln!(text, "question   {} {} {}", question.name, question.class, question.rtype);
    let sections =
        [("answer", &lookup.answer), ("authority", &lookup.authority), ("additional", &lookup.additional)];
    let records = || sections.iter().flat_map(|(_, records)| records.iter());
    let name_width = records().map(|record| record.name.len()).max().unwrap_or(0);
    let ttl_width = records().map(|record| record.ttl.to_string().len()).max().unwrap_or(0);
    let type_width = records().map(|record| record.rtype.len()).max().unwrap_or(0);
    for (title, records) in sections {
        for (index, record) in records.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let class = if record.class == "IN" { String::new() } else { format!("{} ", record.class) };
            let _ = writeln!(
                text,
                "{title:<10} {:<name_width$}  {:>ttl_width$}  {class}{:<type_width$}  {}",
                record.name, record.ttl, record.rtype, record.data
            );
        }
    }
    for error in &lookup.extended_errors {
        let _ = write!(text, "error      {} {}", error.code, error.name);
        let _ = match error.text.as_str() {
            "" => writeln!(text),
            more => writeln!(text, ": {}", out::escaped(more)),
        };
    }
    let _ = writeln!(
        text,
        "server     {} over {}, {} ms, {} octets",
        lookup.server,
        lookup.transport.to_uppercase(),
        if lookup.time_ms < 10.0 {
            format!("{:.2}", lookup.time_ms)
        } else {
            format!("{:.0}", lookup.time_ms)
        },
        lookup.size_octets
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Words, String> {
        Words::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn check(text: &str, name: &str, rtype: Rtype) {
        let words = words(text).unwrap();
        assert_eq!((words.name.as_name().to_string().as_str(), words.rtype), (name, rtype), "{text}");
    }

    #[test]
    fn words_are_told_apart() {
        check("example.org", "example.org.", Rtype::A);
        check("example.org aaaa", "example.org.", Rtype::AAAA);
        check("@192.0.2.1 MX example.org", "example.org.", Rtype::MX);
        check("version.bind CH TXT", "version.bind.", Rtype::TXT);
        check("example.org TYPE65534", "example.org.", Rtype(65534));
        check("192.0.2.1", "1.2.0.192.in-addr.arpa.", Rtype::PTR);
        assert_eq!(words("example.org nonsense").unwrap_err(), "\"nonsense\" is not a record type");
        assert_eq!(words("a..b").unwrap_err(), "\"a..b\" is not a domain name");
    }

    #[test]
    fn addresses_have_reverse_names() {
        let name = reverse_name("2001:db8::1".parse().unwrap()).as_name().to_string();
        assert_eq!(name, "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.");
    }

    #[test]
    fn servers_are_written_in_many_ways() {
        for text in ["192.0.2.1:5353", "192.0.2.1#5353", "192.0.2.1@5353"] {
            assert_eq!(server_addresses(text, None).unwrap(), ["192.0.2.1:5353".parse().unwrap()], "{text}");
        }
        assert_eq!(
            server_addresses("2001:db8::1", Some(5300)).unwrap(),
            ["[2001:db8::1]:5300".parse().unwrap()]
        );
        assert_eq!(server_addresses("[2001:db8::1]", None).unwrap(), ["[2001:db8::1]:53".parse().unwrap()]);
        assert!(server_addresses("192.0.2.1:x", None).is_err());
    }
}
