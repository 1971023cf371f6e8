//! What is in use: zones, data, servers, queries that wait.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use cache::servers::{Edns, Facts as ServerFacts};
use control::api::ResolverZone;
use server::WaitsFor;
use unbound::FoundElsewhere;

use super::changes::known_view;
use super::{Call, Failure, Outcome, dotted};

pub(super) fn list_local_zones(call: &mut Call<'_>) -> Outcome {
    zones(call, None)
}

pub(super) fn view_list_local_zones(call: &mut Call<'_>) -> Outcome {
    known_view(call, call.argument)?;
    zones(call, Some(call.argument))
}

fn zones(call: &mut Call<'_>, view: Option<&str>) -> Outcome {
    let facts = call.facts()?;
    let mut zones = facts.local_zones(view);
    zones.retain(|(_, kind)| kind != "nodefault");
    zones.extend(facts.built_in_zones(view));
    zones.sort_by_cached_key(|(name, _)| by_labels(name));
    for (name, kind) in zones {
        call.line(format_args!("{} {kind}", dotted(&name)))?;
    }
    Ok(())
}

/// Returns what names are sorted by, as the other program lists them: label by label from the last
/// one, of two the shorter first.
///
/// One allocation, as a million names may be sorted: the length of each label as an octet, then the
/// label in lower case.
pub(super) fn by_labels(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 1);
    for label in name.trim_end_matches('.').rsplit('.').filter(|label| !label.is_empty()) {
        key.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        key.extend(label.bytes().map(|octet| octet.to_ascii_lowercase()));
    }
    key
}

pub(super) fn list_local_data(call: &mut Call<'_>) -> Outcome {
    data(call, None)
}

pub(super) fn view_list_local_data(call: &mut Call<'_>) -> Outcome {
    known_view(call, call.argument)?;
    data(call, Some(call.argument))
}

fn data(call: &mut Call<'_>, view: Option<&str>) -> Outcome {
    let facts = call.facts()?;
    let mut records = facts.local_data(view);
    records.extend(facts.built_in_data(view));
    for record in sorted(records) {
        // The other program leaves a line empty behind each.
        call.line(format_args!("{record}\n"))?;
    }
    Ok(())
}

/// Sorts records as they are listed. Those of one owner stay in their order.
fn sorted(mut records: Vec<String>) -> Vec<String> {
    records.sort_by_cached_key(|record| by_labels(record.split('\t').next().unwrap_or_default()));
    records
}

pub(super) fn list_insecure(call: &mut Call<'_>) -> Outcome {
    for name in call.facts()?.insecure() {
        call.line(dotted(&name))?;
    }
    Ok(())
}

/// Returns servers as they are listed: names with their dot, then addresses as the file has them
/// but for the usual port.
pub(super) fn servers(zone: &FoundElsewhere) -> String {
    let shown = |server: &String| match unbound::is_address(server) {
        true => server.strip_suffix("@53").unwrap_or(server).to_owned(),
        false => {
            let at = server.find(['@', '#']).unwrap_or(server.len());
            let (name, rest) = server.split_at(at);
            format!("{}{rest}", dotted(name))
        }
    };
    let (addresses, names): (Vec<&String>, Vec<&String>) =
        zone.servers.iter().partition(|server| unbound::is_address(server));
    names.into_iter().chain(addresses).map(shown).collect::<Vec<_>>().join(" ")
}

fn plus(zone: &FoundElsewhere) -> &'static str {
    if zone.is_insecure { "+i " } else { "" }
}

pub(super) fn list_forwards(call: &mut Call<'_>) -> Outcome {
    for zone in call.facts()?.forwards() {
        call.line(format_args!("{} IN forward {}{}", dotted(&zone.name), plus(&zone), servers(&zone)))?;
    }
    Ok(())
}

pub(super) fn list_stubs(call: &mut Call<'_>) -> Outcome {
    let facts = call.facts()?;
    let (stubs, has_ipv6) = (facts.stubs(), facts.value("do-ip6") != "no");
    if !stubs.iter().any(|zone| zone.name == ".") {
        let hints = call.context.operator.root_hints();
        // The last first, as the other program keeps them.
        let names = hints.iter().rev().map(|(name, _)| name.clone());
        let addresses = hints.iter().rev().flat_map(|(_, addresses)| addresses.iter().rev());
        let addresses = addresses.filter(|it| has_ipv6 || it.is_ipv4()).map(ToString::to_string);
        let all: Vec<String> = names.chain(addresses).collect();
        call.line(format_args!(". IN stub prime {}", all.join(" ")))?;
    }
    for zone in stubs {
        let primes = if zone.primes { "prime" } else { "noprime" };
        call.line(format_args!("{} IN stub {primes} {}{}", dotted(&zone.name), plus(&zone), servers(&zone)))?;
    }
    Ok(())
}

/// Says who would be asked for a name.
pub(super) fn lookup(call: &mut Call<'_>) -> Outcome {
    let name = call.name()?;
    call.line(format_args!(
        "The following name servers are used for lookup of {}",
        dotted(&name.to_string())
    ))?;
    if let Ok(facts) = call.facts() {
        let encloses = |zone: &&FoundElsewhere| {
            zone.name.parse::<wire::NameBuf>().is_ok_and(|zone| name.as_name().is_at_or_below(zone.as_name()))
        };
        let (forwards, stubs) = (facts.forwards(), facts.stubs());
        let closest = |zones: &[FoundElsewhere]| {
            zones.iter().filter(encloses).max_by_key(|zone| zone.name.trim_matches('.').len()).cloned()
        };
        let (forward, stub) = (closest(&forwards), closest(&stubs));
        let depth =
            |zone: &Option<FoundElsewhere>| zone.as_ref().map(|zone| zone.name.trim_matches('.').len());
        if let Some(zone) = forward.as_ref().filter(|_| depth(&forward) >= depth(&stub)) {
            call.line("forwarding request:")?;
            return delegation(call, zone);
        }
        if let Some(zone) = &stub {
            call.line(format_args!("stub zone {}:", dotted(&zone.name)))?;
            return delegation(call, zone);
        }
    }
    let known = call.context.operator.resolver_zone(None, &name.to_string())?;
    let Some(ResolverZone { zone: Some(zone), servers, .. }) = known.into_iter().next() else {
        return call.line("no delegation from cache; goes to configured roots");
    };
    call.line(format_args!("{} {} names of servers:", dotted(&zone), servers.len()))?;
    for server in servers {
        call.line(format_args!("{} {}", dotted(&server.name), server.addresses.join(" ")))?;
    }
    Ok(())
}

fn delegation(call: &mut Call<'_>, zone: &FoundElsewhere) -> Outcome {
    let (addresses, names): (Vec<&String>, Vec<&String>) =
        zone.servers.iter().partition(|server| unbound::is_address(server));
    let count = names.len();
    call.line(format_args!(
        "Delegation with {count} names, of which {count} can be examined to query further addresses."
    ))?;
    call.line(format_args!("It provides {} IP addresses.", addresses.len()))?;
    let mut known = BTreeMap::new();
    call.context.operator.each_server(|address, facts| {
        known.insert(address, of_server(facts));
    });
    for text in addresses {
        let (address, _) = text.split_once('#').unwrap_or((text, ""));
        let (ip, port) = address.split_once('@').unwrap_or((address, "53"));
        let address = ip.parse::<IpAddr>().ok().zip(port.parse::<u16>().ok()).map(SocketAddr::from);
        let facts = address.and_then(|address| known.get(&address));
        call.line(format_args!("{ip:<16}\t{}", facts.map_or("not in infra cache.", String::as_str)))?;
    }
    Ok(())
}

/// Returns what is known of a server, as `lookup` has it.
fn of_server(facts: &ServerFacts) -> String {
    let Measured { ping, var, rtt, rto } = Measured::of(facts);
    let edns = match facts.edns {
        Edns::Unknown => "EDNS 0 assumed",
        Edns::Works | Edns::UpTo { .. } => "EDNS 0 probed",
        Edns::None => "EDNS -1 probed",
    };
    let silences = facts.silences;
    format!(
        "rto {rto} msec, ttl 0, ping {ping} var {var} rtt {rtt}, tA 0, tAAAA 0, tother {silences}, {edns}."
    )
}

pub(super) fn dump_requestlist(call: &mut Call<'_>) -> Outcome {
    let of_workers = call.context.operator.waiting().map_err(|why| Failure::Error(why.to_string()))?;
    for (number, waiting) in of_workers.iter().enumerate() {
        // The other program lists those of its first thread alone.
        if number > 0 && waiting.is_empty() {
            continue;
        }
        call.line(format_args!("thread #{number}"))?;
        call.line("#   type cl name    seconds    module status")?;
        for (at, query) in waiting.iter().enumerate() {
            let (qtype, qclass) = (query.qtype.to_string(), query.qclass.to_string());
            let waited = match query.client {
                Some(_) => format!("{}.{:06}", query.waited_us / 1_000_000, query.waited_us % 1_000_000),
                None => "-".to_owned(),
            };
            let status = match query.waits_for {
                WaitsFor::Upstreams => "iterator wait for forwarders",
                WaitsFor::Resolver => "iterator wait for servers",
                WaitsFor::Branches => "iterator wait for branches",
                WaitsFor::Time => "iterator wait for time",
            };
            let name = dotted(&query.qname.to_string());
            call.line(format_args!("{at:>3} {qtype:>4} {qclass:>2} {name} {waited} {status}"))?;
        }
    }
    Ok(())
}

/// Says what is known of servers; this is known by address, whatever zone it was asked for.
pub(super) fn dump_infra(call: &mut Call<'_>) -> Outcome {
    let mut lines = Vec::new();
    call.context.operator.each_server(|address, facts| {
        let shown = match address.port() {
            53 => address.ip().to_string(),
            port => format!("{}@{port}", address.ip()),
        };
        lines.push(format!("{shown} . {}", infra(facts)));
    });
    lines.sort();
    for line in lines {
        call.line(line)?;
    }
    Ok(())
}

/// Times of a server, in milliseconds.
struct Measured {
    ping: u32,
    var: u32,
    rtt: u32,
    rto: u32,
}

impl Measured {
    fn of(facts: &ServerFacts) -> Self {
        let ms = |us: u32| us / 1000;
        let (ping, var) = facts.round_trip.map_or((0, 0), |it| (ms(it.smoothed_us), ms(it.variation_us)));
        // As that program has it for servers that it knows nothing of.
        let rtt = facts.round_trip.map_or(376, |it| ms(it.smoothed_us.saturating_add(4 * it.variation_us)));
        Self { ping, var, rtt, rto: rtt.saturating_mul(1 << u32::from(facts.silences.min(8))) }
    }
}

fn infra(facts: &ServerFacts) -> String {
    let Measured { ping, var, rtt, rto } = Measured::of(facts);
    let (is_known, version) = match facts.edns {
        Edns::Unknown => (0, 0),
        Edns::Works | Edns::UpTo { .. } => (1, 0),
        Edns::None => (1, -1),
    };
    let silences = facts.silences;
    format!(
        "ttl 0 ping {ping} var {var} rtt {rtt} rto {rto} tA 0 tAAAA 0 tother {silences} ednsknown {is_known} \
         edns {version} delay 0 lame dnssec 0 rec 0 A 0 other 0"
    )
}

/// Lists zones that are asked as often as they may be, or all that are asked.
pub(super) fn ratelimit_list(call: &mut Call<'_>) -> Outcome {
    let wants_all = call.letters("a")?.contains('a');
    for (zone, rate, limit) in call.context.operator.zone_rates() {
        if wants_all || limit > 0 && rate >= limit {
            call.line(format_args!("{zone} {rate} limit {limit}"))?;
        }
    }
    Ok(())
}

/// Lists clients that are over the limit, also with `+a`: of others the table of the limit has no
/// addresses.
pub(super) fn ip_ratelimit_list(call: &mut Call<'_>) -> Outcome {
    call.letters("a")?;
    for (client, rate, limit) in call.context.operator.limited_clients() {
        call.line(format_args!("{client} {rate} limit {limit}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_label_by_label_from_the_last_one_the_shorter_first() {
        let order = [".", "b.", "aa.", "a.aa.", "A.A.aa.", "bb.aa.", "bb.", "aaa."];
        let mut names = order.map(str::to_owned);
        names.reverse();
        names.sort_by_cached_key(|name| by_labels(name));
        assert_eq!(names, order);
    }

    #[test]
    fn records_of_one_owner_stay_in_their_order() {
        let records = ["b.\tA\t2", "localhost.\tA\town", "B.\tA\t1", "localhost.\tA\tbuilt in"];
        let expected = ["b.\tA\t2", "B.\tA\t1", "localhost.\tA\town", "localhost.\tA\tbuilt in"];
        assert_eq!(sorted(records.map(str::to_owned).to_vec()), expected);
    }
}
