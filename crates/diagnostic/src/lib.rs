//! What somebody got wrong in a text, where, and what to write instead.
//!
//! Never reads a file, and never shows a secret: whoever reads a text says which keys have secrets
//! for values.

#![forbid(unsafe_code)]

mod long;
mod problem;
pub mod redact;
mod report;
mod scalar;
mod shortened;
mod source;
pub mod suggest;

pub use long::LongText;
pub use problem::{Problem, diagnostics};
pub use redact::without_secrets;
pub use report::{Diagnostic, Severity, io_text, json_text};
pub use scalar::Scalar;
pub use shortened::{LineForm, LineRun, Shortened};
pub use source::{At, FileId, Place, Source, Sources, Span};
