//! One-time codes: who has them, who needs them, and how one is used.

use std::time::Instant;

use control::api::{self, CredentialsKept};
use control::{Caller, Role};
use tracing::info;

use super::{Known, totp};
use crate::lock;
use crate::operator::overlay::rfc3339;
use crate::operator::{Operator, OperatorError, unix_seconds};

use super::log_in::{LogInRefusal, called};

/// Seconds within which a code of a new secret has to be shown.
const CONFIRM_S: u64 = 15 * 60;

impl Operator {
    /// Makes what a user's device is to make one-time codes of. They are needed once a code was
    /// shown.
    ///
    /// # Errors
    ///
    /// There is no such user, or it is for admins: another user, or one who has codes already.
    pub fn totp_begin(&self, name: &str, caller: &Caller) -> Result<api::TotpBegun, OperatorError> {
        self.check_totp(name, caller)?;
        let secret = totp::new_secret().ok_or_else(no_random)?;
        let until = unix_seconds() + CONFIRM_S;
        let host = self.names().into_iter().find(|name| !name.starts_with('*'));
        let uri = totp::uri(name, &host.unwrap_or_else(|| "DNS".to_owned()), &secret);
        lock(&self.accounts.totp_begun).insert(name.to_owned(), (secret, until));
        Ok(api::TotpBegun { uri: api::Secret(uri), until: rfc3339(until) })
    }

    /// Has a user need one-time codes from now on, as their device shows a right one.
    ///
    /// # Errors
    ///
    /// The code is wrong, nobody has begun, or it cannot be kept.
    pub fn totp_confirm(
        &self,
        asked: &api::TotpConfirm,
        caller: &Caller,
    ) -> Result<api::TotpConfirmed, OperatorError> {
        let name = &asked.name;
        // Held, so that nothing is written back that somebody has changed meanwhile.
        let _writing = lock(&self.accounts.writing);
        let known = self.check_totp(name, caller)?;
        let now = unix_seconds();
        let begun = lock(&self.accounts.totp_begun).get(name).filter(|(_, until)| *until > now).cloned();
        let (secret, _) = begun.ok_or_else(|| {
            OperatorError::Refused(format!("nobody has begun to give \"{name}\" one-time codes"))
        })?;
        let (kept, codes) = totp::confirmed(&secret, &asked.code.0, now).ok_or_else(|| {
            OperatorError::Argument("the code is wrong: is the clock of the device right?".to_owned())
        })?;
        let credentials = CredentialsKept { totp: Some(kept), ..known.credentials.clone() };
        self.audit_first(&caller.name, ("totp-confirm", name))?;
        self.keep_credentials(name, &credentials)?;
        self.read_accounts();
        lock(&self.accounts.totp_begun).remove(name);
        info!(user = name, "a user of the API needs one-time codes from now on");
        Ok(api::TotpConfirmed { recovery_codes: codes.into_iter().map(api::Secret).collect() })
    }

    /// Has a user need no one-time codes any more; returns them.
    ///
    /// # Errors
    ///
    /// There is no such user, or it cannot be kept.
    pub fn totp_remove(&self, asked: &api::UserName) -> Result<Vec<api::User>, OperatorError> {
        let name = asked.name.as_str();
        let _writing = lock(&self.accounts.writing);
        self.expect_user(name, asked.tag.as_deref())?;
        let known = self.known_user(name)?;
        self.keep_credentials(name, &CredentialsKept { totp: None, ..known.credentials.clone() })?;
        self.read_accounts();
        info!(user = name, "a user of the API needs no one-time codes any more");
        self.end_sessions_of(name)?;
        Ok(self.one_user(name))
    }

    /// Returns a user for whom somebody may set one-time codes up.
    fn check_totp(&self, name: &str, caller: &Caller) -> Result<std::sync::Arc<Known>, OperatorError> {
        let is_admin = caller.role == Role::Admin;
        if !is_admin && caller.name != called(name) {
            return Err(OperatorError::Forbidden("one-time codes of others are for admins".to_owned()));
        }
        let known = self.known_user(name)?;
        // Who has stolen a session is not to have the codes, too.
        if !is_admin && known.credentials.totp.is_some() {
            return Err(OperatorError::Forbidden("other one-time codes come from an admin".to_owned()));
        }
        Ok(known)
    }

    /// Uses up a one-time code of a user whose password was right, if they need one.
    pub(super) fn use_code(&self, name: &str, code: Option<&api::Secret>) -> Result<(), LogInRefusal> {
        // Held, so that of two who show the same code one is late.
        let _writing = lock(&self.accounts.writing);
        let known = self.accounts.all().get(name).cloned().ok_or(LogInRefusal::Wrong)?;
        let Some(totp) = &known.credentials.totp else {
            return match self.needs_totp(known.role) {
                true => Err(OperatorError::Forbidden(format!(
                    "the role {} needs one-time codes (control.totp-roles), and {name} has none: \
                     \"gannet users totp {name}\" sets them up",
                    known.role.word()
                ))
                .into()),
                false => Ok(()),
            };
        };
        let code = code.ok_or(LogInRefusal::CodeNeeded)?;
        // Whoever gets here knows the password.
        self.accounts.tries.admit_code(name, Instant::now()).map_err(LogInRefusal::Slow)?;
        let totp = totp::used(totp, &code.0, unix_seconds()).ok_or(LogInRefusal::Wrong)?;
        self.accounts.tries.code_was_right(name);
        let credentials = CredentialsKept { totp: Some(totp), ..known.credentials.clone() };
        self.keep_credentials(name, &credentials)?;
        self.read_accounts();
        Ok(())
    }

    /// Returns whether somebody with a role needs one-time codes.
    fn needs_totp(&self, role: Role) -> bool {
        lock(&self.view).totp_roles.contains(&role)
    }
}

fn no_random() -> OperatorError {
    OperatorError::Refused("the system has no random numbers".to_owned())
}
