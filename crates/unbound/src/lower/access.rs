//! Who may ask: of all prefixes that have a client, the longest one counts.

use diagnostic::Problem;
use wire::Prefix;

use super::Lowering;
use super::clients::{self, Clients, LOOPBACK, Place};
use super::listening::Interface;
use super::local::rule;
use crate::read::{Statement, Word};
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
    /// Ask with a cookie or over a connection.
    Cookie,
    /// Ask for what is answered here, and hear REFUSED of everything else.
    RefuseNonLocal,
    /// Ask for what is answered here, and hear nothing of everything else.
    DenyNonLocal,
    /// Hear REFUSED.
    Refuse,
    /// Hear nothing.
    Deny,
}

impl<'f> Lowering<'f> {
    pub(super) fn access(&mut self) {
        for statement in self.all("access-control") {
            let [network, action] = [statement.word(0), statement.word(1)];
            if prefix(&network.text).is_none() {
                let problem = Problem::error(network.span, format!("\"{}\" is not a prefix", network.text));
                self.problems.push(
                    problem.expected("an address, or one with the number of its bits, such as 192.0.2.0/24"),
                );
            }
            self.action(action);
        }
        let rights = self.rights();
        let whole = self.tree.whole();
        if self.interfaces(&rights) {
            return;
        }
        for &(prefix, right, statement) in &rights {
            let at = statement.map_or(whole, Statement::span);
            for part in effective(prefix, &rights) {
                let item = tree::text(part.to_string(), at);
                match right {
                    Right::Refuse => {}
                    Right::Deny => self.tree.push(&["deny"], item),
                    _ => {
                        self.tree.push(&["allow"], item);
                        self.note(part, right);
                    }
                }
            }
        }
        if !self.tree.has(&["allow"]) {
            self.set(&["allow"], tree::list(Vec::new()));
        }
    }

    /// Returns what clients may, by their addresses.
    fn rights(&self) -> Vec<(Prefix, Right, Option<&'f Statement>)> {
        let mut rights: Vec<(Prefix, Right, Option<&'f Statement>)> = Vec::new();
        for (text, right) in [
            ("0.0.0.0/0", Right::Refuse),
            ("::/0", Right::Refuse),
            (LOOPBACK[0], Right::Allow),
            (LOOPBACK[1], Right::Allow),
        ] {
            rights.push((prefix(text).expect("a prefix"), right, None));
        }
        for statement in self.all("access-control") {
            let right = Right::read(&statement.word(1).text);
            if let (Some(prefix), Some(right)) = (prefix(&statement.word(0).text), right) {
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
        rights
    }

    /// Returns the proxies whose headers count: who is neither refused nor denied. Where interfaces
    /// say who may ask, that is who is not named.
    pub(super) fn proxies(&self) -> Vec<String> {
        let by_interface = ["interface-action", "interface-tag", "interface-view"];
        let is_open = by_interface.into_iter().any(|keyword| self.all(keyword).next().is_some());
        let (allowed, others): (Vec<_>, Vec<_>) =
            self.rights().into_iter().partition(|(prefix, right, statement)| match right {
                Right::Refuse | Right::Deny => is_open && prefix.bits() == 0 && statement.is_none(),
                _ => true,
            });
        let parts = allowed.iter().flat_map(|(prefix, ..)| effective(*prefix, &others));
        parts.map(|part| part.to_string()).collect()
    }

    /// Notes for the policy what those may besides that may ask.
    fn note(&mut self, part: Prefix, right: Right) {
        match right {
            Right::Snoop => self.steps.snoop.push(part),
            Right::SetRd => self.steps.set_rd.push(part),
            Right::RefuseNonLocal => self.steps.refuse_non_local.push(part),
            Right::DenyNonLocal => self.steps.deny_non_local.push(part),
            Right::Cookie => {
                let item = tree::text(part.to_string(), self.tree.whole());
                self.tree.push(&["cookies", "required"], item);
            }
            Right::Allow | Right::Refuse | Right::Deny => {}
        }
    }

    /// Who may ask by the interface that the query comes to, if the file says that; returns whether
    /// it does. Then the policy decides, as addresses alone do not.
    fn interfaces(&mut self, rights: &[(Prefix, Right, Option<&Statement>)]) -> bool {
        let clients = self.clients();
        let mut by_right: Vec<(Right, Vec<Interface>)> = Vec::new();
        let mut known: Vec<(Interface, Right)> = Vec::new();
        for statement in self.all("interface-action") {
            let address = self.interface(statement.word(0));
            let right = self.action(statement.word(1));
            if let (Some(address), Some(right)) = (address, right) {
                known.retain(|(other, _)| *other != address);
                known.push((address, right));
            }
        }
        for it in &clients {
            // Who has a tag or a view may ask, unless the file says otherwise.
            if let Place::Interface(address) = &it.place
                && !known.iter().any(|(other, _)| other == address)
            {
                known.push((address.clone(), Right::Allow));
            }
        }
        if known.is_empty() {
            return false;
        }
        for (address, right) in known {
            match by_right.iter_mut().find(|(other, _)| *other == right) {
                Some((_, addresses)) => addresses.push(address),
                None => by_right.push((right, vec![address])),
            }
        }
        let whole = self.tree.whole();
        self.tree.push(&["allow"], tree::text("any", whole));
        let mut refused: Vec<String> = Vec::new();
        let said = |(prefix, _, statement): &&(Prefix, Right, Option<&Statement>)| {
            prefix.bits() > 0 || statement.is_some()
        };
        for &(prefix, right, _) in rights.iter().filter(said) {
            for part in effective(prefix, rights) {
                match right {
                    Right::Refuse => refused.push(part.to_string()),
                    Right::Deny => self.tree.push(&["deny"], tree::text(part.to_string(), whole)),
                    _ => self.note(part, right),
                }
            }
        }
        if !refused.is_empty() {
            let condition = format!("client in {}", refused.join("|"));
            self.steps.access.push(rule(condition, &["reject(refused)"], whole));
        }
        let mut allowed: Vec<String> = Vec::new();
        for (right, addresses) in by_right {
            if right == Right::Cookie {
                self.cookies_on(&addresses, &clients);
            }
            let Some(who) = clients::of_interfaces(&clients, addresses.iter()) else { continue };
            match right {
                Right::Allow | Right::Cookie => allowed.push(who),
                Right::Snoop => {
                    self.steps.snoop_at.push(who.clone());
                    allowed.push(who);
                }
                Right::SetRd => {
                    self.steps.set_rd_at.push(who.clone());
                    allowed.push(who);
                }
                Right::RefuseNonLocal | Right::DenyNonLocal => {
                    let action = if right == Right::DenyNonLocal { "drop" } else { "reject(refused)" };
                    self.steps.late.push(rule(who.clone(), &[action], whole));
                    allowed.push(who);
                }
                Right::Deny => self.steps.access.push(rule(who, &["drop"], whole)),
                // As all other interfaces.
                Right::Refuse => {}
            }
        }
        allowed.insert(0, format!("client in {}", clients::named(&clients)));
        let condition = format!("not ({})", allowed.join(" or "));
        self.steps.access.push(rule(condition, &["reject(refused)"], whole));
        true
    }

    /// Has clients show a cookie that come to these interfaces, but for those that the file names
    /// by their addresses.
    fn cookies_on(&mut self, addresses: &[Interface], clients: &[Clients<'_>]) {
        let whole = self.tree.whole();
        for address in addresses {
            let name = clients::listener_name(address);
            self.tree.push(&["cookies", "required-on"], tree::text(name, whole));
        }
        for prefix in clients::named(clients).split('|') {
            self.tree.push(&["cookies", "not-required"], tree::text(prefix, whole));
        }
    }

    fn action(&mut self, action: &Word) -> Option<Right> {
        let right = Right::read(&action.text);
        if right.is_none() {
            let problem = Problem::error(action.span, format!("\"{}\" is no action", action.text));
            self.problems.push(problem.expected(
                "allow, allow_cookie, allow_setrd, allow_snoop, refuse, refuse_non_local, deny or deny_non_local",
            ));
        }
        right
    }
}

impl Right {
    fn read(action: &str) -> Option<Self> {
        Some(match action {
            "allow" => Self::Allow,
            "allow_snoop" => Self::Snoop,
            "allow_setrd" => Self::SetRd,
            "refuse_non_local" => Self::RefuseNonLocal,
            "deny_non_local" => Self::DenyNonLocal,
            "refuse" => Self::Refuse,
            "deny" => Self::Deny,
            "allow_cookie" => Self::Cookie,
            _ => return None,
        })
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
