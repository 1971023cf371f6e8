//! Arguments of `zone`: what is in files, and what the running server serves.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ImportArgs, KeysCommand, OutputArgs, RemoteArgs, SignArgs, VerifyArgs};

/// What to do with a zone.
#[derive(Debug, Subcommand)]
pub enum ZoneCommand {
    /// Check a zone's file and print every mistake at once.
    Check(ZoneCheckArgs),
    /// Print a zone as it is served, from its file or from the running server: every record on a
    /// line of its own, in canonical order.
    Print(ZonePrintArgs),
    /// Convert the zones of another server's configuration: the same as `gannet import`.
    Import(ImportArgs),
    /// Sign a zone's file with keys of a directory.
    ///
    /// Secure entry points sign the DNSKEY RRset, other keys the rest; if there is only one kind,
    /// it signs everything. Valid signatures of FILE stay.
    Sign(SignArgs),
    /// Verify every signature of a signed zone file, its denial of existence and its digest.
    Verify(VerifyArgs),
    /// Generate, list, import and export keys, and control rollovers.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Show the zones of the running server: serials, next refresh, failures. Zones with a problem
    /// come first.
    Status(ZoneMaybeArgs),
    /// Read changed zone files, and query the primaries of secondary zones.
    ///
    /// Ends with status 1 if the server refuses a file: the file has mistakes, or it has changed
    /// although updates have changed the zone (setting zones[].on-file-change); --merge and
    /// --replace decide that case.
    Reload(ZoneReloadArgs),
    /// Transfer a whole zone from its primaries, regardless of its serial.
    Retransfer(ZoneNameArgs),
    /// Stop updates and transfers of a zone.
    Freeze(ZoneNameArgs),
    /// Allow updates and transfers again.
    Thaw(ZoneNameArgs),
    /// Notify the secondaries of a zone of its serial.
    Notify(ZoneNameArgs),
    /// Show the changes of a zone since its file, or of its last transfer.
    Diff(ZoneNameArgs),
    /// Show RRsets of a zone, without signatures that the server makes.
    Get(ZoneGetArgs),
    /// Replace an RRset of a zone; it is on disk and served when the command ends.
    ///
    /// Every DATA is one record as a master file has it, names in full: `gannet zone set
    /// example.org mail.example.org MX '10 mx1.example.org' '20 mx2.example.org'`.
    Set(ZoneSetArgs),
    /// Remove an RRset from a zone.
    Unset(ZoneUnsetArgs),
    /// Serve more zones, from now on and after a restart.
    ///
    /// --with takes the settings of an item of `zones`; `like` names one of `zone-templates`. A
    /// zone without settings is served when `gannet zone load` has given it records.
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
pub struct ZoneAddArgs {
    /// The names of the zones.
    #[arg(value_name = "NAME", required_unless_present = "from")]
    pub(crate) names: Vec<String>,
    /// A list of zones: a name on each line, perhaps with a template behind it; `-` for standard
    /// input.
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
pub struct ZoneRemoveArgs {
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
pub struct ZoneLoadArgs {
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
pub struct ZonePrintArgs {
    /// The master file, or the name of a zone of the running server: what is no file is a name.
    #[arg(value_name = "FILE or NAME")]
    pub(crate) what: String,
    /// The name of the zone in the file [default: what the file is called, without `.zone`, `.db`,
    /// `.txt` or `db.`].
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
pub struct ZoneReloadArgs {
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
pub struct ZoneMaybeArgs {
    /// The name of the zone [default: all].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which RRsets to show.
#[derive(Args, Clone, Debug)]
pub struct ZoneGetArgs {
    /// The name of the zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: String,
    /// The owner, in full; `@` is the zone [default: all].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The type [default: all].
    #[arg(value_name = "TYPE")]
    pub(crate) rtype: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// What an RRset is to be.
#[derive(Args, Clone, Debug)]
pub struct ZoneSetArgs {
    /// The name of the zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: String,
    /// The owner, in full; `@` is the zone.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The type.
    #[arg(value_name = "TYPE")]
    pub(crate) rtype: String,
    /// The data of each record.
    #[arg(value_name = "DATA", required = true)]
    pub(crate) data: Vec<String>,
    /// The TTL in seconds [default: that of the RRset as it is].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ttl: Option<u32>,
    /// Add the records to those that are there.
    #[arg(long)]
    pub(crate) add: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which RRset, or records of one, to remove.
#[derive(Args, Clone, Debug)]
pub struct ZoneUnsetArgs {
    /// The name of the zone.
    #[arg(value_name = "ZONE")]
    pub(crate) zone: String,
    /// The owner, in full; `@` is the zone.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The type.
    #[arg(value_name = "TYPE")]
    pub(crate) rtype: String,
    /// The data of the records to remove [default: all].
    #[arg(value_name = "DATA")]
    pub(crate) data: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone of the running server.
#[derive(Args, Clone, Debug)]
pub struct ZoneNameArgs {
    /// The name of the zone.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which zone.
#[derive(Args, Clone, Debug)]
pub struct ZoneFileArgs {
    /// The master file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The name of the zone [default: what the file is called, without `.zone`, `.db`, `.txt` or
    /// `db.`].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// How to check a zone.
#[derive(Args, Clone, Debug)]
pub struct ZoneCheckArgs {
    #[command(flatten)]
    pub(crate) zone: ZoneFileArgs,
    /// Take warnings for errors.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
