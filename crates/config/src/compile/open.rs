//! Finds out whether strangers can have the server ask others for them: an open resolver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use engine::matchers::Matcher;
use engine::program::{Op, Program};

use crate::diagnostic::Problem;
use crate::settings::Settings;
use crate::values::Prefix;

/// Prefixes shorter than these hold more of the Internet than is anybody's own.
const OWN_BITS_MIN: (u8, u8) = (8, 16);
/// Addresses that nobody has (RFC 1112 §4, and what the 6bone gave back): no configuration names them.
const STRANGERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(240, 9, 9, 9)), IpAddr::V6(Ipv6Addr::new(0x3ffe, 0x99, 0, 0, 0, 0, 0, 9))];

/// Warns if `allow` lets in clients that nobody knows and the policy forwards what they ask.
pub(super) fn check(settings: &Settings, program: &Program, problems: &mut Vec<Problem>) {
    let is_wide = |prefix: &&Prefix| {
        let least = if prefix.address().is_ipv4() { OWN_BITS_MIN.0 } else { OWN_BITS_MIN.1 };
        prefix.bits() < least && !is_private(prefix.address())
    };
    let wide: Vec<Prefix> = settings.allow.value.iter().filter(is_wide).copied().collect();
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

/// Returns whether an address begins a block of which nothing is routed on the Internet.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_multicast(),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast(),
    }
}

/// Returns whether a query of a client can come to a step that forwards it. What does not depend on the client's address may hold or
/// not.
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
    /// Follows a routine; returns whether it can come back. Routines do not call themselves: `Program::new` saw to that.
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
                Op::Skip(steps) => go(after(*steps)),
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
                Op::Forward(_) => self.is_found = true,
                Op::Return => returns = true,
                Op::Accept | Op::Drop | Op::Reject(..) => {}
                // Rules that a shortlist leaves out are those that do not concern the query: each is looked at here.
                Op::Seek(_)
                | Op::Mark(_)
                | Op::Unmark(_)
                | Op::Local(_)
                | Op::Zone(_)
                | Op::ZoneSet(_)
                | Op::Cache(_)
                | Op::Ttl(_)
                | Op::Sleep(_)
                | Op::Quickest(_)
                | Op::Forget
                | Op::Truncate
                | Op::Edit(_)
                | Op::Answer(_)
                | Op::Outgoing(_)
                | Op::Event(_) => go(at + 1),
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

    use crate::load::load_text;
    use crate::load::tests::Memory;

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
        all.filter(|found| found.message.contains("open resolver")).map(crate::Diagnostic::human).collect()
    }

    #[test]
    fn strangers_who_reach_a_forward_are_warned_of() {
        for text in [
            "allow: any\n",
            "allow: [private, \"2000::/3\"]\n",
            "allow: 128.0.0.0/1\n",
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
