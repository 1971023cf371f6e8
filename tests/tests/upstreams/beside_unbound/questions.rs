//! What both servers are asked: names that the file is about, and others.

use std::fmt::{self, Write as _};

use testkit::Ask;
use testkit::world::World;
use wire::{Class, Flags, Rtype};

use super::Dice;
use super::files::{File, ZONES};

/// Questions for each file.
const QUESTIONS: usize = 60;

/// Names of each zone of the internet.
const HOSTS: [&str; 10] =
    ["www", "mail", "api", "alias", "chain", "text", "host.deep", "deep", "a.b.wild", "no"];
/// Names that never leave a server, and some that do not exist.
const OTHERS: [&str; 10] = [
    "localhost",
    "127.in-addr.arpa",
    "1.0.0.127.in-addr.arpa",
    "10.in-addr.arpa",
    "8.8.8.8.in-addr.arpa",
    "x.test",
    "invalid",
    "onion",
    "nope",
    "nope.t001",
];
const TYPES: [Rtype; 14] = [
    Rtype::A,
    Rtype::A,
    Rtype::A,
    Rtype::A,
    Rtype::AAAA,
    Rtype::AAAA,
    Rtype::TXT,
    Rtype::MX,
    Rtype::CNAME,
    Rtype::SOA,
    Rtype::NS,
    Rtype::PTR,
    Rtype::SRV,
    Rtype::DS,
];

/// A cookie that comes with a question.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cookie {
    /// Of a client that has met no server yet.
    Client,
    /// With what a server has given.
    Server,
}

/// A question, and the last octet of the address that it comes from.
pub(super) struct Asked {
    /// Without the cookie.
    pub(super) ask: Ask,
    pub(super) cookie: Option<Cookie>,
    pub(super) client: u8,
    pub(super) text: String,
    /// In lower case.
    pub(super) name: String,
    pub(super) qtype: Rtype,
    pub(super) is_chaos: bool,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "127.0.0.{} asks {}", self.client, self.text)
    }
}

impl Asked {
    /// Makes a question for data, without a cookie.
    pub(super) fn about(ask: Ask, client: u8, text: &str, qtype: Rtype) -> Self {
        let name = text.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        Self { ask, cookie: None, client, text: text.to_owned(), name, qtype, is_chaos: false }
    }
}

/// Returns the questions for a file.
pub(super) fn of(seed: u64, file: &File, world: &World) -> Vec<Asked> {
    let mut dice = Dice::new(seed ^ 0x5151_5151);
    (0..QUESTIONS).map(|at| question(&mut dice, at, file, world)).collect()
}

/// Returns questions of which no two have a record in common in their answers.
pub(super) fn different(seed: u64, world: &World) -> Vec<Asked> {
    let mut dice = Dice::new(seed ^ 0x5151_5151);
    let mut all = Vec::new();
    for zone in 0..ZONES {
        let hosts = HOSTS.iter().filter(|host| !["alias", "chain"].contains(host));
        let names: Vec<String> = hosts.map(|host| format!("{host}.{}", world.zone_text(zone))).collect();
        for qname in dice.some(&names, QUESTIONS / ZONES as usize) {
            let (qtype, wants_dnssec) = (*dice.pick(&TYPES), dice.percent(30));
            let mut ask = Ask::new(&qname, qtype).id(all.len() as u16 + 1).edns(1232);
            if wants_dnssec {
                ask = ask.dnssec();
            }
            let text = format!("{qname} {qtype} {wants_dnssec}");
            all.push(Asked::about(ask, 1, &text, qtype));
        }
    }
    all
}

fn question(dice: &mut Dice, at: usize, file: &File, world: &World) -> Asked {
    let about_file = !file.names.is_empty() && dice.percent(55);
    let mut qname = if about_file {
        dice.pick(&file.names).clone()
    } else if dice.percent(75) {
        format!("{}.{}", dice.pick(&HOSTS), world.zone_text(dice.below(ZONES as usize) as u32))
    } else {
        (*dice.pick(&OTHERS)).to_owned()
    };
    let mut qtype = *dice.pick(&TYPES);
    let is_chaos = dice.percent(2);
    if is_chaos {
        (qname, qtype) =
            ((*dice.pick(&["version.bind", "id.server", "version.server"])).to_owned(), Rtype::TXT);
    }
    if dice.percent(25) {
        let mut mixed = String::new();
        for c in qname.chars() {
            mixed.push(if dice.percent(50) { c.to_ascii_uppercase() } else { c });
        }
        qname = mixed;
    }
    let mut flags = Flags::default();
    for (flag, percent) in [(Flags::RD, 93), (Flags::CD, 6), (Flags::AD, 10)] {
        if dice.percent(percent) {
            flags = flags.with(flag);
        }
    }
    let mut ask = Ask::new(&qname, qtype).id(at as u16 + 1).flags(flags);
    let mut text = format!("{qname} {qtype} {flags:?}");
    if is_chaos {
        ask = ask.class(Class::CH);
    }
    if dice.percent(60) {
        ask = ask.edns(1232);
        text.push_str(" EDNS");
        if dice.percent(30) {
            ask = ask.dnssec();
            text.push_str(" DO");
        }
    }
    let client = *dice.pick(&[1, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    let has_cookies = file.files.iter().any(|(_, text)| text.contains("answer-cookie: yes"));
    let cookie = if has_cookies && text.contains(" EDNS") && dice.percent(50) {
        Some(*dice.pick(&[Cookie::Client, Cookie::Server]))
    } else {
        None
    };
    if let Some(cookie) = cookie {
        let _ = write!(text, " {cookie:?} cookie");
    }
    let name = qname.to_ascii_lowercase();
    Asked { ask, cookie, client, text, name, qtype, is_chaos }
}
