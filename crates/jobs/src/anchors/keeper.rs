//! The trust anchors of one resolver, and their file.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use dnssec::anchors::{Anchor, KeyState, TrustAnchors, key_tag_query};
use dnssec::{Algorithm, Budget, Dnskey, Ds, Rrset};
use plan::anchors::{AnchorPlan, AnchorSource};
use plan::resolvers::{HeapName, ResolverPlan, TrustAnchor};
use tracing::{error, info, warn};
use wire::{Name, NameBuf, Rtype};

use super::KeySet;
use crate::signing::{Overwrites, remove_leftovers_of, write};

/// Rights of a state file: there is nothing secret in it.
const MODE: u32 = 0o644;
/// Rights of a folder that is made for it.
const FOLDER_MODE: u32 = 0o750;
/// Signatures that one DNSKEY RRset may cost, and those that may be wrong.
const CHECKS_MAX: u32 = 48;
const FAILING_CHECKS_MAX: u32 = 16;
/// The longest that RFC 5011 §2.3 waits, and a day: what is later was written by a clock that was
/// wrong.
const WAIT_MAX: u64 = 16 * 86_400;
/// One of so many parts of the time until the next probe is left to chance.
const SPREAD: u64 = 10;

/// How a key or DS of an anchored zone stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// Its tag.
    pub tag: u16,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Where it stands; `None` for one that stays as it is, and for a DS whose key was not seen
    /// yet.
    pub state: Option<KeyState>,
    /// Whether it may check signatures.
    pub is_trusted: bool,
    /// When it came to stand there, in seconds since 1970; 0 if nobody knows.
    pub since: u64,
}

/// How the anchors of a zone stand. Times are seconds since 1970, 0 for never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorState {
    /// The resolver's name.
    pub resolver: String,
    /// The zone.
    pub zone: NameBuf,
    /// Its keys.
    pub keys: Vec<KeyEntry>,
    /// Whether they follow the zone's keys.
    pub is_followed: bool,
    /// The file that they come from or are kept in; `None` for those of the program.
    pub file: Option<PathBuf>,
    /// When the zone's keys were asked for last.
    pub last_probe: u64,
    /// When that led to something last.
    pub last_success: u64,
    /// When they are asked for next.
    pub next_probe: u64,
    /// What was wrong the last time.
    pub trouble: Option<String>,
}

/// What came of asking for the keys of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// Whether the resolver is to trust something else.
    pub(super) changes_trust: bool,
    /// Whether there are keys, and no trusted one vouches for them: another server may have others.
    pub(super) is_unproven: bool,
}

impl Heard {
    const NOTHING: Self = Self { changes_trust: false, is_unproven: false };
}

/// An anchored zone.
struct Zone {
    anchors: TrustAnchors,
    trouble: Option<String>,
}

/// The trust anchors of one resolver.
pub(super) struct Keeper {
    plan: AnchorPlan,
    zones: Vec<Zone>,
    /// What the file held lately, the newest last: what is read and not among these was written by
    /// somebody else.
    texts: Vec<String>,
    /// Whether the file could not be written the last time.
    is_unwritten: bool,
}

impl Keeper {
    /// Begins with what the file holds, with what was known before if that has written it, or
    /// with the anchors of the settings.
    pub(super) fn new(plan: AnchorPlan, before: Option<Self>) -> Self {
        let AnchorSource::Followed { file, text, completes, .. } = &plan.source else {
            return Self { plan, zones: Vec::new(), texts: Vec::new(), is_unwritten: false };
        };
        if let Some(before) = before
            && before.has_left(text.as_ref())
            && ((text.is_some() && !completes) || before.began_as(&plan))
        {
            return Self { plan, ..before };
        }
        remove_leftovers_of(file);
        let zone = |anchors| Zone { anchors, trouble: None };
        let read = text.as_ref().and_then(|text| TrustAnchors::read_all(text).ok());
        let begins = *completes || read.is_none();
        let mut zones: Vec<Zone> = read.into_iter().flatten().map(zone).collect();
        for anchor in plan.initial().iter().filter(|_| begins) {
            if !zones.iter().any(|known| known.anchors.zone() == anchor.zone.as_name()) {
                zones.push(zone(begun(anchor)));
            }
        }
        let texts = text.iter().cloned().collect();
        Self { plan, zones, texts, is_unwritten: false }
    }

    /// Returns whether anchors of the settings count as they did.
    fn began_as(&self, plan: &AnchorPlan) -> bool {
        let completes =
            |plan: &AnchorPlan| matches!(plan.source, AnchorSource::Followed { completes: true, .. });
        self.plan.initial() == plan.initial() && completes(&self.plan) == completes(plan)
    }

    /// Returns whether the file is as this server left it.
    fn has_left(&self, text: Option<&String>) -> bool {
        match text {
            Some(text) => self.texts.contains(text),
            None => self.texts.is_empty(),
        }
    }

    pub(super) const fn resolver(&self) -> &ResolverPlan {
        &self.plan.resolver
    }

    fn file(&self) -> Option<&Path> {
        match &self.plan.source {
            AnchorSource::Followed { file, .. } => Some(file),
            AnchorSource::Fixed { .. } => None,
        }
    }

    /// Returns whether it keeps the anchors of this plan, perhaps with other settings.
    pub(super) fn is_of(&self, plan: &AnchorPlan) -> bool {
        let file = match &plan.source {
            AnchorSource::Followed { file, .. } => Some(&**file),
            AnchorSource::Fixed { .. } => None,
        };
        self.plan.id() == plan.id() && file.is_some() && self.file() == file
    }

    /// Returns what the resolver may trust.
    pub(super) fn trusted(&self) -> Vec<TrustAnchor> {
        match self.plan.source {
            AnchorSource::Fixed { .. } => self.plan.initial().to_vec(),
            AnchorSource::Followed { .. } => self.zones.iter().filter_map(Zone::trusted).collect(),
        }
    }

    /// Returns whether zones are told which of their keys are trusted.
    pub(super) const fn signals(&self) -> bool {
        self.plan.signals
    }

    /// Returns the names that tell them.
    pub(super) fn signal_names(&self) -> Vec<NameBuf> {
        let name = |anchor: &TrustAnchor| {
            let tags = begun(anchor).tags();
            key_tag_query(anchor.zone.as_name(), &tags)
        };
        self.trusted().iter().filter_map(name).collect()
    }

    /// Returns the zone whose keys are to be asked for.
    pub(super) fn due(&self, now: u64) -> Option<NameBuf> {
        let is_due = |zone: &&Zone| {
            let next = zone.anchors.next_probe();
            next <= now || next > now.saturating_add(WAIT_MAX)
        };
        let zone = self.zones.iter().filter(is_due).min_by_key(|zone| zone.anchors.next_probe())?;
        Some(zone.anchors.zone().to_buf())
    }

    /// Takes the keys of a zone, or why there are none, and writes down what comes of them.
    pub(super) fn heard(&mut self, zone: &NameBuf, heard: Result<KeySet, String>, now: u64) -> Heard {
        let AnchorSource::Followed { hold_down, .. } = self.plan.source else { return Heard::NOTHING };
        let before = self.trusted();
        let name = &self.plan.resolver.name;
        let algorithms = self.plan.resolver.settings.trust.algorithms;
        let Some(zone) = self.zones.iter_mut().find(|known| known.anchors.zone() == zone.as_name()) else {
            return Heard::NOTHING;
        };
        let keys_before = zone.anchors.keys().to_vec();
        let owner = zone.anchors.zone().to_buf();
        let read = heard.and_then(|KeySet { keys, signatures }| {
            let set = Rrset::of(owner.as_name(), Rtype::DNSKEY, keys.iter().map(|key| &**key));
            let set = set.map_err(|_| "a DNSKEY RRset that cannot be read".to_owned())?;
            Ok((set, signatures))
        });
        let has_keys = read.is_ok();
        let outcome = match read {
            Ok((set, signatures)) => {
                let signatures: Vec<&[u8]> = signatures.iter().map(|data| &**data).collect();
                let mut budget = Budget::with_failures(CHECKS_MAX, FAILING_CHECKS_MAX);
                let anchors = &mut zone.anchors;
                let heard = anchors.heard(&set, &signatures, algorithms, &hold_down, now, &mut budget);
                heard.map_err(|failure| failure.to_string())
            }
            Err(why) => {
                zone.anchors.unanswered(now);
                Err(why)
            }
        };
        let is_unproven = has_keys && outcome.is_err();
        zone.tell(name, outcome.err(), &keys_before, now);
        if has_keys {
            self.keep();
        }
        Heard { changes_trust: self.trusted() != before, is_unproven }
    }

    /// Writes the file.
    fn keep(&mut self) {
        let Some(file) = self.file().map(Path::to_owned) else { return };
        let text: String = self.zones.iter().map(|zone| zone.anchors.write()).collect();
        if self.texts.last() == Some(&text) {
            return;
        }
        match save(&file, &text) {
            Ok(()) => {
                if std::mem::take(&mut self.is_unwritten) {
                    info!(file = %file.display(), "the state of trust anchors is written again");
                }
                self.texts.push(text);
                // A configuration that is being compiled may have read the one before.
                let old = self.texts.len().saturating_sub(2);
                self.texts.drain(..old);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_unwritten, true) {
                    warn!(file = %file.display(), %error, "the state of trust anchors cannot be written");
                }
            }
        }
    }

    /// Returns how the anchors stand.
    pub(super) fn states(&self) -> Vec<AnchorState> {
        let resolver = &self.plan.resolver.name;
        match &self.plan.source {
            AnchorSource::Fixed { file } => {
                let fixed = |anchor: &TrustAnchor| AnchorState {
                    is_followed: false,
                    keys: entries(&begun(anchor), false),
                    ..AnchorState::new(resolver, anchor.zone.as_name(), file.clone())
                };
                self.plan.initial().iter().map(fixed).collect()
            }
            AnchorSource::Followed { file, .. } => {
                let followed = |zone: &Zone| AnchorState {
                    keys: entries(&zone.anchors, true),
                    last_probe: zone.anchors.last_queried(),
                    last_success: zone.anchors.last_success(),
                    next_probe: zone.anchors.next_probe(),
                    trouble: zone.trouble.clone(),
                    ..AnchorState::new(resolver, zone.anchors.zone(), Some(file.clone()))
                };
                self.zones.iter().map(followed).collect()
            }
        }
    }
}

impl AnchorState {
    fn new(resolver: &str, zone: Name<'_>, file: Option<PathBuf>) -> Self {
        Self {
            resolver: resolver.to_owned(),
            zone: zone.to_buf(),
            keys: Vec::new(),
            is_followed: true,
            file,
            last_probe: 0,
            last_success: 0,
            next_probe: 0,
            trouble: None,
        }
    }
}

impl Zone {
    /// Returns what is trusted of it, if anything is.
    fn trusted(&self) -> Option<TrustAnchor> {
        let copied = |data: &[u8]| data.into();
        let anchor = TrustAnchor {
            zone: HeapName::new(self.anchors.zone()),
            ds: self.anchors.ds().map(copied).collect(),
            keys: self.anchors.trusted_keys().map(copied).collect(),
        };
        (!anchor.ds.is_empty() || !anchor.keys.is_empty()).then_some(anchor)
    }

    /// Notes what became of a probe, and has the log say what is new.
    fn tell(&mut self, resolver: &str, trouble: Option<String>, keys_before: &[Anchor], now: u64) {
        let zone = self.anchors.zone().to_buf();
        match (&self.trouble, &trouble) {
            (None, Some(why)) => {
                warn!(resolver, %zone, %why, "the keys of a trust anchor's zone are not known");
            }
            (Some(_), Some(_)) => {}
            (before, None) => {
                if before.is_some() {
                    info!(resolver, %zone, "the keys of a trust anchor's zone are known again");
                }
                let wait = self.anchors.next_probe().saturating_sub(now);
                self.anchors.probe_earlier(chance(wait / SPREAD));
            }
        }
        self.trouble = trouble;
        for anchor in self.anchors.keys() {
            let Some(key) = Dnskey::parse(&anchor.rdata) else { continue };
            let is_it = |other: &&Anchor| {
                Dnskey::parse(&other.rdata)
                    .is_some_and(|other| other.algorithm() == key.algorithm() && other.key() == key.key())
            };
            let state_before = keys_before.iter().find(is_it).map(|other| other.state);
            let (tag, algorithm) = (key.tag(), key.algorithm());
            match anchor.state {
                state if state_before == Some(state) => {}
                KeyState::Revoked => {
                    warn!(resolver, %zone, tag, %algorithm, "a key of a trust anchor's zone is revoked");
                }
                KeyState::Missing => {
                    warn!(resolver, %zone, tag, %algorithm, "a key of a trust anchor's zone is missing");
                }
                state => {
                    let state = state_word(state);
                    info!(resolver, %zone, tag, %algorithm, state, "a key of a trust anchor's zone");
                }
            }
        }
        if self.anchors.is_revoked() && keys_before.iter().any(Anchor::is_trusted) {
            error!(resolver, %zone, "all keys of a trust anchor's zone are revoked: it is not trusted any more");
        }
    }
}

/// Returns the word for where a key stands, as the state file has it.
pub const fn state_word(state: KeyState) -> &'static str {
    match state {
        KeyState::Start => "start",
        KeyState::AddPend => "pending",
        KeyState::Valid => "valid",
        KeyState::Missing => "missing",
        KeyState::Revoked => "revoked",
        KeyState::Removed => "removed",
    }
}

/// Returns the anchors of a zone that nobody has asked yet.
fn begun(anchor: &TrustAnchor) -> TrustAnchors {
    let mut anchors = TrustAnchors::new(anchor.zone.as_name());
    anchor.ds.iter().for_each(|ds| anchors.add_ds(ds));
    anchor.keys.iter().for_each(|key| anchors.add_key(key));
    anchors
}

/// Returns how the keys of a zone stand.
fn entries(anchors: &TrustAnchors, is_followed: bool) -> Vec<KeyEntry> {
    let ds = anchors.ds().filter_map(Ds::parse).map(|ds| KeyEntry {
        tag: ds.tag,
        algorithm: ds.algorithm,
        state: None,
        is_trusted: true,
        since: 0,
    });
    let keys = anchors.keys().iter().filter_map(|anchor| {
        let key = Dnskey::parse(&anchor.rdata)?;
        Some(KeyEntry {
            tag: key.tag(),
            algorithm: key.algorithm(),
            state: is_followed.then_some(anchor.state),
            is_trusted: anchor.is_trusted(),
            since: anchor.last_change,
        })
    });
    ds.chain(keys).collect()
}

/// Writes a file so that it is there as a whole.
pub(super) fn save(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.exists()) {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    }
    write(file, text.as_bytes(), MODE, Overwrites::Yes)
}

/// Draws a number of at most `most`.
fn chance(most: u64) -> u64 {
    let mut octets = [0; 8];
    // Without chance, all ask at once: no reason not to ask.
    if getrandom::fill(&mut octets).is_err() {
        return 0;
    }
    u64::from_le_bytes(octets) % most.saturating_add(1)
}
