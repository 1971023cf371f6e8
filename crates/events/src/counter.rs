//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Numbers that are counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread raises and others read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one. Only the owning worker may call it: a plain load and store is enough then, and
    /// cheaper.
    #[inline]
    pub fn bump(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Takes one back that will be counted again, under the same condition.
    #[inline]
    pub fn take_back(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }

    /// Adds `n`, under the same condition.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Returns the count.
    #[inline]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The largest value of something since whoever reads it had it begin from zero.
#[derive(Debug, Default)]
pub struct Peak(AtomicU64);

impl Peak {
    /// Notes a value. Only the owning worker may call it.
    #[inline]
    pub fn note(&self, value: u64) {
        // Whoever resets it at this moment reads it once more.
        if value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the largest value.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Begins from zero.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A number that several threads raise.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares `Counters`, what one worker counts, from metric names and help texts. For every crate
/// whose workers count. Behind a semicolon are peaks, which are no metrics: they begin from zero
/// when somebody says so.
#[macro_export]
macro_rules! counters {
    ($($name:ident: $help:literal),* $(,)? $(; $($peak:ident: $peak_help:literal),* $(,)?)?) => {
        /// One worker's counters, on cache lines of their own.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $(#[doc = $help] pub $name: $crate::Counter,)*
            $($(#[doc = $peak_help] pub $peak: $crate::Peak,)*)?
        }

        impl Counters {
            /// Returns every counter's name and help text, in the order of [`Counters::read`].
            pub const DESCRIPTIONS: &[(&'static str, &'static str)] = &[$((stringify!($name), $help),)*];

            /// Calls `f` with every counter's name and value.
            pub fn read(&self, mut f: impl FnMut(&'static str, u64)) {
                $(f(stringify!($name), self.$name.read());)*
            }
        }
    };
}
