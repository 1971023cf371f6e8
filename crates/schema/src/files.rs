//! Which values name files of the machine: who may only change data must not choose what the server
//! reads or writes there.

use crate::{Kind, Row, Value};

/// Texts with records, in which `$INCLUDE` (RFC 1035 §5.1) names a file.
const RECORDS: [&str; 1] = ["records.*.text"];
/// Texts that say which server is asked or told, and with which files over TLS.
const REMOTES: [&str; 3] = ["zones[].primaries", "zones[].notify", "zone-directories[].notify"];
/// Words in these that a file follows.
const FILE_WORDS: [&str; 3] = ["roots", "certificate", "private-key"];

impl Row {
    /// Returns what one value of the setting may be; `None` if it only groups others.
    const fn value(&self) -> Option<Value> {
        match self.kind {
            Kind::One(value) | Kind::List(value) => Some(value),
            Kind::Section | Kind::Named(_) | Kind::Items => None,
        }
    }

    /// Returns whether each value of the setting is a file, a directory, or a pattern for files.
    pub(crate) const fn is_path(&self) -> bool {
        matches!(self.value(), Some(Value::Path | Value::Glob))
    }

    /// Returns whether one value of the setting names a file or a directory of the machine.
    pub fn names_file(&self, text: &str) -> bool {
        match self.value() {
            Some(Value::Path | Value::Glob) => true,
            Some(Value::Secret { .. } | Value::Password) => text.contains("file:"),
            // The format comes first, then a file or a URL.
            Some(Value::SetList) => {
                let place = text.split_once(':').map_or(text, |(_, place)| place);
                !["https://", "http://"].iter().any(|scheme| place.starts_with(scheme))
            }
            Some(Value::Text { .. }) if RECORDS.contains(&self.path) => {
                text.to_ascii_uppercase().contains("$INCLUDE")
            }
            Some(Value::Text { .. }) if REMOTES.contains(&self.path) => {
                text.split_whitespace().any(|word| FILE_WORDS.contains(&word.to_ascii_lowercase().as_str()))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{RoleWord, Value, find, role_of, rows};

    #[test]
    fn what_always_names_a_file_is_for_admins() {
        for row in rows() {
            assert!(!row.is_path() || row.role == RoleWord::Admin, "{} is for admins", row.path);
            assert!(!row.is_path() || role_of(row.path) == RoleWord::Admin, "{}", row.path);
            let is_secret = matches!(row.value(), Some(Value::Secret { .. } | Value::Password));
            assert!(!is_secret || row.role == RoleWord::Admin, "{} is a secret", row.path);
        }
    }

    #[test]
    fn what_operators_say_in_a_notation_with_a_file_is_known_to_name_one() {
        // Of texts, the manual says where a file may stand in them.
        let says_files = |text: &str| ["FILE", "$INCLUDE", "file or URL"].iter().any(|it| text.contains(it));
        let notations: Vec<&str> = rows()
            .filter(|row| row.role == RoleWord::Operator && row.value().is_some() && says_files(row.text))
            .map(|row| row.path)
            .collect();
        assert_eq!(notations, ["zones[].primaries", "records.*.text", "sets.*.lists[].list"]);
        for (path, text, expect) in [
            ("zones[].primaries", "tls://192.0.2.1 roots /etc/roots.pem", true),
            ("zones[].notify", "tls://192.0.2.1 Private-Key /etc/key.pem", true),
            ("zones[].primaries", "192.0.2.1 key roots.example", false),
            ("records.*.text", "a A 192.0.2.1\n$include /etc/shadow", true),
            ("records.*.text", "a A 192.0.2.1", false),
            ("sets.*.lists[].list", "names:block.txt", true),
            ("sets.*.lists[].list", "adguard:/etc/shadow", true),
            ("sets.*.lists[].list", "adguard:file:///etc/shadow", true),
            ("sets.*.lists[].list", "geosite:https://example.org/x.dat:cn|google", false),
            ("sets.*.text", "/etc/shadow", false),
            ("sets.*.lists[].own", "mine", false),
            ("hosts.files", "x", true),
        ] {
            assert_eq!(find(path).map(|row| row.names_file(text)), Some(expect), "{path}: {text}");
        }
    }
}
