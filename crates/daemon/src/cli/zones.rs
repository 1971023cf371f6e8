//! Arguments of `zone`: what is in files, and what the running server serves.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ImportArgs, KeysCommand, OutputArgs, RemoteArgs, SignArgs, VerifyArgs};

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
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
