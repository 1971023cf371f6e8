//! The policy of a configuration that gives none and names no upstream server: it forwards to the
//! resolvers of the machine, and finds answers by itself where there are none.

use std::borrow::Cow;
use std::net::SocketAddr;

use diagnostic::{At, Span};
use environment::Environment;
use policy::action::Core;
use policy::{Action, ENTRY};

use super::upstreams;
use settings::{RouteWay, Settings};

/// The resolver that is there without being written.
const RESOLVER: &str = "default";

/// Returns the settings as they are run with: where the machine has no resolver but this one, the
/// built-in policy resolves in place of forwarding.
pub(super) fn fitted<'s>(
    settings: &'s Settings,
    own: &[SocketAddr],
    environment: &dyn Environment,
) -> Cow<'s, Settings> {
    let may_resolve = group(settings).is_some() && !upstreams::has_system(own, environment);
    match may_resolve.then(|| resolving(settings)).flatten() {
        Some(resolving) => Cow::Owned(resolving),
        None => Cow::Borrowed(settings),
    }
}

/// Returns the settings with a policy that resolves, if it is the built-in one, and forwards to
/// whatever the machine has.
pub(super) fn resolving(settings: &Settings) -> Option<Settings> {
    let group = group(settings)?;
    let mut settings = settings.clone();
    let rules = settings.policies.iter_mut().filter(|it| it.name.value == ENTRY).flat_map(|it| &mut it.rules);
    for action in rules.flat_map(|rule| &mut rule.actions) {
        if matches!(&action.value, Action::Core(Core::Forward(name)) if name.value == group) {
            let resolver = At { value: RESOLVER.to_owned(), span: Span::BUILT_IN };
            action.value = Action::Core(Core::Recurse(resolver));
        }
    }
    let mut zones = settings.resolvers.iter().flat_map(|resolver| &resolver.zones);
    let is_used = zones.any(|zone| matches!(&zone.way, RouteWay::Forward(name) if name.value == group));
    if !is_used {
        settings.upstreams.retain(|known| known.name.value != group);
    }
    Some(settings)
}

/// Returns the group that nobody wrote and the built-in policy forwards to.
fn group(settings: &Settings) -> Option<String> {
    let entry = settings.policies.iter().find(|policy| policy.name.value == ENTRY);
    let mut actions =
        entry.filter(|_| !settings.policy_is_given)?.rules.iter().flat_map(|rule| &rule.actions);
    let name = actions.find_map(|action| match &action.value {
        Action::Core(Core::Forward(name)) => Some(&name.value),
        _ => None,
    })?;
    let group = settings.upstreams.iter().find(|group| group.name.value == *name)?;
    (group.name.span == Span::BUILT_IN).then(|| name.clone())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::path::Path;

    use environment::Memory;
    use settings::load::load_text;

    /// Checks whether a server resolves by itself, and the addresses that it forwards to.
    fn check(text: &str, resolv_conf: Option<&str>, own: &str, resolves: bool, servers: &[&str]) {
        let files: Vec<(&str, &str)> =
            resolv_conf.map(|text| ("/etc/resolv.conf", text)).into_iter().collect();
        let memory = Memory::new(&files);
        let loaded = load_text(Path::new("/x"), text, &memory).expect("no mistakes");
        let own: Vec<SocketAddr> = own.split_whitespace().map(|at| at.parse().expect("an address")).collect();
        let plans = super::super::compile(&loaded, &own, None, &memory).expect("no mistakes");
        let servers_of = plans.fetch.pools.iter().flat_map(|pool| &pool.servers);
        let found: Vec<String> = servers_of
            .map(|server| match &server.target {
                plan::upstreams::Target::Address(address) => address.to_string(),
                plan::upstreams::Target::Name { name, .. } => name.to_string(),
            })
            .collect();
        assert_eq!(found, servers, "{text}");
        assert_eq!(plans.resolvers.resolvers.len(), usize::from(resolves), "{text}");
        assert!(!resolves || plans.warnings.is_empty(), "{:?}", plans.warnings);
    }

    #[test]
    fn who_is_told_nothing_forwards_to_the_machines_resolvers_or_resolves() {
        let at_53 = "127.0.0.1:53 [::1]:53";
        check("", Some("nameserver 192.0.2.1\n"), at_53, false, &["192.0.2.1:53"]);
        check("", Some(""), at_53, true, &[]);
        check("", None, at_53, true, &[]);
        check("", Some("nameserver 127.0.0.1\nnameserver ::1\n"), at_53, true, &[]);
        check("", Some("nameserver 127.0.0.1\n"), "0.0.0.0:53", true, &[]);
        // Another server of this machine has port 53.
        check("", Some("nameserver 127.0.0.1\n"), "127.0.0.1:5300", false, &["127.0.0.1:53"]);
        check("listen: 192.0.2.7", None, "192.0.2.7:53", true, &[]);
        check("split: {corp.example: 10.1.0.53}", None, at_53, true, &["10.1.0.53:53"]);
    }

    #[test]
    fn what_is_shown_is_what_is_run() {
        let check = |text: &str, resolv_conf: &str, expected: &str| {
            let memory = Memory::new(&[("/etc/resolv.conf", resolv_conf)]);
            let loaded = load_text(Path::new("/x"), text, &memory).expect("no mistakes");
            let shown = settings::print::show(&crate::as_run(loaded, &memory));
            let all = ["forward(default)", "forward(own)", "recurse"];
            let steps: Vec<&str> = all.into_iter().filter(|step| shown.contains(step)).collect();
            assert_eq!(steps, [expected], "{shown}");
        };
        check("", "nameserver 192.0.2.1\n", "forward(default)");
        check("", "", "recurse");
        check("listen: 192.0.2.7", "nameserver 192.0.2.7\n", "recurse");
        check("upstreams: {own: 192.0.2.1}", "", "forward(own)");
        check("policy: {main: [forward(default)]}", "", "forward(default)");
    }

    #[test]
    fn who_names_upstreams_or_a_policy_means_them() {
        let none = Some("");
        check("upstreams: 192.0.2.1", none, "", false, &["192.0.2.1:53"]);
        check("upstreams: system", none, "", false, &[]);
        check("policy: {main: [cache(main), forward(default)]}", none, "", false, &[]);
        check("zones: [{name: example.org, file: none}]", none, "", false, &[]);
    }
}
