//! Which way a query goes, and whom it asks: to steps.

use engine::PoolId;
use engine::ops::cache::{CacheRules, CacheStep};
use engine::ops::forward::{ALL_MEMBERS, ForwardStep};
use engine::program::Op;

use super::{Emitter, rules};
use crate::policy::action::Core;
use crate::settings::ClientSubnetUse;
use crate::source::Span;

pub(super) fn emit<'a>(emitter: &mut Emitter<'a>, action: &'a Core, place: Span) {
    match action {
        Core::Cache(name) => {
            if let Some(step) = emitter.cache(&name.value) {
                emitter.push(Op::Cache(step), place);
            }
        }
        Core::Forward(name) => {
            if let Some(step) = emitter.forward(&name.value) {
                emitter.push(Op::Forward(step), place);
            }
        }
        Core::Accept => emitter.push(Op::Accept, place),
        Core::Mark(mark) => emitter.push(Op::Mark(*mark), place),
        Core::Call(name) => emitter.call(&name.value, Op::Call, place),
        Core::Return => emitter.push(Op::Return, place),
    }
}

impl Emitter<'_> {
    fn cache(&self, name: &str) -> Option<CacheStep> {
        let settings = self.parts.settings.caches.iter().find(|cache| cache.name.value == name)?;
        let plan = self.parts.caches.iter().find(|cache| cache.name == name)?;
        // Clients' subnets keep answers apart if any group that fills the cache is told them.
        let keeps_subnets_apart =
            self.fills.iter().filter(|(cache, _)| cache == name).any(|(_, group)| self.tells_subnets(group));
        Some(CacheStep {
            cache: plan.cache.clone(),
            rules: CacheRules { keeps_subnets_apart, ..rules(settings) },
            view: self.view,
            continues: false,
        })
    }

    fn forward(&self, name: &str) -> Option<ForwardStep> {
        let group = self.parts.settings.upstreams.iter().find(|group| group.name.value == name)?;
        Some(ForwardStep {
            pool: PoolId(*self.parts.pools.get(name)?),
            members: ALL_MEMBERS,
            forwards_client_subnet: self.tells_subnets(name),
            trusts_ad: group.trust_ad,
        })
    }

    fn tells_subnets(&self, name: &str) -> bool {
        let mut groups = self.parts.settings.upstreams.iter();
        groups.any(|group| group.name.value == name && group.client_subnet == ClientSubnetUse::Forward)
    }
}
