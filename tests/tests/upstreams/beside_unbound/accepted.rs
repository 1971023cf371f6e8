//! Differences that are there on purpose, each with its reason.

use std::net::Ipv4Addr;

use wire::{EdeCode, Flags, Rcode, Rtype};

use super::Seen;
use super::files::File;
use super::questions::Asked;

/// A difference that is accepted.
pub(super) struct Accepted {
    /// Why.
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

/// Returns whether it is accepted that one of the servers says nothing.
pub(super) fn is_accepted_silence(
    file: &File,
    asked: &Asked,
    theirs: Option<&Seen>,
    ours: Option<&Seen>,
) -> bool {
    match (theirs, ours) {
        // They go on where a name of the server itself is hidden, and ask all servers for other
        // addresses than those that are filtered out, and a server that refuses for seconds.
        (None, Some(ours)) => {
            is_of_local_zone(asked, ours)
                || asked.is_chaos
                || file.filters_addresses()
                || leads_to_a_detour(file, asked, ours)
                // They have no use for an expired answer once newer NS or SOA records of its zone
                // have come, and nobody else has one.
                || ours.is_stale()
                // What a policy zone truncates has no addresses yet that are denied.
                || file.denies_addresses() && ours.flags.has(Flags::TC)
        }
        // They drop no answer from memory.
        (Some(_), None) => file.drops_addresses() || asked.qtype == Rtype::DS,
        (Some(_), Some(_)) | (None, None) => false,
    }
}

/// Returns whether a server that refuses is asked first for a name or what it is an alias of.
fn leads_to_a_detour(file: &File, asked: &Asked, seen: &Seen) -> bool {
    let owners = seen.sections[0].iter().filter_map(|(record, _)| record.split(' ').next());
    let mut names = owners.map(|owner| owner.trim_end_matches('.')).chain([asked.name.as_str()]);
    names.any(|name| file.is_detour(name))
}

/// Returns whether somebody asks for the DS records of a name and gets the answer of a local zone,
/// of its own or, from them, of the one above, where the client may be refused.
pub(super) fn is_of_local_zone(asked: &Asked, seen: &Seen) -> bool {
    asked.qtype == Rtype::DS && seen.flags.has(Flags::AA)
}

pub(super) const ACCEPTED: [Accepted; 50] = [
    Accepted {
        why: "RFC 8482 §4.2: ANY gets an HINFO record, where they say NOTIMP or go on",
        mend: |file, asked, _, _| file.denies_any && asked.qtype == Rtype::ANY,
    },
    Accepted {
        why: "a refusal repeats question, flags and DO: clients tell by it what was refused",
        mend: |_, _, theirs, ours| {
            // Of `refuse` with `ede: yes` theirs may read the question at a wrong place.
            let is_bare = matches!(theirs.rcode, Rcode::REFUSED | Rcode::FORMERR) && !theirs.has_question;
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
        why: "whether a fresh answer has come is a matter of time, and there of newer NS records of the zone",
        mend: |_, _, theirs, ours| {
            if theirs.is_stale() != ours.is_stale() {
                for seen in [theirs, ours] {
                    seen.errors.clear();
                    seen.sections.iter_mut().flatten().for_each(|(_, ttl)| *ttl = 0);
                }
            }
            false
        },
    },
    Accepted {
        why: "replies have Extended DNS Errors where theirs have none",
        mend: |_, _, theirs, ours| {
            if theirs.errors.is_empty() {
                (theirs.errors, ours.errors) = (Vec::new(), Vec::new());
            }
            false
        },
    },
    Accepted {
        why: "RFC 8914 §4.20: an expired denial of a name has a code of its own",
        mend: |_, _, theirs, ours| {
            let (expired, denial) = (EdeCode::STALE_ANSWER.0, EdeCode::STALE_NXDOMAIN_ANSWER.0);
            if theirs.errors == [expired] && ours.errors == [denial] {
                theirs.errors.clone_from(&ours.errors);
            }
            false
        },
    },
    Accepted {
        why: "RFC 2181 §5.2: an answer whose records are valid has not expired, whatever came with it",
        mend: |file, _, theirs, ours| {
            let are_valid = theirs.sections[0].iter().all(|(_, ttl)| *ttl > 0 && !file.has_stale_ttl(*ttl));
            if theirs.errors == [EdeCode::STALE_ANSWER.0]
                && ours.errors.is_empty()
                && !theirs.sections[0].is_empty()
                && are_valid
            {
                theirs.errors.clear();
            }
            false
        },
    },
    Accepted {
        why: "before 1.26 an expired record has the TTL that is set for such, also if it had a smaller one",
        mend: |file, _, theirs, ours| {
            for ((_, theirs), (_, ours)) in theirs.sections[0].iter_mut().zip(&mut ours.sections[0]) {
                if file.has_stale_ttl(*theirs) && ours < theirs {
                    *theirs = *ours;
                }
            }
            false
        },
    },
    Accepted {
        why: "RFC 7873 §5.2: a refusal has a cookie as well; RFC 1035 §4.1.1: RA says what the server can do",
        mend: |_, _, theirs, ours| {
            if theirs.rcode == Rcode::REFUSED && ours.rcode == Rcode::REFUSED {
                if ours.flags.has(Flags::RA) {
                    theirs.flags = theirs.flags.with(Flags::RA);
                }
                theirs.cookie = theirs.cookie.or(ours.cookie);
            }
            false
        },
    },
    Accepted {
        why: "a hidden name of the server is not supported, with RD and without",
        mend: |_, asked, theirs, ours| {
            if asked.is_chaos && theirs.rcode == Rcode::REFUSED {
                theirs.errors.clone_from(&ours.errors);
            }
            false
        },
    },
    Accepted {
        why: "a policy zone that truncates says so with AA, by whatever rule",
        mend: |_, _, theirs, ours| {
            if theirs.flags.has(Flags::TC) && ours.flags.has(Flags::TC) {
                theirs.flags = theirs.flags.with(Flags::AA);
                ours.flags = ours.flags.with(Flags::AA);
            }
            false
        },
    },
    Accepted {
        why: "rules of a policy zone on addresses hold for answers from memory, too",
        mend: |file, _, theirs, ours| {
            let is_ruled = |(record, _): &(String, u32)| {
                let hex = record.split_once(" A ").and_then(|(_, hex)| u32::from_str_radix(hex, 16).ok());
                hex.is_some_and(|bits| file.has_rule_on_address(Ipv4Addr::from_bits(bits)))
            };
            let is_by_rule = ours.errors == [EdeCode::BLOCKED.0] && ours.sections[0].is_empty();
            theirs.sections[0].iter().any(is_ruled) && (ours.flags.has(Flags::TC) || is_by_rule)
        },
    },
    Accepted {
        why: "rules on clients are not for the names of the server itself",
        mend: |_, asked, theirs, _| asked.is_chaos && theirs.flags.has(Flags::TC),
    },
    Accepted {
        why: "RFC 6604 §2, RFC 6672 §3.2: a zone follows its own aliases to their end, whose code it gives",
        mend: |_, asked, theirs, ours| {
            let leads_on =
                |(record, _): &(String, u32)| record.contains(" CNAME ") || record.contains(" DNAME ");
            let has = |(record, _): &(String, u32)| ours.sections[0].iter().any(|(other, _)| other == record);
            asked.text.to_ascii_lowercase().contains("auth.example")
                && theirs.flags.has(Flags::AA)
                && !theirs.sections[0].is_empty()
                && theirs.sections[0].iter().all(|it| leads_on(it) && has(it))
        },
    },
    Accepted {
        why: "the DS records of a local zone are its own affair, not that of the zone above it",
        mend: |_, asked, theirs, ours| is_of_local_zone(asked, ours) || is_of_local_zone(asked, theirs),
    },
    Accepted {
        why: "an alias of response-ip is followed even to addresses that are themselves rewritten",
        mend: |file, asked, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            file.has_response_alias()
                && asked.qtype != Rtype::CNAME
                && theirs.sections[0].iter().all(is_alias)
                && ours.sections[0].iter().any(is_alias)
        },
    },
    Accepted {
        why: "what response-ip rewrites comes without the aliases that led there",
        mend: |_, _, theirs, ours| {
            let is_alias =
                |(record, _): &(String, u32)| record.contains(" CNAME ") || record.contains(" RRSIG 0005");
            let count = |seen: &Seen| seen.sections[0].iter().filter(|it| is_alias(it)).count();
            if count(theirs) > count(ours) && theirs.rcode == ours.rcode {
                theirs.sections[0].retain(|record| !is_alias(record));
                ours.sections[0].retain(|record| !is_alias(record));
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
        why: "an alias that a policy zone has for an alias's target is given and not followed",
        mend: |file, _, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            let is_within = |one: &Seen, other: &Seen| {
                let has =
                    |(record, _): &(String, u32)| other.sections[0].iter().any(|(known, _)| known == record);
                one.sections[0].iter().all(has)
            };
            file.has_policy_alias()
                && ours.sections[0].len() > 1
                && ours.sections[0].iter().all(is_alias)
                && (is_within(ours, theirs) || is_within(theirs, ours))
        },
    },
    Accepted {
        why: "policy zones look at aliases of answers from memory as well",
        mend: |_, _, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            let are_aliases = |seen: &Seen| seen.sections[0].iter().any(is_alias);
            are_aliases(theirs) && ours.flags.has(Flags::AA) && !theirs.flags.has(Flags::AA)
        },
    },
    Accepted {
        why: "RFC 8198 §5.4: what a wildcard stands for is kept no longer than the proof of it",
        mend: |_, asked, theirs, ours| {
            if asked.text.to_ascii_lowercase().contains(".wild.") {
                for seen in [theirs, ours] {
                    seen.sections[0].iter_mut().for_each(|(_, ttl)| *ttl = 0);
                }
            }
            false
        },
    },
    Accepted {
        why: "with view-first, what a view leaves open is looked for in the zones of all",
        mend: |file, asked, theirs, ours| {
            let is_open = !theirs.flags.has(Flags::AA) && ours.flags.has(Flags::AA);
            file.has_view_first() && asked.client == 4 && is_open
        },
    },
    Accepted {
        why: "RFC 2308 §5: an SOA that came with a denial is kept as long as that",
        mend: |_, asked, theirs, ours| {
            if asked.qtype == Rtype::SOA {
                for seen in [theirs, ours] {
                    seen.sections[0].iter_mut().for_each(|(_, ttl)| *ttl = 0);
                }
            }
            false
        },
    },
    Accepted {
        why: "RFC 1035 §4.1.1: RD is repeated as it came",
        mend: |file, asked, theirs, ours| {
            if file.has_right(asked.client, "allow_setrd") {
                for seen in [theirs, ours] {
                    seen.flags = seen.flags.with(Flags::RD);
                }
            }
            false
        },
    },
    Accepted {
        why: "an alias that a policy zone gives is kept as long as what it leads to",
        mend: |file, _, theirs, ours| {
            if file.has_policy_alias() && theirs.flags.has(Flags::AA) {
                for (record, ttl) in theirs.sections[0].iter_mut().chain(&mut ours.sections[0]) {
                    *ttl = if record.contains(" CNAME ") { 0 } else { *ttl };
                }
            }
            false
        },
    },
    Accepted {
        why: "the data that a policy zone has for an alias's target is given each time",
        mend: |_, _, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            theirs.sections[0].iter().any(is_alias)
                && theirs.sections[0].iter().all(is_alias)
                && ours.sections[0].iter().any(|(record, _)| record.ends_with(" A c000024d"))
        },
    },
    Accepted {
        why: "the resolver's bounds hold for zones that it reads as well",
        mend: |_, asked, theirs, ours| {
            if asked.text.to_ascii_lowercase().contains("auth.example") {
                for seen in [theirs, ours] {
                    let [answer, _, additional] = &mut seen.sections;
                    answer.iter_mut().chain(additional).for_each(|(_, ttl)| *ttl = 0);
                }
            }
            false
        },
    },
    Accepted {
        why: "RFC 2308 §2.2: a zone's denial of what an alias leads to has the SOA",
        mend: |_, asked, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            if asked.text.to_ascii_lowercase().contains("auth.example")
                && theirs.sections[0].iter().any(is_alias)
                && theirs.sections[0].iter().all(is_alias)
                && theirs.sections[1].is_empty()
            {
                ours.sections[1].retain(|(record, _)| !record.contains(" SOA "));
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
        why: "RFC 6303 §3: a zone that is built in names itself in the SOA and NS records that are asked for",
        mend: |_, _, theirs, ours| {
            let names_localhost = |(record, _): &(String, u32)| {
                is_made(record) && record.contains(LOCALHOST)
                    || record.contains(" NS ") && record.ends_with(LOCALHOST)
            };
            if theirs.sections[0].iter().any(names_localhost) {
                let is_of_apex = |(record, _): &(String, u32)| is_made(record) || record.contains(" NS ");
                theirs.sections[0].retain(|record| !names_localhost(record));
                ours.sections[0].retain(|record| !is_of_apex(record));
            }
            false
        },
    },
    Accepted {
        why: "RFC 1035 §4.1.1: RA says what the server can do, not what it does for one client",
        mend: |_, asked, theirs, ours| {
            let is_of_zone = asked.text.to_ascii_lowercase().contains("auth.example");
            if is_of_zone && ours.flags.has(Flags::AA) && ours.flags.has(Flags::RD) {
                theirs.flags = theirs.flags.with(Flags::RA);
            }
            false
        },
    },
    Accepted {
        why: "a policy zone's rules on name servers are for clients, not for the queries that look for keys",
        mend: |file, _, theirs, _| file.has_rules_on_servers() && theirs.rcode == Rcode::SERVFAIL,
    },
    Accepted {
        why: "a policy zone with tags is for clients with these, whatever alias leads to its names",
        mend: |file, asked, theirs, _| {
            let is_by_policy = theirs.flags.has(Flags::AA) && theirs.sections[1].is_empty();
            file.has_tagged_policy() && !matches!(asked.client, 5 | 6) && is_by_policy
        },
    },
    Accepted {
        why: "an exception for a client is one from all rules",
        mend: |file, asked, theirs, _| file.passes_client(asked.client) && theirs.flags.has(Flags::AA),
    },
    Accepted {
        why: "answers to queries with CD are not said to be validated",
        mend: |_, _, theirs, ours| {
            if theirs.flags.has(Flags::CD) {
                for seen in [theirs, ours] {
                    seen.flags = seen.flags.without(Flags::AD);
                }
            }
            false
        },
    },
    Accepted {
        why: "RFC 1034 §3.6.2: the data that a policy zone has for an alias's target has that name, not the alias's",
        mend: |_, _, theirs, ours| {
            let of = |(record, _): &(String, u32)| record.split(' ').next().unwrap_or_default().to_owned();
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            let aliases: Vec<String> = theirs.sections[0].iter().filter(|it| is_alias(it)).map(of).collect();
            let is_mixed = |it: &(String, u32)| !is_alias(it) && aliases.contains(&of(it));
            if theirs.sections[0].iter().any(is_mixed) {
                for (record, _) in theirs.sections[0].iter_mut().chain(&mut ours.sections[0]) {
                    *record = record.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned());
                }
            }
            false
        },
    },
    Accepted {
        why: "RFC 8914 §4.6: with CD nothing was validated, so that it is not indeterminate either",
        mend: |_, _, theirs, ours| {
            if theirs.flags.has(Flags::CD) && theirs.errors == [EdeCode::DNSSEC_INDETERMINATE.0] {
                theirs.errors.clone_from(&ours.errors);
            }
            false
        },
    },
    Accepted {
        why: "queries without RD get what is known, never a referral",
        mend: |file, asked, theirs, ours| {
            file.has_right(asked.client, "allow_snoop")
                && !theirs.flags.has(Flags::RD)
                && theirs.sections[0].is_empty()
                && (ours.rcode == Rcode::REFUSED || theirs.rcode == ours.rcode)
        },
    },
    Accepted {
        why: "queries without RD get a referral where a server is asked first for the name",
        mend: |file, asked, theirs, ours| {
            file.has_right(asked.client, "allow_snoop")
                && !theirs.flags.has(Flags::RD)
                && file.is_detour(&asked.name)
                && theirs.rcode == Rcode::SERVFAIL
                && ours.sections[0].is_empty()
        },
    },
    Accepted {
        why: "what local data and policy zones say needs no recursion, and is given without RD",
        mend: |_, _, theirs, ours| {
            let is_alias = |(record, _): &(String, u32)| record.contains(" CNAME ");
            !theirs.flags.has(Flags::RD)
                && (theirs.rcode, &*theirs.errors) == (Rcode::REFUSED, &[EdeCode::NOT_AUTHORITATIVE.0][..])
                && ours.flags.has(Flags::AA)
                && !ours.sections[0].is_empty()
                && ours.sections[0].iter().all(is_alias)
        },
    },
    Accepted {
        why: "cache-min-ttl is for what is kept, not for the aliases that lead to what a policy zone says",
        mend: |file, _, theirs, ours| {
            for ((record, theirs), (_, ours)) in theirs.sections[0].iter_mut().zip(&mut ours.sections[0]) {
                if file.has_cache_min_ttl(*theirs) && record.contains(" CNAME ") && *ours < *theirs {
                    *ours = *theirs;
                }
            }
            false
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
            let has_address = ours.sections[0].iter().any(|(record, _)| record.contains(" A "));
            is_filtered && !has_address || is_read
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
    Accepted {
        why: "local zones come before response policy zones, also where they redirect to an alias",
        mend: |file, asked, theirs, ours| {
            file.redirects_what_a_policy_names(&asked.name)
                && !ours.sections[0].is_empty()
                && (theirs.flags.has(Flags::AA) || theirs.flags.has(Flags::TC))
        },
    },
    Accepted {
        why: "of two rules on addresses of a zone's servers the one with the smallest address counts",
        mend: |file, _, theirs, ours| {
            file.has_two_rules_on_server_addresses()
                && theirs.flags.has(Flags::AA)
                && ours.flags.has(Flags::AA)
        },
    },
];
