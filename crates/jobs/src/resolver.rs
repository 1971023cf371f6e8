//! Who resolves the names of web servers: the machine, or DNS servers that the operator names.
//!
//! A server that is the resolver of its own machine should not need itself to fetch its lists: with servers named, nothing
//! of the machine is asked. Plain DNS, one question after the other, on the thread of whoever waits.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use wire::{Class, Flags, Message, NameBuf, Question, Rcode, Rtype, Section, Writer};

/// How long one server is waited for; it is asked twice.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often each server is asked.
const ROUNDS: usize = 2;
/// How long everything may take if nobody says otherwise.
const PATIENCE_ALL: Duration = Duration::from_secs(30);
/// Octets of a query, and of a reply over UDP.
const QUERY_OCTETS_MAX: usize = 512;
const REPLY_OCTETS_MAX: usize = 4096;
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// The servers to ask; none: the machine. Shared by all jobs, and replaced by a reload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolvers(Arc<Mutex<Vec<SocketAddr>>>);

impl Resolvers {
    /// Asks these from now on.
    pub(crate) fn adopt(&self, servers: &[SocketAddr]) {
        servers.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn servers(&self) -> Vec<SocketAddr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Resolver for Resolvers {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let servers = self.servers();
        let host = uri.host().unwrap_or("");
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if servers.is_empty() || is_address {
            return DefaultResolver::default().resolve(uri, config, timeout);
        }
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        let patience = if timeout.after.is_not_happening() { PATIENCE_ALL } else { *timeout.after };
        let found = look_up(&servers, host, Instant::now() + patience).map_err(io::Error::other)?;
        let mut all = self.empty();
        found.iter().take(ADDRESSES_MAX).for_each(|address| all.push(SocketAddr::new(*address, port)));
        Ok(all)
    }
}

/// Looks up the addresses of a name, IPv4 first.
fn look_up(servers: &[SocketAddr], host: &str, deadline: Instant) -> Result<Vec<IpAddr>, String> {
    let name = NameBuf::from_str(host).map_err(|_| format!("\"{host}\" is not a name"))?;
    let mut found = Vec::new();
    let mut trouble = format!("\"{host}\" has no address");
    for qtype in [Rtype::A, Rtype::AAAA] {
        match ask_all(servers, &name, qtype, deadline) {
            Ok(more) => found.extend(more.addresses),
            Err(why) => trouble = format!("\"{host}\" cannot be resolved: {why}"),
        }
    }
    if found.is_empty() { Err(trouble) } else { Ok(found) }
}

/// The data of records, one after the other.
pub(crate) type RecordData = Vec<Box<[u8]>>;

/// Asks for the addresses of a name; returns the data of records of one type, and for how long they may be kept.
pub(crate) fn look_up_records(
    servers: &[SocketAddr],
    name: &NameBuf,
    qtype: Rtype,
    deadline: Instant,
) -> Result<(RecordData, u32), String> {
    let found = ask_all(servers, name, qtype, deadline)?;
    let data = found.addresses.into_iter().map(|address| match address {
        IpAddr::V4(v4) => v4.octets().into(),
        IpAddr::V6(v6) => v6.octets().into(),
    });
    Ok((data.collect(), found.ttl))
}

/// Asks one server after the other until one knows.
fn ask_all(servers: &[SocketAddr], name: &NameBuf, qtype: Rtype, deadline: Instant) -> Result<Found, String> {
    let mut trouble = String::new();
    for server in std::iter::repeat_n(servers, ROUNDS).flatten() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match ask(*server, name, qtype, left.min(PATIENCE)) {
            Ok(Answer::Found(found)) => return Ok(found),
            Ok(Answer::Code(rcode)) => trouble = format!("{server} answers {rcode}"),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                trouble = format!("{server} does not answer");
            }
            Err(error) => trouble = format!("{server}: {error}"),
        }
    }
    Err(trouble)
}

/// What a server says.
enum Answer {
    Found(Found),
    Code(Rcode),
}

/// Addresses of a name.
struct Found {
    addresses: Vec<IpAddr>,
    /// Seconds that they, or that there are none, may be kept.
    ttl: u32,
}

/// How long it may be kept that a name has no addresses if nothing says so.
const NEGATIVE_TTL: u32 = 60;

fn ask(server: SocketAddr, name: &NameBuf, qtype: Rtype, patience: Duration) -> io::Result<Answer> {
    let mut random = [0; 2];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let id = u16::from_ne_bytes(random);
    let mut query = [0; QUERY_OCTETS_MAX];
    let full = |_| io::Error::other("the name is too long");
    let mut writer = Writer::new(&mut query, QUERY_OCTETS_MAX, id, Flags::RD);
    let question = Question { qname: name.as_name(), qtype, qclass: Class::IN };
    writer.question(&question).map_err(full)?;
    let len = writer.finish();
    let query = &query[..len];
    let local: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((local, 0))?;
    socket.connect(server)?;
    socket.send(query)?;
    let deadline = Instant::now() + patience;
    let mut reply = [0; REPLY_OCTETS_MAX];
    // Ends: at the deadline at the latest. What is not the answer may be somebody's guess at it.
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let len = socket.recv(&mut reply)?;
        match read(&reply[..len], id, &question) {
            Some(Read::Answer(answer)) => return Ok(answer),
            Some(Read::IsCut) => break,
            None => {}
        }
    }
    let mut stream = TcpStream::connect_timeout(&server, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&[&(len as u16).to_be_bytes()[..], query].concat())?;
    let mut octets = [0; 2];
    stream.read_exact(&mut octets)?;
    let mut reply = vec![0; u16::from_be_bytes(octets).into()];
    stream.read_exact(&mut reply)?;
    match read(&reply, id, &question) {
        Some(Read::Answer(answer)) => Ok(answer),
        Some(Read::IsCut) | None => Err(io::Error::other("not an answer")),
    }
}

/// What a message is.
enum Read {
    Answer(Answer),
    IsCut,
}

/// Reads the answer to a question; `None` for anything else.
fn read(octets: &[u8], id: u16, question: &Question<'_>) -> Option<Read> {
    let message = Message::parse(octets).ok()?;
    let asked = message.question?;
    let is_it = message.header.id == id
        && message.header.flags.has(Flags::QR)
        && asked.qname == question.qname
        && asked.qtype == question.qtype;
    if !is_it {
        return None;
    }
    if message.header.flags.has(Flags::TC) {
        return Some(Read::IsCut);
    }
    // A name that does not exist has no addresses; that is an answer.
    if !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN) {
        return Some(Read::Answer(Answer::Code(message.rcode())));
    }
    let addresses = message
        .records()
        .filter(|record| record.section == Section::Answer && record.rtype == question.qtype)
        .filter_map(|record| match record.rtype {
            Rtype::A => <[u8; 4]>::try_from(record.rdata).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(record.rdata).ok().map(IpAddr::from),
        });
    let addresses: Vec<IpAddr> = addresses.collect();
    // The aliases on the way count, too. RFC 2308 §5: an absence may be kept as long as the SOA and its MINIMUM say.
    let (section, is_there) = match addresses.is_empty() {
        true => (Section::Authority, false),
        false => (Section::Answer, true),
    };
    let ttls = message.records().filter(|record| record.section == section).filter_map(|record| {
        let minimum = || record.rdata.last_chunk().map(|octets| u32::from_be_bytes(*octets));
        match record.rtype {
            Rtype::SOA if !is_there => Some(record.ttl().seconds().min(minimum()?)),
            _ => is_there.then(|| record.ttl().seconds()),
        }
    });
    let ttl = ttls.min().unwrap_or(NEGATIVE_TTL);
    Some(Read::Answer(Answer::Found(Found { addresses, ttl })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(flags: Flags, id: u16, name: &str, addresses: &[[u8; 4]]) -> Vec<u8> {
        let name = NameBuf::from_str(name).expect("a name");
        let mut octets = vec![0; 512];
        let mut writer = Writer::new(&mut octets, 512, id, flags);
        let question = Question { qname: name.as_name(), qtype: Rtype::A, qclass: Class::IN };
        writer.question(&question).expect("room");
        for address in addresses {
            let put = |writer: &mut Writer<'_>| writer.bytes(address);
            let ttl = wire::Ttl::new(60);
            writer.record(Section::Answer, name.as_name(), Rtype::A, Class::IN, ttl, put).expect("room");
        }
        let len = writer.finish();
        octets.truncate(len);
        octets
    }

    /// Plays a DNS server that says these things to its first query, one after the other.
    fn played(says: impl Fn(u16) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((_, from)) = socket.recv_from(&mut query) {
                for reply in says(u16::from_be_bytes([query[0], query[1]])) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        address
    }

    #[test]
    fn only_the_answer_to_the_question_is_believed() {
        let server = played(|id| {
            vec![
                reply(Flags::QR, id ^ 1, "www.example", &[[192, 0, 2, 66]]),
                reply(Flags::QR, id, "other.example", &[[192, 0, 2, 66]]),
                reply(Flags::default(), id, "www.example", &[[192, 0, 2, 66]]),
                vec![0; 5],
                reply(Flags::QR, id, "WWW.example", &[[192, 0, 2, 1], [192, 0, 2, 2]]),
            ]
        });
        let name = NameBuf::from_str("www.example").expect("a name");
        let deadline = Instant::now() + Duration::from_secs(20);
        let found = ask_all(&[server], &name, Rtype::A, deadline).expect("addresses");
        assert_eq!(found.ttl, 60);
        assert_eq!(found.addresses, [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])]);
    }

    #[test]
    fn another_server_is_asked_when_one_fails() {
        let broken = played(|id| vec![reply(Flags::QR.with_rcode(Rcode::SERVFAIL), id, "www.example", &[])]);
        let right = played(|id| vec![reply(Flags::QR, id, "www.example", &[[192, 0, 2, 1]])]);
        let name = NameBuf::from_str("www.example").expect("a name");
        let deadline = Instant::now() + Duration::from_secs(20);
        assert_eq!(
            ask_all(&[broken, right], &name, Rtype::A, deadline).expect("addresses").addresses.len(),
            1
        );
        let why = ask_all(&[broken], &name, Rtype::A, deadline).err().expect("nobody knows");
        assert!(why.ends_with("answers SERVFAIL"), "{why}");
    }
}
