//! Arguments of `ban`, `unban` and `bans`.

use clap::Args;

use super::RemoteArgs;
use super::record::parse_duration;

/// Arguments of `ban`.
#[derive(Args, Clone, Debug)]
pub struct BanArgs {
    /// An address or a prefix.
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: String,
    /// How long, as 10m or 12h [default: until it is unbanned].
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) time: Option<std::time::Duration>,
    /// Why, for the list and the audit log.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Only check it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `unban`.
#[derive(Args, Clone, Debug)]
pub struct UnbanArgs {
    /// The address or prefix that is banned.
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: String,
    /// Only check it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `bans`.
#[derive(Args, Clone, Debug)]
pub struct BansArgs {
    /// Those that hold for this address or prefix [default: all].
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
