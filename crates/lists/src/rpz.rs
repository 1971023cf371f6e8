//! Response policy zones as zone files.
//!
//! Rules by name asked for, client (`rpz-client-ip`), address in the answer (`rpz-ip`) and name
//! server (`rpz-nsdname`, `rpz-nsip`), with every action. Those on addresses in the answer become
//! addresses of the set, too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr as _;

use sets::{AddressSetBuilder, ListedRecord, NameText, Treatment, Trigger, ZoneBuilder};
use wire::{Name, NameBuf, Rcode, Rtype, TextError, Tokens, Ttl};

use crate::reading::{Mistakes, Reading};

/// What a rule looks at.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Looks {
    /// The name asked for, or those below it.
    Name(Names),
    /// The client.
    Client(IpAddr, u8),
    /// The addresses of the answer.
    Answer(IpAddr, u8),
    /// The names of the name servers that led to the answer.
    ServerName(Names),
    /// Their addresses.
    ServerAddress(IpAddr, u8),
}

/// A name in lower case, or those below it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    folded: Vec<u8>,
    is_below: bool,
}

impl Names {
    /// Reads the name that a rule is for: `*` in front stands for what is below it.
    fn of(name: Name<'_>) -> Self {
        let (name, is_below) = match name.labels().next() {
            Some(b"*") => (name.parent().unwrap_or(Name::ROOT), true),
            _ => (name, false),
        };
        Self { folded: name.to_folded().as_bytes().to_vec(), is_below }
    }
}

impl Looks {
    /// Adds the rule to a zone.
    fn rule(&self, rules: &mut ZoneBuilder, treatment: Option<Treatment>, line: u32) -> Result<(), String> {
        let trigger = match self {
            Self::Client(address, bits) => Trigger::Client(*address, *bits),
            Self::Answer(address, bits) => Trigger::Answer(*address, *bits),
            Self::ServerAddress(address, bits) => Trigger::ServerAddress(*address, *bits),
            Self::Name(names) | Self::ServerName(names) => {
                let Ok((name, _)) = Name::parse(&names.folded) else { return Ok(()) };
                match (self, names.is_below) {
                    (Self::ServerName(_), true) => Trigger::ServerBelow(name),
                    (Self::ServerName(_), false) => Trigger::ServerName(name),
                    (_, true) => Trigger::Below(name),
                    (_, false) => Trigger::Name(name),
                }
            }
        };
        if rules.rule(trigger, treatment, line) { Ok(()) } else { Err(too_many()) }
    }
}

/// The rules of a zone in the making.
pub(crate) struct Rules {
    rules: ZoneBuilder,
    /// Records to answer with, by trigger, and the line of the first.
    data: HashMap<Looks, (u32, Vec<ListedRecord>)>,
}

impl Rules {
    /// Begins with a zone that has no rules.
    pub(crate) fn new(rules: ZoneBuilder) -> Self {
        Self { rules, data: HashMap::new() }
    }

    /// Adds a record. Returns what its rule looks at, and whether that is an exception; `None` if
    /// the record makes no rule.
    pub(crate) fn record(
        &mut self,
        apex: Name<'_>,
        owner: Name<'_>,
        record: impl FnOnce() -> ListedRecord,
        line: u32,
    ) -> Result<Option<(Looks, bool)>, String> {
        let Some(trigger) = below(owner, apex) else {
            return Err(format!("{owner} is not in the zone {apex}"));
        };
        let record = record();
        if trigger.as_name().is_root() || is_no_rule(record.rtype) {
            // Name servers and the like of the zone itself, and signatures.
            return Ok(None);
        }
        let rule = rule_of(record.rtype, &record.data, trigger.as_name())?;
        let looks = looks(trigger.as_name())?;
        let is_exception = matches!(rule, Some(None));
        match rule {
            Some(treatment) => looks.rule(&mut self.rules, treatment, line)?,
            None => {
                self.data.entry(looks.clone()).or_insert_with(|| (line, Vec::new())).1.push(record);
            }
        }
        Ok(Some((looks, is_exception)))
    }

    /// Returns the zone; records that it answers with become rules.
    pub(crate) fn finish(mut self, mistakes: &mut Mistakes) -> ZoneBuilder {
        let mut data: Vec<_> = self.data.drain().collect();
        data.sort_unstable_by_key(|(_, (line, _))| *line);
        for (looks, (line, records)) in data {
            let treatment = Some(Treatment::Records(records.into()));
            if let Err(why) = looks.rule(&mut self.rules, treatment, line) {
                mistakes.add(line, || why);
            }
        }
        self.rules
    }
}

/// Returns whether records of a type make no rule: they are about the zone, or about how it is
/// signed.
pub(crate) const fn is_no_rule(rtype: Rtype) -> bool {
    matches!(
        rtype,
        Rtype::SOA
            | Rtype::NS
            | Rtype::DNAME
            | Rtype::DNSKEY
            | Rtype::DS
            | Rtype::RRSIG
            | Rtype::NSEC
            | Rtype::NSEC3
            | Rtype::NSEC3PARAM
    )
}

/// Returns the rule that a record makes by itself, without a treatment if it is an exception;
/// `None` if it is one of those that are answered with.
pub(crate) fn rule_of(
    rtype: Rtype,
    data: &[u8],
    trigger: Name<'_>,
) -> Result<Option<Option<Treatment>>, String> {
    if rtype == Rtype::CNAME { alias(data, trigger).map(Some) } else { Ok(None) }
}

/// A zone that is being read.
struct Zone {
    /// What names without a dot at their end are below.
    origin: NameBuf,
    /// The zone's own name; the first origin, or the owner of the SOA.
    apex: Option<NameBuf>,
    /// The owner of the entry before, which one without an owner has too.
    owner: Option<NameBuf>,
    rules: Rules,
    /// The TTL of entries without one: that of `$TTL`, or of the entry before.
    ttl: Option<Ttl>,
}

/// Reads a zone.
pub(super) fn read(to: &mut Reading<'_>, octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else {
        return to.mistakes.add(0, || "not UTF-8 text".to_owned());
    };
    let mut zone = Zone {
        origin: NameBuf::root(),
        apex: None,
        owner: None,
        rules: Rules::new(to.list.zone()),
        ttl: None,
    };
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        to.progress.at(line);
        let rest = &text[at..];
        let mut tokens = Tokens::new(rest);
        let result = entry(to, &mut zone, rest, &mut tokens, line);
        // What is left of an entry that is wrong or of no interest is passed over.
        let end = match skip(&mut tokens) {
            Ok(()) => tokens.at(),
            Err(()) => rest.find('\n').unwrap_or(rest.len()),
        };
        if let Err(why) = result {
            to.mistakes.add(line, || why);
        }
        let passed = rest.get(..end + 1).unwrap_or(rest);
        line += passed.bytes().filter(|&octet| octet == b'\n').count() as u32;
        at += passed.len().max(1);
    }
    let rules = zone.rules.finish(&mut to.mistakes);
    to.list.add_zone(rules.compile());
}

pub(crate) fn too_many() -> String {
    "more than 65536 different answers in one zone".to_owned()
}

/// Goes to the end of an entry.
fn skip(tokens: &mut Tokens<'_>) -> Result<(), ()> {
    loop {
        match tokens.next_token() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(_) => return Err(()),
        }
    }
}

fn said(error: &TextError) -> String {
    error.to_string()
}

fn entry(
    to: &mut Reading<'_>,
    zone: &mut Zone,
    text: &str,
    tokens: &mut Tokens<'_>,
    line: u32,
) -> Result<(), String> {
    let has_owner = !text.starts_with([' ', '\t', '\n', '\r', ';']);
    let mut token = match tokens.next_token() {
        Ok(Some(token)) => token,
        Ok(None) => return Ok(()),
        Err(error) => return Err(said(&error)),
    };
    let mut next = |expected| tokens.expect(expected).map_err(|error| said(&error));
    match token.text {
        "$ORIGIN" => {
            let name = next("a name")?;
            zone.origin =
                NameBuf::from_text_below(name.text, zone.origin.as_name()).map_err(|error| said(&error))?;
            return Ok(());
        }
        "$TTL" => {
            zone.ttl = wire::text::parse_period(next("a TTL")?.text).map(Ttl::new);
            return Ok(());
        }
        text if text.starts_with('$') => return Err(format!("\"{text}\" is not supported")),
        _ => {}
    }
    if has_owner {
        zone.owner = Some(match token.text {
            "@" => zone.origin,
            text => NameBuf::from_text_below(text, zone.origin.as_name()).map_err(|error| said(&error))?,
        });
        token = next("a type")?;
    }
    let Some(owner) = zone.owner else { return Err("an entry without an owner".to_owned()) };
    // TTL and class may stand in any order before the type.
    for _ in 0..2 {
        if let Some(seconds) = wire::text::parse_period(token.text) {
            zone.ttl = Some(Ttl::new(seconds));
            token = next("a type")?;
        } else if token.text.eq_ignore_ascii_case("IN") {
            token = next("a type")?;
        }
    }
    let rtype =
        Rtype::from_str(token.text).map_err(|_| format!("\"{}\" is not a record type", token.text))?;
    if rtype == Rtype::SOA {
        zone.apex = Some(owner);
        return Ok(());
    }
    let apex = zone.apex.unwrap_or(zone.origin);
    if below(owner.as_name(), apex.as_name()).is_some_and(|trigger| trigger.as_name().is_root()) {
        // Name servers and the like of the zone itself.
        return Ok(());
    }
    let mut data = Vec::new();
    wire::rdata::parse_tokens(rtype, tokens, Some(zone.origin.as_name()), &mut data)
        .map_err(|error| said(&error))?;
    let record = || ListedRecord { rtype, ttl: zone.ttl, data: data.into() };
    let made = zone.rules.record(apex.as_name(), owner.as_name(), record, line)?;
    if let Some((Looks::Answer(address, bits), is_exception)) = made {
        // Conditions on the answer's addresses know nothing of treatments.
        let list = if is_exception { &mut *to.without } else { &mut *to.addresses };
        let is_right = list.prefix(address, bits);
        debug_assert!(is_right, "checked when it was read");
    }
    Ok(())
}

/// Returns what the target of an alias stands for; nothing if it is an exception.
fn alias(data: &[u8], trigger: Name<'_>) -> Result<Option<Treatment>, String> {
    let Ok((target, _)) = Name::parse(data) else { return Err("not an alias".to_owned()) };
    let mut labels = target.labels();
    Ok(Some(match (labels.next(), labels.next()) {
        (None, _) => Treatment::Rcode(Rcode::NXDOMAIN),
        (Some(b"*"), None) => Treatment::Rcode(Rcode::NOERROR),
        // The wildcard stands for the name asked for.
        (Some(b"*"), Some(_)) => {
            let below = target.parent().unwrap_or(Name::ROOT);
            Treatment::AliasBelow(NameText::from(&below.to_buf()))
        }
        (Some(label), None) if label.eq_ignore_ascii_case(b"rpz-passthru") => return Ok(None),
        (Some(label), None) if label.eq_ignore_ascii_case(b"rpz-drop") => Treatment::Drop,
        (Some(label), None) if label.eq_ignore_ascii_case(b"rpz-tcp-only") => Treatment::Truncate,
        // The old way to let a name pass.
        _ if target == trigger => return Ok(None),
        _ => Treatment::Alias(NameText::from(&target.to_buf())),
    }))
}

/// Returns the labels of a name that stand before those of the zone.
pub(crate) fn below(name: Name<'_>, apex: Name<'_>) -> Option<NameBuf> {
    if !name.is_at_or_below(apex) {
        return None;
    }
    let mut found = NameBuf::root();
    for label in name.labels().take(name.label_count() - apex.label_count()) {
        found.push_label(label).ok()?;
    }
    Some(found)
}

/// Returns what a rule looks at, by its owner below the zone.
pub(crate) fn looks(trigger: Name<'_>) -> Result<Looks, String> {
    let last = trigger.labels().last().unwrap_or(&[]).to_ascii_lowercase();
    match last.as_slice() {
        b"rpz-ip" => prefix(trigger).map(|(address, bits)| Looks::Answer(address, bits)),
        b"rpz-client-ip" => prefix(trigger).map(|(address, bits)| Looks::Client(address, bits)),
        b"rpz-nsip" => prefix(trigger).map(|(address, bits)| Looks::ServerAddress(address, bits)),
        b"rpz-nsdname" => match without_last(trigger) {
            Some(name) if !name.as_name().is_root() => Ok(Looks::ServerName(Names::of(name.as_name()))),
            _ => Err("\"rpz-nsdname\" without a name".to_owned()),
        },
        _ => Ok(Looks::Name(Names::of(trigger))),
    }
}

/// Returns a name without its last label.
fn without_last(name: Name<'_>) -> Option<NameBuf> {
    let mut found = NameBuf::root();
    for label in name.labels().take(name.label_count().checked_sub(1)?) {
        found.push_label(label).ok()?;
    }
    Some(found)
}

/// Reads `24.0.2.0.192.rpz-ip`: the length of a prefix, and its octets or groups from the last on.
fn prefix(trigger: Name<'_>) -> Result<(IpAddr, u8), String> {
    let labels: Vec<String> =
        trigger.labels().map(|label| String::from_utf8_lossy(label).to_ascii_lowercase()).collect();
    let wrong = || format!("\"{}\" is not an address prefix", labels.join("."));
    let [length, parts @ .., _] = labels.as_slice() else { return Err(wrong()) };
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    parts.reverse();
    let text = if parts.len() == 4
        && !parts.contains(&"zz")
        && parts.iter().all(|part| part.parse::<u8>().is_ok())
    {
        parts.join(".")
    } else {
        // "zz" is "::".
        let text = parts.join(":");
        let text = text.replace(":zz:", "::").replace("zz:", "::").replace(":zz", "::");
        if text == "zz" { "::".to_owned() } else { text }
    };
    let address: IpAddr = text.parse().map_err(|_| wrong())?;
    if AddressSetBuilder::new().prefix(address, length) { Ok((address, length)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use crate::ListFormat;
    use crate::testing::{Asked, check_addresses, check_list, check_servers};

    const ZONE: &str = "$TTL 300\n$ORIGIN rpz.example.\n@ IN SOA ns.example. root.example. (\n 1 ; serial\n 2 3 4 5 )\n  IN NS ns.example.\n\
        bad.org CNAME .\n*.bad.org 60 IN CNAME .\ngood.bad.org CNAME rpz-passthru.\nempty.org IN CNAME *.\nsilent.org CNAME rpz-drop.\n\
        tcp.org CNAME rpz-tcp-only.\nwalled.org CNAME garden.example.\nlocal.org A 192.0.2.1\n  AAAA 2001:db8::1\nlocal.org A 192.0.2.2\n\
        full.org.rpz.example. CNAME .\n24.0.2.0.192.rpz-ip CNAME .\n32.7.2.0.192.rpz-ip CNAME rpz-passthru.\n48.zz.db8.2001.rpz-ip CNAME .\n\
        32.1.2.0.192.rpz-client-ip CNAME .\nold.org CNAME old.org.\nelsewhere. CNAME .\nwild.org CNAME *.garden.example.\n\
        ns.example.rpz-nsdname CNAME .\n33.1.2.0.192.rpz-client-ip CNAME .\n32.9.2.0.192.rpz-client-ip A 192.0.2.99\n";

    #[test]
    fn rules_on_names_are_read() {
        let a = |name| Asked { name, qtype: "A", client: "198.51.100.1" };
        check_list(
            ListFormat::Rpz,
            ZONE.as_bytes(),
            &[
                (a("bad.org"), "NXDOMAIN 7"),
                (a("x.bad.org"), "NXDOMAIN 8"),
                (a("good.bad.org"), "allow 9"),
                // RFC 4592: a name that is there is closer than the wildcard above it.
                (a("x.good.bad.org"), "-"),
                (a("empty.org"), "NOERROR 10"),
                (a("x.empty.org"), "-"),
                (a("silent.org"), "drop 11"),
                (a("tcp.org"), "truncate 12"),
                (a("walled.org"), "alias garden.example. 13"),
                (a("local.org"), "records A AAAA A 14"),
                (a("full.org"), "NXDOMAIN 17"),
                (a("old.org"), "allow 22"),
                (a("org"), "-"),
                (a("wild.org"), "alias *.garden.example. 24"),
                (Asked { client: "192.0.2.1", ..a("org") }, "NXDOMAIN 21"),
                (Asked { client: "192.0.2.9", ..a("good.bad.org") }, "records A 27"),
            ],
            &[
                "line 23: elsewhere. is not in the zone rpz.example.",
                "line 26: \"33.1.2.0.192.rpz-client-ip\" is not an address prefix",
            ],
        );
    }

    #[test]
    fn rules_on_name_servers_are_read() {
        let zone = "$ORIGIN rpz.example.\n@ IN SOA ns.example. root.example. 1 2 3 4 5\n\
            ns.bad.example.rpz-nsdname CNAME .\n*.bad.example.rpz-nsdname CNAME *.\n\
            good.bad.example.rpz-nsdname CNAME rpz-passthru.\n24.0.2.0.192.rpz-nsip A 127.0.0.1\n\
            32.7.2.0.192.rpz-nsip CNAME rpz-passthru.\nrpz-nsdname CNAME .\n33.0.2.0.192.rpz-nsip CNAME .\n";
        check_servers(
            zone.as_bytes(),
            &[
                ("ns.bad.example", "198.51.100.1", "NXDOMAIN 3"),
                ("x.bad.example", "198.51.100.1", "NOERROR 4"),
                ("good.bad.example", "192.0.2.1", "allow 5"),
                ("bad.example", "192.0.2.1", "records A 6"),
                ("bad.example", "192.0.2.7", "allow 7"),
                ("bad.example", "198.51.100.1", "-"),
            ],
            &[
                "line 8: \"rpz-nsdname\" without a name",
                "line 9: \"33.0.2.0.192.rpz-nsip\" is not an address prefix",
            ],
        );
        // A condition on addresses of the answer knows nothing of them.
        check_addresses(ListFormat::Rpz, zone.as_bytes(), &[], &[], &["192.0.2.1"], 2);
    }

    #[test]
    fn rules_on_addresses_become_addresses() {
        check_addresses(
            ListFormat::Rpz,
            ZONE.as_bytes(),
            &[],
            &["192.0.2.1", "2001:db8::9"],
            &["192.0.2.7", "192.0.3.1"],
            2,
        );
    }
}
