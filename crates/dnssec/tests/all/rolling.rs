//! Trust anchors that follow the keys of their zone, and their text forms.

use crate::support;

use dnssec::anchors::{Anchor, HoldDown, KeyState, ROOT_DS, TrustAnchors, intervals, read_anchors};
use dnssec::chain::TrustPoint;
use dnssec::{
    Algorithm, Algorithms, Budget, DigestType, Dnskey, Ds, ENTRY_POINT, KeySize, REVOKED, Rrset, SecretKey,
    SignedBy, ZONE_KEY,
};
use proptest::prelude::*;
use support::{name, rdata};
use wire::{Name, Rtype};

const DAY: u64 = 86_400;
const START: u64 = 1_795_000_000;
const KSK: u16 = ZONE_KEY | ENTRY_POINT;

/// Keys of the root by number, and which of them signed.
struct Keys(Vec<SecretKey>);

impl Keys {
    fn new(count: usize) -> Self {
        let key = |_| SecretKey::generate(Algorithm(15), KeySize::Bits2048).expect("a key");
        Self((0..count).map(key).collect())
    }

    fn dnskey(&self, number: usize, flags: u16) -> Vec<u8> {
        self.0[number].dnskey(flags)
    }

    /// Tells anchors of a set: keys with their flags, signed by those in `signers`.
    fn tell(
        &self,
        anchors: &mut TrustAnchors,
        keys: &[(usize, u16)],
        signers: &[(usize, u16)],
        now: u64,
    ) -> bool {
        let data: Vec<Vec<u8>> = keys.iter().map(|&(number, flags)| self.dnskey(number, flags)).collect();
        let set = Rrset::of(Name::ROOT, Rtype::DNSKEY, data.iter().map(Vec::as_slice)).expect("keys");
        let sign = |&(number, flags): &(usize, u16)| {
            let rdata = self.dnskey(number, flags);
            let by = SignedBy {
                key: &self.0[number],
                tag: Dnskey::parse(&rdata).expect("a key").tag(),
                zone: Name::ROOT,
                ttl: 2 * DAY as u32,
                inception: (now - DAY) as u32,
                expiration: (now + 10 * DAY) as u32,
            };
            set.sign(&by).expect("a signature")
        };
        let rrsigs: Vec<Vec<u8>> = signers.iter().map(sign).collect();
        let rrsigs: Vec<&[u8]> = rrsigs.iter().map(Vec::as_slice).collect();
        let mut budget = Budget::with_failures(48, 16);
        let hold_down = HoldDown { keep_missing: Some(100 * DAY), ..HoldDown::default() };
        anchors.heard(&set, &rrsigs, Algorithms::SUPPORTED, &hold_down, now, &mut budget).is_ok()
    }

    fn states(&self, anchors: &TrustAnchors) -> Vec<Option<KeyState>> {
        let state = |number| {
            let rdata = self.dnskey(number, KSK);
            let key = Dnskey::parse(&rdata).expect("a key");
            let same =
                |anchor: &&Anchor| Dnskey::parse(&anchor.rdata).is_some_and(|other| other.key() == key.key());
            anchors.keys().iter().find(same).map(|anchor| anchor.state)
        };
        (0..self.0.len()).map(state).collect()
    }
}

fn anchored(keys: &Keys) -> TrustAnchors {
    let mut anchors = TrustAnchors::new(Name::ROOT);
    anchors.add_key(&keys.dnskey(0, KSK));
    anchors
}

const OLD: (usize, u16) = (0, KSK);
const NEW: (usize, u16) = (1, KSK);
const OLD_REVOKED: (usize, u16) = (0, KSK | REVOKED);

#[test]
fn a_new_key_is_trusted_after_thirty_days() {
    use KeyState::{AddPend, Valid};
    let keys = Keys::new(3);
    let mut anchors = anchored(&keys);
    // A key that is no entry point is not followed.
    let told = [OLD, NEW, (2, ZONE_KEY)];
    assert!(keys.tell(&mut anchors, &told, &[OLD], START));
    assert_eq!(keys.states(&anchors), [Some(Valid), Some(AddPend), None]);
    assert_eq!(anchors.next_probe(), START + DAY, "half the TTL of two days");
    assert!(keys.tell(&mut anchors, &told, &[OLD], START + 30 * DAY - 1));
    assert_eq!(keys.states(&anchors)[1], Some(AddPend));
    // It does not count yet.
    assert!(!keys.tell(&mut anchors, &told, &[NEW], START + 30 * DAY - 1));
    assert_eq!(anchors.next_probe(), START + 30 * DAY - 1 + DAY / 5, "a tenth of the TTL");
    assert!(keys.tell(&mut anchors, &told, &[OLD], START + 30 * DAY));
    assert_eq!(keys.states(&anchors)[1], Some(Valid));
    assert!(keys.tell(&mut anchors, &told, &[NEW], START + 31 * DAY));
    assert_eq!(anchors.trusted().len(), 2);
}

#[test]
fn a_new_key_that_goes_away_begins_anew() {
    let keys = Keys::new(2);
    let mut anchors = anchored(&keys);
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START));
    assert!(keys.tell(&mut anchors, &[OLD], &[OLD], START + 20 * DAY));
    assert_eq!(keys.states(&anchors)[1], None);
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START + 29 * DAY));
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START + 40 * DAY));
    assert_eq!(keys.states(&anchors)[1], Some(KeyState::AddPend));
    let mut anchors = anchored(&keys);
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START));
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START + 300 * DAY));
    assert_eq!(keys.states(&anchors)[1], Some(KeyState::Valid));
}

#[test]
fn a_key_revokes_itself_and_is_forgotten() {
    use KeyState::{Missing, Removed, Revoked, Valid};
    let keys = Keys::new(2);
    let mut anchors = anchored(&keys);
    anchors.add_key(&keys.dnskey(1, KSK));
    // The flag alone does not count: the key must have signed it.
    assert!(keys.tell(&mut anchors, &[OLD_REVOKED, NEW], &[NEW], START));
    assert_eq!(keys.states(&anchors), [Some(Missing), Some(Valid)]);
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START + DAY));
    assert_eq!(keys.states(&anchors), [Some(Valid), Some(Valid)]);
    assert!(keys.tell(&mut anchors, &[OLD_REVOKED, NEW], &[OLD_REVOKED, NEW], START + 2 * DAY));
    assert_eq!(keys.states(&anchors), [Some(Revoked), Some(Valid)]);
    assert!(matches!(anchors.trusted()[..], [TrustPoint::Key(_)]));
    // It does not come back.
    assert!(!keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START + 3 * DAY));
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[NEW], START + 3 * DAY));
    assert_eq!(keys.states(&anchors), [Some(Revoked), Some(Valid)]);
    assert!(keys.tell(&mut anchors, &[NEW], &[NEW], START + 32 * DAY));
    assert_eq!(keys.states(&anchors), [Some(Removed), Some(Valid)]);
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[NEW], START + 33 * DAY));
    assert_eq!(keys.states(&anchors), [Some(Removed), Some(Valid)]);
    assert!(!anchors.is_revoked());
    // The last key goes: as if nobody had trusted the zone.
    let last = (1, KSK | REVOKED);
    assert!(!keys.tell(&mut anchors, &[last], &[last], START + 40 * DAY));
    assert!(anchors.is_revoked() && anchors.trusted().is_empty());
    let again = TrustAnchors::read(&anchors.write()).expect("it reads what it writes");
    assert!(again.is_revoked() && again.trusted().is_empty());
}

#[test]
fn a_missing_key_stays_trusted_for_a_while() {
    use KeyState::{Missing, Removed, Valid};
    let keys = Keys::new(2);
    let mut anchors = anchored(&keys);
    anchors.add_key(&keys.dnskey(1, KSK));
    assert!(keys.tell(&mut anchors, &[NEW], &[NEW], START));
    assert_eq!(keys.states(&anchors), [Some(Missing), Some(Valid)]);
    assert_eq!(anchors.trusted().len(), 2);
    assert!(keys.tell(&mut anchors, &[NEW], &[NEW], START + 99 * DAY));
    assert_eq!(keys.states(&anchors), [Some(Missing), Some(Valid)]);
    assert!(keys.tell(&mut anchors, &[NEW], &[NEW], START + 100 * DAY));
    assert_eq!(keys.states(&anchors), [Some(Removed), Some(Valid)]);
}

#[test]
fn a_ds_is_trusted_until_its_key_was_seen() {
    let keys = Keys::new(2);
    let old = keys.dnskey(0, KSK);
    let ds = Ds::write(Name::ROOT, Dnskey::parse(&old).expect("a key"), DigestType(2)).expect("a DS");
    let mut anchors = TrustAnchors::new(Name::ROOT);
    anchors.add_ds(&ds);
    assert!(matches!(anchors.trusted()[..], [TrustPoint::Ds(_)]));
    assert!(!keys.tell(&mut anchors, &[NEW], &[NEW], START));
    assert!(keys.tell(&mut anchors, &[OLD, NEW], &[OLD], START));
    assert_eq!(keys.states(&anchors), [Some(KeyState::Valid), Some(KeyState::AddPend)]);
    assert!(matches!(anchors.trusted()[..], [TrustPoint::Key(_)]));
    // A DS of a key that revoked itself is none.
    let mut anchors = TrustAnchors::new(Name::ROOT);
    anchors.add_ds(&ds);
    assert!(!keys.tell(&mut anchors, &[OLD_REVOKED], &[OLD_REVOKED], START));
    assert!(anchors.trusted().is_empty() && anchors.is_revoked());
}

#[test]
fn probes_are_apart_as_in_rfc_5011() {
    let hour = 3600;
    for (ttl, left, expect) in [
        (172_800, 20 * DAY, (DAY, 17_280)),
        (172_800, DAY, (DAY / 2, DAY / 10)),
        (60, 20 * DAY, (hour, hour)),
        (u32::MAX, 400 * DAY, (15 * DAY, DAY)),
        (0, 0, (hour, hour)),
    ] {
        assert_eq!(intervals(ttl, left), expect, "{ttl} {left}");
    }
}

/// The root's keys (IANA, root-anchors.xml).
const ROOT_KEYS: [(u16, &str); 2] = [
    (
        20326,
        "257 3 8 AwEAAaz/tAm8yTn4Mfeh5eyI96WSVexTBAvkMgJzkKTOiW1vkIbzxeF3+/4RgWOq7HrxRixHlFlExOLAJr5emLvN7SWXgnLh4+B5xQlNVz8Og8kvArMtNROxVQuCaSnIDdD5LKyWbRd2n9WGe2R8PzgCmr3EgVLrjyBxWezF0jLHwVN8efS3rCj/EWgvIWgb9tarpVUDK/b58Da+sqqls3eNbuv7pr+eoZG+SrDK6nWeL3c6H5Apxz7LjVc1uTIdsIXxuOLYA4/ilBmSVIzuDWfdRUfhHdY6+cn8HFRm+2hM8AnXGXws9555KrUB5qihylGa8subX2Nn6UwNR1AkUTV74bU=",
    ),
    (
        38696,
        "257 3 8 AwEAAa96jeuknZlaeSrvyAJj6ZHv28hhOKkx3rLGXVaC6rXTsDc449/cidltpkyGwCJNnOAlFNKF2jBosZBU5eeHspaQWOmOElZsjICMQMC3aeHbGiShvZsx4wMYSjH8e7Vrhbu6irwCzVBApESjbUdpWWmEnhathWu1jo+siFUiRAAxm9qyJNg/wOZqqzL/dL/q8PkcRU5oUKEpUge71M3ej2/7CPqpdVwuMoTvoB+ZOT4YeGyxMvHmbrxlFzGOHOijtzN+u1TQNatX2XBuzZNQ1K+s2CXkPIZo7s6JgZyvaBevYtxPvYLw4z9mR7K2vaF18UYH9Z9GNUUeayffKC73PYc=",
    ),
];

#[test]
fn the_anchors_of_the_root_are_those_of_its_keys() {
    for ((tag, text), ds) in ROOT_KEYS.into_iter().zip(ROOT_DS) {
        let key = rdata(Rtype::DNSKEY, text);
        let key = Dnskey::parse(&key).expect("a key");
        let ds = Ds::parse(ds).expect("a DS");
        assert_eq!((key.tag(), ds.tag), (tag, tag));
        assert!(ds.is_of(Name::ROOT, key), "{tag}");
    }
    assert_eq!(TrustAnchors::root().tags(), [20326, 38696]);
    assert_eq!(TrustAnchors::root().zone(), Name::ROOT);
}

/// As Unbound writes it.
fn state_file() -> String {
    let [(_, valid), (_, pending)] = ROOT_KEYS;
    format!(
        "; autotrust trust anchor file\n\
         ;;id: . 1\n\
         ;;last_queried: 1795000000 ;;Wed Nov 18 11:06:40 2026\n\
         ;;last_success: 1794990000 ;;Wed Nov 18 08:20:00 2026\n\
         ;;next_probe_time: 1795040000 ;;Wed Nov 18 22:13:20 2026\n\
         ;;query_failed: 2\n\
         ;;query_interval: 43200\n\
         ;;retry_time: 8640\n\
         .\t86400\tIN\tDNSKEY\t{valid} ;{{id = 20326 (ksk), size = 2048b}} \
         ;;state=2 [  VALID  ] ;;count=0 ;;lastchange=1502438004 ;;Fri Aug 11 07:53:24 2017\n\
         .\t86400\tIN\tDNSKEY\t{pending} ;{{id = 38696 (ksk), size = 2048b}} \
         ;;state=1 [ ADDPEND ] ;;count=7 ;;lastchange=1794000000 ;;Fri Nov  6 21:20:00 2026\n"
    )
}

#[test]
fn a_state_file_is_read_and_written_as_it_was() {
    let text = state_file();
    let anchors = TrustAnchors::read(&text).expect("a state file");
    assert_eq!(anchors.tags(), [20326]);
    let stands: Vec<_> =
        anchors.keys().iter().map(|key| (key.state, key.pending_count, key.last_change)).collect();
    assert_eq!(stands, [(KeyState::Valid, 0, 1_502_438_004), (KeyState::AddPend, 7, 1_794_000_000)]);
    assert_eq!(anchors.next_probe(), 1_795_040_000);
    assert_eq!(anchors.write(), text);
}

#[test]
fn a_state_file_of_several_zones_is_read_and_written_as_it_was() {
    let root = state_file();
    let below = root.replace(";;id: . 1", ";;id: example.org. 1").replace("\n.\t", "\nexample.org.\t");
    let revoked = "; autotrust trust anchor file\n;;REVOKED\n;;id: gone.example. 1\n";
    let all = TrustAnchors::read_all(&format!("{root}{below}{revoked}")).expect("a state file");
    let zones: Vec<_> = all.iter().map(|anchors| (anchors.zone().to_string(), anchors.tags())).collect();
    let expect = [(".", vec![20326]), ("example.org.", vec![20326]), ("gone.example.", vec![])];
    assert_eq!(zones, expect.map(|(zone, tags)| (zone.to_owned(), tags)));
    assert_eq!([all[0].write(), all[1].write()], [root.clone(), below.clone()]);
    assert!(all[2].is_revoked() && !all[0].is_revoked() && !all[1].is_revoked());
    // A mistake in the second part has its line in the file.
    let fault = TrustAnchors::read_all(&format!("{root}{}", below.replace("failed: 2", "failed: x")));
    assert_eq!(fault.expect_err("a mistake").line, 10 + 6);
    assert!(TrustAnchors::read_all(";;id: example.org 1\n").is_err());
}

#[test]
fn anchors_are_read_from_plain_files() {
    let [(_, key), _] = ROOT_KEYS;
    let (head, tail) = key.split_at(100);
    let text = format!(
        "; comment\n\n. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D ; more\n\
         .  172800  IN  DNSKEY ( {head} ; first part\n   {tail} )\n\
         example.org DS 1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
    );
    let rows = read_anchors(&text).expect("three anchors");
    let found: Vec<_> = rows.iter().map(|row| (row.owner.to_string(), row.rtype, row.ttl)).collect();
    let expect =
        [(".", Rtype::DS, None), (".", Rtype::DNSKEY, Some(172_800)), ("example.org.", Rtype::DS, None)];
    assert_eq!(found, expect.map(|(owner, rtype, ttl)| (owner.to_owned(), rtype, ttl)));
    assert_eq!(rows[0].rdata, ROOT_DS[0]);
    assert_eq!(rows[1].rdata, rdata(Rtype::DNSKEY, key));
    let plain = TrustAnchors::read(&text.lines().take(5).collect::<Vec<_>>().join("\n"));
    let plain = plain.expect("anchors of the root");
    assert_eq!((plain.tags(), plain.keys().len()), (vec![20326], 1));
    let check = |text: &str, line: usize, what: &str| {
        let fault = TrustAnchors::read(text).expect_err(text);
        assert!(fault.line == line && fault.to_string().contains(what), "{text}: {fault}");
    };
    check("", 1, "no trust anchor");
    check("; nothing\n", 2, "no trust anchor");
    check(&text, 6, "anchors of . and example.org.");
    check("\n. IN A 192.0.2.1\n", 2, "DS or DNSKEY");
    check(". CH DS 1 8 2 AA\n", 1, "DS or DNSKEY");
    check(" DS 1 8 2 AA\n", 1, "expected a zone");
    check(". DS 1 8 2 ZZ\n", 1, "ZZ");
    check(". DS 1 8 2 AA ( \n", 1, "parenthesis");
    let wrong = state_file().replace("state=2", "state=9");
    check(&wrong, 9, "expected a state from 0 to 5, found 9");
    check(&state_file().replace("failed: 2", "failed: x"), 6, "expected a number as query_failed");
    assert_eq!(name(".").as_name(), Name::ROOT);
}

#[test]
fn anchors_are_read_from_statements_of_bind() {
    let [(_, key), _] = ROOT_KEYS;
    let mut numbers = key.splitn(4, ' ');
    let [flags, protocol, algorithm, key] = std::array::from_fn(|_| numbers.next().expect("four parts"));
    let (head, tail) = key.split_at(100);
    let digest = "E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D";
    let text = format!(
        "// keys\noptions {{ directory \"/var\"; recursion yes; }}; # more\n/* of\nthe root */\n\
         trusted-keys {{ \"example.org.\" {flags} {protocol} {algorithm} \"{head}\n  {tail}\"; }};\n\
         Trust-Anchors\n{{\n . initial-ds 20326 8 2 \"{digest}\";\n\
         . static-key {flags} {protocol} {algorithm} \"{head}\" \"{tail}\"; }};"
    );
    let rows = read_anchors(&text).expect("three anchors");
    let found: Vec<_> = rows.iter().map(|row| (row.owner.to_string(), row.rtype, row.ttl)).collect();
    let expect = [("example.org.", Rtype::DNSKEY), (".", Rtype::DS), (".", Rtype::DNSKEY)];
    assert_eq!(found, expect.map(|(owner, rtype)| (owner.to_owned(), rtype, None)));
    let dnskey = rdata(Rtype::DNSKEY, ROOT_KEYS[0].1);
    assert_eq!((&rows[0].rdata, &*rows[1].rdata, &rows[2].rdata), (&dnskey, ROOT_DS[0], &dnskey));
    let check = |text: &str, line: usize, what: &str| {
        let fault = read_anchors(text).expect_err(text);
        assert!(fault.line == line && fault.to_string().contains(what), "{text}: {fault}");
    };
    check("trusted-keys {\n\"a..b\" 257 3 8 \"AQ\"; };", 2, "a..b");
    check("trusted-keys {\n. 257 3 8 \"A Q =\" };", 2, "expected \";\" behind the key");
    check("trusted-keys {\n. 257 3 8 \"A!\"; };", 2, "A!");
    check("trusted-keys {\n. 257 3; };", 2, "expected");
    check("trusted-keys {\n. 257 3 8 \"AQ", 2, "the quotation has no end");
    check("trusted-keys {\n. 257 3 8 \"AQ==\"; }", 2, "expected \";\" behind \"}\"");
    check("trusted-keys {\n", 2, "expected a zone, or \"}\"");
    check("trusted-keys { };\noptions { a {};", 2, "the statement has no end");
    check("trusted-keys { };\n/* more", 2, "the comment has no end");
    check("trusted-keys { };\n}", 2, "expected a statement");
}

proptest! {
    #[test]
    fn no_statement_is_too_strange(text in "[ -~\n]{0,60}") {
        let _ = read_anchors(&format!("trusted-keys {{{text}"));
        let _ = read_anchors(&format!("trusted-keys {{. 257 3 8 \"{text}"));
    }

    #[test]
    fn whatever_is_read_is_written_and_read_again(
        at in 0..1600_usize,
        len in 0..40_usize,
        put in "[ -~\n]{0,12}",
    ) {
        let mut text = state_file();
        let (from, to) = (at.min(text.len()), (at + len).min(text.len()));
        text.replace_range(from..to, &put);
        if let Ok(anchors) = TrustAnchors::read(&text) {
            let written = anchors.write();
            let again = TrustAnchors::read(&written);
            prop_assert_eq!(again.map(|again| again.write()), Ok(written));
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "[ -~\n\t\u{e4}]{0,80}") {
        let _ = read_anchors(&text);
        let _ = TrustAnchors::read(&text);
    }
}
