//! MikroTik routers: address lists and routes, over the RouterOS API, inside of TLS if the settings
//! say so.
//!
//! The API speaks sentences of words, each word with its length before it; a sentence ends with an
//! empty word. Logging in is one sentence with name and password (RouterOS 6.43 and later). Entries
//! of ours carry a comment, and nothing without it is touched. Address list entries end by the
//! router's own clock; routes have none, so they are removed from here, and those that an earlier
//! run left are taken over when the first connection is made.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::jobs::{self as settings, MikrotikWhat, Timeout};
use wire::Prefix;

use rustls::ClientConfig;

use super::elements::{Known, Shape};
use super::{Counts, Effect, EffectError, Occurrence};
use crate::http::Trust;
use crate::tls;

/// Octets of the longest word we accept.
const WORD_OCTETS_MAX: usize = 64 * 1024;
/// Words of the longest sentence, and sentences of the longest answer, that we accept.
const WORDS_MAX: usize = 1024;
const SENTENCES_MAX: usize = 100_000;
/// How long after a failure the router is left alone.
const PAUSE: Duration = Duration::from_secs(5);
/// How often it is looked whether what is always there is there.
const ALWAYS_EVERY: Duration = Duration::from_secs(180);
/// Routes that are remembered; more are refused, because nobody would remove them.
const ROUTES_MAX: usize = 65_536;

/// Keeps what one effect has on a router.
pub(crate) struct Mikrotik {
    settings: settings::Mikrotik,
    connection: Option<Connection<Box<dyn Stream>>>,
    /// What TLS runs on, once it was needed.
    tls: Option<Arc<ClientConfig>>,
    known: Known,
    /// When each route ends, as far as routes do.
    routes: HashMap<IpAddr, Option<Instant>>,
    has_taken_over: bool,
    /// When we last looked whether what is always there is there.
    always_seen: Option<Instant>,
    paused_until: Option<Instant>,
}

impl Mikrotik {
    /// Prepares the effect; the router is not bothered before there is something to do.
    pub(crate) fn new(settings: &settings::Mikrotik) -> Self {
        Self {
            settings: settings.clone(),
            connection: None,
            tls: None,
            known: Known::default(),
            routes: HashMap::new(),
            has_taken_over: false,
            always_seen: None,
            paused_until: None,
        }
    }

    /// Returns whether this effect keeps addresses of that family.
    fn wants(&self, address: IpAddr) -> bool {
        self.target(address).is_some()
    }

    /// Returns the list or gateway for an address.
    fn target(&self, address: IpAddr) -> Option<&str> {
        let (v4, v6) = match &self.settings.what {
            MikrotikWhat::Lists { list4, list6, .. } => (list4, list6),
            MikrotikWhat::Routes { gateway4, gateway6, .. } => (gateway4, gateway6),
        };
        if address.is_ipv4() { v4.as_deref() } else { v6.as_deref() }
    }

    fn connect(&mut self) -> Result<(), Refusal> {
        if self.connection.is_none() {
            let patience = self.settings.patience;
            let stream = TcpStream::connect_timeout(&self.settings.address, patience)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            stream.set_nodelay(true)?;
            let mut connection = Connection { stream: self.secured(stream)? };
            let password = String::from_utf8_lossy(self.settings.password.reveal()).into_owned();
            let login = [
                "/login".to_owned(),
                format!("=name={}", self.settings.user),
                format!("=password={password}"),
            ];
            let answer = connection.ask(&login)?;
            if answer.done.contains_key("ret") {
                return Err(Refusal::Trap("the router is older than RouterOS 6.43".to_owned()));
            }
            self.connection = Some(connection);
        }
        if !self.has_taken_over && matches!(self.settings.what, MikrotikWhat::Routes { .. }) {
            self.take_over()?;
        }
        self.has_taken_over = true;
        Ok(())
    }

    /// Puts a connection inside of TLS, if the router wants that.
    fn secured(&mut self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        let Some(settings) = &self.settings.tls else { return Ok(Box::new(stream)) };
        let config = match &self.tls {
            Some(config) => Arc::clone(config),
            None => {
                let trust = match (&settings.ca, settings.verifies) {
                    (_, false) => Trust::Everybody,
                    (Some(file), true) => Trust::File(file.clone()),
                    (None, true) => Trust::Usual,
                };
                Arc::clone(self.tls.insert(tls::client(&trust)?))
            }
        };
        let address = || self.settings.address.ip().to_string();
        let name = settings.name.clone().unwrap_or_else(address);
        Ok(Box::new(tls::wrap(&config, &name, stream)?))
    }

    fn ask(&mut self, sentence: &[String]) -> Result<Answer, Refusal> {
        match &mut self.connection {
            Some(connection) => connection.ask(sentence),
            None => Err(io::Error::from(io::ErrorKind::NotConnected).into()),
        }
    }

    /// Learns which routes an earlier run left.
    fn take_over(&mut self) -> Result<(), Refusal> {
        let MikrotikWhat::Routes { gateway4, gateway6, .. } = &self.settings.what else { return Ok(()) };
        let families = [(gateway4.is_some(), "/ip/route"), (gateway6.is_some(), "/ipv6/route")];
        for menu in families.into_iter().filter(|(is_used, _)| *is_used).map(|(_, menu)| menu) {
            let print = [
                format!("{menu}/print"),
                "=.proplist=.id,dst-address".to_owned(),
                format!("?comment={}", self.settings.comment),
            ];
            for entry in self.ask(&print)?.entries {
                let destination = entry.get("dst-address").map_or("", String::as_str);
                let address =
                    destination.split('/').next().and_then(|address| address.parse::<IpAddr>().ok());
                let Some(address) = address else { continue };
                let ends = self.settings.timeout.of(0).map(|timeout| Instant::now() + timeout);
                self.routes.entry(address).or_insert(ends);
            }
        }
        Ok(())
    }

    /// Puts one address where it belongs.
    fn keep(&mut self, address: IpAddr, timeout: Option<Duration>) -> Result<(), Refusal> {
        let Some(target) = self.target(address).map(str::to_owned) else { return Ok(()) };
        let comment = self.settings.comment.clone();
        match self.settings.what.clone() {
            // It stays there without a timeout.
            MikrotikWhat::Lists { always, .. } if always.iter().any(|prefix| prefix.contains(address)) => {
                Ok(())
            }
            MikrotikWhat::Lists { .. } => self.list(address, &target, &comment, timeout),
            MikrotikWhat::Routes { table, distance, .. } => {
                if !self.routes.contains_key(&address) {
                    if self.routes.len() >= ROUTES_MAX {
                        return Err(Refusal::Trap("too many routes to remember".to_owned()));
                    }
                    let (menu, bits) =
                        if address.is_ipv4() { ("/ip/route", 32) } else { ("/ipv6/route", 128) };
                    let mut add = vec![
                        format!("{menu}/add"),
                        format!("=dst-address={address}/{bits}"),
                        format!("=gateway={target}"),
                        format!("=distance={distance}"),
                        format!("=comment={comment}"),
                    ];
                    add.extend(table.map(|table| format!("=routing-table={table}")));
                    self.ask(&add)?;
                }
                self.routes.insert(address, timeout.map(|timeout| Instant::now() + timeout));
                Ok(())
            }
        }
    }

    fn list(
        &mut self,
        address: IpAddr,
        list: &str,
        comment: &str,
        timeout: Option<Duration>,
    ) -> Result<(), Refusal> {
        let menu =
            if address.is_ipv4() { "/ip/firewall/address-list" } else { "/ipv6/firewall/address-list" };
        // RouterOS writes a single IPv6 address of a list with its length.
        let shown = if address.is_ipv4() { address.to_string() } else { format!("{address}/128") };
        let timeout = timeout.map(|timeout| format!("=timeout={}", clock(timeout)));
        let mut add = vec![
            format!("{menu}/add"),
            format!("=list={list}"),
            format!("=address={shown}"),
            format!("=comment={comment}"),
        ];
        add.extend(timeout.clone());
        match self.ask(&add) {
            Err(Refusal::Trap(why)) if why.contains("already have") => {}
            other => return other.map(|_| ()),
        }
        // It is there: its time begins anew if it is ours.
        let Some(timeout) = timeout else { return Ok(()) };
        let print = [
            format!("{menu}/print"),
            "=.proplist=.id,comment,dynamic".to_owned(),
            format!("?list={list}"),
            format!("?address={shown}"),
        ];
        for entry in self.ask(&print)?.entries {
            let is_ours = entry.get("comment").is_some_and(|found| found == comment);
            if let (true, Some(id)) = (is_ours, entry.get(".id")) {
                self.ask(&[format!("{menu}/set"), format!("=.id={id}"), timeout.clone()])?;
            }
        }
        Ok(())
    }

    /// Sees to it that what is always there is there, without a timeout, and that nothing else of
    /// ours is there without one; returns whether it was time to look.
    fn look_after_always(&mut self) -> Result<bool, Refusal> {
        let MikrotikWhat::Lists { list4, list6, always } = self.settings.what.clone() else {
            return Ok(false);
        };
        if always.is_empty() || self.always_seen.is_some_and(|seen| seen.elapsed() < ALWAYS_EVERY) {
            return Ok(false);
        }
        self.connect()?;
        let families =
            [(list4, "/ip/firewall/address-list", true), (list6, "/ipv6/firewall/address-list", false)];
        for (list, menu, is_ipv4) in families {
            let Some(list) = list else { continue };
            let mut missing: Vec<String> =
                always.iter().filter(|prefix| prefix.address().is_ipv4() == is_ipv4).map(shown).collect();
            let print = [
                format!("{menu}/print"),
                "=.proplist=.id,address,timeout".to_owned(),
                format!("?list={list}"),
                format!("?comment={}", self.settings.comment),
            ];
            for entry in self.ask(&print)?.entries {
                let (Some(id), Some(address)) = (entry.get(".id"), entry.get("address")) else { continue };
                let place = missing.iter().position(|wanted| wanted == address);
                let stays = match (place, entry.contains_key("timeout")) {
                    (Some(place), false) => {
                        missing.swap_remove(place);
                        true
                    }
                    // Its time would end.
                    (Some(_), true) => false,
                    // An answer's address, which the router takes out itself; without timeouts we
                    // cannot tell.
                    (None, has_timeout) => has_timeout || self.settings.timeout == Timeout::None,
                };
                if !stays {
                    self.ask(&[format!("{menu}/remove"), format!("=.id={id}")])?;
                }
            }
            for address in missing {
                let add = [
                    format!("{menu}/add"),
                    format!("=list={list}"),
                    format!("=address={address}"),
                    format!("=comment={}", self.settings.comment),
                ];
                match self.ask(&add) {
                    // Somebody else keeps it there.
                    Err(Refusal::Trap(why)) if why.contains("already have") => {}
                    other => drop(other?),
                }
            }
        }
        self.always_seen = Some(Instant::now());
        Ok(true)
    }

    /// Removes the routes whose time is over.
    fn expire(&mut self) -> Result<u64, Refusal> {
        let now = Instant::now();
        let ended = self.routes.iter().filter(|(_, ends)| ends.is_some_and(|ends| ends <= now));
        let ended: Vec<IpAddr> = ended.map(|(address, _)| *address).collect();
        let mut removed = 0;
        for address in ended {
            self.connect()?;
            let (menu, bits) = if address.is_ipv4() { ("/ip/route", 32) } else { ("/ipv6/route", 128) };
            let print = [
                format!("{menu}/print"),
                "=.proplist=.id".to_owned(),
                format!("?dst-address={address}/{bits}"),
                format!("?comment={}", self.settings.comment),
            ];
            for entry in self.ask(&print)?.entries {
                let Some(id) = entry.get(".id") else { continue };
                self.ask(&[format!("{menu}/remove"), format!("=.id={id}")])?;
                removed += 1;
            }
            self.routes.remove(&address);
        }
        Ok(removed)
    }

    fn trouble(&mut self, refusal: &Refusal, counts: &Counts) {
        if let Refusal::Io(_) | Refusal::Fatal(_) = refusal {
            self.connection = None;
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        counts.fail(&EffectError::refused(format!("{}: {}", self.settings.address, refusal.text())));
    }
}

impl Effect for Mikrotik {
    fn carry_out(&mut self, batch: &[Arc<Occurrence>], counts: &Counts) {
        let shape = Shape { prefix4: 32, prefix6: 128, timeout: self.settings.timeout };
        let mut known = std::mem::take(&mut self.known);
        let batch = batch.iter().map(AsRef::as_ref);
        let writes = known.writes(&shape, batch, |address| self.wants(address), Instant::now());
        self.known = known;
        for write in writes {
            let is_paused = self.paused_until.is_some_and(|until| until > Instant::now());
            let kept = if is_paused {
                Err(Refusal::Trap("left alone for a moment after trouble".to_owned()))
            } else {
                self.connect().and_then(|()| self.keep(write.element.address, write.timeout))
            };
            match kept {
                Ok(()) => {
                    self.paused_until = None;
                    counts.done.add(1);
                }
                Err(refusal) => {
                    self.known.forget(&write.element);
                    self.trouble(&refusal, counts);
                }
            }
        }
    }

    fn look_after(&mut self, counts: &Counts) {
        if self.paused_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        match self.expire() {
            Ok(0) => {}
            Ok(_) => counts.works(),
            Err(refusal) => return self.trouble(&refusal, counts),
        }
        match self.look_after_always() {
            Ok(false) => {}
            Ok(true) => counts.works(),
            Err(refusal) => self.trouble(&refusal, counts),
        }
    }
}

/// Writes an entry of a list as RouterOS does: a single IPv4 address without its length.
fn shown(prefix: &Prefix) -> String {
    match prefix.address() {
        IpAddr::V4(address) if prefix.bits() == 32 => address.to_string(),
        _ => prefix.to_string(),
    }
}

/// Writes a time as RouterOS does: `1d02:03:04`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days == 0 { clock } else { format!("{days}d{clock}") }
}

/// Why the router did not do it.
#[derive(Debug)]
enum Refusal {
    /// The connection failed.
    Io(io::Error),
    /// It says no.
    Trap(String),
    /// It says no and hangs up.
    Fatal(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Refusal {
    fn text(&self) -> String {
        match self {
            Self::Io(error) => error.to_string(),
            Self::Trap(why) | Self::Fatal(why) => why.clone(),
        }
    }
}

/// What the router answered.
#[derive(Debug, Default)]
struct Answer {
    /// The attributes of each `!re`.
    entries: Vec<HashMap<String, String>>,
    /// Those of `!done`.
    done: HashMap<String, String>,
}

/// Anything that carries octets both ways.
trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// A connection to the API.
struct Connection<S> {
    stream: S,
}

impl<S: Read + Write> Connection<S> {
    /// Sends a sentence and reads the answer to its end.
    fn ask(&mut self, sentence: &[String]) -> Result<Answer, Refusal> {
        let mut octets = Vec::new();
        sentence.iter().for_each(|word| write_word(word.as_bytes(), &mut octets));
        write_word(b"", &mut octets);
        self.stream.write_all(&octets)?;
        self.stream.flush()?;
        let mut answer = Answer::default();
        let mut trap = None;
        for _ in 0..SENTENCES_MAX {
            let words = self.read_sentence()?;
            let Some((kind, words)) = words.split_first() else { continue };
            let attributes: HashMap<String, String> = words
                .iter()
                .filter_map(|word| word.strip_prefix('=')?.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            match kind.as_str() {
                "!re" => answer.entries.push(attributes),
                "!trap" => {
                    let why = attributes.get("message").cloned();
                    trap.get_or_insert(why.unwrap_or_else(|| "the router refuses".to_owned()));
                }
                "!fatal" => return Err(Refusal::Fatal(words.join(" "))),
                "!done" => {
                    answer.done = attributes;
                    return trap.map_or(Ok(answer), |why| Err(Refusal::Trap(why)));
                }
                // `!empty` since RouterOS 7.18: nothing was found.
                _ => {}
            }
        }
        Err(Refusal::Fatal("the answer does not end".to_owned()))
    }

    fn read_sentence(&mut self) -> io::Result<Vec<String>> {
        let mut words = Vec::new();
        loop {
            let word = read_word(&mut self.stream)?;
            if word.is_empty() {
                return Ok(words);
            }
            if words.len() >= WORDS_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the sentence does not end"));
            }
            words.push(String::from_utf8_lossy(&word).into_owned());
        }
    }
}

/// Writes a word and its length: one to five octets, the first says how many.
fn write_word(word: &[u8], out: &mut Vec<u8>) {
    let len = word.len() as u32;
    match len {
        0..0x80 => out.push(len as u8),
        0x80..0x4000 => out.extend_from_slice(&(len as u16 | 0x8000).to_be_bytes()),
        0x4000..0x20_0000 => out.extend_from_slice(&(len | 0xc0_0000).to_be_bytes()[1..]),
        0x20_0000..0x1000_0000 => out.extend_from_slice(&(len | 0xe000_0000).to_be_bytes()),
        _ => {
            out.push(0xf0);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
    out.extend_from_slice(word);
}

fn read_word(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut octets = [0; 5];
    stream.read_exact(&mut octets[..1])?;
    let first = octets[0];
    let (more, mask) = match first {
        0..0x80 => (0, 0x7f),
        0x80..0xc0 => (1, 0x3f),
        0xc0..0xe0 => (2, 0x1f),
        0xe0..0xf0 => (3, 0x0f),
        _ => (4, 0),
    };
    stream.read_exact(&mut octets[1..=more])?;
    let len =
        octets[1..=more].iter().fold(usize::from(first & mask), |len, &octet| len << 8 | usize::from(octet));
    if len > WORD_OCTETS_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a word of the router is too long"));
    }
    let mut word = vec![0; len];
    stream.read_exact(&mut word)?;
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_come_back() {
        for (len, octets) in [(0, 1), (0x7f, 1), (0x80, 2), (0x3fff, 2), (0x4000, 3), (0xffff, 3)] {
            let word = vec![b'x'; len];
            let mut written = Vec::new();
            write_word(&word, &mut written);
            assert_eq!(written.len(), len + octets, "{len}");
            assert_eq!(read_word(&mut written.as_slice()).expect("a word"), word);
        }
        // Lengths as MikroTik's manual gives them.
        let mut written = Vec::new();
        write_word(&[0; 0x20_0000], &mut written);
        assert_eq!(&written[..4], [0xe0, 0x20, 0, 0]);
        assert!(read_word(&mut written.as_slice()).is_err(), "too long to believe");
        assert!(read_word(&mut [0xf0, 0xff].as_slice()).is_err(), "cut off");
    }

    #[test]
    fn times_are_written_as_the_router_does() {
        let clocks = [0, 59, 3_661, 90_061].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(clocks, ["00:00:01", "00:00:59", "01:01:01", "1d01:01:01"]);
    }

    /// Plays a router: what it sends, and what it received.
    struct Played {
        says: io::Cursor<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for Played {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.says.read(buffer)
        }
    }

    impl Write for Played {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.heard.write(octets)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn ask(sentences: &[&[&str]]) -> Result<Answer, Refusal> {
        let mut says = Vec::new();
        for sentence in sentences {
            sentence.iter().for_each(|word| write_word(word.as_bytes(), &mut says));
            write_word(b"", &mut says);
        }
        let mut connection = Connection { stream: Played { says: io::Cursor::new(says), heard: Vec::new() } };
        let answer = connection.ask(&["/a".to_owned(), "=b=c".to_owned()]);
        assert_eq!(connection.stream.heard, b"\x02/a\x04=b=c\0");
        answer
    }

    #[test]
    fn an_answer_is_heard_to_its_end() {
        let answer = ask(&[&["!re", "=.id=*1", "=comment=a=b"], &["!done", "=ret=*2"]]).expect("an answer");
        assert_eq!(answer.entries[0].get("comment").map(String::as_str), Some("a=b"));
        assert_eq!(answer.done.get("ret").map(String::as_str), Some("*2"));
        let refusal = ask(&[&["!trap", "=message=no"], &["!done"]]).expect_err("refused");
        assert!(matches!(refusal, Refusal::Trap(why) if why == "no"));
        assert!(
            matches!(ask(&[&["!fatal", "not logged in"]]), Err(Refusal::Fatal(why)) if why == "not logged in")
        );
        assert!(matches!(ask(&[&["!re"]]), Err(Refusal::Io(_))), "it hung up");
    }
}
