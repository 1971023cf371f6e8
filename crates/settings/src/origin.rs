//! Where a configuration comes from.

use std::path::PathBuf;

use diagnostic::Diagnostic;

use crate::load::{Loaded, built_in, load, load_unbound};

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This file, which must be there.
    File(PathBuf),
    /// This file, which must be there, in the language of Unbound.
    Unbound(PathBuf),
    /// Nobody has configured anything.
    BuiltIn,
}

impl Origin {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// Every mistake in it.
    pub fn load(&self) -> Result<Loaded, Vec<Diagnostic>> {
        match self {
            Self::File(path) => load(path),
            Self::Unbound(path) => load_unbound(path),
            Self::BuiltIn => built_in(),
        }
    }

    /// Returns what people call it.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) | Self::Unbound(path) => path.display().to_string(),
            Self::BuiltIn => "the built-in configuration".into(),
        }
    }

    /// Returns the file, made independent of the working directory.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) | Self::Unbound(path) => {
                Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
            }
            Self::BuiltIn => None,
        }
    }
}
