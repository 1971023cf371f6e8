//! Zones that come with the keys to sign them with (erldns's key sets), in their file or beside it:
//! they are signed when they are read.

use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::io_text;
use dnssec::keys::{ZoneKey, erldns};
use dnssec::tree::Tree;
use dnssec::{
    Algorithm, Denial, KeyUse, Nsec3Parameters, Signer, SigningKey, Unsignable, Validity, write_compact,
};
use environment::Environment;
use plan::signing::DenialKind;
use plan::zones::ZonePlan;
use wire::{HashKey, Name, Rtype, Ttl};
use zeroize::Zeroizing;
use zone::json::KeySet;
use zone::master::Place;
use zone::{Builder, Good, Level, Online, OnlineKey, Pool, Record, Zone};

/// Names below which a zone is signed by one thread: starting others would take longer.
const NAMES_PER_THREAD_MIN: usize = 200;

/// The keys in a file.
pub(super) struct ReadKeys {
    pub(super) sets: Vec<KeySet>,
    /// What is odd about them.
    pub(super) remarks: Vec<String>,
    /// The file.
    pub(super) place: Place,
}

/// Returns what there is to say of the size of a key set's keys.
pub(super) fn small_keys(set: &KeySet) -> Option<String> {
    let keys = [&set.keys.ksk, &set.keys.zsk].into_iter().filter(|key| key.secret.is_small());
    let said: Vec<String> =
        keys.map(|key| format!("key {} of {} bits", key.tag(), key.secret.bits())).collect();
    let weak = said.join(", ");
    (!said.is_empty()).then(|| format!("RSA {weak}: fewer than 2048 bits are weak; it should be rolled"))
}

/// How zones with keys of their own are signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnKeys {
    /// The file that has the keys of a zone in a master file, and whether it must be there.
    pub(super) file: Option<(PathBuf, Needed)>,
    /// How absence is proved, if the plan says it.
    pub(super) denial: Option<DenialKind>,
    /// Whether other servers get the zone: these can prove only what is in it.
    pub(super) is_given_away: bool,
    /// Whether a policy signs the zone, with other keys.
    pub(super) has_policy: bool,
}

/// Whether a file must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// Without it there is no zone.
    Yes,
    /// Without it there are no keys.
    No,
}

impl OwnKeys {
    /// Returns how a zone is signed that is planned by its name.
    pub(super) fn of(zone: &ZonePlan) -> Self {
        Self {
            file: zone.key_sets.clone().map(|file| (file, Needed::Yes)),
            denial: zone.own_denial,
            is_given_away: zone.is_given_away(),
            has_policy: zone.sign.is_some(),
        }
    }

    /// Reads the keys of a zone in a master file, and notes the file among those that the zone was
    /// made of. `None` if it has none; an error says what is wrong, and shows nothing of a key.
    pub(super) fn read(
        &self,
        apex: Name<'_>,
        files: &mut Vec<PathBuf>,
        environment: &dyn Environment,
    ) -> Result<Option<ReadKeys>, (PathBuf, String)> {
        let Some((file, needed)) = self.file.as_ref().filter(|_| !self.has_policy) else { return Ok(None) };
        let text = match environment.read(file) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if *needed == Needed::No && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err((file.clone(), format!("cannot be read: {}", io_text(&error)))),
        };
        let wrong = |what: String| (file.clone(), what);
        let text = std::str::from_utf8(&text).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let mut remarks = Vec::new();
        let sets =
            erldns::read_leniently(apex, text, &mut remarks).map_err(|fault| wrong(fault.to_string()))?;
        if let Some(set) = sets.iter().find(|set| set.until <= set.inception) {
            let until = write_compact(set.until);
            return Err(wrong(format!("\"until\" ({until} UTC) is not after \"inception\"")));
        }
        if environment.is_open_to_all(file) {
            remarks.push("every user of this machine can read the private keys in it".to_owned());
        }
        let place = Place { file: u16::try_from(files.len()).unwrap_or(u16::MAX), line: 1 };
        files.push(file.clone());
        Ok(Some(ReadKeys {
            sets: sets.into_iter().map(|keys| KeySet { keys, place }).collect(),
            remarks,
            place,
        }))
    }
}

/// A key, what it does, and when its signatures are good.
struct Used<'k> {
    key: &'k ZoneKey,
    does: KeyUse,
    from: u64,
    to: u64,
}

impl Used<'_> {
    fn validity(&self) -> Validity {
        let (from, to) = (self.from as u32, self.to as u32);
        // There are no signatures yet, so none are kept.
        Validity { inception: from, expiration: to, jitter: 0, keep_after: to, now: from }
    }
}

/// Returns whether a client can wait for a signature.
fn is_quick(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::ECDSAP256SHA256 | Algorithm::ECDSAP384SHA384 | Algorithm::ED25519)
}

impl OwnKeys {
    /// Says how absence is proved: as erldns does, by a record for each question, as long as the
    /// keys are quick and nobody else serves the zone. Without a `pool` nothing can be signed
    /// later.
    fn denial(&self, sets: &[KeySet], pool: Option<&Arc<Pool>>) -> Denial {
        let are_quick = || sets.iter().all(|set| is_quick(set.keys.zsk.secret.algorithm()));
        match self.denial {
            Some(DenialKind::Nsec3) => {
                Denial::Nsec3(Nsec3Parameters { iterations: 0, salt: Box::default(), opts_out: false })
            }
            Some(DenialKind::Compact) if pool.is_some() => Denial::Compact,
            None if pool.is_some() && !self.is_given_away && are_quick() => Denial::Compact,
            Some(DenialKind::Compact | DenialKind::Nsec) | None => Denial::Nsec,
        }
    }

    /// Signs a zone with keys that came with it; an error says why that cannot be done.
    pub(super) fn sign(
        &self,
        zone: &Zone,
        sets: &[KeySet],
        hash_key: HashKey,
        pool: Option<&Arc<Pool>>,
    ) -> Result<Zone, String> {
        let denial = self.denial(sets, pool);
        let used = used(sets);
        let mut tree = Tree::new(zone.apex());
        zone.for_each_record(|owner, rtype, ttl, rdata| {
            tree.push(owner, rtype, ttl.seconds(), rdata);
        });
        tree.strip();
        let signer = Signer {
            keys: used
                .iter()
                .map(|used| SigningKey {
                    secret: &used.key.secret,
                    flags: used.key.flags,
                    does: used.does,
                    validity: Some(used.validity()),
                })
                .collect(),
            dnskey_ttl: tree.set(zone.apex(), Rtype::DNSKEY).map(dnssec::tree::Set::ttl),
            denial,
            validity: Validity { inception: 0, expiration: 0, jitter: 0, keep_after: 0, now: 0 },
            cds_digests: Vec::new(),
            asks_for_removal: false,
            has_csync: false,
            zonemd: None,
        };
        sign(&signer, &mut tree).map_err(|why| why.to_string())?;
        let mut builder = Builder::new(zone.apex(), hash_key);
        tree.for_each_record(|(owner, rtype, ttl, rdata)| {
            builder.add(&Record::new(owner, rtype, Ttl::new(ttl), rdata));
        });
        let built = builder.compile();
        let signed = built.zone.ok_or_else(|| {
            let first = built.findings.iter().find(|found| found.problem.level() == Level::Error);
            first.map_or_else(String::new, |found| format!("{}: {}", found.owner, found.problem))
        })?;
        let signed = match (&signer.denial, pool) {
            (Denial::Compact, Some(pool)) => {
                let keys = used.iter().filter(|used| used.does.signs_zone).map(|used| OnlineKey {
                    secret: Arc::clone(&used.key.secret),
                    tag: used.key.tag(),
                    good: Good::Between(used.from as u32, used.to as u32),
                });
                signed.signed_online(Arc::new(Online::new(zone.apex(), keys.collect(), Arc::clone(pool))))
            }
            _ => signed,
        };
        Ok(signed.with_own_keys())
    }
}

/// Returns every key once: one that is in several sets signs for the time of all of them.
fn used(sets: &[KeySet]) -> Vec<Used<'_>> {
    let mut all: Vec<Used<'_>> = Vec::new();
    let signs_keys = KeyUse { is_published: true, signs_keys: true, ..KeyUse::default() };
    let signs_zone = KeyUse { is_published: true, signs_zone: true, ..KeyUse::default() };
    for KeySet { keys, .. } in sets {
        for (key, does) in [(&keys.ksk, signs_keys), (&keys.zsk, signs_zone)] {
            let same = all.iter_mut().find(|used| {
                used.key.flags == key.flags
                    && used.key.secret.algorithm() == key.secret.algorithm()
                    && used.key.secret.public() == key.secret.public()
            });
            match same {
                Some(used) => {
                    used.from = used.from.min(keys.inception);
                    used.to = used.to.max(keys.until);
                }
                None => all.push(Used { key, does, from: keys.inception, to: keys.until }),
            }
        }
    }
    all
}

/// Signs on as many threads as pays.
fn sign(signer: &Signer<'_>, tree: &mut Tree) -> Result<(), Unsignable> {
    let threads = 1 + tree.len() / NAMES_PER_THREAD_MIN;
    let threads = match threads {
        1 => 1,
        wanted => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(wanted)),
    };
    if threads == 1 {
        return signer.sign(tree, &[]).map(drop);
    }
    signer.prepare(tree, &[])?;
    let parts = signer.parts(tree, threads);
    let outcomes: Vec<Result<_, Unsignable>> = std::thread::scope(|scope| {
        let work = |part| scope.spawn(move || signer.sign_part(part, || true));
        let workers: Vec<_> = parts.into_iter().map(work).collect();
        // A panic ends the process, so every thread comes to its end.
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    outcomes.into_iter().try_for_each(|outcome| outcome.map(drop))?;
    signer.finish(tree).map(drop)
}

/// Says what is unusual about the times of a key set, as they are at `now`.
pub(super) fn odd_time(set: &KeySet, now: u64) -> Option<String> {
    let (from, to) = (set.keys.inception, set.keys.until);
    if to <= now {
        let when = write_compact(to);
        return Some(format!(
            "signatures of this key set ended at {when} UTC: validating clients refuse them"
        ));
    }
    (from > now).then(|| {
        let when = write_compact(from);
        format!("signatures of this key set begin at {when} UTC: until then, validating clients refuse them")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dnssec::keys::Times;
    use dnssec::{KeySize, SecretKey, check_tree, flags_of};
    use wire::NameBuf;
    use zone::Proof;

    use super::super::check;
    use super::*;
    use environment::Memory;

    const KEY: HashKey = HashKey::new([1, 2]);
    const FROM: u64 = 1_795_000_000;
    const ZONE: &str =
        "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n*.w TXT x\nd NS ns.d\nns.d A 192.0.2.2\n";

    fn apex() -> NameBuf {
        NameBuf::from_text("example.org").expect("a name")
    }

    fn set(algorithm: Algorithm, to: u64) -> erldns::KeySet {
        let key = |is_entry_point| ZoneKey {
            owner: apex(),
            flags: flags_of(is_entry_point),
            secret: SecretKey::generate(algorithm, KeySize::Bits2048).expect("a key").into(),
            times: Times::default(),
        };
        erldns::KeySet { ksk: key(true), zsk: key(false), inception: FROM, until: to }
    }

    fn placed(keys: erldns::KeySet) -> KeySet {
        KeySet { keys, place: Place { file: 0, line: 1 } }
    }

    fn zone() -> Zone {
        let memory = Memory::new(&[("/z/org", ZONE)]);
        check(apex().as_name(), Path::new("/z/org"), KEY, &memory).expect("a file").zone.expect("a zone")
    }

    /// Returns the zone as it is signed, as a tree.
    fn tree(zone: &Zone) -> Tree {
        let mut tree = Tree::new(zone.apex());
        zone.for_each_record(|owner, rtype, ttl, rdata| {
            tree.push(owner, rtype, ttl.seconds(), rdata);
        });
        tree
    }

    #[test]
    fn every_key_set_signs_everything_for_its_time() {
        let to = [FROM + 3600, FROM + 7200];
        let sets = [placed(set(Algorithm::ECDSAP256SHA256, to[0])), placed(set(Algorithm::ED25519, to[1]))];
        for (denial, proof) in [
            (None, Proof::Nsec),
            (Some(DenialKind::Nsec), Proof::Nsec),
            (Some(DenialKind::Nsec3), Proof::Nsec3),
        ] {
            let own = OwnKeys { denial, is_given_away: true, ..OwnKeys::default() };
            let signed = own.sign(&zone(), &sets, KEY, None).expect("signatures");
            assert!(signed.facts().has_own_keys && signed.facts().proof == proof);
            assert_eq!(signed.facts().serial, 1, "the serial is that of the file");
            let mut tree = tree(&signed);
            assert_eq!(check_tree(&mut tree, FROM as u32 + 60, 10), [""; 0]);
            let soa = tree.set(apex().as_name(), Rtype::SOA).expect("a SOA");
            let mut ends: Vec<(Algorithm, u32)> = soa
                .signatures()
                .filter_map(dnssec::Rrsig::parse)
                .map(|rrsig| (rrsig.algorithm, rrsig.expiration))
                .collect();
            ends.sort_by_key(|end| end.1);
            assert_eq!(
                ends,
                [(Algorithm::ECDSAP256SHA256, to[0] as u32), (Algorithm::ED25519, to[1] as u32)]
            );
        }
    }

    #[test]
    fn absence_is_proved_for_each_question_if_keys_are_quick_and_nobody_else_has_the_zone() {
        let pool = Arc::new(Pool::new(1 << 16, 100, KEY));
        let check = |algorithm, own: OwnKeys, pool: Option<&Arc<Pool>>, expect| {
            let sets = [placed(set(algorithm, FROM + 3600))];
            let signed = own.sign(&zone(), &sets, KEY, pool).expect("signatures");
            assert_eq!(signed.facts().proof, expect, "{algorithm} {own:?}");
        };
        let own = OwnKeys::default;
        check(Algorithm::ECDSAP256SHA256, own(), Some(&pool), Proof::Compact);
        check(Algorithm::RSASHA256, own(), Some(&pool), Proof::Nsec);
        let compact = OwnKeys { denial: Some(DenialKind::Compact), ..own() };
        check(Algorithm::RSASHA256, compact, Some(&pool), Proof::Compact);
        check(Algorithm::ED25519, OwnKeys { is_given_away: true, ..own() }, Some(&pool), Proof::Nsec);
        check(
            Algorithm::ED25519,
            OwnKeys { denial: Some(DenialKind::Nsec), ..own() },
            Some(&pool),
            Proof::Nsec,
        );
        check(Algorithm::ED25519, own(), None, Proof::Nsec);
    }

    #[test]
    fn a_key_that_is_in_several_sets_signs_once_for_the_time_of_all() {
        let first = set(Algorithm::ED25519, FROM + 3600);
        let ksk = ZoneKey {
            owner: apex(),
            flags: first.ksk.flags,
            secret: Arc::clone(&first.ksk.secret),
            times: Times::default(),
        };
        let second = erldns::KeySet { ksk, until: FROM + 7200, ..set(Algorithm::ED25519, 0) };
        let sets = [placed(first), placed(second)];
        assert_eq!(used(&sets).len(), 3);
        let own = OwnKeys { is_given_away: true, ..OwnKeys::default() };
        let tree = tree(&own.sign(&zone(), &sets, KEY, None).expect("signatures"));
        let keys = tree.set(apex().as_name(), Rtype::DNSKEY).expect("keys");
        let ends: Vec<u32> =
            keys.signatures().filter_map(dnssec::Rrsig::parse).map(|rrsig| rrsig.expiration).collect();
        assert_eq!((keys.records().count(), ends), (3, vec![FROM as u32 + 7200]));
    }

    #[test]
    fn what_does_not_fit_together_is_not_signed() {
        let rsa = set(Algorithm::RSASHA256, FROM + 3600);
        let mixed = erldns::KeySet { ksk: rsa.ksk, ..set(Algorithm::ED25519, FROM + 3600) };
        let why = OwnKeys::default().sign(&zone(), &[placed(mixed)], KEY, None).err().expect("no signatures");
        assert!(why.contains("no key of algorithm"), "{why}");
    }

    #[test]
    fn a_zone_of_a_master_file_has_its_keys_beside_it() {
        let sets = erldns::write(&[set(Algorithm::ED25519, FROM + 3600)]).expect("key sets");
        let wrong = sets.replace("\"zsk_alg\": 15", "\"zsk_alg\": 13");
        let memory = Memory::new(&[("/z/org", ZONE), ("/k/good", &sets), ("/k/wrong", &wrong)]);
        let read = |file: &str, needed| {
            let own = OwnKeys { file: Some((file.into(), needed)), ..OwnKeys::default() };
            let apex = apex();
            let checked = check::check_with(apex.as_name(), Path::new("/z/org"), (KEY, None), &own, &memory);
            let checked = checked.expect("a file");
            let lines: Vec<String> = checked
                .diagnostics
                .iter()
                .filter(|found| found.severity == diagnostic::Severity::Error)
                .map(diagnostic::Diagnostic::line)
                .collect();
            (checked.zone.map(|zone| zone.facts().has_own_keys), lines, checked.files.len())
        };
        let (zone, errors, files) = read("/k/good", Needed::Yes);
        assert_eq!((zone, errors.len(), files), (Some(true), 0, 2));
        let (zone, errors, files) = read("/k/none", Needed::No);
        assert_eq!((zone, errors.len(), files), (Some(false), 0, 1));
        for (file, expect) in [("/k/none", "key sets: cannot be read"), ("/k/wrong", "of another algorithm")]
        {
            let (zone, errors, _) = read(file, Needed::Yes);
            assert!(zone.is_none() && errors.len() == 1 && errors[0].contains(expect), "{errors:?}");
            assert!(!errors[0].contains("PRIVATE KEY"), "{errors:?}");
        }
    }

    #[test]
    fn no_message_about_a_file_shows_a_key_of_it() {
        let sets = erldns::write(&[set(Algorithm::ECDSAP256SHA256, FROM + 3600)]).expect("key sets");
        let secret = sets.split("\\n").nth(1).expect("a line of Base64").to_owned();
        let record = |rtype: &str, data: &str| {
            format!(r#"{{"name": "example.org", "type": "{rtype}", "ttl": 60, "data": {{{data}}}}}"#)
        };
        let text = format!(
            "[{{\"name\": \"example.org\", \"records\": [{}], \"keys\": {}}}]",
            record("A", r#""ip": "192.0.2.300""#),
            sets.replace('\n', " ").replace("\"ksk_alg\": 13", "\"ksk_alg\": 14"),
        );
        let memory = Memory::new(&[("/z/org.json", &text)]);
        let checked =
            check(apex().as_name(), Path::new("/z/org.json"), KEY, &memory).expect("a file that can be read");
        let shown: String = checked.diagnostics.iter().map(diagnostic::Diagnostic::human).collect();
        assert!(checked.zone.is_none() && shown.contains("192.0.2.300"), "{shown}");
        assert!(shown.contains("\"ksk\"") && shown.contains("algorithm 14"), "{shown}");
        assert!(!shown.contains(secret.get(..20).expect("a part")), "{shown}");
    }
}
