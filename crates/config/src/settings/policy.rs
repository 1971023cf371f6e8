//! Policies, named conditions, and who begins in which policy.

use diagnostic::{At, Span};

use super::Group;
use crate::policy::{Condition, Rule};

/// A condition with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCondition {
    /// The name.
    pub name: At<String>,
    /// The condition.
    pub condition: At<Condition>,
}

/// Clients whose queries begin in a policy of their own.
#[derive(Clone, Debug)]
pub struct View {
    /// The whole view.
    pub span: Span,
    /// When a query is in it.
    pub condition: At<Condition>,
    /// The policy.
    pub policy: At<String>,
}

/// Two views are equal when they say the same, wherever they say it.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.policy == other.policy
    }
}

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

/// A policy: rules in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: At<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
}
