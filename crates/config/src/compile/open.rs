//! Finds out whether strangers can have the server ask others for them: an open resolver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use diagnostic::Problem;
use engine::matchers::Matcher;
use engine::program::{Next, Op, Program};
use wire::Prefix;

use settings::Settings;

/// The widest prefixes that may be an operator's own, IPv4 and IPv6. A campus or a provider has
/// blocks of up to a /16; larger ones are held by few, who are worth asking. Of IPv6, a registry
/// gives a member up to a /29 without asking what for (RIPE-738 §5.1.2).
const OWN_BITS_MIN: (u8, u8) = (16, 29);
/// So many of the widest may be an operator's own together. A list of all networks of a country is
/// larger.
const OWN_BLOCKS_MAX: u64 = 16;
/// What is not routed on the Internet: whoever has such an address is near.
const NEAR: [(IpAddr, u8); 11] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), 10),
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
];
/// Addresses that nobody has (RFC 1112 §4, and what the 6bone gave back): no configuration names
/// them.
const STRANGERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(240, 9, 9, 9)), IpAddr::V6(Ipv6Addr::new(0x3ffe, 0x99, 0, 0, 0, 0, 0, 9))];

/// Warns if `allow` lets in clients that nobody knows and the policy forwards what they ask.
pub(super) fn check(settings: &Settings, program: &Program, problems: &mut Vec<Problem>) {
    let far: Vec<Prefix> = settings.allow.value.iter().filter(|prefix| !is_near(**prefix)).copied().collect();
    let are_many = [true, false]
        .map(|is_ipv4| are_many(far.iter().filter(|prefix| prefix.address().is_ipv4() == is_ipv4)));
    let is_wide = |prefix: &&Prefix| {
        let (least, is_many) = match prefix.address() {
            IpAddr::V4(_) => (OWN_BITS_MIN.0, are_many[0]),
            IpAddr::V6(_) => (OWN_BITS_MIN.1, are_many[1]),
        };
        prefix.bits() < least || is_many
    };
    let wide: Vec<Prefix> = far.iter().filter(is_wide).copied().collect();
    let stranger_in = |prefix: &Prefix| {
        let any = STRANGERS.into_iter().find(|stranger| prefix.contains(*stranger));
        any.unwrap_or_else(|| prefix.address())
    };
    let is_open = wide.iter().map(stranger_in).any(|stranger| forwards(program, stranger));
    if is_open {
        let message = "clients outside private networks are let in, and the policy forwards what they ask: \
                       an open resolver, which is used to attack others";
        let problem = Problem::warning(settings.allow.span, message);
        problems.push(problem.hint(
            "zones answer everybody without this; let in your own networks only, or put \"forward\" behind a condition such as \
             \"client in lan\"",
        ));
    }
}

/// Returns whether nothing of a prefix is routed on the Internet.
fn is_near(prefix: Prefix) -> bool {
    NEAR.iter().any(|&(address, bits)| {
        prefix.bits() >= bits && Prefix::new(address, bits).contains(prefix.address())
    })
}

/// Returns whether prefixes of one family are together more than one operator has.
fn are_many<'p>(prefixes: impl Iterator<Item = &'p Prefix>) -> bool {
    // In parts of the widest block: 2^16 to one.
    let parts = prefixes.map(|prefix| {
        let widest = if prefix.address().is_ipv4() { OWN_BITS_MIN.0 } else { OWN_BITS_MIN.1 };
        let shift = (i32::from(widest) + 16 - i32::from(prefix.bits())).clamp(0, 62);
        1_u64 << shift
    });
    parts.fold(0, u64::saturating_add) > OWN_BLOCKS_MAX << 16
}

/// Returns whether a query of a client can come to a step that forwards it. What does not depend on
/// the client's address may hold or not.
fn forwards(program: &Program, client: IpAddr) -> bool {
    let mut walk =
        Walk { ops: program.ops(), client, known: vec![None; program.ops().len()], is_found: false };
    walk.routine(0);
    walk.is_found
}

struct Walk<'p> {
    ops: &'p [Op],
    client: IpAddr,
    /// Of each routine that was followed, whether it comes back.
    known: Vec<Option<bool>>,
    is_found: bool,
}

impl Walk<'_> {
    /// Follows a routine; returns whether it can come back. Routines do not call themselves:
    /// `Program::new` saw to that.
    fn routine(&mut self, start: usize) -> bool {
        if let Some(Some(returns)) = self.known.get(start) {
            return *returns;
        }
        let mut reach = vec![false; self.ops.len() + 1];
        let mut returns = false;
        if let Some(first) = reach.get_mut(start) {
            *first = true;
        }
        for at in start..self.ops.len() {
            if !reach[at] || self.is_found {
                continue;
            }
            // Skips lead forward.
            let mut go = |to: usize| {
                if let Some(next) = reach.get_mut(to) {
                    *next = true;
                }
            };
            let after = |steps: u16| at + 1 + usize::from(steps);
            match &self.ops[at] {
                Op::SkipUnless(matcher, steps) | Op::SkipIf(matcher, steps) => {
                    let skips_if = matches!(self.ops[at], Op::SkipIf(..));
                    let holds = holds(matcher, self.client);
                    if holds != Some(!skips_if) {
                        go(after(*steps));
                    }
                    if holds != Some(skips_if) {
                        go(at + 1);
                    }
                }
                Op::Call(target) => {
                    if self.routine(usize::from(*target)) {
                        go(at + 1);
                    }
                }
                Op::Goto(target) => {
                    self.routine(usize::from(*target));
                }
                Op::Split(split) => {
                    for &target in split.starts() {
                        self.routine(usize::from(target));
                    }
                    go(at + 1);
                }
                Op::Forward(_) | Op::Recurse(_) => self.is_found = true,
                Op::Return => returns = true,
                // Rules that a shortlist leaves out are those that do not concern the query: each
                // is looked at here.
                Op::Seek(_) => go(at + 1),
                op => match op.next() {
                    Next::Following => go(at + 1),
                    Next::Past(steps) => go(after(steps)),
                    Next::Either(steps) => {
                        go(at + 1);
                        go(after(steps));
                    }
                    Next::Nowhere => {}
                },
            }
        }
        if let Some(known) = self.known.get_mut(start) {
            *known = Some(returns);
        }
        returns
    }
}

/// Returns whether a condition holds for a client, if that is all that it depends on.
fn holds(matcher: &Matcher, client: IpAddr) -> Option<bool> {
    match matcher {
        Matcher::Constant(holds) => Some(*holds),
        Matcher::Client(set) => Some(set.contains(client)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use environment::Memory;
    use settings::load::load_text;

    /// Returns what is warned of.
    fn warned(text: &str) -> Vec<String> {
        let memory = Memory::new(&[
            ("/etc/resolv.conf", "nameserver 192.0.2.1\n"),
            ("/z/org", "$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n"),
        ]);
        let loaded = load_text(Path::new("/z/x"), text, &memory)
            .unwrap_or_else(|found| panic!("{text}: {}", found[0].human()));
        let plans = crate::compile(&loaded, &[], None, &memory)
            .unwrap_or_else(|found| panic!("{text}: {}", found[0].human()));
        let all = loaded.warnings.iter().chain(&plans.warnings);
        all.filter(|found| found.message.contains("open resolver"))
            .map(diagnostic::Diagnostic::human)
            .collect()
    }

    #[test]
    fn strangers_who_reach_a_forward_are_warned_of() {
        for text in [
            "allow: any\n",
            "allow: [private, \"2000::/3\"]\n",
            "allow: 128.0.0.0/1\n",
            "allow: 198.0.0.0/8\n",
            // Half of it is somebody's.
            "allow: 10.0.0.0/7\n",
            "allow: \"2001:d00::/24\"\n",
            "allow: [198.1.0.0/16, 198.2.0.0/16, 198.3.0.0/16, 198.4.0.0/16, 198.5.0.0/16, 198.6.0.0/16, 198.7.0.0/16, 198.8.0.0/16, 198.9.0.0/16, 198.10.0.0/16, 198.11.0.0/16, 198.12.0.0/16, 198.13.0.0/16, 198.14.0.0/16, 198.15.0.0/16, 198.16.0.0/16, 198.17.0.0/24]\n",
            "allow: any\nzones: [{name: org, file: org}]\nupstreams: {default: {servers: 192.0.2.1}}\n",
            "allow: any\npolicy: {main: [{if: client in lan, do: call(a)}, {do: call(b)}], a: [reject(refused)], b: [forward(default)]}\n",
            "allow: any\npolicy: {main: [\"fallback(a, b)\"], a: [forward(default)], b: [reject(refused)]}\n",
            "allow: any\nviews: [{clients: any, policy: a}]\npolicy: {main: [reject(refused)], a: [forward(default)]}\n",
        ] {
            let found = warned(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains("allow: "), "{found:?}");
        }
    }

    #[test]
    fn a_policy_that_forwards_for_known_clients_only_is_right() {
        for text in [
            "",
            "allow: [lan, 198.51.100.0/24, \"2001:db8::/32\"]\n",
            "allow: [lan, 198.51.0.0/16, 203.0.0.0/16, \"2001:db8::/29\", 100.64.0.0/10, 169.254.0.0/16]\n",
            "allow: any\npolicy: {main: [reject(refused)]}\n",
            "allow: any\nzones: [{name: org, file: org}]\n",
            "allow: any\npolicy: {main: [{if: not client in lan, do: reject(refused)}, forward(default)]}\n",
            "allow: any\npolicy: {main: [{if: client in lan, do: forward(default)}]}\n",
            "allow: any\npolicy: {main: [call(a), forward(default)], a: [{if: client in lan, do: return}, {do: reject(refused)}]}\n",
            "allow: any\nviews: [{policy: a, clients: lan}]\npolicy: {main: [reject(refused)], a: [forward(default)]}\n",
        ] {
            assert_eq!(warned(text), [""; 0], "{text}");
        }
    }
}
