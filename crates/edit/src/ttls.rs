//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The TTLs of an answer.

use wire::Ttl;

use super::{Draft, Place};

impl Draft<'_> {
    /// Gives every record the TTL that `f` makes of its own.
    pub fn change_ttls(&mut self, f: impl Fn(Ttl) -> Ttl) {
        let mut walk = self.shape.walk();
        while let Some(place) = walk.step(self.message) {
            let ttl = f(place.ttl(self.message));
            if let Some(field) =
                self.message.get_mut(place.ttl_at()..).and_then(|tail| tail.first_chunk_mut())
            {
                *field = ttl.seconds().to_be_bytes();
            }
        }
    }

    /// Returns the smallest TTL of the records that `f` chooses.
    pub fn smallest_ttl(&self, mut f: impl FnMut(&[u8], &Place) -> bool) -> Option<Ttl> {
        let mut smallest: Option<Ttl> = None;
        self.each(|message, place| {
            if f(message, place) {
                let ttl = place.ttl(message);
                smallest = Some(smallest.map_or(ttl, |other| other.min(ttl)));
            }
        });
        smallest
    }
}
