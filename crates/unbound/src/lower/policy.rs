//! The policy: the steps of a query, in the other program's order.

use wire::Prefix;
use yaml::Node;

use super::{CACHE, Lowering, RESOLVE};
use crate::tree;

/// The policy that finds answers, where the same answer is changed for some clients alone.
pub(super) const FIND: &str = "find";

/// The policies in which several response policy zones are tried: before there is an answer; once
/// there is one, without its addresses; and with them.
const RESPONSE_POLICIES: [&str; 3] =
    ["response-policy-question", "response-policy-names", "response-policy-answer"];

/// What a question for ANY gets that nobody is asked (RFC 8482 §4.2).
const ANY: &str = "respond(answer '@ 3600 HINFO \"RFC8482\" \"\"')";

/// What a response policy zone, or several that are one set, does.
#[derive(Debug)]
pub(super) struct PolicyZone {
    /// For each of [`RESPONSE_POLICIES`].
    pub(super) steps: [Option<Node>; 3],
    /// What goes to the log before each of these.
    pub(super) lines: [Option<Node>; 3],
    /// Counts what it leaves alone, behind these.
    pub(super) left_alone: [Option<Node>; 3],
    /// Leaves out the zones after it for what it has a rule or an exception for, if that is not
    /// the end anyway.
    pub(super) passed: Option<Node>,
}

/// What other families put into the policy.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Before everything: who may not ask, where the interface decides.
    pub(super) access: Vec<Node>,
    /// Clients that may look into the cache without RD.
    pub(super) snoop: Vec<Prefix>,
    /// The same by the interfaces that they come to, as conditions.
    pub(super) snoop_at: Vec<String>,
    /// Clients whose queries count as if RD was set.
    pub(super) set_rd: Vec<Prefix>,
    /// The same by the interfaces that they come to, as conditions.
    pub(super) set_rd_at: Vec<String>,
    /// Clients that hear REFUSED of what is not answered here.
    pub(super) refuse_non_local: Vec<Prefix>,
    /// Clients that hear nothing of what is not answered here.
    pub(super) deny_non_local: Vec<Prefix>,
    /// Before everything: local zones.
    pub(super) local: Vec<Node>,
    /// Whether local zones have aliases that are followed.
    pub(super) follows_aliases: bool,
    /// Response policy zones, in their order.
    pub(super) response_policy: Vec<PolicyZone>,
    /// Behind these: zones with authority.
    pub(super) zones: Vec<Node>,
    /// Behind these: who gets nothing else.
    pub(super) late: Vec<Node>,
    /// Zones that are found elsewhere and not cached.
    pub(super) uncached: Vec<Node>,
    /// Names that nobody can be asked for.
    pub(super) unanswered: Vec<Node>,
    /// Changes of the answer by the addresses in it.
    pub(super) rewrites: Vec<Node>,
}

/// Returns prefixes as a condition has them.
fn joined(prefixes: &[Prefix]) -> String {
    let prefixes: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
    prefixes.join("|")
}

impl Lowering<'_> {
    pub(super) fn policy(&mut self) {
        let whole = self.tree.whole();
        let mut steps = std::mem::take(&mut self.steps);
        // Without "response-ip", one look at the answer is enough.
        let has_responses = !steps.rewrites.is_empty();
        let [triggers, names, answer] = self.response_policies(&steps.response_policy, has_responses);
        steps.rewrites = names.into_iter().chain(steps.rewrites).chain(answer).collect();
        let mut main: Vec<Node> = self.query_lines().into_iter().collect();
        main.extend(steps.access);
        main.extend(steps.local);
        let begins_at = main.len();
        main.extend(triggers);
        main.extend(steps.zones);
        main.extend(steps.late);
        let refused = tree::text("respond(refused, ede 20)", whole);
        for (clients, action) in
            [(&steps.refuse_non_local, "respond(refused, ede 18)"), (&steps.deny_non_local, "drop")]
        {
            if !clients.is_empty() {
                let condition = tree::text(format!("client in {}", joined(clients)), whole);
                main.push(tree::map(vec![("if", condition), ("do", tree::text(action, whole))], whole));
            }
        }
        let by_prefix = (!steps.set_rd.is_empty()).then(|| format!("client in {}", joined(&steps.set_rd)));
        for who in by_prefix.iter().chain(&steps.set_rd_at) {
            let condition = tree::text(format!("not rd and {who}"), whole);
            let action = tree::text("outgoing(recursion on)", whole);
            main.push(tree::map(vec![("if", condition), ("do", action)], whole));
        }
        let may_snoop = !steps.snoop.is_empty() || !steps.snoop_at.is_empty();
        let cache = match may_snoop {
            false => format!("cache({})", CACHE[1]),
            true => format!("cache({}, without-rd)", CACHE[1]),
        };
        let without_rd: Vec<Prefix> = steps.snoop.iter().chain(&steps.set_rd).copied().collect();
        let mut without_rd = match without_rd.as_slice() {
            [] => "not rd".to_owned(),
            clients => format!("not rd and not client in {}", joined(clients)),
        };
        for who in steps.snoop_at.iter().chain(&steps.set_rd_at) {
            without_rd.push_str(&format!(" and not {who}"));
        }
        main.push(tree::map(vec![("if", tree::text(without_rd, whole)), ("do", refused)], whole));
        if let (true, at) = self.flag("deny-any") {
            main.push(super::local::rule("qtype == ANY".to_owned(), &[ANY], at));
        }
        main.extend(steps.unanswered);
        let dns64 = self.dns64();
        let (before, after) = if steps.uncached.is_empty() && steps.rewrites.is_empty() {
            (Vec::new(), dns64)
        } else {
            (dns64, Vec::new())
        };
        main.extend(before);
        main.extend(self.short_subnets());
        let mut find: Vec<Node> = self.subnets().into_iter().collect();
        find.extend(steps.uncached);
        find.push(tree::text(cache, whole));
        find.extend(after);
        find.push(tree::text("recurse", whole));
        find.extend(self.rebind());
        if steps.rewrites.is_empty() {
            main.extend(find);
        } else {
            // The cache keeps answers as they were found.
            self.set(&["policy", FIND], tree::list(find));
            main.push(tree::text(format!("ask({FIND})"), whole));
            main.extend(steps.rewrites);
        }
        if steps.follows_aliases {
            let behind = main.split_off(begins_at);
            self.set(&["policy", RESOLVE], tree::list(behind));
            main.push(tree::text(format!("goto({RESOLVE})"), whole));
        }
        self.set(&["policy", "main"], tree::list(main));
    }

    /// Returns the steps of response policy zones: several have a policy of their own, which ends
    /// with the first that says something of a query.
    fn response_policies(&mut self, zones: &[PolicyZone], looks_at_names: bool) -> [Vec<Node>; 3] {
        let whole = self.tree.whole();
        [0, 1, 2].map(|at| {
            let mut steps = Vec::new();
            if at == 1 && !looks_at_names {
                return steps;
            }
            for (number, zone) in zones.iter().enumerate() {
                steps.extend(zone.lines.get(at).cloned().flatten());
                steps.extend(zone.steps.get(at).cloned().flatten());
                steps.extend(zone.left_alone.get(at).cloned().flatten());
                // Nothing comes after the last one.
                steps.extend(zone.passed.clone().filter(|_| number + 1 < zones.len()));
            }
            if zones.len() < 2 || steps.is_empty() {
                return steps;
            }
            let name = RESPONSE_POLICIES[at];
            self.set(&["policy", name], tree::list(steps));
            vec![tree::text(format!("call({name})"), whole)]
        })
    }

    /// What servers are told of clients, if any is.
    fn subnets(&mut self) -> Option<Node> {
        let at = self.last("send-client-subnet").or_else(|| self.last("client-subnet-zone"))?.span;
        let (ipv4, _) = self.bounded("max-client-subnet-ipv4", 1, 32);
        let (ipv6, _) = self.bounded("max-client-subnet-ipv6", 1, 128);
        Some(tree::text(format!("ecs(client, ipv4 {ipv4}, ipv6 {ipv6}, keep, private)"), at))
    }

    /// Refuses clients whose subnets are shorter than allowed.
    fn short_subnets(&mut self) -> Option<Node> {
        let used = self.last("send-client-subnet").or_else(|| self.last("client-subnet-zone"));
        let mut conditions = Vec::new();
        let mut place = used?.span;
        for (keyword, field, most) in [
            ("min-client-subnet-ipv4", "subnet-ipv4-bits", 32),
            ("min-client-subnet-ipv6", "subnet-ipv6-bits", 128),
        ] {
            let (least, at) = self.bounded(keyword, 0, most);
            if least > 1 {
                conditions.push(format!("{field} > 0 and {field} < {least}"));
                place = at;
            }
        }
        if conditions.is_empty() {
            return None;
        }
        Some(super::local::rule(conditions.join(" or "), &["respond(refused)"], place))
    }

    /// Addresses behind a prefix for clients that have IPv6 alone.
    fn dns64(&mut self) -> Vec<Node> {
        if !self.has_module("dns64") {
            return Vec::new();
        }
        let (text, at) = match self.last("dns64-prefix") {
            Some(word) => (word.text.clone(), word.span),
            None => (super::default("dns64-prefix").to_owned(), self.tree.whole()),
        };
        let prefix = super::access::prefix(&text).map_or(text, |prefix| prefix.to_string());
        let whole = format!("dns64({prefix}, ignore-ipv6, pointers direct)");
        if let (true, at) = self.flag("dns64-synthall") {
            return vec![tree::text(format!("dns64({prefix}, ignore-ipv6, ignore-cd, pointers direct)"), at)];
        }
        let usual = format!("dns64({prefix}, pointers direct)");
        let ignored: Vec<String> = self
            .all("dns64-ignore-aaaa")
            .map(|it| format!("suffix:{}", crate::names::bare(&it.word(0).text)))
            .collect();
        if ignored.is_empty() {
            return vec![tree::text(usual, at)];
        }
        let names = ignored.join("|");
        let rule = |condition: String, action: String| {
            tree::map(vec![("if", tree::text(condition, at)), ("do", tree::text(action, at))], at)
        };
        vec![rule(format!("qname in {names}"), whole), rule(format!("not qname in {names}"), usual)]
    }

    /// Addresses that names of strangers must not have.
    fn rebind(&mut self) -> Option<Node> {
        let addresses: Vec<_> = self.all("private-address").map(|it| it.word(0)).collect();
        let at = addresses.first()?.span;
        let texts: Vec<&str> = addresses.iter().map(|word| &*word.text).collect();
        let domains: Vec<String> = self
            .all("private-domain")
            .map(|it| format!("suffix:{}", crate::names::bare(&it.word(0).text)))
            .collect();
        let except =
            if domains.is_empty() { String::new() } else { format!(", except {}", domains.join("|")) };
        Some(tree::text(format!("rebind(filter-records, address {}{except})", texts.join("|")), at))
    }
}
