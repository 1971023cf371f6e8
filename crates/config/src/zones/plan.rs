//! What is to become of zones while the server runs: where they come from, and what other servers may do with them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::{At, Problem, io_text};
use engine::gate::prefixes::PrefixSet;
use engine::peers::{Grant, Reach, Rights, Scope};
use lists::Sets;
use plan::signing::ParentServers;
use plan::tls::{Authorities, ClientTls, Identity, Proof, Roots, tls_name as tls_name_of};
use plan::transfers::Remote;
use tsig::Keys;
use wire::{HashKey, Name, NameBuf, Prefix};
use zone::{Zone, Zones};

use super::ZonePlans;
use super::files::{Kept, folded};
use super::specials::{Beside, ForMembers};
use crate::compile::prefix_set;
use crate::settings::{
    CatalogWord, FileChangeWord, GrantSettings, KeySettings, ReachSettings, RemoteSettings, Settings,
    ZoneSettings,
};
use crate::signing::{SigningPlans, Wanted};
use environment::Environment;

/// What of a zone the server signs.
#[derive(Clone)]
pub enum SignedHere {
    /// Nothing.
    Nothing,
    /// Its file: only versions that come from here are served.
    File,
    /// Whatever version there is, by transfers and updates: served is what was signed of it.
    Versions {
        /// The one that was signed last, before the server was started.
        last: Option<Arc<Zone>>,
    },
}

impl SignedHere {
    /// Returns whether versions that come while the server runs are signed before they are served.
    pub const fn has_versions(&self) -> bool {
        matches!(self, Self::Versions { .. })
    }

    /// Returns whether only what is signed of a file is served.
    pub const fn is_file(&self) -> bool {
        matches!(self, Self::File)
    }
}

/// What is to become of one zone while the server runs.
#[derive(Clone)]
pub struct ZonePlan {
    /// Its apex.
    pub apex: NameBuf,
    /// The version in its file, if it has one that can be served; of a zone whose file the server signs, the one signed last.
    pub zone: Option<Arc<Zone>>,
    /// What of it the server signs.
    pub signed: SignedHere,
    /// Its master file.
    pub file: Option<PathBuf>,
    /// Why the zone is not as its file says.
    pub failed: Option<Arc<str>>,
    /// A number that stands for what is in its files, or for what was signed; 0 if that is not what `zone` is.
    pub source: u64,
    /// Where it comes from.
    pub primaries: Vec<Remote>,
    /// Who is told of new versions.
    pub notify: Vec<Remote>,
    /// Who may do what with it.
    pub rights: Arc<Rights>,
    /// What becomes of what was changed here when its file changes.
    pub on_file_change: FileChangeWord,
    /// Octets of history that are kept.
    pub journal_octets_max: u64,
    /// What it is to this server if it is a catalog.
    pub catalog_role: Option<CatalogWord>,
    /// The catalog that is made here and lists it, and its group there.
    pub member_of: Option<(NameBuf, Option<String>)>,
    /// What it answers beside its records, if it came while the server runs; those of the configuration are served with it.
    pub beside: Option<Arc<Beside>>,
    /// If it is a catalog, what its members answer so.
    pub for_members: Option<Arc<ForMembers>>,
}

impl ZonePlan {
    /// Returns what is to become of a zone of which nothing is known but that it is ours.
    pub fn nothing(apex: Name<'_>) -> Self {
        Self {
            apex: apex.to_buf(),
            zone: None,
            signed: SignedHere::Nothing,
            file: None,
            failed: None,
            source: 0,
            primaries: Vec::new(),
            notify: Vec::new(),
            rights: Arc::default(),
            on_file_change: FileChangeWord::Refuse,
            journal_octets_max: 0,
            catalog_role: None,
            member_of: None,
            beside: None,
            for_members: None,
        }
    }
}

impl ZonePlans {
    /// Returns the zones that are to be signed: those that the configuration names, then those of directories.
    pub(crate) fn to_sign(&self, settings: &Settings) -> Vec<Wanted> {
        let named = settings.zones.iter().filter(|zone| zone.set.is_none());
        let mut seen: BTreeSet<Vec<u8>> = named.clone().map(|zone| folded(&zone.name.value)).collect();
        let mut all: Vec<Wanted> = named
            .filter_map(|zone| {
                let policy = Arc::clone(zone.sign.as_ref()?);
                Some(Wanted { apex: zone.name.value, policy, changes: changes(zone) })
            })
            .collect();
        for kept in self.kept.iter().filter(|kept| kept.wanted.set.is_none()) {
            let Some(policy) = &kept.wanted.sign else { continue };
            for (apex, _) in &kept.zones {
                if seen.insert(folded(apex)) {
                    let changes = kept.wanted.common.as_ref().is_some_and(|common| changes(common));
                    all.push(Wanted { apex: *apex, policy: Arc::clone(policy), changes });
                }
            }
        }
        all
    }

    /// Says what is to become of each zone while the server runs, of which some were signed. Zones of sets have no plan, nor have
    /// those of directories that say nothing of other servers, so that these have no rights to them.
    pub(crate) fn plan(
        &mut self,
        settings: &Settings,
        (key, sets): (HashKey, &Sets),
        (signing, signed): (&SigningPlans, Option<&Arc<Zones>>),
        environment: &dyn Environment,
        problems: &mut Vec<Problem>,
    ) {
        let mut files: BTreeMap<Vec<u8>, &Kept> = BTreeMap::new();
        for kept in self.kept.iter().filter(|kept| kept.wanted.set.is_none()) {
            if let Some(apex) = &kept.wanted.apex {
                // Those that the configuration names are the first.
                files.entry(folded(apex)).or_insert(kept);
            }
        }
        let plans = settings.zones.iter().filter(|zone| zone.set.is_none()).map(|zone| {
            let file = files.get(&folded(&zone.name.value)).copied().filter(|_| zone.file.is_some());
            let apex = zone.name.value.as_name();
            let here = signed_here(zone, apex, signing);
            let current = if here.is_file() { signed_last(apex, signed) } else { written(zone, file) };
            let plan = plan(zone, &settings.keys, (current, here), (environment, problems));
            let failed = file.and_then(|file| failure(file, &zone.name.value));
            ZonePlan { for_members: ForMembers::new(zone, key, sets), failed, ..plan }
        });
        let mut plans: Vec<ZonePlan> = plans.collect();
        plans.extend(self.of_directories(settings, (signing, signed), environment, problems));
        self.plans = plans.into();
        self.keys = Keys::new(settings.keys.iter().map(|key| Arc::clone(&key.key)));
        self.transfers = Some(settings.transfers);
        self.signed = signed.map(Arc::clone);
    }
}

impl ZonePlans {
    /// Returns the plans of zones of directories that other servers may do something with. A zone that is there twice is that
    /// of what the configuration names, or of the first directory.
    fn of_directories(
        &self,
        settings: &Settings,
        (signing, signed): (&SigningPlans, Option<&Arc<Zones>>),
        environment: &dyn Environment,
        problems: &mut Vec<Problem>,
    ) -> Vec<ZonePlan> {
        let named = settings.zones.iter().filter(|zone| zone.set.is_none());
        let mut seen: BTreeSet<Vec<u8>> = named.map(|zone| folded(&zone.name.value)).collect();
        let mut plans = Vec::new();
        // What all zones of a directory have is made once.
        let mut made: Option<(&Arc<ZoneSettings>, ZonePlan)> = None;
        let has_any = self.kept.iter().any(|kept| kept.wanted.common.is_some());
        let kept = self.kept.iter().filter(|kept| has_any && kept.wanted.set.is_none());
        for kept in kept {
            for (apex, zone) in &kept.zones {
                let Some(common) = &kept.wanted.common else {
                    seen.insert(folded(apex));
                    continue;
                };
                if !seen.insert(folded(apex)) {
                    continue;
                }
                let common_plan = match &made {
                    Some((of, plan)) if Arc::ptr_eq(of, common) => plan.clone(),
                    _ => {
                        let nothing = ((None, 0), SignedHere::Nothing);
                        let plan = plan(common, &settings.keys, nothing, (environment, problems));
                        made = Some((common, plan.clone()));
                        plan
                    }
                };
                let here = signed_here(common, apex.as_name(), signing);
                let (zone, source) = match here.is_file() {
                    true => signed_last(apex.as_name(), signed),
                    false => (zone.clone(), source(kept)),
                };
                let file = Some(kept.wanted.file.clone());
                problems.extend(zone.as_deref().and_then(|zone| refused_updates(common, zone)));
                let failed = failure(kept, apex);
                plans.push(ZonePlan { apex: *apex, zone, signed: here, file, failed, source, ..common_plan });
            }
        }
        plans
    }
}

/// Returns what of a zone the server signs.
fn signed_here(zone: &ZoneSettings, apex: Name<'_>, signing: &SigningPlans) -> SignedHere {
    match zone.sign {
        None => SignedHere::Nothing,
        Some(_) if changes(zone) => SignedHere::Versions { last: signing.last(apex).map(Arc::clone) },
        Some(_) => SignedHere::File,
    }
}

/// Returns whether a zone changes while the server runs.
fn changes(zone: &ZoneSettings) -> bool {
    !zone.primaries.is_empty() || !zone.update.is_empty()
}

/// Returns the version of a zone in its file, and its number.
pub(super) fn written(zone: &ZoneSettings, file: Option<&Kept>) -> (Option<Arc<Zone>>, u64) {
    let Some(file) = file else { return (None, 0) };
    let found = file.zones.iter().find(|(apex, _)| *apex == zone.name.value);
    (found.and_then(|(_, zone)| zone.clone()), source(file))
}

/// Returns the version of a zone that the server signed last, and its number.
fn signed_last(apex: Name<'_>, signed: Option<&Arc<Zones>>) -> (Option<Arc<Zone>>, u64) {
    let found = signed.and_then(|zones| zones.get(apex)).map(Arc::clone);
    // Whoever serves a version keeps it: another one is somewhere else.
    let number = found.as_ref().map_or(0, |zone| Arc::as_ptr(zone).addr() as u64 | 1);
    (found, number)
}

/// Returns what is to become of a zone.
pub(super) fn plan(
    zone: &ZoneSettings,
    keys: &[KeySettings],
    ((current, source), signed): ((Option<Arc<Zone>>, u64), SignedHere),
    (environment, problems): (&dyn Environment, &mut Vec<Problem>),
) -> ZonePlan {
    let apex = zone.name.value;
    problems.extend(current.as_deref().and_then(|current| refused_updates(zone, current)));
    let mut remotes = |all: &[At<RemoteSettings>]| -> Vec<Remote> {
        all.iter().filter_map(|server| remote(server, keys, environment, problems)).collect()
    };
    let (primaries, notify) = (remotes(&zone.primaries), remotes(&zone.notify));
    // Whoever the zone comes from may say that there is more.
    let believed = zone.primaries.iter().map(|primary| Grant {
        from: Some(PrefixSet::compile([Prefix::new(primary.value.ip(), u8::MAX)])),
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
    let rights = Rights {
        transfer: zone.transfer.iter().map(|at| grant(&at.value)).collect(),
        notify: believed.chain(zone.notify_from.iter().map(|at| grant(&at.value))).collect(),
        update: update.collect(),
        forward: zone.forward_updates.iter().map(|at| grant(&at.value)).collect(),
        serial: zone.serial.policy(),
    };
    ZonePlan {
        apex,
        zone: current,
        signed,
        file: zone.file.as_ref().map(|file| file.value.clone()),
        failed: None,
        source,
        primaries,
        notify,
        rights: Arc::new(rights),
        on_file_change: zone.on_file_change,
        journal_octets_max: zone.journal_size,
        catalog_role: zone.catalog_role,
        member_of: zone.catalog.as_ref().map(|catalog| (catalog.value, zone.group.clone())),
        beside: None,
        for_members: None,
    }
}

/// Complains of updates of a zone that is signed with keys of its file: nobody could sign what changes.
fn refused_updates(zone: &ZoneSettings, current: &Zone) -> Option<Problem> {
    let update = zone.update.first().filter(|_| current.facts().has_own_keys)?;
    let apex = current.apex();
    let message = format!("zone \"{apex}\" is signed with the keys of its file: updates are refused");
    Some(Problem::warning(update.span, message).expected("\"sign\" with a policy, or no \"update\""))
}

/// Returns why a zone is not as its file says.
pub(super) fn failure(file: &Kept, apex: &NameBuf) -> Option<Arc<str>> {
    file.failed.iter().find(|(of, _)| of.is_none_or(|of| of == *apex)).map(|(_, why)| Arc::clone(why))
}

/// Returns a number that stands for what is in a zone's files: FNV-1a over their stamps.
fn source(kept: &Kept) -> u64 {
    let stamps = kept.files.iter().flat_map(|(_, stamp)| stamp.to_be_bytes());
    if kept.files.is_empty() {
        return 0;
    }
    stamps
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, octet| (sum ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3))
        | 1
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
pub(crate) fn parents(
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
fn remote(
    at: &At<RemoteSettings>,
    keys: &[KeySettings],
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Remote> {
    let RemoteSettings { address, over_tls, tls_name, key, pins, roots, certificate, private_key } =
        &at.value;
    let tls = if *over_tls {
        let name = tls_name.clone().unwrap_or_else(|| address.ip().to_string());
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
            early_data: false,
        })
    } else {
        None
    };
    let key = key.and_then(|name| keys.iter().find(|key| key.name.value == name));
    Some(Remote { address: *address, tls, key: key.map(|key| Arc::clone(&key.key)) })
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
