//! Who may do what with a zone.

use std::sync::Arc;

use wire::serial::SerialPolicy;
use wire::{Name, NameBuf, Rtype};

use clients::client::{Client, ClientCertificate, KeyHash, Transport};
use clients::gate::prefix_set::PrefixSet;

/// What makes a message one that may do something. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// It comes from one of these; from anywhere by default.
    pub from: Option<PrefixSet>,
    /// It is signed with this key.
    pub key: Option<NameBuf>,
    /// It comes over TLS.
    pub needs_tls: bool,
    /// Who sends it has shown a certificate that is for one of these hosts, in lower case; any or
    /// none if there are none.
    pub hosts: Box<[Box<str>]>,
    /// Who sends it has shown a certificate with one of these keys; any or none if there are none.
    pub pins: Box<[KeyHash]>,
}

impl Grant {
    pub(super) fn holds(&self, client: &Client, key: Option<Name<'_>>) -> bool {
        let certificate = client.certificate.as_deref();
        self.from.as_ref().is_none_or(|from| from.contains(client.address))
            && self.key.as_ref().is_none_or(|wanted| key == Some(wanted.as_name()))
            && (!self.needs_tls || client.transport == Transport::Tls)
            && (self.hosts.is_empty() || certificate.is_some_and(|shown| self.names(shown)))
            && (self.pins.is_empty() || certificate.is_some_and(|shown| self.pins.contains(&shown.key)))
    }

    fn names(&self, shown: &ClientCertificate) -> bool {
        let is_wanted = |host: &String| self.hosts.iter().any(|wanted| wanted.eq_ignore_ascii_case(host));
        shown.hosts.iter().any(is_wanted)
    }
}

/// What updates may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Records at these names; at all by default.
    pub names: Option<Box<[Reach]>>,
    /// Records of these types; of all by default.
    pub types: Option<Box<[Rtype]>>,
}

/// Names that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This name.
    Name(NameBuf),
    /// All names below this one, and not itself.
    Below(NameBuf),
}

impl Scope {
    /// Returns whether a record of a type may be changed at a name; ANY stands for all types.
    pub fn covers(&self, owner: Name<'_>, rtype: Rtype) -> bool {
        let is_named = self.names.as_ref().is_none_or(|names| {
            names.iter().any(|reach| match reach {
                Reach::Name(name) => owner == name.as_name(),
                Reach::Below(name) => owner.is_at_or_below(name.as_name()) && owner != name.as_name(),
            })
        });
        is_named && self.types.as_ref().is_none_or(|types| types.contains(&rtype))
    }
}

/// Who may do what with a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Take it over.
    pub transfer: Vec<Grant>,
    /// Say that there is a newer version.
    pub notify: Vec<Grant>,
    /// Change it, and what of it.
    pub update: Vec<(Grant, Arc<Scope>)>,
    /// Have updates passed on to where the zone comes from.
    pub forward: Vec<Grant>,
    /// How serials grow.
    pub serial: SerialPolicy,
}
