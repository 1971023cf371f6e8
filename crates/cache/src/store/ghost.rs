//! Fingerprints of what was dropped from the small ring, so that a second insertion is known as
//! one.

/// Words of arena for each fingerprint.
pub(crate) const WORDS_PER_GHOST: usize = 16;

/// A fixed table, two octets per fingerprint; a newer one takes the older one's place.
///
/// A false match (one in 65,535) sends a newcomer to the main ring, which is harmless.
pub(crate) struct Ghosts(Box<[u16]>);

impl Ghosts {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count].into_boxed_slice())
    }

    pub(crate) fn remember(&mut self, hash: u64) {
        if let Some((ghost, fingerprint)) = self.find(hash) {
            *ghost = fingerprint;
        }
    }

    /// Returns whether `hash` was remembered, and forgets it.
    pub(crate) fn recall(&mut self, hash: u64) -> bool {
        match self.find(hash) {
            Some((ghost, fingerprint)) if *ghost == fingerprint => {
                *ghost = 0;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    fn find(&mut self, hash: u64) -> Option<(&mut u16, u16)> {
        // The top bits are the same for all of a shard: rotated away, they choose nothing.
        let at = ((u128::from(hash.rotate_left(20)) * self.0.len() as u128) >> 64) as usize;
        let fingerprint = (hash as u16).max(1);
        self.0.get_mut(at).map(|ghost| (ghost, fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_recalled_once() {
        let mut ghosts = Ghosts::new(64);
        let hash = 0x0123_4567_89ab_cdef;
        assert!(!ghosts.recall(hash));
        ghosts.remember(hash);
        assert!(!ghosts.recall(hash ^ 1));
        assert!(ghosts.recall(hash));
        assert!(!ghosts.recall(hash));
        ghosts.remember(hash);
        ghosts.clear();
        assert!(!ghosts.recall(hash));
        assert!(!Ghosts::new(0).recall(hash));
    }
}
