//! Zones that the server signs: what was signed comes into use as a reload does.

use std::sync::Arc;
use std::time::Duration;

use jobs::alias::AliasPlan;
use jobs::health::Checker;
use jobs::signing::{DsPusher, Push, PushOutcome, Signing};
use plan::checks::Watched;
use plan::signing::{ParentServers, SigningPolicy};
use settings::Settings;
use transfer::{Delegation, Patience, push_ds};
use wire::Name;
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
pub(crate) struct Messenger(pub(crate) transfer::Client);

impl DsPusher for Messenger {
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
            match runtime.block_on(push_ds(&self.0, server, &delegation, patience)) {
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
