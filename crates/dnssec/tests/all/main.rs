//! Signatures and proofs as others see them: against other implementations, RFCs and what is signed
//! here.

mod oracle;
mod signing;
mod support;
mod vectors;
