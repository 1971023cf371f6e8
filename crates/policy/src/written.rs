//! Policies, named conditions, and who begins in which policy.

use diagnostic::{At, Span};

use crate::{Condition, Rule, Test};

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

/// A policy: rules in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: At<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// All that a configuration says of policies.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The policies.
    pub policies: &'a [Policy],
    /// Conditions with names.
    pub conditions: &'a [NamedCondition],
    /// Who begins in which policy, in order.
    pub views: &'a [View],
    /// Where the short form of a policy before all others stands, if there is one.
    pub split: Option<Span>,
}

impl<'a> Written<'a> {
    /// Returns whether any condition is about the flag DO.
    pub fn tests_do(&self) -> bool {
        let rules = self.policies.iter().flat_map(|policy| &policy.rules);
        let of_rules = rules.filter_map(|rule| rule.condition.as_ref()).map(|at| &at.value);
        let named = self.conditions.iter().map(|named| &named.condition.value);
        let of_views = self.views.iter().map(|view| &view.condition.value);
        of_rules.chain(named).chain(of_views).any(|condition| condition.has(&Test::WantsDnssec))
    }

    /// Returns the policy of that name.
    pub fn policy(&self, name: &str) -> Option<&'a Policy> {
        self.policies.iter().find(|policy| policy.name.value == name)
    }
}
