//! The log: where it goes, how it looks, and what it has of queries.

use super::Lowering;
use crate::tree;

/// The name of the program in its log.
const IDENTITY: &str = "unbound";

impl Lowering<'_> {
    pub(super) fn log(&mut self) {
        let whole = self.tree.whole();
        self.set(&["log", "format"], tree::text("unbound", whole));
        let identity = self.last("log-identity").filter(|word| !word.text.is_empty());
        let identity = identity.map_or_else(|| tree::text(IDENTITY, whole), tree::as_written);
        self.set(&["log", "identity"], identity);
        // Of both, the one that is written last switches the other off.
        let last = self.server().iter().rfind(|it| matches!(it.row.name, "logfile" | "use-syslog"));
        if let Some(statement) = last {
            let word = statement.word(0);
            match (statement.row.name, word.text.as_str()) {
                ("logfile", "") | ("use-syslog", "no") => {}
                ("logfile", _) => {
                    let file = self.file(word);
                    self.set(&["log", "to"], file);
                }
                _ => self.set(&["log", "to"], tree::text("syslog", word.span)),
            }
        }
        if let (true, at) = self.flag("log-time-ascii") {
            // "log-time-iso" says how, and not that.
            let (is_iso, iso_at) = self.flag("log-time-iso");
            let (word, at) = if is_iso { ("iso", iso_at) } else { ("ascii", at) };
            self.set(&["log", "time"], tree::text(word, at));
        }
        if let (true, at) = self.flag("log-tag-queryreply") {
            self.set(&["log", "tag-queries"], tree::flag(true, at));
        }
        let has_lines = self.query_lines().is_some() || self.flag("log-local-actions").0;
        if has_lines && self.number("verbosity").0 == 0 {
            // Lines about queries do not depend on it there.
            self.set(&["log", "level"], tree::text("info", whole));
        }
        if let Some(word) = self.last("pidfile").filter(|word| !word.text.is_empty()) {
            let file = self.file_outside(word);
            self.set(&["server", "pid-file"], file);
        }
    }

    /// Returns the step that logs queries, if any are.
    pub(super) fn query_lines(&self) -> Option<yaml::Node> {
        let lines = [("log-queries", "question"), ("log-replies", "reply"), ("log-servfail", "failure")];
        let mut wanted = Vec::new();
        let mut place = None;
        for (keyword, word) in lines {
            if let (true, at) = self.flag(keyword) {
                wanted.push(word);
                place.get_or_insert(at);
            }
        }
        if let (true, at) = self.flag("log-destaddr")
            && wanted.contains(&"reply")
        {
            wanted.push("destination");
            place.get_or_insert(at);
        }
        let (level, at) = self.number("val-log-level");
        if level > 0 {
            wanted.push("bogus");
            wanted.extend((level > 1).then_some("reason"));
            place.get_or_insert(at);
        }
        Some(tree::text(format!("query-lines({})", wanted.join(", ")), place?))
    }
}
