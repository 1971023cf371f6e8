//! Which way a query goes, and whom it asks: to steps.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use diagnostic::{At, Problem, Span, io_text};
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::dns64::{Dns64, Excluded, Reverse};
use engine::ops::forward::{ALL_MEMBERS, ForwardStep};
use engine::ops::prefer::Prefer;
use engine::ops::quickest::{PORTS_MAX, Quickest};
use engine::ops::recurse::RecurseStep;
use engine::ops::rewrite::{Rewrite, Style, Target, Targets};
use engine::ops::split::{self, Rule, SplitStep, Standby};
use engine::program::Op;
use sets::{NameSetBuilder, Reach};
use wire::{Prefix, Prefix64, Rtype};

use super::{Emitter, Resolver};
use crate::action::Core;
use crate::action::core::{Fallback, Family, Pattern, Renaming, Unusable, pattern};

/// Seconds for which it is kept that an address does not connect.
const KEEP_FAILURE_SECONDS: u32 = 60;
/// Lines of a map of names that are named when they are wrong.
const WRONG_LINES_SHOWN: usize = 3;

pub(super) fn emit<'a>(emitter: &mut Emitter<'a>, action: &'a Core, place: Span) {
    match action {
        Core::Cache(name) => {
            if let Some(step) = emitter.cache(&name.value) {
                emitter.push(Op::Cache(step), place);
            }
        }
        Core::CacheWith { name, continues, without_rd } => {
            if let Some(step) = emitter.cache(&name.value) {
                let rules = CacheRules { answers_without_rd: *without_rd, ..step.rules };
                emitter.push(Op::Cache(CacheStep { continues: *continues, rules, ..step }), place);
            }
        }
        Core::Forward(name) => {
            if let Some(step) = emitter.forward(&name.value) {
                emitter.push(Op::Forward(step), place);
            }
        }
        Core::ForwardTo { group, members } => {
            let members = emitter.members(&group.value, members);
            if let (Some(step), Some(members)) = (emitter.forward(&group.value), members) {
                emitter.push(Op::Forward(ForwardStep { members, ..step }), place);
            }
        }
        Core::Recurse(name) => {
            if let Some(step) = emitter.recurse(&name.value) {
                emitter.push(Op::Recurse(step), place);
            }
        }
        Core::Fallback(fallback) => {
            let Fallback { sides, after, on_slow, always, unusable } = fallback;
            let rule = split::Fallback {
                after_ms: after.as_millis() as u32,
                on_slow: *on_slow,
                standby: if *always { Standby::Always } else { Standby::Late },
                unusable: unusable_answers(unusable),
            };
            emitter.ways(Rule::Fallback(rule), sides, place);
        }
        Core::Race { sides, unusable } => emitter.ways(Rule::Race(unusable_answers(unusable)), sides, place),
        Core::Ask(name) => {
            // Whatever comes of it is the answer.
            let any = split::Unusable { rcodes: 0, failures: false };
            emitter.ways(Rule::Race(any), std::slice::from_ref(name), place);
        }
        Core::Rename { with_alias, ttl, authoritative, to } => {
            let style = style(*with_alias, *ttl, *authoritative);
            if let Some(targets) = emitter.targets_of(to) {
                emitter.rest(Rule::Rewrite(Box::new(Rewrite { targets, style })), place);
            }
        }
        Core::Prefer { family, wait } => {
            let wanted = match family {
                Family::V4 => Rtype::A,
                Family::V6 => Rtype::AAAA,
            };
            emitter.rest(Rule::Prefer(Prefer { wanted, wait_ms: wait.as_millis() as u32 }), place);
        }
        Core::Dns64 { prefixes, exclude, ignores_ipv6, ignores_cd, pointers } => {
            let (prefixes, excluded) = (prefixes_of(prefixes), excluded_of(exclude));
            let reverse = Reverse { prefixes: prefixes.clone(), style: *pointers };
            emitter.rest(Rule::Reverse(Box::new(reverse)), place);
            let (ignores_ipv6, ignores_cd) = (*ignores_ipv6, *ignores_cd);
            let dns64 = Dns64 { prefixes, excluded, ignores_ipv6, ignores_cd };
            emitter.rest(Rule::Dns64(Box::new(dns64)), place);
        }
        Core::Sleep(time) => emitter.push(Op::Sleep(time.as_millis() as u32), place),
        Core::Quickest { ports, timeout, keep } => {
            let mut list = [0; PORTS_MAX];
            for (to, from) in list.iter_mut().zip(ports) {
                *to = *from;
            }
            let keep_seconds = u32::try_from(keep.as_secs()).unwrap_or(u32::MAX).max(1);
            emitter.push(
                Op::Quickest(Quickest {
                    ports: list,
                    timeout_ms: timeout.as_millis() as u32,
                    keep_seconds,
                    keep_failure_seconds: KEEP_FAILURE_SECONDS.min(keep_seconds),
                }),
                place,
            );
        }
        Core::Forget => emitter.push(Op::Forget, place),
        Core::Truncate => emitter.push(Op::Truncate, place),
        Core::Accept => emitter.push(Op::Accept, place),
        Core::Mark(mark) => emitter.push(Op::Mark(*mark), place),
        Core::Unmark(mark) => emitter.push(Op::Unmark(mark.map_or(u64::MAX, |mark| 1 << (mark & 63))), place),
        Core::Call(name) => emitter.call(&name.value, Op::Call, place),
        Core::Goto(name) => emitter.call(&name.value, Op::Goto, place),
        Core::Return => emitter.push(Op::Return, place),
    }
}

fn style(with_alias: bool, ttl: Option<Duration>, authoritative: bool) -> Style {
    match with_alias {
        true => Style::Cname { ttl: ttl.map(values::ttl), authoritative },
        false => Style::Restored,
    }
}

fn unusable_answers(unusable: &Unusable) -> split::Unusable {
    let every = if unusable.every { split::Unusable::default().rcodes } else { 0 };
    let rcodes =
        unusable.rcodes.iter().filter(|rcode| rcode.0 < 32).fold(every, |set, rcode| set | 1 << rcode.0);
    split::Unusable { rcodes, failures: unusable.failures }
}

/// Returns what a pattern's names become.
fn target(from: Pattern, to: Pattern) -> Target {
    if to.covers_below { Target::Below { old: from.name, new: to.name } } else { Target::Name(to.name) }
}

impl<'a> Emitter<'a> {
    /// Writes a split between policies and groups.
    fn ways(&mut self, rule: Rule, sides: &'a [At<String>], place: Span) {
        let at = self.ops.len();
        self.push(Op::Split(Box::new(SplitStep::of_policies(rule, &vec![0; sides.len()]))), place);
        for (branch, side) in sides.iter().enumerate() {
            if self.environment.written.policy(&side.value).is_some() {
                self.branch_to_policy(at, branch, &side.value);
            } else {
                self.group_branches.push((at, branch, &side.value, side.span));
            }
        }
    }

    /// Writes the policies of branches that only ask a group.
    pub(super) fn group_branches(&mut self) -> Result<(), Span> {
        let mut starts: Vec<(&str, usize)> = Vec::new();
        for (at, branch, group, span) in std::mem::take(&mut self.group_branches) {
            let known = starts.iter().find(|(name, _)| *name == group).map(|(_, start)| *start);
            let start = match known {
                Some(start) => start,
                None => {
                    let Some(step) = self.forward(group) else { continue };
                    let start = self.ops.len();
                    self.push(Op::Forward(step), span);
                    self.push(Op::Return, span);
                    starts.push((group, start));
                    start
                }
            };
            let start = u16::try_from(start).map_err(|_| span)?;
            if let Some(Op::Split(split)) = self.ops.get_mut(at) {
                split.set_start(branch, start);
            }
        }
        Ok(())
    }

    /// Writes a split of the steps after it.
    pub(super) fn rest(&mut self, rule: Rule, place: Span) {
        self.push(Op::Split(Box::new(SplitStep::of_rest(rule))), place);
    }

    /// Returns the servers of a group that have these names, one bit each.
    fn members(&mut self, group: &str, names: &[At<String>]) -> Option<u64> {
        let servers = &self.environment.groups.get(group)?.servers;
        let mut members = 0;
        for name in names {
            let found = servers.iter().position(|server| *server == Some(name.value.as_str()));
            match found.filter(|&number| number < 64) {
                Some(number) => members |= 1 << number,
                None => {
                    let known: Vec<String> =
                        servers.iter().flatten().map(|name| format!("\"{name}\"")).collect();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let problem = Problem::error(
                        name.span,
                        format!("group \"{group}\" has no server \"{}\"", name.value),
                    );
                    self.problems.push(if known.is_empty() {
                        problem.hint("servers get names with \"{name: …, address: …}\"")
                    } else {
                        problem.expected(diagnostic::suggest::one_of(&known))
                    });
                }
            }
        }
        Some(members).filter(|&members| members != ALL_MEMBERS)
    }

    fn targets_of(&mut self, to: &Renaming) -> Option<Targets> {
        Some(match to {
            Renaming::To(name) => Targets::One(Target::Name(*name)),
            Renaming::From(from, to) => {
                let mut patterns = NameSetBuilder::new(&self.environment.key);
                patterns.name(from.value.name.as_name(), reach(from.value), 1);
                let targets = Box::new([target(from.value, to.value)]);
                Targets::Table { patterns: Box::new(patterns.compile()), targets }
            }
            Renaming::Map(path) => self.map(&path.value, path.span)?,
        })
    }

    /// Reads a map: a pattern and a name on each line.
    fn map(&mut self, path: &Path, span: Span) -> Option<Targets> {
        let shown = path.display();
        let octets = match (self.environment.read)(path) {
            Ok(octets) => octets,
            Err(error) => {
                let message = format!("cannot read \"{shown}\": {}", io_text(&error));
                self.problems.push(Problem::error(span, message));
                return None;
            }
        };
        let text = String::from_utf8_lossy(&octets);
        let mut patterns = NameSetBuilder::new(&self.environment.key);
        let mut targets = Vec::new();
        let mut wrong = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("");
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let rule = targets.len() as u32 + 1;
            match map_line(&words, &mut patterns, rule) {
                Ok(target) => targets.push(target),
                Err(reason) => wrong.push(format!("line {number}: {reason}")),
            }
        }
        if !wrong.is_empty() {
            let rest = wrong.len().saturating_sub(WRONG_LINES_SHOWN);
            let mut message = wrong.iter().take(WRONG_LINES_SHOWN).cloned().collect::<Vec<_>>().join("; ");
            if rest > 0 {
                message.push_str(&format!("; and {rest} more"));
            }
            self.problems.push(
                Problem::error(span, format!("\"{shown}\" is no map of names: {message}")).expected(
                    "a pattern and a name on each line, such as \"suffix:old.example new.example\"",
                ),
            );
            return None;
        }
        Some(Targets::Table { patterns: Box::new(patterns.compile()), targets: targets.into() })
    }
}

const fn reach(pattern: Pattern) -> Reach {
    if pattern.covers_below { Reach::ItselfAndBelow } else { Reach::Itself }
}

/// Reads one line of a map; adds its pattern as rule number `rule`.
fn map_line(words: &[&str], patterns: &mut NameSetBuilder, rule: u32) -> Result<Target, String> {
    let &[from, to] = words else { return Err("not two words".to_owned()) };
    let to = pattern(to).map_err(|misread| misread.message)?;
    let single = |kind: &str| {
        if to.covers_below { Err(format!("{kind} has no end to replace")) } else { Ok(Target::Name(to.name)) }
    };
    if let Some(keyword) = from.strip_prefix("keyword:") {
        patterns.keyword(keyword, rule).map_err(|error| error.to_string())?;
        return single("a keyword");
    }
    if let Some(regex) = from.strip_prefix("regex:").or_else(|| from.strip_prefix("regexp:")) {
        patterns.regex(regex, rule).map_err(|error| error.to_string())?;
        return single("a regular expression");
    }
    // As mosdns writes them.
    let from = match from.split_once(':') {
        Some(("full", name)) => pattern(name),
        Some(("domain", name)) => pattern(&format!("suffix:{name}")),
        _ => pattern(from),
    };
    let from = from.map_err(|misread| misread.message)?;
    if to.covers_below && !from.covers_below {
        return Err("one name cannot become many".to_owned());
    }
    patterns.name(from.name.as_name(), reach(from), rule);
    Ok(target(from, to))
}

impl Emitter<'_> {
    pub(super) fn cache(&self, name: &str) -> Option<CacheStep> {
        let cache = self.environment.caches.get(name)?;
        let rules = self.environment.cache_rules.get(name)?;
        // Clients' subnets keep answers apart if any group that fills the cache is told them.
        let keeps_subnets_apart =
            self.fills.iter().filter(|(cache, _)| cache == name).any(|(_, group)| self.sends_subnets(group));
        // What a policy does because of DO may show in its answers.
        let keeps_do_apart = self.environment.written.tests_do();
        Some(CacheStep {
            cache: Arc::clone(cache),
            rules: CacheRules { keeps_subnets_apart, keeps_do_apart, ..*rules },
            view: self.view,
            continues: false,
        })
    }

    fn recurse(&self, name: &str) -> Option<RecurseStep> {
        let &Resolver { id, sends_subnets, refers } = self.environment.resolvers.get(name)?;
        Some(RecurseStep { resolver: id, wants_servers: false, sends_subnets, refers })
    }

    fn forward(&self, name: &str) -> Option<ForwardStep> {
        let group = self.environment.groups.get(name)?;
        Some(ForwardStep {
            pool: group.pool?,
            members: ALL_MEMBERS,
            forwards_client_subnet: group.forwards_client_subnet,
            trusts_ad: group.trusts_ad,
        })
    }

    fn sends_subnets(&self, name: &str) -> bool {
        self.environment.groups.get(name).is_some_and(|group| group.forwards_client_subnet)
    }
}

/// Returns the prefixes of addresses that are made: the well-known one if none is named.
fn prefixes_of(named: &[At<Prefix>]) -> Box<[Prefix64]> {
    let mut list: Vec<Prefix64> = named.iter().filter_map(|prefix| Prefix64::of(prefix.value)).collect();
    if list.is_empty() {
        list.push(Prefix64::WELL_KNOWN);
    }
    list.into()
}

/// Returns the addresses that count as none.
fn excluded_of(named: &[Prefix]) -> Box<[Excluded]> {
    let own = named.iter().filter_map(|prefix| match prefix.address() {
        IpAddr::V6(address) => Some(Excluded { bits: address.to_bits(), length: prefix.bits() }),
        IpAddr::V4(_) => None,
    });
    std::iter::once(Excluded::MAPPED).chain(own).collect()
}
