//! Where metrics can be fetched, and the log: the tree to settings.

use std::net::SocketAddr;
use std::path::Path;

use diagnostic::Problem;

use super::read::{Values as _, unreachable_kind};
use super::{Lowering, Section};
use crate::groups::{Log, LogFormat, LogPlace, LogTime};
use schema::Value;

impl Lowering<'_> {
    /// Reads where the log goes and how it looks.
    pub(super) fn log(&mut self, root: &Section<'_>) -> Log {
        let section = self.section(root, "log");
        let file = section.entry("to").map_or(section.span.file, |entry| entry.node.span.file);
        let place = match self.text_or(&section, "to").as_deref() {
            None | Some("stderr") => LogPlace::Stderr,
            Some("syslog") => LogPlace::Syslog,
            Some(path) => LogPlace::File(self.beside(file, Path::new(path))),
        };
        Log {
            format: self.word(&section, "format", LogFormat::parse),
            place,
            identity: self.text_or(&section, "identity").unwrap_or_default(),
            time: self.word(&section, "time", LogTime::parse),
            tags_queries: self.boolean(&section, "tag-queries"),
        }
    }

    /// Reads where metrics can be fetched.
    pub(super) fn metrics(&mut self, root: &Section<'_>) -> Vec<SocketAddr> {
        let section = self.section(root, "metrics");
        let listen = self.list(&section, "listen", |_, value, scalar| match value {
            Value::Socket { port, .. } => values::socket_address(&scalar.text, *port),
            other => unreachable_kind(other),
        });
        for (index, at) in listen.iter().enumerate() {
            if at.value.port() != 0 && listen.iter().take(index).any(|other| other.value == at.value) {
                let message = format!("\"{}\" is listened on twice", at.value);
                self.problems.push(Problem::error(at.span, message));
            } else if !at.value.ip().to_canonical().is_loopback() {
                let message = format!("everybody who reaches {} may read the metrics", at.value);
                self.problems.push(
                    Problem::warning(at.span, message)
                        .hint("an address of this machine alone, or a packet filter"),
                );
            }
        }
        listen.values()
    }
}
