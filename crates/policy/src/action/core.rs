//! Which way a query goes, and whom it asks.

use std::path::PathBuf;
use std::time::Duration;

use diagnostic::At;
use engine::ops::quickest::PORTS_MAX;
use engine::ops::rewrite::Style;
use engine::ops::split::BRANCHES_MAX;
use values::{Misread, Read};
use wire::{NameBuf, Prefix, Prefix64, Rcode};

use super::edit::ttl_time;
use super::{Action, Meaning, Noun, Reference, Row};
use crate::arguments::{Arguments, Reported, label, word};
use crate::condition;

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Core {
    /// Answer from a cache; fill it with what the steps after it bring.
    Cache(At<String>),
    /// The same in another way.
    CacheWith {
        /// The cache.
        name: At<String>,
        /// Whether the query goes on with what the cache holds.
        continues: bool,
        /// Whether queries without RD are answered, too.
        without_rd: bool,
    },
    /// Ask an upstream group.
    Forward(At<String>),
    /// Ask some servers of an upstream group.
    ForwardTo {
        /// The group.
        group: At<String>,
        /// The names of the servers.
        members: Vec<At<String>>,
    },
    /// Have a resolver find the answer.
    Recurse(At<String>),
    /// Run a policy or ask a group, and another if that fails or takes long.
    Fallback(Fallback),
    /// Run policies and ask groups at once; the first usable answer counts.
    Race {
        /// Which.
        sides: Vec<At<String>>,
        /// What is not usable.
        unusable: Unusable,
    },
    /// Run a policy as a query of its own, and go on with its answer.
    Ask(At<String>),
    /// Ask for another name in what follows.
    Rename {
        /// Whether the client sees a CNAME.
        with_alias: bool,
        /// How long clients keep that; `None`: as long as what it leads to.
        ttl: Option<Duration>,
        /// Whether the answer sets AA.
        authoritative: bool,
        /// Which name.
        to: Renaming,
    },
    /// Hide addresses of one family where there are some of the other.
    Prefer {
        /// The family that is not hidden.
        family: Family,
        /// How long an answer waits for whether it is to be hidden.
        wait: Duration,
    },
    /// Make IPv6 addresses out of IPv4 ones.
    Dns64 {
        /// What they begin with; empty: the well-known prefix.
        prefixes: Vec<At<Prefix>>,
        /// IPv6 addresses that count as none, besides IPv4 in disguise.
        exclude: Vec<Prefix>,
        /// Whether other IPv6 addresses count only where there is no IPv4 address.
        ignores_ipv6: bool,
        /// Whether clients get them that set CD and DO.
        ignores_cd: bool,
        /// What clients see of the reverse names of IPv4 addresses.
        pointers: Style,
    },
    /// Wait.
    Sleep(Duration),
    /// Put addresses first that connect fastest.
    Quickest {
        /// Ports to connect to.
        ports: Vec<u16>,
        /// How long that may take.
        timeout: Duration,
        /// How long a measurement is good.
        keep: Duration,
    },
    /// Drop the answer.
    Forget,
    /// Cut the answer over UDP.
    Truncate,
    /// Run another policy and do not come back.
    Goto(At<String>),
    /// End: send what there is.
    Accept,
    /// Put a mark on the query.
    Mark(u8),
    /// Takes a mark away; all of them if none is named.
    Unmark(Option<u8>),
    /// Run another policy, then go on here.
    Call(At<String>),
    /// Go back to where this policy was called.
    Return,
}

/// How one way stands in for another.
#[derive(Clone, Debug, PartialEq)]
pub struct Fallback {
    /// The first choice, and the other.
    pub sides: [At<String>; 2],
    /// When the first is slow.
    pub after: Duration,
    /// Whether being slow is a reason.
    pub on_slow: bool,
    /// Whether both begin at once.
    pub always: bool,
    /// Answers that are a reason.
    pub unusable: Unusable,
}

/// Answers that do not count while there may be better ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Response codes.
    pub rcodes: Vec<Rcode>,
    /// Every response code that is no answer.
    pub every: bool,
    /// No answer at all.
    pub failures: bool,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Which name is asked for instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Renaming {
    /// This one.
    To(NameBuf),
    /// This one in place of that one; with names below it, if both are suffixes.
    From(At<Pattern>, At<Pattern>),
    /// What a file says.
    Map(At<PathBuf>),
}

/// A name, alone or with everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The name.
    pub name: NameBuf,
    /// Whether names below it are meant too.
    pub covers_below: bool,
}

/// A reason to take another way.
#[derive(Clone, Copy)]
enum Reason {
    Rcode(Rcode),
    Unusable,
    Timeout,
    Error,
}

/// Words for reasons besides response codes.
const REASONS: &[(&str, Reason)] =
    &[("unusable", Reason::Unusable), ("timeout", Reason::Timeout), ("error", Reason::Error)];
/// The resolver of whoever names none.
const DEFAULT_RESOLVER: &str = "default";
/// The default time after which a first choice is slow.
const SLOW_DEFAULT: Duration = Duration::from_millis(500);
/// The longest sleep, and the longest time to wait for a first choice.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn reason(text: &str) -> Read<Reason> {
    if let Some((_, reason)) = REASONS.iter().find(|(word, _)| *word == text) {
        return Ok(*reason);
    }
    values::rcode(text).map(Reason::Rcode).map_err(|misread| Misread {
        expected: misread.expected.map(|rcodes| format!("unusable, timeout, error, {rcodes}")),
        ..misread
    })
}

fn wait(text: &str) -> Read<Duration> {
    let time = values::duration(text)?;
    if time > WAIT_MAX || time.is_zero() {
        return Err(Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" is not a time to wait"),
            expected: Some("1ms to 60s".to_owned()),
            hint: None,
        });
    }
    Ok(time)
}

/// Reads reasons; says whether being slow is one.
fn reasons(given: Option<Vec<At<Reason>>>) -> (Unusable, bool) {
    let mut unusable = Unusable { rcodes: Vec::new(), every: given.is_none(), failures: given.is_none() };
    let mut on_slow = given.is_none();
    for reason in given.into_iter().flatten() {
        match reason.value {
            Reason::Rcode(rcode) => unusable.rcodes.push(rcode),
            Reason::Unusable => unusable.every = true,
            Reason::Timeout => on_slow = true,
            Reason::Error => unusable.failures = true,
        }
    }
    // A first choice that never answers fails, sooner or later; whoever says "timeout" means that,
    // too.
    unusable.failures |= on_slow;
    (unusable, on_slow)
}

fn fallback(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let after = arguments.keyed("after", wait)?;
    let on = arguments.keyed_list("on", reason)?;
    let always = arguments.keyed("standby", word(&[("late", false), ("always", true)]))?;
    let sides = [arguments.label()?, arguments.label()?];
    let (unusable, on_slow) = reasons(on);
    if let Some(after) = &after
        && !on_slow
    {
        return Err(arguments.wrong(
            after.span,
            "the time says nothing: being slow is no reason here",
            "\"timeout\" after \"on\"",
        ));
    }
    Ok(Action::Core(Core::Fallback(Fallback {
        sides,
        after: after.map_or(SLOW_DEFAULT, |at| at.value),
        on_slow,
        always: always.is_some_and(|at| at.value),
        unusable,
    })))
}

fn race(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let on = arguments.keyed_list("on", reason)?;
    let timeout =
        on.iter().flatten().find(|reason| matches!(reason.value, Reason::Timeout)).map(|at| at.span);
    if let Some(span) = timeout {
        return Err(arguments.wrong(
            span,
            "a race waits for the first usable answer, however long",
            "unusable, error or response codes",
        ));
    }
    let sides = arguments.rest(label)?;
    if !(2..=BRANCHES_MAX).contains(&sides.len()) {
        let place = arguments.place();
        return Err(arguments.wrong(
            place,
            format!("{} in a race", sides.len()),
            &format!("2 to {BRANCHES_MAX}"),
        ));
    }
    let (unusable, _) = reasons(on);
    Ok(Action::Core(Core::Race { sides, unusable }))
}

/// Reads `example.org`, `exact:example.org`, `suffix:example.org` or `*.example.org`, which means
/// the same.
pub fn pattern(text: &str) -> Read<Pattern> {
    let (name, covers_below) = match text.split_once(':') {
        Some(("exact", name)) => (name, false),
        Some(("suffix", name)) => (name, true),
        _ => (text.strip_prefix("*.").unwrap_or(text), text.starts_with("*.")),
    };
    let start = text.len() - name.len();
    match values::name(name) {
        Ok(name) => Ok(Pattern { name, covers_below }),
        Err(misread) => Err(Misread { at: start + misread.at.start..start + misread.at.end, ..misread }),
    }
}

fn rename(arguments: &mut Arguments<'_>, with_alias: bool) -> Result<Action, Reported> {
    let map = arguments.keyed("map", |text| Ok(PathBuf::from(text)))?;
    let from = arguments.keyed("from", pattern)?;
    let ttl = if with_alias { arguments.keyed("ttl", ttl_time)?.map(|at| at.value) } else { None };
    let authoritative = with_alias && arguments.flag("authoritative")?;
    let to = match (map, from) {
        (Some(map), None) => Renaming::Map(map),
        (None, Some(from)) => {
            let Some(to) = arguments.keyed("to", pattern)? else { return Err(arguments.missing()) };
            if to.value.covers_below && !from.value.covers_below {
                return Err(arguments.wrong(
                    to.span,
                    "one name cannot become many",
                    "a name, or a suffix after \"from\" too",
                ));
            }
            Renaming::From(from, to)
        }
        (None, None) => match arguments.optional(pattern)? {
            None => return Err(arguments.missing()),
            Some(first) => match arguments.optional(pattern)? {
                None if first.value.covers_below => {
                    return Err(arguments.wrong(
                        first.span,
                        "many names cannot stand for one",
                        "one name, or two patterns",
                    ));
                }
                None => Renaming::To(first.value.name),
                Some(to) if to.value.covers_below && !first.value.covers_below => {
                    return Err(arguments.wrong(
                        to.span,
                        "one name cannot become many",
                        "a name, or a suffix before it too",
                    ));
                }
                Some(to) => Renaming::From(first, to),
            },
        },
        (Some(map), Some(_)) => {
            return Err(arguments.wrong(map.span, "either a map or a pattern", "one of them"));
        }
    };
    Ok(Action::Core(Core::Rename { with_alias, ttl, authoritative, to }))
}

fn prefer(arguments: &mut Arguments<'_>, family: Family) -> Result<Action, Reported> {
    let wait = arguments.keyed("wait", wait)?.map_or(SLOW_DEFAULT, |at| at.value);
    Ok(Action::Core(Core::Prefer { family, wait }))
}

/// What clients see of the reverse name of an IPv4 address: by default an alias, as RFC 6147 §5.3.1
/// has it.
const ALIAS: Style = Style::Cname { ttl: None, authoritative: false };
const POINTERS: &[(&str, Style)] = &[("alias", ALIAS), ("direct", Style::Restored)];

fn dns64(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let exclude = arguments.keyed_list("exclude", values::prefix)?.unwrap_or_default();
    let ignores_ipv6 = arguments.flag("ignore-ipv6")?;
    let ignores_cd = arguments.flag("ignore-cd")?;
    let pointers = arguments.keyed("pointers", word(POINTERS))?.map_or(ALIAS, |at| at.value);
    let prefixes = arguments.rest_or_none(values::prefix)?;
    for prefix in &prefixes {
        if Prefix64::of(prefix.value).is_none() {
            let text = prefix.value.to_string();
            return Err(arguments.wrong(
                prefix.span,
                format!("\"{text}\" cannot hold IPv4 addresses"),
                "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052 §2.2)",
            ));
        }
    }
    if let Some(wrong) = exclude.iter().find(|prefix| prefix.value.address().is_ipv4()) {
        return Err(arguments.wrong(
            wrong.span,
            "IPv4 addresses are not what is looked for",
            "an IPv6 prefix",
        ));
    }
    let exclude = exclude.into_iter().map(|at| at.value).collect();
    Ok(Action::Core(Core::Dns64 { prefixes, exclude, ignores_ipv6, ignores_cd, pointers }))
}

fn port(text: &str) -> Read<u16> {
    text.parse().ok().filter(|&port| port != 0).ok_or_else(|| Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" is not a port"),
        expected: Some("1 to 65535".to_owned()),
        hint: None,
    })
}

fn quickest(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let ports = arguments.keyed_list("port", port)?;
    if let Some(last) = ports.iter().flatten().nth(PORTS_MAX) {
        return Err(arguments.wrong(last.span, "one port too many", &format!("at most {PORTS_MAX}")));
    }
    let timeout = arguments.keyed("timeout", wait)?.map_or(Duration::from_millis(600), |at| at.value);
    let keep = arguments.keyed("keep", values::duration)?.map_or(Duration::from_secs(3600), |at| at.value);
    let ports = ports.map_or(vec![443, 80], |ports| ports.into_iter().map(|at| at.value).collect());
    Ok(Action::Core(Core::Quickest { ports, timeout, keep }))
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "cache",
        arguments: "NAME, [continue], [without-rd]",
        text: "Answers from the cache of that name, and ends; otherwise what the steps after it bring is kept there. With \
               `continue`, the steps after it see what the cache holds, and may change it for this client. Queries \
               without RD get REFUSED there; with `without-rd` they get what the cache holds, which shows their clients \
               what others asked for.",
        read: |arguments| {
            let (continues, without_rd) = (arguments.flag("continue")?, arguments.flag("without-rd")?);
            let name = arguments.label()?;
            Ok(Action::Core(match continues || without_rd {
                true => Core::CacheWith { name, continues, without_rd },
                false => Core::Cache(name),
            }))
        },
    },
    Row {
        word: "forward",
        arguments: "NAME, [members NAME|…]",
        text: "Asks the upstream group of that name, or only those of its servers that have these names.",
        read: |arguments| {
            let members = arguments.keyed_list("members", label)?;
            let group = arguments.label()?;
            Ok(Action::Core(match members {
                None => Core::Forward(group),
                Some(members) => Core::ForwardTo { group, members },
            }))
        },
    },
    Row {
        word: "recurse",
        arguments: "[NAME]",
        text: "Finds the answer by asking the servers of zones, from the root down, as the resolver of that name does; the one \
               called `default` if nothing is said.",
        read: |arguments| {
            let name = arguments.optional(label)?;
            let default = At { value: DEFAULT_RESOLVER.to_owned(), span: arguments.place() };
            Ok(Action::Core(Core::Recurse(name.unwrap_or(default))))
        },
    },
    Row {
        word: "fallback",
        arguments: "FIRST, SECOND, [after TIME], [on unusable|timeout|error|RCODE…], [standby late|always]",
        text: "Runs the first policy or asks the first group, and goes on with its answer. The second steps in when the \
               first has failed, or has had its time (500ms if nothing is said); then the first usable answer counts. \
               `on` says what failing is: every response code that is no answer (`unusable`), being slow (`timeout`), \
               no answer at all (`error`), or certain codes; all three if nothing is said. A bad answer never beats a \
               good one. With `standby always` both begin at once, and the second's answer is kept ready. Marks that a \
               branch sets stay in it.",
        read: fallback,
    },
    Row {
        word: "race",
        arguments: "NAME, NAME…, [on unusable|error|RCODE…]",
        text: "Runs these policies and asks these groups, two to four, at once, and goes on with the first usable answer; \
               `on` says what is not usable.",
        read: race,
    },
    Row {
        word: "ask",
        arguments: "NAME",
        text: "Runs another policy as a query of its own, and goes on with its answer. Caches in there keep what that \
               policy came to, not what the steps after this one make of it: so these can change the same answer for \
               some clients and not for others.",
        read: |arguments| Ok(Action::Core(Core::Ask(arguments.label()?))),
    },
    Row {
        word: "redirect",
        arguments: "NAME | PATTERN, NAME | map PATH, [ttl TIME, authoritative]",
        text: "What follows asks for this name instead; the client gets a CNAME to it and its records. It has their TTL, or \
               `ttl`. With two, only \
               names that fit the first: `redirect(*.old.example, *.new.example)`. A map is a file with a pattern and a \
               name on each line. With `authoritative` AA is set. The query ends with the answer.",
        read: |arguments| rename(arguments, true),
    },
    Row {
        word: "rewrite",
        arguments: "NAME | PATTERN, NAME | map PATH",
        text: "Like `redirect`, but the records come back under the name that was asked for.",
        read: |arguments| rename(arguments, false),
    },
    Row {
        word: "prefer-ipv4",
        arguments: "[wait TIME]",
        text: "What follows looks up both families when IPv6 addresses are asked for; if there are IPv4 addresses, there \
               seem to be no others. An answer waits for that at most so long (500ms).",
        read: |arguments| prefer(arguments, Family::V4),
    },
    Row {
        word: "prefer-ipv6",
        arguments: "[wait TIME]",
        text: "The same the other way round.",
        read: |arguments| prefer(arguments, Family::V6),
    },
    Row {
        word: "dns64",
        arguments: "[PREFIX…], [exclude PREFIX|…], [ignore-ipv6], [ignore-cd], [pointers alias|direct]",
        text: "What follows looks up IPv4 addresses where there are no IPv6 ones, and makes some behind these prefixes \
               (`64:ff9b::/96` if nothing is said; RFC 6147). IPv6 addresses in `exclude` count as none, as does IPv4 in \
               disguise (`::ffff:0:0/96`); with `ignore-ipv6` all do where there is an IPv4 address. \
               Clients that validate (CD with DO) get what there is, unless it says `ignore-cd`. Reverse names of such addresses are found too: with an alias to that of the IPv4 address, or with its records \
               themselves (`pointers direct`).",
        read: dns64,
    },
    Row {
        word: "sleep",
        arguments: "TIME",
        text: "Waits so long, at most a minute, and goes on.",
        read: |arguments| Ok(Action::Core(Core::Sleep(arguments.positional(wait)?.value))),
    },
    Row {
        word: "quickest",
        arguments: "[port NUMBER|…], [timeout TIME], [keep TIME]",
        text: "Puts the addresses of the answer first that connect fastest over TCP (to port 443, else 80), and last those that do \
               not connect. No query waits for that: an address is measured behind the first answer that has it, on \
               each worker, and answers after that are sorted for as long as the measurement is kept (an hour; a minute \
               if nothing connected). Sorts what is there: after `forward`, or after `cache(NAME, continue)`.",
        read: quickest,
    },
    Row {
        word: "forget",
        arguments: "",
        text: "Drops the answer there is, and goes on without one.",
        read: |_| Ok(Action::Core(Core::Forget)),
    },
    Row {
        word: "truncate",
        arguments: "",
        text: "Cuts the answer there is for clients that asked over UDP, so that they ask again over TCP.",
        read: |_| Ok(Action::Core(Core::Truncate)),
    },
    Row {
        word: "accept",
        arguments: "",
        text: "Ends: the answer so far is sent.",
        read: |_| Ok(Action::Core(Core::Accept)),
    },
    Row {
        word: "mark",
        arguments: "NUMBER",
        text: "Puts a mark, 0 to 63, on the query; conditions can look at it.",
        read: |arguments| Ok(Action::Core(Core::Mark(arguments.positional(condition::mark)?.value))),
    },
    Row {
        word: "unmark",
        arguments: "[NUMBER]",
        text: "Takes this mark away, or all marks if none is named.",
        read: |arguments| {
            let mark = arguments.optional(condition::mark)?;
            Ok(Action::Core(Core::Unmark(mark.map(|mark| mark.value))))
        },
    },
    Row {
        word: "call",
        arguments: "NAME",
        text: "Runs the policy of that name and goes on here, unless it ended the query.",
        read: |arguments| Ok(Action::Core(Core::Call(arguments.label()?))),
    },
    Row {
        word: "goto",
        arguments: "NAME",
        text: "Runs the policy of that name and does not come back; its `return` ends the query.",
        read: |arguments| Ok(Action::Core(Core::Goto(arguments.label()?))),
    },
    Row {
        word: "return",
        arguments: "",
        text: "Goes back to where this policy was called; in `main`, ends.",
        read: |_| Ok(Action::Core(Core::Return)),
    },
];

impl Core {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Cache(name) => Meaning::Keeps { cache: &name.value, continues: false },
            Self::CacheWith { name, continues, .. } => {
                Meaning::Keeps { cache: &name.value, continues: *continues }
            }
            Self::Forward(group) | Self::ForwardTo { group, .. } => Meaning::Asks(&group.value),
            Self::Recurse(resolver) => Meaning::Resolves(&resolver.value),
            Self::Fallback(fallback) => Meaning::Runs(fallback.sides.iter().collect()),
            Self::Race { sides, .. } => Meaning::Runs(sides.iter().collect()),
            Self::Ask(name) => Meaning::Runs(vec![name]),
            Self::Accept => Meaning::Ends,
            Self::Mark(_) | Self::Unmark(_) | Self::Sleep(_) => Meaning::Passes,
            Self::Rename { with_alias: true, .. } => Meaning::Steers("redirect"),
            Self::Rename { with_alias: false, .. } => Meaning::Steers("rewrite"),
            Self::Prefer { family: Family::V4, .. } => Meaning::Steers("prefer-ipv4"),
            Self::Prefer { family: Family::V6, .. } => Meaning::Steers("prefer-ipv6"),
            Self::Dns64 { .. } => Meaning::Steers("dns64"),
            Self::Quickest { .. } => Meaning::Changes("quickest"),
            Self::Truncate => Meaning::Changes("truncate"),
            Self::Forget => Meaning::Forgets,
            Self::Call(name) => Meaning::Calls(name),
            Self::Goto(name) => Meaning::Goes(name),
            Self::Return => Meaning::Returns,
        }
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Cache(name) | Self::CacheWith { name, .. } => vec![Reference { noun: Noun::Cache, name }],
            Self::Forward(name) | Self::ForwardTo { group: name, .. } => {
                vec![Reference { noun: Noun::Group, name }]
            }
            Self::Recurse(name) => vec![Reference { noun: Noun::Resolver, name }],
            Self::Fallback(fallback) => ways(&fallback.sides),
            Self::Race { sides, .. } => ways(sides),
            Self::Ask(name) => ways(std::slice::from_ref(name)),
            Self::Call(name) | Self::Goto(name) => vec![Reference { noun: Noun::Policy, name }],
            Self::Accept
            | Self::Mark(_)
            | Self::Unmark(_)
            | Self::Return
            | Self::Rename { .. }
            | Self::Prefer { .. }
            | Self::Dns64 { .. }
            | Self::Sleep(_)
            | Self::Quickest { .. }
            | Self::Forget
            | Self::Truncate => Vec::new(),
        }
    }
}

fn ways(sides: &[At<String>]) -> Vec<Reference<'_>> {
    sides.iter().map(|name| Reference { noun: Noun::Way, name }).collect()
}
