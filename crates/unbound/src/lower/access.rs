//! Who may ask: of all prefixes that have a client, the longest one counts.

use diagnostic::Problem;
use wire::Prefix;

use super::Lowering;
use crate::read::Statement;
use crate::tree;

/// What a client may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// Ask, with RD only.
    Allow,
    /// Ask, as if RD was set.
    SetRd,
    /// Ask, and look into the cache without RD.
    Snoop,
    /// Ask for what is answered here, and hear REFUSED of everything else.
    RefuseNonLocal,
    /// Ask for what is answered here, and hear nothing of everything else.
    DenyNonLocal,
    /// Hear REFUSED.
    Refuse,
    /// Hear nothing.
    Deny,
}

impl Lowering<'_> {
    pub(super) fn access(&mut self) {
        let mut rights: Vec<(Prefix, Right, Option<&Statement>)> = Vec::new();
        for (text, right) in [
            ("0.0.0.0/0", Right::Refuse),
            ("::/0", Right::Refuse),
            ("127.0.0.0/8", Right::Allow),
            ("::1/128", Right::Allow),
        ] {
            rights.push((prefix(text).expect("a prefix"), right, None));
        }
        for statement in self.all("access-control") {
            if let Some((prefix, right)) = self.right(statement) {
                rights.retain(|(known, ..)| *known != prefix);
                rights.push((prefix, right, Some(statement)));
            }
        }
        // Who has a tag may ask, unless the file says otherwise of the same prefix.
        for statement in self.all("access-control-tag") {
            let known = |prefix| rights.iter().any(|&(known, ..)| known == prefix);
            if let Some(prefix) = prefix(&statement.word(0).text).filter(|&prefix| !known(prefix)) {
                rights.push((prefix, Right::Allow, Some(statement)));
            }
        }
        let whole = self.tree.whole();
        for &(prefix, right, statement) in &rights {
            let at = statement.map_or(whole, Statement::span);
            for part in effective(prefix, &rights) {
                let item = tree::text(part.to_string(), at);
                match right {
                    Right::Allow => self.tree.push(&["allow"], item),
                    Right::Snoop => {
                        self.tree.push(&["allow"], item);
                        self.steps.snoop.push(part);
                    }
                    Right::SetRd => {
                        self.tree.push(&["allow"], item);
                        self.steps.set_rd.push(part);
                    }
                    Right::RefuseNonLocal => {
                        self.tree.push(&["allow"], item);
                        self.steps.refuse_non_local.push(part);
                    }
                    Right::DenyNonLocal => {
                        self.tree.push(&["allow"], item);
                        self.steps.deny_non_local.push(part);
                    }
                    Right::Deny => self.tree.push(&["deny"], item),
                    Right::Refuse => {}
                }
            }
        }
        if !self.tree.has(&["allow"]) {
            self.set(&["allow"], tree::list(Vec::new()));
        }
    }

    fn right(&mut self, statement: &Statement) -> Option<(Prefix, Right)> {
        let [network, action] = [statement.word(0), statement.word(1)];
        let prefix = prefix(&network.text);
        if prefix.is_none() {
            let problem = Problem::error(network.span, format!("\"{}\" is not a prefix", network.text));
            self.problems.push(
                problem.expected("an address, or one with the number of its bits, such as 192.0.2.0/24"),
            );
        }
        let right = match action.text.as_str() {
            "allow" => Right::Allow,
            "allow_snoop" => Right::Snoop,
            "allow_setrd" => Right::SetRd,
            "refuse_non_local" => Right::RefuseNonLocal,
            "deny_non_local" => Right::DenyNonLocal,
            "refuse" => Right::Refuse,
            "deny" => Right::Deny,
            "allow_cookie" => {
                self.error(action.span, format!("\"{}\" is not supported yet", action.text));
                return None;
            }
            other => {
                let problem = Problem::error(action.span, format!("\"{other}\" is no action"));
                self.problems.push(problem.expected(
                    "allow, allow_setrd, allow_snoop, refuse, refuse_non_local, deny or deny_non_local",
                ));
                return None;
            }
        };
        Some((prefix?, right))
    }
}

/// Reads an address, or one with a number of bits; what is behind these does not count.
pub(super) fn prefix(text: &str) -> Option<Prefix> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: std::net::IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|&bits| bits <= width))?;
    Some(Prefix::new(address, bits))
}

/// Returns the parts of a prefix that no longer one takes away.
fn effective<T>(prefix: Prefix, all: &[(Prefix, Right, T)]) -> Vec<Prefix> {
    let mut parts = vec![prefix];
    let inside =
        all.iter().filter(|(other, ..)| other.bits() > prefix.bits() && prefix.contains(other.address()));
    for (other, ..) in inside {
        parts = parts.into_iter().flat_map(|part| without(part, *other)).collect();
    }
    parts
}

/// Returns a prefix without one that may lie in it.
pub(super) fn without(prefix: Prefix, other: Prefix) -> Vec<Prefix> {
    if other.bits() <= prefix.bits() && other.contains(prefix.address()) {
        return Vec::new();
    }
    if !prefix.contains(other.address()) {
        return vec![prefix];
    }
    // The halves that the other one is not in, one for each of its further bits.
    (prefix.bits()..other.bits())
        .map(|bits| {
            let half = Prefix::new(other.address(), bits + 1);
            sibling(half)
        })
        .collect()
}

/// Returns the prefix that differs in the last bit.
fn sibling(prefix: Prefix) -> Prefix {
    match prefix.address() {
        std::net::IpAddr::V4(address) => {
            let bit = 1_u32 << (32 - u32::from(prefix.bits()));
            Prefix::new(std::net::Ipv4Addr::from_bits(address.to_bits() ^ bit).into(), prefix.bits())
        }
        std::net::IpAddr::V6(address) => {
            let bit = 1_u128 << (128 - u32::from(prefix.bits()));
            Prefix::new(std::net::Ipv6Addr::from_bits(address.to_bits() ^ bit).into(), prefix.bits())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_of_a_prefix_leaves_the_rest() {
        let prefix = |text: &str| prefix(text).expect("a prefix");
        let check = |from: &str, out: &str, expect: &[&str]| {
            let parts: Vec<String> =
                without(prefix(from), prefix(out)).iter().map(ToString::to_string).collect();
            assert_eq!(parts, expect, "{from} without {out}");
        };
        check("192.0.2.0/30", "192.0.2.1", &["192.0.2.2/31", "192.0.2.0/32"]);
        check("192.0.2.0/24", "192.0.2.0/24", &[]);
        check("192.0.2.0/24", "192.0.0.0/16", &[]);
        check("192.0.2.0/24", "198.51.100.0/24", &["192.0.2.0/24"]);
        check("2001:db8::/32", "2001:db8:8000::/33", &["2001:db8::/33"]);
    }
}
