//! Fingerprints of what was dropped from the small ring, so that a second insertion is known as
//! one.

/// Words of arena for each fingerprint.
pub(crate) const WORDS_PER_GHOST: usize = 16;

/// A fixed table, two octets per fingerprint; a newer one takes the older one's place.
///
/// A false match (one in 65,535) sends a newcomer to the main ring, which is harmless.
pub(crate) struct Ghosts {
    fingerprints: Box<[u16]>,
    /// Whether there may be any. While a cache fills, nothing was dropped, and an insertion need
    /// not look at memory that is in no cache of the processor.
    has_any: bool,
}

impl Ghosts {
    pub(crate) fn new(count: usize) -> Self {
        Self { fingerprints: vec![0; count].into_boxed_slice(), has_any: false }
    }

    pub(crate) fn remember(&mut self, hash: u64) {
        if let Some((ghost, fingerprint)) = self.find(hash) {
            *ghost = fingerprint;
            self.has_any = true;
        }
    }

    /// Returns whether `hash` was remembered, and forgets it.
    pub(crate) fn recall(&mut self, hash: u64) -> bool {
        if !self.has_any {
            return false;
        }
        match self.find(hash) {
            Some((ghost, fingerprint)) if *ghost == fingerprint => {
                *ghost = 0;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.fingerprints.fill(0);
        self.has_any = false;
    }

    fn find(&mut self, hash: u64) -> Option<(&mut u16, u16)> {
        // The top bits are the same for all of a shard: rotated away, they choose nothing.
        let at = ((u128::from(hash.rotate_left(20)) * self.fingerprints.len() as u128) >> 64) as usize;
        let fingerprint = (hash as u16).max(1);
        self.fingerprints.get_mut(at).map(|ghost| (ghost, fingerprint))
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
