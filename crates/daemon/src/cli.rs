//! The command line: one definition from which parsing, `--help`, the manual page and the completions come.

mod signing;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use wire::NameBuf;

pub(crate) use signing::{
    DsArgs, DsSeenArgs, ExportArgs, GenerateArgs, KeyForm, KeyImportArgs, KeyStatusArgs, KeysCommand,
    KeysDirArgs, ListArgs, RoleWord, RollArgs, SerialWord, SignArgs, VerifyArgs,
};

/// A DNS server: forwards and caches by policy, and serves zones with authority.
#[derive(Debug, Parser)]
#[command(
    name = "gannet",
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES,
    long_about = "A DNS server: forwards and caches by policy, over plain and encrypted transports, and serves zones with authority. \
        It does not resolve from the root by itself yet: what it does not know it asks of the servers that it is given.\n\n\
        Without a command it runs. Without a configuration it answers this machine on 127.0.0.1 and ::1, \
        port 53 if it may and 5300 otherwise, and asks the resolvers of the system."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  gannet                                 run; with no configuration, for this machine alone
  gannet query example.org AAAA          ask the running server
  gannet config default > gannet.yaml    begin a configuration of your own
  gannet check -c gannet.yaml            see whether it is right
  gannet explain ads.example.org         see what the policy does with a query, and why
  gannet reload                          make the running server read it again

Exit codes: 0 fine, 1 negative (a mistake found, no answer, not running), 2 wrong usage.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server (also what happens without a command).
    Run(RunArgs),
    /// Check a configuration and print every mistake at once.
    Check(CheckArgs),
    /// Make the running server read its configuration again.
    ///
    /// No socket is closed, no cache emptied and no waiting query dropped. A file with mistakes
    /// leaves the running configuration in place; the mistakes are printed.
    Reload(ReloadArgs),
    /// Show how the running server is: load, memory, configuration, listeners, lists, certificates, upstreams.
    Status(RemoteArgs),
    /// Print the running server's counters, by group, each with a sentence.
    Stats(StatsArgs),
    /// Look after the running server's caches.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Show the sets of the running server and the lists they are made of: rules, age, failures, when they are fetched next.
    Lists(ListsArgs),
    /// Look into dynamic sets of the running server, and change them.
    #[command(subcommand)]
    Set(SetCommand),
    /// Show recorded queries, the newest first.
    ///
    /// Reads the database of the running server; without one, that of the configuration (setting recorder.file).
    Log(LogArgs),
    /// Show what the running server does at certain times, or begin one of it now.
    Jobs(JobsArgs),
    /// Ask a DNS server and print its reply.
    ///
    /// Without a server it asks the running gannet, or whoever answers on 127.0.0.1, port 53 or 5300.
    /// An address in place of a name is asked for its PTR record, a name outside ASCII for its A-labels.
    #[command(override_usage = "gannet query [OPTIONS] NAME [TYPE] [@SERVER] [+OPTION]...", after_help = QUERY_HELP)]
    Query(QueryArgs),
    /// Measure an upstream server: which transports it offers, connections, round trips, client subnets, DNSSEC.
    ///
    /// The server is written as in the configuration, under upstreams. Takes a while: it waits to see when an idle
    /// connection is closed.
    Probe(ProbeArgs),
    /// Show the way of a query through the policy: each rule it meets, what matched and why, who was asked.
    ///
    /// The running server takes the query as it takes any other, and asks upstreams. With `--config`, the file's policy
    /// is followed without a server, up to the first upstream that would be asked.
    #[command(override_usage = "gannet explain [OPTIONS] NAME [TYPE]")]
    Explain(ExplainArgs),
    /// Print configurations: the one in force, the defaults, or what can be set.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at zones in files, and after those of the running server.
    #[command(subcommand)]
    Zone(ZoneCommand),
    /// Turn another program's configuration into one of gannet's.
    ///
    /// Prints the new file; what behaves otherwise has a comment beside it. What cannot be expressed is an error at
    /// its line, and then nothing is printed.
    Import(ImportArgs),
    /// Look into what this machine can do with AF_XDP.
    #[command(subcommand)]
    Xdp(XdpCommand),
    /// Make a key and a certificate that nobody else has signed, to try TLS with.
    ///
    /// Writes certificate.pem and key.pem and prints the settings that use them. Clients have to be told to trust it.
    Certificate(CertificateArgs),
    /// Print a profile that makes Apple devices use DNS over HTTPS or TLS.
    Mobileconfig(MobileconfigArgs),
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man(ManArgs),
    /// Print the version.
    Version(OutputArgs),
}

/// What to do with a zone.
#[derive(Debug, Subcommand)]
pub(crate) enum ZoneCommand {
    /// Check a zone's file and print every mistake at once.
    Check(ZoneCheckArgs),
    /// Print a zone as it is served, from its file or from the running server: every record on a line of its own, in
    /// canonical order.
    Print(ZonePrintArgs),
    /// Turn the zones of another server, and what it is told of them, into a configuration: the same as `gannet import`.
    Import(ImportArgs),
    /// Sign a zone's file with keys of a directory.
    ///
    /// Keys that are entry points sign the keys, others the rest; where there is only one kind, it signs everything.
    /// Good signatures of FILE stay.
    Sign(SignArgs),
    /// Check every signature of a signed zone's file, its proofs of absence and its digest.
    Verify(VerifyArgs),
    /// Make, list, take over and hand out keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Show how the running server's zones are: serials, when primaries are asked, what failed. Zones with which something is
    /// wrong come first.
    Status(ZoneMaybeArgs),
    /// Read zone files again that have changed, and ask the primaries of the zones that have any.
    ///
    /// Ends with status 1 when a file is not taken: it has mistakes, or has changed although the zone was changed by updates since
    /// (setting zones[].on-file-change); --merge and --replace decide on that.
    Reload(ZoneReloadArgs),
    /// Take a whole zone over from its primaries, whatever its serial.
    Retransfer(ZoneNameArgs),
    /// Let a zone change no more: no updates, no transfers.
    Freeze(ZoneNameArgs),
    /// Let a zone change again.
    Thaw(ZoneNameArgs),
    /// Show what has changed in a zone since its file, or with its last transfer.
    Diff(ZoneNameArgs),
    /// Serve more zones, from now on and after a restart.
    ///
    /// What is said with --with is what an item of the setting `zones` may say; `like` names one of `zone-templates`. A zone of
    /// which nothing is said is served when `gannet zone load` has given it records.
    Add(ZoneAddArgs),
    /// Take zones out that were added, and forget what was kept of them.
    Remove(ZoneRemoveArgs),
    /// Make what a master file says the next version of a zone.
    ///
    /// The server reads the file once. If its serial is not newer, the zone gets the next one.
    Load(ZoneLoadArgs),
}

/// Which zones to add.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneAddArgs {
    /// The names of the zones.
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub(crate) names: Vec<String>,
    /// A list of zones: a name on each line, perhaps with a template behind it; `-` for standard input.
    #[arg(long, value_name = "LIST")]
    pub(crate) from: Option<PathBuf>,
    /// The template they take their settings from.
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) like: Option<String>,
    /// Their settings, in YAML: `file: /srv/example.org.zone`, or several in braces.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) with: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zones to remove.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneRemoveArgs {
    /// The names of the zones.
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub(crate) names: Vec<String>,
    /// A list of zones: a name on each line; `-` for standard input.
    #[arg(long, value_name = "LIST")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What a zone is to be.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneLoadArgs {
    /// The name of the zone.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The master file, which the server must be able to read.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone to print.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZonePrintArgs {
    /// The master file, or the name of a zone of the running server: what is no file is a name.
    #[arg(value_name = "FILE or NAME")]
    pub(crate) what: String,
    /// The name of the zone in the file [default: what the file is called, without `.zone`, `.db`, `.txt` or `db.`].
    #[arg(long, value_name = "NAME", conflicts_with = "served")]
    pub(crate) name: Option<String>,
    /// Print the zone of the running server even if there is a file of that name.
    #[arg(long)]
    pub(crate) served: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone of the running server to read again, or all.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneReloadArgs {
    /// The name of the zone [default: all].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Apply what has changed in the zone's file to the zone as updates have made it.
    #[arg(long, requires = "name", conflicts_with = "replace")]
    pub(crate) merge: bool,
    /// Make the zone what its file says; what was changed by updates is dropped.
    #[arg(long, requires = "name")]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone of the running server, or all.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneMaybeArgs {
    /// The name of the zone [default: all].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone of the running server.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneNameArgs {
    /// The name of the zone.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneFileArgs {
    /// The master file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The name of the zone [default: what the file is called, without `.zone`, `.db`, `.txt` or `db.`].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// How to check a zone.
#[derive(Args, Clone, Debug)]
pub(crate) struct ZoneCheckArgs {
    #[command(flatten)]
    pub(crate) zone: ZoneFileArgs,
    /// Take warnings for errors.
    #[arg(long)]
    pub(crate) strict: bool,
}

/// How results are printed.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigArgs {
    /// The configuration [default: $GANNET_CONFIG, /etc/gannet/gannet.yaml if it exists, else the built-in one].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// How to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Where the control socket is.
#[derive(Args, Clone, Debug)]
pub(crate) struct SocketArgs {
    /// The control socket [default: $GANNET_SOCKET, else the usual places].
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Arguments of commands that talk to the running server.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoteArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `lists`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ListsArgs {
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
pub(crate) enum ListsCommand {
    /// Fetch lists from their web servers now, and wait until they are in use.
    Update(ListsUpdateArgs),
}

/// Arguments of `lists update`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListsUpdateArgs {
    /// Only the lists of this set.
    #[arg(value_name = "SET")]
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `stats`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatsArgs {
    /// Print what rises, and how much a second, every so many seconds until it is ended; in JSON, one line each time.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, conflicts_with = "prometheus")]
    pub(crate) watch: Option<Duration>,
    /// As Prometheus reads them, with everything else that can be measured (see `metrics.listen`).
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `reload`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReloadArgs {
    /// Only the lists of this set; the configuration stays as it is.
    #[arg(long, value_name = "NAME")]
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with a dynamic set.
#[derive(Debug, Subcommand)]
pub(crate) enum SetCommand {
    /// Add names, addresses or prefixes.
    Add(SetAddArgs),
    /// Remove names, addresses or prefixes.
    Del(SetArgs),
    /// Print what the set holds, and how long each stays.
    List(SetNameArgs),
}

/// Arguments of `set add`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SetAddArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// How long they stay, in seconds [default: as the set says].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ttl: Option<u64>,
}

/// A set and what is in it.
#[derive(Args, Clone, Debug)]
pub(crate) struct SetArgs {
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
pub(crate) struct SetNameArgs {
    /// The set.
    #[arg(value_name = "SET")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `log`.
#[derive(Args, Debug)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The database, if it is neither that of the running server nor that of the configuration.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
    /// How many lines.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) lines: u32,
    /// Only those of this client.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) client: Option<IpAddr>,
    /// Only those for this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Also for names below it.
    #[arg(long, requires = "name")]
    pub(crate) below: bool,
    /// Not before this time: `2026-08-01T12:00`, `12:00` of today, or `30m`, `2h`, `7d` ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) since: Option<i64>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) until: Option<i64>,
    /// Only those with this response code, such as `nxdomain`; `none` for those that got no reply.
    #[arg(long, value_name = "RCODE", value_parser = parse_rcode)]
    pub(crate) rcode: Option<RcodeWord>,
    /// Only those that the policy blocked: answered by `block`, `blocklist` or `reject`, or dropped.
    #[arg(long)]
    pub(crate) blocked: bool,
    /// Then print those that come, until it is ended.
    #[arg(short, long, conflicts_with_all = ["top", "until"])]
    pub(crate) follow: bool,
    /// Print each query's way through the policy too.
    #[arg(long)]
    pub(crate) path: bool,
    /// Count instead: what was asked for most, or who asked most, in the last day (or since `--since`).
    #[arg(long, value_enum, value_name = "WHAT",
        conflicts_with_all = ["client", "name", "path", "until", "rcode", "blocked"])]
    pub(crate) top: Option<Top>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// A response code, or that there was no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RcodeWord(pub(crate) Option<u16>);

fn parse_rcode(text: &str) -> Result<RcodeWord, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(RcodeWord(None));
    }
    let rcode = text.to_ascii_uppercase().parse::<wire::Rcode>();
    rcode.map(|rcode| RcodeWord(Some(rcode.0))).map_err(|_| "expected a response code or \"none\"".to_owned())
}

/// Reads a moment; returns it in milliseconds since 1970.
fn parse_moment(text: &str) -> Result<i64, String> {
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
pub(crate) enum Top {
    /// Names asked for.
    Names,
    /// Clients.
    Clients,
}

/// Arguments of `certificate`.
#[derive(Args, Debug)]
pub(crate) struct CertificateArgs {
    /// Names and addresses that it is for [default: localhost, 127.0.0.1 and ::1].
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The folder for the files.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,
    /// How long it holds.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub(crate) days: u32,
    /// Replace files that are there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Arguments of `mobileconfig`.
#[derive(Args, Debug)]
pub(crate) struct MobileconfigArgs {
    /// The server's name, as its certificate has it.
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// What devices are to speak.
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value_t = EncryptedProtocol::Https)]
    pub(crate) protocol: EncryptedProtocol,
    /// The path of requests over HTTPS.
    #[arg(long, value_name = "PATH", default_value = "/dns-query")]
    pub(crate) path: String,
    /// The server's address, so that it need not be looked up; can be repeated.
    #[arg(long = "address", value_name = "ADDRESS")]
    pub(crate) addresses: Vec<IpAddr>,
}

/// What a profile makes devices speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncryptedProtocol {
    /// DNS over HTTPS.
    Https,
    /// DNS over TLS.
    Tls,
}

/// Arguments of `jobs`.
#[derive(Args, Debug)]
pub(crate) struct JobsArgs {
    /// Begin the job of this name now.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The configuration, like `--config`.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
    /// How findings are printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = CheckFormat::Human)]
    pub(crate) format: CheckFormat,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Print a drawing of the policies instead, if there are no mistakes.
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with_all = ["format", "json"])]
    pub(crate) graph: Option<GraphLanguage>,
}

/// In which language `check --graph` draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphLanguage {
    /// Mermaid, which many pages show as a drawing.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// How `check` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// With the source line and a mark under the place.
    Human,
    /// One line each, `file:line:column: severity: message`, for editors.
    Line,
    /// A JSON array.
    Json,
}

/// What to do with the caches.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Forget answers.
    Flush(FlushArgs),
    /// Write the caches to their files now.
    Dump(RemoteArgs),
    /// Show how full the caches are.
    Stats(RemoteArgs),
    /// Show what the caches hold for a name: records, how long they are fresh and kept.
    Lookup(CacheLookupArgs),
}

/// Arguments of `cache lookup`.
#[derive(Args, Debug)]
pub(crate) struct CacheLookupArgs {
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
pub(crate) struct FlushArgs {
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

/// Arguments of `query`.
#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// A name or an address, a type [default: A, for an address PTR], `@` with a server, and options with a plus sign.
    #[arg(value_name = "NAME [TYPE] [@SERVER] [+OPTION]...", required = true, num_args = 1..=64)]
    pub(crate) words: Vec<String>,
    /// The server's port.
    #[arg(short, long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Ask over IPv4 only.
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Ask over IPv6 only.
    #[arg(short = '6')]
    pub(crate) ipv6: bool,
    /// Ask from this address of the machine.
    #[arg(short, long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Sign the query with this key (TSIG), and believe only replies that it signed. Other users can see it while the
    /// command runs; `-k` is safer.
    #[arg(short = 'y', long, value_name = "[ALGORITHM:]NAME:SECRET", conflicts_with = "key_file")]
    pub(crate) key: Option<String>,
    /// Sign the query with the first key of this file, as `tsig-keygen` writes it.
    #[arg(short = 'k', long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Ask over TCP at once; the same as `+tcp`.
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Ask for DNSSEC records too (DO); the same as `+dnssec`.
    #[arg(long)]
    pub(crate) dnssec: bool,
    /// Ask that signatures are not checked (CD); the same as `+cd`.
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Ask for what the server knows by itself (RD clear); the same as `+norecurse`.
    #[arg(long)]
    pub(crate) no_recurse: bool,
    /// Wait this long for each of three attempts, for a connection's reply, or for each message of a transfer [default: 2, for
    /// transfers 10].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Print the data of the answer alone; the same as `+short`.
    #[arg(long, conflicts_with = "json")]
    pub(crate) short: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What `query --help` says of servers and options.
const QUERY_HELP: &str = "\
Servers:
  @192.0.2.1, @192.0.2.1:5353, @[2001:db8::1]:53, @ns.example.org
  @tcp://…, @tls://192.0.2.1#dns.example.org, @https://dns.example.org/dns-query, @h3://…, @quic://…, @sdns://…

Options (most can be switched off again with +no…):
  +tcp  +tls  +https[=/PATH]  +h3[=/PATH]  +quic        what carries the query
  +tls-hostname=NAME  +tls-ca=FILE  +tls-pin=HASH       what the server must prove; otherwise a certificate for the name or address
  +insecure                                             that it proves nothing
  +dnssec (+do)  +cd  +ad  +norecurse                   flags
  +subnet=PREFIX  +nsid  +expire  +keepalive            EDNS options
  +cookie[=HEX]  +padding[=OCTETS]  +ednsopt=CODE[:HEX]
  +bufsize=OCTETS  +noedns                              the largest reply over UDP; no EDNS at all
  +ignore                                               show a truncated reply, do not ask again over TCP
  +timeout=SECONDS  +tries=NUMBER  +short               as --timeout; attempts; as --short
  +noidnin  +[no]idnout  +noidn                         names outside ASCII: not converted when asked, or when shown

Examples:
  gannet query example.org MX @192.0.2.1 +dnssec
  gannet query example.org AXFR @192.0.2.1 -k xfr.key
  gannet query example.org IXFR=2026080101 @192.0.2.1
  gannet query example.org @tls://127.0.0.1 +tls-ca=certificate.pem +tls-hostname=dns.example.org

Exit codes: 0 NOERROR or a whole transfer; 1 another response code, no reply, a broken transfer, a reply whose signature
does not hold; 2 wrong usage.";

/// Arguments of `probe`.
#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    /// The server: an address, `tls://`, `https://` and so on, a DNS stamp, or a mapping in braces.
    #[arg(value_name = "UPSTREAM")]
    pub(crate) server: String,
    /// The name that is asked for, and below which names are made up.
    #[arg(long, value_name = "NAME", default_value = "example.com")]
    pub(crate) name: NameBuf,
    /// A name with valid signatures.
    #[arg(long, value_name = "NAME", default_value = "example.com")]
    pub(crate) signed: NameBuf,
    /// A name whose signatures are wrong on purpose.
    #[arg(long, value_name = "NAME", default_value = "dnssec-failed.org")]
    pub(crate) bogus: NameBuf,
    /// Queries to send one after the other.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000), default_value = "20")]
    pub(crate) count: u16,
    /// How long to wait for each reply.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "2")]
    pub(crate) timeout: Duration,
    /// How long to wait for an idle connection to be closed.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "15")]
    pub(crate) idle: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// A name or an address, and a type [default: A, for an address PTR].
    #[arg(value_name = "NAME [TYPE]", required = true, num_args = 1..=2)]
    pub(crate) words: Vec<String>,
    /// The client's address [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) client: Option<IpAddr>,
    /// The listener, by its name [default: the first].
    #[arg(long, value_name = "NAME")]
    pub(crate) listener: Option<String>,
    /// The query comes over TCP.
    #[arg(long)]
    pub(crate) tcp: bool,
    /// The client asks for DNSSEC records too (DO).
    #[arg(long)]
    pub(crate) dnssec: bool,
    /// Follow this configuration instead of the running server; nobody is asked.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which configuration to print.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// The settings in force after defaults, includes and environment, secrets left out.
    Show(ConfigShowArgs),
    /// The built-in configuration, commented, as a file to begin with.
    Default,
    /// Every setting: what it takes, its default, what it does; with `--json` as a JSON Schema for editors.
    Schema(OutputArgs),
}

/// Arguments of `config show`.
#[derive(Args, Debug)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Say beside each setting where it comes from.
    #[arg(long, conflicts_with = "json")]
    pub(crate) origin: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to do about AF_XDP.
#[derive(Debug, Subcommand)]
pub(crate) enum XdpCommand {
    /// Say what this machine can do, and why not more.
    ///
    /// Looks at the kernel, our rights and, if one is named, at a network interface. Changes nothing: no program is
    /// attached. Says "ok" to what is as it should be, "note" to what could be better, "no" to what is in the way.
    Check(XdpCheckArgs),
}

/// Arguments of `xdp check`.
#[derive(Args, Debug)]
pub(crate) struct XdpCheckArgs {
    /// The network interface.
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The program whose configuration it is.
    #[arg(value_enum, value_name = "PROGRAM")]
    pub(crate) program: Program,
    /// Its configuration; files that it includes are read, too.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the new file here, if it does not exist yet, instead of printing it.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

/// Programs whose configurations can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// mosdns v5.
    Mosdns,
    /// OxiDNS, which once was ForgeDNS.
    #[value(alias = "forgedns")]
    Oxidns,
    /// Knot DNS 3.
    Knot,
    /// NSD 4.
    Nsd,
    /// BIND 9.
    #[value(alias = "named")]
    Bind,
    /// erldns.
    Erldns,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write one page for each command into this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}

/// Options that may stand before a command as well as behind it, and whether a value follows.
const ANYWHERE: [(&str, bool); 4] = [("--socket", true), ("--config", true), ("-c", true), ("--json", false)];

/// Moves options that stand before a command (`gannet --socket S cache stats`) behind it, where each command takes those that
/// it knows. Without a command, everything stays.
pub(crate) fn arranged(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let mut kept: Vec<OsString> = arguments.next().into_iter().collect();
    let mut moved = Vec::new();
    let mut command = definition();
    while command.has_subcommands() {
        let Some(argument) = arguments.next() else { break };
        let text = argument.to_string_lossy().into_owned();
        let option = ANYWHERE.iter().find(|(option, _)| {
            text == *option
                || text
                    .strip_prefix(option)
                    .is_some_and(|rest| option.starts_with("--") && rest.starts_with('='))
        });
        if let Some((option, has_value)) = option {
            moved.push(argument);
            if *has_value && text == *option {
                moved.extend(arguments.next());
            }
        } else if let Some(next) = command.find_subcommand(&text) {
            command = next.clone();
            kept.push(argument);
        } else {
            // Something else: what follows is for the command found so far.
            kept.push(argument);
            break;
        }
    }
    if kept.len() < 2 {
        kept.extend(moved);
        kept.extend(arguments);
        return kept;
    }
    let rest: Vec<OsString> = arguments.collect();
    // Behind "--" there are no options.
    let end = rest.iter().position(|argument| argument == "--").unwrap_or(rest.len());
    let (before, behind) = rest.split_at(end);
    kept.extend(before.iter().cloned().chain(moved).chain(behind.iter().cloned()));
    kept
}

/// Returns the whole definition.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

/// The longest time a person may want to wait for a reply, in seconds.
const TIMEOUT_S_MAX: f64 = 600.0;

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let digits = text.strip_suffix('s').unwrap_or(text);
    match digits.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= TIMEOUT_S_MAX => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("expected seconds, above 0 and at most {TIMEOUT_S_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn options_may_stand_before_a_command_or_behind_it() {
        let check = |line: &str, expect: &str| {
            let arranged = arranged(line.split(' ').map(OsString::from));
            let arranged: Vec<_> = arranged.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(arranged.join(" "), expect);
        };
        check("gannet --socket S stats", "gannet stats --socket S");
        check("gannet --socket=S --json cache flush --all", "gannet cache flush --all --socket=S --json");
        check("gannet zone --socket S status example.org", "gannet zone status example.org --socket S");
        check("gannet --socket S set add s -- -x", "gannet set add s --socket S -- -x");
        check("gannet -c x.yaml explain a.example", "gannet explain a.example -c x.yaml");
        check("gannet -c x.yaml", "gannet -c x.yaml");
        check("gannet --socket S -c x.yaml", "gannet --socket S -c x.yaml");
        check("gannet query stats --json", "gannet query stats --json");
        check("gannet --help", "gannet --help");
        let parsed = |line: &str| Cli::try_parse_from(arranged(line.split(' ').map(OsString::from)));
        assert!(
            parsed("gannet --socket S lists").is_ok() && parsed("gannet lists update ads --socket S").is_ok()
        );
        assert!(parsed("gannet --socket S check").is_err());
    }

    #[test]
    fn a_configuration_may_stand_before_nothing_or_after_run() {
        assert!(Cli::try_parse_from(["gannet", "-c", "x.yaml"]).is_ok());
        assert!(Cli::try_parse_from(["gannet", "run", "-c", "x.yaml"]).is_ok());
        assert!(Cli::try_parse_from(["gannet", "-c", "x.yaml", "status"]).is_err());
    }

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

    #[test]
    fn a_flush_needs_exactly_one_selection() {
        assert!(Cli::try_parse_from(["gannet", "cache", "flush"]).is_err());
        assert!(Cli::try_parse_from(["gannet", "cache", "flush", "--all", "--name", "a"]).is_err());
        assert!(Cli::try_parse_from(["gannet", "cache", "flush", "--type", "MX"]).is_err());
        assert!(Cli::try_parse_from(["gannet", "cache", "flush", "--name", "a", "--type", "MX"]).is_ok());
    }
}
