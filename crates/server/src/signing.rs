//! Zones that the server signs: what was signed comes into use as a reload does.

use std::sync::Arc;
use std::time::Duration;

use config::settings::Settings;
use config::signing::{ParentServers, SigningPolicy};
use control::api::{self, Response};
use exchange::transfer::{Delegation, Patience, push_ds};
use jobs::alias::AliasPlan;
use jobs::health::Checker;
use jobs::signing::{Courier, Push, PushOutcome, Signing};
use plan::checks::Watched;
use wire::{Name, NameBuf};
use zone::Zone;

/// Signs what the manager keeps.
pub(crate) struct Signatory(pub(crate) Arc<Signing>);

impl ::zones::Signer for Signatory {
    fn sign(&self, apex: Name<'_>, version: &Arc<Zone>) {
        self.0.give(apex, version);
    }

    fn begin(&self, apex: Name<'_>, policy: &Arc<SigningPolicy>) -> Option<Arc<Zone>> {
        self.0.begin(apex, policy)
    }

    fn end(&self, apex: Name<'_>) {
        self.0.end(apex);
    }
}

/// How long one server of a parent may take.
const PARENT_PATIENCE: Duration = Duration::from_secs(60);

/// Sends DS to the servers of parents by dynamic update.
pub(crate) struct Messenger;

impl Courier for Messenger {
    fn push(&self, push: &Push, servers: &ParentServers) -> PushOutcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        let delegation = Delegation { child: push.apex, ttl: wire::Ttl::new(push.ttl), ds: push.ds.clone() };
        let patience = Patience { whole: PARENT_PATIENCE, ..Patience::default() };
        if servers.is_empty() {
            return Err("its policy names no server any more".to_owned());
        }
        let mut refused = Vec::with_capacity(servers.len());
        for server in servers.iter() {
            match runtime.block_on(push_ds(server, &delegation, patience)) {
                Ok(_) => return Ok(server.to_string()),
                Err(trouble) => refused.push(format!("{server}: {trouble}")),
            }
        }
        Err(refused.join("; "))
    }
}

/// Checks what zones lead to that come while the server runs.
pub(crate) struct Watch(pub(crate) Checker);

impl ::zones::Watcher for Watch {
    fn watch(&self, apex: Name<'_>, watched: &[Arc<Watched>]) {
        if let Err(error) = self.0.watch(apex, watched) {
            tracing::error!(%error, "not everything can be checked: no thread for it");
        }
    }
}

/// Returns who is asked for what ALIAS records lead to.
pub(crate) fn alias_plan(settings: &Settings) -> AliasPlan {
    let alias = &settings.alias;
    AliasPlan {
        resolvers: alias.resolvers.clone(),
        stale: u32::try_from(alias.stale.as_secs()).unwrap_or(u32::MAX),
        targets_max: alias.targets as usize,
    }
}

/// Reads the name of a zone and does something with it.
fn with_zone(zone: &str, act: impl FnOnce(&NameBuf) -> Result<(), String>, signing: &Signing) -> Response {
    let apex = match NameBuf::from_text(zone) {
        Ok(apex) => apex,
        Err(error) => return Response::error(format!("\"{zone}\" is no name of a zone: {error}")),
    };
    if let Err(why) = act(&apex) {
        return Response::error(why);
    }
    let Some(state) = signing.state(apex.as_name()) else {
        return Response::error(format!("{apex} is not signed here"));
    };
    let keys = state.keys.into_iter().map(|key| api::ZoneKey {
        tag: key.life.tag,
        algorithm: key.life.algorithm.to_string(),
        role: key.life.role.to_string(),
        state: key.life.state.to_string(),
        since: dnssec::write_compact(key.life.since),
        ds: Some(key.ds).filter(|ds| !ds.is_empty()),
    });
    Response::ZoneKeys(api::ZoneKeys {
        zone: apex.to_string(),
        keys: keys.collect(),
        next: (state.again_at > 0 && state.again_at < u64::MAX)
            .then(|| dnssec::write_compact(state.again_at)),
        trouble: state.trouble,
        push: state.push,
    })
}

/// Says how the keys of a zone stand.
pub(crate) fn keys(signing: &Signing, zone: &str) -> Response {
    with_zone(zone, |_| Ok(()), signing)
}

/// Takes it that the parent has a DS.
pub(crate) fn ds_seen(signing: &Signing, seen: &api::DsSeen) -> Response {
    with_zone(&seen.zone, |apex| signing.ds_seen(apex.as_name(), seen.tag).map(drop), signing)
}

/// Has keys replaced.
pub(crate) fn roll(signing: &Signing, roll: &api::ZoneRoll) -> Response {
    let act = |apex: &NameBuf| {
        let role = roll
            .role
            .parse()
            .map_err(|_| format!("\"{}\" is no kind of key: expected ksk, zsk or csk", roll.role))?;
        signing.roll(apex.as_name(), role).map(drop)
    };
    with_zone(&roll.zone, act, signing)
}
