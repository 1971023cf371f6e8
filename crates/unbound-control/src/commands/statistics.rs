//! `stats` and its relatives: numbers of each worker and of all, in the other program's names.
//!
//! Most are what the workers count anyway; queries by type and the like are counted while they are
//! to be shown. What nobody counts is zero, and the manual says which numbers those are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::server::WorkerNumbers;
use engine::details::{CODES, Detail};
use settings::UnboundStatistics;
use timers::Counted;
use tracing::info;
use wire::{Class, Opcode, Rcode, Rtype};

use super::{Call, Outcome};
use crate::channel::{Context, Zero};

/// What a response policy zone can do, in the other program's order.
const RPZ_ACTIONS: [&str; 9] = [
    "nxdomain",
    "nodata",
    "passthru",
    "drop",
    "tcp-only",
    "invalid",
    "local-data",
    "disabled",
    "cname-override",
];

/// How often it is looked whether the log is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) fn stats(call: &mut Call<'_>) -> Outcome {
    let text = shown(call.context);
    if !call.context.operator.statistics_settings().is_cumulative {
        begin_from_zero(call.context);
    }
    call.output.say(format_args!("{text}"))?;
    Ok(())
}

pub(super) fn stats_noreset(call: &mut Call<'_>) -> Outcome {
    let text = shown(call.context);
    call.output.say(format_args!("{text}"))?;
    Ok(())
}

pub(super) fn flush_stats(call: &mut Call<'_>) -> Outcome {
    begin_from_zero(call.context);
    call.ok()
}

/// Counts from now on.
pub(super) fn begin_from_zero(context: &Context) {
    let operator = &context.operator;
    let now = Zero {
        workers: operator.numbers_of_workers(),
        labels: operator.label_counts(),
        at: operator.uptime(),
    };
    operator.reset_peaks();
    *context.zero() = now;
}

/// What is counted of a worker, or of several together, since somebody began.
#[derive(Clone, Debug, Default)]
struct Numbers {
    counted: WorkerNumbers,
}

impl Numbers {
    fn since(now: &WorkerNumbers, before: Option<&WorkerNumbers>) -> Self {
        let mut counted = now.clone();
        if let Some(before) = before {
            for (name, value) in &mut counted.counters {
                *value = value.saturating_sub(before.counters.get(name).copied().unwrap_or(0));
            }
            for (count, before) in counted.waits.counts.iter_mut().zip(&before.waits.counts) {
                *count = count.saturating_sub(*before);
            }
            counted.waits.sum_us = counted.waits.sum_us.saturating_sub(before.waits.sum_us);
            counted.found_waiting = counted.found_waiting.saturating_sub(before.found_waiting);
            counted.details.subtract(&before.details);
        }
        Self { counted }
    }

    fn add(&mut self, other: &Self) {
        for (name, value) in &other.counted.counters {
            *self.counted.counters.entry(*name).or_default() += value;
        }
        for (sum, count) in self.counted.waits.counts.iter_mut().zip(&other.counted.waits.counts) {
            *sum += count;
        }
        self.counted.waits.sum_us = self.counted.waits.sum_us.wrapping_add(other.counted.waits.sum_us);
        self.counted.waiting += other.counted.waiting;
        self.counted.found_waiting += other.counted.found_waiting;
        self.counted.most_waiting = self.counted.most_waiting.max(other.counted.most_waiting);
        self.counted.queued_us_max = self.counted.queued_us_max.max(other.counted.queued_us_max);
        self.counted.zones_known += other.counted.zones_known;
        self.counted.details.add(&other.counted.details);
    }

    fn of(&self, group: &'static str, name: &'static str) -> u64 {
        self.counted.counters.get(&(group, name)).copied().unwrap_or(0)
    }

    fn engine(&self, name: &'static str) -> u64 {
        self.of("engine", name)
    }

    /// Returns whether anything came to listeners for DNSCrypt.
    fn has_dnscrypt(&self) -> bool {
        let mut all = self.counted.counters.iter();
        all.any(|((group, name), value)| *group == "listen" && name.starts_with("dnscrypt_") && *value > 0)
    }

    fn queries(&self) -> u64 {
        let all = self.counted.counters.iter();
        all.filter(|((group, name), _)| *group == "engine" && name.starts_with("queries_"))
            .map(|(_, value)| value)
            .sum()
    }

    /// Queries that waited for another server.
    fn misses(&self) -> u64 {
        self.engine("deferred")
    }

    fn hits(&self) -> u64 {
        self.queries().saturating_sub(self.misses())
    }

    fn recursions(&self) -> u64 {
        self.counted.waits.counts.iter().sum()
    }

    fn average_us(&self) -> u64 {
        self.counted.waits.sum_us / self.recursions().max(1)
    }

    fn exceeded(&self) -> u64 {
        self.of("fetch", "shed_fetching") + self.of("fetch", "shed_waiting")
    }

    /// Connections of clients that are open.
    fn connections(now: &WorkerNumbers) -> u64 {
        let of = |name| now.counters.get(&("listen", name)).copied().unwrap_or(0);
        let closed: u64 = now
            .counters
            .iter()
            .filter(|((group, name), _)| *group == "listen" && name.starts_with("tcp_closed_"))
            .map(|(_, value)| value)
            .sum();
        of("tcp_accepted").saturating_sub(closed + of("tls_slow") + of("tls_failed"))
    }

    /// Writes the lines that each worker has, and all together.
    fn write(&self, whose: &str, connections: u64, out: &mut String) {
        let mut line = |name: &str, value: u64| out.push_str(&format!("{whose}.{name}={value}\n"));
        line("num.queries", self.queries());
        line("num.queries_ip_ratelimited", self.engine("limited"));
        line("num.queries_cookie_valid", self.engine("cookies_valid"));
        line("num.queries_cookie_client", self.engine("cookies_client"));
        line("num.queries_cookie_invalid", self.engine("cookies_invalid"));
        line("num.queries_discard_timeout", self.of("fetch", "discarded"));
        line("num.queries_replyaddr_limit", 0);
        line("num.queries_wait_limit", self.of("fetch", "shed_client"));
        line("num.cachehits", self.hits());
        line("num.cachemiss", self.misses());
        line("num.prefetch", self.engine("prefetches"));
        line("num.queries_timed_out", self.of("listen", "udp_timed_out"));
        line("query.queue_time_us.max", self.counted.queued_us_max);
        line("num.expired", self.engine("cache_stale"));
        line("num.recursivereplies", self.recursions());
        // There these lines are only in programs that were built for DNSCrypt.
        if self.has_dnscrypt() {
            line("num.dnscrypt.crypted", self.of("listen", "dnscrypt_queries"));
            line("num.dnscrypt.cert", self.of("listen", "dnscrypt_certificates"));
            line("num.dnscrypt.cleartext", self.of("listen", "dnscrypt_cleartext"));
            line("num.dnscrypt.malformed", self.of("listen", "dnscrypt_malformed"));
        }
        line("num.dns_error_reports", self.of("resolver", "reports"));
        let _ =
            writeln!(out, "{whose}.requestlist.avg={}", average(self.counted.found_waiting, self.misses()));
        let mut line = |name: &str, value: u64| out.push_str(&format!("{whose}.{name}={value}\n"));
        line("requestlist.max", self.counted.most_waiting);
        line("requestlist.overwritten", self.of("fetch", "shed_oldest"));
        line("requestlist.exceeded", self.exceeded());
        line("requestlist.current.all", self.counted.waiting);
        line("requestlist.current.user", self.counted.waiting);
        line("requestlist.current.replies", self.counted.waiting);
        let _ = writeln!(out, "{whose}.recursion.time.avg={}", seconds(self.average_us()));
        let _ = writeln!(out, "{whose}.recursion.time.median={}", median(&self.counted.waits));
        let _ = writeln!(out, "{whose}.tcpusage={connections}");
    }
}

/// Types without a mnemonic in the other program.
const NUMBERED_TYPES: [u8; 10] = [56, 57, 66, 67, 68, 100, 101, 102, 103, 128];

/// Returns a type as the other program writes it.
fn type_word(number: u8) -> String {
    match NUMBERED_TYPES.contains(&number) {
        true => format!("TYPE{number}"),
        false => Rtype(number.into()).to_string(),
    }
}

/// Returns an opcode as the other program writes it: it has no names for those after UPDATE.
fn opcode_word(code: u8) -> String {
    if Opcode(code) > Opcode::UPDATE { format!("OPCODE{code}") } else { Opcode(code).to_string() }
}

/// Returns a response code as the other program writes it: NOTIMP is another word there, and those
/// after NOTZONE have no names.
fn rcode_word(rcode: Rcode) -> String {
    match rcode {
        Rcode::NOTIMP => "NOTIMPL".to_owned(),
        _ if rcode > Rcode::NOTZONE => format!("RCODE{}", rcode.0),
        _ => rcode.to_string(),
    }
}

/// Returns an average as the other program writes it: six digits, without zeros at the end.
fn average(sum: u64, count: u64) -> f64 {
    let millionths = sum.saturating_mul(1_000_000) / count.max(1);
    millionths as f64 / 1_000_000.0
}

/// Returns microseconds as seconds.
fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Returns the median of what is in buckets, in seconds: as if what is in one were spread evenly.
fn median(counted: &Counted) -> String {
    let half = counted.counts.iter().sum::<u64>() as f64 / 2.0;
    if half == 0.0 {
        return "0".to_owned();
    }
    let (mut below, mut from) = (0.0, 0.0);
    for (power, &count) in counted.counts.iter().enumerate() {
        let to = 2f64.powi(i32::try_from(power).unwrap_or(i32::MAX));
        let count = count as f64;
        if count > 0.0 && below + count >= half {
            let us = from + (to - from) * (half - below) / count;
            return format!("{}", us.round() / 1_000_000.0);
        }
        below += count;
        from = to;
    }
    "0".to_owned()
}

/// Returns all lines.
fn shown(context: &Context) -> String {
    let operator = &context.operator;
    let settings = operator.statistics_settings();
    let (now, uptime) = (operator.numbers_of_workers(), operator.uptime());
    let zero = context.zero().clone();
    let mut out = String::new();
    let (mut total, mut connections) = (Numbers::default(), 0);
    for (index, worker) in now.iter().enumerate() {
        let numbers = Numbers::since(worker, zero.workers.get(index));
        let own = Numbers::connections(worker);
        numbers.write(&format!("thread{index}"), own, &mut out);
        connections += own;
        total.add(&numbers);
    }
    total.write("total", connections, &mut out);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for (name, time) in [("now", since_1970), ("up", uptime), ("elapsed", uptime.saturating_sub(zero.at))] {
        let _ = writeln!(out, "time.{name}={}.{:06}", time.as_secs(), time.subsec_micros());
    }
    if settings.is_extended {
        let mut labels = operator.label_counts();
        for (label, count) in &mut labels {
            *count = count.saturating_sub(zero.labels.get(label).copied().unwrap_or(0));
        }
        extended(context, (&total, &labels), settings, &mut out);
    }
    out
}

fn extended(
    context: &Context,
    (total, labels): (&Numbers, &BTreeMap<String, u64>),
    settings: UnboundStatistics,
    out: &mut String,
) {
    let operator = &context.operator;
    let caches = operator.cache_stats();
    let tables = operator.resolver_stats(None).unwrap_or_default();
    let rrsets = || tables.iter().filter(|(name, _)| *name != "all servers").map(|(_, stats)| stats);
    let mut line = |name: &str, value: u64| out.push_str(&format!("{name}={value}\n"));
    line("mem.cache.rrset", rrsets().map(|stats| stats.octets).sum());
    line("mem.cache.message", caches.values().map(|stats| stats.octets).sum());
    for name in ["iterator", "validator", "respip", "subnet"] {
        line(&format!("mem.mod.{name}"), 0);
    }
    for name in ["streamwait", "http.query_buffer", "http.response_buffer", "quic"] {
        line(&format!("mem.{name}"), 0);
    }
    histogram(&total.counted.waits, &mut line);
    let detail = |detail| total.counted.details.of(detail);
    let mut may_be_left_out = |name: &str, value: u64| {
        if value > 0 || !settings.inhibits_zero {
            line(name, value);
        }
    };
    for number in 0..=u8::MAX {
        let name = format!("num.query.type.{}", type_word(number));
        may_be_left_out(&name, detail(Detail::Type(Some(number))));
    }
    may_be_left_out("num.query.type.other", detail(Detail::Type(None)));
    for number in 0..=u8::MAX {
        let name = format!("num.query.class.{}", Class(number.into()));
        may_be_left_out(&name, detail(Detail::Class(Some(number))));
    }
    may_be_left_out("num.query.class.other", detail(Detail::Class(None)));
    for code in 0..CODES {
        may_be_left_out(&format!("num.query.opcode.{}", opcode_word(code)), detail(Detail::Opcode(code)));
    }
    let sent = |name| total.of("fetch", name) + total.of("resolver", name);
    line("num.query.tcp", total.engine("queries_tcp") + total.engine("queries_tls"));
    line("num.query.tcpout", sent("sent_tcp"));
    line("num.query.udpout", sent("sent_udp"));
    line("num.query.tls", total.engine("queries_tls"));
    line("num.query.tls.resume", total.of("listen", "tls_resumed"));
    line("num.query.ipv6", detail(Detail::V6));
    line("num.query.https", total.engine("queries_https") + total.engine("queries_h3"));
    line("num.query.quic", total.engine("queries_quic"));
    if total.has_dnscrypt() {
        line("num.query.dnscrypt.shared_secret.cachemiss", total.of("listen", "dnscrypt_agreed"));
        line("num.query.dnscrypt.replay", total.of("listen", "dnscrypt_replayed"));
    }
    for (place, flag) in (0..).zip(["QR", "AA", "TC", "RD", "RA", "Z", "AD", "CD"]) {
        line(&format!("num.query.flags.{flag}"), detail(Detail::Flag(place)));
    }
    line("num.query.edns.present", detail(Detail::Edns));
    line("num.query.edns.DO", detail(Detail::DnssecOk));
    for code in 0..CODES {
        let (rcode, value) = (Rcode(code.into()), detail(Detail::Rcode(code)));
        let name = rcode_word(rcode);
        if rcode <= Rcode::REFUSED || value > 0 || !settings.inhibits_zero {
            line(&format!("num.answer.rcode.{name}"), value);
        }
    }
    let mut may_be_left_out = |name: &str, value: u64| {
        if value > 0 || !settings.inhibits_zero {
            line(name, value);
        }
    };
    may_be_left_out("num.answer.rcode.nodata", detail(Detail::NoData));
    line("num.query.ratelimited", total.of("resolver", "limited"));
    line("num.answer.secure", detail(Detail::Secure));
    line("num.answer.bogus", detail(Detail::Bogus));
    line("num.rrset.bogus", total.of("resolver", "bogus"));
    line("num.valops", total.of("resolver", "signatures"));
    let (derived, nxdomain) = (total.of("resolver", "derived"), total.of("resolver", "derived_nxdomain"));
    line("num.query.aggressive.NOERROR", derived.saturating_sub(nxdomain));
    line("num.query.aggressive.NXDOMAIN", nxdomain);
    line("unwanted.queries", total.engine("denied") + total.engine("banned"));
    line("unwanted.replies", sent("mismatched"));
    line("msg.cache.count", caches.values().map(|stats| stats.entries).sum());
    line("rrset.cache.count", rrsets().map(|stats| stats.entries).sum());
    line("infra.cache.count", operator.servers_known());
    line("key.cache.count", total.counted.zones_known);
    line("msg.cache.max_collisions", 0);
    line("rrset.cache.max_collisions", 0);
    response_policies(labels, settings.inhibits_zero, &mut line);
    line("num.query.authzone.up", total.of("resolver", "own"));
    line("num.query.authzone.down", total.engine("answers_zone"));
    line("num.query.subnet", total.of("resolver", "subnets"));
    line("num.query.subnet_cache", total.engine("cache_subnets"));
    line("num.query.cachedb", total.of("resolver", "second_level_hits"));
}

/// Writes what response policy zones did, which is counted under labels: see `unbound::lower`.
fn response_policies(labels: &BTreeMap<String, u64>, inhibits_zero: bool, line: &mut impl FnMut(&str, u64)) {
    for action in RPZ_ACTIONS {
        let name = format!("rpz-{action}");
        let value = labels.get(&name).copied().unwrap_or(0);
        if value > 0 || !inhibits_zero {
            line(&format!("num.rpz.action.{name}"), value);
        }
    }
}

/// Writes the buckets: those of the other program are ours, from less than a microsecond to half a
/// million seconds.
fn histogram(counted: &Counted, line: &mut impl FnMut(&str, u64)) {
    let bound = |us: u64| format!("{:06}.{:06}", us / 1_000_000, us % 1_000_000);
    // Above a second it counts in powers of two of seconds, below in those of microseconds.
    let bounds: Vec<u64> = [0]
        .into_iter()
        .chain((0..20).map(|power| 1 << power))
        .chain((0..20).map(|power| 1_000_000 << power))
        .collect();
    for (number, pair) in bounds.windows(2).enumerate() {
        let &[from, to] = pair else { continue };
        let count = counted.counts.get(number).copied().unwrap_or(0);
        line(&format!("histogram.{}.to.{}", bound(from), bound(to)), count);
    }
}

/// Writes lines on all workers to the log: what was counted since somebody last began from zero.
pub(crate) fn log_workers(context: &Context) {
    let (now, zero) = (context.operator.numbers_of_workers(), context.zero().clone());
    let mut total = Numbers::default();
    for (index, worker) in now.iter().enumerate() {
        let numbers = Numbers::since(worker, zero.workers.get(index));
        log_worker(index, &numbers);
        total.add(&numbers);
    }
    if total.misses() > 0 {
        info!("average recursion processing time {} sec", seconds(total.average_us()));
    }
}

fn log_worker(index: usize, numbers: &Numbers) {
    info!(
        "server stats for thread {index}: {} queries, {} answers from cache, {} recursions, {} prefetch, \
         {} rejected by ip ratelimiting",
        numbers.queries(),
        numbers.hits(),
        numbers.misses(),
        numbers.engine("prefetches"),
        numbers.engine("limited"),
    );
    info!(
        "server stats for thread {index}: requestlist max {} avg {} exceeded {} jostled {}",
        numbers.counted.most_waiting,
        average(numbers.counted.found_waiting, numbers.misses()),
        numbers.exceeded(),
        numbers.of("fetch", "shed_oldest"),
    );
}

/// Writes lines on all workers to the log now and then, for as long as the configuration wants it.
pub(crate) async fn log_statistics(context: Arc<Context>) {
    let mut zero = Zero::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let uptime = context.operator.uptime();
        let settings = context.operator.statistics_settings();
        let Some(interval) = settings.interval else { continue };
        if uptime.saturating_sub(zero.at) < interval {
            continue;
        }
        let now = context.operator.numbers_of_workers();
        let before: &[WorkerNumbers] = if settings.is_cumulative { &[] } else { &zero.workers };
        let since = now.iter().enumerate().map(|(index, worker)| Numbers::since(worker, before.get(index)));
        since.enumerate().for_each(|(index, numbers)| log_worker(index, &numbers));
        zero = Zero { workers: now, at: uptime, ..Zero::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_within_its_bucket() {
        let mut counted = Counted::default();
        assert_eq!(median(&counted), "0");
        counted.counts[10] = 4;
        // Between 512 and 1024 microseconds, in the middle.
        assert_eq!(median(&counted), "0.000768");
        counted.counts[3] = 100;
        assert!(median(&counted).starts_with("0.00000"), "{}", median(&counted));
    }

    #[test]
    fn buckets_have_the_bounds_that_readers_know() {
        let mut lines = Vec::new();
        let mut counted = Counted::default();
        counted.counts[20] = 7;
        histogram(&counted, &mut |name, value| lines.push((name.to_owned(), value)));
        assert_eq!(lines.len(), 40);
        assert_eq!(lines[0].0, "histogram.000000.000000.to.000000.000001");
        assert_eq!(lines[20], ("histogram.000000.524288.to.000001.000000".to_owned(), 7));
        assert_eq!(lines[39].0, "histogram.262144.000000.to.524288.000000");
    }

    #[test]
    fn words_are_those_of_the_other_program() {
        assert_eq!(
            [1, 55, 56, 65, 66, 128].map(type_word),
            ["A", "HIP", "TYPE56", "HTTPS", "TYPE66", "TYPE128"]
        );
        assert_eq!([0, 5, 6, 15].map(opcode_word), ["QUERY", "UPDATE", "OPCODE6", "OPCODE15"]);
        let codes = [Rcode::NOERROR, Rcode::NOTIMP, Rcode::NOTZONE, Rcode(11), Rcode(15)];
        assert_eq!(codes.map(rcode_word), ["NOERROR", "NOTIMPL", "NOTZONE", "RCODE11", "RCODE15"]);
    }

    #[test]
    fn numbers_begin_at_zero_and_add_up() {
        let mut before = WorkerNumbers::default();
        before.counters.insert(("engine", "queries_udp"), 5);
        let mut now = before.clone();
        now.counters.insert(("engine", "queries_udp"), 9);
        now.counters.insert(("engine", "queries_tcp"), 2);
        now.counters.insert(("engine", "deferred"), 1);
        let since = Numbers::since(&now, Some(&before));
        assert_eq!((since.queries(), since.hits(), since.misses()), (6, 5, 1));
        let mut total = Numbers::default();
        total.add(&since);
        total.add(&since);
        assert_eq!(total.queries(), 12);
    }
}
