//! The file of the root's anchors (RFC 9718), as far as it is read.

use wire::calendar::existing_day;

const DAY_SECS: i64 = 86_400;

/// Returns the records of DS that hold at a moment.
///
/// # Errors
///
/// Why the file is of no use.
pub(super) fn anchors(text: &str, now: i64) -> Result<Vec<String>, String> {
    let mut rest = text;
    let mut found = Vec::new();
    let mut key: Option<Key> = None;
    let mut is_root = false;
    while let Some(at) = rest.find('<') {
        let markup = &rest[at..];
        if let Some(comment) = markup.strip_prefix("<!--") {
            rest = comment.split_once("-->").ok_or("a comment has no end")?.1;
            continue;
        }
        let (tag, behind) = markup[1..].split_once('>').ok_or("a tag has no end")?;
        rest = behind;
        if tag.starts_with('?') {
            continue;
        }
        if tag.starts_with('!') {
            // Definitions would give the text another meaning.
            return Err("there is more than tags in it".to_owned());
        }
        let name = tag.split_whitespace().next().unwrap_or("");
        let content = || behind.split('<').next().unwrap_or("").trim();
        match (name, &mut key) {
            ("Zone", _) if content() == "." => is_root = true,
            ("Zone", _) => return Err("it is of another zone".to_owned()),
            ("KeyDigest", _) => {
                let holds = |name, is_right: fn(i64, i64) -> bool| {
                    attribute(tag, name).map_or(Ok(true), |text| {
                        moment(text)
                            .map(|then| is_right(then, now))
                            .ok_or_else(|| format!("\"{text}\" is no moment"))
                    })
                };
                let is_valid = holds("validFrom", |from, now| from <= now)?
                    && holds("validUntil", |until, now| now <= until)?;
                key = is_valid.then(Key::default);
            }
            ("/KeyDigest", _) => {
                if let Some(key) = key.take() {
                    found.push(key.record().ok_or("a digest of a key is no record of DS")?);
                }
            }
            ("KeyTag", Some(key)) => key.tag = content().parse().ok(),
            ("Algorithm", Some(key)) => key.algorithm = content().parse().ok(),
            ("DigestType", Some(key)) => key.digest_type = content().parse().ok(),
            ("Digest", Some(key)) => key.digest = content().to_ascii_uppercase(),
            _ => {}
        }
    }
    if !is_root || key.is_some() {
        return Err("it is not a file of anchors".to_owned());
    }
    if found.is_empty() {
        return Err("no anchor in it holds now".to_owned());
    }
    Ok(found)
}

#[derive(Default)]
struct Key {
    tag: Option<u16>,
    algorithm: Option<u8>,
    digest_type: Option<u8>,
    digest: String,
}

impl Key {
    fn record(self) -> Option<String> {
        let digits = &self.digest;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_hex || digits.is_empty() || !digits.len().is_multiple_of(2) {
            return None;
        }
        Some(format!(". IN DS {} {} {} {digits}", self.tag?, self.algorithm?, self.digest_type?))
    }
}

/// Returns the value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_whitespace().find_map(|word| {
        let value = word.strip_prefix(name)?.strip_prefix('=')?.trim_end_matches('/');
        value.strip_prefix('"')?.strip_suffix('"')
    })
}

/// Reads a moment, `2010-07-15T00:00:00+00:00`, as seconds since 1970.
fn moment(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse().ok());
    let day = existing_day(date.next()??, date.next()??, date.next()??)?;
    let (time, zone) = time.split_at_checked(8)?;
    let clock = |text: &str| {
        let mut parts = text.split(':').map(|part| part.parse::<u32>().ok());
        let (hour, minute) = (parts.next()??, parts.next()??);
        let second = parts.next().unwrap_or(Some(0))?;
        (hour < 24 && minute < 60 && second <= 60).then(|| i64::from(hour * 3600 + minute * 60 + second))
    };
    let ahead = match zone.split_at_checked(1) {
        None | Some(("Z", "")) => 0,
        Some(("+", zone)) => clock(zone)?,
        Some(("-", zone)) => -clock(zone)?,
        Some(_) => return None,
    };
    Some(i64::from(day) * DAY_SECS + clock(time)? - ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../../../../tests/fixtures/anchor/anchors.xml");

    #[test]
    fn anchors_are_those_that_hold_now() {
        let tags = |at: &str| {
            let found = anchors(TEXT, moment(at).unwrap()).map_err(|why| why.len());
            found.map(|all| all.iter().map(|it| it[8..13].to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(tags("2016-01-01T00:00:00Z"), Ok(vec!["19036".to_owned()]));
        assert_eq!(tags("2018-01-01T00:00:00Z"), Ok(vec!["19036".to_owned(), "20326".to_owned()]));
        assert_eq!(tags("2025-01-01T00:00:00+00:00"), Ok(vec!["20326".to_owned(), "38696".to_owned()]));
        assert_eq!(tags("2000-01-01T00:00:00Z"), Err("no anchor in it holds now".len()));
        let all = anchors(TEXT, i64::MAX).unwrap();
        assert!(all[0].starts_with(". IN DS 20326 8 2 E06D44B80B8F"), "{all:?}");
    }

    #[test]
    fn what_is_no_file_of_anchors_says_so() {
        let why = |text: &str| anchors(text, 0).unwrap_err();
        assert_eq!(why("<Zone>example.</Zone>"), "it is of another zone");
        assert_eq!(why("<!DOCTYPE x [ <!ENTITY y \"z\"> ]>"), "there is more than tags in it");
        assert_eq!(why("<Zone>.</Zone>"), "no anchor in it holds now");
        assert_eq!(why("<html></html>"), "it is not a file of anchors");
        assert_eq!(why("<Zone>.</Zone><KeyDigest>"), "it is not a file of anchors");
        assert_eq!(why("<Zone>.</Zone><KeyDigest validFrom=\"now\">"), "\"now\" is no moment");
        let digest = "<Zone>.</Zone><KeyDigest><KeyTag>1</KeyTag><Digest>xy</Digest></KeyDigest>";
        assert_eq!(why(digest), "a digest of a key is no record of DS");
        assert_eq!(why("<!-- <Zone"), "a comment has no end");
        assert_eq!(why("<Zone"), "a tag has no end");
    }

    #[test]
    fn moments_have_a_zone_of_time() {
        assert_eq!(moment("1970-01-02T00:00:01Z"), Some(DAY_SECS + 1));
        assert_eq!(moment("1970-01-02T00:00:00+01:00"), Some(DAY_SECS - 3600));
        assert_eq!(moment("1970-01-02T00:00:00-01:30"), Some(DAY_SECS + 5400));
        assert_eq!(moment("1970-01-02T00:00:00"), Some(DAY_SECS));
        for wrong in ["", "1970-01-02", "1970-13-02T00:00:00", "1970-01-02T25:00:00", "1970-01-02T00:00:00x"]
        {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }
}
