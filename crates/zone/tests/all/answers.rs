//! One rule of answering each.

use crate::support;

use support::{Chain, ask, ask_as, ask_limited, check, name, sign, zone, zones};
use wire::{Rcode, Rtype};
use zone::{Asked, Manner, Proof};

const OK: (Rcode, bool) = (Rcode::NOERROR, true);
const NO: (Rcode, bool) = (Rcode::NXDOMAIN, true);
const REFERRED: (Rcode, bool) = (Rcode::NOERROR, false);

const ORG: &str = "
$TTL 3600
@     SOA ns admin 1 7200 600 86400 300
      NS  ns
      NS  ns.example.net.
      MX  10 mail
ns    A   192.0.2.1
mail  A   192.0.2.2
      AAAA 2001:db8::2
www   CNAME web
web   A   192.0.2.3
      A   192.0.2.4
far   CNAME web.example.net.
away  CNAME www.example.com.
gone  CNAME nothing
loop  CNAME pool
pool  CNAME loop
self  CNAME self
old   DNAME example.net.
tree  DNAME tree.deeper
sub   NS  ns.sub
      NS  ns.side
      NS  ns.example.net.
ns.sub A  192.0.2.5
side  NS  ns.side
ns.side A 192.0.2.6
into  CNAME host.sub
_sip._tcp SRV 1 2 5060 mail
svc   HTTPS 1 . alpn=h2
svc   A   192.0.2.7
alias HTTPS 0 web
bare  SRV 0 0 0 .
";

const NET: &str = "
$TTL 3600
@     SOA ns admin 1 7200 600 86400 7200
      NS  ns
ns    A   192.0.2.11
web   A   192.0.2.12
*.any TXT wild
";

fn both() -> zone::Zones {
    zones(&[("example.org", ORG), ("example.net", NET)])
}

#[test]
fn data_is_answered_with_authority_and_without_more_than_asked_for() {
    check(
        &both(),
        "WEB.example.org",
        Rtype::A,
        false,
        OK,
        &["an WEB.example.org. A 192.0.2.3", "an WEB.example.org. A 192.0.2.4"],
    );
    check(&both(), "ns.example.org", Rtype::AAAA, false, OK, &["au example.org. SOA"]);
    check(&both(), "no.example.org", Rtype::A, false, NO, &["au example.org. SOA"]);
    assert_eq!(ask_limited(&both(), "example.com", Rtype::A, false, 512), None);
    assert_eq!(ask_limited(&both(), "org", Rtype::A, false, 512), None);
}

#[test]
fn negative_answers_have_the_smaller_ttl() {
    let zones = both();
    assert_eq!(ask(&zones, "no.example.org", Rtype::A, false).lines[0].split(' ').nth(2), Some("300"));
    assert_eq!(ask(&zones, "no.example.net", Rtype::A, false).lines[0].split(' ').nth(2), Some("3600"));
}

#[test]
fn what_goes_with_an_answer_is_said_by_who_asks() {
    let zones = both();
    let ask = |qname: &str, qtype: Rtype, manner: Manner| {
        let qname = name(qname);
        let asked = Asked { manner, ..Asked::new(qname.as_name(), qtype, false) };
        let lines = ask_as(&zones, &asked, 4096).expect("a zone of ours").lines;
        lines.iter().map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let usual = Manner::default();
    let within = Manner { within: true, ..usual };
    let alias = "an far.example.org. 3600 CNAME";
    assert_eq!(ask("far.example.org", Rtype::A, usual), [alias, "an web.example.net. 3600 A"]);
    assert_eq!(ask("far.example.org", Rtype::A, within), [alias]);
    assert_eq!(ask("www.example.org", Rtype::A, within).len(), 3, "both addresses, in the same zone");
    let minimal = Manner { minimal: true, ..usual };
    for (qname, qtype, extra) in [
        ("example.org", Rtype::MX, 2),
        ("_sip._tcp.example.org", Rtype::SRV, 2),
        ("svc.example.org", Rtype::HTTPS, 1),
    ] {
        assert_eq!(ask(qname, qtype, usual).len() - ask(qname, qtype, minimal).len(), extra, "{qname}");
    }
    assert_eq!(ask("example.org", Rtype::NS, minimal).len(), ask("example.org", Rtype::NS, usual).len());
    let several = Manner { several: true, ..usual };
    let apex = ["an example.org. 3600 SOA", "an example.org. 3600 MX"];
    assert_eq!(ask("example.org", Rtype::ANY, several), apex);
    let mail = ["an mail.example.org. 3600 A", "an mail.example.org. 3600 AAAA"];
    assert_eq!(ask("mail.example.org", Rtype::ANY, several), mail);
    assert_eq!(ask("mail.example.org", Rtype::ANY, usual), mail[..1]);
    assert_eq!(ask("www.example.org", Rtype::ANY, several), ["an www.example.org. 3600 CNAME"]);
}

#[test]
fn aliases_are_followed_through_all_zones() {
    let zones = both();
    check(
        &zones,
        "www.example.org",
        Rtype::A,
        false,
        OK,
        &[
            "an www.example.org. CNAME web.example.org.",
            "an web.example.org. A 192.0.2.3",
            "an web.example.org. A 192.0.2.4",
        ],
    );
    check(
        &zones,
        "www.example.org",
        Rtype::CNAME,
        false,
        OK,
        &["an www.example.org. CNAME web.example.org."],
    );
    check(
        &zones,
        "far.example.org",
        Rtype::A,
        false,
        OK,
        &["an far.example.org. CNAME web.example.net.", "an web.example.net. A 192.0.2.12"],
    );
    check(&zones, "away.example.org", Rtype::A, false, OK, &["an away.example.org. CNAME www.example.com."]);
    // RFC 6604 §3: the code is that of the last name.
    check(
        &zones,
        "gone.example.org",
        Rtype::A,
        false,
        NO,
        &["an gone.example.org. CNAME nothing.example.org.", "au example.org. SOA"],
    );
    check(
        &zones,
        "www.example.org",
        Rtype::TXT,
        false,
        OK,
        &["an www.example.org. CNAME web.example.org.", "au example.org. SOA"],
    );
    // AA is about the name asked for.
    check(
        &zones,
        "into.example.org",
        Rtype::A,
        false,
        OK,
        &[
            "an into.example.org. CNAME host.sub.example.org.",
            "au sub.example.org. NS ns.sub.example.org.",
            "au sub.example.org. NS ns.side.example.org.",
            "au sub.example.org. NS ns.example.net.",
            "ad ns.sub.example.org. A 192.0.2.5",
            "ad ns.side.example.org. A 192.0.2.6",
        ],
    );
}

#[test]
fn loops_of_aliases_end_where_they_close() {
    let zones = both();
    check(
        &zones,
        "loop.example.org",
        Rtype::A,
        false,
        OK,
        &["an loop.example.org. CNAME pool.example.org.", "an pool.example.org. CNAME loop.example.org."],
    );
    check(&zones, "self.example.org", Rtype::A, false, OK, &["an self.example.org. CNAME self.example.org."]);
}

#[test]
fn long_chains_of_aliases_are_cut() {
    let mut text = "$TTL 1\n@ SOA ns a 1 2 3 4 5\n @ NS ns.example.net.\n".replace("\n @", "\n@");
    for i in 0..40 {
        text.push_str(&format!("c{i} CNAME c{}\n", i + 1));
    }
    let zones = zones(&[("example.org", &text)]);
    let reply = ask(&zones, "c0.example.org", Rtype::A, false);
    assert_eq!((reply.rcode, reply.lines.len()), (Rcode::NOERROR, zone::ALIASES_MAX + 1));
}

#[test]
fn dnames_redirect_what_lies_below_them() {
    let zones = both();
    check(
        &zones,
        "web.old.example.org",
        Rtype::A,
        false,
        OK,
        &[
            "an old.example.org. DNAME example.net.",
            "an web.old.example.org. CNAME web.example.net.",
            "an web.example.net. A 192.0.2.12",
        ],
    );
    check(&zones, "old.example.org", Rtype::DNAME, false, OK, &["an old.example.org. DNAME example.net."]);
    check(&zones, "old.example.org", Rtype::A, false, OK, &["au example.org. SOA"]);
    check(
        &zones,
        "x.old.example.org",
        Rtype::CNAME,
        false,
        OK,
        &["an old.example.org. DNAME example.net.", "an x.old.example.org. CNAME x.example.net."],
    );
    // RFC 6672 §2.2: a name that becomes too long.
    let label = "a".repeat(60);
    let long = format!("{label}.{label}.{label}.{}.tree.example.org", "b".repeat(47));
    check(
        &zones,
        &long,
        Rtype::A,
        false,
        (Rcode::YXDOMAIN, true),
        &["an tree.example.org. DNAME tree.deeper.example.org."],
    );
}

#[test]
fn delegations_carry_the_addresses_that_are_needed() {
    let zones = both();
    let servers = [
        "au sub.example.org. NS ns.sub.example.org.",
        "au sub.example.org. NS ns.side.example.org.",
        "au sub.example.org. NS ns.example.net.",
        "ad ns.sub.example.org. A 192.0.2.5",
        "ad ns.side.example.org. A 192.0.2.6",
    ];
    check(&zones, "sub.example.org", Rtype::A, false, REFERRED, &servers);
    check(&zones, "ns.sub.example.org", Rtype::A, false, REFERRED, &servers);
    check(&zones, "a.b.sub.example.org", Rtype::NS, false, REFERRED, &servers);
    check(&zones, "sub.example.org", Rtype::DS, false, OK, &["au example.org. SOA"]);
}

#[test]
fn a_referral_whose_glue_does_not_fit_is_truncated() {
    let zones = both();
    let whole = ask(&zones, "sub.example.org", Rtype::A, false);
    assert_eq!((whole.is_truncated, whole.lines.len()), (false, 5));
    // RFC 9471 §3.2: addresses of servers below another cut may be left out.
    let without_sibling =
        ask_limited(&zones, "sub.example.org", Rtype::A, false, whole.octets - 1).expect("ours");
    assert_eq!((without_sibling.is_truncated, without_sibling.lines.len()), (false, 4));
    // §3.1: those below this cut may not.
    let without_glue =
        ask_limited(&zones, "sub.example.org", Rtype::A, false, without_sibling.octets - 1).expect("ours");
    assert_eq!((without_glue.is_truncated, without_glue.lines.len()), (true, 3));
}

#[test]
fn rrsets_are_written_whole_or_not_at_all() {
    let zones = both();
    let whole = ask(&zones, "web.example.org", Rtype::A, false);
    let cut = ask_limited(&zones, "web.example.org", Rtype::A, false, whole.octets - 1).expect("ours");
    assert_eq!((cut.is_truncated, cut.lines.len()), (true, 0));
    let whole = ask(&zones, "example.org", Rtype::MX, false);
    assert_eq!(whole.lines.len(), 3);
    let cut = ask_limited(&zones, "example.org", Rtype::MX, false, whole.octets - 1).expect("ours");
    assert_eq!((cut.is_truncated, cut.lines.len()), (false, 2));
}

#[test]
fn hosts_that_records_name_come_with_their_addresses() {
    let zones = both();
    let mail = ["ad mail.example.org. A 192.0.2.2", "ad mail.example.org. AAAA 2001:db8::2"];
    check(
        &zones,
        "example.org",
        Rtype::MX,
        false,
        OK,
        &[&["an example.org. MX 10 mail.example.org."], &mail[..]].concat(),
    );
    check(
        &zones,
        "_sip._tcp.example.org",
        Rtype::SRV,
        false,
        OK,
        &[&["an _sip._tcp.example.org. SRV 1 2 5060 mail.example.org."], &mail[..]].concat(),
    );
    check(
        &zones,
        "svc.example.org",
        Rtype::HTTPS,
        false,
        OK,
        &["an svc.example.org. HTTPS 1 . alpn=h2", "ad svc.example.org. A 192.0.2.7"],
    );
    check(
        &zones,
        "alias.example.org",
        Rtype::HTTPS,
        false,
        OK,
        &[
            "an alias.example.org. HTTPS 0 web.example.org.",
            "ad web.example.org. A 192.0.2.3",
            "ad web.example.org. A 192.0.2.4",
        ],
    );
    check(&zones, "bare.example.org", Rtype::SRV, false, OK, &["an bare.example.org. SRV 0 0 0 ."]);
    check(
        &zones,
        "example.org",
        Rtype::NS,
        false,
        OK,
        &[
            "an example.org. NS ns.example.org.",
            "an example.org. NS ns.example.net.",
            "ad ns.example.org. A 192.0.2.1",
            "ad ns.example.net. A 192.0.2.11",
        ],
    );
}

#[test]
fn a_name_that_has_a_stray_proof_exists_for_what_is_below_it() {
    let stray = "NSEC3 1 0 0 - 0ph9amveqvm6t7vbl5lop2u3t2rp3tom A";
    let hash = "2t7b4g4vsa5smi47k61mv5bv1a22bojr";
    let text = format!(
        "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns.example.net.\n\
         above {stray}\nbelow.above A 192.0.2.1\nx.{hash} A 192.0.2.2\n{hash} {stray}\nalone {stray}\n"
    );
    let zones = zones(&[("example.org", &text)]);
    let soa = "au example.org. SOA";
    check(&zones, "above.example.org", Rtype::A, false, OK, &[soa]);
    check(&zones, &format!("{hash}.example.org"), Rtype::A, false, OK, &[soa]);
    check(&zones, "alone.example.org", Rtype::A, false, NO, &[soa]);
}

#[test]
fn any_gets_one_rrset() {
    let zones = both();
    check(
        &zones,
        "web.example.org",
        Rtype::ANY,
        false,
        OK,
        &["an web.example.org. A 192.0.2.3", "an web.example.org. A 192.0.2.4"],
    );
    check(&zones, "www.example.org", Rtype::ANY, false, OK, &["an www.example.org. CNAME web.example.org."]);
}

#[test]
fn ds_belongs_to_the_parent() {
    let parent =
        "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns.example.net.\nsub NS ns.example.net.\nsub DS 1 13 2 00\n";
    let child = "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns.example.net.\n";
    let list = [("example.org", parent), ("sub.example.org", child)];
    check(&zones(&list), "sub.example.org", Rtype::DS, false, OK, &["an sub.example.org. DS"]);
    check(&zones(&list), "sub.example.org", Rtype::A, false, OK, &["au sub.example.org. SOA"]);
    check(&zones(&list[1..]), "sub.example.org", Rtype::DS, false, OK, &["au sub.example.org. SOA"]);
}

#[test]
fn wildcards_stand_in_for_names_that_do_not_exist() {
    let zones = both();
    check(&zones, "a.b.any.example.net", Rtype::TXT, false, OK, &["an a.b.any.example.net. TXT \"wild\""]);
    check(&zones, "any.example.net", Rtype::TXT, false, OK, &["au example.net. SOA"]);
}

#[test]
fn the_root_can_be_served() {
    let zones = zones(&[(
        ".",
        "$TTL 60\n. SOA a. b. 1 2 3 4 5\n. NS a.\na. A 192.0.2.1\norg. NS ns.org.\nns.org. A 192.0.2.2\n",
    )]);
    check(&zones, ".", Rtype::NS, false, OK, &["an . NS a.", "ad a. A 192.0.2.1"]);
    check(&zones, "x.org", Rtype::A, false, REFERRED, &["au org. NS ns.org.", "ad ns.org. A 192.0.2.2"]);
    check(&zones, "com", Rtype::A, false, NO, &["au . SOA"]);
}

#[test]
fn signatures_come_only_if_wanted() {
    let text = sign("example.org", ORG, Chain::Nsec);
    let signed = zone("example.org", &text);
    assert_eq!(signed.facts().proof, Proof::Nsec);
    let zones = zones(&[("example.org", &text)]);
    check(&zones, "ns.example.org", Rtype::A, false, OK, &["an ns.example.org. A 192.0.2.1"]);
    check(
        &zones,
        "ns.example.org",
        Rtype::A,
        true,
        OK,
        &["an ns.example.org. A 192.0.2.1", "an ns.example.org. RRSIG A"],
    );
    let reply = ask(&zones, "ns.example.org", Rtype::RRSIG, false);
    assert_eq!(reply.lines.len(), 2);
    // The DNAME is signed, what it makes is not (RFC 6672 §5.3.1).
    check(
        &zones,
        "x.old.example.org",
        Rtype::A,
        true,
        OK,
        &[
            "an old.example.org. DNAME example.net.",
            "an old.example.org. RRSIG DNAME",
            "an x.old.example.org. CNAME x.example.net.",
        ],
    );
}

#[test]
fn the_denial_of_a_redirected_name_may_stand_at_the_dname() {
    let text = "$TTL 60\n@ SOA m r 1 2 3 4 5\nb DNAME c\n";
    let zones = zones(&[("example.org", &sign("example.org", text, Chain::Nsec))]);
    let reply = ask(&zones, "a.b.example.org", Rtype::A, true);
    let proofs: Vec<&String> = reply.lines.iter().filter(|line| line.contains(" NSEC ")).collect();
    assert!(
        proofs.iter().any(|line| line.starts_with("au b.example.org.")),
        "a.c.example.org is denied: {proofs:?}"
    );
}

#[test]
fn a_zone_that_is_not_loaded_fails_and_the_others_answer() {
    let loaded = std::sync::Arc::new(zone("example.org", ORG));
    let missing = [name("example.net")];
    let zones = zone::Zones::with_missing(support::KEY, vec![loaded], &missing);
    check(&zones, "web.example.net", Rtype::A, false, (Rcode::SERVFAIL, true), &[]);
    check(
        &zones,
        "far.example.org",
        Rtype::A,
        false,
        (Rcode::SERVFAIL, true),
        &["an far.example.org. CNAME web.example.net."],
    );
    check(&zones, "ns.example.org", Rtype::A, false, OK, &["an ns.example.org. A 192.0.2.1"]);
    assert_eq!(zones.all().count(), 1);
}

#[test]
fn looking_ahead_takes_any_names() {
    let zones = both();
    let names: Vec<wire::NameBuf> =
        (0..200).map(|i| name(&format!("n{i}.example.{}", ["org", "net", "com"][i % 3]))).collect();
    zones.prefetch_lines(names.iter().map(wire::NameBuf::as_name));
    zones.prefetch_lines(std::iter::empty());
    assert!(!zones.are_large());
    zone::Zones::new(support::KEY, vec![]).prefetch_lines(names.iter().map(wire::NameBuf::as_name));
}

#[test]
fn a_dname_that_leads_below_itself_is_followed_once() {
    let zones = zones(&[("example.org", "$TTL 60\n@ SOA m r 1 2 3 4 5\nd DNAME d.d\nself DNAME self\n")]);
    check(
        &zones,
        "x.d.example.org",
        Rtype::A,
        false,
        OK,
        &["an d.example.org. DNAME d.d.example.org.", "an x.d.example.org. CNAME x.d.d.example.org."],
    );
    check(
        &zones,
        "x.self.example.org",
        Rtype::A,
        false,
        OK,
        &["an self.example.org. DNAME self.example.org.", "an x.self.example.org. CNAME x.self.example.org."],
    );
}

#[test]
fn a_ds_without_a_signature_stays_out_of_referrals() {
    let ds = "1 8 2 00000000000000000000000000000000000000000000000000000000000000AA";
    let text = format!("$TTL 60\n@ SOA m r 1 2 3 4 5\nsub NS ns.example.net.\nsub DS {ds}\n");
    let zones = zones(&[("example.org", &text)]);
    check(&zones, "x.sub.example.org", Rtype::A, true, REFERRED, &["au sub.example.org. NS ns.example.net."]);
    let asked = ask(&zones, "sub.example.org", Rtype::DS, true);
    assert!(asked.lines[0].contains(" DS "), "who asks for it gets it: {:?}", asked.lines);
}

#[test]
fn private_types_that_are_no_alias_are_data_like_any() {
    let text = "$TTL 60\n@ SOA m r 1 2 3 4 5\np TYPE65401 \\# 4 0a000001\n";
    let zones = zones(&[("example.org", text)]);
    check(&zones, "p.example.org", Rtype::ALIAS, false, OK, &["an p.example.org. ALIAS \\# 4 0A000001"]);
    check(&zones, "p.example.org", Rtype::A, false, OK, &["au example.org. SOA"]);
}

/// Returns the octets of the records of an answer.
fn octets(zones: &zone::Zones, qname: &str, qtype: Rtype) -> usize {
    ask(zones, qname, qtype, false).octets - (12 + name(qname).as_name().len() + 4)
}

#[test]
fn names_in_data_are_as_short_as_they_can_be() {
    let zones = zones(&[(
        "example.org",
        "@ 60 SOA ns1.dns.example.net. admin.dns.example.net. 1 2 3 4 5\n@ NS ns1.dns\n@ NS ns2.dns\n@ NS ns.example.net.\n@ MX 10 @\n@ MX 20 mail\nmail A 192.0.2.1\nns1.dns A 192.0.2.2\nns2.dns A 192.0.2.3\nwww CNAME mail\nin CNAME a.www.in\nout CNAME other.example.\n*.wild CNAME mail\n",
    )]);
    let record = 12;
    // `ns1.dns` and a pointer, `ns2` and a pointer, all of the one that shares only the root; and
    // two addresses.
    let servers = (record + 10) + (record + 6) + (record + 16) + 2 * (record + 4);
    assert_eq!(octets(&zones, "example.org", Rtype::NS), servers);
    assert_eq!(octets(&zones, "example.org", Rtype::MX), (record + 4) + (record + 9) + (record + 4));
    // Of the two names of the SOA the second leads into the first.
    assert_eq!(octets(&zones, "mail.example.org", Rtype::TXT), record + 21 + 8 + 20);
    assert_eq!(octets(&zones, "www.example.org", Rtype::A), (record + 7) + (record + 4));
    assert_eq!(octets(&zones, "in.example.org", Rtype::CNAME), record + 8);
    assert_eq!(octets(&zones, "out.example.org", Rtype::CNAME), record + 15);
    assert_eq!(octets(&zones, "any.wild.example.org", Rtype::CNAME), record + 7);
}

#[test]
fn an_alias_to_a_redirected_name_keeps_every_owner() {
    let zones = zones(&[(
        "example.org",
        "@ 60 SOA ns admin 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nalias CNAME host.old\nold DNAME new\nhost.new A 192.0.2.2\ntwice CNAME alias\n",
    )]);
    let redirected = [
        "an alias.example.org. CNAME host.old.example.org.",
        "an old.example.org. DNAME new.example.org.",
        "an host.old.example.org. CNAME host.new.example.org.",
        "an host.new.example.org. A 192.0.2.2",
    ];
    check(&zones, "alias.example.org", Rtype::A, false, OK, &redirected);
    let twice = [&["an twice.example.org. CNAME alias.example.org."][..], &redirected].concat();
    check(&zones, "twice.example.org", Rtype::A, false, OK, &twice);
}
