//! The policy language: its text, the steps it is compiled to, and what explains both.
//!
//! Never reads a setting: what policies refer to comes in as an
//! [`Environment`](compile::Environment).
//!
//! In go texts with their places ([`condition::parse`], [`action`]), then the parsed policies with
//! the names that they may refer to ([`compile::compile`]). Out come a program for the engine with
//! the place of each step, and the mistakes; from the same policies a drawing ([`graph`]), and from
//! a trace of the engine what happened to a query ([`explain`]).
//!
//! Conditions and actions are tables ([`condition::FIELDS`], [`action::rows`]): a new one is a row,
//! a variant and its lines in the compiler.

#![forbid(unsafe_code)]

pub mod action;
pub mod arguments;
pub mod compile;
pub mod condition;
pub mod explain;
pub mod flow;
pub mod graph;
pub mod records;
mod tokens;
mod written;

pub use action::{Action, TtlChange};
pub use condition::{AddressTerm, Condition, NameTerm, Test};
pub use written::{NamedCondition, Policy, View, Written};

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
