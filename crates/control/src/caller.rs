//! Who asks for something, and what they may.

use std::net::IpAddr;
use std::sync::Arc;

use settings::overlay::{SettingPath, zone_names_file};
use wire::NameBuf;

use crate::api::{self, ConfigEdit, Request, ResolverWhat, ZoneWhat};

/// What somebody may do; each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look at everything but secrets.
    Viewer,
    /// Add to dynamic sets and remove from them, ban clients, and forget answers.
    Helper,
    /// Change settings that are data, fetch lists, look after zones, reload.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// All of them, from the least.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Helper, Self::Operator, Self::Admin];

    /// Returns what it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Helper => "helper",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Returns the role that is called so.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }
}

/// Who asks for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// As it stands in the history.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// What they may do it with.
    pub scope: Arc<Scope>,
    /// Where they ask from, if that is over the network.
    pub from: Option<IpAddr>,
}

/// What somebody may change; everything without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Settings, with all below them.
    pub paths: Vec<SettingPath>,
    /// Zones, with all below them.
    pub zones: Vec<NameBuf>,
}

impl Caller {
    /// Returns whether files and variables of the machine may be read for them: messages show
    /// what is in there.
    pub fn may_read_the_machine(&self) -> bool {
        self.role >= Role::Admin && self.scope.is_all()
    }
}

impl Scope {
    /// Returns whether everything is in it.
    pub const fn is_all(&self) -> bool {
        self.paths.is_empty() && self.zones.is_empty()
    }

    /// Returns why a request is beyond it; `None` if it is not.
    pub fn refusal(&self, request: &Request) -> Option<String> {
        if self.is_all() {
            return None;
        }
        // Everybody may change these of their own, and admins those of others.
        let is_of_accounts =
            matches!(request, Request::TotpBegin(_) | Request::TotpConfirm(_) | Request::SessionRevoke(_));
        // A check with variables can show what is in them, which is more than any scope.
        let is_check = matches!(request, Request::Check(check) if !has_variables(check));
        let changes_nothing = needed(request) == Role::Viewer || is_check;
        let is_look = changes_nothing && !is_of_accounts;
        if is_look {
            return None;
        }
        if names_the_machine(request) {
            let why = "this names a file or a variable of the machine, which is in no scope";
            return Some(why.to_owned());
        }
        let zones: Vec<&str> = match request {
            Request::ConfigChange(change) => {
                return change.edits.iter().find_map(|edit| self.refusal_of_edit(edit));
            }
            Request::ZoneAdd(add) => add.zones.iter().map(String::as_str).collect(),
            Request::ZoneRemove(names) => names.zones.iter().map(String::as_str).collect(),
            Request::ZoneLoad(load) => vec![load.zone.as_str()],
            Request::RrsetsChange(change) => vec![change.zone.as_str()],
            Request::ZoneDsSeen(seen) => vec![seen.zone.as_str()],
            Request::ZoneRoll(roll) => vec![roll.zone.as_str()],
            Request::Zone(order) => order.name.as_deref().into_iter().collect(),
            _ => Vec::new(),
        };
        if zones.is_empty() {
            return Some("this is about more than settings and zones that were named".to_owned());
        }
        let is_mine = |zone: &str| {
            let zone: Option<NameBuf> = zone.parse().ok();
            zone.is_some_and(|zone| self.zones.iter().any(|own| zone.as_name().is_at_or_below(own.as_name())))
        };
        let other = zones.into_iter().find(|zone| !is_mine(zone))?;
        Some(format!("\"{other}\" is not in one of its zones"))
    }

    fn refusal_of_edit(&self, edit: &ConfigEdit) -> Option<String> {
        let path = match edit {
            ConfigEdit::RollBack { .. } => return Some("a roll-back changes many settings".to_owned()),
            ConfigEdit::Set { path, .. } | ConfigEdit::TakeAway { path } | ConfigEdit::Unset { path } => path,
        };
        let read = SettingPath::parse(path);
        if read.as_ref().is_ok_and(says_who_may) {
            return Some(format!("\"{path}\" says who may do what, which is in no scope"));
        }
        let is_mine = read.is_ok_and(|path| self.paths.iter().any(|own| path.is_within(own)));
        (!is_mine).then(|| format!("\"{path}\" is not one of its settings"))
    }
}

/// Returns whether a setting can give people rights: who is bound to a scope could leave it.
pub fn says_who_may(path: &SettingPath) -> bool {
    path.keys().first().is_some_and(|key| key == "control")
}

/// Returns whether a request names a file or a variable of the machine, whose contents could be
/// seen then: in settings, in records of a zone, in rules of a list, or in a message.
fn names_the_machine(request: &Request) -> bool {
    match request {
        Request::ConfigChange(change) => change.edits.iter().any(|edit| match edit {
            ConfigEdit::Set { path, text } => {
                // What is no path is refused for that.
                text.contains("${") || SettingPath::parse(path).is_ok_and(|path| path.names_file(text))
            }
            ConfigEdit::TakeAway { .. } | ConfigEdit::Unset { .. } | ConfigEdit::RollBack { .. } => false,
        }),
        Request::ZoneAdd(add) => add.options.contains("${") || zone_names_file(&add.options),
        Request::ZoneLoad(_) => true,
        _ => false,
    }
}

/// Returns whether variables of the environment stand in settings that are checked.
fn has_variables(check: &api::Check) -> bool {
    check.text.contains("${")
}

/// Returns the role that may have a request carried out.
pub fn needed(request: &Request) -> Role {
    match request {
        Request::Status
        | Request::Stats
        | Request::Metrics
        | Request::CacheStats
        | Request::CacheLookup(_)
        | Request::Explain(_)
        | Request::Jobs
        | Request::Certificates(_)
        | Request::Lists(_)
        | Request::OwnLists
        | Request::ListStates
        | Request::DataHistory(_)
        | Request::OwnListContent(_)
        | Request::SetList(_)
        | Request::Bans(_)
        | Request::ZoneKeys(_)
        | Request::Rrsets(_)
        | Request::ConfigShow
        | Request::ConfigGet(_)
        | Request::ConfigDiff(_)
        | Request::ConfigHistory(_)
        | Request::Events(_) => Role::Viewer,
        // Their own; others' are for admins, which `Operator::session_list` sees to.
        Request::SessionList | Request::SessionRevoke(_) => Role::Viewer,
        // Their own, unless they have some.
        Request::TotpBegin(_) | Request::TotpConfirm(_) => Role::Viewer,
        Request::CacheFlush(_)
        | Request::SetAdd(_)
        | Request::SetRemove(_)
        | Request::SetEdit(_)
        | Request::Ban(_)
        | Request::Unban(_) => Role::Helper,
        // What an admin has named as a list is a file of the machine.
        Request::ListRules(_) => Role::Helper,
        // Who asked for what is more than how the server is.
        Request::Queries(_)
        | Request::QueriesLive(_)
        | Request::QueriesTop(_)
        | Request::Clients(_)
        | Request::Client(_) => Role::Helper,
        Request::QueriesOverTime(asked) if asked.what == "clients" => Role::Helper,
        Request::QueriesOverTime(_) => Role::Viewer,
        Request::QueriesForget(_) => Role::Operator,
        // A variable of the environment may be a secret, and a message can show what was wrong.
        Request::Check(check) if has_variables(check) => Role::Admin,
        Request::Check(_) | Request::Probe(_) => Role::Operator,
        Request::Reload
        | Request::CacheDump
        | Request::JobRun(_)
        | Request::CertificateRenew(_)
        | Request::SetReload(_)
        | Request::ListsFetch(_)
        | Request::OwnListChange(_)
        | Request::OwnListRemove(_)
        | Request::ZoneRemove(_)
        | Request::RrsetsChange(_) => Role::Operator,
        // The settings of a zone may name files of the server, as changed settings may.
        Request::ZoneAdd(_) if names_the_machine(request) => Role::Admin,
        Request::ZoneAdd(_) => Role::Operator,
        // It says in files of the server what a zone is, or which keys sign it.
        Request::ZoneLoad(_) | Request::ZoneDsSeen(_) | Request::ZoneRoll(_) => Role::Admin,
        Request::LogLevel(api::LogLevel { level: None }) => Role::Viewer,
        Request::LogLevel(_) => Role::Operator,
        Request::Resolver(order) => match &order.what {
            ResolverWhat::Stats
            | ResolverWhat::Servers
            | ResolverWhat::Zone(_)
            | ResolverWhat::Anchors
            | ResolverWhat::Negative(api::NegativeOrder::List) => Role::Viewer,
            ResolverWhat::Flush(_) => Role::Helper,
            // Signatures of a zone do not count any more.
            ResolverWhat::Negative(_) => Role::Admin,
        },
        Request::Zone(order) => match order.what {
            ZoneWhat::Status | ZoneWhat::Diff | ZoneWhat::Print => Role::Viewer,
            ZoneWhat::Reload
            | ZoneWhat::Retransfer
            | ZoneWhat::Notify
            | ZoneWhat::Freeze
            | ZoneWhat::Thaw => Role::Operator,
        },
        Request::Audit(_) | Request::TokenAdd(_) | Request::TokenList | Request::TokenRevoke(_) => {
            Role::Admin
        }
        Request::TotpRemove(_)
        | Request::LogInLink(_)
        | Request::UserAdd(_)
        | Request::UserList
        | Request::UserRemove(_)
        | Request::UserPassword(_)
        | Request::UserRole(_) => Role::Admin,
        Request::ConfigExport(asked) if asked.with_secrets => Role::Admin,
        Request::ConfigExport(_) => Role::Viewer,
        Request::ConfigChange(change) => {
            change.edits.iter().map(needed_for_edit).max().unwrap_or(Role::Operator)
        }
    }
}

/// Returns the role that may change a setting, as the table of settings has it: data is for
/// operators, how queries are answered and sent for admins.
fn needed_for_edit(edit: &ConfigEdit) -> Role {
    let (path, text) = match edit {
        ConfigEdit::RollBack { .. } => return Role::Admin,
        ConfigEdit::Set { path, text } => (path, text.as_str()),
        ConfigEdit::TakeAway { path } | ConfigEdit::Unset { path } => (path, ""),
    };
    let Ok(path) = SettingPath::parse(path) else { return Role::Admin };
    // A variable of the environment may be a secret, and what is set can be looked at. So can what
    // the server reads from a file.
    match text.contains("${") || path.names_file(text) {
        true => Role::Admin,
        false => Role::parse(path.role().word()).unwrap_or(Role::Admin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edits: Vec<ConfigEdit>, expect: Role) {
        let change = api::ConfigChange { edits, ..api::ConfigChange::default() };
        assert_eq!(needed(&Request::ConfigChange(change.clone())), expect, "{change:?}");
    }

    fn set(path: &str, text: &str) -> ConfigEdit {
        ConfigEdit::Set { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn data_is_for_operators_and_everything_else_for_admins() {
        check(vec![set("local.nas.home.arpa", "192.0.2.1")], Role::Operator);
        check(vec![set("local.nas.home.arpa", "192.0.2.1"), set("cache.main.size", "1GiB")], Role::Admin);
        check(vec![set("local.nas.home.arpa", "${ADDRESS}")], Role::Admin);
        check(vec![ConfigEdit::Unset { path: "policy.main".to_owned() }], Role::Admin);
        check(vec![ConfigEdit::RollBack { revision: 1 }], Role::Admin);
    }

    #[test]
    fn what_names_a_file_of_the_machine_is_for_admins() {
        check(vec![set("sets.x.lists", "[\"adguard:https://example.org/list.txt\"]")], Role::Operator);
        check(vec![set("sets.x.lists", "[\"adguard:/etc/gannet/tls.key\"]")], Role::Admin);
        check(vec![set("sets.x", "{lists: \"adguard:/etc/gannet/tls.key\"}")], Role::Admin);
        check(vec![set("hosts", "{files: /etc/shadow}")], Role::Admin);
        check(vec![ConfigEdit::Unset { path: "sets.x".to_owned() }], Role::Operator);
        let add = |options: &str| {
            let (zones, options) = (vec!["example.org".to_owned()], options.to_owned());
            needed(&Request::ZoneAdd(api::ZoneAdd { zones, options, ..api::ZoneAdd::default() }))
        };
        assert_eq!(add("{file: /etc/shadow}"), Role::Admin);
        assert_eq!(add("{primaries: \"tls://192.0.2.1 certificate /c private-key /k\"}"), Role::Admin);
        assert_eq!(add("{like: mine}"), Role::Operator);
    }

    #[test]
    fn a_scope_is_all_that_may_be_changed() {
        let path = SettingPath::parse("local").expect("a path");
        let scope = Scope { paths: vec![path], zones: vec!["example.org".parse().expect("a name")] };
        let change =
            |edits| Request::ConfigChange(api::ConfigChange { edits, ..api::ConfigChange::default() });
        let add = |zone: &str| {
            Request::ZoneAdd(api::ZoneAdd { zones: vec![zone.to_owned()], ..api::ZoneAdd::default() })
        };
        let allowed = |request: &Request| scope.refusal(request).is_none();
        assert!(allowed(&change(vec![set("local.nas.home.arpa", "192.0.2.1")])));
        assert!(!allowed(&change(vec![set("local.a", "192.0.2.1"), set("hosts", "[]")])));
        assert!(!allowed(&change(vec![ConfigEdit::RollBack { revision: 0 }])));
        assert!(allowed(&add("a.example.org")) && allowed(&add("example.org")));
        assert!(!allowed(&add("example.com")) && !allowed(&add("anexample.org")));
        assert!(allowed(&Request::Status) && !allowed(&Request::Reload));
        assert!(Scope::default().refusal(&Request::Reload).is_none());
        let check =
            |text: &str| Request::Check(api::Check { text: text.to_owned(), ..api::Check::default() });
        assert!(allowed(&check("local: {}")) && !allowed(&check("local: {a: \"${SECRET}\"}")));
    }

    #[test]
    fn who_may_do_what_is_in_no_scope() {
        let paths =
            ["control.oidc", "control.socket-role"].map(|path| SettingPath::parse(path).expect("a path"));
        let scope = Scope { paths: paths.to_vec(), ..Scope::default() };
        for edit in [
            set("control.oidc.groups", "{everybody: admin}"),
            set("control.socket-role", "admin"),
            ConfigEdit::Unset { path: "control.oidc.groups".to_owned() },
        ] {
            let edits = vec![edit];
            let change = Request::ConfigChange(api::ConfigChange { edits, ..api::ConfigChange::default() });
            let why = scope.refusal(&change).expect("a refusal");
            assert!(why.ends_with("says who may do what, which is in no scope"), "{why}");
        }
    }

    #[test]
    fn no_scope_has_files_or_variables_of_the_machine() {
        let paths = ["sets", "tls", "local"].map(|path| SettingPath::parse(path).expect("a path")).to_vec();
        let scope = Scope { paths, zones: vec!["example.org".parse().expect("a name")] };
        let change = |path: &str, text: &str| {
            let edits = vec![set(path, text)];
            Request::ConfigChange(api::ConfigChange { edits, ..api::ConfigChange::default() })
        };
        let add = |options: &str| {
            let (zones, options) = (vec!["example.org".to_owned()], options.to_owned());
            Request::ZoneAdd(api::ZoneAdd { zones, options, ..api::ZoneAdd::default() })
        };
        let (zone, file) = ("example.org".to_owned(), "/etc/gannet/tls.key".to_owned());
        for request in [
            change("sets.x", "{lists: \"adguard:/etc/gannet/tls.key\"}"),
            change("tls.certificates", "[{certificate: /c, key: /k}]"),
            change("local.a", "\"${SECRET}\""),
            add("{file: /etc/gannet/tls.key}"),
            add("{like: \"${SECRET}\"}"),
            Request::ZoneLoad(api::ZoneLoad { zone, file }),
        ] {
            let why = scope.refusal(&request).expect("a refusal");
            assert!(why.contains("of the machine"), "{request:?}: {why}");
            assert!(Scope::default().refusal(&request).is_none(), "{request:?}");
        }
        for request in [change("sets.x", "{lists: \"adguard:https://example.org/l\"}"), add("{like: mine}")] {
            assert_eq!(scope.refusal(&request), None, "{request:?}");
        }
    }

    #[test]
    fn a_parent_needs_what_its_parts_need_and_a_ban_is_in_no_scope() {
        let taken = |path: &str| vec![ConfigEdit::TakeAway { path: path.to_owned() }];
        check(taken("sets"), Role::Operator);
        check(taken("zones"), Role::Operator);
        check(taken("limits"), Role::Admin);
        check(vec![set("sets", "{x: {lists: \"adguard:/etc/shadow\"}}")], Role::Admin);
        check(vec![set("zones", "[{name: example.org, file: /etc/shadow}]")], Role::Admin);
        let scope = Scope { zones: vec!["example.org".parse().expect("a name")], ..Scope::default() };
        assert!(scope.refusal(&Request::Ban(api::BanAdd::default())).is_some());
        assert!(scope.refusal(&Request::Bans(api::BansOf::default())).is_none());
    }

    #[test]
    fn a_role_has_a_word() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.word()), Some(role));
        }
        assert_eq!(Role::parse("root"), None);
    }
}
