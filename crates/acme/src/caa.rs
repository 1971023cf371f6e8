//! CAA records: whom the owner of a name lets give certificates for it (RFC 8659).
//!
//! The authority looks, too. Looking first names the record that is in the way, and costs no
//! attempt at the authority.

/// A CAA record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caa {
    /// Its name.
    pub owner: String,
    /// Its flags.
    pub flags: u8,
    /// Its property, in lower case.
    pub tag: String,
    /// The value of the property.
    pub value: String,
}

/// Whoever does not know the property gives no certificate (RFC 8659 §4.1).
const CRITICAL: u8 = 0x80;
/// Properties that say whom something is reported to, or concern certificates for mail.
const OF_NO_CONCERN: [&str; 6] =
    ["issuewild", "iodef", "issuemail", "issuevmc", "contactemail", "contactphone"];

impl Caa {
    /// Reads the data of a record (RFC 8659 §4.1); `None` if it is none.
    pub fn read(owner: String, rdata: &[u8]) -> Option<Self> {
        let (&[flags, length], rest) = rdata.split_first_chunk::<2>()?;
        let (tag, value) = rest.split_at_checked(usize::from(length))?;
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        Some(Self { owner, flags, tag: text(tag).to_ascii_lowercase(), value: text(value) })
    }

    /// Returns the domain of the authority that it names; none for nobody.
    fn issuer(&self) -> &str {
        self.value.split(';').next().unwrap_or("").trim()
    }
}

/// Returns why an authority may give no certificate for a name; `None` if it may.
///
/// `records` are those that count for it, `authority` how the authority is called in such records.
pub(crate) fn refusal(records: &[Caa], authority: &[String], is_wildcard: bool) -> Option<String> {
    let is_strange = |it: &&Caa| {
        it.flags & CRITICAL != 0 && it.tag != "issue" && !OF_NO_CONCERN.contains(&it.tag.as_str())
    };
    if let Some(strange) = records.iter().find(is_strange) {
        return Some(format!(
            "the CAA record of {} has the critical property \"{}\"",
            strange.owner, strange.tag
        ));
    }
    let with = |tag: &str| records.iter().filter(|it| it.tag == tag).collect::<Vec<_>>();
    // RFC 8659 §4.3.
    let of_wildcards = if is_wildcard { with("issuewild") } else { Vec::new() };
    let that_count = if of_wildcards.is_empty() { with("issue") } else { of_wildcards };
    let is_named = |it: &&Caa| authority.iter().any(|name| name.eq_ignore_ascii_case(it.issuer()));
    let first = that_count.first()?;
    if that_count.iter().any(is_named) {
        return None;
    }
    let values: Vec<String> = that_count.iter().map(|it| format!("{} \"{}\"", it.tag, it.value)).collect();
    Some(format!(
        "the CAA records of {} ({}) do not name the authority, which is called {} there",
        first.owner,
        values.join(", "),
        authority.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caa(flags: u8, tag: &str, value: &str) -> Caa {
        Caa { owner: "example.org".to_owned(), flags, tag: tag.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn records_are_read_from_their_data() {
        let read = Caa::read("example.org".to_owned(), b"\x80\x05ISSUEca.example.net; policy=ev");
        assert_eq!(read, Some(caa(0x80, "issue", "ca.example.net; policy=ev")));
        for wrong in [&b""[..], b"\0", b"\0\x09issue"] {
            assert_eq!(Caa::read(String::new(), wrong), None);
        }
    }

    #[test]
    fn whoever_is_named_may_give_certificates_and_nobody_else() {
        let names = ["ca.example.net".to_owned()];
        let check = |records: &[Caa], is_wildcard, expect: Option<&str>| {
            let found = refusal(records, &names, is_wildcard);
            assert_eq!(found.is_some(), expect.is_some(), "{records:?}: {found:?}");
            assert!(expect.is_none_or(|part| found.is_some_and(|found| found.contains(part))));
        };
        check(&[], false, None);
        check(&[caa(0, "iodef", "mailto:a@example.org")], false, None);
        check(&[caa(0, "issue", "CA.example.net; account=1")], false, None);
        check(&[caa(0, "issue", "other.example"), caa(0, "issue", "ca.example.net")], false, None);
        check(&[caa(0, "issue", "other.example")], false, Some("example.org (issue \"other.example\")"));
        check(&[caa(0, "issue", ";")], false, Some("do not name"));
        // Those for wildcards count for wildcards alone.
        let wild = [caa(0, "issue", "ca.example.net"), caa(0, "issuewild", ";")];
        check(&wild, false, None);
        check(&wild, true, Some("issuewild"));
        check(&[caa(0, "issue", "ca.example.net")], true, None);
        check(&[caa(0x80, "future", "x"), caa(0, "issue", "ca.example.net")], false, Some("critical"));
    }
}
