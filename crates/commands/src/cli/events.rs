//! Arguments of `events`: what happens to the server.

use clap::Args;

use super::RemoteArgs;

/// Arguments of `events`.
#[derive(Args, Clone, Debug)]
pub struct EventsArgs {
    /// Then print new events until the command is interrupted. While the server is away, it is
    /// waited for.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only those of this kind; can be repeated, or name several, separated by commas.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = control::api::EventOf::KINDS)]
    pub(crate) kind: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
