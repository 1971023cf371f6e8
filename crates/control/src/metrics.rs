//! The server's numbers for Prometheus: the text of an exposition, and the listener from which it
//! is fetched.
//!
//! Names follow Prometheus' conventions: `gannet_`, then what is counted, then its unit; `_total`
//! for what only grows; octets are `bytes`, times are seconds. Labels come from the configuration
//! or are fixed, never from queries: a stranger cannot make the exposition longer.

mod certificates;
mod jobs;
mod times;
mod webhooks;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use jobs::JOBS;

use crate::accept::{WhenFull, converse_with_all};

use crate::api::{self, CacheStats, Stats, Status};

/// Connections at once. Whoever collects numbers has one; the others wait.
const CONNECTIONS_MAX: usize = 8;
/// How long the head of a request may take: whoever asks for metrics has nothing to think about.
const HEAD_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a connection may last from its beginning to its end.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
/// Octets of a request's head. The least that `hyper` can be told.
const HEAD_OCTETS_MAX: usize = 8192;
/// Fields of a request's head.
const HEADERS_MAX: usize = 64;

/// Where the metrics are.
const PATH: &str = "/metrics";
/// The text format, version 0.0.4.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What counters of a group are called there, with a sentence for each.
pub type Descriptions<'a> = &'a [(&'a str, &'a [(&'a str, &'a str)])];

/// Records that are told of one by one; of more, only how many there are is told of all.
const RECORDS_MAX: usize = 1000;

/// What the text is made of.
pub struct Numbers<'a> {
    /// Counters by group.
    pub stats: &'a Stats,
    /// How the server is.
    pub status: &'a Status,
    /// How full caches are.
    pub caches: &'a BTreeMap<String, CacheStats>,
    /// How checks of what records lead to stand.
    pub checks: &'a Checks,
    /// Sets and their lists.
    pub sets: &'a [api::Set],
    /// Certificates that are ordered.
    pub certificates: &'a [api::OrderedCertificate],
    /// How long clients waited, by what for.
    pub waits: &'a [(&'a str, Buckets)],
    /// How long clients had to wait for replies, by transport.
    pub replies: &'a [(&'a str, Buckets)],
    /// How long replies of upstreams took, by group and server.
    pub upstreams: &'a [([String; 2], Buckets)],
    /// What counters are called.
    pub descriptions: Descriptions<'a>,
}

/// A histogram of times.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    /// The bounds in microseconds, ascending, each with how many times were below it.
    pub below: Vec<(u64, u64)>,
    /// How many there were.
    pub count: u64,
    /// All of them together, in microseconds.
    pub sum_us: u64,
}

/// How checks of what records lead to stand.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// What is checked, in the order of the configuration.
    pub records: Vec<CheckedRecord>,
    /// How often each check passed and failed, by its name.
    pub made: BTreeMap<String, [u64; 2]>,
}

/// A record that is checked.
#[derive(Clone, Debug)]
pub struct CheckedRecord {
    /// What the check is called.
    pub check: String,
    /// The owner.
    pub name: String,
    /// The address.
    pub address: String,
    /// Whether it is answered.
    pub is_up: bool,
}

/// What a metric does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts in buckets.
    Histogram,
}

/// Everything about one metric.
struct Family {
    kind: Kind,
    help: String,
    /// Values by their labels as text.
    values: BTreeMap<String, String>,
    /// Lines of histograms, in the order of their bounds.
    lines: Vec<String>,
}

/// Metrics in the making, sorted by name.
#[derive(Default)]
struct Exposition(BTreeMap<String, Family>);

impl Exposition {
    fn add(&mut self, kind: Kind, name: &str, help: &str, labels: &[(&str, &str)], value: String) {
        self.family(kind, name, help).values.insert(labels_text(labels), value);
    }

    fn family(&mut self, kind: Kind, name: &str, help: &str) -> &mut Family {
        self.0.entry(name.to_owned()).or_insert_with(|| Family {
            kind,
            help: help.to_owned(),
            values: BTreeMap::new(),
            lines: Vec::new(),
        })
    }

    fn histogram(&mut self, name: &str, help: &str, labels: &[(&str, &str)], buckets: &Buckets) {
        let labels = labels_text(labels);
        let lines = &mut self.family(Kind::Histogram, name, help).lines;
        for (bound_us, count) in &buckets.below {
            lines.push(format!("{name}_bucket{{{labels},le=\"{}\"}} {count}", seconds(*bound_us)));
        }
        lines.push(format!("{name}_bucket{{{labels},le=\"+Inf\"}} {}", buckets.count));
        lines.push(format!("{name}_sum{{{labels}}} {}", seconds(buckets.sum_us)));
        lines.push(format!("{name}_count{{{labels}}} {}", buckets.count));
    }

    fn counter(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64) {
        self.add(Kind::Counter, name, help, labels, value.to_string());
    }

    fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64) {
        self.add(Kind::Gauge, name, help, labels, value.to_string());
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, Family { kind, help, values, lines }) in &self.0 {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", escaped(help, false));
            for (labels, value) in values {
                let _ = match labels.as_str() {
                    "" => writeln!(text, "{name} {value}"),
                    labels => writeln!(text, "{name}{{{labels}}} {value}"),
                };
            }
            for line in lines {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

/// Returns labels as the format has them between braces.
fn labels_text(labels: &[(&str, &str)]) -> String {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
    labels.join(",")
}

/// Returns microseconds as seconds, without a rounding.
fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Escapes what the format does not take as it is; quotes only inside labels.
fn escaped(text: &str, is_label: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if is_label => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

/// Returns a name as a part of a metric's name.
fn snake(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

/// Counters that are one metric in several parts: group, beginning of the counters' names, metric,
/// label, help.
const PARTS: [(&str, &str, &str, &str, &str); 5] = [
    ("engine", "queries_", "gannet_queries_total", "transport", "Queries received, by transport."),
    ("listen", "tcp_closed_", "gannet_listen_tcp_closed_total", "reason", "Connections closed, by reason."),
    ("fetch", "sent_", "gannet_fetch_sent_total", "transport", "Queries sent to upstreams, by transport."),
    (
        "resolver",
        "sent_",
        "gannet_resolver_sent_total",
        "transport",
        "Queries sent to authoritative servers, by transport.",
    ),
    (
        "fetch",
        "shed_",
        "gannet_fetch_shed_total",
        "reason",
        "Queries shed for want of room, by what was full.",
    ),
];

/// Counters of replies by their code.
const RCODES: [(&str, &str); 5] = [
    ("noerror", "NOERROR"),
    ("nxdomain", "NXDOMAIN"),
    ("servfail", "SERVFAIL"),
    ("refused", "REFUSED"),
    ("other_rcode", "other"),
];

/// Returns the exposition of everything that a server counts and is.
pub fn text(numbers: &Numbers<'_>) -> String {
    let Numbers { stats, status, caches, checks, sets, certificates, descriptions, .. } = *numbers;
    let mut out = Exposition::default();
    for (group, counters) in stats {
        for (name, value) in counters {
            match group.split_once('.') {
                Some(("xdp", interface)) => frames(&mut out, interface, name, *value),
                Some(("effect", effect)) => effects(&mut out, effect, name, *value),
                Some(("webhook", webhook)) => webhooks::add(&mut out, webhook, name, *value),
                // How long each ban lasts is for people: prefixes as labels would pile up in a
                // database without end.
                Some(("bans", _)) => {}
                _ if group == "bans" => bans(&mut out, name, *value),
                _ if group == "changes" => changes(&mut out, name, *value),
                _ if group == "label" => out.counter(
                    "gannet_label_queries_total",
                    "Queries that a policy counted, by its label.",
                    &[("label", name)],
                    *value,
                ),
                _ => counter(&mut out, (group, name), *value, descriptions),
            }
        }
    }
    for (cache, stats) in caches {
        let labels = [("cache", cache.as_str())];
        out.gauge("gannet_cache_entries", "Answers that the cache holds.", &labels, stats.entries);
        out.gauge("gannet_cache_bytes", "Memory that the cache's answers take.", &labels, stats.octets);
        let help = "Memory that the cache's answers may take.";
        out.gauge("gannet_cache_limit_bytes", help, &labels, stats.octets_max);
        out.counter("gannet_cache_inserts_total", "Answers put into the cache.", &labels, stats.inserts);
        let help = "Answers put out of the cache for want of room.";
        out.counter("gannet_cache_evictions_total", help, &labels, stats.evictions);
    }
    times::add(&mut out, numbers);
    state(&mut out, status);
    records(&mut out, checks);
    certificates::add(&mut out, certificates);
    lists(&mut out, sets);
    out.text()
}

/// Adds sets and the lists that they fetch.
fn lists(out: &mut Exposition, sets: &[api::Set]) {
    for set in sets {
        let labels = [("set", set.name.as_str())];
        out.gauge("gannet_set_rules", "Rules of the set, and ranges of addresses.", &labels, set.rules);
        out.gauge("gannet_set_bytes", "Memory that the set takes.", &labels, set.octets);
        let fetched = set.lists.iter().enumerate().filter(|(_, list)| list.is_fetched);
        for (at, list) in fetched {
            // Its place, as secrets may stand in a URL.
            let number = (at + 1).to_string();
            let labels = [("set", set.name.as_str()), ("list", number.as_str())];
            let help = "Whether there is a copy of the list that is fetched.";
            out.gauge("gannet_list_present", help, &labels, list.age_s.is_some().into());
            if let Some(age_s) = list.age_s {
                let help = "Time since the list was last known to be the newest.";
                out.gauge("gannet_list_age_seconds", help, &labels, age_s);
            }
            let help = "Downloads of the list that failed.";
            out.counter("gannet_list_failures_total", help, &labels, list.failures);
        }
    }
}

/// Returns the sentence of a counter, if it has one; names are spelt with underscores or hyphens.
pub fn sentence<'d>(group: &str, name: &str, descriptions: Descriptions<'d>) -> Option<&'d str> {
    let is_it = |other: &str| other.replace('_', "-") == name.replace('_', "-");
    let known = descriptions.iter().filter(|(of, _)| *of == group).flat_map(|(_, counters)| *counters);
    let of_workers = known.into_iter().find(|(counter, _)| is_it(counter)).map(|(_, help)| *help);
    let of_jobs =
        || JOBS.iter().find(|(of, counter, _)| *of == group && is_it(counter)).map(|(_, _, help)| *help);
    of_workers.or_else(of_jobs)
}

/// Adds how checks of what records lead to stand.
fn records(out: &mut Exposition, checks: &Checks) {
    // Another set of zones may have the same record: it is up if all of them are.
    let mut known: BTreeMap<[&str; 3], bool> = BTreeMap::new();
    let mut counts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for CheckedRecord { check, name, address, is_up } in &checks.records {
        let [down, up] = counts.entry(check).or_default();
        *(if *is_up { up } else { down }) += 1;
        let labels = [check.as_str(), name.as_str(), address.as_str()];
        if known.len() < RECORDS_MAX || known.contains_key(&labels) {
            *known.entry(labels).or_insert(true) &= *is_up;
        }
    }
    for ([check, name, address], is_up) in known {
        let labels = [("check", check), ("name", name), ("address", address)];
        let help = "Whether the record is answered; one of which nothing is known yet is.";
        out.gauge("gannet_check_up", help, &labels, is_up.into());
    }
    for (check, [down, up]) in counts {
        for (state, count) in [("down", down), ("up", up)] {
            let labels = [("check", check), ("state", state)];
            out.gauge(
                "gannet_check_records",
                "Records that the check is for, by how they stand.",
                &labels,
                count,
            );
        }
    }
    for (check, [passed, failed]) in &checks.made {
        for (outcome, count) in [("passed", *passed), ("failed", *failed)] {
            let labels = [("check", check.as_str()), ("outcome", outcome)];
            out.counter(
                "gannet_checks_total",
                "How often the check was made, by what came of it.",
                &labels,
                count,
            );
        }
    }
}

/// Adds what the server is, and whom it asks.
fn state(out: &mut Exposition, status: &Status) {
    let version = [("version", status.version.as_str())];
    out.gauge("gannet_build_info", "The program; always 1.", &version, 1);
    out.gauge("gannet_uptime_seconds", "Time since the server was ready.", &[], status.uptime_s);
    out.gauge("gannet_workers", "Threads that answer queries.", &[], status.workers as u64);
    out.gauge("gannet_waiting_queries", "Queries that wait for upstreams.", &[], status.waiting);
    let configuration = &status.configuration;
    let help = "Revision of the configuration in use; the one at the start is 1.";
    out.gauge("gannet_configuration_revision", help, &[], configuration.revision);
    let help = "Time since the configuration in use was adopted.";
    out.gauge("gannet_configuration_age_seconds", help, &[], configuration.age_s);
    let help = "Whether the last reload was refused because of mistakes in the file.";
    let is_refused = u64::from(configuration.is_last_reload_refused);
    out.gauge("gannet_configuration_last_reload_refused", help, &[], is_refused);
    for (pool, upstreams) in &status.upstreams {
        for upstream in upstreams {
            let labels = [("pool", pool.as_str()), ("server", upstream.server.as_str())];
            let help = "Whether the upstream is in use; one that was not tried yet is.";
            out.gauge("gannet_upstream_up", help, &labels, u64::from(upstream.health != "down"));
            out.counter("gannet_upstream_queries_total", "Queries sent to it.", &labels, upstream.queries);
            let help = "Queries that it did not answer or answered with a failure.";
            out.counter("gannet_upstream_failures_total", help, &labels, upstream.failures);
            if let Some(round_trip_ms) = upstream.round_trip_ms {
                let value = format!("{:.6}", round_trip_ms / 1000.0);
                let help = "Its smoothed round-trip time.";
                out.add(Kind::Gauge, "gannet_upstream_round_trip_seconds", help, &labels, value);
            }
        }
    }
}

/// Adds a counter of a worker or a job.
fn counter(out: &mut Exposition, (group, name): (&str, &str), value: u64, descriptions: Descriptions<'_>) {
    for (of, prefix, metric, label, help) in PARTS {
        if let Some(part) = name.strip_prefix(prefix).filter(|_| group == of) {
            return out.counter(metric, help, &[(label, part)], value);
        }
    }
    if let Some((_, rcode)) = RCODES.iter().find(|(counter, _)| group == "engine" && *counter == name) {
        return out.counter("gannet_replies_total", "Replies, by their code.", &[("rcode", rcode)], value);
    }
    let known = descriptions.iter().filter(|(of, _)| *of == group).flat_map(|(_, counters)| *counters);
    let of_workers = known.into_iter().find(|(counter, _)| *counter == name).map(|(_, help)| *help);
    let of_jobs = || JOBS.iter().find(|(of, counter, _)| (*of, *counter) == (group, name));
    let help = of_workers.or_else(|| of_jobs().map(|(_, _, help)| *help));
    let name = if name == "octets" { "bytes".to_owned() } else { snake(name) };
    let metric = format!("gannet_{}_{name}_total", snake(group));
    out.counter(&metric, help.unwrap_or("As in \"gannet stats\"."), &[], value);
}

/// Adds a number of bans.
fn bans(out: &mut Exposition, name: &str, value: u64) {
    match name {
        "rate-begun" => out.counter(
            "gannet_bans_begun_total",
            "Prefixes that were banned for a time because they kept on being over the rate limit.",
            &[],
            value,
        ),
        "rate-unplaced" => out.counter(
            "gannet_bans_unplaced_total",
            "Prefixes that were not banned because too many others were.",
            &[],
            value,
        ),
        source => out.gauge(
            "gannet_banned_prefixes",
            "Prefixes that are banned, by where that comes from.",
            &[("source", source)],
            value,
        ),
    }
}

/// Adds a number of settings that are changed while the server runs.
fn changes(out: &mut Exposition, name: &str, value: u64) {
    let (metric, help) = match name {
        "revision" => ("gannet_changes_revision", "The revision of changed settings that is in use."),
        "settings" => ("gannet_changed_settings", "Settings that say something else than the file."),
        "store-failed" => {
            ("gannet_changes_store_failed", "Whether settings cannot be changed: see \"gannet status\".")
        }
        "pair-wrong" => (
            "gannet_changes_pair_wrong",
            "Whether the file and the changes do not go together, so that what ran last runs.",
        ),
        "compiled" => {
            let help = "Configurations that were compiled for changes.";
            return out.counter("gannet_changes_compiled_total", help, &[], value);
        }
        outcome => {
            let (metric, help) = ("gannet_changes_total", "Changes of settings, by what became of them.");
            return out.counter(metric, help, &[("outcome", outcome)], value);
        }
    };
    out.gauge(metric, help, &[], value);
}

/// Adds a number of an effect.
fn effects(out: &mut Exposition, effect: &str, name: &str, value: u64) {
    match name {
        "waiting" => {
            let help = "Orders that wait for the effect.";
            out.gauge("gannet_effect_waiting", help, &[("effect", effect)], value);
        }
        outcome => {
            let labels = [("effect", effect), ("outcome", outcome)];
            out.counter("gannet_effect_orders_total", "What became of orders to the effect.", &labels, value);
        }
    }
}

/// Adds a number of an interface: of its program, or of a socket on one of its queues.
fn frames(out: &mut Exposition, interface: &str, name: &str, value: u64) {
    // A name of an interface may have dots.
    if let Some((interface, queue)) = interface.rsplit_once(".queue-") {
        let labels = [("interface", interface), ("queue", queue)];
        if let Some(state) = name.strip_prefix("frames-") {
            let labels = [labels[0], labels[1], ("state", state)];
            return out.gauge(
                "gannet_xdp_frames",
                "Frames of the socket's memory, by where they are.",
                &labels,
                value,
            );
        }
        if let Some(reason) = name.strip_prefix("lost-") {
            let (reason, labels) = (snake(reason), labels);
            let labels = [labels[0], labels[1], ("reason", reason.as_str())];
            let help = "Packets for the socket that the kernel dropped, by reason.";
            return out.counter("gannet_xdp_lost_packets_total", help, &labels, value);
        }
        let help = match name {
            "received" => "Packets taken from the receive ring.",
            "transmitted" => "Packets put on the transmit ring.",
            "kicks" => "System calls that had the kernel send.",
            "kicks-again" => "System calls that could not have all sent at once.",
            "kicks-failed" => "System calls to send that failed.",
            "strays" => "Numbers of frames from the kernel that made no sense.",
            "fill-invalid" => "Entries of the fill ring that the kernel did not take.",
            "transmit-invalid" => "Entries of the transmit ring that the kernel did not take.",
            "transmit-empty" => "Times that the kernel found nothing on the transmit ring.",
            "ring-entries" => {
                let help = "Entries of each ring of the socket.";
                return out.gauge("gannet_xdp_ring_entries", help, &labels, value);
            }
            _ => "As in \"gannet stats\".",
        };
        return out.counter(&format!("gannet_xdp_{}_total", snake(name)), help, &labels, value);
    }
    if interface.ends_with(".banned") {
        // As with the seconds that are left of bans.
        return;
    }
    let labels = [("interface", interface)];
    if let Some(mode) = name.strip_prefix("mode-") {
        let labels = [labels[0], ("mode", mode)];
        let help = "In which mode the interface is used; always 1.";
        return out.gauge("gannet_xdp_mode_info", help, &labels, value);
    }
    let verdict = snake(name);
    let labels = [labels[0], ("verdict", verdict.as_str())];
    out.counter(
        "gannet_xdp_program_frames_total",
        "Frames that the program saw, by what it did.",
        &labels,
        value,
    );
}

/// Returns the numbers as they are now, as [`text`] writes them. Called on a blocking thread.
pub type Collect = Arc<dyn Fn() -> String + Send + Sync>;

/// Lets the metrics be fetched until dropped; dropping ends every connection.
///
/// There is nothing to change and nothing else to read. Each connection carries one request and has
/// a bounded time, so that whoever holds connections open holds the others up for as long and no
/// longer. Errors when the runtime cannot take the socket.
pub async fn serve(listener: std::net::TcpListener, collect: Collect) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    converse_with_all(
        (CONNECTIONS_MAX, WhenFull::EndsOldest),
        || listener.accept(),
        |(stream, _), _| converse(stream, Arc::clone(&collect)),
    )
    .await
}

/// Answers the request of one connection.
async fn converse(stream: TcpStream, collect: Collect) {
    let service = service_fn(move |request| respond(request, Arc::clone(&collect)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .keep_alive(false)
        .max_buf_size(HEAD_OCTETS_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // What goes wrong here concerns this client alone, and it notices.
    let _ = timeout(CONNECTION_TIME_MAX, connection).await;
}

async fn respond(
    request: HttpRequest<Incoming>,
    collect: Collect,
) -> Result<HttpResponse<String>, Infallible> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "there is nothing to change here\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(refusal);
    }
    if request.uri().path() != PATH {
        return Ok(plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n"));
    }
    let collected = tokio::task::spawn_blocking(move || collect()).await;
    Ok(match collected {
        Ok(text) => {
            let mut response = HttpResponse::new(text);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
            response
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the numbers cannot be collected\n"),
    })
}

fn plain(status: StatusCode, text: &str) -> HttpResponse<String> {
    let mut response = HttpResponse::new(text.to_owned());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Configuration, Upstream};

    fn stats(numbers: &[(&str, &str, u64)]) -> Stats {
        let mut stats = Stats::new();
        for (group, name, value) in numbers {
            stats.entry((*group).to_owned()).or_default().insert((*name).to_owned(), *value);
        }
        stats
    }

    fn told(stats: &Stats, status: &Status, checks: &Checks, descriptions: Descriptions<'_>) -> String {
        text(&Numbers {
            stats,
            status,
            caches: &BTreeMap::new(),
            checks,
            sets: &[],
            certificates: &[],
            waits: &[],
            replies: &[],
            upstreams: &[],
            descriptions,
        })
    }

    fn check(numbers: &[(&str, &str, u64)], expect: &str) {
        let own: Descriptions<'_> = &[("engine", &[("cache_hits", "Queries answered from the cache.")])];
        let text = told(&stats(numbers), &Status::default(), &Checks::default(), own);
        assert!(text.contains(expect), "{text}");
    }

    #[test]
    fn counters_have_their_help_and_end_in_total() {
        check(
            &[("engine", "cache_hits", 7)],
            "# HELP gannet_engine_cache_hits_total Queries answered from the cache.\n\
             # TYPE gannet_engine_cache_hits_total counter\n\
             gannet_engine_cache_hits_total 7\n",
        );
        check(&[("downloads", "octets", 7)], "\ngannet_downloads_bytes_total 7\n");
    }

    #[test]
    fn parts_of_one_thing_are_one_metric() {
        check(
            &[("engine", "queries_udp", 1), ("engine", "queries_tcp", 2)],
            "# TYPE gannet_queries_total counter\n\
             gannet_queries_total{transport=\"tcp\"} 2\n\
             gannet_queries_total{transport=\"udp\"} 1\n",
        );
        check(
            &[("engine", "noerror", 1), ("engine", "other_rcode", 2)],
            "gannet_replies_total{rcode=\"NOERROR\"} 1\ngannet_replies_total{rcode=\"other\"} 2\n",
        );
        check(&[("effect.router", "waiting", 3)], "\ngannet_effect_waiting{effect=\"router\"} 3\n");
    }

    #[test]
    fn interfaces_with_dots_keep_their_names() {
        check(&[("xdp.eth0.7", "taken", 5)], "{interface=\"eth0.7\",verdict=\"taken\"} 5\n");
        check(
            &[("xdp.eth0.7", "mode-native", 1)],
            "\ngannet_xdp_mode_info{interface=\"eth0.7\",mode=\"native\"} 1\n",
        );
        check(
            &[("xdp.eth0.7.queue-3", "lost-ring-full", 5)],
            "{interface=\"eth0.7\",queue=\"3\",reason=\"ring_full\"} 5\n",
        );
    }

    #[test]
    fn prefixes_of_strangers_do_not_become_labels() {
        let stats = stats(&[("xdp.eth0.banned", "192.0.2.0/24", 5)]);
        let text = told(&stats, &Status::default(), &Checks::default(), &[]);
        assert!(!text.contains("192.0.2.0"), "{text}");
    }

    #[test]
    fn of_many_checked_records_the_first_are_told_of_one_by_one() {
        let record = |number: usize| CheckedRecord {
            check: "web".into(),
            name: format!("n{number}.example.org."),
            address: "192.0.2.1".into(),
            is_up: number.is_multiple_of(2),
        };
        let records: Vec<CheckedRecord> = (0..RECORDS_MAX + 2).map(record).chain([record(3)]).collect();
        let checks = Checks { records, made: BTreeMap::from([("web".to_owned(), [5, 2])]) };
        let text = told(&Stats::new(), &Status::default(), &checks, &[]);
        let of = |number: usize| {
            format!("{{check=\"web\",name=\"n{number}.example.org.\",address=\"192.0.2.1\"}}")
        };
        for line in [
            format!("\ngannet_check_up{} 1\n", of(2)),
            format!("\ngannet_check_up{} 0\n", of(3)),
            "\ngannet_check_records{check=\"web\",state=\"down\"} 502\n".to_owned(),
            "\ngannet_check_records{check=\"web\",state=\"up\"} 501\n".to_owned(),
            "\ngannet_checks_total{check=\"web\",outcome=\"failed\"} 2\n".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}");
        }
        assert_eq!(text.matches("gannet_check_up{").count(), RECORDS_MAX);
        assert!(!text.contains(&of(RECORDS_MAX)));
    }

    #[test]
    fn lists_are_told_by_their_place_and_not_by_their_url() {
        let fetched = |age_s| api::List {
            source: Some("https://user:secret@lists.example.org/hosts?token=secret".into()),
            is_fetched: true,
            age_s,
            failures: 3,
            ..api::List::default()
        };
        let own = api::List { source: Some("own.txt".into()), age_s: Some(1), ..api::List::default() };
        let lists = vec![own, fetched(Some(60)), fetched(None)];
        let set = api::Set { name: "ads".into(), rules: 7, lists, ..api::Set::default() };
        let numbers = Numbers {
            stats: &Stats::new(),
            status: &Status::default(),
            caches: &BTreeMap::new(),
            checks: &Checks::default(),
            sets: &[set],
            certificates: &[],
            waits: &[],
            replies: &[],
            upstreams: &[],
            descriptions: &[],
        };
        let text = text(&numbers);
        for line in [
            "gannet_set_rules{set=\"ads\"} 7\n",
            "gannet_list_age_seconds{set=\"ads\",list=\"2\"} 60\n",
            "gannet_list_present{set=\"ads\",list=\"3\"} 0\n",
            "gannet_list_failures_total{set=\"ads\",list=\"3\"} 3\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("secret") && !text.contains("list=\"1\""), "{text}");
    }

    #[test]
    fn what_would_break_a_label_is_escaped() {
        check(&[("label", "a\"b\\c\nd", 1)], r#"gannet_label_queries_total{label="a\"b\\c\nd"} 1"#);
    }

    #[test]
    fn times_are_in_seconds() {
        let upstream = Upstream {
            server: "192.0.2.1".into(),
            health: "down".into(),
            round_trip_ms: Some(12.5),
            ..Upstream::default()
        };
        let status = Status {
            upstreams: BTreeMap::from([("default".to_owned(), vec![upstream])]),
            configuration: Configuration { is_last_reload_refused: true, ..Configuration::default() },
            ..Status::default()
        };
        let text = told(&Stats::new(), &status, &Checks::default(), &[]);
        let labels = "{pool=\"default\",server=\"192.0.2.1\"}";
        for line in [
            format!("gannet_upstream_round_trip_seconds{labels} 0.012500\n"),
            format!("gannet_upstream_up{labels} 0\n"),
            "gannet_configuration_last_reload_refused 1\n".to_owned(),
        ] {
            assert!(text.contains(&line), "{text}");
        }
    }
}
