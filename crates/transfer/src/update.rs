//! Updates of zones that another server has (RFC 2136): passes on those of clients, and tells the
//! servers of a parent which DS a zone has.

use plan::transfers::Remote;
use tokio::time::timeout;
use wire::{Class, Flags, Header, Message, Name, NameBuf, Opcode, Question, Rcode, Rtype, Ttl, Writer};
use zone::incoming::Fault;

use crate::connection::{Client, Connection, Patience};
use crate::error::PeerError;
use crate::messages::Expire;
use crate::signature::{believed, signed};

/// Octets of an update: some thousand DS of SHA-256.
const UPDATE_OCTETS_MAX: usize = 60_000;

/// The DS that a zone is to have at its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The zone.
    pub child: NameBuf,
    /// The TTL of the records.
    pub ttl: Ttl,
    /// Their data. With none, the zone is to have no DS.
    pub ds: Vec<Vec<u8>>,
}

/// Replaces all DS that a server has for a zone by those of `delegation`. Returns the zone that
/// they are in now.
pub async fn push_ds(
    client: &Client,
    remote: &Remote,
    delegation: &Delegation,
    patience: Patience,
) -> Result<NameBuf, PeerError> {
    let work = async {
        let child = delegation.child.as_name();
        let above = child.parent().ok_or(PeerError::NoParent)?;
        let mut connection = Connection::open(client, remote, patience).await?;
        let reply = connection.ask_soa(remote, above, Expire::Unasked).await?;
        let parent = zone_of(&reply, above)?;
        let message = update(parent.as_name(), delegation);
        sent(&mut connection, remote, message).await.map(|()| parent)
    };
    timeout(patience.whole, work).await.unwrap_or(Err(PeerError::Slow))
}

/// A TXT record that is to be there, or not, beside whatever else its name has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxtChange {
    /// Its name.
    pub owner: NameBuf,
    /// Its text: at most 255 octets count.
    pub text: String,
    /// Whether it is to be there.
    pub is_wanted: bool,
}

/// For how many seconds a record that is there for a moment may be remembered.
const MOMENT: Ttl = Ttl::new(60);
/// Octets of a text in a TXT record.
const TEXT_OCTETS_MAX: usize = 255;

impl TxtChange {
    /// Makes an update of a zone (RFC 2136 §2.5.1, §2.5.4); returns its ID, too.
    pub fn update(&self, zone: Name<'_>) -> (u16, Vec<u8>) {
        let (class, ttl) = if self.is_wanted { (Class::IN, MOMENT) } else { (Class::NONE, Ttl::new(0)) };
        let text = self.text.as_bytes();
        let text = text.get(..text.len().min(TEXT_OCTETS_MAX)).unwrap_or(&[]);
        written(zone, |writer| {
            let _ = writer.record(
                wire::Section::Authority,
                self.owner.as_name(),
                Rtype::TXT,
                class,
                ttl,
                |writer| {
                    writer.bytes(&[text.len() as u8])?;
                    writer.bytes(text)
                },
            );
        })
    }
}

/// Has a server change a TXT record in whichever of its zones that is. Returns the zone.
pub async fn push_txt(
    client: &Client,
    remote: &Remote,
    change: &TxtChange,
    patience: Patience,
) -> Result<NameBuf, PeerError> {
    let work = async {
        let mut connection = Connection::open(client, remote, patience).await?;
        let reply = connection.ask_soa(remote, change.owner.as_name(), Expire::Unasked).await?;
        let zone = zone_of(&reply, change.owner.as_name())?;
        let (id, message) = change.update(zone.as_name());
        sent(&mut connection, remote, (id, message)).await.map(|()| zone)
    };
    timeout(patience.whole, work).await.unwrap_or(Err(PeerError::Slow))
}

/// Sends an update over a connection; an error is also that the server does not carry it out.
async fn sent(
    connection: &mut Connection,
    remote: &Remote,
    (id, mut message): (u16, Vec<u8>),
) -> Result<(), PeerError> {
    let mut verifier = signed(remote, &mut message);
    connection.send(&message).await?;
    let mut buffer = Vec::new();
    connection.receive(&mut buffer).await?;
    let reply = believed(&buffer, (id, Opcode::UPDATE), verifier.as_mut())?;
    match Message::parse(&reply).map(|parsed| parsed.rcode()) {
        Ok(Rcode::NOERROR) => Ok(()),
        Ok(rcode) => Err(PeerError::Refused(rcode)),
        Err(_) => Err(PeerError::Fault(Fault::Malformed)),
    }
}

/// Passes an update on as it came and returns the reply as it came, with their ID and signatures
/// (RFC 2136 §6): nobody else sends anything over the connection that is made for it.
pub async fn pass_on(
    client: &Client,
    remote: &Remote,
    message: &[u8],
    patience: Patience,
) -> Result<Vec<u8>, PeerError> {
    let work = async {
        let id = Header::parse(message).ok_or(PeerError::Fault(Fault::Malformed))?.id;
        let mut connection = Connection::open(client, remote, patience).await?;
        connection.send(message).await?;
        let mut reply = Vec::new();
        connection.receive(&mut reply).await?;
        believed(&reply, (id, Opcode::UPDATE), None)
    };
    timeout(patience.whole, work).await.unwrap_or(Err(PeerError::Slow))
}

/// Returns the zone that `above` is in, as the reply to a question for its SOA says: the SOA's
/// owner is a zone's apex, wherever in the reply it stands.
fn zone_of(reply: &[u8], above: Name<'_>) -> Result<NameBuf, PeerError> {
    let parsed = Message::parse(reply).map_err(|_| PeerError::Fault(Fault::Malformed))?;
    match parsed.rcode() {
        // There is nothing at the name, or not even the name.
        Rcode::NOERROR | Rcode::NXDOMAIN => {}
        rcode => return Err(PeerError::Refused(rcode)),
    }
    let soas = parsed.records().filter(|record| record.rtype == Rtype::SOA);
    let mut owners = soas.filter_map(|record| record.owner.expand().ok());
    // Who does not serve the zone cannot change it.
    let apex = owners.find(|owner| above.is_at_or_below(owner.as_name()));
    apex.filter(|_| parsed.header.flags.has(Flags::AA)).ok_or(PeerError::NoParent)
}

/// Makes the update: all DS of the child go, and these come (RFC 2136 §2.5).
fn update(parent: Name<'_>, delegation: &Delegation) -> (u16, Vec<u8>) {
    let child = delegation.child.as_name();
    written(parent, |writer| {
        let section = wire::Section::Authority;
        let _ = writer.record(section, child, Rtype::DS, Class::ANY, Ttl::new(0), |_| Ok(()));
        for ds in &delegation.ds {
            let put = |writer: &mut Writer<'_>| writer.bytes(ds);
            let _ = writer.record(section, child, Rtype::DS, Class::IN, delegation.ttl, put);
        }
    })
}

/// Writes an update of a zone: returns its ID, and what `records` has put in.
fn written(zone: Name<'_>, records: impl FnOnce(&mut Writer<'_>)) -> (u16, Vec<u8>) {
    let id = rand::random();
    let mut message = vec![0; UPDATE_OCTETS_MAX];
    let limit = message.len();
    let mut writer = Writer::new(&mut message, limit, id, Flags(0).with_opcode(Opcode::UPDATE));
    // A name, and records of a few dozen octets each: they fit.
    let _ = writer.question(&Question { qname: zone, qtype: Rtype::SOA, qclass: Class::IN });
    records(&mut writer);
    let len = writer.finish();
    message.truncate(len);
    (id, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NameBuf {
        NameBuf::from_text(text).expect("a name")
    }

    /// Makes the reply to a question for the SOA of `asked`, with a SOA of `owner` in `section`.
    fn reply(asked: &str, rcode: Rcode, flags: Flags, soa: Option<(wire::Section, &str)>) -> Vec<u8> {
        let mut message = vec![0; 512];
        let mut writer = Writer::new(&mut message, 512, 1, flags.with(Flags::QR).with_rcode(rcode));
        let asked = name(asked);
        let question = Question { qname: asked.as_name(), qtype: Rtype::SOA, qclass: Class::IN };
        writer.question(&question).expect("room");
        if let Some((section, owner)) = soa {
            let data = [vec![0, 0], vec![0; 20]].concat();
            let owner = name(owner);
            let write = |writer: &mut Writer<'_>| writer.bytes(&data);
            writer
                .record(section, owner.as_name(), Rtype::SOA, Class::IN, Ttl::new(60), write)
                .expect("room");
        }
        let len = writer.finish();
        message.truncate(len);
        message
    }

    #[test]
    fn the_parent_is_the_zone_whose_soa_comes() {
        use wire::Section::{Answer, Authority};
        let above = name("b.example.org");
        let check = |soa, rcode, flags, expect: Option<&str>| {
            let reply = reply("b.example.org", rcode, flags, soa);
            let found = zone_of(&reply, above.as_name()).ok();
            assert_eq!(found, expect.map(name), "{soa:?}");
        };
        check(Some((Answer, "b.example.org")), Rcode::NOERROR, Flags::AA, Some("b.example.org"));
        check(Some((Authority, "example.org")), Rcode::NOERROR, Flags::AA, Some("example.org"));
        check(Some((Authority, "example.org")), Rcode::NXDOMAIN, Flags::AA, Some("example.org"));
        // Another zone's, a resolver's, none, a refusal.
        check(Some((Authority, "example.net")), Rcode::NOERROR, Flags::AA, None);
        check(Some((Authority, "example.org")), Rcode::NOERROR, Flags(0), None);
        check(None, Rcode::NOERROR, Flags::AA, None);
        check(Some((Authority, "example.org")), Rcode::REFUSED, Flags::AA, None);
    }

    #[test]
    fn all_ds_are_removed_before_those_that_come() {
        let ds = vec![vec![1, 2, 13, 2, 0xaa], vec![3, 4, 13, 2, 0xbb]];
        let delegation = Delegation { child: name("c.example.org"), ttl: Ttl::new(300), ds };
        let (id, message) = update(name("example.org").as_name(), &delegation);
        let parsed = Message::parse(&message).expect("a message");
        assert_eq!((parsed.header.id, parsed.header.flags.opcode()), (id, Opcode::UPDATE));
        let question = parsed.question.expect("a zone");
        assert_eq!((question.qname.to_buf(), question.qtype), (name("example.org"), Rtype::SOA));
        let records: Vec<(Class, Vec<u8>)> =
            parsed.records().map(|record| (record.class, record.rdata.to_vec())).collect();
        let expect = [
            (Class::ANY, vec![]),
            (Class::IN, vec![1, 2, 13, 2, 0xaa]),
            (Class::IN, vec![3, 4, 13, 2, 0xbb]),
        ];
        assert_eq!(records, expect);
    }
}
