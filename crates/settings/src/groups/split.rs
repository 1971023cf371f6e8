//! Names that are asked for elsewhere.

use diagnostic::Span;
use policy::Policy;

use super::Group;

/// Names that are asked for elsewhere: the short form of a policy before all others.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Where it is said.
    pub span: Span,
    /// A rule for each name, those further down first.
    pub policy: Policy,
    /// The groups of servers that are written there.
    pub groups: Vec<Group>,
}
