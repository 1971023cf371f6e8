//! Names to what they stand for: groups, caches, sets and policies, and how policies hang together.

use std::collections::{BTreeMap, BTreeSet};

use diagnostic::suggest::nearest;
use diagnostic::{At, Problem, Span};
use plan::jobs::Task;
use policy::action::{Core, Noun, Reference};
use policy::condition::{FIELDS, implies};
use policy::{Action, AddressTerm, Condition, ENTRY, NameTerm, Policy, SPLIT, Test};

use crate::groups::{ListPlace, Listener, RouteWay, Settings, ZoneSettings};
use plan::listeners::{ClientCertificates, TransportWord};
use plan::zones::CatalogRole;
use wire::Name;

/// Names of one kind and where each is defined.
struct Defined<'s> {
    noun: Noun,
    names: BTreeMap<&'s str, Span>,
}

impl<'s> Defined<'s> {
    fn new(noun: Noun, names: impl Iterator<Item = &'s At<String>>) -> Self {
        Self { noun, names: names.map(|name| (name.value.as_str(), name.span)).collect() }
    }

    /// Checks a reference; says what it was probably meant to be.
    fn check(&self, name: &str, span: Span, problems: &mut Vec<Problem>) -> bool {
        if self.names.contains_key(name) {
            return true;
        }
        let problem = Problem::error(span, format!("unknown {} \"{name}\"", self.noun.word()));
        let near = nearest(name, self.names.keys().copied());
        problems.push(match near.and_then(|near| Some((near, *self.names.get(near)?))) {
            Some((near, at)) if at != Span::BUILT_IN => {
                problem.hint_at(format!("did you mean \"{near}\" ("), at, ")?")
            }
            Some((near, _)) => problem.hint(format!("did you mean \"{near}\"?")),
            None if self.names.is_empty() => problem.hint(format!("no {} is defined", self.noun.word())),
            None => {
                let known: Vec<String> = self.names.keys().map(|name| format!("\"{name}\"")).collect();
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                problem.expected(diagnostic::suggest::one_of(&known))
            }
        });
        false
    }
}

/// Warns of the first server that is to be known by a certificate that nobody asks it for.
fn check_shown(settings: &Settings, problems: &mut Vec<Problem>) {
    let asks = |listener: &Listener, needs_name: bool| {
        let asked = listener.client_certificates.as_ref().map(|at| at.value).unwrap_or_default();
        match asked {
            ClientCertificates::ByRoots => !settings.tls.client_ca.is_empty(),
            ClientCertificates::Never => false,
            ClientCertificates::Optional | ClientCertificates::Required => true,
            ClientCertificates::Any => !needs_name,
        }
    };
    let is_asked = |needs_name: bool| {
        let mut over_tls =
            settings.startup.listen.iter().flatten().filter(|it| it.speaks.contains(&TransportWord::Tls));
        over_tls.any(|listener| asks(listener, needs_name))
    };
    let (for_names, for_keys) = (is_asked(true), is_asked(false));
    let directories = settings.zone_directories.iter().filter_map(|directory| directory.common.as_deref());
    for zone in settings.zones.iter().chain(directories) {
        let grants = zone.transfer.iter().chain(&zone.notify_from).map(|at| (&at.value, at.span));
        let grants = grants.chain(zone.update.iter().map(|at| (&at.value.grant, at.span)));
        for (grant, span) in grants {
            if (!grant.hosts.is_empty() && !for_names) || (!grant.pins.is_empty() && !for_keys) {
                let message = "nobody is known by a certificate: no listener asks clients for one";
                let expected = "\"client-certificates\" at a listener with \"transport: tls\"";
                problems.push(Problem::warning(span, message).expected(expected));
                return;
            }
        }
    }
}

/// Everything that has a name, by what it is.
struct Names<'s> {
    groups: Defined<'s>,
    resolvers: Defined<'s>,
    caches: Defined<'s>,
    policies: Defined<'s>,
    sets: Defined<'s>,
    effects: Defined<'s>,
    records: Defined<'s>,
    zones: Defined<'s>,
    conditions: Defined<'s>,
    listeners: Defined<'s>,
}

impl<'s> Names<'s> {
    fn new(settings: &'s Settings) -> Self {
        let in_sets = settings.zones.iter().filter_map(|zone| zone.set.as_ref());
        let in_sets = in_sets.chain(settings.zone_directories.iter().filter_map(|files| files.set.as_ref()));
        let startup = &settings.startup;
        let listeners = startup.listen.iter().flatten().filter_map(|listener| listener.name.as_ref());
        let listeners = listeners.chain(startup.local_sockets.iter().filter_map(|it| it.name.as_ref()));
        Self {
            groups: Defined::new(Noun::Group, settings.upstreams.iter().map(|group| &group.name)),
            resolvers: Defined::new(Noun::Resolver, settings.resolvers.iter().map(|it| &it.name)),
            caches: Defined::new(Noun::Cache, settings.caches.iter().map(|cache| &cache.name)),
            policies: Defined::new(Noun::Policy, settings.policies.iter().map(|policy| &policy.name)),
            sets: Defined::new(Noun::Set, settings.sets.iter().map(|set| &set.name)),
            effects: Defined::new(Noun::Effect, settings.effects.iter().map(|effect| &effect.name)),
            records: Defined::new(Noun::Records, settings.records.iter().map(|set| &set.name)),
            zones: Defined::new(Noun::Zones, in_sets),
            conditions: Defined::new(Noun::Condition, settings.conditions.iter().map(|named| &named.name)),
            listeners: Defined::new(Noun::Listener, listeners),
        }
    }

    /// Warns of what nothing refers to.
    fn report_unused(&self, used: &BTreeSet<(Noun, &str)>, problems: &mut Vec<Problem>) {
        let Self { groups, resolvers, caches, sets, conditions, effects, records, zones, .. } = self;
        for defined in [groups, resolvers, caches, sets, conditions, effects, records, zones] {
            for (name, &span) in &defined.names {
                if span != Span::BUILT_IN && !used.contains(&(defined.noun, *name)) {
                    problems.push(Problem::warning(
                        span,
                        format!("{} \"{name}\" is ignored: no rule uses it", defined.noun.word()),
                    ));
                }
            }
        }
    }
}

/// Checks every reference. Fits the built-in policy to the groups and caches that there are.
pub(crate) fn link(settings: &mut Settings, problems: &mut Vec<Problem>) {
    if !settings.policy_is_given {
        fit_built_in_policy(settings, problems);
    }
    if !take_split(settings, problems) {
        return;
    }
    let names = Names::new(settings);
    let mut used: BTreeSet<(Noun, &str)> = BTreeSet::new();
    check_actions(settings, &names, &mut used, problems);
    let rules = settings.policies.iter().flat_map(|policy| &policy.rules);
    let all = rules.filter_map(|rule| rule.condition.as_ref());
    let all = all.chain(settings.views.iter().map(|view| &view.condition));
    for condition in all.chain(settings.conditions.iter().map(|named| &named.condition)) {
        check_sets(&condition.value, settings, &names.sets, &mut used, problems);
        check_names(&condition.value, &names.conditions, &names.listeners, &mut used, problems);
    }
    for view in &settings.views {
        names.policies.check(&view.policy.value, view.policy.span, problems);
    }
    check_forward_zones(settings, &names, &mut used, problems);
    check_own_zones(settings, problems);
    check_policy_zones(settings, problems);
    check_circles(settings, problems);
    check_tasks(settings, &names, &mut used, problems);
    check_sets_besides(settings, &names.sets, &mut used, problems);
    check_shown(settings, problems);
    // What a mistake hides may well be used.
    let is_right = !problems.iter().any(Problem::is_error);
    if is_right {
        names.report_unused(&used, problems);
    }
    check_flow(settings, problems, is_right);
}

/// Makes the section `split` groups and a policy like others; returns whether that can be.
fn take_split(settings: &mut Settings, problems: &mut Vec<Problem>) -> bool {
    let Some(split) = settings.split.take() else { return true };
    if let Some(other) = settings.policies.iter().find(|policy| policy.name.value == SPLIT) {
        let problem = Problem::error(other.name.span, "\"split\" is the policy of the names under \"split\"");
        problems.push(problem.hint_at("those are on ", split.span, "; call this one otherwise"));
        return false;
    }
    settings.split_at = Some(At { value: (), span: split.span });
    settings.upstreams.extend(split.groups);
    settings.policies.push(split.policy);
    true
}

/// Checks what actions name.
fn check_actions<'s>(
    settings: &'s Settings,
    names: &Names<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    let rules = settings.policies.iter().flat_map(|policy| &policy.rules);
    for Reference { noun, name } in
        rules.flat_map(|rule| &rule.actions).flat_map(|action| action.value.references())
    {
        let defined = match noun {
            Noun::Group => &names.groups,
            Noun::Resolver => &names.resolvers,
            Noun::Cache => &names.caches,
            Noun::Policy => &names.policies,
            Noun::Set => &names.sets,
            Noun::Effect => &names.effects,
            Noun::Way => {
                check_way(name, &names.groups, &names.policies, used, problems);
                continue;
            }
            Noun::Condition | Noun::Listener => continue,
            Noun::Records => &names.records,
            Noun::Zones => &names.zones,
        };
        if defined.check(&name.value, name.span, problems) {
            used.insert((noun, name.value.as_str()));
        }
    }
}

/// Checks the groups that resolvers ask for zones. Those of a resolver that nobody uses are not
/// reported besides.
fn check_forward_zones<'s>(
    settings: &'s Settings,
    names: &Names<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    for zone in settings.resolvers.iter().flat_map(|resolver| &resolver.zones) {
        if let RouteWay::Forward(group) = &zone.way
            && names.groups.check(&group.value, group.span, problems)
        {
            used.insert((Noun::Group, group.value.as_str()));
        }
    }
}

/// Checks the zones of this server that resolvers read.
fn check_own_zones(settings: &Settings, problems: &mut Vec<Problem>) {
    let consumes = |zone: &ZoneSettings| zone.catalog_role == Some(CatalogRole::Consumer);
    // Which zones these have is not written here.
    if !settings.zone_directories.is_empty() || settings.zones.iter().any(consumes) {
        return;
    }
    let has = |apex: Name<'_>| {
        settings.zones.iter().any(|zone| zone.set.is_none() && zone.name.value.as_name() == apex)
    };
    for route in settings.resolvers.iter().flat_map(|resolver| &resolver.zones) {
        if let RouteWay::Own(at) = &route.way
            && !has(route.zone.as_name())
        {
            let message = format!("there is no zone \"{}\" in \"zones\"", route.zone);
            let problem = Problem::warning(at.span, message);
            problems.push(problem.hint("it may be added while the server runs (\"gannet zone add\")"));
        }
    }
}

/// Checks the zones of this server that sets are made of.
fn check_policy_zones(settings: &Settings, problems: &mut Vec<Problem>) {
    for list in settings.sets.iter().flat_map(|set| &set.lists) {
        let ListPlace::Zone(apex) = &list.place.value else { continue };
        let zone = settings.zones.iter().find(|zone| zone.set.is_none() && zone.name.value == *apex);
        match zone {
            None => {
                let message = format!("there is no zone \"{apex}\" in \"zones\"");
                problems.push(Problem::error(list.place.span, message));
            }
            Some(zone) if zone.primaries.is_empty() && zone.urls.is_empty() => {
                let message = format!("the zone \"{apex}\" does not come from other servers");
                let problem = Problem::error(list.place.span, message);
                problems.push(problem.hint("\"list: rpz:FILE\" reads its file"));
            }
            Some(_) => {}
        }
    }
}

/// Checks what schedules name.
fn check_tasks<'s>(
    settings: &'s Settings,
    names: &Names<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    for task in settings.schedules.iter().flat_map(|schedule| &schedule.tasks) {
        let (defined, name) = match &task.value {
            Task::Effect(name) => (&names.effects, name),
            Task::Refresh(Some(name)) => (&names.sets, name),
            Task::Dump(Some(name)) => (&names.caches, name),
            Task::Refresh(None) | Task::Dump(None) => continue,
        };
        if defined.check(name, task.span, problems) && defined.noun == Noun::Effect {
            used.insert((Noun::Effect, name.as_str()));
        }
    }
}

/// Checks the sets that are named outside policies: by other sets, by zones, as those who are
/// banned.
fn check_sets_besides<'s>(
    settings: &'s Settings,
    sets: &Defined<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    let parts = settings.sets.iter().flat_map(|set| set.include.iter().chain(&set.except));
    let choices = settings.zones.iter().flat_map(|zone| &zone.choose);
    let chosen = choices.flat_map(|choice| &choice.alternatives).flat_map(|it| &it.sets);
    // What a template says is told once, however many zones are like it.
    let mut seen: BTreeSet<Span> = BTreeSet::new();
    let chosen = settings.template_sets.iter().chain(chosen).filter(|set| seen.insert(set.span));
    for set in settings.deny_set.iter().chain(parts).chain(chosen) {
        if sets.check(&set.value, set.span, problems) {
            used.insert((Noun::Set, set.value.as_str()));
        }
    }
}

/// Checks a name that may be a policy's or a group's.
fn check_way<'s>(
    name: &'s At<String>,
    groups: &Defined<'s>,
    policies: &Defined<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    match (groups.names.get(name.value.as_str()), policies.names.get(name.value.as_str())) {
        (Some(_), Some(policy)) => problems.push(
            Problem::error(
                name.span,
                format!("\"{}\" is a policy and an upstream group: which is meant?", name.value),
            )
            .hint_at("the policy is on ", *policy, "; rename one of them"),
        ),
        (Some(_), None) => {
            used.insert((Noun::Group, name.value.as_str()));
        }
        (None, Some(_)) => {}
        (None, None) => {
            let known = groups.names.iter().chain(&policies.names).map(|(name, span)| (*name, *span));
            Defined { noun: Noun::Way, names: known.collect() }.check(&name.value, name.span, problems);
        }
    }
}

/// Without a policy there is one group to forward to and one cache to use: the default ones, or the
/// only ones. A server that has zones, and for which nobody named an upstream, is authoritative
/// only.
fn fit_built_in_policy(settings: &mut Settings, problems: &mut Vec<Problem>) {
    let choose = |wanted: &str, names: Vec<&At<String>>| -> Option<String> {
        let found = names.iter().find(|name| name.value == wanted).or(match names.as_slice() {
            [only] => Some(only),
            _ => None,
        });
        found.map(|name| name.value.clone())
    };
    let has_zones = !settings.zones.is_empty() || !settings.zone_directories.is_empty();
    let are_built_in = settings.upstreams.iter().all(|group| group.name.span == Span::BUILT_IN);
    // Others than the built-in one were added by a change.
    let is_built_in = |policy: &&mut Policy| policy.name.value == ENTRY;
    if has_zones && are_built_in {
        let built_in = settings.policies.iter_mut().filter(is_built_in);
        for rule in built_in.flat_map(|policy| &mut policy.rules) {
            rule.actions
                .retain(|action| !matches!(&action.value, Action::Core(Core::Cache(_) | Core::Forward(_))));
        }
        return;
    }
    let group = choose("default", settings.upstreams.iter().map(|group| &group.name).collect());
    let cache = choose("main", settings.caches.iter().map(|cache| &cache.name).collect());
    let ambiguous = [
        (group.is_none(), settings.upstreams.first().map(|group| &group.name), "upstream group", "default"),
        (cache.is_none(), settings.caches.first().map(|cache| &cache.name), "cache", "main"),
    ];
    for (is_unknown, first, noun, wanted) in ambiguous {
        if let (true, Some(first)) = (is_unknown, first) {
            problems.push(
                Problem::error(first.span, format!("nothing says which {noun} queries go to"))
                    .expected(format!("one named \"{wanted}\", only one, or a \"policy\"")),
            );
        }
    }
    let built_in = settings.policies.iter_mut().filter(is_built_in);
    for action in built_in.flat_map(|policy| &mut policy.rules).flat_map(|rule| &mut rule.actions) {
        match &mut action.value {
            Action::Core(Core::Cache(name)) => name.value = cache.clone().unwrap_or_default(),
            Action::Core(Core::Forward(name)) => name.value = group.clone().unwrap_or_default(),
            _ => {}
        }
    }
    // What could not be chosen was reported above, or there is none.
    for rule in settings.policies.iter_mut().filter(is_built_in).flat_map(|policy| &mut policy.rules) {
        rule.actions.retain(
            |action| !matches!(&action.value, Action::Core(Core::Cache(name) | Core::Forward(name)) if name.value.is_empty()),
        );
    }
}

/// Checks the sets that a condition names.
fn check_sets<'s>(
    condition: &'s Condition,
    settings: &Settings,
    sets: &Defined<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    let mut check = |name: &'s str, span: Span, what: &str, has: &dyn Fn(&crate::groups::Set) -> bool| {
        if !sets.names.contains_key(name) && what == "names" && name.contains('.') {
            problems.push(
                Problem::error(span, format!("unknown set \"{name}\""))
                    .hint(format!("a name is written \"suffix:{name}\" or \"exact:{name}\"")),
            );
        } else if sets.check(name, span, problems) {
            used.insert((sets.noun, name));
            if let Some(set) = settings.sets.iter().find(|set| set.name.value == name)
                && !has(set)
            {
                problems.push(Problem::error(span, format!("set \"{name}\" holds no {what}")).hint_at(
                    "it is defined on ",
                    set.name.span,
                    "",
                ));
            }
        }
    };
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            for part in parts {
                check_sets(part, settings, sets, used, problems);
            }
        }
        Condition::Not(inside) => check_sets(inside, settings, sets, used, problems),
        Condition::Test(Test::Qname(terms) | Test::AnswerCname(terms) | Test::ServerName(terms)) => {
            for term in terms {
                if let NameTerm::Set(name) = &term.value {
                    check(name, term.span, "names", &|set| set.may_hold_names(&settings.sets));
                }
            }
        }
        Condition::Test(Test::Listed(names)) => {
            for name in names {
                check(&name.value, name.span, "rules", &|_| true);
            }
        }
        Condition::Test(
            Test::Client(terms)
            | Test::AnswerAddress(terms)
            | Test::ServerAddress(terms)
            | Test::PtrAddress(terms),
        ) => {
            for term in terms {
                if let AddressTerm::Set(name) = &term.value {
                    check(name, term.span, "addresses", &|set| set.may_hold_addresses(&settings.sets));
                }
            }
        }
        // Named ones are checked where they are defined.
        Condition::Named(_) | Condition::Constant(_) | Condition::Test(_) => {}
    }
}

/// Checks what conditions name besides sets: other conditions and listeners.
fn check_names<'s>(
    condition: &'s Condition,
    conditions: &Defined<'s>,
    listeners: &Defined<'s>,
    used: &mut BTreeSet<(Noun, &'s str)>,
    problems: &mut Vec<Problem>,
) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            for part in parts {
                check_names(part, conditions, listeners, used, problems);
            }
        }
        Condition::Not(inside) => check_names(inside, conditions, listeners, used, problems),
        Condition::Named(name) => {
            let words = FIELDS.iter().map(|field| field.word);
            if conditions.names.contains_key(name.value.as_str()) {
                used.insert((Noun::Condition, name.value.as_str()));
            } else if let Some(word) = nearest(&name.value, words) {
                problems.push(
                    Problem::error(name.span, format!("a condition cannot look at \"{}\"", name.value))
                        .hint(format!("did you mean \"{word}\"?")),
                );
            } else {
                conditions.check(&name.value, name.span, problems);
            }
        }
        Condition::Test(Test::Listener(names)) => {
            for name in names {
                if listeners.check(&name.value, name.span, problems) {
                    used.insert((Noun::Listener, name.value.as_str()));
                }
            }
        }
        Condition::Constant(_) | Condition::Test(_) => {}
    }
}

/// Reports conditions that are made of themselves.
fn check_circles(settings: &Settings, problems: &mut Vec<Problem>) {
    fn names<'s>(condition: &'s Condition, found: &mut Vec<&'s At<String>>) {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| names(part, found)),
            Condition::Not(inside) => names(inside, found),
            Condition::Named(name) => found.push(name),
            Condition::Constant(_) | Condition::Test(_) => {}
        }
    }
    fn visit<'s>(
        name: &'s str,
        by_name: &BTreeMap<&'s str, Vec<&'s At<String>>>,
        visits: &mut BTreeMap<&'s str, Visit>,
        problems: &mut Vec<Problem>,
        depth: usize,
    ) {
        let Some(targets) = by_name.get(name) else { return };
        if visits.contains_key(name) {
            return;
        }
        visits.insert(name, Visit::Open);
        for target in targets {
            if visits.get(target.value.as_str()) == Some(&Visit::Open) {
                problems.push(
                    Problem::error(target.span, format!("condition \"{}\" is made of itself", target.value))
                        .hint("conditions cannot go in a circle"),
                );
            } else if depth >= CONDITION_DEPTH_MAX {
                problems.push(Problem::error(
                    target.span,
                    format!("conditions name conditions more than {CONDITION_DEPTH_MAX} levels deep"),
                ));
            } else {
                visit(&target.value, by_name, visits, problems, depth + 1);
            }
        }
        visits.insert(name, Visit::Done);
    }
    let by_name: BTreeMap<&str, Vec<&At<String>>> = settings
        .conditions
        .iter()
        .map(|named| {
            let mut found = Vec::new();
            names(&named.condition.value, &mut found);
            (named.name.value.as_str(), found)
        })
        .collect();
    let mut visits = BTreeMap::new();
    for name in by_name.keys() {
        visit(name, &by_name, &mut visits, problems, 0);
    }
}

/// How deep conditions may name conditions: protects the stack, and bounds what they come to when
/// they are put in place.
const CONDITION_DEPTH_MAX: usize = 16;

/// Where the walk over a policy is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Open,
    Done,
}

/// Checks that calls form no circle, that every rule can be reached and every policy is called.
fn check_flow(settings: &Settings, problems: &mut Vec<Problem>, is_right: bool) {
    let by_name: BTreeMap<&str, &Policy> =
        settings.policies.iter().map(|policy| (policy.name.value.as_str(), policy)).collect();
    if !by_name.contains_key(ENTRY) {
        if let Some(first) = settings.policies.first() {
            let problem = Problem::error(
                first.name.span,
                format!("there is no policy \"{ENTRY}\", in which queries begin"),
            );
            let near = nearest(ENTRY, by_name.keys().copied());
            problems.push(match near {
                Some(near) => problem.hint(format!("rename \"{near}\"?")),
                None => problem,
            });
        } else if is_right {
            problems.push(Problem::error(Span::BUILT_IN, format!("there is no policy \"{ENTRY}\"")));
        }
    }
    let mut visits = BTreeMap::new();
    let mut path = Vec::new();
    for name in by_name.keys() {
        find_circles(name, &by_name, &mut visits, &mut path, problems);
    }
    let mut called = BTreeSet::new();
    let mut waiting = vec![ENTRY, SPLIT];
    waiting.extend(settings.views.iter().map(|view| view.policy.value.as_str()));
    while let Some(name) = waiting.pop() {
        if let Some(policy) = by_name.get(name)
            && called.insert(name)
        {
            waiting.extend(calls(policy).map(|target| target.value.as_str()));
        }
    }
    for policy in &settings.policies {
        if is_right && !called.contains(policy.name.value.as_str()) && by_name.contains_key(ENTRY) {
            problems.push(Problem::warning(
                policy.name.span,
                format!("policy \"{}\" is ignored: nothing calls it", policy.name.value),
            ));
        }
        check_reachable(policy, problems);
    }
}

fn calls(policy: &Policy) -> impl Iterator<Item = &At<String>> {
    policy.rules.iter().flat_map(|rule| &rule.actions).flat_map(|action| action.value.policies())
}

/// How deep calls may nest here; the compiler's bound on steps is reached much earlier.
const CALL_DEPTH_MAX: usize = 200;

fn find_circles<'s>(
    name: &'s str,
    by_name: &BTreeMap<&'s str, &'s Policy>,
    visits: &mut BTreeMap<&'s str, Visit>,
    path: &mut Vec<&'s str>,
    problems: &mut Vec<Problem>,
) {
    let Some(policy) = by_name.get(name) else { return };
    if visits.contains_key(name) || path.len() >= CALL_DEPTH_MAX {
        return;
    }
    visits.insert(name, Visit::Open);
    path.push(name);
    for target in calls(policy) {
        if visits.get(target.value.as_str()) == Some(&Visit::Open) {
            let from = path.iter().position(|other| *other == target.value).unwrap_or(0);
            let circle = [&path[from..], &[target.value.as_str()]].concat().join(" -> ");
            problems.push(
                Problem::error(target.span, format!("policies call each other in a circle: {circle}"))
                    .hint("every query must come to an end"),
            );
        } else {
            find_circles(&target.value, by_name, visits, path, problems);
        }
    }
    path.pop();
    visits.insert(name, Visit::Done);
}

/// Comparisons of conditions in one policy; of longer ones the rest is not looked at.
const COMPARISONS_MAX: usize = 100_000;

/// Returns whether a condition is written so that it never holds.
fn is_never(condition: &Condition) -> bool {
    match condition {
        Condition::All(parts) => parts.iter().any(is_never),
        // One that cannot be read has no parts.
        Condition::Any(parts) => parts.iter().all(is_never),
        Condition::Not(inside) => **inside == Condition::Constant(true),
        Condition::Constant(holds) => !holds,
        Condition::Named(_) | Condition::Test(_) => false,
    }
}

/// Reports what stands after the end, and rules that an earlier one takes everything from.
fn check_reachable(policy: &Policy, problems: &mut Vec<Problem>) {
    let mut end: Option<Span> = None;
    let mut taken: Vec<&At<Condition>> = Vec::new();
    let mut left = COMPARISONS_MAX;
    for rule in &policy.rules {
        if let Some(end) = end {
            let what =
                rule.name.as_ref().map_or("this rule".to_owned(), |name| format!("rule \"{}\"", name.value));
            problems.push(Problem::error(rule.span, format!("{what} is never reached")).hint_at(
                "every query ends at the rule on ",
                end,
                "",
            ));
            return;
        }
        if let Some(condition) = &rule.condition {
            left = left.saturating_sub(taken.len());
            let wider = taken.iter().find(|taken| left > 0 && implies(&condition.value, &taken.value));
            // One that holds never is reported as that, and so is one that cannot be read.
            if let (Some(wider), false) = (wider, is_never(&condition.value)) {
                problems.push(Problem::warning(condition.span, "this rule is never taken").hint_at(
                    "the rule on ",
                    wider.span,
                    " holds whenever it does, and ends the query",
                ));
            }
        }
        let mut ended: Option<Span> = None;
        for action in &rule.actions {
            if let Some(at) = ended {
                problems.push(Problem::error(action.span, "this action is never reached").hint_at(
                    "the rule ends with the action before it, on ",
                    at,
                    "",
                ));
                break;
            }
            if action.value.ends() {
                ended = Some(action.span);
            }
        }
        match (&rule.condition, ended) {
            (None, Some(_)) => end = Some(rule.span),
            (Some(condition), Some(_)) => taken.push(condition),
            (_, None) => {}
        }
    }
}
