//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Keys agreed on with clients: agreeing costs as much as answering a hundred queries from memory,
//! and a client asks with the same key for hours.

use std::hash::{BuildHasher as _, RandomState};

use dnscrypt::{KEY_OCTETS, SharedKey};

/// A client's key, and for which of ours.
type Of = ([u8; KEY_OCTETS], [u8; 8]);

/// The latest keys of one worker. A new one takes the place of another.
pub(super) struct AgreedKeys {
    places: Box<[Option<(Of, SharedKey)>]>,
    key: RandomState,
}

impl AgreedKeys {
    /// Returns room for as many as so many octets hold, at least for one.
    // Once per configuration.
    pub(super) fn new(octets: usize) -> Self {
        let places = (octets / size_of::<Option<(Of, SharedKey)>>()).max(1);
        Self { places: std::iter::repeat_with(|| None).take(places).collect(), key: RandomState::new() }
    }

    fn place(&self, of: &Of) -> usize {
        // Nobody else knows the key, so nobody can choose a key that pushes out a certain other.
        self.key.hash_one(of) as usize % self.places.len().max(1)
    }

    /// Returns the key agreed on with a client.
    pub(super) fn find(&self, of: &Of) -> Option<&SharedKey> {
        let (known, shared) = self.places.get(self.place(of))?.as_ref()?;
        (known == of).then_some(shared)
    }

    /// Keeps a key.
    pub(super) fn keep(&mut self, of: Of, shared: SharedKey) {
        let at = self.place(&of);
        if let Some(place) = self.places.get_mut(at) {
            *place = Some((of, shared));
        }
    }
}
