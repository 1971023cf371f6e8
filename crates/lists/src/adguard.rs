//! The syntax of AdGuard and Adblock Plus, as far as it is about names.
//!
//! ```text
//! rule     = [ "@@" ] pattern [ "$" modifier { "," modifier } ]
//! pattern  = "||" name "^" | "|" name "^" | "/" regular expression "/" | name with "*" | text
//! ```
//!
//! A rule about paths, page elements or scripts says nothing about names: it is counted and left
//! out, as is every rule with a modifier that we do not know, because what it would have excluded
//! is not known either.

use std::collections::HashSet;
use std::net::IpAddr;
use std::str::FromStr as _;

use sets::{
    AddressSetBuilder, Class, Condition, ListedRecord, NameSetBuilder, NameText, Pattern, PatternError,
    Reach, Treatment,
};
use wire::{Name, NameBuf, Rcode, Rtype};

use crate::reading::{Progress, Reading, add_prefixes, lines, name_of, shown};
use crate::text::is_usual_host;

/// A rule, cut into its parts.
struct Rule<'a> {
    is_exception: bool,
    pattern: &'a str,
    modifiers: Vec<&'a str>,
}

/// Adds the rules that `badfilter` disables, as [`canonical`] writes them.
pub(super) fn revoked(octets: &[u8], all: &mut HashSet<String>) {
    const MARK: &[u8] = b"badfilter";
    for (_, line) in lines(octets, Progress::default()) {
        if line.windows(MARK.len()).any(|part| part == MARK)
            && let Ok(text) = std::str::from_utf8(line)
            && let Some(mut rule) = cut(text)
            && rule.modifiers.contains(&"badfilter")
        {
            rule.modifiers.retain(|modifier| *modifier != "badfilter");
            all.insert(canonical(&rule));
        }
    }
}

/// Writes a rule so that rules that mean the same are written alike.
fn canonical(rule: &Rule<'_>) -> String {
    let mut modifiers = rule.modifiers.clone();
    modifiers.sort_unstable();
    let mark = if rule.is_exception { "@@" } else { "" };
    format!("{mark}{}${}", rule.pattern.to_ascii_lowercase(), modifiers.join(","))
}

/// Reads a list.
pub(super) fn read(to: &mut Reading<'_>, octets: &[u8]) {
    for (number, line) in lines(octets, to.progress) {
        if line.is_empty() || line.starts_with(b"!") || line.starts_with(b"[") {
            continue;
        }
        // The common rule, without anything but a name.
        if let Some(name) = line.strip_prefix(b"||").and_then(|rest| rest.strip_suffix(b"^"))
            && to.revoked.is_empty()
            && !name.contains(&b'*')
            && let Ok(name) = name_of(name)
        {
            to.names.name(name.as_name(), Reach::ItselfAndBelow, number);
            continue;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            to.mistakes.add(number, || format!("\"{}\" is not text", shown(line)));
            continue;
        };
        if let Err(why) = line_of(to, text, number) {
            to.mistakes.add(number, || format!("\"{}\": {why}", shown(line)));
        }
    }
}

/// Reads one line; an error says why it is ignored.
fn line_of(to: &mut Reading<'_>, text: &str, number: u32) -> Result<(), String> {
    // `#` begins a comment, and what page elements are hidden by.
    if text.starts_with('#') && !text.starts_with("##") {
        return Ok(());
    }
    if ["##", "#@#", "#?#", "#$#", "#%#", "$$"].iter().any(|mark| text.contains(mark)) {
        return Err("a rule about page elements".to_owned());
    }
    if hosts_line(to, text, number) {
        return Ok(());
    }
    let rule = cut(text).ok_or("not a rule")?;
    if rule.modifiers.contains(&"badfilter")
        || (!to.revoked.is_empty() && to.revoked.contains(&canonical(&rule)))
    {
        return Ok(());
    }
    let modifiers = modifiers(to, &rule)?;
    let class = match (rule.is_exception, modifiers.is_important) {
        (false, false) => Class::Block,
        (false, true) => Class::ImportantBlock,
        (true, false) => Class::Allow,
        (true, true) => Class::ImportantAllow,
    };
    let mut name = NameBuf::root();
    let mut regex = String::new();
    let pattern = pattern(rule.pattern, &mut name, &mut regex)?;
    let said = |error: PatternError| error.to_string();
    if modifiers.is_special {
        let says = (modifiers.condition, modifiers.treatment);
        to.list.special(class, pattern, says, number).map_err(said)
    } else if class == Class::Block {
        pattern.add(to.names, number).map_err(said)
    } else {
        to.list.plain(class, pattern, number).map_err(said)
    }
}

/// Reads `0.0.0.0 name name`; returns false if the line does not begin with an address.
fn hosts_line(to: &mut Reading<'_>, text: &str, number: u32) -> bool {
    let mut words = text.split_whitespace();
    if words.next().and_then(|first| first.parse::<IpAddr>().ok()).is_none() {
        return false;
    }
    let mut words = words.take_while(|word| !word.starts_with('#')).peekable();
    if words.peek().is_none() {
        return false;
    }
    for word in words.filter(|word| !is_usual_host(word.as_bytes())) {
        to.name(word.as_bytes(), Reach::Itself, number);
    }
    true
}

fn cut(text: &str) -> Option<Rule<'_>> {
    let (is_exception, rest) = match text.strip_prefix("@@") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A "$" in a regular expression is part of it.
    let from = match rest.strip_prefix('/') {
        Some(inside) => inside.rfind('/').map_or(0, |end| end + 2),
        None => 0,
    };
    let (pattern, modifiers) = match rest.get(from..)?.find('$') {
        Some(at) => (&rest[..from + at], split_modifiers(&rest[from + at + 1..])),
        None => (rest, Vec::new()),
    };
    let pattern = pattern.trim();
    (!pattern.is_empty()).then_some(Rule { is_exception, pattern, modifiers })
}

/// Splits at commas that no backslash stands before.
fn split_modifiers(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        if c == ',' && !escaped {
            all.push(text[start..at].trim());
            start = at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    all.push(text[start..].trim());
    all.retain(|modifier| !modifier.is_empty());
    all
}

/// The modifiers of a rule.
struct Modifiers {
    is_important: bool,
    /// Whether the rule needs more than a set of names.
    is_special: bool,
    condition: Condition,
    treatment: Treatment,
}

fn modifiers(to: &Reading<'_>, rule: &Rule<'_>) -> Result<Modifiers, String> {
    let condition = Condition {
        qtypes: Box::default(),
        not_qtypes: Box::default(),
        clients: None,
        not_clients: None,
        not_names: None,
    };
    let mut found =
        Modifiers { is_important: false, is_special: false, condition, treatment: Treatment::Block };
    for modifier in &rule.modifiers {
        let (key, value) = match modifier.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (*modifier, None),
        };
        match (key, value) {
            ("important", None) => {
                found.is_important = true;
                continue;
            }
            // Whether a browser asks for the page itself or for a part of it cannot be seen here.
            ("all", None) => continue,
            ("dnstype", Some(value)) => dnstype(value, &mut found.condition)?,
            ("denyallow", Some(value)) => {
                let mut names = NameSetBuilder::new(to.key);
                for name in value.split('|') {
                    names.name(name_of(name.as_bytes())?.as_name(), Reach::ItselfAndBelow, 1);
                }
                found.condition.not_names = Some(names.compile());
            }
            ("client" | "ctag", Some(value)) => clients(to, value, &mut found.condition)?,
            ("dnsrewrite", value) => {
                found.treatment = dnsrewrite(value.unwrap_or(""), rule.is_exception)?;
            }
            (other, _) => return Err(format!("unknown modifier \"{other}\"")),
        }
        found.is_special = true;
    }
    Ok(found)
}

fn dnstype(value: &str, condition: &mut Condition) -> Result<(), String> {
    let (mut only, mut without) = (Vec::new(), Vec::new());
    for word in value.split('|') {
        let (word, list) = match word.strip_prefix('~') {
            Some(word) => (word, &mut without),
            None => (word, &mut only),
        };
        list.push(Rtype::from_str(word).map_err(|_| format!("\"{word}\" is not a record type"))?);
    }
    condition.qtypes = only.into();
    condition.not_qtypes = without.into();
    Ok(())
}

/// Reads addresses, prefixes, and names that the set's `tags` explain.
fn clients(to: &Reading<'_>, value: &str, condition: &mut Condition) -> Result<(), String> {
    let (mut only, mut without) = (AddressSetBuilder::new(), AddressSetBuilder::new());
    let (mut has_only, mut has_without) = (false, false);
    for word in value.split('|') {
        let (word, is_out) = match word.strip_prefix('~') {
            Some(word) => (word, true),
            None => (word, false),
        };
        let word = word.trim_matches(['"', '\'']).replace('\\', "");
        let list = if is_out { &mut without } else { &mut only };
        if is_out {
            has_without = true;
        } else {
            has_only = true;
        }
        if let Ok(prefix) = values::prefix(&word) {
            let is_right = list.prefix(prefix.address(), prefix.bits());
            debug_assert!(is_right, "a prefix is never longer than an address");
        } else if let Some((_, prefixes)) = to.tags.iter().find(|(name, _)| *name == word) {
            add_prefixes(list, prefixes);
        } else {
            return Err(format!("the set has no tag \"{word}\""));
        }
    }
    // Two such modifiers must both hold.
    let both = |old: Option<sets::AddressSet>, new: sets::AddressSet| match old {
        None => new,
        Some(old) => {
            let mut outside = AddressSetBuilder::new();
            outside.include(&old);
            outside.except(&new);
            let mut common = AddressSetBuilder::new();
            common.include(&old);
            common.except(&outside.compile());
            common.compile()
        }
    };
    if has_only {
        condition.clients = Some(both(condition.clients.take(), only.compile()));
    }
    if has_without {
        if let Some(old) = &condition.not_clients {
            without.include(old);
        }
        condition.not_clients = Some(without.compile());
    }
    Ok(())
}

/// Reads an address, a name, a code, or `CODE;TYPE;VALUE`.
fn dnsrewrite(value: &str, is_exception: bool) -> Result<Treatment, String> {
    if value.is_empty() {
        // An exception from every rewriting; in a rule it would say nothing.
        return if is_exception {
            Ok(Treatment::Block)
        } else {
            Err("\"dnsrewrite\" says nothing".to_owned())
        };
    }
    let record = |rtype: Rtype, text: &str| {
        let data = record_data(rtype, text)?;
        Ok(Treatment::Records([ListedRecord { rtype, ttl: None, data: data.into() }].into()))
    };
    let alias = |text: &str| Ok(Treatment::Alias(NameText::from(&name_of(text.as_bytes())?)));
    let mut parts = value.splitn(3, ';');
    let (first, rtype, data) = (parts.next().unwrap_or(""), parts.next(), parts.next());
    let Some(rtype) = rtype else {
        if let Ok(address) = first.parse::<IpAddr>() {
            return record(if address.is_ipv4() { Rtype::A } else { Rtype::AAAA }, first);
        }
        return match values::rcode(&first.to_ascii_lowercase()) {
            Ok(rcode) if first.bytes().all(|octet| octet.is_ascii_uppercase()) => Ok(Treatment::Rcode(rcode)),
            _ => alias(first),
        };
    };
    let rcode = values::rcode(&first.to_ascii_lowercase()).map_err(|misread| misread.message)?;
    match (rcode, rtype, data.unwrap_or("")) {
        (Rcode::NOERROR, rtype, data) if !rtype.is_empty() && !data.is_empty() => {
            if rtype.eq_ignore_ascii_case("CNAME") {
                return alias(data);
            }
            record(Rtype::from_str(rtype).map_err(|_| format!("\"{rtype}\" is not a record type"))?, data)
        }
        (rcode, _, _) => Ok(Treatment::Rcode(rcode)),
    }
}

/// Returns data of a record in wire form; names in it need no dot at their end.
fn record_data(rtype: Rtype, text: &str) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    wire::rdata::parse_text(rtype, text, Some(Name::ROOT), &mut data)
        .map_err(|error| format!("\"{text}\": {error}"))?;
    Ok(data)
}

/// Reads a pattern; what it borrows is written to `name` and `regex`.
fn pattern<'a>(text: &'a str, name: &'a mut NameBuf, regex: &'a mut String) -> Result<Pattern<'a>, String> {
    if let Some(inside) =
        text.strip_prefix('/').and_then(|text| text.strip_suffix('/')).filter(|text| !text.is_empty())
    {
        return Ok(Pattern::Regex(inside));
    }
    let (text, begins_at) = match (text.strip_prefix("||"), text.strip_prefix('|')) {
        (Some(rest), _) => (rest, Begin::Label),
        (None, Some(rest)) => (rest, Begin::Name),
        (None, None) => (text, Begin::Anywhere),
    };
    // "https://" before a name says nothing about the name.
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (text, is_closed) =
        match text.strip_suffix("^|").or_else(|| text.strip_suffix('^')).or_else(|| text.strip_suffix('|')) {
            Some(rest) => (rest, true),
            None => (text, false),
        };
    if text.contains(['/', '^', '|', '?', '=', ':', ' ']) {
        return Err("a rule about more than a name".to_owned());
    }
    // A name alone on a line is that name.
    let is_name_alone =
        matches!(begins_at, Begin::Anywhere) && !is_closed && text.contains('.') && !text.ends_with('.');
    let plain = |text: &str| name_of(text.as_bytes());
    match begins_at {
        Begin::Label
            if !text.contains('*') && (is_closed || text.contains('.')) && !text.starts_with('.') =>
        {
            *name = plain(text)?;
            return Ok(Pattern::Name(name.as_name(), Reach::ItselfAndBelow));
        }
        Begin::Label if is_closed && text.strip_prefix("*.").is_some_and(|rest| !rest.contains('*')) => {
            *name = plain(&text[2..])?;
            return Ok(Pattern::Name(name.as_name(), Reach::Below));
        }
        Begin::Name if !text.contains('*') && is_closed => {
            *name = plain(text)?;
            return Ok(Pattern::Name(name.as_name(), Reach::Itself));
        }
        Begin::Anywhere if is_name_alone && !text.contains('*') && !text.starts_with('.') => {
            *name = plain(text)?;
            return Ok(Pattern::Name(name.as_name(), Reach::Itself));
        }
        Begin::Anywhere
            if is_name_alone && text.strip_prefix("*.").is_some_and(|rest| !rest.contains('*')) =>
        {
            *name = plain(&text[2..])?;
            return Ok(Pattern::Name(name.as_name(), Reach::Below));
        }
        Begin::Anywhere if !text.contains('*') && !is_closed => {
            if text.is_empty() {
                return Err("every name would fit".to_owned());
            }
            return Ok(Pattern::Keyword(text));
        }
        Begin::Label | Begin::Name | Begin::Anywhere => {}
    }
    if text.trim_matches(['*', '.']).is_empty() {
        return Err("every name would fit".to_owned());
    }
    regex.push_str(match begins_at {
        Begin::Label => r"(?:^|\.)",
        Begin::Name => "^",
        Begin::Anywhere => "",
    });
    for c in text.chars() {
        match c {
            '*' => regex.push_str(".*"),
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => regex.push(c),
            '.' => regex.push_str(r"\."),
            c => return Err(format!("\"{c}\" is in no name")),
        }
    }
    if is_closed {
        regex.push('$');
    }
    Ok(Pattern::Regex(regex))
}

/// Where in a name a pattern begins.
#[derive(Clone, Copy)]
enum Begin {
    Label,
    Name,
    Anywhere,
}

#[cfg(test)]
mod tests {
    use crate::ListFormat;
    use crate::testing::{Asked, check_list};

    fn check(list: &str, asked: &[(Asked<'_>, &str)], mistakes: &[&str]) {
        check_list(ListFormat::Adguard, list.as_bytes(), asked, mistakes);
    }

    const fn a(name: &str) -> Asked<'_> {
        Asked { name, qtype: "A", client: "192.0.2.1" }
    }

    #[test]
    fn patterns_are_read() {
        check(
            "! Title: x\n[Adblock Plus 2.0]\n# comment\n||ads.example^\n|exact.example^\nplain.example\n||*.below.example^\n||track*.example^\n\
             /^re[0-9]+\\.example$/\nbanner\n0.0.0.0 hosts.example localhost\n*.star.example\n",
            &[
                (a("ads.example"), "block 4"),
                (a("x.ads.example"), "block 4"),
                (a("exact.example"), "block 5"),
                (a("x.exact.example"), "-"),
                (a("plain.example"), "block 6"),
                (a("below.example"), "-"),
                (a("a.below.example"), "block 7"),
                (a("tracker.example"), "block 8"),
                (a("a.track.b.example"), "block 8"),
                (a("untrack.example"), "-"),
                (a("re77.example"), "block 9"),
                (a("my-banner.example"), "block 10"),
                (a("hosts.example"), "block 11"),
                (a("localhost"), "-"),
                (a("x.star.example"), "block 12"),
            ],
            &[],
        );
    }

    #[test]
    fn exceptions_and_modifiers_count() {
        check(
            "||example.org^\n@@||good.example.org^\n||bad.good.example.org^$important\n@@||best.example.org^$important\n\
             ||typed.example^$dnstype=AAAA\n||typed2.example^$dnstype=~AAAA\n||deny.example^$denyallow=a.deny.example|b.deny.example\n\
             ||client.example^$client=192.0.2.1\n||client2.example^$client=~192.0.2.0/24\n||tv.example^$ctag=device_tv\n||named.example^$client='Frank\\'s tv'\n\
             ||gone.example^\n||gone.example^$badfilter\n||gone2.example^$important,dnstype=A\n||gone2.example^$dnstype=A,badfilter,important\n",
            &[
                (a("example.org"), "block 1"),
                (a("good.example.org"), "allow 2"),
                (a("bad.good.example.org"), "block 3"),
                (a("best.example.org"), "allow 4"),
                (a("typed.example"), "-"),
                (Asked { qtype: "AAAA", ..a("typed.example") }, "block 5"),
                (a("typed2.example"), "block 6"),
                (Asked { qtype: "AAAA", ..a("typed2.example") }, "-"),
                (a("x.deny.example"), "block 7"),
                (a("x.b.deny.example"), "-"),
                (a("client.example"), "block 8"),
                (Asked { client: "192.0.2.2", ..a("client.example") }, "-"),
                (a("client2.example"), "-"),
                (Asked { client: "198.51.100.1", ..a("client2.example") }, "block 9"),
                (a("tv.example"), "-"),
                (Asked { client: "192.0.2.77", ..a("tv.example") }, "block 10"),
                (Asked { client: "192.0.2.78", ..a("named.example") }, "block 11"),
                (a("gone.example"), "-"),
                (a("gone2.example"), "-"),
            ],
            &[],
        );
    }

    #[test]
    fn rewriting_is_read() {
        check(
            "|a.example^$dnsrewrite=192.0.2.9\n|b.example^$dnsrewrite=NOERROR;AAAA;2001:db8::1\n|c.example^$dnsrewrite=target.example\n\
             |d.example^$dnsrewrite=NXDOMAIN\n|e.example^$dnsrewrite=REFUSED;;\n|f.example^$dnsrewrite=NOERROR;MX;10 mail.example\n\
             |g.example^$dnsrewrite=NOERROR;CNAME;other.example\n",
            &[
                (a("a.example"), "records A 1"),
                (a("b.example"), "records AAAA 2"),
                (a("c.example"), "alias target.example. 3"),
                (a("d.example"), "NXDOMAIN 4"),
                (a("e.example"), "REFUSED 5"),
                (a("f.example"), "records MX 6"),
                (a("g.example"), "alias other.example. 7"),
            ],
            &[],
        );
    }

    #[test]
    fn what_is_not_about_names_is_counted() {
        check(
            "||example.org/path\nexample.com##.ad\n||example.net^$script\n||example.net^$client=nobody\n||x.example^$dnstype=NOPE\n",
            &[(a("example.org"), "-"), (a("example.com"), "-"), (a("example.net"), "-")],
            &[
                "line 1: \"||example.org/path\": a rule about more than a name",
                "line 2: \"example.com##.ad\": a rule about page elements",
                "line 3: \"||example.net^$script\": unknown modifier \"script\"",
            ],
        );
    }
}
