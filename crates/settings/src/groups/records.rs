//! Sets of records that actions answer from.

use std::path::PathBuf;

use diagnostic::At;
use policy::records::Record;
use wire::NameBuf;

/// A set of records that actions can name.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordSet {
    /// Its name.
    pub name: At<String>,
    /// Records written in the configuration.
    pub records: Vec<Record>,
    /// Texts of the configuration that include files: these may change without it.
    pub including: Vec<IncludingText>,
    /// Files with more.
    pub files: Vec<At<PathBuf>>,
    /// Files with names and addresses.
    pub hosts: Vec<At<PathBuf>>,
    /// What names without a dot at their end are below.
    pub origin: NameBuf,
    /// Whether answers without data have an SOA where the set has none.
    pub synthesized_soa: bool,
}

/// A text with records that includes files.
#[derive(Clone, Debug, PartialEq)]
pub struct IncludingText {
    /// The text.
    pub text: At<String>,
    /// Where names of files begin that do not begin at the root.
    pub directory: PathBuf,
}
