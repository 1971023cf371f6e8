//! The only module of this crate with `unsafe` code: memory shared with the kernel, and system
//! calls that std lacks.
//!
//! What is offered here is safe to use in any order with any numbers: a frame can be read only
//! while its owner is known to be us, and every buffer handed to the kernel is as long as the
//! kernel was told.
#![allow(unsafe_code)]

pub(crate) mod bpf;
pub(crate) mod calls;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod ring;
