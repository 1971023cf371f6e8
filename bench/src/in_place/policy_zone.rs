//! From the NOTIFY of a primary to the effect of an IXFR into a response policy zone.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Flags, Header, Message, NameBuf, Opcode, Rcode, Rtype};

use super::{Arguments, Figure, SIDES, free_port, listed_name, own_directory, question, spawn, until, write};
use crate::probe::Heard;
use crate::queries::{self, Extras};
use crate::transfer::{serial_in, sockets};

const ZONE: &str = "rpz.test";
/// Names that a version has instead of those of the version before: an IXFR removes and adds so
/// many.
const CHANGED: usize = 50;
/// Octets of a message at most.
const MESSAGE_OCTETS_MAX: usize = 50_000;
/// The longest wait for a query on a connection.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Where the zone's name is in every message: behind the header.
const ZONE_AT: [u8; 2] = [0xc0, Header::LEN as u8];

pub(super) fn measure(arguments: &Arguments, directory: &Path) -> Result<Vec<Figure>, String> {
    let mut figures = vec![Figure::new("100 records by IXFR", "ms")];
    for side in SIDES {
        let primary = Primary::start(arguments.names)?;
        let own = own_directory(directory, side)?;
        let port = free_port()?;
        write(
            &own.join("empty.zone"),
            "$TTL 60\n@ SOA localhost. root.localhost. 1 3600 600 86400 60\n@ NS localhost.\n",
        )?;
        write(&own.join("unbound.conf"), &conf(&own, port, primary.address))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = spawn(arguments, side, &own)?;
        // What the policy has is NODATA, all else NXDOMAIN.
        let is_blocked = |heard: &Heard| heard.rcode == Rcode::NOERROR.0;
        let is_free = |heard: &Heard| heard.rcode == Rcode::NXDOMAIN.0;
        let last = listed_name(arguments.names.saturating_sub(1));
        until(&mut server, address, (&question(&last), Extras::default()), &is_blocked, Instant::now())?;
        for _ in 0..arguments.rounds {
            let old = question(&changed_name(primary.serial(), 0));
            until(&mut server, address, (&old, Extras::default()), &is_blocked, Instant::now())?;
            let version = primary.next_version();
            let new = question(&changed_name(version, CHANGED - 1));
            until(&mut server, address, (&new, Extras::default()), &is_free, Instant::now())?;
            let begun = Instant::now();
            primary.notify(address)?;
            let took = until(&mut server, address, (&new, Extras::default()), &is_blocked, begun)?;
            until(&mut server, address, (&old, Extras::default()), &is_free, begun)?;
            if let Some(figure) = figures.first_mut() {
                figure.add(side, took.as_secs_f64() * 1e3);
            }
        }
        let incremental = primary.served.incremental.load(Ordering::Relaxed);
        if (incremental as usize) < arguments.rounds {
            return Err(format!("{}: {incremental} of {} by IXFR", side.name(), arguments.rounds));
        }
    }
    Ok(figures)
}

fn conf(own: &Path, port: u16, primary: SocketAddr) -> String {
    format!(
        "server:\n directory: \"{0}\"\n chroot: \"\"\n username: \"\"\n pidfile: \"{0}/pid\"\n use-syslog: no\n \
         interface: 127.0.0.1@{port}\n do-not-query-localhost: no\n module-config: \"respip iterator\"\n\
         remote-control:\n control-enable: no\n\
         rpz:\n name: {ZONE}\n primary: 127.0.0.1@{1}\n allow-notify: 127.0.0.1\n\
         auth-zone:\n name: \".\"\n zonefile: \"{0}/empty.zone\"\n for-downstream: yes\n for-upstream: no\n",
        own.display(),
        primary.port()
    )
}

/// Returns one of the names that only one version has.
fn changed_name(version: u32, number: usize) -> String {
    format!("v{version}-{number}.changed.example")
}

/// A primary of the policy zone, each version of which differs from the one before in a few names.
struct Primary {
    address: SocketAddr,
    served: Arc<Served>,
}

struct Served {
    zone: NameBuf,
    names: usize,
    serial: AtomicU32,
    /// Transfers that said only what had changed.
    incremental: AtomicU32,
    is_over: AtomicBool,
}

impl Primary {
    fn start(names: usize) -> Result<Self, String> {
        let zone = queries::parse_name(ZONE)?;
        let served = Arc::new(Served {
            zone,
            names,
            serial: AtomicU32::new(1),
            incremental: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
        });
        let failed = |error: io::Error| format!("primary: {error}");
        let (datagrams, listener) = sockets::bind().map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (over_udp, over_tcp) = (Arc::clone(&served), Arc::clone(&served));
        // Both end with the process, or when they are next asked and all is over.
        thread::spawn(move || over_udp.answer_datagrams(&datagrams));
        thread::spawn(move || over_tcp.accept(&listener));
        Ok(Self { address, served })
    }

    fn serial(&self) -> u32 {
        self.served.serial.load(Ordering::Relaxed)
    }

    fn next_version(&self) -> u32 {
        self.served.serial.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells a server that there is a new version (RFC 1996).
    fn notify(&self, secondary: SocketAddr) -> Result<(), String> {
        let flags = Flags::AA.with_opcode(Opcode::NOTIFY);
        let header = Header { id: self.serial() as u16, flags, questions: 1, ..Header::default() };
        let message = [header.to_bytes().as_slice(), &self.served.question(Rtype::SOA)].concat();
        let send = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.send_to(&message, secondary);
        send().map(drop).map_err(|error| format!("notification: {error}"))
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.served.is_over.store(true, Ordering::Relaxed);
        // Whoever accepts is woken.
        drop(TcpStream::connect(self.address));
    }
}

/// A message that grows, and goes out when it is full.
struct Reply<'r> {
    head: Vec<u8>,
    message: Vec<u8>,
    count: u16,
    out: &'r mut dyn FnMut(&[u8]) -> io::Result<()>,
}

impl Reply<'_> {
    fn put(&mut self, owner: &[u8], rtype: Rtype, data: &[u8]) -> io::Result<()> {
        if self.message.len() + owner.len() + data.len() + 10 > MESSAGE_OCTETS_MAX {
            self.flush()?;
        }
        self.message.extend(owner);
        self.message.extend(rtype.0.to_be_bytes());
        self.message.extend([0, 1]);
        self.message.extend(60_u32.to_be_bytes());
        self.message.extend((data.len() as u16).to_be_bytes());
        self.message.extend(data);
        self.count += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut message = std::mem::replace(&mut self.message, self.head.clone());
        // The answer count is the fourth number of the header.
        if let Some(count) = message.get_mut(6..).and_then(|count| count.first_chunk_mut()) {
            *count = self.count.to_be_bytes();
        }
        self.count = 0;
        (self.out)(&message)
    }
}

impl Served {
    fn question(&self, qtype: Rtype) -> Vec<u8> {
        [self.zone.as_name().as_bytes(), &qtype.0.to_be_bytes(), &[0, 1]].concat()
    }

    fn soa(serial: u32) -> Vec<u8> {
        let names = [b"\x02ns".as_slice(), &ZONE_AT, b"\x0ahostmaster", &ZONE_AT].concat();
        let numbers = [serial, 7200, 600, 86_400, 60].map(u32::to_be_bytes);
        [names, numbers.concat()].concat()
    }

    /// Answers a query, message by message.
    fn answer(&self, query: &[u8], out: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let Ok(message) = Message::parse(query) else { return Ok(()) };
        let Some(question) = message.question.filter(|_| !message.header.flags.has(Flags::QR)) else {
            return Ok(());
        };
        if question.qname != self.zone.as_name() {
            return Ok(());
        }
        let serial = self.serial.load(Ordering::Relaxed);
        let header = Header {
            id: message.header.id,
            flags: Flags::QR.with(Flags::AA),
            questions: 1,
            ..Header::default()
        };
        let head = [header.to_bytes().as_slice(), &self.question(question.qtype)].concat();
        let mut reply = Reply { message: head.clone(), head, count: 0, out };
        let soa = Self::soa(serial);
        reply.put(&ZONE_AT, Rtype::SOA, &soa)?;
        match (question.qtype, serial_in(&message)) {
            (Rtype::IXFR, Some(has)) if has == serial => {}
            // RFC 1995 §4: what was removed behind the old SOA, what was added behind the new one.
            (Rtype::IXFR, Some(has)) if has + 1 == serial => {
                for version in [has, serial] {
                    reply.put(&ZONE_AT, Rtype::SOA, &Self::soa(version))?;
                    Self::changed(version, &mut reply)?;
                }
                reply.put(&ZONE_AT, Rtype::SOA, &soa)?;
                self.incremental.fetch_add(1, Ordering::Relaxed);
            }
            (Rtype::AXFR | Rtype::IXFR, _) => {
                reply.put(&ZONE_AT, Rtype::NS, &[b"\x02ns".as_slice(), &ZONE_AT].concat())?;
                for number in 0..self.names {
                    reply.put(&owner(&listed_name(number)), Rtype::CNAME, b"\x01*\0")?;
                }
                Self::changed(serial, &mut reply)?;
                reply.put(&ZONE_AT, Rtype::SOA, &soa)?;
            }
            _ => {}
        }
        reply.flush()
    }

    fn changed(version: u32, reply: &mut Reply<'_>) -> io::Result<()> {
        (0..CHANGED).try_for_each(|number| {
            // Of a name that exists there are no data.
            reply.put(&owner(&changed_name(version, number)), Rtype::CNAME, b"\x01*\0")
        })
    }

    fn answer_datagrams(&self, socket: &UdpSocket) {
        let mut room = [0; 4096];
        while let Ok((octets, client)) = socket.recv_from(&mut room) {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let query = room.get(..octets).unwrap_or(&[]);
            // A transfer over UDP would have to fit: whoever asks for one is told the serial.
            let Ok(message) = Message::parse(query) else { continue };
            if message.question.is_some_and(|question| question.qtype == Rtype::SOA) {
                let _ = self.answer(query, &mut |reply| socket.send_to(reply, client).map(drop));
            }
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let served = Arc::clone(self);
        sockets::accept(
            listener,
            || self.is_over.load(Ordering::Relaxed),
            move |stream| served.converse(stream),
        );
    }

    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(IDLE_MAX))?;
        stream.set_nodelay(true)?;
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query)?;
            self.answer(&query, &mut |message| {
                stream.write_all(&[&(message.len() as u16).to_be_bytes(), message].concat())
            })?;
        }
    }
}

/// Returns the owner of a rule: the name within the zone.
fn owner(name: &str) -> Vec<u8> {
    let mut owner = Vec::with_capacity(name.len() + 4);
    for label in name.split('.') {
        owner.push(label.len() as u8);
        owner.extend(label.bytes());
    }
    owner.extend(ZONE_AT);
    owner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(primary: &Primary, qtype: Rtype, serial: Option<u32>) -> Vec<(String, Rtype)> {
        let authorities = u16::from(serial.is_some());
        let header = Header { id: 7, questions: 1, authorities, ..Header::default() };
        let mut query = [header.to_bytes().as_slice(), &primary.served.question(qtype)].concat();
        if let Some(serial) = serial {
            let data = Served::soa(serial);
            query.extend(ZONE_AT);
            query.extend(Rtype::SOA.0.to_be_bytes());
            query.extend([0, 1, 0, 0, 0, 60]);
            query.extend((data.len() as u16).to_be_bytes());
            query.extend(data);
        }
        let mut found = Vec::new();
        let answered = primary.served.answer(&query, &mut |reply| {
            let message = Message::parse(reply).expect("well-formed");
            found.extend(
                message.records().map(|it| (it.owner.expand().expect("a name").to_string(), it.rtype)),
            );
            Ok(())
        });
        answered.expect("memory takes all");
        found
    }

    #[test]
    fn a_whole_transfer_has_every_name_and_an_incremental_one_what_has_changed() {
        let primary = Primary::start(5_000).expect("loopback has ports");
        let whole = records(&primary, Rtype::AXFR, None);
        assert_eq!(whole.len(), 5_000 + CHANGED + 3);
        assert_eq!((whole[0].1, whole[whole.len() - 1].1), (Rtype::SOA, Rtype::SOA));
        assert_eq!(primary.next_version(), 2);
        let changed = records(&primary, Rtype::IXFR, Some(1));
        assert_eq!(changed.len(), 2 * CHANGED + 4);
        assert!(
            changed[2].0.starts_with("v1-0.") && changed[CHANGED + 3].0.starts_with("v2-0."),
            "{changed:?}"
        );
        assert_eq!(records(&primary, Rtype::IXFR, Some(2)).len(), 1);
        assert_eq!(records(&primary, Rtype::SOA, None).len(), 1);
    }
}
