//! One-time codes: those of a clock (RFC 6238), and those for when the device that shows them is
//! lost.

use aws_lc_rs::{digest, hmac, rand};
use control::api::TotpKept;

use super::passwords::{hex, unhex};

/// Seconds of a step, and digits of a code, as all apps have them.
const STEP_S: u64 = 30;
const DIGITS: usize = 6;
/// Steps that a clock may be wrong by, before and behind.
const STEPS_OFF: u64 = 1;
/// Octets of a secret: those of the hash (RFC 4226 §4, R6).
const SECRET_OCTETS: usize = 20;
/// Recovery codes, and octets of chance in each.
const RECOVERY_CODES: usize = 10;
const RECOVERY_OCTETS: usize = 10;
/// Letters of base32 (RFC 4648 §6).
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Returns the code of a step (RFC 4226 §5.3).
fn code(secret: &[u8], step: u64) -> u32 {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let offset = usize::from(tag.last().copied().unwrap_or(0) & 0xf);
    let word = tag.get(offset..offset + 4).and_then(|word| word.try_into().ok()).unwrap_or([0; 4]);
    (u32::from_be_bytes(word) & 0x7fff_ffff) % 10_u32.pow(DIGITS as u32)
}

/// Returns the step whose code this is, at a time in seconds since 1970; of steps after `last`
/// alone, so that no code is good twice.
fn step_of(secret: &[u8], text: &str, now: u64, last: u64) -> Option<u64> {
    let wanted: u32 = text.parse().ok().filter(|_| text.len() == DIGITS)?;
    let step = now / STEP_S;
    // Whoever measures how long it takes learns which step it was.
    let near = step.saturating_sub(STEPS_OFF)..=step + STEPS_OFF;
    near.filter(|step| *step > last).find(|step| code(secret, *step) == wanted)
}

/// Returns octets in base32, without padding.
fn base32(octets: &[u8]) -> String {
    let mut out = String::new();
    let (mut bits, mut count) = (0_u32, 0);
    for octet in octets {
        bits = bits << 8 | u32::from(*octet);
        count += 8;
        while count >= 5 {
            count -= 5;
            out.push(char::from(BASE32[(bits >> count & 31) as usize]));
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        out.push(char::from(BASE32[(bits << (5 - count) & 31) as usize]));
    }
    out
}

fn random<const OCTETS: usize>() -> Option<[u8; OCTETS]> {
    let mut octets = [0; OCTETS];
    rand::fill(&mut octets).ok()?;
    Some(octets)
}

/// Makes the secret that a device and the server share; `None` if the system has no random numbers.
pub(super) fn new_secret() -> Option<Vec<u8>> {
    random::<SECRET_OCTETS>().map(Vec::from)
}

/// Returns what a device reads to show codes of a secret.
pub(super) fn uri(user: &str, host: &str, secret: &[u8]) -> String {
    // Names of users and hosts have no characters that are anything else in a URI.
    let user = user.replace('@', "%40");
    format!("otpauth://totp/Gannet%20{host}:{user}?secret={}&issuer=Gannet%20{host}", base32(secret))
}

fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// Returns a recovery code as it is compared: however it was typed.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Begins to keep a secret whose code somebody has shown; returns the recovery codes, too, which
/// are kept as digests alone. `None` if the code is wrong, or there are no random numbers.
pub(super) fn confirmed(secret: &[u8], text: &str, now: u64) -> Option<(TotpKept, Vec<String>)> {
    let last_step = step_of(secret, text.trim(), now, 0)?;
    let code = || {
        let text = base32(&random::<RECOVERY_OCTETS>()?).to_ascii_lowercase();
        let (first, last) = text.split_at(text.len() / 2);
        Some(format!("{first}-{last}"))
    };
    let codes = (0..RECOVERY_CODES).map(|_| code()).collect::<Option<Vec<_>>>()?;
    let recovery = codes.iter().map(|code| sha256(&plain(code))).collect();
    Some((TotpKept { secret: hex(secret), last_step, recovery }, codes))
}

/// Returns what is to be kept after a code was used; `None` if it is wrong, or was used before.
pub(super) fn used(kept: &TotpKept, text: &str, now: u64) -> Option<TotpKept> {
    let text = text.trim();
    let secret = unhex(&kept.secret)?;
    if let Some(last_step) = step_of(&secret, text, now, kept.last_step) {
        return Some(TotpKept { last_step, ..kept.clone() });
    }
    let hash = sha256(&plain(text));
    let mut recovery = kept.recovery.clone();
    recovery.retain(|known| *known != hash);
    (recovery.len() < kept.recovery.len()).then(|| TotpKept { recovery, ..kept.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    #[test]
    fn codes_are_those_of_the_rfc() {
        // RFC 6238 Appendix B, of which these are the last six digits.
        for (time, expect) in [
            (59, 287_082),
            (1_111_111_109, 81_804),
            (1_111_111_111, 50_471),
            (1_234_567_890, 5_924),
            (2_000_000_000, 279_037),
            (20_000_000_000, 353_130),
        ] {
            assert_eq!(code(SECRET, time / STEP_S), expect, "{time}");
        }
        // RFC 4226 Appendix D.
        let codes: Vec<u32> = (0..10).map(|step| code(SECRET, step)).collect();
        assert_eq!(
            codes,
            [755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583, 399_871, 520_489]
        );
    }

    #[test]
    fn secrets_are_written_in_base32() {
        // RFC 4648 §10, without the padding.
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base32(text.as_bytes()));
        assert_eq!(texts, ["", "MY", "MZXQ", "MZXW6", "MZXW6YQ", "MZXW6YTB", "MZXW6YTBOI"]);
        let uri = uri("anna@b", "dns.example.org", SECRET);
        let expect = "otpauth://totp/Gannet%20dns.example.org:anna%40b?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
                      &issuer=Gannet%20dns.example.org";
        assert_eq!(uri, expect);
    }

    #[test]
    fn a_code_is_good_once_and_a_clock_may_be_half_a_minute_wrong() {
        let (kept, codes) = confirmed(SECRET, "081804", 1_111_111_109).expect("the code of that time");
        assert_eq!((codes.len(), kept.recovery.len()), (RECOVERY_CODES, RECOVERY_CODES));
        assert!(confirmed(SECRET, "81804", 1_111_111_109).is_none(), "all six digits");
        assert!(used(&kept, "081804", 1_111_111_109).is_none(), "it was used to begin with");
        // The next step is two seconds later.
        let kept = used(&kept, " 050471 ", 1_111_111_109).expect("the code of a clock before ours");
        assert!(used(&kept, "050471", 1_111_111_111).is_none());
        let mut kept = TotpKept { last_step: 0, ..kept };
        assert!(used(&kept, "050471", 1_111_111_111 + STEP_S).is_some(), "a clock behind ours");
        assert!(used(&kept, "050471", 1_111_111_111 + 2 * STEP_S).is_none());
        for code in &codes {
            assert!(!kept.recovery.contains(code));
            kept = used(&kept, &code.to_uppercase().replace('-', " "), 0).expect("a recovery code");
            assert!(used(&kept, code, 0).is_none(), "once");
        }
        assert!(used(&kept, "", 0).is_none() && used(&kept, "-", 0).is_none());
    }
}
