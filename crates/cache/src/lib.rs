//! Remembers what other servers told us, and until when.
//!
//! Never blocks a reader, never holds more octets than it was given, and reads no clock.
//!
//! # What there is
//!
//! [`Cache`] has finished answers. What a resolver works with is in tables of its own: [`rrsets`]
//! has RRsets and negative answers, [`cuts`] the delegations among them, [`proofs`] the ranges of
//! names that do not exist, [`servers`] what is known of addresses, [`claims`] what is being
//! fetched at this moment. Answers and RRsets lie in the same kind of store. Only [`proofs`] has
//! mutexes for readers, too: who asks it has found nothing elsewhere.
//!
//! # How the store works
//!
//! It is cut into shards by the top bits of a keyed hash. A shard owns two rings of words in
//! one arena (S3-FIFO: *small* takes newcomers, *main* keeps what was asked for again) and a run of
//! index buckets. An entry is written at a ring's head and not changed afterwards, but for single
//! words that say something about it (until when it is worth keeping, its stamp); the tail moves on
//! to make room. A slot of the index names the ring and the *position* of an entry, which counts
//! on for ever and so never means two different entries.
//!
//! A reader copies words and then looks at the tail: if the tail has not passed the position,
//! nothing it copied was overwritten. It takes no lock, and a hit writes at most two bits of the
//! slot, three times per entry. Writers take one mutex per shard.
//!
//! # Costs
//!
//! An answer with one A record for a name of 25 octets takes 88 octets of arena and about 13 of
//! index and ghosts. A hit touches one line of the index (a second one for half of the entries) and
//! two or three adjacent lines of the arena.

#![deny(unsafe_code)]

mod answers;
mod caches;
pub mod claims;
pub mod cuts;
mod depths;
pub mod proofs;
mod relative;
pub mod rrsets;
pub mod servers;
mod store;
mod sync;

pub use answers::{
    Ageing, Cache, Clocks, DumpError, Dumped, Entry, EntryView, Flush, Freshness, Hit, Key, KeyBits, Limits,
    Loaded, Meaning, Now, Place, Progress, Recovery, Refusal, Scope, Security, Stamp, Stored,
};
pub use caches::Caches;
pub use servers::NowMs;
pub use store::Stats;
