//! The program in Unbound's place beside Unbound itself: the same file and the same questions, in a
//! simulated internet, get the same answers; and so does the file that was imported.
//!
//! A small share of the files is compared in each run. `GANNET_UNBOUND_FILES=100` compares so many
//! in place of it, from `GANNET_UNBOUND_SEED` on, and `GANNET_UNBOUND` is the Unbound to compare
//! with if it is not the one that is installed.

mod accepted;
mod files;
mod questions;
mod theirs;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use gannet_bench::world::{Service, Way};
use tempfile::TempDir;
use testkit::world::{Options, World};
use testkit::{
    Answer, Ask, Clock, Heard, Other, Script, Server, Stub, UdpClient, eventually, free_address, program,
};
use wire::{EdeCode, Flags, Header, OptionCode, Rcode, Rtype, Section, rdata};

use self::accepted::{ACCEPTED, is_accepted_silence};
use self::files::{Around, File};
use self::questions::{Asked, Cookie};
use self::theirs::Theirs;

/// Files of an ordinary run.
const FILES: u64 = 4;
/// Files of an ordinary run whose answers expire.
const STALE_FILES: u64 = 2;
/// How often the clock is moved for each of these.
const STEPS: usize = 4;
/// All of a million datagrams.
const EVERYTHING: u32 = 1_000_000;
/// The seed of the first one.
const SEED: u64 = 1;
/// How long an answer may take that the other server has given.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long is waited for the first of the servers; where all are silent, that is expected.
const SILENCE: Duration = Duration::from_millis(400);
/// The same where theirs ask a server that refuses.
const LONG_SILENCE: Duration = Duration::from_secs(2);
/// What clients send that have no cookie of the server yet.
const CLIENT_COOKIE: &[u8] = b"a client";
/// Seconds by which the TTLs of one record may differ, besides those since the servers began: they
/// found it at different times.
const TTL_SLACK: u32 = 5;

/// Draws numbers from a seed (SplitMix64).
pub(super) struct Dice(u64);

impl Dice {
    /// Draws from seeds beside each other have nothing in common.
    fn new(seed: u64) -> Self {
        let mut seeds = Self(seed);
        Self(seeds.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns whether something holds that does so many times in a hundred.
    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// Returns some of these, each once.
    fn some<T: Clone>(&mut self, items: &[T], count: usize) -> Vec<T> {
        let mut rest = items.to_vec();
        (0..count.min(rest.len())).map(|_| rest.swap_remove(self.below(rest.len()))).collect()
    }
}

/// What is compared of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    rcode: Rcode,
    flags: Flags,
    has_question: bool,
    /// Answer, authority and additional: records in order, each with its TTL.
    sections: [Vec<(String, u32)>; 3],
    has_edns: bool,
    dnssec_ok: bool,
    errors: Vec<u16>,
    /// Octets of the cookie.
    cookie: Option<usize>,
}

impl Seen {
    fn of(heard: &Heard) -> Self {
        // Their refusals may have octets of another reply behind a header that counts none.
        let bare = heard.bytes().get(..Header::LEN).filter(|head| head[4..] == [0; 8]);
        let head = bare.map(|head| Heard::new(head.to_vec()));
        let heard = head.as_ref().unwrap_or(heard);
        let message = heard.message();
        let mut sections = [const { Vec::new() }; 3];
        for record in message.records() {
            let at = match record.section {
                Section::Answer => 0,
                Section::Authority => 1,
                Section::Additional => 2,
            };
            if record.rtype == Rtype::OPT {
                continue;
            }
            let mut data = Vec::new();
            rdata::write_canonical(record.rtype, heard.bytes(), record.rdata_at..record.end(), &mut data)
                .expect("well formed");
            let owner = record.owner.expand().expect("a name").to_string().to_ascii_lowercase();
            let data = data.iter().fold(String::new(), |mut text, octet| {
                let _ = write!(text, "{octet:02x}");
                text
            });
            sections[at].push((format!("{owner} {} {data}", record.rtype), record.ttl_raw));
        }
        sections.iter_mut().for_each(|section| section.sort());
        Self {
            rcode: message.rcode(),
            flags: message.header.flags,
            has_question: message.question.is_some(),
            sections,
            has_edns: message.edns.is_some(),
            dnssec_ok: message.edns.is_some_and(|edns| edns.wants_dnssec()),
            errors: heard.errors().into_iter().map(|(code, _)| code).collect(),
            cookie: heard.option(OptionCode::COOKIE).map(|data| data.len()),
        }
    }

    /// Returns whether it says that it has expired.
    fn is_stale(&self) -> bool {
        [EdeCode::STALE_ANSWER, EdeCode::STALE_NXDOMAIN_ANSWER]
            .iter()
            .any(|code| self.errors.contains(&code.0))
    }

    /// Returns whether another server has said the same, with TTLs that are so many seconds apart
    /// at most.
    fn is_like(&self, other: &Self, slack: u32) -> bool {
        let without_ttls = |seen: &Self| {
            let mut seen = seen.clone();
            seen.sections.iter_mut().flatten().for_each(|(_, ttl)| *ttl = 0);
            seen
        };
        let ttls = |seen: &Self| seen.sections.iter().flatten().map(|(_, ttl)| *ttl).collect::<Vec<_>>();
        let are_near = ttls(self).into_iter().zip(ttls(other)).all(|(a, b)| a.abs_diff(b) <= slack);
        without_ttls(self) == without_ttls(other) && are_near
    }
}

/// Three servers with one file: theirs, ours in its place, and ours with what was imported.
struct Beside {
    servers: [Other; 3],
    /// Where the imported file says that files are.
    _imported: TempDir,
    /// Has what is transferred.
    _primary: Option<Server>,
    began: Instant,
    /// How long is waited for the first of them.
    silence: Duration,
}

/// Starts a server of the zones that a file has transferred.
fn primary(file: &File) -> Option<Server> {
    if file.transferred.is_empty() {
        return None;
    }
    let directory = TempDir::new().expect("a temporary directory");
    let zones = file.transferred.iter().map(|it| {
        let at = directory.path().join(&it.zone);
        std::fs::write(&at, &it.text).expect("a writable directory");
        format!("{{name: {0}, file: {0}, transfer: any}}", it.zone)
    });
    let zones = zones.collect::<Vec<_>>().join(", ");
    let settings = format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\nzones: [{zones}]\n\
         policy: {{main: [{{do: reject(refused)}}]}}\n"
    );
    Some(Server::start_in(directory, &settings))
}

impl Beside {
    /// Starts the servers, under these clocks if there are any, and waits until they have what they
    /// transfer.
    fn start(file: &File, theirs: &Theirs, clock: Option<&Clock>) -> Self {
        let primary = primary(file);
        let at = primary.as_ref().map_or_else(String::new, |it| format!("127.0.0.1@{}", it.address().port()));
        let texts: Vec<(&str, String)> =
            file.files.iter().map(|(name, text)| (name.as_str(), text.replace("@PRIMARY@", &at))).collect();
        let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let mut before = vec!["NO_COLOR=1".to_owned(), "GANNET_SOCKET=@DIRECTORY@/control.sock".to_owned()];
        before.extend(
            clock.iter().flat_map(|clock| clock.environment()).map(|(name, value)| format!("{name}={value}")),
        );
        let start = |program: &str, arguments: &[&str], files: &[(&str, &str)], address: SocketAddr| {
            let mut all: Vec<&str> = before.iter().map(String::as_str).collect();
            all.push(program);
            Other::start("env", &[&all, arguments].concat(), files, address)
        };
        let gannet = program::gannet();
        let gannet = gannet.to_str().expect("a path in UTF-8");
        let arguments = ["-d", "-c", "@DIRECTORY@/unbound.conf"];
        let theirs = start(&theirs.program, &arguments, &files, free_address());
        let in_place = start(gannet, &[&["unbound"][..], &arguments].concat(), &files, free_address());
        let directory = TempDir::new().expect("a temporary directory");
        let address = free_address();
        for (name, text) in &files {
            let text = text.replace("@DIRECTORY@", &directory.path().display().to_string());
            let text = text.replace("@PORT@", &address.port().to_string());
            std::fs::write(directory.path().join(name), text).expect("a writable directory");
        }
        let output = Command::new(gannet)
            .args(["import", "unbound", "unbound.conf", "--to", "gannet.yaml"])
            .current_dir(directory.path())
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let yaml = directory.path().join("gannet.yaml");
        let imported = start(gannet, &["run", "-c", yaml.to_str().expect("UTF-8")], &[], address);
        let beside = Self {
            servers: [theirs, in_place, imported],
            _imported: directory,
            _primary: primary,
            began: Instant::now(),
            // Theirs ask a server that refuses several times.
            silence: if file.has_detour() { LONG_SILENCE } else { SILENCE },
        };
        for it in &file.transferred {
            // Where the parent proves that there is no such zone, it is there and bogus.
            let ask = Ask::new(&it.marker, Rtype::A).flags(Flags::RD.with(Flags::CD));
            let asked = Asked::about(ask, 99, &it.marker, Rtype::A);
            eventually(&it.marker, || {
                let has_address =
                    |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| !seen.sections[0].is_empty());
                beside.ask(&asked).iter().all(has_address)
            });
        }
        beside
    }

    /// Asks all three at once, and once more if some are silent and others are not: on a busy
    /// machine a query may have waited for longer than it is answered. A server may be silent.
    fn ask(&self, asked: &Asked) -> [Option<Seen>; 3] {
        let first = self.ask_once(asked);
        if first.iter().all(Option::is_some) || first.iter().all(Option::is_none) {
            return first;
        }
        let mut again = self.ask_once(asked).into_iter();
        first.map(|seen| seen.or(again.next().flatten()))
    }

    fn ask_once(&self, asked: &Asked) -> [Option<Seen>; 3] {
        let own = IpAddr::V4(Ipv4Addr::new(127, 0, 0, asked.client));
        let clients = self.servers.each_ref().map(|server| UdpClient::connect_from(own, server.address()));
        let ask = match asked.cookie {
            None => asked.ask.clone(),
            Some(Cookie::Client) => asked.ask.clone().option(OptionCode::COOKIE, CLIENT_COOKIE),
            // All have one secret.
            Some(Cookie::Server) => {
                let ask = Ask::new("localhost", Rtype::A).option(OptionCode::COOKIE, CLIENT_COOKIE);
                // Whoever is denied hears nothing.
                clients[0].set_patience(self.silence);
                clients[0].send(&ask.bytes());
                let heard = clients[0].try_receive().ok();
                let given = heard.and_then(|heard| heard.option(OptionCode::COOKIE));
                asked.ask.clone().option(OptionCode::COOKIE, given.as_deref().unwrap_or(CLIENT_COOKIE))
            }
        };
        clients.iter().for_each(|client| client.send(&ask.bytes()));
        let mut patience = self.silence;
        clients.map(|client| {
            client.set_patience(patience);
            let heard = client.try_receive().ok()?;
            patience = PATIENCE;
            Some(Seen::of(&heard))
        })
    }
}

/// How often an entry of the list was needed, in its order; the last is that of silence.
struct Listed([usize; ACCEPTED.len() + 1]);

impl Listed {
    /// Says which entries were needed, and how often.
    #[expect(clippy::print_stdout, reason = "the record of a run")]
    fn print(&self) {
        let reasons = ACCEPTED.iter().map(|accepted| accepted.why).chain(["one of them is silent"]);
        let mut lines: Vec<(&usize, &str)> =
            self.0.iter().zip(reasons).filter(|(times, _)| **times > 0).collect();
        lines.sort_by(|a, b| b.cmp(a));
        lines.iter().for_each(|(times, why)| println!("{times:6} {why}"));
    }

    /// Returns what is different, once what is on the list is left out.
    fn difference(
        &mut self,
        file: &File,
        asked: &Asked,
        [theirs, ours]: [&Option<Seen>; 2],
        slack: u32,
    ) -> Option<String> {
        let (theirs, ours) = match (theirs, ours) {
            (None, None) => return None,
            (Some(theirs), Some(ours)) => (theirs, ours),
            (theirs, ours) if is_accepted_silence(file, asked, theirs.as_ref(), ours.as_ref()) => {
                self.0[ACCEPTED.len()] += 1;
                return None;
            }
            (theirs, ours) => return Some(format!("{asked:?}: theirs {theirs:?}, ours {ours:?}")),
        };
        if theirs.is_like(ours, slack) {
            return None;
        }
        let is_fine_by = |is_used: &dyn Fn(usize) -> bool| {
            let (mut left, mut right) = (theirs.clone(), ours.clone());
            let mut entries = ACCEPTED.iter().enumerate().filter(|(at, _)| is_used(*at));
            entries.any(|(_, entry)| (entry.mend)(file, asked, &mut left, &mut right))
                || left.is_like(&right, slack)
        };
        if !is_fine_by(&|_| true) {
            return Some(format!("{asked:?}:\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
        let all = 0..ACCEPTED.len();
        let mut needed: Vec<usize> =
            all.clone().filter(|without| !is_fine_by(&|at| at != *without)).collect();
        if needed.is_empty() {
            // Either of two is enough.
            needed.extend(all.clone().find(|last| is_fine_by(&|at| at <= *last)));
        }
        needed.iter().for_each(|at| self.0[*at] += 1);
        None
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the simulated internet, and the port of its servers.
fn internet() -> (Arc<Service>, u16) {
    let unix_seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let options = Options {
        network: 127,
        tlds: files::TLDS,
        zones: files::ZONES,
        signed: 500,
        has_ipv6: false,
        unix_seconds,
        ..Options::default()
    };
    Service::start(World::new(options), Way::default()).expect("loopback has ports")
}

/// Returns what is different between ours in its place and ours with what was imported.
fn difference_of_import(
    asked: &Asked,
    in_place: &Option<Seen>,
    imported: &Option<Seen>,
    slack: u32,
) -> Option<String> {
    let is_same = match (in_place, imported) {
        // What the one has asked for behind its client's back may have come by now, and that of the
        // other not yet.
        (Some(one), Some(other)) if one.is_stale() != other.is_stale() => {
            let but_for_age = |seen: &Seen| Seen { errors: Vec::new(), ..seen.clone() };
            but_for_age(one).is_like(&but_for_age(other), u32::MAX)
        }
        (Some(one), Some(other)) => one.is_like(other, slack),
        (one, other) => one.is_none() && other.is_none(),
    };
    (!is_same).then(|| format!("{asked:?}:\n  in place {in_place:?}\n  imported {imported:?}"))
}

/// Returns all names and values of a file.
fn printed(seed: u64, file: &File) -> String {
    file.texts().map(|(name, text)| format!("\n{seed}: {name}:\n{text}")).collect()
}

#[test]
fn answers_are_those_of_unbound() {
    let Some(theirs) = Theirs::find() else { return };
    let (service, port) = internet();
    let stub = Stub::start(Script::always(Answer::rcode(Rcode::REFUSED)));
    let refusing = stub.address().port();
    let around = Around { world: service.world(), port, refusing, theirs: &theirs };
    let (first, count) =
        (number("GANNET_UNBOUND_SEED").unwrap_or(SEED), number("GANNET_UNBOUND_FILES").unwrap_or(FILES));
    let (mut questions, mut found, mut files) = (0, Vec::new(), String::new());
    let mut listed = Listed([0; ACCEPTED.len() + 1]);
    for seed in first..first + count {
        let file = File::new(seed, &around);
        let mut beside = Beside::start(&file, &theirs, None);
        let before = found.len();
        for asked in questions::of(seed, &file, service.world()) {
            let [theirs, in_place, imported] = beside.ask(&asked);
            if theirs.is_none() && beside.servers[0].has_ended() {
                // Unbound 1.17 ends at some rules on name servers.
                break;
            }
            questions += 1;
            let slack = TTL_SLACK + beside.began.elapsed().as_secs() as u32;
            let differences = [
                listed.difference(&file, &asked, [&theirs, &in_place], slack),
                difference_of_import(&asked, &in_place, &imported, slack),
            ];
            found.extend(differences.into_iter().flatten().map(|text| format!("{seed}: {text}")));
        }
        if found.len() > before {
            files.push_str(&printed(seed, &file));
        }
    }
    listed.print();
    let (count, found) = (found.len(), found.join("\n"));
    assert!(found.is_empty(), "{count} of {questions} answers differ:\n{found}\n{files}");
}

#[test]
fn what_has_expired_is_given_as_unbound_gives_it() {
    let Some(theirs) = Theirs::find() else { return };
    let (service, port) = internet();
    let stub = Stub::start(Script::always(Answer::rcode(Rcode::REFUSED)));
    let refusing = stub.address().port();
    let around = Around { world: service.world(), port, refusing, theirs: &theirs };
    let first = number("GANNET_UNBOUND_SEED").unwrap_or(SEED);
    let count = number("GANNET_UNBOUND_FILES").map_or(STALE_FILES, |files| files.div_ceil(20));
    let (mut found, mut stale) = (Vec::new(), 0);
    let mut listed = Listed([0; ACCEPTED.len() + 1]);
    for seed in first..first + count {
        let clock = Clock::default();
        service.lose(0);
        let file = File::stale(seed, &around);
        let beside = Beside::start(&file, &theirs, Some(&clock));
        let all = questions::different(seed, service.world());
        for asked in &all {
            assert!(beside.ask(asked).iter().all(Option::is_some), "{asked:?}");
        }
        let mut dice = Dice::new(seed ^ 0x7171_7171);
        let (mut ahead, mut since_fetched) = (Duration::ZERO, 0);
        for _ in 0..STEPS {
            let step = *dice.pick(&[40, 700, 5000, 90_000]);
            ahead += Duration::from_secs(step);
            since_fetched += step;
            // What may not be given any more is looked for, which takes long if nobody answers.
            let is_outage = since_fetched < file.stale_seconds_max() && dice.percent(60);
            service.lose(if is_outage { EVERYTHING } else { 0 });
            clock.be_ahead(ahead);
            for asked in &all {
                let [theirs, in_place, imported] = beside.ask(asked);
                let is_stale = in_place.as_ref().is_some_and(Seen::is_stale);
                stale += usize::from(is_stale);
                let slack = if is_stale { 0 } else { TTL_SLACK + beside.began.elapsed().as_secs() as u32 };
                let differences = [
                    listed.difference(&file, asked, [&theirs, &in_place], slack),
                    difference_of_import(asked, &in_place, &imported, slack),
                ];
                let when = format!("{seed}: {} s later, outage {is_outage}", ahead.as_secs());
                found.extend(differences.into_iter().flatten().map(|text| format!("{when}: {text}")));
            }
            if !is_outage {
                // Until what was fetched behind the clients' backs is there.
                for asked in &all {
                    eventually("a fresh answer", || {
                        let is_fresh = |seen: &Option<Seen>| seen.as_ref().is_some_and(|it| !it.is_stale());
                        beside.ask(asked).iter().all(is_fresh)
                    });
                }
                since_fetched = 0;
            }
        }
        if !found.is_empty() {
            found.push(printed(seed, &file));
            break;
        }
    }
    listed.print();
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(stale > 0, "nothing was given after its end");
}
