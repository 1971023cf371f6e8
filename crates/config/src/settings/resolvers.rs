//! Resolvers.

use std::path::PathBuf;

use diagnostic::At;

/// A resolver.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolverSettings {
    /// Its name.
    pub name: At<String>,
    /// The memory for what it learns, in octets.
    pub cache_size: u64,
    /// The file with the servers of the root; `None`: those that the program comes with.
    pub root_hints: Option<At<PathBuf>>,
    /// The file with trust anchors; `None`: those that the program comes with.
    pub trust_anchors: Option<At<PathBuf>>,
    /// Everything else; the servers of the root in it are those that the program comes with.
    pub rules: resolver::Settings,
}
