//! Arguments of the commands that back the server up.

use std::path::PathBuf;

use clap::Args;

use super::RemoteArgs;

/// Where a backup goes.
#[derive(Args, Clone, Debug)]
pub struct BackupArgs {
    /// The file, which must not be there yet; `-` is the standard output.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// With secrets: tokens, passwords, keys, certificates, and settings that say a secret.
    #[arg(long)]
    pub(crate) secrets: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Which backup comes back.
#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only check it.
    #[arg(long)]
    pub dry_run: bool,
    /// No server runs: put it into the state directory of a configuration. Refused while a server
    /// uses that.
    #[arg(long, conflicts_with_all = ["socket", "server"])]
    pub offline: bool,
    /// With `--offline`: the configuration [default: as `run` has it].
    #[arg(short, long, value_name = "FILE", requires = "offline")]
    pub config: Option<PathBuf>,
    /// The server, and how results are printed.
    #[command(flatten)]
    pub remote: RemoteArgs,
}
