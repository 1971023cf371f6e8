//! What modules say, in words.

use cryptoki::error::{Error, RvError};

/// Returns an error in words, with the return code that it is.
pub(super) fn said(error: &Error) -> String {
    let Error::Pkcs11(code, _) = error else { return error.to_string() };
    let name = name(*code);
    match words(*code) {
        Some(words) => format!("{words} ({name})"),
        None => format!("the token says {name}"),
    }
}

fn words(code: RvError) -> Option<&'static str> {
    Some(match code {
        RvError::PinIncorrect => "the PIN is wrong",
        RvError::PinInvalid => "the PIN has characters that the token does not take",
        RvError::PinLenRange => "the PIN is too short or too long",
        RvError::PinExpired => "the PIN must be replaced",
        RvError::PinLocked => "the PIN is locked, after too many wrong ones",
        RvError::UserPinNotInitialized => "the token has no PIN for its user yet",
        RvError::UserNotLoggedIn => "the token was not logged in to",
        RvError::UserAnotherAlreadyLoggedIn => "somebody else is logged in to the token",
        RvError::TokenNotPresent => "the token is not there",
        RvError::TokenNotRecognized => "the token is not recognized",
        RvError::TokenWriteProtected => "the token is write-protected",
        RvError::DeviceRemoved => "the token was removed",
        RvError::DeviceError => "the token is out of order",
        RvError::DeviceMemory => "the token has no memory left",
        RvError::SessionCount => "the token has no session left",
        RvError::SessionReadOnly => "the session may only read",
        RvError::SessionHandleInvalid | RvError::SessionClosed => "the session was lost",
        RvError::ObjectHandleInvalid | RvError::KeyHandleInvalid => "the key is gone",
        RvError::KeyFunctionNotPermitted => "the key may not sign",
        RvError::KeySizeRange => "the token has no keys of this size",
        RvError::CurveNotSupported | RvError::DomainParamsInvalid => "the token does not know the curve",
        RvError::MechanismInvalid | RvError::MechanismParamInvalid => "the token cannot do this",
        RvError::FunctionNotSupported => "the module cannot do this",
        RvError::ActionProhibited => "the token forbids it",
        RvError::CantLock => "the module cannot be used by several threads",
        RvError::HostMemory => "the module has no memory",
        RvError::GeneralError | RvError::FunctionFailed => "the module failed and does not say why",
        _ => return None,
    })
}

/// Returns a return code as PKCS#11 calls it.
fn name(code: RvError) -> String {
    match code {
        RvError::VendorDefined(number) | RvError::UnknownErrorCode(number) => format!("{number:#x}"),
        code => {
            let mut name = String::from("CKR");
            for c in format!("{code:?}").chars() {
                if c.is_ascii_uppercase() {
                    name.push('_');
                }
                name.push(c.to_ascii_uppercase());
            }
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cryptoki::context::Function;

    #[test]
    fn what_modules_say_is_in_words_with_its_code() {
        let said = |code| said(&Error::Pkcs11(code, Function::Login));
        assert_eq!(said(RvError::PinIncorrect), "the PIN is wrong (CKR_PIN_INCORRECT)");
        assert_eq!(said(RvError::SessionHandleInvalid), "the session was lost (CKR_SESSION_HANDLE_INVALID)");
        assert_eq!(said(RvError::RandomNoRng), "the token says CKR_RANDOM_NO_RNG");
        assert_eq!(said(RvError::VendorDefined(0x8000_0001)), "the token says 0x80000001");
    }
}
