//! The command line: one definition from which parsing, `--help`, the manual page and the
//! completions come.

mod asking;
mod backup;
mod bans;
mod events;
mod files;
mod own_lists;
#[cfg(test)]
mod page;
mod record;
mod server;
mod signing;
mod users;
mod zones;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub use self::server::{
    AuditCommand, AuditSearchArgs, AuditTailArgs, AuditVerifyArgs, CacheCommand, CacheLookupArgs,
    CertificatesArgs, CertificatesCommand, FlushArgs, JobsArgs, ListsArgs, ListsCommand, LogLevelArgs,
    NegativeCommand, ReloadArgs, ResolverArgs, ResolverCommand, ResolverFlushArgs, ServerCommand, SetAddArgs,
    SetArgs, SetCommand, SetNameArgs, StatsArgs, TokenAddArgs, TokenCommand, TokenRevokeArgs,
};
use crate::out;
use asking::QUERY_HELP;
pub use asking::{ExplainArgs, ProbeArgs, QueryArgs};
pub use backup::{BackupArgs, RestoreArgs};
pub use bans::{BanArgs, BansArgs, UnbanArgs};
pub use events::EventsArgs;
pub use files::{
    CertificateArgs, ChangeArgs, CheckArgs, CheckFormat, ConfigChangeCommand, ConfigCommand, ConfigDiffArgs,
    ConfigExportArgs, ConfigHistoryArgs, ConfigRollbackArgs, ConfigSetArgs, ConfigShowArgs, ConfigUnsetArgs,
    DnscryptCertificateArgs, DnscryptCipher, DnscryptCommand, DnscryptProviderArgs, DnscryptStampArgs,
    EncryptedProtocol, GraphLanguage, ImportArgs, MobileconfigArgs, Program, Purpose, StarterArgs,
    XdpCheckArgs, XdpCommand,
};
pub use own_lists::{ListCommand, ListDeleteArgs, ListEditArgs, ListHistoryArgs, ListNameArgs, ListPutArgs};
pub use record::{LogArgs, Top};
pub use signing::{
    DsArgs, DsSeenArgs, ExportArgs, GenerateArgs, KeyForm, KeyImportArgs, KeyStatusArgs, KeysCommand,
    KeysDirArgs, ListArgs, RoleWord, RollArgs, SerialWord, SignArgs, VerifyArgs,
};
pub use users::{
    LoginArgs, UsersAddArgs, UsersCommand, UsersPasswordArgs, UsersRemoveArgs, UsersRevokeArgs,
    UsersRoleArgs, UsersTotpArgs,
};
pub use zones::{
    ZoneAddArgs, ZoneCheckArgs, ZoneCommand, ZoneFileArgs, ZoneGetArgs, ZoneLoadArgs, ZonePrintArgs,
    ZoneReloadArgs, ZoneRemoveArgs, ZoneSetArgs, ZoneUnsetArgs,
};

/// A DNS server: resolves, forwards and caches by policy, and serves zones with authority.
#[derive(Debug, Parser)]
#[command(
    name = "gannet",
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES,
    long_about = "A DNS server: resolves, forwards and caches by policy, over plain and encrypted transports, and serves zones with authority.\n\n\
        Without a command it runs. Without a configuration it answers this machine on 127.0.0.1 and ::1, \
        port 53 if it may and 5300 otherwise, and forwards to the resolvers of the system."
)]
pub struct Cli {
    /// How to run, without a command.
    #[command(flatten)]
    pub run: RunArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  gannet                                 run; with no configuration, for this machine alone
  gannet query example.org AAAA          ask the running server
  gannet config starter home             print a configuration to begin with
  gannet check -c gannet.yaml            see whether it is right
  gannet explain ads.example.org         trace a query through the policy
  gannet reload                          apply the changed configuration

Exit codes: 0 fine, 1 negative (a mistake found, no answer, not running), 2 wrong usage.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server (also what happens without a command).
    Run(RunArgs),
    /// Check a configuration and print every mistake at once.
    Check(CheckArgs),
    /// Talk to the running server.
    #[command(flatten)]
    Server(ServerCommand),
    /// Ask a DNS server and print its reply.
    ///
    /// Without a server it asks the running gannet, or whoever answers on 127.0.0.1, port 53
    /// or 5300. An address in place of a name is asked for its PTR record, a name outside ASCII for
    /// its A-labels.
    #[command(override_usage = "gannet query [OPTIONS] NAME [TYPE] [@SERVER] [+OPTION]...", after_help = QUERY_HELP)]
    Query(QueryArgs),
    /// Measure an upstream server: which transports it offers, connections, round trips, client
    /// subnets, DNSSEC.
    ///
    /// The server is written as in the configuration, under upstreams. Takes a while: it waits to
    /// see when an idle connection is closed.
    Probe(ProbeArgs),
    /// Trace a query through the policy: each rule, what matched and why, the upstream.
    ///
    /// The running server handles the query like any other, and forwards it. With `--config`, the
    /// command follows the policy of the file without a server, up to the first upstream.
    #[command(override_usage = "gannet explain [OPTIONS] NAME [TYPE]")]
    Explain(ExplainArgs),
    /// Print configurations: the one in force, a starter, the defaults, or all settings; change
    /// settings of the running server.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check, print and sign zone files; manage the zones of the running server.
    #[command(subcommand)]
    Zone(ZoneCommand),
    /// Convert another program's configuration.
    ///
    /// Prints the new file, with a comment at each part that behaves differently. A part without an
    /// equivalent is an error at its line; then the command prints no file.
    Import(ImportArgs),
    /// Run in the place of Unbound: with its configuration, and arguments that it takes.
    ///
    /// The same as calling the program by the name "unbound". "gannet check --unbound FILE" reports
    /// mistakes in such a file, and "gannet import unbound FILE" turns it into one of ours. The
    /// programs that come with Unbound are here, too: "gannet unbound checkconf", or the program
    /// called by the name "unbound-checkconf".
    #[command(disable_version_flag = true, disable_help_flag = true)]
    Unbound(UnboundArgs),
    /// Examine AF_XDP on this machine.
    #[command(subcommand)]
    Xdp(XdpCommand),
    /// Make a key and a self-signed certificate, to try TLS with.
    ///
    /// Writes certificate.pem and key.pem and prints the settings that use them. Clients must be
    /// configured to trust it.
    Certificate(CertificateArgs),
    /// Make keys and certificates for DNSCrypt, and print the stamp that clients need.
    #[command(subcommand)]
    Dnscrypt(DnscryptCommand),
    /// Print a profile that makes Apple devices use DNS over HTTPS or TLS.
    Mobileconfig(MobileconfigArgs),
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Print a manual page: gannet(1) or gannet.yaml(5).
    Man(ManArgs),
    /// Print the version.
    Version(OutputArgs),
}

/// How results are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which configuration.
#[derive(Args, Clone, Debug)]
pub struct ConfigArgs {
    /// The configuration [default: $GANNET_CONFIG, /etc/gannet/gannet.yaml if it exists, else the
    /// built-in one].
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// How to run.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Which configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Where the control socket is.
    #[command(flatten)]
    pub socket: SocketArgs,
}

/// Where the control socket is.
#[derive(Args, Clone, Debug)]
pub struct SocketArgs {
    /// The control socket [default: $GANNET_SOCKET, else the usual places].
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// A server that is reached over the network.
#[derive(Args, Clone, Debug, Default)]
pub struct ServerArgs {
    /// The URL of a server's HTTP API (control.listen), in place of a control socket on this
    /// machine. The token is in $GANNET_TOKEN or --token-file.
    #[arg(long, value_name = "URL", conflicts_with = "socket")]
    pub(crate) server: Option<String>,
    /// A file with the token.
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) token_file: Option<PathBuf>,
    /// The certificates of authorities that the server's must be signed by [default: those of
    /// web servers].
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) ca: Option<PathBuf>,
}

impl ServerArgs {
    /// Returns whether a server is named.
    pub const fn is_given(&self) -> bool {
        self.server.is_some()
    }
}

/// Arguments of commands that talk to the running server of this machine.
#[derive(Args, Clone, Debug)]
pub struct LocalArgs {
    /// Where the control socket is.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of commands that talk to a running server.
#[derive(Args, Clone, Debug)]
pub struct RemoteArgs {
    /// Where the control socket is.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// The server, if it is not of this machine.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `unbound`, which are those of that program.
#[derive(Args, Clone, Debug)]
pub struct UnboundArgs {
    /// The configuration.
    #[arg(short = 'c', value_name = "FILE", default_value = "/etc/unbound/unbound.conf")]
    pub config: PathBuf,
    /// Stay in the foreground; twice, log to standard error.
    #[arg(short = 'd', action = clap::ArgAction::Count)]
    pub foreground: u8,
    /// Write no file with the number of the process, whatever the configuration says.
    #[arg(short = 'p')]
    pub no_pid_file: bool,
    /// Log more; can be repeated.
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print the version.
    #[arg(short = 'V')]
    pub version: bool,
    /// Print these options as that program does, which counts as a failure.
    #[arg(short = 'h')]
    pub usage: bool,
    /// Print help.
    #[arg(long, action = clap::ArgAction::HelpLong)]
    pub help: Option<bool>,
    /// Run a program that comes with it instead, such as "control" or "checkconf", with these
    /// arguments.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

/// The name of the program whose place it takes when it is called by it.
const OTHER_NAME: &str = "unbound";
/// What the names of the programs that come with it begin with.
const OTHER_NAMES: &str = "unbound-";

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The page.
    #[arg(value_enum, value_name = "PAGE", default_value_t = ManPage::Gannet, conflicts_with = "to")]
    pub(crate) page: ManPage,
    /// Write one page for each command into this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}

/// Manual pages that `man` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ManPage {
    /// The command line, gannet(1).
    Gannet,
    /// The configuration, gannet.yaml(5).
    #[value(name = "gannet.yaml")]
    GannetYaml,
}

/// Options that may stand before a command as well as behind it, and whether a value follows.
const ANYWHERE: [(&str, bool); 7] = [
    ("--socket", true),
    ("--server", true),
    ("--token-file", true),
    ("--ca", true),
    ("--config", true),
    ("-c", true),
    ("--json", false),
];

/// Reads a command line, of which the first argument is the program; ends the process if it is
/// wrong, or asks for help.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Cli {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_other = arguments
        .first()
        .is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new(OTHER_NAME)));
    Cli::try_parse_from(arranged(by_name(arguments))).unwrap_or_else(|error| {
        match is_other && error.use_stderr() {
            true => usage_of_other(&error),
            false => error.exit(),
        }
    })
}

/// Returns the command line that asks the program of the other name for its usage, after what is
/// wrong with the one that was given.
fn usage_of_other(error: &clap::Error) -> Cli {
    let text = error.to_string();
    let reason = text.lines().next().unwrap_or_default();
    out::complain(reason.strip_prefix("error: ").unwrap_or(reason));
    Cli::parse_from(["gannet", OTHER_NAME, "-h"])
}

/// Turns a call by another name into one of the command for that: `unbound -d` is
/// `gannet unbound -d`.
fn by_name(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    if name == Some(OsStr::new(OTHER_NAME)) {
        arguments.insert(1, OTHER_NAME.into());
    } else if let Some(name) = name.filter(|name| name.to_string_lossy().starts_with(OTHER_NAMES)) {
        let name = name.to_owned();
        arguments.splice(1..1, [OTHER_NAME.into(), name]);
    }
    arguments
}

/// Moves options that stand before a command (`gannet --socket S cache stats`) behind it, where
/// each command takes those that it knows. Without a command, everything stays.
fn arranged(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
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
    fn wrong_arguments_of_the_program_of_another_name_ask_for_its_usage() {
        for wrong in ["-x", "--nonsense", "-c"] {
            let cli = parse(["/usr/sbin/unbound", wrong].map(OsString::from));
            assert!(matches!(cli.command, Some(Command::Unbound(args)) if args.usage), "{wrong}");
        }
    }

    #[test]
    fn options_may_stand_before_a_command_or_behind_it() {
        let check = |line: &str, expect: &str| {
            let arranged = arranged(line.split(' ').map(OsString::from));
            let arranged: Vec<_> = arranged.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(arranged.join(" "), expect);
        };
        check("gannet --socket S stats", "gannet stats --socket S");
        check("gannet --server U --ca C reload", "gannet reload --server U --ca C");
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
        assert!(parsed("gannet --socket S completions bash").is_err());
        assert!(parsed("gannet --server U status").is_ok() && parsed("gannet status --server U").is_ok());
        for wrong in [
            "gannet --server U",
            "gannet --server U query a.example",
            "gannet --server U log",
            "gannet status --ca C",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(parsed("gannet --server U --socket S status").is_err());
    }

    #[test]
    fn the_name_of_the_program_may_be_a_command() {
        let check = |line: &str, expect: &str| {
            let arguments = by_name(line.split(' ').map(OsString::from));
            assert_eq!(arguments.join(OsStr::new(" ")), expect);
            assert!(Cli::try_parse_from(arranged(arguments)).is_ok());
        };
        check("/usr/sbin/unbound -dd -p -c /u.conf", "/usr/sbin/unbound unbound -dd -p -c /u.conf");
        check("gannet unbound -d", "gannet unbound -d");
        check(
            "/usr/sbin/unbound-control -q status",
            "/usr/sbin/unbound-control unbound unbound-control -q status",
        );
        check("gannet unbound host -v -t A a.example", "gannet unbound host -v -t A a.example");
        check("gannet -c unbound", "gannet -c unbound");
    }

    #[test]
    fn a_configuration_may_stand_before_nothing_or_after_run() {
        assert!(Cli::try_parse_from(["gannet", "-c", "x.yaml"]).is_ok());
        assert!(Cli::try_parse_from(["gannet", "run", "-c", "x.yaml"]).is_ok());
        assert!(Cli::try_parse_from(["gannet", "-c", "x.yaml", "status"]).is_err());
    }

    #[test]
    fn a_flush_needs_exactly_one_selection() {
        assert!(Cli::try_parse_from(["gannet", "cache", "flush"]).is_err());
        assert!(Cli::try_parse_from(["gannet", "cache", "flush", "--all", "--name", "a"]).is_err());
        assert!(Cli::try_parse_from(["gannet", "cache", "flush", "--type", "MX"]).is_err());
        assert!(Cli::try_parse_from(["gannet", "cache", "flush", "--name", "a", "--type", "MX"]).is_ok());
    }
}
