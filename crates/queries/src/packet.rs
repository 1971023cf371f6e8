//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The queries we send, and whether a reply is to one of them.

use engine::ops::outgoing::{OPTIONS_OCTETS_MAX, SERVER_OPTION_OCTETS_MAX};
use engine::{ClientSubnet, OutQuery};
use wire::name::NAME_OCTETS_MAX;
use wire::{Class, Flags, Header, Message, Name, OptionCode, Rcode, Rtype};

/// Encrypted queries are filled up to a multiple of this, so that their length says little about
/// the name (RFC 8467 §4.1).
const BLOCK_OCTETS: usize = 128;
/// Octets of the largest query: header, name, type, class, OPT, client subnet, other options,
/// padding.
pub const QUERY_OCTETS_MAX: usize = Header::LEN
    + NAME_OCTETS_MAX
    + 4
    + 11
    + 24
    + OPTIONS_OCTETS_MAX
    + SERVER_OPTION_OCTETS_MAX
    + 4
    + BLOCK_OCTETS;

/// What is asked, whoever keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'q> {
    /// The name.
    pub qname: Name<'q>,
    /// The type.
    pub qtype: Rtype,
    /// The class.
    pub qclass: Class,
    /// CD.
    pub checking_disabled: bool,
    /// DO; it takes EDNS.
    pub wants_dnssec: bool,
    /// The client's subnet (RFC 7871).
    pub client_subnet: Option<&'q ClientSubnet>,
    /// Other EDNS options in wire form, at most [`OPTIONS_OCTETS_MAX`] octets.
    pub options: &'q [u8],
    /// One that this server is sent, likewise, at most [`SERVER_OPTION_OCTETS_MAX`] octets.
    pub of_server: &'q [u8],
}

impl<'q> From<&'q OutQuery> for Asked<'q> {
    fn from(query: &'q OutQuery) -> Self {
        Self {
            qname: query.qname.as_name(),
            qtype: query.qtype,
            qclass: query.qclass,
            checking_disabled: query.checking_disabled,
            wants_dnssec: query.wants_dnssec,
            client_subnet: query.client_subnet.as_ref(),
            options: &query.options,
            of_server: &[],
        }
    }
}

/// What a query carries besides its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryFormat {
    /// RD.
    pub recursion_desired: bool,
    /// The UDP payload size in our OPT; `None` leaves the OPT away.
    pub edns: Option<u16>,
    /// Whether the query is filled up, which takes EDNS.
    pub pads: bool,
    /// Where the letter case comes from; `None` keeps the asker's.
    pub case: Option<CaseSeed>,
}

/// The random letter case of one query (draft-vixie-dnsext-dns0x20), small enough to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseSeed(pub u32);

/// Whose question a reply carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Ours, as sent.
    Same,
    /// Ours, but not in the letter case we sent.
    OtherCase,
    /// None at all: tolerated in errors from servers that could not read us.
    Absent,
    /// Somebody else's.
    Other,
}

/// Writes a query and returns its octets.
pub fn write<'q>(
    out: &mut [u8; QUERY_OCTETS_MAX],
    id: u16,
    query: impl Into<Asked<'q>>,
    format: QueryFormat,
) -> usize {
    let query = query.into();
    let mut flags = Flags::default();
    if format.recursion_desired {
        flags = flags.with(Flags::RD);
    }
    if query.checking_disabled {
        flags = flags.with(Flags::CD);
    }
    let additionals = u16::from(format.edns.is_some());
    let header = Header { id, flags, questions: 1, additionals, ..Header::default() };
    let mut pen = Pen { out, at: 0 };
    pen.put(&header.to_bytes());
    let name_at = pen.at;
    pen.put(query.qname.as_bytes());
    if let Some(seed) = format.case
        && let Some(name) = pen.out.get_mut(name_at..pen.at)
    {
        seed.apply(name);
    }
    pen.put(&query.qtype.0.to_be_bytes());
    pen.put(&query.qclass.0.to_be_bytes());
    if let Some(size) = format.edns {
        let [s0, s1] = size.to_be_bytes();
        let flags = if query.wants_dnssec { 0x80 } else { 0 };
        pen.put(&[0, 0, 41, s0, s1, 0, 0, flags, 0]);
        let options = query.options.get(..OPTIONS_OCTETS_MAX).unwrap_or(query.options);
        let address = query.client_subnet.map(|subnet| {
            let octets = usize::from(subnet.prefix).div_ceil(8);
            subnet.address.get(..octets).unwrap_or(&subnet.address)
        });
        let of_server = query.of_server.get(..SERVER_OPTION_OCTETS_MAX).unwrap_or(query.of_server);
        let length = options.len() + of_server.len() + address.map_or(0, |address| 8 + address.len());
        let padding = format.pads.then(|| {
            let octets = pen.at + 2 + length + 4;
            octets.next_multiple_of(BLOCK_OCTETS) - octets
        });
        let length = length + padding.map_or(0, |padding| 4 + padding);
        pen.put(&(length as u16).to_be_bytes());
        if let (Some(subnet), Some(address)) = (query.client_subnet, address) {
            pen.put(&OptionCode::CLIENT_SUBNET.0.to_be_bytes());
            pen.put(&[0, 4 + address.len() as u8, 0, subnet.family, subnet.prefix, 0]);
            pen.put(address);
        }
        pen.put(options);
        pen.put(of_server);
        if let Some(padding) = padding {
            pen.put(&OptionCode::PADDING.0.to_be_bytes());
            pen.put(&(padding as u16).to_be_bytes());
            pen.put([0; BLOCK_OCTETS].get(..padding).unwrap_or(&[]));
        }
    }
    pen.at
}

/// Returns whether the reply `bytes` with `header` echoes the question of `query`.
pub fn echo<'q>(bytes: &[u8], header: &Header, query: impl Into<Asked<'q>>, case: Option<CaseSeed>) -> Echo {
    let query = query.into();
    if header.questions == 0 {
        return Echo::Absent;
    }
    let name = query.qname.as_bytes();
    let end = Header::LEN + name.len();
    let (Some(echoed), Some(&[t0, t1, c0, c1])) = (bytes.get(Header::LEN..end), bytes.get(end..end + 4))
    else {
        return Echo::Other;
    };
    if header.questions != 1
        || u16::from_be_bytes([t0, t1]) != query.qtype.0
        || u16::from_be_bytes([c0, c1]) != query.qclass.0
        || !echoed.eq_ignore_ascii_case(name)
    {
        return Echo::Other;
    }
    let Some(seed) = case else { return Echo::Same };
    let mut sent = [0; NAME_OCTETS_MAX];
    let Some(sent) = sent.get_mut(..name.len()) else { return Echo::Other };
    sent.copy_from_slice(name);
    seed.apply(sent);
    if sent == echoed { Echo::Same } else { Echo::OtherCase }
}

/// Returns the question of a reply whose ID is not known: the name and type it claims to answer.
pub fn claimed(bytes: &[u8]) -> Option<(Name<'_>, Rtype)> {
    let (name, rest) = Name::parse(bytes.get(Header::LEN..)?).ok()?;
    let (&[t0, t1], _) = rest.split_first_chunk::<2>()?;
    Some((name, Rtype(u16::from_be_bytes([t0, t1]))))
}

/// Returns whether the server seems not to know EDNS (RFC 6891 §7), or not our version of it.
pub fn dislikes_edns(message: &Message<'_>) -> bool {
    match message.rcode() {
        Rcode::FORMERR | Rcode::NOTIMP => message.edns.is_none(),
        Rcode::BADVERS => true,
        _ => false,
    }
}

impl CaseSeed {
    /// Makes the case of each letter of a name random, the same way each time.
    fn apply(self, name: &mut [u8]) {
        let mut bits = 0u64;
        for (i, octet) in name.iter_mut().enumerate() {
            if i % 64 == 0 {
                bits = mix((u64::from(self.0) << 32) | (i as u64 + 1));
            }
            if octet.is_ascii_alphabetic() {
                *octet = (*octet & !0x20) | ((bits as u8 & 1) << 5);
            }
            bits >>= 1;
        }
    }
}

/// The finaliser of SplitMix64.
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Appends to a buffer that is large enough for every query.
struct Pen<'b> {
    out: &'b mut [u8; QUERY_OCTETS_MAX],
    at: usize,
}

impl Pen<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.out.get_mut(self.at..self.at + bytes.len()) {
            room.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ClientSubnet;
    use wire::{Class, Query};

    fn query(name: &[u8]) -> OutQuery {
        OutQuery {
            qname: Name::parse(name).expect("a name").0.to_buf(),
            qtype: Rtype::A,
            qclass: Class::IN,
            checking_disabled: true,
            wants_dnssec: true,
            no_recursion: false,
            client_subnet: None,
            options: Box::default(),
            members: 0,
            hash: 0,
        }
    }

    const PLAIN: QueryFormat =
        QueryFormat { recursion_desired: true, edns: Some(1232), pads: false, case: None };

    #[test]
    fn what_we_send_says_what_was_wanted() {
        let mut out = [0; QUERY_OCTETS_MAX];
        let mut wanted = query(b"\x03www\x07eXample\x03org\0");
        let mut address = [0; 16];
        address[..3].copy_from_slice(&[192, 0, 2]);
        wanted.client_subnet = Some(ClientSubnet { family: 1, prefix: 24, address });
        let len = write(&mut out, 0x1234, &wanted, PLAIN);
        let read = Query::parse(&out[..len]).expect("well formed");
        assert_eq!(read.header.id, 0x1234);
        assert!(read.header.flags.has(Flags::RD.with(Flags::CD)));
        assert_eq!(read.question.qname.as_bytes(), b"\x03www\x07eXample\x03org\0");
        let edns = read.edns.expect("an OPT");
        assert_eq!(edns.udp_size, 1232);
        assert!(edns.wants_dnssec());
        assert_eq!(edns.option(OptionCode::CLIENT_SUBNET), Some(&[0, 1, 24, 0, 192, 0, 2][..]));
    }

    #[test]
    fn what_is_encrypted_is_filled_up() {
        let mut lengths = Vec::new();
        for letters in 1..=63 {
            let mut name = vec![letters as u8];
            name.extend(vec![b'a'; letters]);
            name.push(0);
            let mut out = [0xff; QUERY_OCTETS_MAX];
            let len = write(&mut out, 1, &query(&name), QueryFormat { pads: true, ..PLAIN });
            let read = Query::parse(&out[..len]).expect("well formed");
            let padding = read.edns.expect("an OPT").option(OptionCode::PADDING).expect("padding");
            assert!(padding.iter().all(|&octet| octet == 0));
            lengths.push(len);
        }
        assert!(lengths.iter().all(|len| len % BLOCK_OCTETS == 0), "{lengths:?}");
        let len = write(
            &mut [0; QUERY_OCTETS_MAX],
            1,
            &query(b"\0"),
            QueryFormat { pads: true, edns: None, ..PLAIN },
        );
        assert_eq!(len, 17, "there is no OPT to put it into");
    }

    #[test]
    fn without_edns_there_is_no_opt() {
        let mut out = [0; QUERY_OCTETS_MAX];
        let len = write(&mut out, 1, &query(b"\0"), QueryFormat { edns: None, ..PLAIN });
        assert!(Query::parse(&out[..len]).expect("well formed").edns.is_none());
    }

    #[test]
    fn the_longest_query_fits() {
        let mut name = Vec::new();
        for _ in 0..3 {
            name.push(63);
            name.extend([b'a'; 63]);
        }
        name.push(61);
        name.extend([b'a'; 61]);
        name.push(0);
        let mut wanted = query(&name);
        wanted.client_subnet = Some(ClientSubnet { family: 2, prefix: 128, address: [1; 16] });
        let mut out = [0; QUERY_OCTETS_MAX];
        for pads in [false, true] {
            let len = write(&mut out, 1, &wanted, QueryFormat { pads, ..PLAIN });
            assert!(Query::parse(&out[..len]).is_ok_and(|query| query.edns.is_some()));
        }
    }

    #[test]
    fn only_the_same_question_is_an_echo() {
        let wanted = query(b"\x03www\x07example\x03org\0");
        let mut out = [0; QUERY_OCTETS_MAX];
        let len = write(&mut out, 1, &wanted, PLAIN);
        let check = |bytes: &[u8], expect| {
            let header = Header::parse(bytes).expect("a header");
            assert_eq!(echo(bytes, &header, &wanted, None), expect, "{bytes:02x?}");
        };
        check(&out[..len], Echo::Same);
        let mut upper = out;
        upper[13] = b'W';
        check(&upper[..len], Echo::Same);
        let mut other = out;
        other[13] = b'x';
        check(&other[..len], Echo::Other);
        let mut other_type = out;
        other_type[12 + 17 + 1] = 28;
        check(&other_type[..len], Echo::Other);
        check(&out[..20], Echo::Other);
        let mut none = out;
        none[5] = 0;
        check(&none[..12], Echo::Absent);
    }

    #[test]
    fn a_reply_in_another_letter_case_is_noticed() {
        let wanted = query(b"\x03www\x07example\x03org\0");
        let mut seen = std::collections::HashSet::new();
        for seed in 0..100 {
            let case = Some(CaseSeed(seed));
            let mut out = [0; QUERY_OCTETS_MAX];
            let len = write(&mut out, 1, &wanted, QueryFormat { case, ..PLAIN });
            let bytes = &out[..len];
            let header = Header::parse(bytes).expect("a header");
            assert_eq!(echo(bytes, &header, &wanted, case), Echo::Same);
            let mut lower = out;
            lower.make_ascii_lowercase();
            if lower != out {
                assert_eq!(echo(&lower[..len], &header, &wanted, case), Echo::OtherCase);
            }
            seen.insert(out[12..29].to_vec());
        }
        assert!(seen.len() > 90, "thirteen letters give many spellings");
    }
}
