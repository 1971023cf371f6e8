//! Signatures and proofs as others see them: against other implementations, RFCs and what is signed
//! here.

mod chains;
mod denied;
mod oracle;
mod proofs;
mod rolling;
mod signing;
mod support;
mod vectors;
