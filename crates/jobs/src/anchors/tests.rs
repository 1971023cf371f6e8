//! The keys of a zone roll over while it is followed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use dnssec::anchors::{HoldDown, KeyState, TrustAnchors};
use dnssec::{
    Algorithm, DigestType, Dnskey, Ds, ENTRY_POINT, KeySize, REVOKED, Rrset, SecretKey, SignedBy, ZONE_KEY,
};
use engine::ResolverId;
use plan::anchors::{AnchorPlan, AnchorSource};
use plan::resolvers::{HeapName, ResolverPlan, Settings, TrustAnchor};
use tempfile::TempDir;
use wire::{Name, NameBuf, Rtype};

use super::keeper::Keeper;
use super::{Anchors, Finding, KeySet, NegativeError, Resolvers, Trusted};

const DAY: u64 = 86_400;
const START: u64 = 1_795_000_000;
const KSK: u16 = ZONE_KEY | ENTRY_POINT;

/// Keys of the root, by number.
struct Keys(Vec<SecretKey>);

impl Keys {
    fn new() -> Self {
        let key = |_| SecretKey::generate(Algorithm(15), KeySize::Bits2048).expect("a key");
        Self((0..3).map(key).collect())
    }

    /// Returns the root's DNSKEY RRset: keys with their flags, each of which signs.
    fn set(&self, keys: &[(usize, u16)], now: u64) -> KeySet {
        let data: Vec<Vec<u8>> = keys.iter().map(|&(number, flags)| self.0[number].dnskey(flags)).collect();
        let set = Rrset::of(Name::ROOT, Rtype::DNSKEY, data.iter().map(Vec::as_slice)).expect("keys");
        let sign = |(&(number, _), rdata): (&(usize, u16), &Vec<u8>)| {
            let by = SignedBy {
                key: &self.0[number],
                tag: Dnskey::parse(rdata).expect("a key").tag(),
                zone: Name::ROOT,
                ttl: 2 * DAY as u32,
                inception: (now - DAY) as u32,
                expiration: (now + 10 * DAY) as u32,
            };
            set.sign(&by).expect("a signature").into_boxed_slice()
        };
        KeySet {
            signatures: keys.iter().zip(&data).map(sign).collect(),
            keys: data.iter().map(|key| key.as_slice().into()).collect(),
        }
    }

    /// Returns the anchor that a server begins with: a DS of the first key.
    fn anchor(&self) -> TrustAnchor {
        let rdata = self.0[0].dnskey(KSK);
        let key = Dnskey::parse(&rdata).expect("a key");
        let ds = Ds::write(Name::ROOT, key, DigestType::SHA256).expect("a digest");
        TrustAnchor { zone: HeapName::new(Name::ROOT), ds: vec![ds.into()], keys: Vec::new() }
    }

    fn number_of(&self, rdata: &[u8]) -> usize {
        let key = |rdata: &[u8]| Dnskey::parse(rdata).expect("a key").key().to_vec();
        let mut all = self.0.iter();
        all.position(|own| key(&own.dnskey(KSK)) == key(rdata)).expect("one of them")
    }

    /// Returns which keys a resolver may trust, and how many DS records.
    fn trusted(&self, trusted: &[TrustAnchor]) -> (Vec<usize>, usize) {
        let [anchor] = trusted else { return (Vec::new(), 0) };
        let mut keys: Vec<usize> = anchor.keys.iter().map(|key| self.number_of(key)).collect();
        // Those that come together come in canonical order, which is by chance here.
        keys.sort_unstable();
        (keys, anchor.ds.len())
    }
}

const OLD: (usize, u16) = (0, KSK);
const NEW: (usize, u16) = (1, KSK);
const OLD_REVOKED: (usize, u16) = (0, KSK | REVOKED);

/// Returns the plan of a resolver whose file is as it is.
fn plan(keys: &Keys, file: &Path) -> AnchorPlan {
    let mut settings = Settings::default();
    settings.trust.anchors = vec![keys.anchor()];
    let resolver = ResolverPlan {
        id: ResolverId(0),
        name: "default".to_owned(),
        octets_max: 1 << 20,
        settings,
        second_level: None,
    };
    let hold_down = HoldDown { keep_missing: Some(100 * DAY), ..HoldDown::default() };
    let text = fs::read_to_string(file).ok();
    AnchorPlan {
        resolver,
        source: AnchorSource::Followed { file: file.to_owned(), text, completes: false, hold_down },
        negative: Vec::new(),
        negative_file: file.with_extension("negative"),
        signals: true,
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("anchors").join("default.keys");
    (folder, file)
}

fn hear(keeper: &mut Keeper, set: KeySet, now: u64) -> bool {
    assert!(keeper.due(now).is_some(), "the keys are asked for by {now}");
    keeper.heard(&NameBuf::root(), Ok(set), now).changes_trust
}

/// Returns where the keys stand, the oldest first.
fn states(keeper: &Keeper) -> Vec<Option<KeyState>> {
    let [root] = &keeper.states()[..] else { panic!("one zone") };
    root.keys.iter().rev().map(|key| key.state).collect()
}

#[test]
fn the_root_rolls_its_key_and_the_server_stops_now_and_then() {
    let (keys, (_folder, file)) = (Keys::new(), folder());
    // Each step is taken by a server that was just started.
    let started = || Keeper::new(plan(&keys, &file), None);
    let mut keeper = started();
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![], 1), "the DS that it came with");
    assert!(hear(&mut keeper, keys.set(&[OLD], START), START));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![0], 0));
    let text = fs::read_to_string(&file).expect("a state file");
    assert!(text.starts_with("; autotrust trust anchor file\n;;id: . 1\n"), "{text}");

    let mut keeper = started();
    assert!(!hear(&mut keeper, keys.set(&[OLD, NEW], START + DAY), START + DAY));
    assert_eq!(states(&keeper), [Some(KeyState::Valid), Some(KeyState::AddPend)]);
    let mut keeper = started();
    assert!(!hear(&mut keeper, keys.set(&[OLD, NEW], START + 30 * DAY), START + 30 * DAY));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![0], 0), "the hold-down has not ended");
    let mut keeper = started();
    assert!(hear(&mut keeper, keys.set(&[OLD, NEW], START + 31 * DAY), START + 31 * DAY));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![0, 1], 0));

    let now = START + 40 * DAY;
    let mut keeper = started();
    assert!(hear(&mut keeper, keys.set(&[OLD_REVOKED, NEW], now), now));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![1], 0));
    assert_eq!(states(&keeper), [Some(KeyState::Revoked), Some(KeyState::Valid)]);
    let now = START + 71 * DAY;
    let mut keeper = started();
    hear(&mut keeper, keys.set(&[NEW], now), now);
    let mut keeper = started();
    assert_eq!(states(&keeper), [Some(KeyState::Valid)], "removed");

    // The key goes missing, which RFC 5011 knows no end of, but the settings do.
    let other = (2, KSK);
    let mut now = now + 2 * DAY;
    hear(&mut keeper, keys.set(&[NEW, other], now), now);
    now += 31 * DAY;
    let mut keeper = started();
    assert!(hear(&mut keeper, keys.set(&[NEW, other], now), now));
    now += DAY;
    let mut keeper = started();
    assert!(!hear(&mut keeper, keys.set(&[other], now), now));
    assert_eq!(states(&keeper), [Some(KeyState::Missing), Some(KeyState::Valid)]);
    now += 101 * DAY;
    let mut keeper = started();
    assert!(hear(&mut keeper, keys.set(&[other], now), now));
    assert_eq!(keys.trusted(&started().trusted()), (vec![2], 0));
}

#[test]
fn a_zone_whose_keys_are_all_revoked_is_not_trusted_after_a_restart_either() {
    let (keys, (_folder, file)) = (Keys::new(), folder());
    let mut keeper = Keeper::new(plan(&keys, &file), None);
    hear(&mut keeper, keys.set(&[OLD], START), START);
    let now = START + DAY;
    assert!(hear(&mut keeper, keys.set(&[OLD_REVOKED], now), now));
    assert_eq!(keeper.trusted(), []);
    let again = Keeper::new(plan(&keys, &file), None);
    assert_eq!(again.trusted(), []);
    let [root] = &again.states()[..] else { panic!("one zone") };
    assert!(root.keys.iter().all(|key| !key.is_trusted));
}

#[test]
fn power_lost_while_the_file_is_written_leaves_the_one_before() {
    let (keys, (_folder, file)) = (Keys::new(), folder());
    let mut keeper = Keeper::new(plan(&keys, &file), None);
    hear(&mut keeper, keys.set(&[OLD], START), START);
    let before = fs::read_to_string(&file).expect("a state file");
    let mut other = Keeper::new(plan(&keys, &file), None);
    hear(&mut other, keys.set(&[OLD, NEW], START + DAY), START + DAY);
    let after = fs::read_to_string(&file).expect("a state file");
    assert_ne!(before, after);
    // What is there when power is lost: the file before, and some octets of the next one. No
    // process has the number zero.
    for octets in [0, 1, after.len() / 2, after.len()] {
        fs::write(&file, &before).expect("the file");
        let leftover = file.with_file_name("default.keys.0.new");
        fs::write(&leftover, &after[..octets]).expect("what was written of the next one");
        let mut keeper = Keeper::new(plan(&keys, &file), None);
        assert_eq!(states(&keeper), [Some(KeyState::Valid)], "{octets}");
        assert!(!leftover.exists(), "{octets}");
        hear(&mut keeper, keys.set(&[OLD, NEW], START + DAY), START + DAY);
        let again = Keeper::new(plan(&keys, &file), None);
        assert_eq!(states(&again), [Some(KeyState::Valid), Some(KeyState::AddPend)], "{octets}");
    }
}

#[test]
fn a_file_that_cannot_be_written_keeps_nobody_from_following() {
    let (keys, (folder, file)) = (Keys::new(), folder());
    // A file where the folder would have to be.
    fs::write(folder.path().join("anchors"), "").expect("a file");
    let mut keeper = Keeper::new(plan(&keys, &file), None);
    assert!(hear(&mut keeper, keys.set(&[OLD], START), START));
    // A reload finds nothing, since nothing could be written.
    let mut keeper = Keeper::new(plan(&keys, &file), Some(keeper));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![0], 0));
    fs::remove_file(folder.path().join("anchors")).expect("it is gone");
    hear(&mut keeper, keys.set(&[OLD], START + DAY), START + DAY);
    assert!(file.exists());
}

#[test]
fn a_reload_keeps_what_the_server_wrote_and_takes_what_others_did() {
    let (keys, (_folder, file)) = (Keys::new(), folder());
    let early = plan(&keys, &file);
    let mut keeper = Keeper::new(early, None);
    hear(&mut keeper, keys.set(&[OLD], START), START);
    // The configuration was read before the next step was written down.
    let early = plan(&keys, &file);
    hear(&mut keeper, keys.set(&[OLD, NEW], START + DAY), START + DAY);
    let mut keeper = Keeper::new(early, Some(keeper));
    assert_eq!(states(&keeper), [Some(KeyState::Valid), Some(KeyState::AddPend)]);
    hear(&mut keeper, keys.set(&[OLD, NEW], START + 2 * DAY), START + 2 * DAY);
    let mut by_hand = TrustAnchors::new(Name::ROOT);
    by_hand.add_key(&keys.0[2].dnskey(KSK));
    fs::write(&file, by_hand.write()).expect("the file");
    let keeper = Keeper::new(plan(&keys, &file), Some(keeper));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![2], 0));
    fs::remove_file(&file).expect("it was there");
    let keeper = Keeper::new(plan(&keys, &file), Some(keeper));
    assert_eq!(keys.trusted(&keeper.trusted()), (vec![], 1), "those of the settings again");
}

#[test]
fn zones_that_the_settings_add_are_followed_beside_those_of_the_file() {
    let (keys, (_folder, file)) = (Keys::new(), folder());
    let mut keeper = Keeper::new(plan(&keys, &file), None);
    hear(&mut keeper, keys.set(&[OLD], START), START);
    let below = NameBuf::from_text("example.org").expect("a name");
    let added = |completes_now| {
        let mut plan = plan(&keys, &file);
        let anchor = TrustAnchor { zone: HeapName::new(below.as_name()), ..keys.anchor() };
        plan.resolver.settings.trust.anchors.push(anchor);
        let AnchorSource::Followed { completes, .. } = &mut plan.source else { panic!("it is followed") };
        *completes = completes_now;
        plan
    };
    let zones = |keeper: &Keeper| keeper.states().iter().map(|state| state.zone).collect::<Vec<_>>();
    let keeper = Keeper::new(added(false), Some(keeper));
    assert_eq!(zones(&keeper), [NameBuf::root()], "those of the program do not count beside a file");
    let keeper = Keeper::new(added(true), Some(keeper));
    assert_eq!(zones(&keeper), [NameBuf::root(), below]);
    assert_eq!(keeper.states()[0].keys[0].state, Some(KeyState::Valid), "it goes on as it was");
}

#[test]
fn keys_that_nobody_vouches_for_change_nothing_and_are_asked_for_again_soon() {
    let (keys, (_folder, file)) = (Keys::new(), folder());
    let mut keeper = Keeper::new(plan(&keys, &file), None);
    hear(&mut keeper, keys.set(&[OLD], START), START);
    let now = START + DAY;
    assert!(!hear(&mut keeper, keys.set(&[NEW], now), now));
    let [root] = &keeper.states()[..] else { panic!("one zone") };
    assert!(root.trouble.is_some() && root.last_success == START && root.next_probe < now + DAY);
    // What nobody said is nothing to write down.
    let written = fs::read_to_string(&file).expect("a file");
    assert!(written.contains(";;query_failed: 1\n"), "{written}");
    let heard = keeper.heard(&NameBuf::root(), Err("no server answers".to_owned()), now + 1);
    assert!(!heard.changes_trust && !heard.is_unproven);
    assert_eq!(fs::read_to_string(&file).expect("a file"), written);
    assert_eq!(keeper.states()[0].trouble.as_deref(), Some("no server answers"));
    assert!(keeper.due(now).is_none() && keeper.due(now + DAY).is_some());
    // A clock that was wrong does not silence it for years.
    assert!(keeper.due(1_000).is_some());
}

#[test]
fn keys_that_nobody_vouches_for_are_asked_for_several_times_and_each_counts() {
    let (_folder, file) = folder();
    let (internet, anchors, heard) = started(&file);
    while heard.recv() != Ok(Told::Trusted((vec![0], 0), 0)) {}
    *internet.shown.lock().expect("no panic") = vec![(2, KSK)];
    internet.now.store(START + 2 * DAY, Ordering::Relaxed);
    anchors.adopt(&[plan(&internet.keys, &file)]);
    let deadline = Instant::now() + Duration::from_secs(20);
    let written = || fs::read_to_string(&file).unwrap_or_default();
    while !written().contains(";;query_failed: 6\n") {
        assert!(Instant::now() < deadline, "{}", written());
        std::thread::yield_now();
    }
    anchors.stop();
}

/// What was told to resolvers.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// To trust these keys and so many DS records, but not so many zones.
    Trusted((Vec<usize>, usize), usize),
    /// To forget a zone.
    Forget(NameBuf),
    /// To ask for a name of this many octets.
    Signal(String),
    /// Whether a zone validates.
    Test(NameBuf),
}

/// A root whose keys change, and what it has told the resolvers.
struct Internet {
    keys: Keys,
    now: Arc<AtomicU64>,
    shown: Mutex<Vec<(usize, u16)>>,
    told: mpsc::Sender<Told>,
}

impl Resolvers for Internet {
    fn keys(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Result<KeySet, String> {
        assert_eq!((resolver.id, *zone), (ResolverId(0), NameBuf::root()));
        let shown = self.shown.lock().expect("no panic");
        Ok(self.keys.set(&shown, self.now.load(Ordering::Relaxed)))
    }

    fn test(&self, resolver: &ResolverPlan, zone: &NameBuf) -> Finding {
        assert!(resolver.settings.trust.negative.is_empty(), "it is tested as if it were trusted");
        let _ = self.told.send(Told::Test(*zone));
        Finding::Validates
    }

    fn signal(&self, _: &ResolverPlan, name: &NameBuf) {
        let _ = self.told.send(Told::Signal(name.to_string()));
    }

    fn forget(&self, _: &ResolverPlan, zone: &NameBuf) {
        let _ = self.told.send(Told::Forget(*zone));
    }

    fn trust(&self, all: Vec<Trusted>) {
        let [trusted] = &all[..] else { panic!("one resolver") };
        // The test may have ended.
        let _ = self.told.send(Told::Trusted(self.keys.trusted(&trusted.anchors), trusted.negative.len()));
    }
}

/// Starts the thread on an internet of which one can hear what it is told.
fn started(file: &Path) -> (Arc<Internet>, Anchors, mpsc::Receiver<Told>) {
    let (told, heard) = mpsc::channel();
    let now = Arc::new(AtomicU64::new(START));
    let shown = Mutex::new(vec![OLD, NEW]);
    let internet = Arc::new(Internet { keys: Keys::new(), now: Arc::clone(&now), shown, told });
    let clock = Arc::new(move || now.load(Ordering::Relaxed));
    let anchors = Anchors::start(Arc::clone(&internet) as _, clock).expect("a thread");
    anchors.adopt(&[plan(&internet.keys, file)]);
    (internet, anchors, heard)
}

#[test]
fn resolvers_hear_of_a_new_key_without_a_reload_losing_anything() {
    let (_folder, file) = folder();
    let (internet, anchors, heard) = started(&file);
    assert_eq!(heard.recv(), Ok(Told::Trusted((vec![], 1), 0)), "what the plan says");
    assert_eq!(heard.recv(), Ok(Told::Trusted((vec![0], 0), 0)), "what the root says");
    assert!(matches!(heard.recv(), Ok(Told::Signal(name)) if name.starts_with("_ta-") && name.len() == 9));
    internet.now.store(START + 31 * DAY, Ordering::Relaxed);
    // A reload has the thread look at the clock.
    anchors.adopt(&[plan(&internet.keys, &file)]);
    // The thread may look before the reload.
    let (old, both) = (Told::Trusted((vec![0], 0), 0), Told::Trusted((vec![0, 1], 0), 0));
    while let Ok(told) = heard.recv()
        && told != both
    {
        assert_eq!(told, old);
    }
    let signal = heard.iter().find(|told| *told != both);
    assert!(matches!(signal, Some(Told::Signal(name)) if name.len() == 14), "two tags");
    anchors.stop();
}

#[test]
fn a_negative_trust_anchor_is_told_tested_and_ends() {
    let (_folder, file) = folder();
    let (internet, anchors, heard) = started(&file);
    // Until the keys are known and signalled.
    while !matches!(heard.recv(), Ok(Told::Signal(_))) {}
    let zone = NameBuf::from_text("broken.example").expect("a name");
    assert_eq!(anchors.add_negative(None, zone, (600, Some("a mistake"))), Ok(()));
    assert_eq!(heard.recv(), Ok(Told::Trusted((vec![0], 0), 1)));
    let mut next = [heard.recv().expect("told"), heard.recv().expect("told")];
    next.sort_by_key(|told| matches!(told, Told::Test(_)));
    assert_eq!(next, [Told::Forget(zone), Told::Test(zone)]);
    internet.now.store(START + 600, Ordering::Relaxed);
    anchors.adopt(&[plan(&internet.keys, &file)]);
    // Either the reload or the thread sees that it has ended.
    let told: Vec<Told> =
        std::iter::from_fn(|| heard.recv().ok()).take_while(|told| *told != Told::Forget(zone)).collect();
    assert!(told.contains(&Told::Trusted((vec![0], 0), 0)), "{told:?}");
    assert_eq!(anchors.negative(), []);
    assert_eq!(anchors.remove_negative(Some("default"), &zone), Err(NegativeError::Unknown));
    anchors.stop();
}
