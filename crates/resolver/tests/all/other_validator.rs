//! The validator of the crate `domain`, which has another author and other cryptography, makes of
//! generated zones what ours does: of zones as they were signed, and of tampered ones.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use cache::Security;
use domain::base::Message as TheirMessage;
use domain::dnssec::validator::anchor::TrustAnchors;
use domain::dnssec::validator::context::{ValidationContext, ValidationState};
use domain::net::client::request::{ComposeRequest, Error, GetResponse, RequestMessage, SendRequest};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use resolver::Minimisation;
use wire::{Class, Query, Question, Rtype};
use zone::Zones;

use crate::agreement::{pick, signed_internet, signed_internet_of};
use crate::signed::Signed;
use crate::world::{Seen, name, signed_reply};

/// Somebody who has all zones, and answers their validator's questions.
#[derive(Clone)]
struct All(Arc<Zones>);

/// A reply that is there.
#[derive(Debug)]
struct Reply(Result<TheirMessage<Bytes>, Error>);

impl All {
    fn reply(&self, question: &Question<'_>) -> TheirMessage<Bytes> {
        let octets = signed_reply(&self.0, question, true);
        TheirMessage::from_octets(Bytes::from(octets)).expect("a message")
    }
}

impl SendRequest<RequestMessage<Vec<u8>>> for All {
    fn send_request(&self, request: RequestMessage<Vec<u8>>) -> Box<dyn GetResponse + Send + Sync> {
        let query = request.to_vec().expect("a query");
        let query = Query::parse(&query).expect("well formed");
        Box::new(Reply(Ok(self.reply(&query.question))))
    }
}

impl GetResponse for Reply {
    fn get_response(
        &mut self,
    ) -> Pin<Box<dyn Future<Output = Result<TheirMessage<Bytes>, Error>> + Send + Sync + '_>> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

/// Runs what waits for nobody.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
    panic!("it waits for something");
}

/// Their validator, with all zones.
struct Theirs {
    all: All,
    context: ValidationContext<All>,
}

impl Theirs {
    /// Returns one that trusts what our resolver does.
    fn new(signed: &Signed, zones: Zones) -> Self {
        let all = All(Arc::new(zones));
        let mut anchors = String::new();
        for anchor in &signed.anchors {
            for ds in &anchor.ds {
                let data = wire::rdata::display(Rtype::DS, ds, 0..ds.len());
                anchors += &format!("{} 3600 IN DS {data}\n", anchor.zone);
            }
        }
        let anchors = TrustAnchors::from_u8(anchors.as_bytes()).expect("anchors");
        Self { context: ValidationContext::new(anchors, all.clone()), all }
    }

    /// Returns its verdict, and why.
    fn verdict(&self, text: &str, rtype: Rtype) -> (ValidationState, String) {
        let qname = name(text);
        let question = Question { qname: qname.as_name(), qtype: rtype, qclass: Class::IN };
        let mut reply = self.all.reply(&question);
        let judged = run(self.context.validate_msg::<Bytes, Vec<u8>>(&mut reply));
        let (verdict, why) = judged.unwrap_or_else(|error| panic!("{text} {rtype}: {error}"));
        (verdict, why.map_or_else(String::new, |why| why.to_string()))
    }
}

/// Returns what ours says; `None` if it has no answer for another reason.
fn ours(seen: &Seen) -> Option<ValidationState> {
    match (&seen.failure, seen.security) {
        (Some(failure), _) if failure == "bogus" => Some(ValidationState::Bogus),
        (Some(_), _) => None,
        (None, Security::Secure) => Some(ValidationState::Secure),
        (None, Security::Insecure) => Some(ValidationState::Insecure),
        (None, Security::Indeterminate) => Some(ValidationState::Indeterminate),
        (None, other) => panic!("{other:?} without a failure"),
    }
}

/// What becomes of a record.
type Change = Box<dyn Fn(&str) -> Option<String>>;

/// Removes or changes some records of signed zones of a hundred; returns a function that does, and
/// what it changes.
fn tampering(signed: &Signed, rng: &mut StdRng) -> (Change, String) {
    let mut changed: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in signed.texts.values().flat_map(|text| text.lines()) {
        let rtype = line.split_whitespace().nth(3).unwrap_or_default();
        match rtype {
            "RRSIG" | "NSEC" | "NSEC3" | "DS" if rng.random_bool(0.03) => {
                changed.insert(line.to_owned(), None);
            }
            "A" if line.contains("198.51.100.") && rng.random_bool(0.1) => {
                changed.insert(line.to_owned(), Some(line.replace("198.51.100.", "198.51.101.")));
            }
            _ => {}
        }
    }
    let shown = changed.iter().map(|(line, now)| format!("\n{line} -> {now:?}")).collect();
    (Box::new(move |line: &str| changed.get(line).cloned().unwrap_or_else(|| Some(line.to_owned()))), shown)
}

/// What they find wrong, mistakenly, where the NSEC record that proves an empty non-terminal has a
/// wildcard as its owner: its signature counts a label less, as that of an expansion does.
const THEIR_MISTAKE: &str = "ENT NSEC for DS is expanded wildcard";

/// What they say where a proof lacks something, and the range of the next closer name opts out.
const THEIR_PROOF: &str = "NSEC3 with Opt-Out";

/// Asks both for names of a generated internet; returns how often they said what.
///
/// They ask for the DS records of each name from the root down, ours takes what referrals say. So
/// that both see the same, what was tampered with has no empty non-terminals above zones, and whole
/// names are asked for.
fn agree(seed: u64, is_tampered: bool) -> BTreeMap<String, u32> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut signed, names, _) = match is_tampered {
        true => signed_internet_of(&mut rng, Minimisation::Off, &[""]),
        false => signed_internet(&mut rng),
    };
    let (change, changed) = match is_tampered {
        true => tampering(&signed, &mut rng),
        false => (Box::new(|line: &str| Some(line.to_owned())) as Change, String::new()),
    };
    signed.tamper_all(&change);
    let theirs = Theirs::new(&signed, signed.all(&change));
    let mut counts = BTreeMap::new();
    for _ in 0..16 {
        let qname = pick(&names, &mut rng).to_string();
        let types = [Rtype::A, Rtype::A, Rtype::TXT, Rtype::MX, Rtype::DS, Rtype::DNSKEY, Rtype::SOA];
        let rtype = types[rng.random_range(0..types.len())];
        // Each by itself: what one question taught is a proof for the next one.
        signed.world.forget();
        let seen = signed.world.resolve(&qname, rtype);
        let Some(ours) = ours(&seen) else { continue };
        let (theirs, why) = theirs.verdict(&qname, rtype);
        if why.contains(THEIR_MISTAKE) && ours != ValidationState::Bogus {
            continue;
        }
        // Of a denial of DS records they look neither at the SOA record nor, where ranges opt out,
        // at the closest encloser (RFC 5155 §8.9).
        if (ours, theirs) == (ValidationState::Bogus, ValidationState::Insecure) {
            continue;
        }
        // They want proof of the wildcard even where the name may be that of a delegation without
        // signatures, of which nothing is proved (RFC 5155 §6).
        if (ours, theirs) == (ValidationState::Insecure, ValidationState::Bogus) && why.contains(THEIR_PROOF)
        {
            continue;
        }
        assert_eq!(ours, theirs, "seed {seed}: {qname} {rtype}: {why}: {seen:?}{changed}");
        *counts.entry(format!("{ours:?}")).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn another_validator_agrees_on_zones_as_they_were_signed(seed: u64) {
        let counts = agree(seed, false);
        prop_assert!(!counts.contains_key("Bogus"), "{counts:?}");
    }

    #[test]
    fn another_validator_agrees_on_zones_that_were_tampered_with(seed: u64) {
        agree(seed, true);
    }
}

#[test]
fn all_kinds_of_verdicts_are_compared() {
    let mut all = BTreeMap::new();
    for seed in 0..8 {
        for (verdict, count) in agree(seed, true) {
            *all.entry(verdict).or_default() += count;
        }
    }
    for verdict in ["Secure", "Insecure", "Bogus"] {
        assert!(all.get(verdict).is_some_and(|&count: &u32| count > 5), "{all:?}");
    }
}

/// A wildcard's own record is missing in the proof that a name in a range that opts out has no
/// data.
#[test]
fn a_name_in_a_range_that_opts_out_is_insecure_whatever_else_is_missing() {
    agree(9_872_043_152_498_863_538, true);
}
