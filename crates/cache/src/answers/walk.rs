//! Looking at all entries, one after the other.

use super::Cache;
use super::entry::Meta;
use super::key::{KeyBits, Now, Scope};
use super::lookup::Freshness;
use super::security::Security;
use crate::store::{Head, RingId, Slot, Word};
use wire::{Class, EdeCode, Flags, Name, Rcode, Rtype};

/// One entry, copied whole.
#[derive(Clone, Copy)]
pub struct EntryView<'a> {
    /// The name, lower case.
    pub name: Name<'a>,
    /// The type asked for.
    pub qtype: Rtype,
    /// The class asked for.
    pub qclass: Class,
    /// What else the key says.
    pub bits: KeyBits,
    /// The view.
    pub view: u16,
    /// The network it is meant for.
    pub scope: Option<Scope>,
    /// The whole response code.
    pub rcode: Rcode,
    /// The flags as they came.
    pub flags: Flags,
    /// Whether it is known to be genuine.
    pub security: Security,
    /// Records in the answer section.
    pub answers: u16,
    /// Records in the authority section.
    pub authorities: u16,
    /// Records in the additional section.
    pub additionals: u16,
    /// The Extended DNS Error to repeat with it.
    pub ede: Option<EdeCode>,
    /// When it was stored.
    pub stored_at: Now,
    /// Seconds for which it is fresh from then on.
    pub ttl: u32,
    /// Seconds for which it is kept after that.
    pub stale: u32,
    /// Uses counted, at most three.
    pub uses: u8,
    /// Whether it is in the main ring.
    pub is_proven: bool,
    /// The reply's octets after the question, TTLs as they were when it was stored.
    pub body: &'a [u8],
    /// Where in the body the TTL fields are.
    pub ttl_offsets: &'a [u16],
}

impl EntryView<'_> {
    /// Returns whether the entry is fresh at `now`; `None` once it is past its stale window.
    pub fn freshness(&self, now: Now) -> Option<Freshness> {
        let age = now.0.saturating_sub(self.stored_at.0);
        match age.checked_sub(self.ttl) {
            None => Some(Freshness::Fresh { left: self.ttl - age }),
            Some(since) if since < self.stale => Some(Freshness::Stale { since }),
            Some(_) => None,
        }
    }
}

impl Cache {
    /// Shows every entry, in no order, expired ones included. Blocks nobody; an entry that is
    /// dropped or stored meanwhile may or may not be shown.
    pub fn for_each(&self, mut f: impl FnMut(&EntryView<'_>)) {
        let take = |room: &mut Room, words: &[_]| room.take(words).is_some();
        self.store.for_each(&mut Room::default(), take, |room, slot| {
            if let Some(view) = room.view(slot) {
                f(&view);
            }
        });
    }
}

/// Room for a name, in whole words.
#[derive(Clone, Copy)]
pub(crate) struct Octets([u8; 256]);

impl Default for Octets {
    fn default() -> Self {
        Self([0; 256])
    }
}

/// Room for one entry, kept from one to the next.
#[derive(Default)]
struct Room {
    words: Vec<u64>,
    name: Octets,
    body: Vec<u8>,
    ttl_offsets: Vec<u16>,
}

impl Room {
    /// Copies the words of an entry. They are valid only if the tail proves it afterwards.
    fn take(&mut self, words: &[impl Word]) -> Option<()> {
        let meta = Meta::read(words)?;
        self.words.clear();
        self.words.extend(words.get(..meta.words)?.iter().map(Word::read));
        Some(())
    }

    fn view(&mut self, slot: Slot) -> Option<EntryView<'_>> {
        let meta = Meta::read(&self.words)?;
        self.body.clear();
        self.body.resize(meta.body_octets, 0);
        meta.copy_body(&self.words, &mut self.body)?;
        self.ttl_offsets.clear();
        self.ttl_offsets.extend(meta.ttl_offsets(&self.words));
        let name = name_of(&meta, &self.words, &mut self.name)?;
        Some(EntryView {
            name,
            qtype: meta.qtype(),
            qclass: meta.qclass(),
            bits: meta.bits(),
            view: meta.view(),
            scope: meta.scope(&self.words),
            rcode: meta.rcode,
            flags: meta.flags,
            security: meta.security,
            answers: meta.answers,
            authorities: meta.authorities,
            additionals: meta.additionals,
            ede: meta.ede,
            stored_at: Now(meta.stored_at),
            ttl: meta.ttl,
            stale: meta.stale,
            uses: slot.freq() as u8,
            is_proven: slot.ring() == RingId::Main,
            body: &self.body,
            ttl_offsets: &self.ttl_offsets,
        })
    }
}

/// Copies the name of an entry.
pub(crate) fn name_of<'o>(meta: &Meta, words: &[impl Word], octets: &'o mut Octets) -> Option<Name<'o>> {
    let words = words.get(meta.name_at..meta.body_at)?;
    for (to, word) in octets.0.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.read().to_le_bytes();
    }
    let (name, rest) = Name::parse(octets.0.get(..meta.name_octets())?).ok()?;
    rest.is_empty().then_some(name)
}
