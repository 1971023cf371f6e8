//! Requests that are only checked: what they would change, or why they would be refused. Nothing is
//! written, and the audit log has no row but of whoever may not have them carried out.

use std::sync::Arc;

use control::api::{self, Request, Response};
use control::{Answer, Caller};

use crate::operator::{Operator, OperatorError};
use crate::protocol::{carry_out, may_check};

/// Says what a request of somebody would change.
///
/// # Errors
///
/// They may not have it carried out, or it would be refused.
pub fn check_only(
    operator: &Arc<Operator>,
    request: Request,
    caller: &Caller,
) -> Result<Answer, OperatorError> {
    // What carries these out looks, too.
    if !is_checked_there(&request) {
        may_check(operator, caller, &request)?;
    }
    let response = match request {
        Request::SetAdd(change) => {
            operator.set_check(&change, config::sets::Form::Add).map(Response::SetChanged)
        }
        Request::SetRemove(change) => {
            operator.set_check(&change, config::sets::Form::Remove).map(Response::SetChanged)
        }
        Request::SetEdit(change) => operator.set_edit_check(&change).map(Response::SetChanged),
        Request::ZoneAdd(add) => operator.zone_add_check(&add).map(Response::ZonesChanged),
        Request::ZoneRemove(names) => operator.zone_remove_check(&names).map(Response::ZonesChanged),
        Request::RrsetsChange(change) => operator.rrsets_check(&change).map(Response::RrsetsChanged),
        Request::OwnListRemove(asked) => operator.own_list_remove_check(&asked).map(Response::OwnListChanged),
        Request::TokenAdd(asked) => {
            let token = operator.token_add_check(&asked, &caller.name)?;
            // There is none yet.
            let added = api::TokenAdded { secret: String::new(), token };
            Ok(Response::TokenAdded(Box::new(added)))
        }
        Request::TokenRevoke(token) => operator.token_revoke_check(&token).map(Response::Tokens),
        Request::UserAdd(asked) => operator.user_add_check(&asked, &caller.name).map(Response::Users),
        Request::UserRemove(user) => operator.user_remove_check(&user).map(Response::Users),
        Request::UserRole(asked) => operator.user_role_check(&asked).map(Response::Users),
        Request::UserPassword(asked) => operator.user_password_check(&asked).map(Response::Users),
        // These say themselves that they are only checked.
        request if is_checked_there(&request) => return carry_out(operator, request, caller),
        _ => Err(OperatorError::Argument("this cannot be checked without being carried out".to_owned())),
    };
    response.map(Answer::from)
}

/// Returns whether a request says itself that it is only checked.
const fn is_checked_there(request: &Request) -> bool {
    matches!(
        request,
        Request::Ban(_) | Request::Unban(_) | Request::ConfigChange(_) | Request::OwnListChange(_)
    )
}
