//! Differences that are there on purpose, each with its reason.

use wire::{Flags, Rcode, Rtype};

use super::Seen;
use super::files::File;
use super::questions::Asked;

/// A difference that is accepted.
pub(super) struct Accepted {
    /// Why.
    #[expect(dead_code, reason = "for who reads the list")]
    pub(super) why: &'static str,
    /// Takes it out of both replies, theirs first; returns whether the rest does not count either.
    pub(super) mend: fn(&File, &Asked, &mut Seen, &mut Seen) -> bool,
}

/// The server of the zones that are built in.
const LOCALHOST: &str = "096c6f63616c686f737400";

/// Returns whether a record is an SOA that somebody of ours made up.
fn is_made(record: &str) -> bool {
    record.contains(" SOA ") && record.contains("066e6f626f647907696e76616c696400")
}

pub(super) const ACCEPTED: [Accepted; 17] = [
    Accepted {
        why: "RFC 8482 §4.2: ANY gets an HINFO record, where they say NOTIMP or go on",
        mend: |file, asked, _, _| file.denies_any && asked.qtype == Rtype::ANY,
    },
    Accepted {
        why: "a refusal repeats question, flags and DO: clients tell by it what was refused",
        mend: |_, _, theirs, ours| {
            let is_bare = theirs.rcode == Rcode::REFUSED && !theirs.has_question;
            is_bare && ours.rcode == Rcode::REFUSED
        },
    },
    Accepted {
        why: "RFC 4035 §3.1.6: CD is not set where AA is",
        mend: |_, _, theirs, ours| {
            for seen in [theirs, ours] {
                if seen.flags.has(Flags::AA) {
                    seen.flags = seen.flags.without(Flags::CD);
                }
            }
            false
        },
    },
    Accepted {
        why: "DO is repeated in every reply with EDNS (RFC 3225 §3)",
        mend: |_, _, theirs, ours| {
            (theirs.dnssec_ok, ours.dnssec_ok) = (false, false);
            false
        },
    },
    Accepted {
        why: "Extended DNS Errors say more than theirs",
        mend: |_, _, theirs, ours| {
            let says_more = !ours.errors.is_empty();
            if says_more {
                (theirs.errors, ours.errors) = (Vec::new(), Vec::new());
            }
            false
        },
    },
    Accepted {
        why: "the DS records of a local zone are its own affair, not that of the zone above it",
        mend: |_, asked, _, ours| asked.qtype == Rtype::DS && ours.flags.has(Flags::AA),
    },
    Accepted {
        why: "what response-ip rewrites comes without the aliases that led there",
        mend: |_, _, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            if theirs.sections[0].iter().any(is_alias) && !ours.sections[0].iter().any(is_alias) {
                theirs.sections[0].retain(|record| !is_alias(record));
                for (record, _) in theirs.sections[0].iter_mut().chain(&mut ours.sections[0]) {
                    *record = record.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned());
                }
            }
            false
        },
    },
    Accepted {
        why: "RRsets of different answers have one age there; bounds hold for the whole answer here, \
              and negative answers are kept no longer than their SOA says",
        mend: |_, _, theirs, ours| {
            for seen in [theirs, ours] {
                seen.sections[1].iter_mut().for_each(|(_, ttl)| *ttl = 0);
            }
            false
        },
    },
    Accepted {
        why: "the resolver's bounds hold for zones that it reads as well",
        mend: |_, asked, theirs, ours| {
            if asked.text.to_ascii_lowercase().contains("auth.example") {
                for seen in [theirs, ours] {
                    seen.sections[0].iter_mut().for_each(|(_, ttl)| *ttl = 0);
                }
            }
            false
        },
    },
    Accepted {
        why: "what a response policy zone says of an alias's target counts for the type CNAME as well",
        mend: |_, asked, theirs, ours| {
            if asked.qtype == Rtype::CNAME && !theirs.sections[0].is_empty() {
                ours.flags =
                    if theirs.flags.has(Flags::AA) { ours.flags } else { ours.flags.without(Flags::AA) };
            }
            false
        },
    },
    Accepted {
        why: "the server speaks with authority about itself",
        mend: |_, asked, theirs, ours| {
            if asked.is_chaos {
                for seen in [theirs, ours] {
                    seen.flags = seen.flags.with(Flags::AA).without(Flags::CD);
                }
            }
            false
        },
    },
    Accepted {
        why: "RFC 6303 §3: a zone that is built in is its own server",
        mend: |_, _, theirs, ours| {
            let is_built_in = |(record, _): &(String, u32)| is_made(record);
            if theirs.sections[1].iter().any(|it| is_built_in(it) && it.0.contains(LOCALHOST)) {
                theirs.sections[1].retain(|record| !is_built_in(record));
                ours.sections[1].retain(|record| !is_built_in(record));
            }
            false
        },
    },
    Accepted {
        why: "RFC 6303 §3: SOA and NS records of zones that are built in are in no answer",
        mend: |_, _, theirs, _| {
            theirs.sections[0].iter().any(|(record, _)| is_made(record) || record.ends_with(LOCALHOST))
        },
    },
    Accepted {
        why: "a refusal says nothing of signatures",
        mend: |_, _, theirs, ours| {
            if theirs.rcode == Rcode::REFUSED {
                for seen in [theirs, ours] {
                    seen.flags = seen.flags.without(Flags::AD);
                }
            }
            false
        },
    },
    Accepted {
        why: "addresses are taken out after an answer was validated, and a zone that is read although \
              its parent denies it is bogus",
        mend: |file, asked, theirs, ours| {
            let conf = file.files.last().map_or("", |(_, text)| text.as_str());
            let is_filtered = conf.contains("private-address") && theirs.rcode == Rcode::SERVFAIL;
            let is_read =
                conf.contains("trust-anchor:") && asked.text.to_ascii_lowercase().contains("auth.example");
            is_filtered && ours.sections[0].is_empty() || is_read
        },
    },
    Accepted {
        why: "which response policy zone changed an answer stands in no section",
        mend: |_, _, theirs, _| {
            theirs.sections[2].retain(|(record, _)| !(record.starts_with("rpz") && record.contains(" SOA ")));
            false
        },
    },
    Accepted {
        why: "an answer that lost all its addresses has an SOA, so that clients keep it for a while",
        mend: |_, _, _, ours| {
            ours.sections[1].retain(|(record, _)| !is_made(record));
            false
        },
    },
];
