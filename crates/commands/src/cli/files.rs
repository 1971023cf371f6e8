//! Arguments of the commands that read and write files: configurations, certificates, profiles.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use control::api;

use super::{ConfigArgs, OutputArgs, RemoteArgs, ServerArgs, SocketArgs};

/// Arguments of `certificate`.
#[derive(Args, Debug)]
pub struct CertificateArgs {
    /// Names and addresses of the certificate [default: localhost, 127.0.0.1 and ::1].
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The folder for the files.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,
    /// The validity of the certificate.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub(crate) days: u32,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Keys and certificates of DNSCrypt.
#[derive(Debug, Subcommand)]
pub enum DnscryptCommand {
    /// Make a provider's key: it signs certificates, and clients know the provider by it.
    ///
    /// Writes secret.key, which the server does not need and which is best kept elsewhere, and
    /// public.key.
    Provider(DnscryptProviderArgs),
    /// Make a resolver's key and a certificate for it, signed with the provider's key.
    ///
    /// Writes two files, named by the certificate's serial number, and prints the settings that use
    /// them. The serial number is the current time, in seconds since 1970: of several certificates,
    /// clients use the one with the highest.
    Certificate(DnscryptCertificateArgs),
    /// Print the stamp (sdns://) that clients need.
    Stamp(DnscryptStampArgs),
}

/// Arguments of `dnscrypt provider`.
#[derive(Args, Debug)]
pub struct DnscryptProviderArgs {
    /// The folder for the files.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Arguments of `dnscrypt certificate`.
#[derive(Args, Debug)]
pub struct DnscryptCertificateArgs {
    /// The file with the provider's secret key.
    #[arg(long, value_name = "FILE", default_value = "secret.key")]
    pub(crate) provider_key: PathBuf,
    /// The folder for the files.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,
    /// The validity of the certificate.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub(crate) days: u32,
    /// What messages are encrypted with.
    #[arg(long, value_enum, value_name = "CIPHER", default_value_t = DnscryptCipher::Xchacha20)]
    pub(crate) cipher: DnscryptCipher,
}

/// What messages of DNSCrypt are encrypted with.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnscryptCipher {
    /// XChaCha20-Poly1305.
    Xchacha20,
    /// XSalsa20-Poly1305, for old clients.
    Xsalsa20,
}

/// Arguments of `dnscrypt stamp`.
#[derive(Args, Debug)]
pub struct DnscryptStampArgs {
    /// The provider's name, such as 2.dnscrypt-cert.example.org.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: String,
    /// The server's address, with its port if that is not 443.
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: String,
    /// The file with the provider's public key.
    #[arg(long, value_name = "FILE", default_value = "public.key")]
    pub(crate) public_key: PathBuf,
    /// Say that the server validates with DNSSEC.
    #[arg(long)]
    pub(crate) dnssec: bool,
    /// Say that the server keeps no logs of queries.
    #[arg(long)]
    pub(crate) no_logs: bool,
    /// Say that the server blocks nothing.
    #[arg(long)]
    pub(crate) no_filter: bool,
}

/// Arguments of `mobileconfig`.
#[derive(Args, Debug)]
pub struct MobileconfigArgs {
    /// The server's name, as its certificate has it.
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// The protocol of the profile.
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value_t = EncryptedProtocol::Https)]
    pub(crate) protocol: EncryptedProtocol,
    /// The path of requests over HTTPS.
    #[arg(long, value_name = "PATH", default_value = "/dns-query")]
    pub(crate) path: String,
    /// The server's address, which saves a look-up; can be repeated.
    #[arg(long = "address", value_name = "ADDRESS")]
    pub(crate) addresses: Vec<IpAddr>,
}

/// What a profile makes devices speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EncryptedProtocol {
    /// DNS over HTTPS.
    Https,
    /// DNS over TLS.
    Tls,
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Which configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The configuration, like `--config`.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    pub file: Option<PathBuf>,
    /// The file is an `unbound.conf`.
    #[arg(long, requires = "file")]
    pub unbound: bool,
    /// Have the running server check it; files that it includes are not sent.
    #[arg(long, conflicts_with = "graph")]
    pub running: bool,
    /// Where the control socket is.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// The server, if it is not of this machine.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How findings are printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = CheckFormat::Human)]
    pub format: CheckFormat,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print a drawing of the policies instead, if there are no mistakes.
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with_all = ["format", "json", "server", "socket"])]
    pub graph: Option<GraphLanguage>,
}

/// In which language `check --graph` draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphLanguage {
    /// Mermaid, which many pages show as a drawing.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// How `check` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// With the source line and a mark under the place.
    Human,
    /// One line each, `file:line:column: severity: message`, for editors.
    Line,
    /// A JSON array.
    Json,
}

/// Which configuration to print.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// The settings in force after defaults, includes and environment, secrets left out.
    Show(ConfigShowArgs),
    /// What is changed while the server runs.
    #[command(flatten)]
    Change(ConfigChangeCommand),
    /// The built-in configuration: every setting with its default, commented.
    Default,
    /// A short configuration for one use, commented, as a file to begin with.
    Starter(StarterArgs),
    /// Every setting: what it takes, its default, what it does; with `--json` as a JSON Schema for
    /// editors.
    Schema(OutputArgs),
}

/// Arguments of `config show`.
#[derive(Args, Debug)]
pub struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Show beside each setting where it comes from.
    #[arg(long, conflicts_with = "json")]
    pub(crate) origin: bool,
    /// Ask the running server, which has changes that the file does not have.
    #[arg(long, conflicts_with = "config")]
    pub(crate) running: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What to do with settings of the running server.
#[derive(Debug, Subcommand)]
pub enum ConfigChangeCommand {
    /// Change a setting of the running server, from now on and after restarts.
    ///
    /// The text is what would stand in the file at this path, such as "1GiB" at cache.main.size; it
    /// replaces what the file says there. The file itself stays as it is: see "gannet config
    /// export". When the command returns, the change is on disk and in use.
    #[command(after_help = SET_HELP)]
    Set(ConfigSetArgs),
    /// Take a change back, so that the setting is as the file says again.
    Unset(ConfigUnsetArgs),
    /// Show who changed which settings, the newest change first.
    History(ConfigHistoryArgs),
    /// Show what two configurations say differently.
    Diff(ConfigDiffArgs),
    /// Make all changed settings what they were at a revision; 0 takes back all changes.
    Rollback(ConfigRollbackArgs),
    /// Print changed settings as they would stand in the file.
    Export(ConfigExportArgs),
}

const SET_HELP: &str = "\
Examples:
  gannet config set cache.main.size 1GiB
  gannet config set local.nas.home.arpa 192.168.1.10
  gannet config set upstreams.fast '[192.0.2.1, tls://dns.example.net]'
  gannet config set policy.main - < policy.yaml
  gannet config set limits.rate.per-second 5 --for 3600 --why 'under attack'";

/// How a change is made.
#[derive(Args, Debug)]
pub struct ChangeArgs {
    /// Why, for the history.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Refuse it unless the changes stand at this revision.
    #[arg(long, value_name = "REVISION")]
    pub(crate) if_revision: Option<u64>,
    /// Check it only.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `config set`.
#[derive(Args, Debug)]
pub struct ConfigSetArgs {
    /// The setting, such as cache.main.size.
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    /// What to set it to, as in the file [default or -: what standard input has].
    #[arg(value_name = "TEXT", conflicts_with = "nothing", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Have nothing there, whatever the file says.
    #[arg(long)]
    pub(crate) nothing: bool,
    /// Take it back after this time.
    #[arg(long = "for", value_name = "SECONDS")]
    pub(crate) for_s: Option<u64>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Arguments of `config unset`.
#[derive(Args, Debug)]
pub struct ConfigUnsetArgs {
    /// The settings.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Arguments of `config history`.
#[derive(Args, Debug)]
pub struct ConfigHistoryArgs {
    /// How many changes to show [default: 20].
    #[arg(short = 'n', value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `config diff`.
#[derive(Args, Debug)]
pub struct ConfigDiffArgs {
    /// The one: a revision of the changes, "file" (without changes) or "now".
    #[arg(value_name = "FROM", value_parser = parse_config_of, default_value = "file")]
    pub(crate) from: api::ConfigOf,
    /// The other.
    #[arg(value_name = "TO", value_parser = parse_config_of, default_value = "now")]
    pub(crate) to: api::ConfigOf,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `config rollback`.
#[derive(Args, Debug)]
pub struct ConfigRollbackArgs {
    /// The revision.
    #[arg(value_name = "REVISION")]
    pub(crate) revision: u64,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Arguments of `config export`.
#[derive(Args, Debug)]
pub struct ConfigExportArgs {
    /// Print secrets, too.
    #[arg(long)]
    pub(crate) secrets: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

fn parse_config_of(text: &str) -> Result<api::ConfigOf, String> {
    match text {
        "file" => Ok(api::ConfigOf::File),
        "now" => Ok(api::ConfigOf::Now),
        number => match number.parse() {
            Ok(revision) => Ok(api::ConfigOf::Revision(revision)),
            Err(_) => Err("expected a revision, \"file\" or \"now\"".to_owned()),
        },
    }
}

/// Arguments of `config starter`.
#[derive(Args, Debug)]
pub struct StarterArgs {
    /// The use of the server.
    #[arg(value_enum, value_name = "USE")]
    pub(crate) purpose: Purpose,
}

/// Uses that have a starter configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    /// Devices of a house: block lists, encrypted upstreams, names of devices.
    Home,
    /// An office: internal names from internal servers, guests with a policy of their own.
    Office,
    /// Zones: a signed primary zone and a secondary zone.
    Authoritative,
    /// One machine or container: a cache in front of public resolvers.
    Forwarder,
}

/// What to do about AF_XDP.
#[derive(Debug, Subcommand)]
pub enum XdpCommand {
    /// Report the abilities of this machine, and what limits them.
    ///
    /// Examines the kernel, the capabilities and, if one is named, a network interface. Attaches no
    /// program and changes nothing. Prints "ok", "note" for a possible improvement, and "no" for an
    /// obstacle.
    Check(XdpCheckArgs),
}

/// Arguments of `xdp check`.
#[derive(Args, Debug)]
pub struct XdpCheckArgs {
    /// The network interface.
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The program whose configuration it is.
    #[arg(value_enum, value_name = "PROGRAM")]
    pub(crate) program: Program,
    /// Its configuration; the command also reads included files.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the new file here, if it does not exist yet, instead of printing it.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

/// Programs whose configurations can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
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
    /// Unbound.
    Unbound,
    /// Runbound, whose dialect of Unbound's configuration is a language of its own.
    Runbound,
}
