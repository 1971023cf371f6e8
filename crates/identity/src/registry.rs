//! What all workers share of the servers that they ask: TLS sessions, certificates, keys, what was
//! last wrong.
//!
//! Plans say nothing of it. It belongs to whoever uses an equal plan: it outlives a reload that
//! leaves a server as it is, and ends with its last user.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use plan::tls::ClientTls;
use plan::upstreams::Way;

use crate::provider::{Dnscrypt, Odoh};
use crate::tls;
use crate::transport::Transport;

/// What is made of a plan once, for all who use an equal one.
pub(crate) trait Interned {
    /// What it is made of.
    type Plan: PartialEq;

    /// Returns the plan that it was made of.
    fn plan(&self) -> &Self::Plan;

    /// Makes it.
    fn new(plan: &Self::Plan, registry: &Registry) -> Self;
}

/// Finds what is in use by the plan that it was made of.
#[derive(Default)]
pub struct Registry {
    tls: Table<tls::Client>,
    dnscrypt: Table<Dnscrypt>,
    odoh: Table<Odoh>,
}

/// Servers are dozens, and are looked up when a plan is adopted: a list is enough.
struct Table<T>(Mutex<Vec<Weak<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Interned> Table<T> {
    fn get(&self, plan: &T::Plan, registry: &Registry) -> Arc<T> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.strong_count() > 0);
        if let Some(known) = entries.iter().filter_map(Weak::upgrade).find(|known| known.plan() == plan) {
            return known;
        }
        let made = Arc::new(T::new(plan, registry));
        entries.push(Arc::downgrade(&made));
        made
    }
}

impl Registry {
    /// Returns how servers are asked in this way.
    pub fn transport(&self, way: &Arc<Way>) -> Arc<Transport> {
        Arc::new(Transport {
            tls: way.protocol.tls().map(|plan| self.tls(plan)),
            dnscrypt: way.protocol.dnscrypt().map(|plan| self.dnscrypt.get(plan, self)),
            odoh: way.protocol.odoh().map(|plan| self.odoh.get(plan, self)),
            way: Arc::clone(way),
        })
    }

    /// Returns TLS to servers of this plan.
    pub fn tls(&self, plan: &ClientTls) -> Arc<tls::Client> {
        self.tls.get(plan, self)
    }
}

#[cfg(test)]
mod tests {
    use plan::tls::{Proof, tls_name};

    use super::*;

    fn client(name: &str) -> ClientTls {
        ClientTls {
            name: tls_name(name).expect("a name"),
            proof: Proof::None,
            certificates: Vec::new(),
            identity: None,
            protocols: vec![b"dot".to_vec()],
            sends_name: true,
            early_data: false,
        }
    }

    #[test]
    fn equal_plans_share_what_is_known_until_nobody_uses_it() {
        let registry = Registry::default();
        let one = registry.tls(&client("one.example"));
        assert!(Arc::ptr_eq(&one, &registry.tls(&client("one.example"))));
        assert!(!Arc::ptr_eq(&one, &registry.tls(&client("other.example"))));
        let address = ([192, 0, 2, 1], 853).into();
        assert!(one.last_errors().is_new(address, "expired"));
        assert!(!registry.tls(&client("one.example")).last_errors().is_new(address, "expired"));
        drop(one);
        assert!(registry.tls(&client("one.example")).last_errors().is_new(address, "expired"));
    }

    #[test]
    fn a_reload_that_changes_other_things_keeps_what_is_known() {
        let registry = Registry::default();
        let way = |mark| {
            Arc::new(Way {
                protocol: plan::upstreams::Protocol::Tls(client("one.example")),
                bind: plan::upstreams::Bind { mark, ..Default::default() },
                ..Way::default()
            })
        };
        let (old, new) = (registry.transport(&way(None)), registry.transport(&way(Some(1))));
        assert!(old != new);
        let shared = old.tls.as_ref().zip(new.tls.as_ref());
        assert!(shared.is_some_and(|(old, new)| Arc::ptr_eq(old, new)));
    }
}
