//! Zones of settings as plans: where they come from, and what other servers may do with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::{At, Problem, io_text};
use engine::gate::prefix_set::PrefixSet;
use engine::peers::{Grant, Reach, Rights, Scope};
use environment::Environment;
use lists::{Sets, Term};
use plan::signing::ParentServers;
use plan::tls::{Authorities, ClientTls, Identity, Proof, Roots, tls_name as tls_name_of};
use plan::transfers::Remote;
use plan::zones::{
    AlternativePlan, ChoicePlan, DirectoryPlan, MakerPlan, Membership, Synthesis, ZonePlan, ZonemdPlan,
    ZonemdRule, ZonesPlan,
};
use resolver::Trust;
use sets::AddressSet;
use tsig::Keys;
use values::ttl;
use wire::Prefix;
use zone::json::Contexts;

use crate::compile::{prefix_set, trusts};
use settings::named_file;
use settings::{
    GrantSettings, KeySettings, ReachSettings, RemoteSettings, Settings, ZoneAlternative, ZoneDirectory,
    ZoneSettings,
};

/// The resolver whose trust anchors count for zones.
const DEFAULT_RESOLVER: &str = "default";

/// What resolvers trust, by their names, and whether a policy uses them.
pub(crate) type Trusts = BTreeMap<String, (Trust, bool)>;

/// What the settings of zones are compiled with.
#[derive(Clone, Copy)]
pub(super) struct Compiler<'a> {
    pub(super) keys: &'a [KeySettings],
    pub(super) sets: &'a Sets,
    /// What resolvers trust, by their names.
    pub(super) trusts: &'a Trusts,
    pub(super) environment: &'a dyn Environment,
}

/// Compiles the settings of all zones.
pub(crate) fn zones(
    settings: &Settings,
    sets: &Sets,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> ZonesPlan {
    let trusts = trusts(settings, environment);
    let compiler = Compiler { keys: &settings.keys, sets, trusts: &trusts, environment };
    let zones = settings.zones.iter().map(|zone| {
        let (clients, synthesis) = (compiler.clients_of(zone), compiler.synthesis(zone).map(Arc::new));
        Arc::new(ZonePlan { clients, synthesis, ..compiler.zone(zone, problems) })
    });
    let zones = zones.collect();
    let directories = settings.zone_directories.iter();
    let directories = directories.map(|directory| compiler.directory(directory, problems)).collect();
    ZonesPlan {
        zones,
        directories,
        has_added: settings.has_added_zones,
        rotates: settings.rotate,
        resolves_aliases: !settings.alias.resolvers.is_empty(),
        signatures_octets_max: usize::try_from(settings.startup.signatures_memory).unwrap_or(usize::MAX),
        signatures_per_second: settings.limits.signatures_per_second,
        keys: Keys::new(settings.keys.iter().map(|key| Arc::clone(&key.key))),
        transfers: settings.transfers,
        parents: parents(settings, environment, problems),
    }
}

impl Compiler<'_> {
    fn clients(&self, allow: &[Prefix]) -> Arc<AddressSet> {
        self.sets.addresses(std::iter::once(Term::Inline(allow)))
    }

    /// Compiles who may query a zone; `None` if everybody may.
    pub(super) fn clients_of(&self, zone: &ZoneSettings) -> Option<Arc<AddressSet>> {
        zone.allow_query.as_deref().map(|allow| self.clients(allow))
    }

    /// Compiles a zone, without what many zones may have in common: who may query it, and what it
    /// has besides its file.
    pub(super) fn zone(&self, zone: &ZoneSettings, problems: &mut Vec<Problem>) -> ZonePlan {
        let apex = zone.name.value;
        let mut remotes = |all: &[At<RemoteSettings>]| -> Vec<Remote> {
            let all = all.iter();
            all.filter_map(|server| remote(server, self.keys, self.environment, problems)).collect()
        };
        let (primaries, notify) = (remotes(&zone.primaries), remotes(&zone.notify));
        ZonePlan {
            apex,
            file: zone.file.as_ref().map(|file| file.value.clone()),
            set: zone.set.as_ref().map(|set| set.value.clone()),
            clients: None,
            is_for_resolvers: zone.is_for_resolvers,
            zonemd: self.zonemd(zone),
            copy: zone.copy.as_ref().map(|file| named_file(&file.value, &apex)),
            keeps: zone.keeps,
            synthesis: None,
            sign: zone.sign.clone(),
            key_sets: zone.key_sets.as_ref().map(|file| named_file(&file.value, &apex)),
            own_denial: zone.own_denial,
            primaries,
            urls: zone.urls.iter().map(|url| url.value.clone()).collect(),
            notify,
            rights: Arc::new(rights(zone)),
            on_file_change: zone.on_file_change,
            journal_octets_max: zone.journal_size,
            transfer_octets_max: zone.transfer_size,
            transfer_time: zone.transfer_time,
            catalog_role: zone.catalog_role,
            member_of: zone
                .catalog
                .as_ref()
                .map(|catalog| Membership { catalog: catalog.value, group: zone.group.clone() }),
        }
    }

    /// Compiles how the digest of a zone is checked; `None` if nobody looks at it.
    fn zonemd(&self, zone: &ZoneSettings) -> Option<Arc<ZonemdPlan>> {
        if zone.zonemd == ZonemdRule::Off {
            return None;
        }
        let resolver = zone.trusted_by.as_deref().unwrap_or(DEFAULT_RESOLVER);
        let known = self.trusts.get(resolver);
        Some(Arc::new(ZonemdPlan {
            rule: zone.zonemd,
            trust: known.map_or_else(Trust::default, |(trust, _)| trust.clone()),
            resolver: known.filter(|(_, is_used)| *is_used).map(|_| resolver.to_owned()),
        }))
    }

    /// Compiles what a zone has besides its file; `None` if that is nothing.
    pub(super) fn synthesis(&self, zone: &ZoneSettings) -> Option<Synthesis> {
        if zone.make.is_empty() && zone.choose.is_empty() {
            return None;
        }
        let makers = zone.make.iter().map(|make| MakerPlan {
            prefix: make.prefix.as_str().into(),
            networks: self.clients(&make.networks),
            origin: make.origin.as_ref().map(|origin| origin.value.clone()),
            ttl: ttl(make.ttl),
        });
        let alternative = |it: &ZoneAlternative| {
            let named = it.sets.iter().map(|set| Term::Set(set.value.as_str()));
            let inline = (!it.clients.is_empty()).then_some(Term::Inline(it.clients.as_slice()));
            let has_clients = inline.is_some() || !it.sets.is_empty();
            let clients = has_clients.then(|| self.sets.addresses(inline.into_iter().chain(named)));
            AlternativePlan { data: it.data.clone(), clients, weight: it.weight }
        };
        let choices = zone.choose.iter().map(|choice| ChoicePlan {
            name: choice.name.value.clone(),
            rtype: choice.rtype.value,
            ttl: ttl(choice.ttl),
            check: choice.check.as_ref().map(Arc::clone),
            alternatives: choice.alternatives.iter().map(alternative).collect(),
        });
        Some(Synthesis { makers: makers.collect(), choices: choices.collect() })
    }

    fn directory(&self, directory: &ZoneDirectory, problems: &mut Vec<Problem>) -> DirectoryPlan {
        let matches_empty = directory.matches_empty;
        DirectoryPlan {
            path: directory.path.value.clone(),
            format: directory.format,
            contexts: directory.contexts.clone().map(|allow| Contexts { allow, matches_empty }),
            set: directory.set.as_ref().map(|set| set.value.clone()),
            clients: directory.allow_query.as_deref().map(|allow| self.clients(allow)),
            sign: directory.sign.clone(),
            key_sets: directory.key_sets.clone(),
            own_denial: directory.own_denial,
            common: directory.common.as_deref().map(|common| Arc::new(self.zone(common, problems))),
        }
    }
}

/// Compiles who may do what with a zone.
fn rights(zone: &ZoneSettings) -> Rights {
    // Whoever the zone comes from may say that there is more: by its address, or, if that is not
    // known yet, by its key.
    let is_known =
        |primary: &&At<RemoteSettings>| primary.value.host.is_none() || primary.value.key.is_some();
    let believed = zone.primaries.iter().filter(is_known).map(|primary| Grant {
        from: (primary.value.host.is_none())
            .then(|| PrefixSet::compile([Prefix::new(primary.value.ip(), u8::MAX)])),
        key: primary.value.key,
        ..Grant::default()
    });
    let update = zone.update.iter().map(|update| {
        let names = update.value.names.iter().map(|reach| match reach {
            ReachSettings::Name(name) => Reach::Name(*name),
            ReachSettings::Below(name) => Reach::Below(*name),
        });
        let names: Box<[Reach]> = names.collect();
        let types: Box<[wire::Rtype]> = update.value.types.as_slice().into();
        let scope = Scope {
            names: (!names.is_empty()).then_some(names),
            types: (!types.is_empty()).then_some(types),
        };
        (grant(&update.value.grant), Arc::new(scope))
    });
    Rights {
        transfer: zone.transfer.iter().map(|at| grant(&at.value)).collect(),
        notify: believed.chain(zone.notify_from.iter().map(|at| grant(&at.value))).collect(),
        update: update.collect(),
        forward: zone.forward_updates.iter().map(|at| grant(&at.value)).collect(),
        serial: zone.serial.policy(),
    }
}

fn grant(settings: &GrantSettings) -> Grant {
    Grant {
        from: settings.from.as_ref().map(|from| prefix_set(from)),
        key: settings.key,
        needs_tls: settings.needs_tls,
        hosts: settings.hosts.iter().map(|host| host.as_str().into()).collect(),
        pins: settings.pins.as_slice().into(),
    }
}

/// Returns the servers that each policy has sent the DS of its zones.
fn parents(
    settings: &Settings,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, ParentServers> {
    let with_servers = settings.signing.iter().filter(|signing| !signing.ds_push.is_empty());
    with_servers
        .map(|signing| {
            let servers = signing.ds_push.iter();
            let servers = servers.filter_map(|at| remote(at, &settings.keys, environment, problems));
            (signing.policy.name.clone(), servers.collect())
        })
        .collect()
}

/// Returns another server as transfers need it.
pub(crate) fn remote(
    at: &At<RemoteSettings>,
    keys: &[KeySettings],
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Remote> {
    let RemoteSettings { address, host, over_tls, tls_name, key, pins, roots, certificate, private_key } =
        &at.value;
    let tls = if *over_tls {
        let own_name = || match host {
            Some(host) => host.to_string().trim_end_matches('.').to_owned(),
            None => address.ip().to_string(),
        };
        let name = tls_name.clone().unwrap_or_else(own_name);
        let mut read = |path: &PathBuf, what: &str| {
            let read = environment.read(path);
            read.map_err(|error| {
                let message = format!("\"{}\" cannot be read: {}", path.display(), io_text(&error));
                problems.push(Problem::error(at.span, message).expected(format!("a file with {what} (PEM)")));
            })
            .ok()
        };
        let proof = match roots {
            _ if !pins.is_empty() => Proof::Keys(pins.clone()),
            None => Proof::Authorities(Roots::Mozilla),
            Some(path) => {
                let found = plan::tls::certificates(&read(path, "certificates of authorities")?);
                match Authorities::new(found) {
                    Ok(authorities) => Proof::Authorities(Roots::Own(authorities)),
                    Err(none) => {
                        problems.push(Problem::error(at.span, none.to_string()));
                        return None;
                    }
                }
            }
        };
        let identity = match certificate {
            None => None,
            Some(path) => {
                let chain = read(path, "a certificate")?;
                let key_file = private_key.as_ref().unwrap_or(path);
                let key = read(key_file, "its private key")?;
                if environment.is_open_to_all(key_file) {
                    let shown = key_file.display();
                    let message =
                        format!("every user of this machine can read the private key in \"{shown}\"");
                    let problem = Problem::warning(at.span, message);
                    problems.push(problem.hint("\"chmod o-rwx\" keeps it to those who need it"));
                }
                match identity(&chain, &key) {
                    Ok(identity) => Some(Arc::new(identity)),
                    Err(why) => {
                        problems.push(Problem::error(at.span, format!("\"{}\": {why}", path.display())));
                        return None;
                    }
                }
            }
        };
        Some(ClientTls {
            name: tls_name_of(&name)?,
            proof,
            certificates: Vec::new(),
            identity,
            protocols: vec![b"dot".to_vec()],
            sends_name: true,
            early_data: false,
        })
    } else {
        None
    };
    let key = key.and_then(|name| keys.iter().find(|key| key.name.value == name));
    Some(Remote { address: *address, host: *host, tls, key: key.map(|key| Arc::clone(&key.key)) })
}

/// Reads who we are to another server; an error says what is not there, or does not fit.
fn identity(chain: &[u8], key: &[u8]) -> Result<Identity, String> {
    let chain = plan::tls::certificates(chain);
    if chain.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let key = plan::tls::private_key(key).ok_or("there is no private key for it")?;
    Identity::new(chain, &key, Vec::new()).map_err(|error| error.to_string())
}
