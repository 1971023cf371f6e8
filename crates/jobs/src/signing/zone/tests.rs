//! A zone is signed through months in a moment.

use super::*;
use std::cell::RefCell;
use std::time::Duration;

use dnssec::rollover::Announce;
use dnssec::{
    Algorithm, DigestType, KeySize, Nsec3Parameters, ZonemdHash, ZonemdVerdict, check_tree, check_zonemd,
};
use tempfile::TempDir;
use wire::Rtype;
use wire::serial::SerialPolicy;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const BEGIN: u64 = 1_795_000_000;
const ZONE: &str = "$TTL 3600\n@ SOA ns admin 7 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n\
    *.wild TXT \"any\"\nsub NS ns.sub\nns.sub A 192.0.2.3\n";

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * HOUR)
}

pub(in crate::signing) fn policy() -> SigningPolicy {
    SigningPolicy {
        name: "test".to_owned(),
        algorithm: Algorithm::ED25519,
        token: None,
        ksk_size: KeySize::Bits2048,
        zsk_size: KeySize::Bits2048,
        is_single: false,
        ksk_lifetime: Some(hours(60 * 24)),
        zsk_lifetime: Some(hours(20 * 24)),
        propagation_delay: hours(1),
        dnskey_ttl: Some(hours(2)),
        zone_max_ttl: None,
        rrsig_lifetime: hours(14 * 24),
        rrsig_refresh: None,
        rrsig_pre_refresh: hours(1),
        rrsig_jitter: hours(24),
        denial: Denial::Nsec,
        announce: Announce::Rollover,
        asks_for_removal: false,
        cds_digests: vec![DigestType::SHA256],
        has_csync: false,
        zonemd: None,
        serial: SerialPolicy::Increment,
        parent: vec!["192.0.2.53:53".parse().expect("an address")],
        parent_check_interval: hours(1),
        parent_delay: hours(26),
        parent_timeout: None,
        ds_push: Vec::new(),
        threads: Some(1),
    }
}

pub(in crate::signing) fn apex() -> NameBuf {
    NameBuf::from_text("example.org").expect("a name")
}

pub(in crate::signing) fn source(text: &str) -> Zone {
    let key = HashKey::new([1, 2]);
    let loaded = zone::load(apex().as_name(), "zone", text.as_bytes(), &mut master::NoIncludes, key);
    loaded.zone.expect("a zone")
}

fn open(directory: &TempDir, policy: &SigningPolicy) -> SignedZone {
    let apex = apex();
    let key = HashKey::new([1, 2]);
    let memory = (key, Arc::new(Pool::new(1 << 20, 1000, key)));
    let policy = Arc::new(policy.clone());
    SignedZone::open(directory.path(), apex.as_name(), policy, memory, &Arc::default(), || {})
        .expect("an empty or sound directory")
}

/// A parent that follows CDS after a day.
#[derive(Default)]
struct Parent {
    ds: RefCell<Vec<Vec<u8>>>,
    seen: RefCell<Option<(Vec<Vec<u8>>, u64)>>,
    asked: RefCell<usize>,
}

impl Parent {
    fn follow(&self, tree: &Tree, now: u64) {
        let cds: Vec<Vec<u8>> = tree
            .set(apex().as_name(), Rtype::CDS)
            .map_or_else(Vec::new, |set| set.records().map(<[u8]>::to_vec).collect());
        let mut seen = self.seen.borrow_mut();
        match &*seen {
            Some((before, since)) if *before == cds => {
                if now >= since + DAY {
                    self.ds.replace(cds);
                }
            }
            _ if cds.is_empty() => *seen = None,
            _ => *seen = Some((cds, now)),
        }
    }

    fn answer(&self) -> Result<Vec<Vec<u8>>, String> {
        *self.asked.borrow_mut() += 1;
        Ok(self.ds.borrow().clone())
    }
}

/// Checks that the zone is whole and that a key which the parent names signs the keys.
fn judge(zone: &SignedZone, parent: &Parent, now: u64) {
    let text = std::fs::read(&zone.zone_file).expect("the signed zone is on disk");
    let mut tree = zone.read_signed().expect("it can be read");
    assert_eq!(check_tree(&mut tree, now as u32, 10), [""; 0], "at {now}");
    assert!(!text.is_empty());
    let ds = parent.ds.borrow();
    if ds.is_empty() {
        return;
    }
    let apex = apex();
    let keys = tree.set(apex.as_name(), Rtype::DNSKEY).expect("keys");
    let is_trusted = |rdata: &[u8]| {
        let key = Dnskey::parse(rdata).expect("a key");
        ds.iter().filter_map(|ds| Ds::parse(ds)).any(|ds| ds.is_of(apex.as_name(), key))
            && keys.signatures().filter_map(dnssec::Rrsig::parse).any(|rrsig| rrsig.tag == key.tag())
    };
    assert!(keys.records().any(is_trusted), "at {now}: {:?}", zone.lives);
}

#[test]
fn a_zone_is_signed_and_its_keys_replaced_through_months() {
    for policy in [
        policy(),
        SigningPolicy { is_single: true, denial: Denial::Nsec3(Nsec3Parameters::default()), ..policy() },
        SigningPolicy { zonemd: Some(ZonemdHash::SHA384), announce: Announce::Always, ..policy() },
    ] {
        let directory = TempDir::new().expect("a directory");
        let source = source(ZONE);
        let parent = Parent::default();
        let mut zone = open(&directory, &policy);
        let mut now = BEGIN;
        let mut last_serial = None;
        let mut turns = 0_u32;
        while now < BEGIN + 150 * DAY {
            let ask = |_: SocketAddr, _: Name<'_>| parent.answer();
            let turned = zone.turn(&source, now, &ask).expect("a turn");
            turns += 1;
            if let Some(signed) = &turned.zone {
                let serial = signed.facts().serial;
                if let Some(last) = last_serial {
                    assert!(is_newer(serial, last), "{last} {serial}");
                }
                last_serial = Some(serial);
            }
            judge(&zone, &parent, now);
            parent.follow(zone.signed.as_ref().expect("signed"), now);
            assert!(turned.again_at > now, "{}", turned.again_at);
            // Half an hour before it is due again, all signatures are still good.
            now = turned.again_at.min(now + DAY);
            judge(&zone, &parent, now - 1);
            if turns.is_multiple_of(7) {
                // The server is started anew.
                zone = open(&directory, &policy);
                assert!(zone.last(now).is_some());
            }
        }
        let tree = zone.signed.as_ref().expect("signed");
        if policy.zonemd.is_some() {
            assert_eq!(check_zonemd(tree), ZonemdVerdict::Right);
        }
        assert!(*parent.asked.borrow() > 2);
        let active = zone.lives.iter().filter(|life| life.state == State::Active).count();
        assert!(active >= 1);
        // Spent keys have gone: what is left are those of the moment.
        let files = std::fs::read_dir(directory.path().join("keys")).expect("keys").count();
        assert_eq!(files, 2 * zone.lives.len());
        assert!(zone.lives.len() <= 4, "{:?}", zone.lives);
        assert!(last_serial > Some(10));
    }
}

#[test]
fn nothing_changes_as_long_as_nothing_is_due() {
    let directory = TempDir::new().expect("a directory");
    let source = source(ZONE);
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is there".to_owned());
    let mut zone = open(&directory, &policy());
    let first = zone.turn(&source, BEGIN, &ask).expect("a turn");
    assert!(first.zone.is_some_and(|zone| zone.facts().serial == 7) && first.signed.made > 10);
    let second = zone.turn(&source, BEGIN + 60, &ask).expect("a turn");
    assert!(second.zone.is_none());
    assert_eq!(second.signed.made, 0);
    // After a restart neither.
    let mut zone = open(&directory, &policy());
    assert!(zone.turn(&source, BEGIN + 120, &ask).expect("a turn").zone.is_none());
    // Another address: its signature and the SOA's.
    let changed = self::source(&ZONE.replace("192.0.2.2", "192.0.2.22"));
    let third = zone.turn(&changed, BEGIN + 180, &ask).expect("a turn");
    assert_eq!(third.signed.made, 2);
    assert_eq!(third.zone.map(|zone| zone.facts().serial), Some(8));
    // The source's serial counts where it is ahead.
    let ahead = self::source(&ZONE.replace(" 7 7200", " 2026112000 7200"));
    let fourth = zone.turn(&ahead, BEGIN + 240, &ask).expect("a turn");
    assert_eq!(fourth.zone.map(|zone| zone.facts().serial), Some(2_026_112_000));
    let tree = zone.read_signed().expect("on disk");
    assert_eq!(tree.soa().map(|(soa, _)| soa.serial()), Some(2_026_112_000));
}

#[test]
fn a_serial_never_goes_back_although_the_signed_zone_was_lost() {
    let directory = TempDir::new().expect("a directory");
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is there".to_owned());
    let mut zone = open(&directory, &policy());
    zone.turn(&source(ZONE), BEGIN, &ask).expect("a turn");
    zone.turn(&source(&ZONE.replace("192.0.2.2", "192.0.2.22")), BEGIN + 60, &ask).expect("a turn");
    std::fs::remove_file(&zone.zone_file).expect("it is there");
    let mut zone = open(&directory, &policy());
    let turned = zone.turn(&source(ZONE), BEGIN + 120, &ask).expect("a turn");
    assert_eq!(turned.zone.map(|zone| zone.facts().serial), Some(9));
}

#[test]
fn an_operator_says_that_the_parent_has_a_ds_and_has_keys_replaced() {
    let directory = TempDir::new().expect("a directory");
    let source = source(ZONE);
    let policy = SigningPolicy { parent: Vec::new(), ksk_lifetime: None, zsk_lifetime: None, ..policy() };
    let ask = |_: SocketAddr, _: Name<'_>| panic!("there is no parent to ask");
    let mut zone = open(&directory, &policy);
    zone.turn(&source, BEGIN, &ask).expect("a turn");
    assert!(zone.ds_seen(None).is_err(), "nothing waits yet");
    zone.turn(&source, BEGIN + DAY, &ask).expect("a turn");
    let states = |zone: &SignedZone| -> Vec<(Role, State)> {
        zone.key_states().iter().map(|state| (state.life.role, state.life.state)).collect()
    };
    assert_eq!(states(&zone), [(Role::Ksk, State::Ready), (Role::Zsk, State::Active)]);
    assert!(zone.key_states()[0].ds.ends_with(|c: char| c.is_ascii_hexdigit()));
    assert!(zone.ds_seen(Some(zone.lives[1].tag)).is_err(), "a ZSK has no DS");
    assert_eq!(zone.ds_seen(None), Ok(1));
    zone.turn(&source, BEGIN + DAY + 1, &ask).expect("a turn");
    assert_eq!(states(&zone)[0], (Role::Ksk, State::Active));
    assert_eq!(zone.roll(Role::Zsk), Ok(1));
    assert!(zone.roll(Role::Csk).is_err());
    for hour in 25..60 {
        zone.turn(&source, BEGIN + DAY + hour * HOUR, &ask).expect("a turn");
    }
    assert_eq!(states(&zone), [(Role::Ksk, State::Active), (Role::Zsk, State::Active)]);
}

/// A server of the parent that takes DS.
fn taker() -> SocketAddr {
    "192.0.2.53:53".parse().expect("an address")
}

#[test]
fn ds_are_sent_when_a_key_is_ready_and_the_word_of_who_took_them_counts() {
    let directory = TempDir::new().expect("a directory");
    let source = source(ZONE);
    let ask = |_: SocketAddr, _: Name<'_>| panic!("there is no parent to ask");
    let policy = SigningPolicy { parent: Vec::new(), ds_push: vec![taker()], ..policy() };
    let mut zone = open(&directory, &policy);
    assert_eq!(zone.turn(&source, BEGIN, &ask).expect("a turn").push, None, "no key is ready");
    let push = zone.turn(&source, BEGIN + DAY, &ask).expect("a turn").push.expect("a key is ready");
    let tree = zone.signed.as_ref().expect("signed");
    let cds = tree.set(apex().as_name(), Rtype::CDS).expect("CDS");
    assert_eq!(push.ds, cds.records().map(<[u8]>::to_vec).collect::<Vec<_>>());
    assert_eq!((push.policy.as_str(), push.ttl), ("test", 7200));
    // It fails first, and is sent again.
    let refused = Err("192.0.2.53:53: it answers REFUSED".to_owned());
    zone.note_push(push.ds.clone(), &refused, BEGIN + DAY + 5).expect("written");
    assert!(zone.push_state().is_some_and(|said| said.contains("REFUSED")));
    let turned = zone.turn(&source, BEGIN + DAY + 5, &ask).expect("a turn");
    assert_eq!((turned.push, turned.again_at), (None, BEGIN + DAY + 10));
    let turned = zone.turn(&source, BEGIN + DAY + 10, &ask).expect("a turn");
    assert_eq!(turned.push.as_ref(), Some(&push));
    assert_eq!(zone.lives[0].state, State::Ready);
    zone.note_push(push.ds, &Ok("192.0.2.53:53".to_owned()), BEGIN + DAY + 66).expect("written");
    let turned = zone.turn(&source, BEGIN + DAY + 66, &ask).expect("a turn");
    assert_eq!((turned.push, zone.lives[0].state), (None, State::Active));
    // What was taken is known after a restart.
    let mut zone = open(&directory, &policy);
    assert!(zone.push_state().is_some());
    assert_eq!(zone.turn(&source, BEGIN + DAY + 120, &ask).expect("a turn").push, None);
}

#[test]
fn the_word_of_who_took_ds_does_not_count_where_all_servers_of_the_parent_are_asked() {
    let directory = TempDir::new().expect("a directory");
    let source = source(ZONE);
    let asked = RefCell::new(Vec::<Vec<u8>>::new());
    let ask = |_: SocketAddr, _: Name<'_>| Ok(asked.borrow().clone());
    let mut zone = open(&directory, &SigningPolicy { ds_push: vec![taker()], ..policy() });
    zone.turn(&source, BEGIN, &ask).expect("a turn");
    let push = zone.turn(&source, BEGIN + DAY, &ask).expect("a turn").push.expect("a key is ready");
    zone.note_push(push.ds.clone(), &Ok("192.0.2.53:53".to_owned()), BEGIN + DAY + 1).expect("written");
    assert_eq!(zone.turn(&source, BEGIN + DAY + 2, &ask).expect("a turn").push, None);
    assert_eq!(zone.lives[0].state, State::Ready);
    // The others still lack it after a while: it is sent once more.
    let again = zone.turn(&source, BEGIN + DAY + 2 * HOUR, &ask).expect("a turn").push;
    assert_eq!(again.as_ref(), Some(&push));
    zone.note_push(push.ds.clone(), &Ok("192.0.2.53:53".to_owned()), BEGIN + DAY + 2 * HOUR)
        .expect("written");
    asked.replace(push.ds);
    zone.turn(&source, BEGIN + DAY + 4 * HOUR, &ask).expect("a turn");
    assert_eq!(zone.lives[0].state, State::Active);
}

#[test]
fn keys_that_are_there_already_are_taken_over() {
    let directory = TempDir::new().expect("a directory");
    let store = KeyStore::new(directory.path().join("keys"), &Arc::default());
    for is_entry_point in [true, false] {
        let key = ZoneKey {
            owner: apex(),
            flags: flags_of(is_entry_point),
            secret: SecretKey::generate(Algorithm::ED25519, KeySize::Bits2048).expect("a key").into(),
            times: Times { created: Some(BEGIN - DAY), ..Times::default() },
        };
        store.put(&key).expect("written");
    }
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is there".to_owned());
    let mut zone = open(&directory, &policy());
    zone.turn(&source(ZONE), BEGIN, &ask).expect("a turn");
    assert_eq!(zone.lives.len(), 2);
    assert!(zone.lives.iter().all(|life| life.state == State::Active));
}

#[test]
fn keys_in_tokens_do_not_sign_while_clients_wait() {
    let directory = TempDir::new().expect("a directory");
    let tokens = Arc::default();
    let place = "pkcs11:token=one;object=a;id=%01?module-path=/nowhere.so";
    let holder = Tokens::holder(&tokens, Algorithm::ED25519, place, None).expect("a place");
    let public = SecretKey::generate(Algorithm::ED25519, KeySize::Bits2048).expect("a key").public().to_vec();
    let held = SecretKey::held(Algorithm::ED25519, &public, holder).expect("a key");
    let key = ZoneKey { owner: apex(), flags: flags_of(true), secret: held.into(), times: Times::default() };
    KeyStore::new(directory.path().join("keys"), &tokens).put(&key).expect("written");
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is there".to_owned());
    let turned = |denial: Denial| {
        let mut zone = open(&directory, &SigningPolicy { is_single: true, denial, ..policy() });
        zone.turn(&source(ZONE), BEGIN, &ask).err().expect("it cannot be signed")
    };
    let why = turned(Denial::Compact);
    assert!(why.contains("is in a token, which takes too long to sign while clients wait"), "{why}");
    // What can be signed with it beforehand needs the token.
    let why = turned(Denial::Nsec);
    assert!(why.starts_with("cannot sign: the module cannot be loaded: ") && why.ends_with(place), "{why}");
}

#[test]
fn a_key_that_is_missing_is_told_and_not_replaced_in_silence() {
    let directory = TempDir::new().expect("a directory");
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is there".to_owned());
    let mut zone = open(&directory, &policy());
    zone.turn(&source(ZONE), BEGIN, &ask).expect("a turn");
    std::fs::remove_dir_all(directory.path().join("keys")).expect("keys are there");
    let key = HashKey::new([1, 2]);
    let memory = (key, Arc::new(Pool::new(1 << 20, 1000, key)));
    let policy = Arc::new(policy());
    let opened = SignedZone::open(directory.path(), apex().as_name(), policy, memory, &Arc::default(), || {});
    let why = opened.err().expect("the keys are missing");
    assert!(why.contains("is not in"), "{why}");
}

/// Asks for a name that does not exist; returns the NSEC that proves it, and its signatures.
fn absent(zone: &Arc<Zone>, text: &str, now: u64) -> (Vec<u8>, Vec<Vec<u8>>) {
    let zones = zone::Zones::new(HashKey::new([1, 2]), vec![Arc::clone(zone)]);
    let qname = NameBuf::from_text(text).expect("a name");
    let question = wire::Question { qname: qname.as_name(), qtype: Rtype::A, qclass: wire::Class::IN };
    let mut buffer = [0; 4096];
    let mut writer = wire::Writer::new(&mut buffer, 4096, 1, wire::Flags::QR);
    writer.question(&question).expect("room");
    let asked = zone::Asked { now: now as u32, ..zone::Asked::new(qname.as_name(), Rtype::A, true) };
    let answered = zones.answer(&asked, &mut writer).expect("a zone of ours");
    assert_eq!(answered.rcode, wire::Rcode::NOERROR);
    let len = writer.finish();
    let message = wire::Message::parse(buffer.get(..len).expect("written")).expect("a message");
    let of = |wanted: Rtype| {
        let records = message.records().filter(|it| it.rtype == wanted);
        let own = records.filter(|it| it.owner.expand().is_ok_and(|owner| owner == qname));
        own.map(|it| it.rdata.to_vec()).collect::<Vec<_>>()
    };
    (of(Rtype::NSEC).pop().expect("an NSEC"), of(Rtype::RRSIG))
}

#[test]
fn proofs_made_for_each_question_are_signed_by_the_keys_of_the_moment() {
    let directory = TempDir::new().expect("a directory");
    let policy = SigningPolicy { denial: Denial::Compact, ..policy() };
    let mut zone = open(&directory, &policy);
    let source = source(ZONE);
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is there".to_owned());
    let mut now = BEGIN;
    let mut served = None;
    let mut tags = std::collections::BTreeSet::new();
    let mut turns = 0;
    while now < BEGIN + 50 * DAY {
        let turned = zone.turn(&source, now, &ask).expect("a turn");
        served = turned.zone.or(served);
        turns += 1;
        if turns % 5 == 0 {
            zone = open(&directory, &policy);
            served = Some(zone.last(now).expect("what was signed last"));
        }
        now = turned.again_at.min(now + DAY);
        // As late as can be before something else is due.
        let late = now - 1;
        let tree = zone.signed.as_ref().expect("signed");
        let keys = tree.set(apex().as_name(), Rtype::DNSKEY).expect("keys");
        let keys: Vec<Dnskey<'_>> = keys.records().filter_map(Dnskey::parse).collect();
        let (nsec, rrsigs) = absent(served.as_ref().expect("served"), "none.example.org", late);
        let owner = NameBuf::from_text("none.example.org").expect("a name");
        let rrset = dnssec::Rrset::of(owner.as_name(), Rtype::NSEC, [&nsec[..]]).expect("an NSEC");
        let mut budget = dnssec::Budget::new(16);
        let signatures = rrsigs.iter().map(|rdata| &rdata[..]);
        let verified =
            dnssec::verify_rrset(&rrset, signatures, apex().as_name(), &keys, late as u32, &mut budget);
        assert!(verified.is_ok(), "at {late}");
        tags.extend(rrsigs.iter().filter_map(|rdata| dnssec::Rrsig::parse(rdata)).map(|rrsig| rrsig.tag));
        // What is in the zone has no proofs beside it.
        assert!(tree.set(apex().as_name(), Rtype::NSEC).is_none() && !tree.has_hashes());
    }
    assert!(tags.len() >= 2, "the ZSK was replaced: {tags:?}");
}

#[test]
fn a_signed_zone_follows_the_serial_of_its_file_when_nothing_else_changed() {
    let directory = TempDir::new().expect("a directory");
    let mut zone = open(&directory, &policy());
    let ask = |_: SocketAddr, _: Name<'_>| Err("nobody is asked".to_owned());
    let mut now = BEGIN;
    let mut serial_of = |serial: u32| {
        now += 10;
        let source = source(&ZONE.replace(" 7 ", &format!(" {serial} ")));
        let turned = zone.turn(&source, now, &ask).expect("it is signed");
        (turned.zone.map(|zone| zone.facts().serial), turned.signed.made)
    };
    assert_eq!(serial_of(7).0, Some(7));
    // Only the SOA is signed again.
    let (serial, made) = serial_of(8);
    assert_eq!(serial, Some(8));
    assert!(made <= 2, "{made} signatures for a serial");
    assert_eq!(serial_of(100).0, Some(100));
    assert_eq!(serial_of(100).0, None);
    // What is behind is not followed.
    assert_eq!(serial_of(50).0, None);
}
