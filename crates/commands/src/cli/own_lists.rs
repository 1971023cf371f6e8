//! Arguments of the commands that change lists that are kept beside the settings.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RemoteArgs;

/// What to do with such a list.
#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// Add rules; makes the list if it is not there.
    ///
    /// They are on disk and in effect when the command ends. Rules on names are added beside those
    /// that are compiled.
    Add(ListEditArgs),
    /// Remove rules: every line that says the same.
    Remove(ListEditArgs),
    /// Make a file the list, in place of what it has.
    Put(ListPutArgs),
    /// Print the list, or the names of all.
    Print(ListNameArgs),
    /// Print who changed the list, the newest change first.
    History(ListHistoryArgs),
    /// Remove the list itself. Sets that name it have nothing of it then.
    Delete(ListDeleteArgs),
}

/// A list and rules.
#[derive(Args, Clone, Debug)]
pub struct ListEditArgs {
    /// The list.
    #[arg(value_name = "LIST")]
    pub(crate) name: String,
    /// Rules, as lines of the list have them.
    #[arg(value_name = "RULE", required_unless_present = "file")]
    pub(crate) rules: Vec<String>,
    /// Rules of a file as well, one on a line; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Only check them, and say how many would be changed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// A list and its text.
#[derive(Args, Clone, Debug)]
pub struct ListPutArgs {
    /// The list.
    #[arg(value_name = "LIST")]
    pub(crate) name: String,
    /// The file; `-` is the standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only check it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// A list, or all.
#[derive(Args, Clone, Debug)]
pub struct ListNameArgs {
    /// The list [default: the names of all].
    #[arg(value_name = "LIST")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// A list and how much of its history.
#[derive(Args, Clone, Debug)]
pub struct ListHistoryArgs {
    /// The list.
    #[arg(value_name = "LIST")]
    pub(crate) name: String,
    /// At most so many changes.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value = "20")]
    pub(crate) count: u64,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// A list that is to be gone.
#[derive(Args, Clone, Debug)]
pub struct ListDeleteArgs {
    /// The list.
    #[arg(value_name = "LIST")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
