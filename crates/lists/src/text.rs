//! Lists with a rule on each line.

use std::net::IpAddr;

use sets::Reach;

use wire::NameBuf;

use crate::reading::{Reading, address_range, lenient_range, lines, name_of, shown};

/// Reads rules on names: `domain:`, `full:`, `keyword:`, `regexp:`, and names, which stand for what
/// is below them too. The first line has this number; returns how many there were.
pub(super) fn names(to: &mut Reading<'_>, octets: &[u8], first: u32) -> u32 {
    let mut ended = 0;
    for (number, line) in lines(octets, to.progress) {
        // Behind the last line feed stands no line.
        ended = number - 1;
        let number = number - 1 + first;
        let line = without_comment(line);
        if line.is_empty() {
            continue;
        }
        if line.iter().any(u8::is_ascii_whitespace)
            && !line.starts_with(b"regexp:")
            && !line.starts_with(b"regex:")
        {
            to.mistakes.add(number, || format!("\"{}\" is more than one rule", shown(line)));
            continue;
        }
        rule(to, line, number);
    }
    ended
}

/// Returns the rule of a line on names, without blanks and comment; `None` if there is none.
pub(super) fn rule_of(line: &[u8]) -> Option<&[u8]> {
    Some(without_comment(line.trim_ascii())).filter(|line| !line.is_empty())
}

/// Returns the name of a rule on a name, and whether those below it are meant as well; `None` if it
/// is a keyword, an expression, or wrong.
pub(super) fn name_rule(rule: &[u8]) -> Option<(NameBuf, bool)> {
    if rule.iter().any(u8::is_ascii_whitespace) {
        return None;
    }
    let (name, is_below) = match rule.iter().position(|&octet| octet == b':') {
        None => (bare(rule), true),
        Some(colon) => match &rule[..colon] {
            b"domain" | b"suffix" => (bare(&rule[colon + 1..]), true),
            b"full" | b"exact" => (&rule[colon + 1..], false),
            _ => return None,
        },
    };
    Some((name_of(name).ok()?, is_below))
}

/// Reads one rule on names.
fn rule(to: &mut Reading<'_>, line: &[u8], number: u32) {
    let Some(colon) = line.iter().position(|&octet| octet == b':') else {
        return to.name(bare(line), Reach::ItselfAndBelow, number);
    };
    let (form, rest) = (&line[..colon], &line[colon + 1..]);
    match form {
        b"domain" | b"suffix" => to.name(bare(rest), Reach::ItselfAndBelow, number),
        b"full" | b"exact" => to.name(rest, Reach::Itself, number),
        b"keyword" | b"regexp" | b"regex" => {
            let Ok(text) = std::str::from_utf8(rest) else {
                return to.mistakes.add(number, || format!("\"{}\" is not text", shown(rest)));
            };
            let added = if form == b"keyword" {
                to.names.keyword(text.trim_end_matches('.'), number)
            } else {
                to.names.regex(text, number)
            };
            to.pattern(added, number);
        }
        other => to.mistakes.add(number, || {
            format!(
                "unknown form of rule \"{}:\" (expected domain:, full:, keyword: or regexp:)",
                shown(other)
            )
        }),
    }
}

/// Returns a name without the `.` or `*.` before it: with either it means what it means by itself.
fn bare(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"*").unwrap_or(name).strip_prefix(b".").filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Reads addresses, prefixes and ranges. What follows a blank is a comment.
pub(super) fn addresses(to: &mut Reading<'_>, octets: &[u8]) {
    for (number, line) in lines(octets, to.progress) {
        let line = without_comment(line);
        let Some(word) = line.split(u8::is_ascii_whitespace).next().filter(|word| !word.is_empty()) else {
            continue;
        };
        let read = if to.is_own { address_range } else { lenient_range };
        match std::str::from_utf8(word).map(read) {
            Ok(Ok(range)) => to.range(range, number),
            Ok(Err(misread)) => to.mistakes.add(number, || misread.message),
            Err(_) => to.mistakes.add(number, || format!("\"{}\" is not an address", shown(word))),
        }
    }
}

/// Reads the names of a hosts file (hosts(5)). The names that every such file has are left out.
pub(super) fn hosts(to: &mut Reading<'_>, octets: &[u8]) {
    for (number, line) in lines(octets, to.progress) {
        let mut words = without_comment(line).split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { continue };
        let address = std::str::from_utf8(first).ok().and_then(|text| {
            let text = text.split('%').next().unwrap_or(text);
            text.parse::<IpAddr>().ok()
        });
        if address.is_none() {
            to.mistakes.add(number, || format!("\"{}\" is not an address", shown(first)));
            continue;
        }
        for name in words {
            if !is_usual_host(name) {
                to.name(name, Reach::Itself, number);
            }
        }
    }
}

/// Returns whether a name stands in every hosts file, for the machine itself.
pub(super) fn is_usual_host(name: &[u8]) -> bool {
    const USUAL: [&[u8]; 13] = [
        b"localhost",
        b"localhost.localdomain",
        b"local",
        b"broadcasthost",
        b"ip6-localhost",
        b"ip6-loopback",
        b"ip6-localnet",
        b"ip6-mcastprefix",
        b"ip6-allnodes",
        b"ip6-allrouters",
        b"ip6-allhosts",
        b"localhost6",
        b"0.0.0.0",
    ];
    USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(name))
}

/// Reads the names of a dnsmasq configuration: `address=/a/b/…`, `server=/a/…`, `local=/a/`, and
/// `ipset=` and `nftset=` alike. `/#/`, all names, is not a rule about one.
pub(super) fn dnsmasq(to: &mut Reading<'_>, octets: &[u8]) {
    const KEYS: [&[u8]; 5] = [b"address", b"server", b"local", b"ipset", b"nftset"];
    for (number, line) in lines(octets, to.progress) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let wrong = |to: &mut Reading<'_>| {
            to.mistakes.add(number, || format!("\"{}\" names no domains", shown(line)));
        };
        let Some(equals) = line.iter().position(|&octet| octet == b'=') else {
            wrong(to);
            continue;
        };
        let (key, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
        if !KEYS.contains(&key) {
            wrong(to);
            continue;
        }
        let Some(inside) = value.strip_prefix(b"/") else {
            wrong(to);
            continue;
        };
        let Some(end) = inside.iter().rposition(|&octet| octet == b'/') else {
            wrong(to);
            continue;
        };
        for name in inside[..end].split(|&octet| octet == b'/') {
            match name {
                b"" | b"#" => wrong(to),
                name => match name.strip_prefix(b"*.") {
                    Some(below) => to.name(below, Reach::Below, number),
                    None => to.name(name.strip_prefix(b".").unwrap_or(name), Reach::ItselfAndBelow, number),
                },
            }
        }
    }
}

/// Cuts a line at `#`, and what is blank before it.
fn without_comment(line: &[u8]) -> &[u8] {
    match line.iter().position(|&octet| octet == b'#') {
        Some(at) => line[..at].trim_ascii_end(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use crate::ListFormat;
    use crate::testing::{check, check_addresses};

    #[test]
    fn rules_on_names_are_read() {
        check(
            ListFormat::Names,
            b"# a comment\nexample.org # why\r\ndomain:Example.NET.\nfull:www.example.com\nkeyword:ADS\nregexp:^x[0-9]+\\.\n\nnonsense:x\na b\na..b\n",
            &["example.org", "a.example.org", "a.example.net", "www.example.com", "loads.example", "x9.example"],
            &["example.com", "a.www.example.com", "xa.example", "org"],
            &[
                "line 8: unknown form of rule \"nonsense:\" (expected domain:, full:, keyword: or regexp:)",
                "line 9: \"a b\" is more than one rule",
                "line 10: \"a..b\" is not a domain name: a label is empty",
            ],
        );
    }

    #[test]
    fn names_outside_ascii_are_converted() {
        let inside = ["xn--bcher-kva.example"];
        check(ListFormat::Names, "bücher.example\n".as_bytes(), &inside, &[], &[]);
        check(ListFormat::Names, "full:Bücher.example\n".as_bytes(), &inside, &[], &[]);
        check(ListFormat::Hosts, "0.0.0.0 bücher.example\n".as_bytes(), &inside, &[], &[]);
        check(ListFormat::Dnsmasq, "local=/bücher.example/\n".as_bytes(), &inside, &[], &[]);
        check(ListFormat::Adguard, "||bücher.example^\n".as_bytes(), &inside, &[], &[]);
    }

    #[test]
    fn hosts_files_give_their_names() {
        check(
            ListFormat::Hosts,
            b"127.0.0.1 localhost\n0.0.0.0 ads.example track.example # both\n::1 ip6-localhost v6.example\nfe80::1%lo0 x.example\nnothing\n",
            &["ads.example", "track.example", "v6.example", "x.example"],
            &["localhost", "a.ads.example", "ip6-localhost"],
            &["line 5: \"nothing\" is not an address"],
        );
    }

    #[test]
    fn dnsmasq_files_give_their_domains() {
        check(
            ListFormat::Dnsmasq,
            b"# list\naddress=/ads.example/0.0.0.0\nserver=/a.example/b.example/192.0.2.1\nlocal=/lan/\naddress=/#/192.0.2.1\ncache-size=10\naddress=/*.c.example/\n",
            &["ads.example", "x.ads.example", "a.example", "b.example", "host.lan", "x.c.example"],
            &["example", "c.example"],
            &["line 5: \"address=/#/192.0.2.1\" names no domains", "line 6: \"cache-size=10\" names no domains"],
        );
    }

    #[test]
    fn addresses_are_read() {
        check_addresses(
            ListFormat::Addresses,
            b"192.0.2.0/24 # x\n198.51.100.1 comment\n2001:db8::1-2001:db8::9\n\n300.1.1.1\n192.0.2.1/40\n",
            &[],
            &["192.0.2.77", "198.51.100.1", "2001:db8::5"],
            &["198.51.100.2", "2001:db8::a"],
            2,
        );
    }
}
