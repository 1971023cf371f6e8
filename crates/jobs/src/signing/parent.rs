//! Asks the servers of a parent zone which DS they have for a child.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use wire::message::Message;
use wire::{Class, Flags, Name, Question, Rcode, Rtype, Writer};

/// How long a server may take for each step.
const PATIENCE: Duration = Duration::from_secs(5);
/// Octets of a question.
const QUESTION_OCTETS_MAX: usize = 512;

/// Returns the data of the DS records that a server has for `zone`. Over TCP: what it says is
/// believed.
pub(super) fn ask(server: SocketAddr, zone: Name<'_>) -> Result<Vec<Vec<u8>>, String> {
    exchange(server, zone).map_err(|error| error.to_string())
}

fn exchange(server: SocketAddr, zone: Name<'_>) -> io::Result<Vec<Vec<u8>>> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    let id = u16::from_be_bytes(id);
    let mut buf = [0; QUESTION_OCTETS_MAX];
    let mut writer = Writer::new(&mut buf, QUESTION_OCTETS_MAX, id, Flags(0).with(Flags::RD));
    let question = Question { qname: zone, qtype: Rtype::DS, qclass: Class::IN };
    writer.question(&question).map_err(|_| io::Error::other("the question does not fit"))?;
    let len = writer.finish();
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let framed = [&(len as u16).to_be_bytes()[..], buf.get(..len).unwrap_or(&[])].concat();
    stream.write_all(&framed)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply)?;
    let message = Message::parse(&reply).map_err(|_| io::Error::other("the reply cannot be read"))?;
    let is_ours = message.header.id == id
        && message.header.flags.has(Flags::QR)
        && message.question.is_some_and(|asked| asked.qname == zone && asked.qtype == Rtype::DS);
    if !is_ours {
        return Err(io::Error::other("the reply is to another question"));
    }
    match message.rcode() {
        Rcode::NOERROR | Rcode::NXDOMAIN => {}
        rcode => return Err(io::Error::other(format!("the reply is {rcode}"))),
    }
    Ok(message
        .records()
        .filter(|record| record.section == wire::Section::Answer && record.rtype == Rtype::DS)
        .filter(|record| record.owner.expand().is_ok_and(|owner| owner.as_name() == zone))
        .map(|record| record.rdata.to_vec())
        .collect())
}
