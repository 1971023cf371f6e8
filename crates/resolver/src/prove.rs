//! What signatures prove: of data, of its absence, of delegations, and of keys (RFC 4035 §5).
//!
//! Nothing here asks anybody. A reply is judged by what is known of zones ([`Chains`]); if more has
//! to be known, the judgement says which question is missing, and goes on from there when it is
//! asked again. What was checked is noted in the RRset, so that nothing is checked twice.
//!
//! The zone that signs is taken from the signatures, because servers answer for zones below the one
//! that they were asked for without a referral in between. Whoever names a wrong one gains nothing:
//! a chain of DS records must lead to it. Data without a signature in a signed zone is insecure if
//! a delegation without DS lies between, and bogus otherwise.

mod answer;
mod chains;
mod cut;
mod denial;
mod judge;
mod keys;
mod seen;

pub(crate) use chains::{Chains, Why, ZoneTrust};
pub(crate) use cut::{Below, below};
pub(crate) use judge::{Judge, Obstacle, Work, denials};
