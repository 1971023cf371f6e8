//! The addresses of a host, asked for at servers that resolve: a stub resolver.
//!
//! For what the server needs itself: the names of upstreams, of web servers with lists, of ALIAS
//! targets. The query, the check of the reply and what is read of it are the same for all of them.
//! Whoever has a schedule of its own sends by itself (`forward`) and takes [`Addresses::read`]; the
//! others run a [`Resolver`].

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use engine::OutQuery;
use plan::upstreams::Bind;
use queries::packet::{self, Echo, QUERY_OCTETS_MAX, QueryFormat};
use rand::Rng as _;
use tokio::time::timeout;
use wire::{Flags, Message, NameBuf, Rcode, Rtype, Section};

use crate::machine::question;
use crate::net::connect;

/// Addresses taken of one name and family.
pub const ADDRESSES_MAX: usize = 16;
/// Aliases that are followed inside one reply.
const ALIASES_MAX: usize = 16;
/// How often each server is asked: a datagram may be lost.
const ROUNDS: usize = 2;
/// Octets of a reply over UDP.
const REPLY_OCTETS_MAX: usize = 4096;
/// For how many seconds it counts that a name has no addresses, if the reply does not say.
const NEGATIVE_TTL: u32 = 60;

/// The addresses of a name in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The addresses as they came, without doubles; none if the name has none.
    pub list: Vec<IpAddr>,
    /// For how many seconds they may be kept, or that there are none.
    pub ttl: u32,
}

impl Addresses {
    /// Reads the answer to a question for addresses, A or AAAA: follows the aliases in it, and
    /// takes the smallest TTL on the way.
    pub fn read(reply: &Message<'_>, qname: &NameBuf, qtype: Rtype) -> Self {
        let (mut owner, mut ttl) = (*qname, u32::MAX);
        for _ in 0..ALIASES_MAX {
            let Some((target, alias_ttl)) = alias(reply, &owner) else { break };
            ttl = ttl.min(alias_ttl);
            owner = target;
        }
        let mut list: Vec<IpAddr> = Vec::new();
        let answers = reply.records().filter(|record| record.section == Section::Answer);
        for record in answers.filter(|record| record.rtype == qtype) {
            if record.owner.expand() != Ok(owner) {
                continue;
            }
            let address = match record.rtype {
                Rtype::A => <[u8; 4]>::try_from(record.rdata).map(IpAddr::from).ok(),
                _ => <[u8; 16]>::try_from(record.rdata).map(IpAddr::from).ok(),
            };
            if let Some(address) = address
                && list.len() < ADDRESSES_MAX
                && !list.contains(&address)
            {
                list.push(address);
                ttl = ttl.min(record.ttl().seconds());
            }
        }
        if list.is_empty() {
            ttl = negative_ttl(reply);
        }
        Self { list, ttl }
    }
}

/// Returns what a name is an alias of, and for how many seconds.
fn alias(reply: &Message<'_>, owner: &NameBuf) -> Option<(NameBuf, u32)> {
    let mut answers = reply.records().filter(|record| record.section == Section::Answer);
    let alias = answers.find(|record| record.rtype == Rtype::CNAME && record.owner.expand() == Ok(*owner))?;
    Some((alias.name_in_rdata(0).expand().ok()?, alias.ttl().seconds()))
}

/// Returns for how many seconds it counts that a name has no addresses: as the SOA and its MINIMUM
/// say (RFC 2308 §5).
fn negative_ttl(reply: &Message<'_>) -> u32 {
    let soa = reply
        .records()
        .find(|record| record.section == Section::Authority && record.rtype == Rtype::SOA)
        .and_then(|soa| Some(soa.ttl().seconds().min(u32::from_be_bytes(*soa.rdata.last_chunk()?))));
    soa.unwrap_or(NEGATIVE_TTL)
}

/// Returns the addresses of two families in the order in which they are to be tried: they take
/// turns (RFC 8305 §4).
pub fn in_turn(first: &[IpAddr], second: &[IpAddr]) -> Vec<IpAddr> {
    let longer = first.len().max(second.len());
    (0..longer).flat_map(|at| [first.get(at), second.get(at)]).flatten().copied().collect()
}

/// Why no server says anything about a name.
#[derive(Debug)]
pub enum ResolveError {
    /// There is no server to ask, or no time.
    Nobody,
    /// It does not answer.
    Silent(SocketAddr),
    /// It answers with an error.
    Rcode(SocketAddr, Rcode),
    /// The network, or the machine, would not.
    Network(SocketAddr, io::Error),
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody was asked"),
            Self::Silent(server) => write!(f, "{server} does not answer"),
            Self::Rcode(server, rcode) => write!(f, "{server} answers {rcode}"),
            Self::Network(server, error) => write!(f, "{server}: {error}"),
        }
    }
}

impl std::error::Error for ResolveError {}

/// Asks servers that resolve, over UDP, and over TCP where the reply is truncated.
#[derive(Clone, Copy, Debug)]
pub struct Resolver<'a> {
    /// Who is asked, in this order, twice.
    pub servers: &'a [SocketAddr],
    /// What sockets are bound to.
    pub bind: &'a Bind,
    /// How long one server is waited for.
    pub patience: Duration,
    /// When all of it has to be over.
    pub deadline: Option<Instant>,
}

impl Resolver<'_> {
    /// Asks for the addresses of a name in both families at once; they are in the order in which
    /// they are to be tried, IPv6 first (RFC 8305 §4).
    ///
    /// # Errors
    ///
    /// Why no server knows any, if none says that there are none.
    pub async fn host(&self, name: NameBuf) -> Result<Vec<IpAddr>, ResolveError> {
        let (six, four) = tokio::join!(self.addresses(name, Rtype::AAAA), self.addresses(name, Rtype::A));
        match (six, four) {
            (Ok(six), Ok(four)) => Ok(in_turn(&six.list, &four.list)),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.list.is_empty() => Ok(found.list),
            (Err(why), _) | (_, Err(why)) => Err(why),
        }
    }

    /// Asks one server after the other for the addresses of a name, A or AAAA, until one knows.
    /// That a name does not exist is an answer, too.
    ///
    /// # Errors
    ///
    /// What was last in the way.
    pub async fn addresses(&self, name: NameBuf, qtype: Rtype) -> Result<Addresses, ResolveError> {
        let query = question(name, qtype);
        let mut trouble = ResolveError::Nobody;
        for server in std::iter::repeat_n(self.servers, ROUNDS).flatten().copied() {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let patience = left.map_or(self.patience, |left| left.min(self.patience));
            if patience.is_zero() {
                break;
            }
            trouble = match timeout(patience, ask(self.bind, server, &query)).await {
                Ok(Ok(Heard::Addresses(found))) => return Ok(found),
                Ok(Ok(Heard::Rcode(rcode))) => ResolveError::Rcode(server, rcode),
                Ok(Err(error)) => ResolveError::Network(server, error),
                Err(_) => ResolveError::Silent(server),
            };
        }
        Err(trouble)
    }
}

/// Asks one server, over TCP if the reply over UDP is truncated; returns its reply. Without
/// `recursion_desired`, it is asked for what it is authoritative for.
///
/// # Errors
///
/// The network, or the machine, would not.
pub async fn reply(
    bind: &Bind,
    server: SocketAddr,
    (name, qtype): (NameBuf, Rtype),
    recursion_desired: bool,
) -> io::Result<Vec<u8>> {
    let query = question(name, qtype);
    let id = rand::rng().next_u32() as u16;
    let format = QueryFormat { recursion_desired, edns: None, pads: false, case: None };
    let mut room = [0; QUERY_OCTETS_MAX];
    let octets = packet::write(&mut room, id, &query, format);
    let packet = room.get(..octets).unwrap_or_default();
    // The kernel draws the port at random, and takes datagrams of this server only.
    let socket = connect::udp(bind, server)?;
    socket.send(packet).await?;
    let mut reply = vec![0; REPLY_OCTETS_MAX];
    loop {
        // Ends: whoever waits gives up in time. What is not the reply may be somebody's guess at
        // it.
        let octets = socket.recv(&mut reply).await?;
        let came = reply.get(..octets).unwrap_or_default();
        match is_reply(came, id, &query).map(|message| message.header.flags.has(Flags::TC)) {
            None => {}
            Some(true) => break,
            Some(false) => {
                reply.truncate(octets);
                return Ok(reply);
            }
        }
    }
    let reply = connect::ask_over(connect::tcp(bind, server).await?, packet).await?;
    match is_reply(&reply, id, &query).map(|message| message.header.flags.has(Flags::TC)) {
        Some(false) => Ok(reply),
        Some(true) => Err(io::Error::other("the reply over TCP is truncated")),
        None => Err(io::Error::other("not a reply to the query")),
    }
}

/// Asks one server for the addresses of a name.
async fn ask(bind: &Bind, server: SocketAddr, query: &OutQuery) -> io::Result<Heard> {
    let reply = reply(bind, server, (query.qname, query.qtype), true).await?;
    let message = Message::parse(&reply).map_err(|_| io::Error::other("not a reply to the query"))?;
    // A name that does not exist has no addresses.
    Ok(match message.rcode() {
        Rcode::NOERROR | Rcode::NXDOMAIN => {
            Heard::Addresses(Addresses::read(&message, &query.qname, query.qtype))
        }
        rcode => Heard::Rcode(rcode),
    })
}

/// What a reply says.
enum Heard {
    /// The name has these addresses, or none.
    Addresses(Addresses),
    /// An error.
    Rcode(Rcode),
}

/// Returns a message if it is the reply to a query.
fn is_reply<'r>(reply: &'r [u8], id: u16, query: &OutQuery) -> Option<Message<'r>> {
    let message = Message::parse(reply).ok()?;
    let is_ours = message.header.id == id
        && message.header.flags.has(Flags::QR)
        && packet::echo(reply, &message.header, query, None) == Echo::Same;
    is_ours.then_some(message)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, UdpSocket};

    use wire::{Class, Question, Ttl, Writer};

    use super::*;

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    /// A record: owner, type, TTL, data.
    type Row<'a> = (&'a str, Rtype, u32, &'a [u8]);

    fn reply(flags: Flags, id: u16, question: (&str, Rtype), answers: &[Row<'_>]) -> Vec<u8> {
        let mut octets = vec![0; 512];
        let mut writer = Writer::new(&mut octets, 512, id, flags);
        let qname = name(question.0);
        let question = Question { qname: qname.as_name(), qtype: question.1, qclass: Class::IN };
        writer.question(&question).expect("room");
        for &(owner, rtype, ttl, data) in answers {
            let put = |writer: &mut Writer<'_>| writer.bytes(data);
            let owner = name(owner);
            writer
                .record(Section::Answer, owner.as_name(), rtype, Class::IN, Ttl::new(ttl), put)
                .expect("room");
        }
        let len = writer.finish();
        octets.truncate(len);
        octets
    }

    fn has_addresses(id: u16, addresses: &[[u8; 4]]) -> Vec<u8> {
        let rows: Vec<Row<'_>> =
            addresses.iter().map(|address| ("www.example", Rtype::A, 60, &address[..])).collect();
        reply(Flags::QR, id, ("WWW.example", Rtype::A), &rows)
    }

    /// Plays a server that says these things to each query over UDP.
    fn played(says: impl Fn(&[u8], u16) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((octets, from)) = socket.recv_from(&mut query) {
                for reply in says(&query[..octets], u16::from_be_bytes([query[0], query[1]])) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        address
    }

    fn run<T>(task: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(task)
    }

    /// Asks these servers with so much patience for each.
    fn asked(servers: &[SocketAddr], patience: Duration) -> Result<Addresses, ResolveError> {
        let resolver = Resolver { servers, bind: &Bind::default(), patience, deadline: None };
        run(resolver.addresses(name("www.example"), Rtype::A))
    }

    const PATIENT: Duration = Duration::from_secs(20);

    #[test]
    fn only_the_reply_to_the_query_is_believed() {
        let server = played(|_, id| {
            let wrong = ("other.example", Rtype::A, 60, &[192, 0, 2, 66][..]);
            vec![
                has_addresses(id ^ 1, &[[192, 0, 2, 66]]),
                reply(Flags::QR, id, ("other.example", Rtype::A), &[wrong]),
                reply(Flags::QR, id, ("www.example", Rtype::AAAA), &[wrong]),
                reply(Flags::default(), id, ("www.example", Rtype::A), &[wrong]),
                vec![0; 5],
                has_addresses(id, &[[192, 0, 2, 1], [192, 0, 2, 2], [192, 0, 2, 1]]),
            ]
        });
        let found = asked(&[server], PATIENT).expect("addresses");
        assert_eq!(found.ttl, 60);
        assert_eq!(found.list, [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])]);
    }

    #[test]
    fn another_server_is_asked_when_one_fails_or_is_silent() {
        let broken = played(|_, id| {
            vec![reply(Flags::QR.with_rcode(Rcode::SERVFAIL), id, ("www.example", Rtype::A), &[])]
        });
        let right = played(|_, id| vec![has_addresses(id, &[[192, 0, 2, 1]])]);
        assert_eq!(asked(&[broken, right], PATIENT).expect("addresses").list.len(), 1);
        let why = asked(&[broken], PATIENT).expect_err("nobody knows").to_string();
        assert!(why.ends_with("answers SERVFAIL"), "{why}");

        let silent = played(|_, _| vec![]);
        let little = Duration::from_millis(50);
        let why = asked(&[silent], little).expect_err("nobody answers").to_string();
        assert!(why.ends_with("does not answer"), "{why}");
        let Ok(found) = asked(&[silent, right], Duration::from_secs(1)) else { panic!("the second knows") };
        assert_eq!(found.list.len(), 1);
    }

    #[test]
    fn a_datagram_that_is_lost_is_sent_again() {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let server = played(move |_, id| match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => vec![],
            _ => vec![has_addresses(id, &[[192, 0, 2, 1]])],
        });
        assert_eq!(asked(&[server], Duration::from_secs(1)).expect("addresses").list.len(), 1);
    }

    #[test]
    fn a_truncated_reply_is_fetched_over_tcp() {
        // Another test may have the same port for UDP.
        let both = std::iter::repeat_with(|| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("a bound socket");
            UdpSocket::bind(address).ok().map(|socket| (listener, socket, address))
        });
        let (listener, socket, address) = both.flatten().next().expect("there are other ports");
        std::thread::spawn(move || {
            let mut query = [0; 512];
            let (_, from) = socket.recv_from(&mut query).expect("a query");
            let cut = Flags::QR.with(Flags::TC);
            let id = u16::from_be_bytes([query[0], query[1]]);
            // What a truncated reply has is not all there is.
            let some = ("www.example", Rtype::A, 60, &[192, 0, 2, 66][..]);
            socket.send_to(&reply(cut, id, ("www.example", Rtype::A), &[some]), from).expect("it is sent");
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a length");
            let mut query = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut query).expect("a query");
            let reply = has_addresses(u16::from_be_bytes([query[0], query[1]]), &[[192, 0, 2, 1]]);
            stream
                .write_all(&[&(reply.len() as u16).to_be_bytes()[..], &reply].concat())
                .expect("it is sent");
        });
        assert_eq!(asked(&[address], PATIENT).expect("addresses").list, [IpAddr::from([192, 0, 2, 1])]);
    }

    fn read(qtype: Rtype, answers: &[Row<'_>]) -> Addresses {
        let octets = reply(Flags::QR, 1, ("www.example", qtype), answers);
        Addresses::read(&Message::parse(&octets).expect("a message"), &name("www.example"), qtype)
    }

    #[test]
    fn aliases_are_followed_inside_the_reply_and_nothing_else_is_taken() {
        let (a, b) = (name("a.example"), name("b.example"));
        let to_a = ("www.example", Rtype::CNAME, 300, a.as_name().as_bytes());
        let to_b = ("a.example", Rtype::CNAME, 20, b.as_name().as_bytes());
        let at_b = ("B.example", Rtype::A, 60, &[192, 0, 2, 1][..]);
        let elsewhere = ("c.example", Rtype::A, 5, &[192, 0, 2, 66][..]);
        let expected = Addresses { list: vec![IpAddr::from([192, 0, 2, 1])], ttl: 20 };
        assert_eq!(read(Rtype::A, &[to_a, to_b, elsewhere, at_b]), expected);
        assert_eq!(read(Rtype::A, &[at_b, to_b, to_a]), expected, "whatever their order");
        let none = Addresses { list: vec![], ttl: NEGATIVE_TTL };
        assert_eq!(read(Rtype::A, &[to_a, at_b]), none, "the chain does not lead to it");
        assert_eq!(read(Rtype::AAAA, &[to_a, to_b, at_b]), none);
        // A circle ends.
        let back = ("a.example", Rtype::CNAME, 20, &b"\x03www\x07example\0"[..]);
        assert_eq!(read(Rtype::A, &[to_a, back]), none);
    }

    #[test]
    fn the_families_take_turns() {
        let address = |octet: u8| IpAddr::from([192, 0, 2, octet]);
        let (six, four) = ([address(1), address(2), address(3)], [address(11)]);
        assert_eq!(in_turn(&six, &four), [address(1), address(11), address(2), address(3)]);
        let server = played(|query, id| {
            let six = [&[0x20, 1][..], &[0; 13], &[9]].concat();
            let is_six = query.windows(4).any(|octets| octets == [0, 28, 0, 1]);
            let rows: &[Row<'_>] = match is_six {
                true => &[("www.example", Rtype::AAAA, 60, &six)],
                false => &[
                    ("www.example", Rtype::A, 60, &[192, 0, 2, 1]),
                    ("www.example", Rtype::A, 60, &[192, 0, 2, 2]),
                ],
            };
            vec![reply(Flags::QR, id, ("www.example", if is_six { Rtype::AAAA } else { Rtype::A }), rows)]
        });
        let servers = [server];
        let resolver =
            Resolver { servers: &servers, bind: &Bind::default(), patience: PATIENT, deadline: None };
        let found = run(resolver.host(name("www.example"))).expect("addresses");
        let families: Vec<bool> = found.iter().map(IpAddr::is_ipv6).collect();
        assert_eq!(families, [true, false, false]);
    }

    #[test]
    fn a_deadline_ends_everything() {
        let servers = [played(|_, _| vec![])];
        let bind = Bind::default();
        let resolver =
            Resolver { servers: &servers, bind: &bind, patience: PATIENT, deadline: Some(Instant::now()) };
        let why = run(resolver.addresses(name("www.example"), Rtype::A));
        assert!(matches!(why, Err(ResolveError::Nobody)), "{why:?}");
    }
}
