//! Arguments of the commands that look after the users of the HTTP API.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RemoteArgs;

/// What to do with users.
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Add a user.
    ///
    /// Asks for the password without showing it, or reads it from a file.
    Add(UsersAddArgs),
    /// Print the users: what each may do, who added them.
    List(RemoteArgs),
    /// Remove a user, and end their sessions.
    Remove(UsersRemoveArgs),
    /// Give a user another password, and end their sessions.
    Password(UsersPasswordArgs),
    /// Give a user another role, and end their sessions.
    Role(UsersRoleArgs),
    /// Have a user need one-time codes besides the password.
    ///
    /// Prints a URI for the user's device, once, and asks for the first code that it shows; prints
    /// recovery codes then, once.
    Totp(UsersTotpArgs),
    /// Print the sessions: whose they are, where they began, when they were used last.
    Sessions(RemoteArgs),
    /// End a session, at once.
    Revoke(UsersRevokeArgs),
}

/// Arguments of `users add`.
#[derive(Args, Clone, Debug)]
pub struct UsersAddArgs {
    /// The name to log in with.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What they may do: viewer, helper, operator or admin (see api.md).
    #[arg(long, value_name = "ROLE", default_value = "viewer")]
    pub(crate) role: String,
    /// A file with the password, or - for standard input [default: ask for it].
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Give them no password: they cannot log in until they have one.
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) no_password: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `users remove`.
#[derive(Args, Clone, Debug)]
pub struct UsersRemoveArgs {
    /// Their name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `users password`.
#[derive(Args, Clone, Debug)]
pub struct UsersPasswordArgs {
    /// Their name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// A file with the new password, or - for standard input [default: ask for it].
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `users role`.
#[derive(Args, Clone, Debug)]
pub struct UsersRoleArgs {
    /// Their name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What they may do from now on: viewer, helper, operator or admin.
    #[arg(value_name = "ROLE")]
    pub(crate) role: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `users revoke`.
#[derive(Args, Clone, Debug)]
pub struct UsersRevokeArgs {
    /// The session, as `users sessions` prints it.
    #[arg(value_name = "SESSION")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `login`.
#[derive(Args, Clone, Debug)]
pub struct LoginArgs {
    /// The user [default: the first one, who has no name yet].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Arguments of `users totp`.
#[derive(Args, Clone, Debug)]
pub struct UsersTotpArgs {
    /// Their name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The first code that the device shows, where there is no terminal to ask for it.
    #[arg(long, value_name = "CODE")]
    pub(crate) code: Option<String>,
    /// Have them need none any more, and end their sessions.
    #[arg(long, conflicts_with = "code")]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
