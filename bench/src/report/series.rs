//! Scenarios that differ in their rate alone, in one table: what a server takes of a core beside
//! how fast it answers.

use super::model::{Model, ScenarioFacts, ServerFacts};

/// What the report says of each table: its name in the session's tables, its title, and how it is
/// to be read.
const TABLES: [(&str, &str, &str); 2] = [
    (
        "rates",
        "At a rate",
        "Cache hits at even distances, far from saturation: the server's share of a core, the median and the 99th percentile of \
         latency. A server that polls for the next query answers sooner and takes more of the core; what it takes is to be read \
         beside what it gains.",
    ),
    (
        "quota",
        "With half a processor",
        "The same in a control group that grants half a processor (a container's cpus: 0.5): also the share of periods of a \
         tenth of a second in which the server was stopped because it had used up its time.",
    ),
];

/// A table of one series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeriesTable<'a> {
    /// What links call it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The servers that were timed in any of its scenarios.
    pub(super) servers: Vec<&'a ServerFacts>,
    /// Its scenarios, the slowest first.
    pub(super) rows: Vec<SeriesRow<'a>>,
    /// Whether a control group limited the servers.
    pub(super) has_quota: bool,
}

/// One rate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeriesRow<'a> {
    pub(super) scenario: &'a str,
    pub(super) rate: f64,
    /// A cell for each server; none if it was not timed.
    pub(super) cells: Vec<Option<SeriesCell>>,
}

/// Medians of one server at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeriesCell {
    /// CPU time of the server by the time that passed, in per cent.
    pub(super) busy_percent: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Share of periods in which it was stopped, in per cent.
    pub(super) throttled_percent: Option<f64>,
    /// Share of queries that were lost, in per cent.
    pub(super) loss_percent: f64,
}

impl<'a> SeriesTable<'a> {
    /// Returns the tables that `model` has figures for.
    pub(super) fn all(model: &'a Model) -> Vec<Self> {
        TABLES.iter().filter_map(|(name, title, about)| Self::of(model, name, title, about)).collect()
    }

    fn of(model: &'a Model, name: &'static str, title: &'static str, about: &'static str) -> Option<Self> {
        let mut scenarios: Vec<(&ScenarioFacts, f64)> = model
            .scenarios
            .iter()
            .filter_map(|facts| Some((facts, facts.series.as_ref().filter(|(own, _)| own == name)?.1)))
            .collect();
        scenarios.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let is_timed = |server: &&ServerFacts| {
            scenarios.iter().any(|(facts, _)| model.records(&facts.name, &server.name).next().is_some())
        };
        let servers: Vec<&ServerFacts> = model.servers.iter().filter(is_timed).collect();
        if servers.is_empty() {
            return None;
        }
        let row = |(facts, rate): &(&'a ScenarioFacts, f64)| SeriesRow {
            scenario: &facts.name,
            rate: *rate,
            cells: servers.iter().map(|server| SeriesCell::of(model, &facts.name, &server.name)).collect(),
        };
        let rows: Vec<SeriesRow<'a>> = scenarios.iter().map(row).collect();
        let has_quota =
            rows.iter().flat_map(|row| &row.cells).flatten().any(|it| it.throttled_percent.is_some());
        Some(Self { name, title, about, servers, rows, has_quota })
    }
}

impl SeriesCell {
    fn of(model: &Model, scenario: &str, server: &str) -> Option<Self> {
        let median = |column: &str| Some(model.spread(scenario, server, column)?.median);
        Some(Self {
            busy_percent: 100.0 * median("busy_share")?,
            p50_us: median("latency_p50_us")?,
            p99_us: median("latency_p99_us")?,
            throttled_percent: median("throttled_percent"),
            loss_percent: median("loss_percent")?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::metric;
    use super::super::model::tests::example;
    use super::*;

    /// The example at two rates, the faster first.
    pub(in crate::report) fn at_rates(series: &str) -> Model {
        let mut model = example();
        for (name, rate) in [("rate-20k", 20_000.0), ("rate-500", 500.0)] {
            for mut record in example().records {
                record.scenario = name.to_owned();
                record.figures[metric::place("busy_share").expect("a column")] = rate / 100_000.0;
                record.figures[metric::place("throttled_percent").expect("a column")] = f64::NAN;
                record.figures[metric::place("loss_percent").expect("a column")] = 0.0;
                model.records.push(record);
            }
            model.scenarios.push(ScenarioFacts {
                name: name.to_owned(),
                series: Some((series.to_owned(), rate)),
                ..model.scenarios[0].clone()
            });
        }
        model
    }

    #[test]
    fn a_line_for_each_rate_has_share_and_latency_of_each_server() {
        let model = at_rates("rates");
        let tables = SeriesTable::all(&model);
        let [table] = &tables[..] else { panic!("{tables:?}") };
        assert_eq!(table.rows.iter().map(|row| row.scenario).collect::<Vec<_>>(), ["rate-500", "rate-20k"]);
        assert_eq!(table.servers.len(), 3);
        let cell = table.rows[1].cells[1].expect("was timed");
        assert!((cell.busy_percent - 20.0).abs() < 1e-9 && cell.p99_us > cell.p50_us);
        assert!(!table.has_quota && cell.throttled_percent.is_none());
        assert!(SeriesTable::all(&example()).is_empty());
    }

    #[test]
    fn who_was_stopped_by_a_quota_is_shown_where_there_is_one() {
        let mut model = at_rates("quota");
        let throttled = metric::place("throttled_percent").expect("a column");
        for record in &mut model.records {
            record.figures[throttled] = 25.0;
        }
        let tables = SeriesTable::all(&model);
        assert!(tables[0].has_quota && tables[0].name == "quota");
        assert_eq!(tables[0].rows[0].cells[0].expect("was timed").throttled_percent, Some(25.0));
    }
}
