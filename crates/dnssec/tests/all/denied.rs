//! Whatever a zone that was signed here does not have is proved absent by its records, and nothing
//! else is: every name and type is asked for, with all of the records and with some.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use dnssec::proof::{Delegation, DenialRecord, Denials, HashBudget, ITERATIONS_MAX, Proved};
use dnssec::tree::Tree;
use dnssec::{Denial, Nsec3Parameters, Signer, Validity};
use proptest::prelude::*;
use support::{name, rdata};
use wire::{Name, NameBuf, Rtype};

const APEX: &str = "example.";
const LABELS: [&str; 4] = ["a", "b", "C", "*"];
/// The same, and a label that no name has.
const ASKED_LABELS: [&str; 5] = ["A", "b", "c", "*", "\\001z"];
const ASKED_TYPES: [Rtype; 7] =
    [Rtype::A, Rtype::TXT, Rtype::CNAME, Rtype::NS, Rtype::DS, Rtype::DNAME, Rtype::SOA];

/// What names have, by their lower-case form.
#[derive(Debug)]
struct Model(BTreeMap<String, (NameBuf, BTreeSet<Rtype>)>);

impl Model {
    fn types(&self, name: Name<'_>) -> Option<&BTreeSet<Rtype>> {
        self.0.get(&name.to_string().to_lowercase()).map(|(_, types)| types)
    }

    fn is_cut(&self, name: Name<'_>) -> bool {
        self.types(name).is_some_and(|types| types.contains(&Rtype::NS) && !types.contains(&Rtype::SOA))
    }

    /// Returns whether a name is below a delegation or a DNAME.
    fn is_hidden(&self, name: Name<'_>) -> bool {
        let above = std::iter::successors(name.parent(), |name| name.parent());
        above.into_iter().any(|name| {
            self.is_cut(name) || self.types(name).is_some_and(|types| types.contains(&Rtype::DNAME))
        })
    }

    fn exists(&self, name: Name<'_>) -> bool {
        self.0
            .values()
            .any(|(owner, _)| owner.as_name().is_at_or_below(name) && !self.is_hidden(owner.as_name()))
    }

    fn wildcard(&self, name: Name<'_>) -> NameBuf {
        let mut encloser = name;
        while !self.exists(encloser) {
            encloser = encloser.parent().expect("the apex exists");
        }
        NameBuf::below(b"\x01*", encloser).expect("a short name")
    }

    /// Returns whether a name, or its closest encloser, is in a chain that leaves out unsigned
    /// delegations. If not, a wildcard further up may be in the way of a proof.
    fn is_in_opt_out_chain(&self, name: Name<'_>) -> bool {
        let encloser = std::iter::successors(Some(name), |name| name.parent());
        let encloser = encloser.into_iter().find(|name| self.exists(*name)).expect("the apex exists");
        self.0.values().any(|(owner, types)| {
            let owner = owner.as_name();
            owner.is_at_or_below(encloser)
                && !self.is_hidden(owner)
                && (!self.is_cut(owner) || types.contains(&Rtype::DS))
        })
    }

    fn has_name_error(&self, name: Name<'_>) -> bool {
        !self.is_hidden(name) && !self.exists(name) && !self.exists(self.wildcard(name).as_name())
    }

    fn lacks(&self, name: Name<'_>, rtype: Rtype) -> bool {
        let Some(types) = self.types(name) else { return true };
        let is_told = match rtype {
            Rtype::DS => !types.contains(&Rtype::SOA),
            _ => !self.is_cut(name),
        };
        is_told && !types.contains(&rtype) && !types.contains(&Rtype::CNAME)
    }

    fn has_no_data(&self, name: Name<'_>, rtype: Rtype) -> bool {
        if self.is_hidden(name) {
            return false;
        }
        if self.exists(name) {
            return self.lacks(name, rtype);
        }
        let wildcard = self.wildcard(name);
        self.exists(wildcard.as_name()) && self.lacks(wildcard.as_name(), rtype)
    }

    fn delegation(&self, name: Name<'_>) -> Option<Delegation> {
        let has = |rtype| self.types(name).is_some_and(|types| types.contains(&rtype));
        if self.is_hidden(name) || has(Rtype::SOA) || has(Rtype::DS) || has(Rtype::CNAME) {
            return None;
        }
        Some(if has(Rtype::NS) { Delegation::Unsigned } else { Delegation::NoCut })
    }
}

fn data(rtype: Rtype) -> Vec<u8> {
    let text = match rtype {
        Rtype::A => "192.0.2.1",
        Rtype::TXT => "x",
        Rtype::DS => "1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        Rtype::SOA => "ns.example. admin.example. 1 2 3 4 5",
        _ => "target.example.net.",
    };
    rdata(rtype, text)
}

fn tree(model: &Model, denial: Denial) -> Tree {
    let apex = name(APEX);
    let mut tree = Tree::new(apex.as_name());
    for (owner, types) in model.0.values() {
        for &rtype in types {
            assert!(tree.push(owner.as_name(), rtype, 300, &data(rtype)));
        }
    }
    let signer = Signer {
        keys: Vec::new(),
        dnskey_ttl: None,
        denial,
        validity: Validity { inception: 0, expiration: 9, jitter: 0, keep_after: 0, now: 1 },
        cds_digests: Vec::new(),
        asks_for_removal: false,
        has_csync: false,
        zonemd: None,
    };
    signer.prepare(&mut tree, &[]).expect("a zone that can be signed");
    tree
}

struct Row {
    owner: NameBuf,
    rtype: Rtype,
    rdata: Vec<u8>,
}

fn rows(tree: &Tree) -> Vec<Row> {
    let mut rows = Vec::new();
    tree.for_each_record(|(owner, rtype, _, rdata)| {
        if matches!(rtype, Rtype::NSEC | Rtype::NSEC3) {
            rows.push(Row { owner: owner.to_buf(), rtype, rdata: rdata.to_vec() });
        }
    });
    rows
}

fn record(row: &Row) -> DenialRecord<'_> {
    let owner = row.owner.as_name();
    let is_wild = owner.labels().next() == Some(b"*");
    let labels = owner.label_count() as u8 - u8::from(is_wild);
    DenialRecord { owner, rtype: row.rtype, rdata: &row.rdata, labels }
}

/// All names of up to three labels below the apex.
fn asked() -> Vec<NameBuf> {
    let mut all = vec![name(APEX)];
    let mut from = 0;
    for _ in 0..3 {
        let to = all.len();
        for i in from..to {
            let below =
                |label: &&str| NameBuf::from_text_below(label, all[i].as_name()).expect("a short name");
            let new: Vec<NameBuf> = ASKED_LABELS.iter().map(below).collect();
            all.extend(new);
        }
        from = to;
    }
    all
}

prop_compose! {
    fn a_model()(
        names in prop::collection::vec((prop::collection::vec(0..4_usize, 1..4), 0..6_u8), 1..9),
    ) -> Model {
        let mut model = BTreeMap::new();
        model.insert(APEX.to_owned(), (name(APEX), BTreeSet::from([Rtype::SOA, Rtype::NS])));
        for (labels, kind) in names {
            let text: Vec<&str> = labels.iter().map(|&label| LABELS[label]).collect();
            let owner = name(&format!("{}.{APEX}", text.join(".")));
            // What a delegation or a DNAME at a wildcard means, nobody has said.
            let kind = if text[0] == "*" { kind % 3 } else { kind };
            let types = match kind {
                0 => BTreeSet::from([Rtype::A]),
                1 => BTreeSet::from([Rtype::A, Rtype::TXT]),
                2 => BTreeSet::from([Rtype::CNAME]),
                3 => BTreeSet::from([Rtype::NS]),
                4 => BTreeSet::from([Rtype::NS, Rtype::DS]),
                _ => BTreeSet::from([Rtype::DNAME]),
            };
            model.insert(owner.to_string().to_lowercase(), (owner, types));
        }
        Model(model)
    }
}

fn budget() -> HashBudget {
    HashBudget::new(ITERATIONS_MAX, 1000)
}

/// Asks every question, with all records and with those whose bit in `some` is set.
fn check(model: &Model, denial: &Denial, some: u64) {
    let rows = rows(&tree(model, denial.clone()));
    let apex = name(APEX);
    let all = Denials::new(apex.as_name(), rows.iter().map(record));
    let chosen = rows.iter().enumerate().filter(|(i, _)| some & (1 << (i % 64)) != 0);
    let some = Denials::new(apex.as_name(), chosen.map(|(_, row)| record(row)));
    let opts_out = matches!(denial, Denial::Nsec3(parameters) if parameters.opts_out);
    let judge = |qname: Name<'_>, what: &str, truth: bool, found: [Option<Proved>; 2]| {
        let is_provable = !opts_out || model.is_in_opt_out_chain(qname);
        assert!(found[0].is_some() || !truth || !is_provable, "{what} is not proved");
        for found in found {
            let is_wrong = found == Some(Proved::Fully) && !truth;
            assert!(!is_wrong && (opts_out || found != Some(Proved::OptOut)), "{what} is proved: {found:?}");
        }
    };
    for qname in asked() {
        let qname = qname.as_name();
        let found = [&all, &some].map(|denials| denials.name_error(qname, &mut budget()).ok());
        judge(qname, &format!("{denial:?}: {qname} NXDOMAIN"), model.has_name_error(qname), found);
        for qtype in ASKED_TYPES {
            let found = [&all, &some].map(|denials| denials.no_data(qname, qtype, &mut budget()).ok());
            judge(qname, &format!("{denial:?}: {qname} {qtype}"), model.has_no_data(qname, qtype), found);
        }
        let truth = model.delegation(qname);
        for (denials, is_all) in [(&all, true), (&some, false)] {
            let found = denials.delegation(qname, &mut budget()).ok();
            let is_right = match found {
                Some(Delegation::OptOut) => opts_out,
                None => !is_all || truth.is_none(),
                found => found == truth,
            };
            assert!(is_right, "{denial:?}: delegation {qname}: {found:?}, {truth:?}");
        }
        for labels in 1..qname.label_count() {
            let next_closer = qname.suffix(labels + 1);
            if model.is_hidden(next_closer) {
                continue;
            }
            let truth = !model.exists(next_closer);
            let found =
                [&all, &some].map(|denials| denials.expansion(qname, labels as u8, &mut budget()).ok());
            judge(qname, &format!("{denial:?}: {qname} from {labels} labels"), truth, found);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_a_zone_does_not_have_is_proved_and_nothing_else(model in a_model(), some in any::<u64>()) {
        let hashed = |opts_out| {
            Denial::Nsec3(Nsec3Parameters { iterations: 1, salt: [7].into(), opts_out })
        };
        for denial in [Denial::Nsec, hashed(false), hashed(true)] {
            check(&model, &denial, some);
        }
    }
}
