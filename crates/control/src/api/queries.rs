//! The record of queries.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::{Rcode, Rtype};

/// Which recorded queries are wanted: all conditions hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct QueriesAsked {
    /// At most so many; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Those before this one: the cursor of the page before. Of live queries, those behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<i64>,
    /// For this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For names that have this text in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// For this name and names below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// For names that fit this regular expression somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// For names that do not have this text in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// Not for this name and names below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_suffix: Option<String>,
    /// Not for names that fit this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_regex: Option<String>,
    /// Of this client: an address, a prefix, or a pseudonym as it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// For this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub rtype: Option<String>,
    /// With this response code; `none`: without a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcode: Option<String>,
    /// Over this transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// With this address in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// That a line of this list decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// That this upstream answered: a group, or the address of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Of which one of these became, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// That waited at least so many milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_than_ms: Option<u64>,
    /// Not before this time, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// Whose queries are to be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QueriesOf {
    /// A client: an address, a prefix, or a pseudonym as it is shown.
    pub client: String,
}

/// What was removed from the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueriesRemoved {
    /// How many recorded queries.
    pub removed: u64,
}

/// Something on the live log of queries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueryEvent {
    /// A query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Recorded>,
    /// So many records were passed over, because they came faster than they were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

/// A recorded query, as `gannet log --json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Recorded {
    /// When its reply was complete, in milliseconds since 1970.
    pub at_ms: i64,
    /// How long it waited for other servers, with fractions.
    pub waited_ms: f64,
    /// Who asked.
    pub client: String,
    /// `udp` or `tcp`.
    pub transport: String,
    /// The name asked for.
    pub name: String,
    /// The type asked for.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The reply's code; absent when there was no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Records in the answer section.
    pub answers: u16,
    /// The addresses among them.
    pub addresses: Vec<String>,
    /// The way through the policy: each step and what came of it.
    pub path: Vec<String>,
    /// How many queries it stands for: more than one when they came faster than they could be
    /// recorded.
    pub one_of: u32,
    /// Its number: rises in the order in which queries were recorded.
    pub id: i64,
    /// What became of it: `cached`, `stale`, `local`, `resolved`, `blocked`, `refused` or
    /// `dropped`.
    pub outcome: String,
    /// The Extended DNS Error of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ede: Option<u16>,
    /// The rule that decided: file and line, and what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The list with the line that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    /// That line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Who answered: the group of upstreams, and its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

impl From<&recorder::Recorded> for Recorded {
    fn from(query: &recorder::Recorded) -> Self {
        let words = |text: &str, separator: &str| {
            text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            at_ms: query.at_ms,
            waited_ms: query.waited_us as f64 / 1000.0,
            client: query.client.to_string(),
            transport: query.transport.clone(),
            name: query.name.clone(),
            rtype: Rtype(query.qtype).to_string(),
            status: query.rcode.map(|rcode| Rcode(rcode).to_string()),
            answers: query.answers,
            addresses: words(&query.addresses, " "),
            path: words(&query.path, "; "),
            one_of: query.one_of,
            id: query.id,
            outcome: query.outcome.word().to_owned(),
            ede: query.ede,
            rule: text(&query.rule),
            list: text(&query.list),
            line: Some(query.line).filter(|line| *line > 0),
            upstream: text(&query.upstream),
        }
    }
}

/// Recorded queries, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueriesFound {
    /// The queries.
    pub queries: Vec<Recorded>,
    /// Where to go on: there may be more before the one with this number. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<i64>,
    /// Until when all were looked at, in milliseconds since 1970, if the time was over before the
    /// page was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_to_ms: Option<i64>,
    /// Files that cannot be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A name, client or another thing and how often it asked or was asked for, as `gannet log --top`
/// prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// The name or the client.
    pub what: String,
    /// Queries.
    pub queries: u64,
    /// By so much the number may be wrong: rare names are not told apart.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is to be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QuerySums {
    /// `names`, `blocked`, `clients`, `outcomes`, `types`, `transports`, `upstreams` or `lists`.
    pub what: String,
    /// Not before this time, in milliseconds since 1970; one day ago when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// Before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// At most so many; 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Seconds of a period: 60, 3600 or 86400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<i64>,
}

/// How many queries there were in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QuerySum {
    /// When the period began, in milliseconds since 1970.
    pub start_ms: i64,
    /// What was counted.
    pub what: String,
    /// Queries.
    pub queries: u64,
}
