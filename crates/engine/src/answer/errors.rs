//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The Extended DNS Errors of an answer (RFC 8914).

use wire::EdeCode;

use super::failure::Failure;
use super::texts::{Text, TextId};

/// What is said besides the reason of a failure that is remembered.
const REMEMBERED: &str = "failed a moment ago";

/// What a reply says besides its response code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    /// Nothing.
    None,
    /// One code, and its text.
    One(EdeCode, &'static str),
    /// What a step of the program configures.
    Step(u16),
    /// Why nobody answered.
    Failure(Failure),
    /// The same, remembered; older programs kept no reason.
    Remembered(Option<Failure>),
    /// Why a resolver found nothing.
    Reason(EdeCode, TextId),
}

impl Errors {
    /// Returns a code with its text, or nothing.
    #[inline(always)]
    pub(crate) const fn of(ede: Option<(EdeCode, &'static str)>) -> Self {
        match ede {
            Some((code, text)) => Self::One(code, text),
            None => Self::None,
        }
    }

    /// Returns why nobody answered, if it is that.
    pub(crate) const fn failure(self) -> Option<Failure> {
        match self {
            Self::Failure(failure) => Some(failure),
            Self::None | Self::One(..) | Self::Step(_) | Self::Remembered(_) | Self::Reason(..) => None,
        }
    }

    /// Returns why a resolver found nothing, if it is that.
    pub(crate) const fn reason(self) -> Option<(EdeCode, TextId)> {
        match self {
            Self::Reason(code, text) => Some((code, text)),
            Self::None | Self::One(..) | Self::Step(_) | Self::Failure(_) | Self::Remembered(_) => None,
        }
    }

    /// Returns why there is no answer, if it is known: the most telling code.
    pub(crate) fn cause(self) -> Option<EdeCode> {
        match self {
            Self::Reason(code, _) => Some(code),
            Self::Failure(failure) | Self::Remembered(Some(failure)) => Some(failure.ede().0),
            Self::None | Self::One(..) | Self::Step(_) | Self::Remembered(None) => None,
        }
    }

    /// Returns whether there is no answer because what came was bogus.
    pub(crate) const fn is_bogus(self) -> bool {
        let Self::Reason(code, _) = self else { return false };
        matches!(
            code,
            EdeCode::DNSSEC_BOGUS
                | EdeCode::SIGNATURE_EXPIRED
                | EdeCode::SIGNATURE_NOT_YET_VALID
                | EdeCode::DNSKEY_MISSING
                | EdeCode::RRSIGS_MISSING
                | EdeCode::NO_ZONE_KEY_BIT_SET
                | EdeCode::NSEC_MISSING
                | EdeCode::SIGNATURE_EXPIRED_BEFORE_VALID
        )
    }

    /// Calls `f` with each code and text, the most telling first; `step` returns what a step
    /// configures, `reason` what a resolver said.
    #[inline(always)]
    pub(crate) fn each<'s>(
        self,
        step: impl FnOnce(u16) -> Option<(EdeCode, &'s str)>,
        reason: impl FnOnce(TextId) -> Option<Text>,
        mut f: impl FnMut(EdeCode, &str),
    ) {
        let failure = match self {
            Self::None => return,
            Self::One(code, text) => return f(code, text),
            Self::Step(at) => {
                if let Some((code, text)) = step(at) {
                    f(code, text);
                }
                return;
            }
            Self::Failure(failure) => Some(failure),
            Self::Reason(code, text) => {
                return f(code, reason(text).as_ref().map_or("", Text::as_str));
            }
            Self::Remembered(failure) => {
                f(EdeCode::CACHED_ERROR, REMEMBERED);
                failure
            }
        };
        for &(code, text) in failure.map_or(&[][..], Failure::edes) {
            f(code, text);
        }
    }
}
