//! What the jobs run on: effects, schedules, the recorder, and what policies tell them.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use wire::Prefix;

use crate::Secret;

/// Everything for the jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    /// Effects, in the order of the file; those written into a rule come last.
    pub effects: Vec<Effect>,
    /// What is done at certain times.
    pub schedules: Vec<Schedule>,
    /// Where queries are recorded.
    pub recorder: Option<Recorder>,
    /// Who is given checkpoints of the audit log.
    pub audit_sinks: Vec<AuditSink>,
    /// Who is sent events of the server.
    pub webhooks: Vec<Webhook>,
    /// Who receives messages as dnstap.
    pub dnstap: Option<crate::dnstap::Dnstap>,
    /// What each [`EventId`](events::EventId) stands for.
    pub event_set: Vec<EventAction>,
    /// DNS servers that know the addresses of web servers; empty: the machine is asked.
    pub resolvers: Vec<SocketAddr>,
    /// The addresses of the listeners that were configured, by
    /// [`ListenerId`](engine::ListenerId).
    pub listeners: Vec<SocketAddr>,
    /// The metrics labels by [`LabelId`](events::LabelId).
    pub labels: Vec<String>,
}

/// Who is given checkpoints of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditSink {
    /// The system's log.
    Syslog,
    /// A file, to which lines are added.
    File(PathBuf),
    /// A web server, by the URL that it takes JSON at.
    Http(String),
}

impl fmt::Display for AuditSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syslog => f.write_str("syslog"),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Http(url) => f.write_str(url),
        }
    }
}

values::words! {
    /// A kind of events of the server.
    EventKind {
        /// Settings were changed while it ran.
        Change = "change",
        /// Files were read again.
        Reload = "reload",
        /// An upstream went down or came back.
        Upstream = "upstream",
        /// A list was fetched, or could not be.
        List = "list",
        /// A certificate was ordered, or could not be.
        Certificate = "certificate",
        /// Log-ins of a minute.
        Login = "login",
        /// A zone of another server was transferred, could not be, or has expired.
        Zone = "zone",
    }
}

/// Who is sent events of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// Where events go.
    pub target: WebhookTarget,
    /// The kinds that are wanted; all when empty.
    pub kinds: Vec<EventKind>,
    /// What events are signed with.
    pub secret: Secret,
    /// What they were signed with before: they are signed with both while the secret changes.
    pub previous_secret: Option<Secret>,
    /// Certificates of authorities that the receiver is believed by, in place of the usual ones.
    pub ca: Option<PathBuf>,
    /// How long the receiver may take.
    pub patience: Duration,
    /// How long an event is tried again before it is given up.
    pub retry_for: Duration,
}

impl Webhook {
    /// Returns whether events of a kind are wanted.
    pub fn wants(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted.word() == kind)
    }
}

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTarget {
    /// To a URL, which may hold secrets.
    Url(String),
    /// To what listens on a Unix socket.
    Unix(PathBuf),
}

/// An event that a policy emits for a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// An effect is to happen.
    Effect(String),
    /// It is to be recorded.
    Record,
    /// It is to be logged, with this text.
    Log(String),
    /// Lines about it go to the log, in the form of Unbound.
    Lines(QueryLines),
    /// Its name or addresses go into a set.
    Learn(Learn),
}

/// Lines of the log about a query, in the form of Unbound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryLines {
    /// One with the question.
    pub question: bool,
    /// One with the question and what became of it.
    pub reply: bool,
    /// One if it was answered SERVFAIL.
    pub failure: bool,
    /// One if that is because validation failed.
    pub bogus: bool,
    /// Whether that one says why.
    pub reason: bool,
    /// Whether the one with what became of it says where the query came to.
    pub destination: bool,
    /// One that begins with this text: the zone and what it does.
    pub zone: Option<String>,
}

/// What a set learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learn {
    /// The set.
    pub set: String,
    /// Names or addresses.
    pub what: Learned,
}

/// What of a query is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The name asked for, with what lies below it.
    Suffix,
    /// The name asked for.
    Name,
    /// The addresses of the answer.
    Addresses,
    /// The client's address.
    Client,
}

/// An effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Its name.
    pub name: String,
    /// How many queries may wait for it.
    pub queue: usize,
    /// What it does.
    pub kind: EffectKind,
}

/// What an effect does.
#[derive(Clone, Debug, PartialEq)]
pub enum EffectKind {
    /// Puts addresses into nftables sets.
    Nftset(Nftset),
    /// Puts addresses into ipsets.
    Ipset(Ipset),
    /// Keeps address lists or routes of a MikroTik router.
    Mikrotik(Mikrotik),
    /// Sends an HTTP request.
    Http(Http),
    /// Runs a program.
    Script(Script),
}

impl EffectKind {
    /// Returns whether clients may use an address as soon as they have the reply, so that it
    /// hurries.
    pub const fn is_urgent(&self) -> bool {
        match self {
            Self::Nftset(_) | Self::Ipset(_) | Self::Mikrotik(_) => true,
            Self::Http(_) | Self::Script(_) => false,
        }
    }
}

/// How long an address stays in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// As the set says, or for ever.
    None,
    /// So long.
    Fixed(Duration),
    /// As long as the answer may be kept, within bounds.
    Ttl {
        /// At least.
        min: Duration,
        /// At most.
        max: Duration,
    },
}

impl Timeout {
    /// Returns the timeout of an address whose record has this TTL.
    pub fn of(self, ttl_seconds: u32) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Fixed(time) => Some(time),
            Self::Ttl { min, max } => Some(Duration::from_secs(ttl_seconds.into()).min(max).max(min)),
        }
    }
}

/// The families of nftables' tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Both.
    Inet,
    /// Frames that are bridged.
    Bridge,
    /// Frames of one device.
    Netdev,
}

impl Family {
    /// Their words.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("ip", Self::Ip),
        ("ip6", Self::Ip6),
        ("inet", Self::Inet),
        ("bridge", Self::Bridge),
        ("netdev", Self::Netdev),
    ];

    /// Returns the kernel's number (`NFPROTO_*`).
    pub const fn number(self) -> u8 {
        match self {
            Self::Ip => 2,
            Self::Ip6 => 10,
            Self::Inet => 1,
            Self::Bridge => 7,
            Self::Netdev => 5,
        }
    }
}

/// Sets of nftables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nftset {
    /// The family of the table.
    pub family: Family,
    /// The table.
    pub table: String,
    /// The set for IPv4 addresses.
    pub set4: Option<String>,
    /// The set for IPv6 addresses.
    pub set6: Option<String>,
    /// A set that takes what it holds: the kernel knows which.
    pub set: Option<String>,
    /// Leading bits of an IPv4 address that go into the set.
    pub prefix4: u8,
    /// Leading bits of an IPv6 address that go into the set.
    pub prefix6: u8,
    /// How long they stay.
    pub timeout: Timeout,
}

/// Sets of ipset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipset {
    /// The set for IPv4 addresses.
    pub set4: Option<String>,
    /// The set for IPv6 addresses.
    pub set6: Option<String>,
    /// Leading bits of an IPv4 address that go into the set.
    pub prefix4: u8,
    /// Leading bits of an IPv6 address that go into the set.
    pub prefix6: u8,
    /// How long they stay.
    pub timeout: Timeout,
}

/// A MikroTik router.
#[derive(Clone, Debug, PartialEq)]
pub struct Mikrotik {
    /// Where its API listens.
    pub address: SocketAddr,
    /// How it is encrypted; `None`: not at all.
    pub tls: Option<RouterTls>,
    /// The user.
    pub user: String,
    /// The password.
    pub password: Secret,
    /// How long it may take for anything.
    pub patience: Duration,
    /// What marks our entries in its tables.
    pub comment: String,
    /// How long entries stay.
    pub timeout: Timeout,
    /// What is kept there.
    pub what: MikrotikWhat,
}

/// The encrypted API of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterTls {
    /// The name in its certificate; `None`: its address.
    pub name: Option<String>,
    /// Certificates that may sign it, instead of the usual ones.
    pub ca: Option<PathBuf>,
    /// Whether the certificate is checked.
    pub verifies: bool,
}

/// What is kept on a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MikrotikWhat {
    /// Entries of address lists.
    Lists {
        /// The list for IPv4 addresses.
        list4: Option<String>,
        /// The list for IPv6 addresses.
        list6: Option<String>,
        /// What is in them all the time.
        always: Vec<Prefix>,
    },
    /// Routes to single addresses.
    Routes {
        /// The gateway for IPv4 addresses.
        gateway4: Option<String>,
        /// The gateway for IPv6 addresses.
        gateway6: Option<String>,
        /// The routing table.
        table: Option<String>,
        /// The distance.
        distance: u8,
    },
}

/// An HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// Where it goes.
    pub url: Template,
    /// The method.
    pub method: Method,
    /// Header lines: names and values.
    pub headers: Vec<(String, Template)>,
    /// The body.
    pub body: Option<Template>,
    /// How long it may take altogether.
    pub patience: Duration,
    /// Certificates that sign the server's, besides those that everybody trusts.
    pub ca: Option<PathBuf>,
    /// Whether the server's certificate is checked.
    pub verifies: bool,
    /// How many at once.
    pub concurrency: usize,
}

/// Methods of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Method {
    /// Their words.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("get", Self::Get),
        ("post", Self::Post),
        ("put", Self::Put),
        ("patch", Self::Patch),
        ("delete", Self::Delete),
    ];
}

/// A program to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The program.
    pub command: PathBuf,
    /// Its arguments; no shell sees them.
    pub arguments: Vec<Template>,
    /// Environment variables, besides `PATH`.
    pub environment: Vec<(String, Template)>,
    /// Where it runs.
    pub directory: Option<PathBuf>,
    /// How long it may take.
    pub patience: Duration,
    /// How many at once.
    pub concurrency: usize,
}

/// Text with places for what a query brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub Vec<Part>);

/// A word in braces that is no field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Where it stands in the text, in octets.
    pub at: Range<usize>,
    /// The word.
    pub word: String,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a query brings no \"{}\"", self.word)
    }
}

impl std::error::Error for UnknownField {}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it stands.
    Text(String),
    /// To be filled in.
    Field(Field),
}

macro_rules! fields {
    ($($variant:ident = $word:literal $text:literal),* $(,)?) => {
        /// What a query brings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field {
            $(#[doc = $text] $variant,)*
        }

        impl Field {
            /// Every field: its word and what it is.
            pub const WORDS: &'static [(&'static str, &'static str, Self)] =
                &[$(($word, $text, Self::$variant)),*];
        }
    };
}

fields! {
    Name = "name" "The name asked for, in lower case and without its final dot.",
    Type = "type" "The type asked for.",
    Class = "class" "The class asked for.",
    Client = "client" "The client's address.",
    Port = "port" "The client's port.",
    Transport = "transport" "`udp` or `tcp`.",
    Rcode = "rcode" "The reply's code; empty if there was none.",
    Answers = "answers" "The number of records in the reply's answer section.",
    Addresses = "addresses" "The reply's addresses, separated by commas.",
    Address = "address" "The first of the addresses.",
    Address4 = "address4" "The first IPv4 address.",
    Address6 = "address6" "The first IPv6 address.",
    Ttl = "ttl" "The smallest TTL of the addresses, in seconds.",
    Waited = "waited" "How long the query waited for others, in milliseconds.",
    Time = "time" "When the reply was complete, in milliseconds since 1970.",
    Effect = "effect" "The name of the effect.",
}

impl Template {
    /// Reads `https://example.org/{name}`; `{{` is a brace, and what is no word in braces stays as
    /// it is.
    ///
    /// # Errors
    ///
    /// The first word in braces that is no field.
    pub fn parse(text: &str) -> Result<Self, UnknownField> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = from.strip_prefix("{{") {
                literal.push('{');
                rest = after;
                continue;
            }
            let inside = &from[1..];
            let end = inside.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-');
            match end.filter(|&end| end > 0 && inside[end..].starts_with('}')) {
                Some(end) => {
                    let word = &inside[..end];
                    let Some((_, _, field)) = Field::WORDS.iter().find(|(known, ..)| *known == word) else {
                        let at = text.len() - inside.len();
                        return Err(UnknownField { at: at..at + end, word: word.to_owned() });
                    };
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Field(*field));
                    rest = &inside[end + 1..];
                }
                None => {
                    literal.push('{');
                    rest = inside;
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self(parts))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(&text.replace('{', "{{"))?,
                Part::Field(field) => {
                    let word =
                        Field::WORDS.iter().find(|(_, _, known)| known == field).map(|(word, ..)| *word);
                    write!(f, "{{{}}}", word.unwrap_or(""))?;
                }
            }
        }
        Ok(())
    }
}

/// Where queries are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// The database.
    pub file: PathBuf,
    /// Whether every query is recorded that policies see, or those that reach `record`.
    pub records_all: bool,
    /// How many queries of a hundred.
    pub share_percent: u8,
    /// Whether the way through the policy is recorded.
    pub keeps_path: bool,
    /// How long records are kept.
    pub keep: Duration,
    /// How large the databases may grow together, in octets.
    pub octets_max: u64,
    /// What of clients is recorded.
    pub clients: RecordedClients,
    /// Clients of which nothing is recorded.
    pub except_clients: Vec<Prefix>,
}

/// What of clients is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedClients {
    /// Their addresses.
    #[default]
    Full,
    /// The networks that they are in: 24 bits of an IPv4 address, 56 of an IPv6 address.
    Prefix,
    /// A number that stands for an address for one day, and leads nobody back to it.
    Pseudonym,
    /// Nothing.
    None,
}

/// What the record of queries says of the steps of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFacts {
    /// For each step the file and the line where it stands, and which rule it is a step of.
    pub places: Vec<(String, u32)>,
    /// The lists of conditions, by [`list_number`](events::list_number), in ascending order.
    pub lists: Vec<(u32, String)>,
}

impl StepFacts {
    /// Adds a list, if it is not there yet.
    pub fn add_list(&mut self, label: &str) {
        let number = events::list_number(label);
        if let Err(at) = self.lists.binary_search_by_key(&number, |(known, _)| *known) {
            self.lists.insert(at, (number, label.to_owned()));
        }
    }

    /// Returns what a list is called.
    pub fn list(&self, number: u32) -> Option<&str> {
        let at = self.lists.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        self.lists.get(at).map(|(_, label)| label.as_str())
    }
}

/// Something to be done at certain times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// When, in the form of cron, with five fields.
    pub at: String,
    /// The time zone that means; `None`: the machine's own.
    pub time_zone: Option<String>,
    /// What.
    pub tasks: Vec<Task>,
}

/// What a schedule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Fetch sets anew: this one, or all that are fetched.
    Refresh(Option<String>),
    /// Write caches to their files: this one, or all that have one.
    Dump(Option<String>),
    /// Run an effect, without a query.
    Effect(String),
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refresh(name) => write!(f, "refresh({})", name.as_deref().unwrap_or("sets")),
            Self::Dump(name) => write!(f, "dump({})", name.as_deref().unwrap_or("caches")),
            Self::Effect(name) => write!(f, "effect({name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_hold_fields_and_keep_other_braces() {
        let check = |text: &str, expect: &[Part]| {
            let template = Template::parse(text).expect(text);
            assert_eq!(template.0, expect, "{text}");
            assert_eq!(Template::parse(&template.to_string()), Ok(template));
        };
        let text = |text: &str| Part::Text(text.to_owned());
        check("", &[]);
        check("a", &[text("a")]);
        check("{name}", &[Part::Field(Field::Name)]);
        check(
            "{\"n\": \"{name}\", \"a\": {}, \"t\": {ttl}}",
            &[
                text("{\"n\": \""),
                Part::Field(Field::Name),
                text("\", \"a\": {}, \"t\": "),
                Part::Field(Field::Ttl),
                text("}"),
            ],
        );
        check("{{name}", &[text("{name}")]);
        check("{", &[text("{")]);
        let unknown = Template::parse("x {nme}").expect_err("there is no such field");
        assert_eq!((unknown.at, &*unknown.word), (3..6, "nme"));
    }

    #[test]
    fn a_timeout_follows_the_answer_within_its_bounds() {
        let timeout = Timeout::Ttl { min: Duration::from_secs(60), max: Duration::from_secs(600) };
        let seconds = [5, 300, 86_400].map(|ttl| timeout.of(ttl).map(|time| time.as_secs()));
        assert_eq!(seconds, [Some(60), Some(300), Some(600)]);
        assert_eq!(Timeout::None.of(60), None);
    }
}
