//! What rows of the audit log are about, as their kinds have it: a name that stands somewhere in a
//! row is not what the row is about.

use crate::api::AuditFields;

/// Whether a row of the audit log is about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// It is about that.
    It,
    /// It may be.
    Perhaps,
    /// It is about something else.
    Other,
}

fn plain(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// Returns whether a row is about a change of a zone.
pub fn of_zone(row: &AuditFields, zone: &str) -> About {
    let is_same = |name: &str| plain(name) == plain(zone);
    // JSON, in which a quotation mark within a text is escaped.
    let field = |name: &str| {
        let rest = row.on.split_once(&format!("\"{name}\":\"")).map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split_once('"')).is_some_and(|(text, _)| is_same(text))
    };
    let is_it = match row.what.as_str() {
        "zone-add" | "zone-remove" => row.on.split(',').any(is_same),
        "zone-load" => field("zone"),
        "rrsets-change" => rrsets_of(row, zone).is_some(),
        "zone" => {
            let words = ["freeze", "thaw", "reload", "retransfer"];
            words.iter().any(|word| row.on.contains(&format!("\"{word}\""))) && field("name")
        }
        // Settings, and files that say others.
        "change" => {
            let of_zones = |path: &str| path.starts_with("zone") || path.starts_with("catalog");
            return match row.differences.iter().any(|it| of_zones(&it.path)) {
                true => About::Perhaps,
                false => About::Other,
            };
        }
        _ => false,
    };
    if is_it { About::It } else { About::Other }
}

/// Returns the RRsets of a zone that a row names, with their types.
pub fn rrsets_of<'r>(row: &'r AuditFields, zone: &str) -> Option<&'r str> {
    let (of, rrsets) = row.on.split_once(": ").filter(|_| row.what == "rrsets-change")?;
    (plain(of) == plain(zone)).then_some(rrsets)
}

/// Returns whether an RRset is among those that a row names.
pub fn names_rrset(rrsets: &str, (name, rtype): (&str, &str)) -> bool {
    let is_it = |shown: &str| {
        let (of, of_type) = shown.split_once(' ').unwrap_or((shown, ""));
        plain(of) == plain(name) && of_type.eq_ignore_ascii_case(rtype)
    };
    rrsets.split(", ").any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_about_the_zone_that_its_kind_names() {
        let check = |what: &str, on: &str, expect: About| {
            let row = AuditFields {
                at: 0,
                by: "anna".to_owned(),
                what: what.to_owned(),
                on: on.to_owned(),
                outcome: "accepted".to_owned(),
                revision: None,
                differences: Vec::new(),
            };
            assert_eq!(of_zone(&row, "example.org"), expect, "{what} {on}");
        };
        check("zone-add", "a.example, Example.ORG.", About::It);
        check("zone-add", "a.example", About::Other);
        check("zone-remove", "example.org", About::It);
        check("zone-load", "{\"file\":\"/example.org\",\"zone\":\"org\"}", About::Other);
        check("zone-load", "{\"file\":\"/z\",\"zone\":\"example.org\"}", About::It);
        check("rrsets-change", "example.org: www.example.org A", About::It);
        check("rrsets-change", "org: example.org NS", About::Other);
        check("zone", "{\"name\":\"example.org\",\"what\":\"freeze\"}", About::It);
        check("zone", "{\"name\":\"example.org\",\"what\":\"notify\"}", About::Other);
        check("set-add", "example.org", About::Other);
    }
}
