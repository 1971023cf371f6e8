//! Answers as lines, what an upstream says, and what actions make of them.

use std::net::IpAddr;

use policy::TtlChange;
use policy::action::Addresses;
use policy::action::edit::{Edit, Selection, Sort};
use wire::rdata::{self, SvcKey};
use wire::{Class, Flags, Message, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer};

/// One record of an answer section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its owner, in lower case and without a dot at its end.
    pub(crate) owner: String,
    /// Its type.
    pub(crate) rtype: Rtype,
    /// How long it may be kept.
    pub(crate) ttl: u32,
    /// Its data; names in full.
    pub(crate) data: Vec<u8>,
}

impl Line {
    /// Returns a record.
    pub(crate) fn new(owner: &str, rtype: Rtype, ttl: u32, data: &[u8]) -> Self {
        Self { owner: owner.to_owned(), rtype, ttl, data: data.to_vec() }
    }

    /// Returns the address that it holds.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.rtype {
            Rtype::A => <[u8; 4]>::try_from(self.data.as_slice()).ok().map(IpAddr::from),
            Rtype::AAAA => <[u8; 16]>::try_from(self.data.as_slice()).ok().map(IpAddr::from),
            _ => None,
        }
    }

    /// Returns the name that it is an alias for.
    pub(crate) fn target(&self) -> Option<String> {
        let (name, _) = wire::Name::parse(&self.data).ok().filter(|_| self.rtype == Rtype::CNAME)?;
        Some(shown(&name.to_buf()))
    }
}

fn shown(name: &NameBuf) -> String {
    let text = name.to_string().to_ascii_lowercase();
    if text == "." { text } else { text.trim_end_matches('.').to_owned() }
}

/// What somebody says: a code, and the records of the answer section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The response code.
    pub(crate) rcode: Rcode,
    /// The records.
    pub(crate) lines: Vec<Line>,
}

fn data(rtype: Rtype, text: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    rdata::parse_text(rtype, text, None, &mut octets).expect("record data");
    octets
}

/// What the upstream says to a question. Names with a `b` in them are aliases.
pub(crate) fn upstream(qname: &str, rtype: Rtype) -> Said {
    let mut lines = Vec::new();
    let mut owner = qname;
    if qname.contains('b') && rtype != Rtype::MX {
        lines.push(Line::new(qname, Rtype::CNAME, 50, &data(Rtype::CNAME, "x.cdn.example.")));
        owner = "x.cdn.example";
    }
    let mut put = |rtype: Rtype, ttl: u32, text: &str| {
        lines.push(Line::new(owner, rtype, ttl, &data(rtype, text)));
    };
    match rtype {
        Rtype::A => {
            put(Rtype::A, 100, "192.0.2.1");
            put(Rtype::A, 200, "10.0.0.1");
            put(Rtype::A, 300, "10.1.0.1");
        }
        Rtype::AAAA => put(Rtype::AAAA, 500, "2001:db8::1"),
        Rtype::HTTPS => {
            put(Rtype::HTTPS, 400, "1 . alpn=h2 ipv4hint=192.0.2.1 ech=AAAA ipv6hint=2001:db8::1");
            put(Rtype::HTTPS, 400, "2 . alpn=h3");
        }
        Rtype::MX => return Said::code(Rcode::NXDOMAIN),
        Rtype::PTR => return Said::code(Rcode::SERVFAIL),
        _ => {}
    }
    Said { rcode: Rcode::NOERROR, lines }
}

impl Said {
    /// Returns an answer without records.
    pub(crate) fn code(rcode: Rcode) -> Self {
        Self { rcode, lines: Vec::new() }
    }

    /// Reads what a message says.
    pub(crate) fn read(message: &Message<'_>) -> Self {
        let lines = message.records().filter(|record| record.section == Section::Answer).map(|record| {
            let data = match record.rtype {
                Rtype::CNAME => {
                    let target = record.name_in_rdata(0).expand().expect("a name");
                    target.as_name().to_folded().as_bytes().to_vec()
                }
                _ => record.rdata.to_vec(),
            };
            let owner = record.owner.expand().expect("a name");
            Line { owner: shown(&owner), rtype: record.rtype, ttl: record.ttl_raw, data }
        });
        Self { rcode: message.rcode(), lines: lines.collect() }
    }

    /// Writes it as the reply to a question.
    pub(crate) fn message(&self, qname: &NameBuf, qtype: Rtype) -> Vec<u8> {
        let mut octets = vec![0; 2048];
        let flags = Flags::QR.with(Flags::RA).with_rcode(self.rcode);
        let mut writer = Writer::new(&mut octets, 2048, 9, flags);
        writer.question(&Question { qname: qname.as_name(), qtype, qclass: Class::IN }).expect("room");
        for line in &self.lines {
            let owner: NameBuf = line.owner.parse().expect("a name");
            let write = |writer: &mut Writer<'_>| match line.rtype {
                Rtype::CNAME => writer.name(wire::Name::parse(&line.data).expect("a name").0),
                _ => writer.bytes(&line.data),
            };
            let ttl = Ttl::new(line.ttl);
            writer.record(Section::Answer, owner.as_name(), line.rtype, Class::IN, ttl, write).expect("room");
        }
        let len = writer.finish();
        octets.truncate(len);
        octets
    }

    /// Does what an action does to an answer.
    pub(crate) fn edit(
        &mut self,
        edit: &Edit,
        qname: &str,
        qtype: Rtype,
        in_set: impl Fn(&str, IpAddr) -> bool,
    ) {
        let is_in = |addresses: &Addresses, address: IpAddr| {
            addresses.prefixes.iter().any(|prefix| prefix.contains(address))
                || addresses.sets.iter().any(|set| in_set(&set.value, address))
        };
        match edit {
            Edit::Ttl(TtlChange::Fixed(time)) => {
                self.lines.iter_mut().for_each(|line| line.ttl = time.as_secs() as u32);
            }
            Edit::Ttl(TtlChange::Clamped { min, max }) => {
                for line in &mut self.lines {
                    line.ttl = line.ttl.max(min.map_or(0, |min| min.as_secs() as u32));
                    line.ttl = line.ttl.min(max.map_or(u32::MAX, |max| max.as_secs() as u32));
                }
            }
            Edit::Remove(Selection::Types(types)) => self.lines.retain(|line| !types.contains(&line.rtype)),
            Edit::Remove(Selection::Addresses(all)) => {
                self.lines.retain(|line| !line.address().is_some_and(|address| is_in(all, address)));
            }
            Edit::Keep(Selection::Types(types)) => {
                self.lines.retain(|line| line.rtype == Rtype::CNAME || types.contains(&line.rtype));
            }
            Edit::Keep(Selection::Addresses(all)) => {
                self.lines.retain(|line| line.address().is_none_or(|address| is_in(all, address)));
            }
            Edit::Limit(limit) => {
                let mut counts = [0; 2];
                self.lines.retain(|line| {
                    let Some(address) = line.address() else { return true };
                    let count = &mut counts[usize::from(address.is_ipv4())];
                    *count += 1;
                    *count <= *limit
                });
            }
            Edit::Strip(keys) => {
                for line in self.lines.iter_mut().filter(|line| line.rtype == Rtype::HTTPS) {
                    line.data = stripped(&line.data, keys);
                }
            }
            Edit::Flatten => {
                let aliases = self.lines.iter().filter(|line| line.rtype == Rtype::CNAME);
                let Some(least) = aliases.map(|line| line.ttl).min() else { return };
                self.lines.retain(|line| line.rtype != Rtype::CNAME);
                for line in &mut self.lines {
                    line.owner = qname.to_owned();
                    line.ttl = line.ttl.min(least);
                }
            }
            Edit::Sort(Sort::Preferred(ranks)) => {
                // The data changes places; TTLs are those of the whole set anyway.
                for rtype in [Rtype::A, Rtype::AAAA] {
                    let mut found: Vec<Vec<u8>> = Vec::new();
                    let of_type = |line: &&mut Line| line.rtype == rtype;
                    found.extend(self.lines.iter_mut().filter(of_type).map(|line| line.data.clone()));
                    found.sort_by_key(|octets| {
                        let address = Line::new("", rtype, 0, octets).address().expect("an address");
                        ranks.iter().position(|rank| is_in(rank, address)).unwrap_or(ranks.len())
                    });
                    for (line, data) in self.lines.iter_mut().filter(of_type).zip(found) {
                        line.data = data;
                    }
                }
            }
            Edit::Ede(..) => {}
            other => panic!("{other:?} is not generated ({qtype})"),
        }
    }
}

/// Returns the data of an HTTPS record without some parameters.
fn stripped(data: &[u8], keys: &[SvcKey]) -> Vec<u8> {
    // Priority, and the root as the target.
    let (mut out, mut rest) = (data[..3].to_vec(), &data[3..]);
    while let [k0, k1, l0, l1, after @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*l0, *l1]));
        let (whole, next) = rest.split_at(4 + len);
        if !keys.contains(&SvcKey(u16::from_be_bytes([*k0, *k1]))) {
            out.extend(whole);
        }
        assert!(after.len() >= len, "data of ours");
        rest = next;
    }
    out
}
