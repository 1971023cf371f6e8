//! The addresses of a host that the machine does not look after, asked for when they are needed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use plan::upstreams::{Bind, Way};
use rand::Rng as _;
use tokio::time::timeout;
use wire::{Class, Flags, Header, Message, NameBuf, Rcode, Rtype, Section};

use super::post;
use crate::network::Remote;
use crate::transport::Transport;

/// How long to wait for one resolver.
const PATIENCE: Duration = Duration::from_millis(800);
/// Addresses taken of one family.
const ADDRESSES_MAX: usize = 4;
/// Octets of a reply.
const REPLY_OCTETS_MAX: usize = 2048;

/// Asks each resolver in turn, until one knows; IPv6 and IPv4 take turns in the list (RFC 8305 §4).
pub(super) async fn addresses(bind: &Bind, resolvers: &[SocketAddr], name: NameBuf) -> Vec<IpAddr> {
    for resolver in resolvers {
        let [six, four] =
            [ask(bind, *resolver, name, Rtype::AAAA).await, ask(bind, *resolver, name, Rtype::A).await];
        let both: Vec<IpAddr> = (0..ADDRESSES_MAX)
            .flat_map(|at| [six.get(at).copied(), four.get(at).copied()])
            .flatten()
            .collect();
        if !both.is_empty() {
            return both;
        }
    }
    Vec::new()
}

async fn ask(bind: &Bind, resolver: SocketAddr, name: NameBuf, rtype: Rtype) -> Vec<IpAddr> {
    let way = Way { bind: bind.clone(), ..Way::default() };
    let remote = Remote { address: resolver, transport: Transport::plain(way).into() };
    let Ok(socket) = post::connected(&remote, resolver) else { return Vec::new() };
    let id = rand::rng().next_u32() as u16;
    let header = Header { id, flags: Flags::RD, questions: 1, ..Header::default() };
    let question = [name.as_name().as_bytes(), &rtype.0.to_be_bytes(), &Class::IN.0.to_be_bytes()].concat();
    let query = [&header.to_bytes()[..], &question].concat();
    // Once more: the first may be lost.
    for _ in 0..2 {
        let exchange = async {
            socket.send(&query).await.ok()?;
            let mut buffer = [0; REPLY_OCTETS_MAX];
            loop {
                let octets = socket.recv(&mut buffer).await.ok()?;
                let reply = buffer.get(..octets)?;
                let echoed = reply.get(Header::LEN..Header::LEN + question.len());
                if reply.starts_with(&id.to_be_bytes())
                    && echoed.is_some_and(|echoed| echoed.eq_ignore_ascii_case(&question))
                {
                    return Some(read(reply));
                }
            }
        };
        match timeout(PATIENCE, exchange).await {
            Ok(Some(found)) => return found,
            Ok(None) => return Vec::new(),
            Err(_) => (),
        }
    }
    Vec::new()
}

/// Returns the addresses in an answer.
fn read(reply: &[u8]) -> Vec<IpAddr> {
    let Ok(message) = Message::parse(reply) else { return Vec::new() };
    if message.rcode() != Rcode::NOERROR {
        return Vec::new();
    }
    let answers = message.records().filter(|record| record.section == Section::Answer);
    let addresses = answers.filter_map(|record| match record.rtype {
        Rtype::A => <[u8; 4]>::try_from(record.rdata).ok().map(|it| Ipv4Addr::from(it).into()),
        Rtype::AAAA => <[u8; 16]>::try_from(record.rdata).ok().map(|it| Ipv6Addr::from(it).into()),
        _ => None,
    });
    addresses.take(ADDRESSES_MAX).collect()
}
