//! Times as text.

/// Returns a second since 1970 as RFC 3339 writes it.
pub(super) fn rfc3339(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}
