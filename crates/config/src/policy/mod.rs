//! The policy language as written: rules of one condition and some actions.
//!
//! Conditions and actions are tables ([`condition::FIELDS`], [`action::rows`]): a new one is a row, a variant and
//! its lines in the compiler.

pub mod action;
pub mod arguments;
pub mod condition;
mod tokens;

pub use action::{Action, TtlChange};
pub use condition::{AddressTerm, Condition, NameTerm, Test};
use diagnostic::{At, Span};

/// The policy in which every query begins.
pub const ENTRY: &str = "main";
/// The policy that `split` becomes, which comes before all others.
pub const SPLIT: &str = "split";

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The whole rule.
    pub span: Span,
    /// What the user calls it.
    pub name: Option<At<String>>,
    /// When to act; `None`: always.
    pub condition: Option<At<Condition>>,
    /// What to do, in order.
    pub actions: Vec<At<Action>>,
}

/// Two rules are equal when they say the same, wherever they say it.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.condition == other.condition && self.actions == other.actions
    }
}
