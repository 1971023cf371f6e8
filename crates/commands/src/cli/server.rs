//! Arguments of the commands that look after the running server.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{
    BackupArgs, BanArgs, BansArgs, EventsArgs, ListCommand, LogArgs, LoginArgs, RemoteArgs, RestoreArgs,
    UnbanArgs, UsersCommand, parse_seconds,
};

/// What to ask of the running server.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// Apply the changed configuration to the running server.
    ///
    /// Closes no socket, empties no cache and drops no waiting query. If the file has mistakes, the
    /// running configuration stays, and the command prints the mistakes.
    Reload(ReloadArgs),
    /// Show the state of the running server: load, memory, configuration, listeners, lists,
    /// certificates, upstreams.
    Status(RemoteArgs),
    /// Print the running server's counters, by group, each with a sentence.
    Stats(StatsArgs),
    /// Show, flush or save the caches of the running server.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Show what resolvers of the running server have learned of zones and servers, or make them
    /// forget it.
    #[command(subcommand)]
    Resolver(ResolverCommand),
    /// Show the sets of the running server and their lists: rules, age, failures, next fetch.
    Lists(ListsArgs),
    /// Change lists that are kept beside the settings of the running server (setting
    /// sets.*.lists[].own).
    #[command(subcommand)]
    List(ListCommand),
    /// Show and change dynamic sets of the running server.
    #[command(subcommand)]
    Set(SetCommand),
    /// Ban an address or a prefix: its queries get no reply, also after a restart.
    ///
    /// Addresses of this machine, and those without a rate limit (setting limits.rate.exempt), are
    /// not banned.
    Ban(BanArgs),
    /// End the ban of an address or a prefix, and bans by the rate limit within it.
    ///
    /// Bans by the setting deny, and by the set of deny-set, end there.
    Unban(UnbanArgs),
    /// Show who is banned: by the configuration, a set, the rate limit, and operators.
    Bans(BansArgs),
    /// Show recorded queries, the newest first.
    ///
    /// Reads the databases of the running server; without one, those of the configuration (setting
    /// recorder.file).
    Log(LogArgs),
    /// Show what has happened to the running server: changes, reloads, upstreams, lists,
    /// certificates, log-ins, zones.
    ///
    /// The server keeps the last 1,024 events until it ends.
    Events(EventsArgs),
    /// Show the log level of the running server, or change it until the next reload or restart.
    ///
    /// The setting log.level counts again after a reload, which needs no change of the file.
    LogLevel(LogLevelArgs),
    /// Show the schedules of the running server, or start one now.
    Jobs(JobsArgs),
    /// Show the certificates that the running server orders from authorities, or order one now.
    Certificates(CertificatesArgs),
    /// Show who had what done, export that, and check an export.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Make, list and revoke tokens of the HTTP API.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Write a backup of what the server keeps, while it runs: changed settings, lists, members of
    /// sets, zones.
    Backup(BackupArgs),
    /// Check a backup, and have the next start of the server take it up.
    ///
    /// All of it comes back, or nothing. What is there now moves to a folder `before-restore-…` in
    /// the state directory.
    Restore(RestoreArgs),
    /// Print a link that logs somebody in to the HTTP API: once, within 15 minutes.
    ///
    /// Without a name it adds the first user. With one it is for a user who has lost the password.
    Login(LoginArgs),
    /// Add, list and remove users of the HTTP API, and change what they log in with.
    #[command(subcommand)]
    Users(UsersCommand),
}

/// Arguments of `certificates`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CertificatesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<CertificatesCommand>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with certificates that are ordered.
#[derive(Clone, Debug, Subcommand)]
pub enum CertificatesCommand {
    /// Show all of them: until when they hold, when they are ordered next, what failed.
    List(RemoteArgs),
    /// Show one of them.
    Show(CertificateNameArgs),
    /// Order one of them now, whenever it was due.
    ///
    /// Does not wait for the authority: show says what has become of it.
    Renew(CertificateNameArgs),
}

/// Arguments of `certificates show` and `certificates renew`.
#[derive(Args, Clone, Debug)]
pub struct CertificateNameArgs {
    /// The certificate's name in the configuration.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print the newest rows.
    Tail(AuditTailArgs),
    /// Print all rows with their hashes and MACs, one JSON object a line.
    Export(RemoteArgs),
    /// Check an export: that no row was changed, removed or put elsewhere.
    ///
    /// Needs no server. With the first key, also that each row was written by the server; with a
    /// row that was noted, or checkpoints, also that none was cut off up to them.
    Verify(AuditVerifyArgs),
    /// Print the rows that fit, of the running server or of an export.
    Search(AuditSearchArgs),
}

/// Arguments of `audit tail`.
#[derive(Args, Clone, Debug)]
pub struct AuditTailArgs {
    /// How many rows.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) lines: u64,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `audit verify`.
#[derive(Args, Clone, Debug)]
pub struct AuditVerifyArgs {
    /// The export, or - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: std::path::PathBuf,
    /// The first key: the file audit-first.key that was taken to a safe place.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<std::path::PathBuf>,
    /// A row that was noted: its number and its hash.
    #[arg(long, value_name = "NUMBER:HASH")]
    pub(crate) noted: Option<String>,
    /// A file with checkpoints, such as one of `control.audit.sinks` or a log; may be given several
    /// times.
    #[arg(long, value_name = "FILE", requires = "public_key")]
    pub(crate) checkpoint: Vec<std::path::PathBuf>,
    /// The key that checkpoints are signed with: what the log of the server says, or the file
    /// audit-sign.pub.
    #[arg(long, value_name = "KEY|FILE", requires = "checkpoint")]
    pub(crate) public_key: Option<String>,
    #[command(flatten)]
    pub(crate) output: super::OutputArgs,
}

/// Arguments of `audit search`.
#[derive(Args, Clone, Debug)]
pub struct AuditSearchArgs {
    /// An export, or - for standard input; the running server is asked without it.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<std::path::PathBuf>,
    /// Only what somebody had done whose name has this in it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) by: Option<String>,
    /// Only this, such as `config-change`, or what begins with it.
    #[arg(long, value_name = "WORD")]
    pub(crate) what: Option<String>,
    /// Only what was done with something that has this in it: a path, a zone, a name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) on: Option<String>,
    /// Only what came out like this, or begins with it: `done`, `accepted`, `refused`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) outcome: Option<String>,
    /// Not before this time: `2026-08-01T12:00`, `12:00` of today, or `30m`, `2h`, `7d` ago.
    #[arg(long, value_name = "TIME", value_parser = super::record::parse_moment)]
    pub(crate) since: Option<i64>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = super::record::parse_moment)]
    pub(crate) until: Option<i64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once: the server keeps nothing but its SHA-256.
    Add(TokenAddArgs),
    /// Print the tokens: what each may do, who made it, when it was used last.
    List(RemoteArgs),
    /// Revoke a token, at once.
    Revoke(TokenRevokeArgs),
}

/// Arguments of `token add`.
#[derive(Args, Clone, Debug)]
pub struct TokenAddArgs {
    /// What it is called, such as the program that gets it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it may do: viewer, helper, operator or admin (see api.md).
    #[arg(long, value_name = "ROLE", default_value = "viewer")]
    pub(crate) role: String,
    /// A setting that it may change, with all below it, and nothing else; can be repeated.
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// A zone that it may change, with all below it, and nothing else; can be repeated.
    #[arg(long = "zone", value_name = "ZONE")]
    pub(crate) zones: Vec<String>,
    /// An address or prefix that it is used from; can be repeated.
    #[arg(long = "from", value_name = "PREFIX")]
    pub(crate) addresses: Vec<String>,
    /// How many days it lasts [default: until it is revoked].
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    pub(crate) days: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `token revoke`.
#[derive(Args, Clone, Debug)]
pub struct TokenRevokeArgs {
    /// What it is called.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `lists`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ListsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ListsCommand>,
    /// Only this set.
    #[arg(value_name = "SET")]
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with lists.
#[derive(Clone, Debug, Subcommand)]
pub enum ListsCommand {
    /// Fetch lists from their web servers now, and wait until they are in use.
    Update(ListsUpdateArgs),
}

/// Arguments of `lists update`.
#[derive(Args, Clone, Debug)]
pub struct ListsUpdateArgs {
    /// Only the lists of this set.
    #[arg(value_name = "SET")]
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `stats`.
#[derive(Args, Clone, Debug)]
pub struct StatsArgs {
    /// Print changed counters with their rates at this interval, until the command is interrupted;
    /// in JSON, one line each time.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, conflicts_with = "prometheus")]
    pub(crate) watch: Option<Duration>,
    /// Print all metrics in the format of Prometheus (see `metrics.listen`).
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `reload`.
#[derive(Args, Clone, Debug)]
pub struct ReloadArgs {
    /// Only the lists of this set; the configuration stays as it is.
    #[arg(long, value_name = "NAME")]
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with a dynamic set.
#[derive(Debug, Subcommand)]
pub enum SetCommand {
    /// Add names, addresses or prefixes.
    Add(SetAddArgs),
    /// Remove names, addresses or prefixes.
    Del(SetArgs),
    /// Print the entries of the set, and how long each stays.
    List(SetNameArgs),
    /// Print who changed the set, the newest change first.
    History(SetHistoryArgs),
}

/// A dynamic set and how much of its history.
#[derive(Args, Clone, Debug)]
pub struct SetHistoryArgs {
    /// The set.
    #[arg(value_name = "SET")]
    pub(crate) name: String,
    /// At most so many changes.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value = "20")]
    pub(crate) count: u64,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `set add`.
#[derive(Args, Clone, Debug)]
pub struct SetAddArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// How long they stay, in seconds [default: the set's ttl].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ttl: Option<u64>,
}

/// A set and what is in it.
#[derive(Args, Clone, Debug)]
pub struct SetArgs {
    /// The set.
    #[arg(value_name = "SET")]
    pub(crate) name: String,
    /// Names (`exact:` before one leaves out those below it), addresses or prefixes.
    #[arg(value_name = "ITEM", required = true)]
    pub(crate) items: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// A set.
#[derive(Args, Clone, Debug)]
pub struct SetNameArgs {
    /// The set.
    #[arg(value_name = "SET")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `log-level`.
#[derive(Args, Debug)]
pub struct LogLevelArgs {
    /// The lowest level to log [default: show the current level].
    #[arg(value_enum, value_name = "LEVEL")]
    pub(crate) level: Option<LevelWord>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// How important something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelWord {
    /// What needs a person.
    Error,
    /// What may need a person.
    Warn,
    /// Changes of state.
    Info,
    /// What helps to find a mistake.
    Debug,
    /// Everything.
    Trace,
}

/// Arguments of `jobs`.
#[derive(Args, Debug)]
pub struct JobsArgs {
    /// Start the job of this name now.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with the caches.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove answers from the caches.
    Flush(FlushArgs),
    /// Write the caches to their files now.
    Dump(RemoteArgs),
    /// Show how full the caches are.
    Stats(RemoteArgs),
    /// Show the cached records of a name, how long they are fresh, and how long they are kept.
    Lookup(CacheLookupArgs),
}

/// What to do with resolvers.
#[derive(Debug, Subcommand)]
pub enum ResolverCommand {
    /// Show how full the resolvers' tables are.
    Stats(ResolverArgs),
    /// Show the servers that were asked: round-trip time, unanswered queries, EDNS, cookies.
    Servers(ResolverArgs),
    /// Show the closest zone above a name that a resolver knows, and its servers.
    Zone(ResolverZoneArgs),
    /// Show the trust anchors: keys, where they stand, when they are asked for.
    Anchors(ResolverArgs),
    /// Show zones whose signatures do not count (negative trust anchors, RFC 7646), or change them.
    #[command(subcommand)]
    Negative(NegativeCommand),
    /// Forget records, denials and delegations.
    ///
    /// Answers in the caches stay: see `gannet cache flush`.
    Flush(ResolverFlushArgs),
}

/// Which resolvers are meant.
#[derive(Args, Debug)]
pub struct ResolverArgs {
    /// Only this resolver, by its name in the configuration [default: every resolver].
    #[arg(long, value_name = "RESOLVER")]
    pub(crate) resolver: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with negative trust anchors.
#[derive(Debug, Subcommand)]
pub enum NegativeCommand {
    /// Show them: since when, until when, why, and whether the zone validates again.
    List(ResolverArgs),
    /// Let the signatures of a zone, and of all below it, not count for a time.
    ///
    /// It survives a reload and a restart, and ends by itself.
    Add(NegativeAddArgs),
    /// Remove one that was added.
    Remove(ResolverZoneArgs),
}

/// Arguments of `resolver negative add`.
#[derive(Args, Debug)]
pub struct NegativeAddArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: String,
    /// For how long, such as 12h; a week at most.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, default_value = "1d")]
    pub(crate) lasts: Duration,
    /// Why, for whoever looks at the list.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) of: ResolverArgs,
}

/// Reads a duration of a second or more.
fn parse_time(text: &str) -> Result<Duration, String> {
    let duration = super::record::parse_duration(text)?;
    if duration.as_secs() == 0 { Err("it must be a second at least".to_owned()) } else { Ok(duration) }
}

/// Arguments of `resolver zone`.
#[derive(Args, Debug)]
pub struct ResolverZoneArgs {
    /// The name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) of: ResolverArgs,
}

/// Arguments of `resolver flush`.
#[derive(Args, Debug)]
pub struct ResolverFlushArgs {
    #[command(flatten)]
    pub(crate) of: ResolverArgs,
    #[command(flatten)]
    pub(crate) what: ResolverFlushWhat,
    /// Only this type of the name.
    #[arg(long = "type", value_name = "TYPE", requires = "name")]
    pub(crate) rtype: Option<String>,
}

/// What resolvers are to forget.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct ResolverFlushWhat {
    /// Every type of this name, and its delegation.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// This name and every name below it.
    #[arg(long, value_name = "NAME")]
    pub(crate) suffix: Option<String>,
    /// What failed validation.
    #[arg(long)]
    pub(crate) bogus: bool,
    /// That there are no such names or records.
    #[arg(long)]
    pub(crate) negative: bool,
    /// Everything, what is known of servers included.
    #[arg(long)]
    pub(crate) all: bool,
}

/// Arguments of `cache lookup`.
#[derive(Args, Debug)]
pub struct CacheLookupArgs {
    /// The name asked for.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The type [default: every type].
    #[arg(value_name = "TYPE")]
    pub(crate) rtype: Option<String>,
    /// Also names below it.
    #[arg(long)]
    pub(crate) below: bool,
    /// Only this cache, by its name in the configuration [default: every cache].
    #[arg(long, value_name = "CACHE")]
    pub(crate) cache: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `cache flush`.
#[derive(Args, Debug)]
pub struct FlushArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(flatten)]
    pub(crate) what: FlushWhat,
    /// Only this type of the name.
    #[arg(long = "type", value_name = "TYPE", requires = "name")]
    pub(crate) rtype: Option<String>,
    /// Only this cache, by its name in the configuration [default: every cache].
    #[arg(long, value_name = "CACHE")]
    pub(crate) cache: Option<String>,
}

/// Which answers to forget.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct FlushWhat {
    /// Every type of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// This name and every name below it.
    #[arg(long, value_name = "NAME")]
    pub(crate) suffix: Option<String>,
    /// Everything.
    #[arg(long)]
    pub(crate) all: bool,
}
