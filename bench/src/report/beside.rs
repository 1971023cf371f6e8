//! A scenario beside the one that it differs from in one thing only: what that thing costs.

use super::metric::{YARDSTICKS, Yardstick};
use super::model::{Model, ScenarioFacts};
use super::statistics::Spread;

/// The yardsticks that are compared: CPU per query, throughput, the 99th percentile.
pub(super) const COMPARED: [&Yardstick; 3] = [&YARDSTICKS[0], &YARDSTICKS[1], &YARDSTICKS[3]];

/// What a scenario takes of each server by what the other does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Beside<'a> {
    /// The other scenario.
    pub(super) other: &'a str,
    /// Each server with the median ratios of [`COMPARED`]; none where the load generator was the
    /// limit.
    pub(super) servers: Vec<(String, [Option<f64>; 3])>,
}

impl<'a> Beside<'a> {
    /// Compares; `None` if there is no other scenario, or no server was timed in both.
    pub(super) fn of(model: &Model, facts: &'a ScenarioFacts) -> Option<Self> {
        let other = facts.beside.as_deref()?;
        let servers: Vec<_> = model
            .timed(&facts.name)
            .filter(|server| !server.is_echo && model.records(other, &server.name).next().is_some())
            .map(|server| {
                let is_bound =
                    [&facts.name, other].iter().any(|name| model.is_generator_bound(name, &server.name));
                let ratios = COMPARED.map(|yardstick| {
                    let ratios = model.ratios_beside(&facts.name, other, &server.name, yardstick.column);
                    let says_something = !(yardstick.needs_saturation && is_bound);
                    Some(Spread::of(ratios)?.median).filter(|_| says_something)
                });
                (server.name.clone(), ratios)
            })
            .collect();
        (!servers.is_empty()).then_some(Self { other, servers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::metric;
    use crate::report::model::tests::{beside, example};

    #[test]
    fn rounds_of_both_scenarios_are_paired() {
        let mut model = beside();
        let of = |model: &Model| Beside::of(model, &model.scenarios[1]).map(|beside| beside.servers);
        let servers = of(&model).expect("both were timed");
        assert_eq!(servers.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["gannet", "rival"]);
        let [cpu, throughput, _] = servers[0].1;
        assert!((cpu.expect("both") - 1.1).abs() < 1e-9 && throughput == Some(1.0));
        // A server that idled says nothing about throughput.
        let busy = metric::place("busy_share").expect("a column");
        for record in &mut model.records {
            record.figures[busy] = 0.5;
        }
        let servers = of(&model).expect("both were timed");
        assert!(servers[0].1[0].is_some() && servers[0].1[1].is_none());
    }

    #[test]
    fn a_scenario_that_stands_alone_is_not_compared() {
        let model = example();
        assert_eq!(Beside::of(&model, &model.scenarios[0]), None);
    }
}
