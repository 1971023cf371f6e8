//! Arguments of the commands that sign zones and look after keys.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{OutputArgs, RemoteArgs, ZoneFileArgs};

/// How to sign a zone's file.
#[derive(Args, Clone, Debug)]
pub struct SignArgs {
    #[command(flatten)]
    pub(crate) zone: ZoneFileArgs,
    /// The directory with the zone's keys (`K*.key` and `K*.private`).
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Where to write the signed zone; `-` is standard output [default: FILE.signed].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Use NSEC3 instead of NSEC for the denial of existence.
    #[arg(long)]
    pub(crate) nsec3: bool,
    /// Additional iterations of NSEC3; RFC 9276 requires none.
    #[arg(long, value_name = "COUNT", default_value_t = 0, requires = "nsec3",
        value_parser = clap::value_parser!(u16).range(..=50))]
    pub(crate) iterations: u16,
    /// The salt of NSEC3 in hexadecimal, `-` for none, as RFC 9276 recommends.
    #[arg(long, value_name = "HEX", default_value = "-", requires = "nsec3")]
    pub(crate) salt: String,
    /// Leave unsigned delegations out of NSEC3.
    #[arg(long, requires = "nsec3")]
    pub(crate) opt_out: bool,
    /// When signatures begin: YYYYMMDDHHmmSS, or `+` or `-` and a period from now.
    #[arg(long, value_name = "TIME", default_value = "-90m", allow_hyphen_values = true)]
    pub(crate) inception: String,
    /// When signatures end, likewise.
    #[arg(long, value_name = "TIME", default_value = "+30d", allow_hyphen_values = true)]
    pub(crate) expiration: String,
    /// Let signatures expire up to this much earlier, spread over the names.
    #[arg(long, value_name = "PERIOD", default_value = "0")]
    pub(crate) jitter: String,
    /// Keep signatures of FILE that are valid for at least this long.
    #[arg(long, value_name = "PERIOD", default_value = "7d")]
    pub(crate) refresh: String,
    /// How to set the serial.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = SerialWord::Keep)]
    pub(crate) serial: SerialWord,
    /// The TTL of DNSKEY, CDS and CDNSKEY [default: the SOA's].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) dnskey_ttl: Option<u32>,
    /// Publish CDS of this digest, and CDNSKEY; may be given more than once.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) cds: Vec<dnssec::DigestType>,
    /// Publish CSYNC: the parent may copy NS and addresses (RFC 7477).
    #[arg(long)]
    pub(crate) csync: bool,
    /// Add the zone's digest (RFC 8976): sha384 or sha512.
    #[arg(long, value_name = "HASH")]
    pub(crate) zonemd: Option<dnssec::ZonemdHash>,
    /// Threads that sign [default: one for each processor].
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
}

/// What becomes of a serial.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SerialWord {
    /// It stays.
    Keep,
    /// By one.
    Increment,
    /// Seconds since 1970.
    Unixtime,
    /// YYYYMMDDnn.
    Date,
}

/// Which signed zone to check.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub(crate) zone: ZoneFileArgs,
    /// The time to check for: YYYYMMDDHHmmSS, or `+` or `-` and a period from now.
    #[arg(long, value_name = "TIME", default_value = "+0", allow_hyphen_values = true)]
    pub(crate) at: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key.
    Generate(GenerateArgs),
    /// List keys.
    List(ListArgs),
    /// Import keys from files (BIND's pairs, PEM, or erldns's key sets), or note the place of one
    /// in a PKCS#11 token.
    Import(KeyImportArgs),
    /// Export a key in another format.
    Export(ExportArgs),
    /// Print the DS records for the parent, one for every secure entry point.
    Ds(DsArgs),
    /// Show the key states of a zone that the running server signs.
    Status(KeyStatusArgs),
    /// Confirm to the running server that the parent has the DS of a zone's new key.
    DsSeen(DsSeenArgs),
    /// Start a key rollover in the running server now.
    Roll(RollArgs),
}

/// Which zone of the running server.
#[derive(Args, Clone, Debug)]
pub struct KeyStatusArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: wire::NameBuf,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Whose DS the parent has.
#[derive(Args, Clone, Debug)]
pub struct DsSeenArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: wire::NameBuf,
    /// The tag of the key [default: all that wait for their DS].
    #[arg(value_name = "TAG")]
    pub(crate) tag: Option<u16>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which key to replace.
#[derive(Args, Clone, Debug)]
pub struct RollArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: wire::NameBuf,
    /// What the key is for.
    #[arg(value_enum, value_name = "ROLE")]
    pub(crate) role: RoleWord,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Where keys are.
#[derive(Args, Clone, Debug)]
pub struct KeysDirArgs {
    /// The directory with the keys.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) keys: PathBuf,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleWord {
    /// It signs everything.
    Csk,
    /// It signs keys.
    Ksk,
    /// It signs everything but keys.
    Zsk,
}

impl RoleWord {
    /// Returns its word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Csk => "csk",
            Self::Ksk => "ksk",
            Self::Zsk => "zsk",
        }
    }
}

/// Which key to make.
#[derive(Args, Clone, Debug)]
pub struct GenerateArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: wire::NameBuf,
    #[command(flatten)]
    pub(crate) directory: KeysDirArgs,
    /// The algorithm, by name or number: 8, 10, 13, 14, 15 or 16.
    #[arg(short, long, value_name = "ALGORITHM", default_value = "ECDSAP256SHA256")]
    pub(crate) algorithm: dnssec::Algorithm,
    /// Bits of an RSA key: 2048, 3072 or 4096.
    #[arg(long, value_name = "BITS", default_value_t = 2048)]
    pub(crate) bits: u32,
    /// What the key is for.
    #[arg(long, value_enum, default_value_t = RoleWord::Csk)]
    pub(crate) role: RoleWord,
    /// The PKCS#11 token that makes and keeps the key:
    /// `pkcs11:token=NAME?module-path=FILE&pin-source=file:FILE` (RFC 7512). The files in DIR then
    /// name its place.
    #[arg(long, value_name = "URI")]
    pub(crate) token: Option<String>,
}

/// Which keys to list.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// The zone [default: all].
    #[arg(value_name = "ZONE")]
    pub(crate) zone: Option<wire::NameBuf>,
    #[command(flatten)]
    pub(crate) directory: KeysDirArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which keys to take over.
#[derive(Args, Clone, Debug)]
pub struct KeyImportArgs {
    /// `K*.private` with the `K*.key` beside it, `*.pem`, a list of key sets in JSON, or the URI of
    /// a key in a PKCS#11 token:
    /// `pkcs11:token=NAME;object=LABEL?module-path=FILE&pin-source=file:FILE`.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) directory: KeysDirArgs,
    /// The zone; not needed for BIND's files.
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<wire::NameBuf>,
    /// The algorithm of an RSA key in PEM or in a token: 8 or 10.
    #[arg(short, long, value_name = "ALGORITHM")]
    pub(crate) algorithm: Option<dnssec::Algorithm>,
    /// What a key in PEM or in a token is for.
    #[arg(long, value_enum, default_value_t = RoleWord::Csk)]
    pub(crate) role: RoleWord,
}

/// The form of a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum KeyForm {
    /// PKCS#8 in PEM.
    Pem,
    /// BIND's pair of files.
    Bind,
    /// A key set of a KSK and a ZSK in JSON.
    Erldns,
}

/// Which key to print.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: wire::NameBuf,
    /// The key's tag; not needed if there is one key, nor for key sets.
    #[arg(value_name = "TAG")]
    pub(crate) tag: Option<u16>,
    #[command(flatten)]
    pub(crate) directory: KeysDirArgs,
    /// The form.
    #[arg(long, value_enum, default_value_t = KeyForm::Pem)]
    pub(crate) form: KeyForm,
    /// Where to: a file, or for BIND's pair a directory. PEM and key sets go to standard output
    /// without it.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// How long signatures of a key set are good.
    #[arg(long, value_name = "TIME", default_value = "+52w")]
    pub(crate) until: String,
}

/// What the parent needs.
#[derive(Args, Clone, Debug)]
pub struct DsArgs {
    /// The zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: wire::NameBuf,
    #[command(flatten)]
    pub(crate) directory: KeysDirArgs,
    /// The digest; may be given more than once.
    #[arg(long, value_name = "DIGEST", default_values = ["SHA-256"])]
    pub(crate) digest: Vec<dnssec::DigestType>,
    /// Print DNSKEY records too, for parents that want these.
    #[arg(long)]
    pub(crate) dnskey: bool,
}
