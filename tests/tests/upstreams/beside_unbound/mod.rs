//! The program in Unbound's place beside Unbound itself: the same file and the same questions, in a
//! simulated internet, get the same answers; and so does the file that was imported.
//!
//! A small share of the files is compared in each run. `GANNET_UNBOUND_FILES=100` compares so many
//! in place of it, from `GANNET_UNBOUND_SEED` on.

mod accepted;
mod files;
mod questions;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use gannet_bench::world::{Service, Way};
use tempfile::TempDir;
use testkit::world::{Options, World};
use testkit::{Heard, Other, UdpClient, free_address, is_installed, program};
use wire::{EdeCode, Flags, Header, Rcode, Section, rdata};

use self::accepted::{ACCEPTED, is_accepted_silence};
use self::files::File;
use self::questions::Asked;

/// Files of an ordinary run.
const FILES: u64 = 4;
/// The seed of the first one.
const SEED: u64 = 1;
/// How long an answer may take that the other server has given.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long is waited for the first of the servers; where all are silent, that is expected.
const SILENCE: Duration = Duration::from_millis(400);
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
            if record.rtype == wire::Rtype::OPT {
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
    began: Instant,
}

/// Starts our program with a control socket of its own.
fn ours(arguments: &[&str], files: &[(&str, &str)], address: SocketAddr) -> Other {
    let binary = program::gannet();
    let binary = binary.to_str().expect("a path in UTF-8");
    let before = ["NO_COLOR=1", "GANNET_SOCKET=@DIRECTORY@/control.sock", binary];
    Other::start("env", &[&before, arguments].concat(), files, address)
}

impl Beside {
    fn start(file: &File) -> Self {
        let files: Vec<(&str, &str)> =
            file.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let arguments = ["-d", "-c", "@DIRECTORY@/unbound.conf"];
        let theirs = Other::start("unbound", &arguments, &files, free_address());
        let in_place = ours(&[&["unbound"][..], &arguments].concat(), &files, free_address());
        let directory = TempDir::new().expect("a temporary directory");
        let address = free_address();
        for (name, text) in &files {
            let text = text.replace("@DIRECTORY@", &directory.path().display().to_string());
            let text = text.replace("@PORT@", &address.port().to_string());
            std::fs::write(directory.path().join(name), text).expect("a writable directory");
        }
        let output = Command::new(program::gannet())
            .args(["import", "unbound", "unbound.conf", "--to", "gannet.yaml"])
            .current_dir(directory.path())
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let yaml = directory.path().join("gannet.yaml");
        let imported = ours(&["run", "-c", yaml.to_str().expect("UTF-8")], &[], address);
        Self { servers: [theirs, in_place, imported], _imported: directory, began: Instant::now() }
    }

    /// Asks all three at once; a server may be silent.
    fn ask(&self, asked: &Asked) -> [Option<Seen>; 3] {
        let own = IpAddr::V4(Ipv4Addr::new(127, 0, 0, asked.client));
        let clients = self.servers.each_ref().map(|server| UdpClient::connect_from(own, server.address()));
        clients.iter().for_each(|client| client.send(&asked.ask.bytes()));
        let mut patience = SILENCE;
        clients.map(|client| {
            client.set_patience(patience);
            let heard = client.try_receive().ok()?;
            patience = PATIENCE;
            Some(Seen::of(&heard))
        })
    }
}

/// Returns what is different, once what is accepted is left out.
fn difference(file: &File, asked: &Asked, [theirs, ours]: [&Option<Seen>; 2], slack: u32) -> Option<String> {
    let (theirs, ours) = match (theirs, ours) {
        (None, None) => return None,
        (Some(theirs), Some(ours)) => (theirs, ours),
        (theirs, ours) if is_accepted_silence(file, asked, theirs.as_ref(), ours.as_ref()) => return None,
        (theirs, ours) => return Some(format!("{asked:?}: theirs {theirs:?}, ours {ours:?}")),
    };
    let (mut left, mut right) = (theirs.clone(), ours.clone());
    let is_accepted = ACCEPTED.iter().any(|accepted| (accepted.mend)(file, asked, &mut left, &mut right));
    (!is_accepted && !left.is_like(&right, slack))
        .then(|| format!("{asked:?}:\n  theirs {theirs:?}\n  ours   {ours:?}"))
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

#[test]
fn answers_are_those_of_unbound() {
    if !is_installed("unbound") {
        return;
    }
    let (service, port) = internet();
    let (first, count) =
        (number("GANNET_UNBOUND_SEED").unwrap_or(SEED), number("GANNET_UNBOUND_FILES").unwrap_or(FILES));
    let (mut questions, mut found, mut files) = (0, Vec::new(), String::new());
    for seed in first..first + count {
        let file = File::new(seed, service.world(), port);
        let mut beside = Beside::start(&file);
        let before = found.len();
        for asked in questions::of(seed, &file, service.world()) {
            let [theirs, in_place, imported] = beside.ask(&asked);
            if theirs.is_none() && beside.servers[0].has_ended() {
                // Unbound 1.17 ends at some rules on name servers.
                break;
            }
            questions += 1;
            let slack = TTL_SLACK + beside.began.elapsed().as_secs() as u32;
            let difference = difference(&file, &asked, [&theirs, &in_place], slack);
            found.extend(difference.map(|text| format!("{seed}: {text}")));
            let is_same = match (&in_place, &imported) {
                (Some(one), Some(other)) => one.is_like(other, slack),
                (one, other) => one.is_none() && other.is_none(),
            };
            if !is_same {
                found.push(format!("{seed}: {asked:?}:\n  in place {in_place:?}\n  imported {imported:?}"));
            }
        }
        if found.len() > before {
            file.files.iter().for_each(|(name, text)| files.push_str(&format!("\n{seed}: {name}:\n{text}")));
        }
    }
    let (count, found) = (found.len(), found.join("\n"));
    assert!(found.is_empty(), "{count} of {questions} answers differ:\n{found}\n{files}");
}

#[test]
fn what_has_expired_is_given_as_unbound_gives_it() {
    if !is_installed("unbound") {
        return;
    }
    let (service, port) = internet();
    for seed in 1..=2 {
        let file = File::stale(seed, service.world(), port);
        let beside = Beside::start(&file);
        let all = questions::different(seed, service.world());
        for asked in &all {
            assert!(beside.ask(asked).iter().all(Option::is_some), "{asked:?}");
        }
        // Once the last one has expired all have. To look at it has it found again.
        let (last, others) = all.split_last().expect("questions");
        let mut is_stale = [false; 3];
        testkit::eventually("the answers expire", || {
            for (is_stale, seen) in is_stale.iter_mut().zip(beside.ask(last)) {
                *is_stale |= seen.is_some_and(|seen| seen.is_stale());
            }
            is_stale == [true; 3]
        });
        for asked in others {
            let [theirs, in_place, imported] = beside.ask(asked);
            assert!(in_place.as_ref().is_some_and(Seen::is_stale), "{asked:?}: {in_place:?}");
            assert_eq!(difference(&file, asked, [&theirs, &in_place], 0), None, "{seed}");
            assert_eq!(in_place, imported, "{seed}: {asked:?}");
        }
    }
}
