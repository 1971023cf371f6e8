//! What the words of `gannet query` mean: name, type, class, server, and options with a plus sign.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use wire::text::read_hex;
use wire::{Class, NameBuf, OptionCode, Rtype};

use crate::cli::{self, QueryArgs};

/// The path of DNS over HTTPS if none is given.
const HTTPS_PATH: &str = "/dns-query";
/// Octets that a client cookie has (RFC 7873 §4.1), and that one with a server's cookie has at
/// most.
const COOKIE_OCTETS: usize = 8;
const COOKIE_OCTETS_MAX: usize = 40;
/// Octets that padding brings a query to a multiple of (RFC 8467 §4.1).
pub const PADDING_OCTETS: u16 = 128;

/// What is asked, of whom, and how.
#[derive(Debug)]
pub struct Words {
    /// The name.
    pub name: NameBuf,
    /// The type; AXFR and IXFR ask for a transfer.
    pub rtype: Rtype,
    /// The class.
    pub class: Class,
    /// The serial behind `IXFR=`.
    pub serial: u32,
    /// The server behind `@`, as it is written.
    pub server: Option<String>,
    /// What options say.
    pub wishes: Wishes,
}

/// What carries a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Datagrams.
    Udp,
    /// A connection.
    Tcp,
    /// DNS over TLS.
    Tls,
    /// DNS over HTTPS, with the path.
    Https(String),
    /// DNS over HTTPS, version 3, with the path.
    H3(String),
    /// DNS over QUIC.
    Quic,
}

impl Carrier {
    /// Returns what a listener with it is called, and what stands before its address.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Https(_) => "https",
            Self::H3(_) => "h3",
            Self::Quic => "quic",
        }
    }

    /// Returns the carrier of that word.
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "udp" => Self::Udp,
            "tcp" => Self::Tcp,
            "tls" => Self::Tls,
            "https" => Self::Https(HTTPS_PATH.to_owned()),
            "h3" => Self::H3(HTTPS_PATH.to_owned()),
            "quic" => Self::Quic,
            _ => return None,
        })
    }
}

/// What a server must prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The name in its certificate.
    pub name: Option<String>,
    /// A file of certificates that it may be signed with.
    pub roots: Option<PathBuf>,
    /// The hash of its key, `sha256/…`.
    pub pin: Option<String>,
    /// Nothing at all.
    pub is_waived: bool,
}

/// How a query is padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Where it is encrypted.
    #[default]
    Usual,
    /// Not at all.
    Off,
    /// To a multiple of so many octets.
    Block(u16),
}

/// Everything that options say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// What carries the query.
    pub carrier: Option<Carrier>,
    /// What the server must prove.
    pub proof: Proof,
    /// DNSSEC records are requested (DO).
    pub dnssec: bool,
    /// The server shall not validate (CD).
    pub unchecked: bool,
    /// The server shall say whether it validated (AD).
    pub authentic: bool,
    /// The server shall not ask others (RD clear).
    pub no_recursion: bool,
    /// There is no OPT record.
    pub no_edns: bool,
    /// The largest reply over UDP.
    pub udp_octets: Option<u16>,
    /// EDNS options: codes and data, in their order.
    pub options: Vec<(OptionCode, Vec<u8>)>,
    /// How the query is padded.
    pub padding: Padding,
    /// A truncated reply is shown as it is.
    pub keeps_truncated: bool,
    /// Only the data of the answer is shown.
    pub short: bool,
    /// How long to wait for a reply.
    pub timeout: Option<Duration>,
    /// How often to ask.
    pub tries: Option<u32>,
    /// Names outside ASCII are taken as octets.
    pub no_idn_in: bool,
    /// Whether A-labels are shown as Unicode; as the terminal is by default.
    pub idn_out: Option<bool>,
}

impl Words {
    /// Returns what the arguments of `query` say: words, and options without a plus sign.
    ///
    /// # Errors
    ///
    /// The first word that makes no sense.
    pub fn of(args: &QueryArgs) -> Result<Self, String> {
        let mut words = Self::parse(&args.words)?;
        let wishes = &mut words.wishes;
        wishes.dnssec |= args.dnssec;
        wishes.unchecked |= args.no_check;
        wishes.no_recursion |= args.no_recurse;
        wishes.short |= args.short;
        Ok(words)
    }

    /// Reads names, types, classes, `@server` and `+option` in any order that can be told apart.
    ///
    /// # Errors
    ///
    /// The first word that makes no sense.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let (mut name, mut rtype, mut class, mut server) = (None, None, None, None);
        let mut wishes = Wishes::default();
        for word in words {
            if let Some(at) = word.strip_prefix('@') {
                if at.is_empty() {
                    return Err("\"@\" names no server".to_owned());
                }
                if server.replace(at.trim_end_matches('/').to_owned()).is_some() {
                    return Err(format!("\"{word}\" is a second server"));
                }
            } else if let Some(option) = word.strip_prefix('+') {
                wishes.take(option)?;
            } else if name.is_none() {
                name = Some(word.as_str());
            } else if let Some(known) = class_of(word).filter(|_| class.is_none()) {
                class = Some(known);
            } else if rtype.is_none() {
                rtype = Some(word.as_str());
            } else {
                return Err(format!(
                    "\"{word}\" is one word too many: expected NAME [TYPE] [@SERVER] [+OPTION]"
                ));
            }
        }
        let mut name = name.ok_or("a name to ask for is missing")?;
        // "MX example.org" can only mean one thing.
        if let Some(second) = rtype
            && type_of(second).is_err()
            && type_of(name).is_ok()
        {
            rtype = Some(std::mem::replace(&mut name, second));
        }
        let asked = rtype.map(type_of).transpose()?;
        let (name, default) = match name.parse::<IpAddr>() {
            Ok(address) => (reverse_name(address), Rtype::PTR),
            Err(_) => (name_of(name, &wishes)?, Rtype::A),
        };
        if wishes.no_edns && (wishes.dnssec || !wishes.options.is_empty() || wishes.udp_octets.is_some()) {
            return Err("+noedns leaves no place for the other EDNS options".to_owned());
        }
        let (rtype, serial) = asked.unwrap_or((default, 0));
        Ok(Self { name, rtype, class: class.unwrap_or(Class::IN), serial, server, wishes })
    }

    /// Returns whether a whole zone, or what changed in it, is asked for.
    pub fn is_transfer(&self) -> bool {
        matches!(self.rtype, Rtype::AXFR | Rtype::IXFR)
    }
}

fn name_of(text: &str, wishes: &Wishes) -> Result<NameBuf, String> {
    let ascii = match wishes.no_idn_in {
        true => text.into(),
        false => wire::idn::to_ascii(text).map_err(|error| error.to_string())?,
    };
    ascii.parse().map_err(|_| format!("\"{text}\" is not a domain name"))
}

/// Reads a type; `IXFR=7` has a serial with it.
fn type_of(text: &str) -> Result<(Rtype, u32), String> {
    let wrong = || format!("\"{text}\" is not a record type");
    if let Some((word, serial)) = text.split_once('=') {
        if !word.eq_ignore_ascii_case("ixfr") {
            return Err(wrong());
        }
        let serial = serial.parse().map_err(|_| format!("\"{serial}\" in \"{text}\" is not a serial"))?;
        return Ok((Rtype::IXFR, serial));
    }
    text.parse::<Rtype>().map(|rtype| (rtype, 0)).map_err(|_| wrong())
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

impl Wishes {
    /// Takes an option without its plus sign: `tls`, `notcp`, `bufsize=4096`.
    fn take(&mut self, option: &str) -> Result<(), String> {
        let (word, value) = match option.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (option, None),
        };
        let word = word.to_ascii_lowercase();
        let (key, is_on) = match word.strip_prefix("no") {
            Some(rest) => (rest, false),
            None => (word.as_str(), true),
        };
        if value.is_some() && !is_on {
            return Err(format!("\"+{option}\": an option that is switched off has no value"));
        }
        if self.switch(key, is_on, value.is_some()) {
            return Ok(());
        }
        if !is_on {
            return self.switch_off(key).ok_or_else(|| unknown(option));
        }
        self.set(key, value, option)
    }

    /// Sets an option that is on or off and nothing else; `false` if there is no such option.
    fn switch(&mut self, key: &str, is_on: bool, has_value: bool) -> bool {
        let place = match key {
            _ if has_value => return false,
            "dnssec" | "do" => &mut self.dnssec,
            "cd" | "cdflag" => &mut self.unchecked,
            "ad" | "adflag" => &mut self.authentic,
            "ignore" => &mut self.keeps_truncated,
            "short" => &mut self.short,
            "insecure" | "tls-insecure" => &mut self.proof.is_waived,
            "rec" | "recurse" | "rd" | "rdflag" => {
                self.no_recursion = !is_on;
                return true;
            }
            "edns" => {
                self.no_edns = !is_on;
                return true;
            }
            "idn" => {
                (self.no_idn_in, self.idn_out) = (!is_on, Some(is_on));
                return true;
            }
            "idnin" => {
                self.no_idn_in = !is_on;
                return true;
            }
            "idnout" => {
                self.idn_out = Some(is_on);
                return true;
            }
            _ => return false,
        };
        *place = is_on;
        true
    }

    fn switch_off(&mut self, key: &str) -> Option<()> {
        match key {
            "tcp" | "vc" => self.carrier = Some(Carrier::Udp),
            "padding" => self.padding = Padding::Off,
            "nsid" => self.forget(OptionCode::NSID),
            "subnet" => self.forget(OptionCode::CLIENT_SUBNET),
            "expire" => self.forget(OptionCode::EXPIRE),
            "cookie" => self.forget(OptionCode::COOKIE),
            "keepalive" => self.forget(OptionCode::TCP_KEEPALIVE),
            _ => return None,
        }
        Some(())
    }

    fn forget(&mut self, code: OptionCode) {
        self.options.retain(|(other, _)| *other != code);
    }

    fn put(&mut self, code: OptionCode, data: Vec<u8>) {
        self.forget(code);
        self.options.push((code, data));
    }

    fn set(&mut self, key: &str, value: Option<&str>, option: &str) -> Result<(), String> {
        let needs = |what: &str| value.ok_or_else(|| format!("\"+{option}\" needs {what}: +{key}=…"));
        let wrong = |what: &str| format!("\"+{option}\": expected {what}");
        match (key, value) {
            ("tcp" | "vc", None) => self.carry(Carrier::Tcp)?,
            ("tls", None) => self.carry(Carrier::Tls)?,
            ("quic", None) => self.carry(Carrier::Quic)?,
            ("https", path) => self.carry(Carrier::Https(path_of(path)))?,
            ("h3", path) => self.carry(Carrier::H3(path_of(path)))?,
            ("tls-ca" | "ca", _) => self.proof.roots = Some(needs("a file of certificates")?.into()),
            ("tls-hostname" | "tls-name", _) => {
                self.proof.name = Some(needs("the name in the certificate")?.to_owned());
            }
            ("tls-pin", _) => {
                let pin = needs("the SHA-256 of the server's key, in Base64")?;
                let bare = pin.strip_prefix("sha256/").unwrap_or(pin);
                self.proof.pin = Some(format!("sha256/{bare}"));
            }
            ("bufsize", _) => {
                let octets = needs("a number of octets")?.parse();
                self.udp_octets = Some(octets.map_err(|_| wrong("octets, 0 to 65535"))?);
            }
            ("subnet", _) => {
                let data = subnet(needs("a prefix such as 192.0.2.0/24")?);
                self.put(
                    OptionCode::CLIENT_SUBNET,
                    data.ok_or_else(|| wrong("a prefix such as 192.0.2.0/24"))?,
                );
            }
            ("nsid", None) => self.put(OptionCode::NSID, Vec::new()),
            ("expire", None) => self.put(OptionCode::EXPIRE, Vec::new()),
            ("keepalive", None) => self.put(OptionCode::TCP_KEEPALIVE, Vec::new()),
            ("cookie", None) => {
                self.put(OptionCode::COOKIE, rand::random::<[u8; COOKIE_OCTETS]>().to_vec());
            }
            ("cookie", Some(digits)) => {
                let octets = read_hex(digits.as_bytes());
                let fits = |octets: &Vec<u8>| {
                    octets.len() == COOKIE_OCTETS
                        || (2 * COOKIE_OCTETS..=COOKIE_OCTETS_MAX).contains(&octets.len())
                };
                let octets =
                    octets.filter(fits).ok_or_else(|| wrong("8, or 16 to 40, octets in hexadecimal"))?;
                self.put(OptionCode::COOKIE, octets);
            }
            ("padding", None) => self.padding = Padding::Block(PADDING_OCTETS),
            ("padding", Some(octets)) => {
                let block = octets.parse().ok().filter(|octets| (1..=512).contains(octets));
                self.padding = Padding::Block(block.ok_or_else(|| wrong("octets, 1 to 512"))?);
            }
            ("ednsopt", _) => {
                let text = needs("a code and its data: +ednsopt=10:0123")?;
                let (code, digits) = text.split_once(':').unwrap_or((text, ""));
                let read = || Some((OptionCode(code.parse().ok()?), read_hex(digits.as_bytes())?));
                self.options.push(
                    read().ok_or_else(|| wrong("a number, and perhaps a colon and hexadecimal digits"))?,
                );
            }
            ("timeout" | "time", _) => {
                self.timeout = Some(cli::parse_seconds(needs("seconds")?)?);
            }
            ("tries", _) => {
                let tries = needs("a number")?.parse().ok().filter(|tries| (1..=100).contains(tries));
                self.tries = Some(tries.ok_or_else(|| wrong("a number, 1 to 100"))?);
            }
            _ => return Err(unknown(option)),
        }
        Ok(())
    }

    fn carry(&mut self, carrier: Carrier) -> Result<(), String> {
        match &self.carrier {
            Some(other) if *other != carrier => {
                Err(format!("\"+{}\" and \"+{}\" exclude each other", other.word(), carrier.word()))
            }
            _ => {
                self.carrier = Some(carrier);
                Ok(())
            }
        }
    }
}

fn unknown(option: &str) -> String {
    format!("there is no option \"+{option}\"; \"gannet query --help\" lists them")
}

fn path_of(path: Option<&str>) -> String {
    match path {
        None | Some("") => HTTPS_PATH.to_owned(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("/{path}"),
    }
}

/// Writes a client subnet option (RFC 7871 §6); bits behind the prefix are cleared.
fn subnet(text: &str) -> Option<Vec<u8>> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    // "0" stands for no subnet at all, as in dig.
    let address: IpAddr = if address == "0" { IpAddr::from([0; 4]) } else { address.parse().ok()? };
    let (family, mut octets) = match address {
        IpAddr::V4(address) => (1, address.octets().to_vec()),
        IpAddr::V6(address) => (2, address.octets().to_vec()),
    };
    let whole = u8::try_from(octets.len() * 8).ok()?;
    let bits = bits.unwrap_or(if text == "0" { 0 } else { whole });
    if bits > whole {
        return None;
    }
    octets.truncate(usize::from(bits.div_ceil(8)));
    if let (Some(last), rest @ 1..) = (octets.last_mut(), bits % 8) {
        *last &= 0xff << (8 - rest);
    }
    Some([&[0, family, bits, 0], octets.as_slice()].concat())
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
        check("+tls version.bind +nsid CH TXT", "version.bind.", Rtype::TXT);
        check("example.org TYPE65534", "example.org.", Rtype(65534));
        check("192.0.2.1", "1.2.0.192.in-addr.arpa.", Rtype::PTR);
        check("example.org ixfr=7", "example.org.", Rtype::IXFR);
        assert_eq!(words("example.org nonsense").unwrap_err(), "\"nonsense\" is not a record type");
        assert_eq!(words("a..b").unwrap_err(), "\"a..b\" is not a domain name");
    }

    #[test]
    fn a_name_outside_ascii_is_asked_for_by_its_a_labels() {
        check("bücher.example", "xn--bcher-kva.example.", Rtype::A);
        check("mx BÜCHER.example", "xn--bcher-kva.example.", Rtype::MX);
        check("+noidn bücher.example", "b\\195\\188cher.example.", Rtype::A);
    }

    #[test]
    fn addresses_have_reverse_names() {
        let name = reverse_name("2001:db8::1".parse().unwrap()).as_name().to_string();
        assert_eq!(name, "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.");
    }

    fn check_wishes(text: &str, expect: &Wishes) {
        assert_eq!(&words(&format!("example.org {text}")).unwrap().wishes, expect, "{text}");
    }

    #[test]
    fn options_say_how_to_ask() {
        check_wishes(
            "+tls +tls-ca=ca.pem +tls-hostname=dns.example +do",
            &Wishes {
                carrier: Some(Carrier::Tls),
                proof: Proof {
                    name: Some("dns.example".into()),
                    roots: Some("ca.pem".into()),
                    ..Proof::default()
                },
                dnssec: true,
                ..Wishes::default()
            },
        );
        check_wishes(
            "+https=kids +norecurse +cd +bufsize=4096 +nopadding",
            &Wishes {
                carrier: Some(Carrier::Https("/kids".into())),
                no_recursion: true,
                unchecked: true,
                udp_octets: Some(4096),
                padding: Padding::Off,
                ..Wishes::default()
            },
        );
        check_wishes(
            "+subnet=192.0.2.77/25 +nsid +ednsopt=65001:0aff +nonsid",
            &Wishes {
                options: vec![
                    (OptionCode::CLIENT_SUBNET, vec![0, 1, 25, 0, 192, 0, 2, 0]),
                    (OptionCode(65001), vec![10, 255]),
                ],
                ..Wishes::default()
            },
        );
    }

    #[test]
    fn subnets_are_cut_to_their_prefix() {
        assert_eq!(subnet("2001:db8:ffff::/33"), Some(vec![0, 2, 33, 0, 0x20, 1, 0xd, 0xb8, 0x80]));
        assert_eq!(subnet("0"), Some(vec![0, 1, 0, 0]));
        assert_eq!(subnet("192.0.2.1"), Some(vec![0, 1, 32, 0, 192, 0, 2, 1]));
        assert_eq!(subnet("192.0.2.0/33"), None);
    }

    #[test]
    fn a_wrong_option_is_named() {
        for (text, expect) in [
            ("+tsl", "there is no option \"+tsl\"; \"gannet query --help\" lists them"),
            ("+tls=7", "there is no option \"+tls=7\"; \"gannet query --help\" lists them"),
            ("+tls +quic", "\"+tls\" and \"+quic\" exclude each other"),
            ("+bufsize", "\"+bufsize\" needs a number of octets: +bufsize=…"),
            ("+bufsize=70000", "\"+bufsize=70000\": expected octets, 0 to 65535"),
            ("+cookie=00", "\"+cookie=00\": expected 8, or 16 to 40, octets in hexadecimal"),
            ("+noedns +nsid", "+noedns leaves no place for the other EDNS options"),
            ("@", "\"@\" names no server"),
        ] {
            assert_eq!(words(&format!("example.org {text}")).unwrap_err(), expect);
        }
    }
}
