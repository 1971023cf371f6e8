//! Requests of operators, carried out by the operator interface. On the control socket its errors
//! become text.

use std::fs::File;
use std::sync::Arc;

use control::api::{self, Request, ResolverOrder, ResolverWhat, Response, ZoneOrder, ZoneWhat};
use control::{Answer, Caller, Peer, Role, needed};
use store::Draft;

use crate::operator::{Operator, OperatorError, told_of_rest};
use crate::sys;

/// Characters of what somebody is called in the history.
const NAME_CHARS_MAX: usize = 64;

/// Settings of one change that was refused that the audit log names.
const AUDITED_SETTINGS_MAX: usize = 200;
/// RRsets of one change that the audit log names.
const AUDITED_RRSETS_MAX: usize = 20;

/// Who may use the control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketUsers {
    /// The user that the server runs as, who may do everything, as root may.
    pub own_user: u32,
    /// A group, and what its members may do.
    pub group: Option<(u32, Role)>,
}

impl SocketUsers {
    /// Returns who is at the other end.
    ///
    /// # Errors
    ///
    /// They may not use it.
    pub fn caller(self, peer: Peer) -> Result<Caller, String> {
        let user = peer.user;
        let role = match self.group {
            _ if user == 0 || user == self.own_user => Role::Admin,
            Some((group, role)) if peer.is_in(group) => role,
            group => {
                let group =
                    group.map_or_else(String::new, |(group, _)| format!(", and members of group {group}"));
                let own = self.own_user;
                return Err(format!(
                    "user {user} may not control this server; root and user {own} may{group}"
                ));
            }
        };
        let name = sys::user_name(user).unwrap_or_else(|| format!("user {user}"));
        Ok(Caller { name, role, scope: Arc::default(), from: None })
    }
}

/// Returns what carries out what is asked over the control socket in lines.
pub(crate) fn handler(operator: Arc<Operator>, users: SocketUsers) -> control::Handler {
    Arc::new(move |request, peer| match users.caller(peer) {
        Ok(caller) => answered(carry_out(&operator, request, &caller)),
        Err(why) => Response::error(why).into(),
    })
}

/// Returns what the control socket answers, whatever came of a request.
pub fn answered(outcome: Result<Answer, OperatorError>) -> Answer {
    match outcome {
        Ok(answer) => answer,
        // What was wrong with a configuration is shown like what was adopted.
        Err(OperatorError::Invalid(rejected)) => Response::Reload(api::Reload {
            diagnostics: rejected.diagnostics.iter().map(api::Diagnostic::from).collect(),
            ..rejected.stays
        })
        .into(),
        Err(other) => Response::error(other.to_string()).into(),
    }
}

/// Has a request carried out for somebody.
///
/// # Errors
///
/// They may not, or it cannot be.
pub fn carry_out(
    operator: &Arc<Operator>,
    request: Request,
    caller: &Caller,
) -> Result<Answer, OperatorError> {
    let role = needed(&request);
    let is_look = role == Role::Viewer
        || matches!(
            request,
            Request::Audit(_)
                | Request::TokenList
                | Request::UserList
                | Request::Queries(_)
                | Request::QueriesLive(_)
                | Request::QueriesTop(_)
                | Request::QueriesOverTime(_)
                | Request::Clients(_)
                | Request::Client(_)
                | Request::ListRules(_)
                | Request::Check(_)
        );
    let words = (!is_look).then(|| audited(&request));
    let audit = |outcome: &str| {
        if let Some((what, on)) = &words {
            operator.audit(&caller.name, (what, on), outcome);
        }
    };
    // What is kept by revision is audited with it.
    let is_kept = matches!(
        request,
        Request::ConfigChange(_)
            | Request::TokenAdd(_)
            | Request::TokenRevoke(_)
            | Request::UserAdd(_)
            | Request::UserRemove(_)
            | Request::UserRole(_)
            | Request::OwnListChange(_)
            | Request::OwnListRemove(_)
            | Request::Ban(_)
            | Request::Unban(_)
    );
    let set = match &request {
        Request::SetAdd(change) | Request::SetRemove(change) => Some(&change.name),
        Request::SetEdit(change) => Some(&change.name),
        _ => None,
    };
    let is_kept = is_kept || set.is_some_and(|name| operator.keeps_set(name));
    if let (Some((what, on)), true) = (&words, !is_kept && caller.role >= role) {
        let written = operator.audit_first(&caller.name, (what, on));
        if !is_for_mending(&request) {
            written?;
        }
    }
    let probed = match &request {
        Request::Probe(asked) => Some(asked.server.clone()),
        _ => None,
    };
    let told = told_of_rest(&request, &caller.name);
    let is_dry_run = is_dry_run(&request);
    let outcome = try_carry_out(operator, request, caller, role);
    if let (Some(told), Ok(answer)) = (told, &outcome) {
        operator.tell_done(told, answer);
    }
    if let Err(why) = &outcome
        && (!is_dry_run || matches!(why, OperatorError::Forbidden(_)))
    {
        audit(&refusal_shown(why, probed.as_deref()));
    }
    outcome
}

/// Returns whether a request is only checked: then it has no row but for whoever may not even ask.
fn is_dry_run(request: &Request) -> bool {
    match request {
        Request::Ban(asked) => asked.is_dry_run,
        Request::Unban(asked) => asked.is_dry_run,
        Request::ConfigChange(change) => change.is_dry_run,
        Request::OwnListChange(change) => change.is_dry_run,
        _ => false,
    }
}

/// Refuses a check to whoever may not have the same done, which the audit log has.
///
/// # Errors
///
/// They may not.
pub(crate) fn may_check(
    operator: &Operator,
    caller: &Caller,
    request: &Request,
) -> Result<(), OperatorError> {
    may(caller, request, needed(request)).inspect_err(|why| {
        let (what, on) = audited(request);
        operator.audit(&caller.name, (&what, &on), &refusal_shown(why, None));
    })
}

/// Returns whether something is done even if the audit log cannot have it: what reads files that
/// somebody has mended, and what forgets answers of others, which no start would find.
const fn is_for_mending(request: &Request) -> bool {
    match request {
        Request::Reload | Request::CacheFlush(_) | Request::CacheDump => true,
        Request::Resolver(order) => matches!(order.what, ResolverWhat::Flush(_)),
        _ => false,
    }
}

/// Refuses somebody who may not change members of a set, before what they send is read.
///
/// # Errors
///
/// They may not.
pub fn members_allowed(operator: &Operator, name: &str, caller: &Caller) -> Result<(), OperatorError> {
    let edits = api::SetEdits { name: name.to_owned(), edits: Vec::new(), ttl_s: None, tag: None };
    let like = Request::SetEdit(edits);
    let allowed = may(caller, &like, needed(&like));
    if let Err(why) = &allowed {
        operator.audit(&caller.name, ("set-edit", name), &format!("refused: {why}"));
    }
    allowed
}

/// Refuses somebody who may not change a list, before what they send is read.
///
/// # Errors
///
/// They may not.
pub fn own_list_allowed(operator: &Operator, name: &str, caller: &Caller) -> Result<(), OperatorError> {
    // What a text changes, and so who may, is what removing the list does.
    let like = Request::OwnListRemove(api::OwnListRemove { name: name.to_owned(), tag: None });
    let allowed = may(caller, &like, needed(&like));
    if let Err(why) = &allowed {
        operator.audit(&caller.name, ("own-list-change", name), &format!("refused: {why}"));
    }
    allowed
}

/// Makes a text that was uploaded that of a list, for somebody.
///
/// # Errors
///
/// They may not, or it cannot be.
pub fn own_list_put(
    operator: &Operator,
    (name, tag): (&str, &str),
    draft: Draft,
    is_dry_run: bool,
    caller: &Caller,
) -> Result<api::OwnListChanged, OperatorError> {
    own_list_allowed(operator, name, caller)?;
    let put = operator.own_list_put((name, Some(tag)), draft, is_dry_run, &caller.name);
    if let Err(why) = &put
        && !is_dry_run
    {
        operator.audit(&caller.name, ("own-list-put", name), &format!("refused: {why}"));
    }
    put
}

/// Makes a backup for somebody.
///
/// # Errors
///
/// They may not, or it cannot be made.
pub fn back_up(operator: &Operator, with_secrets: bool, caller: &Caller) -> Result<File, OperatorError> {
    let on = if with_secrets { "with secrets" } else { "without secrets" };
    restore_allowed(operator, "backup", caller)?;
    operator.audit_first(&caller.name, ("backup", on))?;
    operator.back_up(with_secrets)
}

/// Refuses somebody who may not make or restore a backup: it has, or replaces, what nobody but an
/// admin may change.
///
/// # Errors
///
/// They may not.
pub fn restore_allowed(operator: &Operator, what: &str, caller: &Caller) -> Result<(), OperatorError> {
    // A caller who is bound to something may not reload either.
    let allowed = may(caller, &Request::Reload, Role::Admin);
    if let Err(why) = &allowed {
        operator.audit(&caller.name, (what, ""), &format!("refused: {why}"));
    }
    allowed
}

/// Has a backup be taken up at the next start, for somebody.
///
/// # Errors
///
/// They may not, or it is none.
pub fn restore(
    operator: &Operator,
    draft: &Draft,
    is_dry_run: bool,
    caller: &Caller,
) -> Result<api::Restored, OperatorError> {
    restore_allowed(operator, "restore", caller)?;
    let on = format!("sha256:{}", draft.hash());
    if !is_dry_run {
        operator.audit_first(&caller.name, ("restore", &on))?;
    }
    operator.restore(draft, is_dry_run, &caller.name).inspect_err(|why| {
        if !is_dry_run {
            operator.audit(&caller.name, ("restore", &on), &format!("refused: {why}"));
        }
    })
}

/// Returns what the audit log says of a request: texts of settings may be secrets.
fn audited(request: &Request) -> (String, String) {
    if let Request::OwnListChange(change) = request {
        // There may be a million.
        let on = format!("{}: {} rules", change.name, change.edits.len());
        return ("own-list-change".to_owned(), on);
    }
    if let Request::SetEdit(change) = request {
        let on = format!("{}: {} members", change.name, change.edits.len());
        return ("set-edit".to_owned(), on);
    }
    if let Request::ConfigChange(change) = request {
        let path = |edit: &api::ConfigEdit| match edit {
            api::ConfigEdit::Set { path, .. }
            | api::ConfigEdit::TakeAway { path }
            | api::ConfigEdit::Unset { path } => path.clone(),
            api::ConfigEdit::RollBack { revision } => format!("roll back to {revision}"),
        };
        let first: Vec<String> = change.edits.iter().take(AUDITED_SETTINGS_MAX).map(path).collect();
        let more = and_more(change.edits.len(), AUDITED_SETTINGS_MAX);
        return ("config-change".to_owned(), format!("{}{more}", first.join(", ")));
    }
    let (what, with) = request.words();
    let on = match request {
        Request::ZoneAdd(add) => add.zones.join(", "),
        Request::ZoneRemove(names) => names.zones.join(", "),
        Request::RrsetsChange(change) => {
            let rrset = |edit: &api::RrsetEdit| format!("{} {}", edit.name, edit.rtype);
            let rrsets: Vec<String> = change.changes.iter().take(AUDITED_RRSETS_MAX).map(rrset).collect();
            let more = and_more(change.changes.len(), AUDITED_RRSETS_MAX);
            format!("{}: {}{more}", change.zone, rrsets.join(", "))
        }
        Request::Probe(asked) => server_shown(&asked.server),
        // Nothing of a password is anywhere.
        Request::UserAdd(user) => user.name.clone(),
        Request::UserPassword(user) => user.name.clone(),
        _ => with,
    };
    (what, on)
}

/// Returns how many there are beyond those that are named.
fn and_more(count: usize, max: usize) -> String {
    match count.saturating_sub(max) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

/// Returns what the audit log says of an upstream server that is measured: a mapping may hold
/// passwords, and the path of a URL may be known to its owner alone.
fn server_shown(written: &str) -> String {
    if is_mapping(written) {
        return "a mapping".to_owned();
    }
    let shown = diagnostic::without_secrets(written).into_owned();
    let Some((scheme, rest)) = shown.split_once("://") else { return shown };
    match rest.find(['/', '?', '#']) {
        Some(at) => format!("{scheme}://{}/...", &rest[..at]),
        None => shown,
    }
}

fn is_mapping(written: &str) -> bool {
    written.contains(['{', '\n'])
}

/// Returns what the audit log says of why something was refused, which may quote the request.
fn refusal_shown(why: &OperatorError, probed: Option<&str>) -> String {
    match probed {
        None => format!("refused: {why}"),
        Some(server) if is_mapping(server) => "refused".to_owned(),
        Some(server) => format!("refused: {}", why.to_string().replace(server, &server_shown(server))),
    }
}

fn try_carry_out(
    operator: &Arc<Operator>,
    request: Request,
    caller: &Caller,
    role: Role,
) -> Result<Answer, OperatorError> {
    may(caller, &request, role)?;
    let request = match request {
        Request::TokenAdd(asked) => {
            let added = operator.token_add(&asked, &caller.name)?;
            return Ok(Response::TokenAdded(Box::new(added)).into());
        }
        Request::TokenRevoke(token) => {
            let tokens = operator.token_revoke(&token, &caller.name)?;
            return Ok(Response::Tokens(tokens).into());
        }
        Request::UserAdd(asked) => return operator.user_add(&asked, &caller.name).map(users),
        Request::UserRemove(user) => return operator.user_remove(&user, &caller.name).map(users),
        Request::TotpBegin(user) => {
            return operator.totp_begin(&user.name, caller).map(|begun| Response::TotpBegun(begun).into());
        }
        Request::TotpConfirm(asked) => {
            let confirmed = operator.totp_confirm(&asked, caller)?;
            return Ok(Response::TotpConfirmed(confirmed).into());
        }
        Request::SessionList => return Ok(Response::Sessions(operator.session_list(caller)).into()),
        Request::SessionRevoke(session) => {
            let left = operator.session_revoke(&session.id, caller)?;
            return Ok(Response::Sessions(left).into());
        }
        Request::Check(asked) => return Ok(Response::Checked(operator.check(&asked, caller)?).into()),
        Request::Probe(asked) => {
            return Ok(Response::Probed(Box::new(operator.probe(&asked, caller.role)?)).into());
        }
        Request::UserRole(asked) => return operator.user_role(&asked, &caller.name).map(users),
        Request::Events(asked) => {
            let parts = operator.events(&asked, caller)?;
            return Ok(Answer::Parts(Box::new(parts.map(|part| Response::Event(Box::new(part))))));
        }
        Request::SetAdd(change) => {
            return operator.set_add(&change, &caller.name).map(|it| Response::SetChanged(it).into());
        }
        Request::SetRemove(change) => {
            return operator.set_remove(&change, &caller.name).map(|it| Response::SetChanged(it).into());
        }
        Request::SetEdit(change) => {
            return operator.set_edit(&change, &caller.name).map(|it| Response::SetChanged(it).into());
        }
        Request::Ban(asked) => return operator.ban(&asked, caller).map(ban_changed),
        Request::Unban(asked) => return operator.unban(&asked, caller).map(ban_changed),
        Request::OwnListChange(change) => {
            let changed = operator.own_list_change(&change, &caller.name)?;
            return Ok(Response::OwnListChanged(changed).into());
        }
        Request::OwnListRemove(asked) => {
            let changed = operator.own_list_remove(&asked, &caller.name)?;
            return Ok(Response::OwnListChanged(changed).into());
        }
        Request::ConfigChange(change) => {
            let by = Some(signed(&caller.name, change.by.as_deref()));
            Request::ConfigChange(api::ConfigChange { by, ..change })
        }
        other => other,
    };
    answer(operator, request, caller)
}

/// Refuses what somebody may not have done.
pub(crate) fn may(caller: &Caller, request: &Request, role: Role) -> Result<(), OperatorError> {
    if caller.role < role {
        let (name, role, own) = (&caller.name, role.word(), caller.role.word());
        return Err(OperatorError::Forbidden(format!("this needs the role {role}, and {name} has {own}")));
    }
    match caller.scope.refusal(request) {
        Some(why) => {
            Err(OperatorError::Forbidden(format!("{why}, and {} may change nothing else", caller.name)))
        }
        None => Ok(()),
    }
}

fn ban_changed(changed: api::BanChanged) -> Answer {
    Response::BanChanged(changed).into()
}

fn users(all: Vec<api::User>) -> Answer {
    Response::Users(all).into()
}

/// Returns who makes a change: who it is for certain, and for whom they say that they make it.
fn signed(name: &str, claimed: Option<&str>) -> String {
    // It stands in messages.
    let plain = |text: &str| -> String { text.trim().chars().filter(|c| !c.is_control()).collect() };
    let claimed = claimed.map(plain).filter(|claimed| !claimed.is_empty() && claimed != name);
    let whole = claimed.map_or_else(|| plain(name), |claimed| format!("{} for {claimed}", plain(name)));
    whole.chars().take(NAME_CHARS_MAX).collect()
}

// A table: a row for each request.
fn answer(operator: &Arc<Operator>, request: Request, caller: &Caller) -> Result<Answer, OperatorError> {
    let (by, role) = (caller.name.as_str(), caller.role);
    let response = match request {
        Request::Reload => operator.reload().map(Response::Reload)?,
        Request::Status => Response::Status(operator.status()),
        Request::Stats => Response::Stats(operator.stats(role)),
        Request::Metrics => Response::Metrics(operator.metrics()),
        Request::CacheFlush(flush) => operator.cache_flush(&flush).map(Response::CacheFlush)?,
        Request::CacheDump => Response::CacheDump(operator.cache_dump()),
        Request::CacheStats => Response::CacheStats(operator.cache_stats()),
        Request::CacheLookup(asked) => operator.cache_lookup(&asked).map(Response::CacheEntries)?,
        Request::Resolver(order) => resolver(operator, &order)?,
        Request::Lists(asked) => operator.lists(asked.set.as_deref()).map(Response::Lists)?,
        Request::ListsFetch(asked) => {
            operator.lists_fetch(asked.set.as_deref()).map(Response::ListsFetched)?
        }
        Request::DataHistory(asked) => operator.data_history(&asked).map(Response::DataSteps)?,
        Request::ListStates => operator.list_states().map(Response::ListStates)?,
        Request::ListRules(of) => operator.list_rules(&of).map(Response::ListRules)?,
        Request::OwnLists => operator.own_list_states().map(Response::OwnLists)?,
        Request::OwnListContent(of) => {
            let parts = operator.own_list_text(&of.name)?;
            return Ok(Answer::Parts(Box::new(parts.map(Response::OwnListText))));
        }
        Request::LogLevel(wanted) => operator.log_level(wanted.level.as_deref()).map(Response::LogLevel)?,
        Request::Jobs => Response::Jobs(operator.jobs()),
        Request::Certificates(of) => operator.certificates(of.name.as_deref()).map(Response::Certificates)?,
        Request::CertificateRenew(of) => operator.certificate_renew(&of.name).map(Response::Certificates)?,
        Request::JobRun(job) => operator.job_run(&job.name).map(Response::Jobs)?,
        Request::Zone(order) if order.what == ZoneWhat::Print => return print(operator, &order),
        Request::Zone(order) => zone(operator, &order, by)?,
        Request::ZoneAdd(add) => operator.zone_add(&add, by).map(Response::ZonesChanged)?,
        Request::ZoneRemove(names) => operator.zone_remove(&names).map(Response::ZonesChanged)?,
        Request::ZoneLoad(load) => operator.zone_load(&load, by).map(done)?,
        Request::Rrsets(asked) => operator.rrsets(&asked).map(Response::Rrsets)?,
        Request::RrsetsChange(change) => operator.rrsets_change(&change, by).map(Response::RrsetsChanged)?,
        Request::SetReload(set) => operator.set_reload(&set.name).map(Response::Reload)?,
        Request::Bans(of) => operator.ban_list(&of, role).map(Response::Bans)?,
        Request::SetList(set) => operator.set_list(&set.name).map(Response::SetList)?,
        Request::ZoneKeys(asked) => operator.zone_keys(&asked.zone).map(Response::ZoneKeys)?,
        Request::ZoneDsSeen(seen) => operator.zone_ds_seen(&seen).map(Response::ZoneKeys)?,
        Request::ZoneRoll(roll) => operator.zone_roll(&roll).map(Response::ZoneKeys)?,
        Request::ConfigChange(change) => operator.config_change(&change).map(Response::ConfigChanged)?,
        Request::ConfigShow => operator.config_show().map(Response::ConfigShown)?,
        Request::ConfigExport(asked) => Response::ConfigShown(operator.config_export(asked.with_secrets)),
        Request::ConfigDiff(asked) => operator.config_diff(&asked).map(Response::ConfigDifferences)?,
        Request::ConfigHistory(asked) => operator.config_history(&asked).map(Response::ConfigSteps)?,
        Request::ConfigGet(asked) => operator.config_get(&asked).map(Response::Settings)?,
        Request::Audit(asked) => operator.audited(asked).map(Response::Audited)?,
        Request::TokenList => Response::Tokens(operator.token_list()),
        Request::Queries(asked) => operator.queries_found(&asked).map(Response::Queries)?,
        Request::QueriesTop(asked) => operator.queries_top(&asked).map(Response::QueriesTop)?,
        Request::QueriesOverTime(asked) => {
            operator.queries_over_time(&asked).map(Response::QueriesOverTime)?
        }
        Request::Clients(of) => operator.clients(&of).map(Response::Clients)?,
        Request::Client(of) => operator.client(&of).map(Box::new).map(Response::Client)?,
        Request::QueriesLive(asked) => return live(operator, &asked),
        Request::QueriesForget(of) => operator.queries_forget(&of.client).map(Response::QueriesRemoved)?,
        // It matters who asks: `carry_out` does them.
        Request::TokenAdd(_)
        | Request::TokenRevoke(_)
        | Request::UserAdd(_)
        | Request::UserRemove(_)
        | Request::UserRole(_)
        | Request::Check(_)
        | Request::Probe(_)
        | Request::SetAdd(_)
        | Request::SetRemove(_)
        | Request::SetEdit(_)
        | Request::Ban(_)
        | Request::Unban(_)
        | Request::OwnListChange(_)
        | Request::OwnListRemove(_)
        | Request::TotpBegin(_)
        | Request::TotpConfirm(_)
        | Request::SessionList
        | Request::SessionRevoke(_)
        | Request::Events(_) => Response::error("nobody asks for this"),
        Request::LogInLink(asked) => operator.log_in_link(asked.user.as_deref()).map(Response::LogInLink)?,
        Request::TotpRemove(user) => operator.totp_remove(&user).map(Response::Users)?,
        Request::UserList => Response::Users(operator.user_list()),
        Request::UserPassword(asked) => operator.user_password(&asked).map(Response::Users)?,
        Request::Explain(asked) => operator.explain(&asked).map(Response::Explained)?,
    };
    Ok(response.into())
}

fn resolver(operator: &Operator, order: &ResolverOrder) -> Result<Response, OperatorError> {
    let only = order.resolver.as_deref();
    Ok(match &order.what {
        ResolverWhat::Stats => operator.resolver_stats(only).map(Response::ResolverStats)?,
        ResolverWhat::Servers => Response::ResolverServers(operator.resolver_servers()),
        ResolverWhat::Zone(name) => operator.resolver_zone(only, name).map(Response::ResolverZones)?,
        ResolverWhat::Anchors => operator.resolver_anchors(only).map(Response::ResolverAnchors)?,
        ResolverWhat::Negative(order) => {
            operator.resolver_negative(only, order).map(Response::ResolverNegative)?
        }
        ResolverWhat::Flush(what) => operator.resolver_flush(only, what).map(Response::CacheFlush)?,
    })
}

fn done(message: String) -> Response {
    Response::ZoneDone(api::ZoneDone { message })
}

fn zone(operator: &Operator, order: &ZoneOrder, by: &str) -> Result<Response, OperatorError> {
    let name = order.name.as_deref();
    let named = || name.ok_or_else(|| OperatorError::Argument("which zone?".to_owned()));
    let of_one = |outcome: &dyn Fn(&Operator, &str) -> Result<(), OperatorError>, message: &str| {
        outcome(operator, named()?).map(|()| done(message.to_owned()))
    };
    match order.what {
        ZoneWhat::Status => operator.zone_status(name).map(Response::Zones),
        ZoneWhat::Reload => operator.zone_refresh(name, order.file_change, by).map(Response::Reload),
        ZoneWhat::Retransfer => of_one(&Operator::zone_retransfer, "the whole zone is asked for"),
        ZoneWhat::Notify => of_one(&Operator::zone_notify, "its secondaries are told"),
        ZoneWhat::Freeze => {
            of_one(&|operator, zone| operator.zone_freeze(zone, by), "the zone does not change any more")
        }
        ZoneWhat::Thaw => of_one(&|operator, zone| operator.zone_thaw(zone, by), "the zone may change"),
        ZoneWhat::Diff => operator.zone_difference(named()?).map(Response::ZoneDiff),
        ZoneWhat::Print => Err(OperatorError::Argument("a zone is printed in parts".to_owned())),
    }
}

/// Begins to say which queries are recorded.
fn live(operator: &Operator, asked: &api::QueriesAsked) -> Result<Answer, OperatorError> {
    let events = operator.queries_live(asked)?;
    Ok(Answer::Parts(Box::new(events.map(|event| Response::QueryEvent(Box::new(event))))))
}

/// Begins to print the version of a zone that is served.
fn print(operator: &Operator, order: &ZoneOrder) -> Result<Answer, OperatorError> {
    let named = order.name.as_deref().ok_or_else(|| OperatorError::Argument("which zone?".to_owned()))?;
    let records = operator.zone_records(named)?;
    Ok(Answer::Parts(Box::new(records.map(Response::ZoneRecords))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_setting_is_in_the_audit_log() {
        let edit = api::ConfigEdit::Set { path: "cookies.secret".to_owned(), text: "0011".to_owned() };
        let change = api::ConfigChange { edits: vec![edit], ..api::ConfigChange::default() };
        let said = audited(&Request::ConfigChange(change));
        assert_eq!(said, ("config-change".to_owned(), "cookies.secret".to_owned()));
        assert_eq!(audited(&Request::Reload), ("reload".to_owned(), "{}".to_owned()));
    }

    #[test]
    fn no_secret_of_a_probed_server_is_in_the_audit_log() {
        for (written, shown) in [
            ("192.0.2.1", "192.0.2.1"),
            ("tls://[2001:db8::1]:853", "tls://[2001:db8::1]:853"),
            ("https://dns.example/t0ken/dns-query", "https://dns.example/..."),
            ("https://dns.example?t0ken", "https://dns.example/..."),
            ("socks5://anna:hunter2@h:1080", "socks5://anna:*******@h:1080"),
            ("{address: 192.0.2.1, proxy-password: hunter2}", "a mapping"),
            (" {address: 192.0.2.1, proxy-password: hunter2}", "a mapping"),
        ] {
            let asked = api::ProbeAsked { server: written.to_owned(), ..api::ProbeAsked::default() };
            assert_eq!(audited(&Request::Probe(asked)), ("probe".to_owned(), shown.to_owned()));
            let why = OperatorError::Argument(format!("\"{written}\" is no server"));
            let refused = refusal_shown(&why, Some(written));
            assert!(!refused.contains("t0ken") && !refused.contains("hunter2"), "{refused}");
        }
        let why = OperatorError::Argument("hunter2".to_owned());
        assert_eq!(refusal_shown(&why, None), format!("refused: {why}"));
    }

    #[test]
    fn root_and_the_own_user_may_do_everything_and_a_group_what_it_may() {
        let users = SocketUsers { own_user: 1_001, group: Some((2_000, Role::Helper)) };
        let role =
            |user, group| users.caller(Peer { user, group, process: None }).map(|caller| caller.role).ok();
        assert_eq!([role(0, 0), role(1_001, 5)], [Some(Role::Admin); 2]);
        assert_eq!([role(1_002, 2_000), role(1_002, 2_001)], [Some(Role::Helper), None]);
        let alone = SocketUsers { group: None, ..users };
        assert!(alone.caller(Peer { user: 1_002, group: 2_000, process: None }).is_err());
    }

    #[test]
    fn a_change_is_signed_by_who_it_is_for_certain() {
        assert_eq!(signed("root", None), "root");
        assert_eq!(signed("anna", Some(" anna\n")), "anna");
        assert_eq!(signed("root", Some("an\nna")), "root for anna");
        assert_eq!(signed("root", Some(&"x".repeat(100))).len(), NAME_CHARS_MAX);
    }
}
