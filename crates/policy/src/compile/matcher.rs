//! Tests to matchers.

use std::sync::Arc;

use diagnostic::{At, Problem, Span};
use engine::ListenerId;
use engine::matchers::clock::Hours;
use engine::matchers::identity::Macs;
use engine::matchers::rate::Rate;
use engine::matchers::text::{self, Regex};
use engine::matchers::{Matcher, TypeSet};
use engine::snapshot::{CONNECTION_TESTS_MAX, ConnectionTest, ConnectionText};
use lists::Term;
use plan::listeners::LOCAL_LISTENERS_FROM;
use sets::{AddressSet, NameSet, ServerRule};
use wire::Rtype;

use super::{Emitter, Environment};
use crate::Test;
use crate::condition::{AddressTerm, CertificatePart, NameTerm, TextOperator, TextSource, TextTest};

/// Returns matchers of which one holds when the test does; none: it never does.
pub(super) fn compile(emitter: &mut Emitter<'_>, test: &Test, place: Span) -> Vec<Matcher> {
    if let Some(found) = of_query(emitter.environment, test) {
        return found;
    }
    let one = match test {
        Test::Listener(names) => Matcher::Listener(listeners(emitter, names)),
        Test::Rate(rate) => {
            // Two rules that say the same count apart: one query must not count twice.
            let mut key = format!("{rate:?}");
            while emitter.rate_cells.contains_key(&key) {
                key.push('+');
            }
            let cells = emitter.environment.rate_cells.get(&key).map(Arc::clone).unwrap_or_default();
            emitter.rate_cells.insert(key, Arc::clone(&cells));
            Matcher::Rate(Box::new(Rate::new(rate.subject, rate.count, rate.period_ms, rate.burst, cells)))
        }
        Test::Random(share) => Matcher::Random(*share),
        Test::Mark(marks) => match marks.as_slice() {
            [mark] => Matcher::Mark(*mark),
            marks => Matcher::Marks(marks.iter().fold(0, |bits, mark| bits | 1 << (mark & 63))),
        },
        Test::Answer => Matcher::Answer,
        Test::Answered => Matcher::Answered,
        Test::Rcode(rcodes) => Matcher::Rcode(rcodes.as_slice().into()),
        Test::Security(states) => Matcher::Security(states.as_slice().into()),
        Test::AnswerType(types) => Matcher::AnswerType(type_set(types)),
        Test::AnswerAddress(terms) => Matcher::AnswerAddress(addresses(emitter.environment, terms)),
        Test::AnswerCname(terms) => Matcher::AnswerCname(names(emitter.environment, terms)),
        Test::ServerName(terms) => return server_names(emitter.environment, terms),
        Test::ServerAddress(terms) => return server_addresses(emitter.environment, terms),
        Test::Listed(sets) => {
            let lists = sets.iter().filter_map(|set| emitter.environment.sets.any_list(&set.value));
            return lists.map(Matcher::Ruled).collect();
        }
        Test::Text(source, test) => match &source.value {
            TextSource::AnswerAddress => text_matcher(text::TextSource::AnswerAddress, text_test(test)),
            TextSource::ServerName => connection(emitter, ConnectionText::ServerName, test, place),
            TextSource::Path => connection(emitter, ConnectionText::Path, test, place),
            TextSource::Header(name) => {
                connection(emitter, ConnectionText::Header(name.as_str().into()), test, place)
            }
            TextSource::Certificate(part) => {
                let (text, test) = certificate(*part, test);
                connection(emitter, text, &test, place)
            }
            // Worked out before, or of the query.
            TextSource::Qtype
            | TextSource::Rcode
            | TextSource::Mark
            | TextSource::Env(_)
            | TextSource::Qname
            | TextSource::Client
            | TextSource::ClientId => return Vec::new(),
        },
        // Worked out before, or of the query.
        Test::Qclass(_)
        | Test::Opcode(_)
        | Test::Env(_)
        | Test::Qname(_)
        | Test::Qtype(_)
        | Test::Flag(_)
        | Test::WantsDnssec
        | Test::Edns
        | Test::EdnsOption(_)
        | Test::Number(..)
        | Test::Client(_)
        | Test::ClientMac(_)
        | Test::Transport(_)
        | Test::Now(_)
        | Test::PtrAddress(_) => return Vec::new(),
    };
    vec![one]
}

/// Does the same for tests that look at nothing but the query, its client and the time; `None` for
/// others.
pub(super) fn of_query(environment: &Environment<'_>, test: &Test) -> Option<Vec<Matcher>> {
    let one = match test {
        Test::Qname(terms) => return Some(names_or_lists(environment, terms)),
        Test::Qtype(types) => Matcher::Qtype(type_set(types)),
        Test::Flag(flag) => Matcher::Flag(*flag),
        Test::WantsDnssec => Matcher::WantsDnssec,
        Test::Edns => Matcher::Edns,
        Test::EdnsOption(codes) => Matcher::EdnsOption(codes.as_slice().into()),
        Test::Number(of, min, max) => Matcher::Number { of: *of, min: *min, max: *max },
        Test::Client(terms) => Matcher::Client(addresses(environment, terms)),
        Test::ClientMac(macs) => Matcher::ClientMac(Macs::new(macs.clone())),
        Test::Transport(terms) => Matcher::Transport(terms.iter().map(|term| term.value).collect()),
        Test::Now(hours) => Matcher::Now(Box::new(Hours::new(hours.windows.clone(), hours.offsets()))),
        Test::PtrAddress(terms) => Matcher::ReverseAddress(addresses(environment, terms)),
        Test::Text(source, test) => match &source.value {
            TextSource::Qname => text_matcher(text::TextSource::Qname, text_test(test)),
            TextSource::Client => text_matcher(text::TextSource::Client, text_test(test)),
            TextSource::ClientId => Matcher::ClientId(text_test(test)),
            TextSource::Qtype
            | TextSource::Rcode
            | TextSource::Mark
            | TextSource::Env(_)
            | TextSource::AnswerAddress
            | TextSource::ServerName
            | TextSource::Path
            | TextSource::Header(_)
            | TextSource::Certificate(_) => return None,
        },
        Test::Qclass(_)
        | Test::Opcode(_)
        | Test::Env(_)
        | Test::Listener(_)
        | Test::Random(_)
        | Test::Rate(_)
        | Test::Mark(_)
        | Test::Answer
        | Test::Answered
        | Test::Rcode(_)
        | Test::Security(_)
        | Test::AnswerType(_)
        | Test::AnswerAddress(_)
        | Test::AnswerCname(_)
        | Test::ServerName(_)
        | Test::ServerAddress(_)
        | Test::Listed(_) => return None,
    };
    Some(vec![one])
}

fn text_matcher(source: text::TextSource, test: text::TextTest) -> Matcher {
    Matcher::Text(Box::new((source, test)))
}

/// Returns what looks at the name asked for: sets with exceptions look at type and client too.
fn names_or_lists(environment: &Environment<'_>, terms: &[At<NameTerm>]) -> Vec<Matcher> {
    let list = |term: &At<NameTerm>| match &term.value {
        NameTerm::Set(name) => environment.sets.list(name),
        NameTerm::Pattern(_) => None,
    };
    let (lists, plain): (Vec<_>, Vec<_>) =
        terms.iter().cloned().map(|term| (list(&term), term)).partition(|(list, _)| list.is_some());
    let mut matchers: Vec<Matcher> =
        lists.into_iter().filter_map(|(list, _)| list.map(Matcher::Listed)).collect();
    if !plain.is_empty() {
        let plain: Vec<At<NameTerm>> = plain.into_iter().map(|(_, term)| term).collect();
        matchers.push(Matcher::Qname(names(environment, &plain)));
    }
    matchers
}

/// Returns what looks at the names of name servers: of response policy zones the rules on these.
fn server_names(environment: &Environment<'_>, terms: &[At<NameTerm>]) -> Vec<Matcher> {
    let lists = terms.iter().filter_map(|term| match &term.value {
        NameTerm::Set(name) => environment.sets.list(name),
        NameTerm::Pattern(_) => None,
    });
    let lists = lists.filter(|list| list.looks_at_servers());
    let mut matchers: Vec<Matcher> =
        lists.map(|list| Matcher::ServerListed(list, ServerRule::Name)).collect();
    let names = names(environment, terms);
    if !names.is_empty() || matchers.is_empty() {
        matchers.push(Matcher::ServerName(names));
    }
    matchers
}

/// Does the same for their addresses. Those of other rules of response policy zones are for
/// answers.
fn server_addresses(environment: &Environment<'_>, terms: &[At<AddressTerm>]) -> Vec<Matcher> {
    let list = |term: &At<AddressTerm>| match &term.value {
        AddressTerm::Set(name) => environment.sets.list(name).filter(|list| list.has_zones()),
        AddressTerm::Prefixes(_) => None,
    };
    let (lists, plain): (Vec<_>, Vec<_>) =
        terms.iter().cloned().map(|term| (list(&term), term)).partition(|(list, _)| list.is_some());
    let lists = lists.into_iter().filter_map(|(list, _)| list);
    let mut matchers: Vec<Matcher> =
        lists.map(|list| Matcher::ServerListed(list, ServerRule::Address)).collect();
    if !plain.is_empty() {
        let plain: Vec<At<AddressTerm>> = plain.into_iter().map(|(_, term)| term).collect();
        matchers.push(Matcher::ServerAddress(addresses(environment, &plain)));
    }
    matchers
}

fn names(environment: &Environment<'_>, terms: &[At<NameTerm>]) -> Arc<NameSet> {
    environment.sets.names(terms.iter().map(|term| match &term.value {
        NameTerm::Pattern(pattern) => Term::Inline(pattern),
        NameTerm::Set(name) => Term::Set(name),
    }))
}

fn addresses(environment: &Environment<'_>, terms: &[At<AddressTerm>]) -> Arc<AddressSet> {
    environment.sets.addresses(terms.iter().map(|term| match &term.value {
        AddressTerm::Prefixes(some) => Term::Inline(some.as_slice()),
        AddressTerm::Set(name) => Term::Set(name),
    }))
}

/// Returns the numbers of listeners: those that the server was started with.
fn listeners(emitter: &mut Emitter<'_>, names: &[At<String>]) -> Box<[ListenerId]> {
    let mut ids = Vec::new();
    for name in names {
        let before = ids.len();
        ids.extend(listener_ids(emitter.environment, &name.value));
        if ids.len() == before {
            emitter.problems.push(
                Problem::warning(name.span, format!("listener \"{}\" is not open yet", name.value))
                    .hint("listeners are opened when the server is started"),
            );
        }
    }
    ids.into_boxed_slice()
}

/// Returns the numbers of the listeners of this name that are open.
pub(super) fn listener_ids<'p>(
    environment: &'p Environment<'_>,
    name: &'p str,
) -> impl Iterator<Item = ListenerId> + 'p {
    let sockets =
        (0..).zip(environment.listeners).chain((LOCAL_LISTENERS_FROM..).zip(environment.local_sockets));
    sockets.filter(move |(_, other)| other.as_deref() == Some(name)).map(|(number, _)| ListenerId(number))
}

/// Returns what looks at the outcome of a test of the connection, which is made when that begins.
fn connection(emitter: &mut Emitter<'_>, text: ConnectionText, test: &TextTest, place: Span) -> Matcher {
    let bit = emitter.connection_tests.len();
    if bit >= CONNECTION_TESTS_MAX {
        emitter.problems.push(Problem::error(
            place,
            format!(
                "more than {CONNECTION_TESTS_MAX} tests of server names, paths, headers and certificates"
            ),
        ));
        return Matcher::Constant(false);
    }
    emitter.connection_tests.push(ConnectionTest { text, test: text_test(test) });
    Matcher::Connection(bit as u8)
}

/// Returns what of a certificate is looked at, and for what: fingerprints are often written with
/// colons.
fn certificate(part: CertificatePart, test: &TextTest) -> (ConnectionText, TextTest) {
    let mut test = test.clone();
    let text = match part {
        CertificatePart::Subject => ConnectionText::CertificateSubject,
        CertificatePart::Name => ConnectionText::CertificateNames,
        CertificatePart::Fingerprint => {
            if test.operator != TextOperator::Matches {
                for value in &mut test.values {
                    value.retain(|letter| letter != ':');
                }
            }
            ConnectionText::CertificateFingerprint
        }
    };
    (text, test)
}

/// Returns how a text is compared.
pub(super) fn text_test(test: &TextTest) -> text::TextTest {
    let values = || test.values.iter().map(|value| Box::from(value.as_bytes())).collect();
    match test.operator {
        TextOperator::Equal => text::TextTest::Equal(values()),
        TextOperator::Prefix => text::TextTest::Prefix(values()),
        TextOperator::Suffix => text::TextTest::Suffix(values()),
        TextOperator::Contains => text::TextTest::Contains(values()),
        // They were read before, when they were checked.
        TextOperator::Matches => {
            text::TextTest::Matches(test.values.iter().filter_map(|value| Regex::parse(value).ok()).collect())
        }
        TextOperator::Empty => text::TextTest::Empty,
    }
}

fn type_set(types: &[At<Rtype>]) -> TypeSet {
    TypeSet::new(types.iter().map(|at| at.value))
}
