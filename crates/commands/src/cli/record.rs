//! Arguments of `log`: the record of queries.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ConfigArgs, LocalArgs};

/// Arguments of `log`.
#[derive(Args, Debug)]
pub struct LogArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The database, if it is neither that of the running server nor that of the configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
    /// How many lines.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) lines: u32,
    /// Only those of this client, or of the clients of a prefix.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) client: Option<recorder::Clients>,
    /// Only those for this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Also for names below it.
    #[arg(long, requires = "name")]
    pub(crate) below: bool,
    /// Only those for names that have this text in them; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Vec<String>,
    /// Only those for this name and names below it.
    #[arg(long, value_name = "NAME")]
    pub(crate) suffix: Option<String>,
    /// Only those for names that fit this regular expression somewhere.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) regex: Option<String>,
    /// Only those for names that do not have this text in them; can be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) without: Vec<String>,
    /// Not those for this name and names below it; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) without_suffix: Vec<String>,
    /// Not those for names that fit this regular expression; can be repeated.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) without_regex: Vec<String>,
    /// Only those for this type, such as `aaaa`.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(crate) qtype: Option<wire::Rtype>,
    /// Only those that came over this transport.
    #[arg(long, value_name = "TRANSPORT", value_parser = ["udp", "tcp", "tls", "https", "quic", "h3", "dnscrypt", "unix"])]
    pub(crate) transport: Option<String>,
    /// Only those with this address in the answer.
    #[arg(long, visible_alias = "address", value_name = "ADDRESS")]
    pub(crate) answer: Option<IpAddr>,
    /// Only those that waited at least this long for others, such as `200ms`.
    #[arg(long, visible_alias = "longer-than", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) slower: Option<std::time::Duration>,
    /// Not before this time: `2026-08-01T12:00`, `12:00` of today, or `30m`, `2h`, `7d` ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) since: Option<i64>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) until: Option<i64>,
    /// Only those with this response code, such as `nxdomain`; `none` for those that got no reply.
    #[arg(long, value_name = "RCODE", value_parser = parse_rcode)]
    pub(crate) rcode: Option<RcodeWord>,
    /// Only those that the policy blocked, refused or dropped.
    #[arg(long, conflicts_with = "outcome")]
    pub(crate) blocked: bool,
    /// Only those of which this became: `cached`, `stale`, `local`, `resolved`, `blocked`,
    /// `refused` or `dropped`; can be repeated.
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Vec<recorder::Outcome>,
    /// Only those that a line of this list decided.
    #[arg(long, value_name = "LIST")]
    pub(crate) list: Option<String>,
    /// Only those that this upstream answered: a group, or the address of a server.
    #[arg(long, value_name = "UPSTREAM")]
    pub(crate) upstream: Option<String>,
    /// Look for a quarter of a second at most, and print where the next command goes on; with that
    /// number, go on there.
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "newest",
        value_parser = parse_cursor, conflicts_with = "follow")]
    pub(crate) cursor: Option<Cursor>,
    /// Then print new queries until the command is interrupted.
    #[arg(short, long, conflicts_with_all = ["top", "until"])]
    pub(crate) follow: bool,
    /// Print each query's path through the policy too.
    #[arg(long)]
    pub(crate) path: bool,
    /// Count instead: the most frequent names, clients and so on of the last day (or since the hour
    /// of `--since`).
    #[arg(long, value_enum, value_name = "WHAT",
        conflicts_with_all = ["client", "name", "contains", "suffix", "regex", "without", "without_suffix",
            "without_regex", "qtype", "transport", "answer", "slower", "path", "until", "rcode", "blocked",
            "outcome", "list", "upstream", "cursor"])]
    pub(crate) top: Option<Top>,
    /// Remove this client, or the clients of a prefix, from the record of the running server
    /// instead, and from its sums.
    #[arg(long, value_name = "CLIENT", value_parser = parse_client,
        conflicts_with_all = ["config", "file", "top", "client", "name", "contains", "suffix", "regex", "without",
            "without_suffix", "without_regex", "qtype", "transport", "answer", "slower", "since", "until", "rcode",
            "blocked", "outcome", "list", "upstream", "cursor", "follow", "path"])]
    pub(crate) forget: Option<String>,
    #[command(flatten)]
    pub(crate) remote: LocalArgs,
}

/// A response code, or that there was no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RcodeWord(pub(crate) Option<u16>);

/// Where a search goes on: before the row of this number, or at the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) Option<i64>);

fn parse_cursor(text: &str) -> Result<Cursor, String> {
    match text {
        "newest" => Ok(Cursor(None)),
        digits => digits
            .parse()
            .map(|number| Cursor(Some(number)))
            .map_err(|_| "expected the number that the command before printed".to_owned()),
    }
}

fn parse_client(text: &str) -> Result<String, String> {
    text.parse::<recorder::Clients>().map(|_| text.to_owned())
}

fn parse_rcode(text: &str) -> Result<RcodeWord, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(RcodeWord(None));
    }
    let rcode = text.to_ascii_uppercase().parse::<wire::Rcode>();
    rcode.map(|rcode| RcodeWord(Some(rcode.0))).map_err(|_| "expected a response code or \"none\"".to_owned())
}

/// Reads a duration as in the configuration.
pub(super) fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    values::duration(text).map_err(|misread| misread.message)
}

fn parse_type(text: &str) -> Result<wire::Rtype, String> {
    text.to_ascii_uppercase().parse().map_err(|_| "expected a type such as AAAA".to_owned())
}

/// Reads a moment; returns it in milliseconds since 1970.
pub(super) fn parse_moment(text: &str) -> Result<i64, String> {
    use jiff::civil::{DateTime, Time};
    use jiff::{Timestamp, Zoned};
    let wrong = || "expected a time such as 2026-08-01T12:00, 12:00, or 30m, 2h or 7d ago".to_owned();
    let now = Zoned::now();
    if let Some((digits, unit)) = text.len().checked_sub(1).and_then(|at| text.split_at_checked(at))
        && let Ok(count) = digits.parse::<i64>()
        && let Some((_, seconds)) =
            [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)].into_iter().find(|(word, _)| *word == unit)
    {
        let ago = count.checked_mul(seconds * 1000).ok_or_else(wrong)?;
        return Ok(now.timestamp().as_millisecond().saturating_sub(ago));
    }
    let local = |at: DateTime| at.to_zoned(now.time_zone().clone()).map_err(|_| wrong());
    let spelt = text.replacen(' ', "T", 1);
    if let Ok(moment) = spelt.parse::<Timestamp>() {
        return Ok(moment.as_millisecond());
    }
    if let Ok(at) = spelt.parse::<DateTime>() {
        return Ok(local(at)?.timestamp().as_millisecond());
    }
    let time = text.parse::<Time>().map_err(|_| wrong())?;
    Ok(local(now.date().to_datetime(time))?.timestamp().as_millisecond())
}

/// What `log --top` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Top {
    /// Names asked for.
    Names,
    /// Names that were blocked.
    Blocked,
    /// Clients.
    Clients,
    /// What became of queries.
    Outcomes,
    /// Types.
    Types,
    /// Transports.
    Transports,
    /// Upstreams that answered.
    Upstreams,
    /// Lists that decided.
    Lists,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_three_ways() {
        assert_eq!(parse_moment("2026-08-01T12:00:00Z"), Ok(1_785_585_600_000));
        let day = parse_moment("2026-08-02T00:00").unwrap() - parse_moment("2026-08-01T00:00").unwrap();
        assert_eq!(day, 86_400_000);
        assert_eq!(parse_moment("2026-08-02").unwrap(), parse_moment("2026-08-02 00:00").unwrap());
        assert!(parse_moment("2h").unwrap() < parse_moment("1h").unwrap());
        assert!(parse_moment("00:00").is_ok());
        for text in ["", "h", "soon", "25:00", "2x", "2026-13-01T00:00"] {
            assert!(parse_moment(text).is_err(), "{text}");
        }
    }
}
