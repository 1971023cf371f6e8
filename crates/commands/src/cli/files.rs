//! Arguments of the commands that read and write files: configurations, certificates, profiles.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{ConfigArgs, OutputArgs};

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
    /// How findings are printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = CheckFormat::Human)]
    pub format: CheckFormat,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print a drawing of the policies instead, if there are no mistakes.
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with_all = ["format", "json"])]
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
    #[command(flatten)]
    pub(crate) output: OutputArgs,
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
