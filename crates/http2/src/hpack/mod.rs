//! HPACK (RFC 7541): heads as numbers into tables, and text.

mod decoder;
mod encoder;
mod huffman;
mod static_table;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;

/// What a head cannot be read from: an error of the whole connection, as the tables are out of step
/// (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbled;

/// Octets of a table unless something else is agreed on (RFC 9113 §6.5.2).
const TABLE_OCTETS: usize = 4096;

/// Octets that an entry counts besides its text (RFC 7541 §4.1).
const ENTRY_EXTRA_OCTETS: usize = 32;
