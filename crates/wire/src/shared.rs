//! Names that several own.

use std::sync::Arc;

use crate::name::Name;

/// A name on the heap with ASCII letters in lower case, checked once and then trusted. Copies share
/// the octets.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedName(Arc<[u8]>);

impl SharedName {
    /// Copies a name, in lower case.
    pub fn new(name: Name<'_>) -> Self {
        let mut octets: Arc<[u8]> = name.as_bytes().into();
        // Nobody else has it yet.
        if let Some(octets) = Arc::get_mut(&mut octets) {
            octets.make_ascii_lowercase();
        }
        Self(octets)
    }

    /// Returns the name.
    pub fn as_name(&self) -> Name<'_> {
        Name::trusted(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NameBuf;

    #[test]
    fn names_are_kept_in_lower_case() {
        for text in [".", "a", "WWW.Example.ORG", "www.example.org"] {
            let name = NameBuf::from_text(text).expect("a name");
            let shared = SharedName::new(name.as_name());
            assert_eq!(shared.as_name().as_bytes(), name.as_name().to_folded().as_bytes(), "{text}");
        }
    }
}
