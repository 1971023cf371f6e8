//! The channel of `unbound-control`, and what its statistics show.

use diagnostic::Span;

use super::Lowering;
use super::listening::Interface;
use crate::keywords::{self, Section};
use crate::read::{Block, Word};
use crate::tree;

/// Where the files of certificates are if the configuration does not name them.
const DIRECTORY: &str = "/etc/unbound";
/// Where the channel's settings are.
const CHANNEL: [&str; 2] = ["control", "unbound"];

impl Lowering<'_> {
    pub(super) fn control(&mut self) {
        self.statistics();
        let Some(block) = self.blocks(Section::RemoteControl).next() else { return };
        if !block.flag("control-enable").0 {
            return;
        }
        let [a, b] = CHANNEL;
        let port = block.last("control-port").map_or("8953", |word| &word.text);
        let interfaces: Vec<&Word> = block.all("control-interface").map(|it| it.word(0)).collect();
        let mut has_address = false;
        if interfaces.is_empty() {
            for (family, address) in [("do-ip4", "127.0.0.1"), ("do-ip6", "[::1]")] {
                if self.flag(family).0 {
                    has_address = true;
                    self.tree.push(&[a, b, "listen"], tree::text(format!("{address}:{port}"), block.at));
                }
            }
        }
        for word in interfaces {
            if word.text.starts_with('/') {
                self.tree.push(&[a, b, "listen"], tree::as_written(word));
                continue;
            }
            has_address = true;
            match Interface::read(&word.text, port.parse().unwrap_or(0)) {
                Some(place) => self.tree.push(&[a, b, "listen"], tree::text(place.text(), word.span)),
                None => {
                    self.error(
                        word.span,
                        format!("\"{}\" is neither an address, a device nor a path", word.text),
                    );
                }
            }
        }
        let (wants_certificates, at) = block.flag("control-use-cert");
        self.set(&[a, b, "certificates"], tree::flag(wants_certificates, at));
        if wants_certificates && has_address {
            self.certificate_file(block, "certificate", "server-cert-file");
            self.certificate_file(block, "key", "server-key-file");
        }
    }

    fn certificate_file(&mut self, block: &Block, ours: &str, theirs: &'static str) {
        let [a, b] = CHANNEL;
        let node = match block.last(theirs) {
            Some(word) => self.file(word),
            // What is not written is not relative to a directory that is.
            None => {
                let rows = keywords::rows(Section::RemoteControl);
                let name = rows.iter().find(|row| row.name == theirs).map_or("", |row| row.default);
                tree::text(format!("{DIRECTORY}/{name}"), block.at)
            }
        };
        self.set(&[a, b, ours], node);
    }

    fn statistics(&mut self) {
        let [a, b] = CHANNEL;
        for (ours, theirs) in [
            ("extended", "extended-statistics"),
            ("cumulative", "statistics-cumulative"),
            ("inhibit-zero", "statistics-inhibit-zero"),
        ] {
            if let Some(word) = self.last(theirs) {
                let (is, at): (bool, Span) = (word.text == "yes", word.span);
                self.set(&[a, b, "statistics", ours], tree::flag(is, at));
            }
        }
        if self.last("statistics-interval").is_some() {
            let (seconds, at) = self.bounded("statistics-interval", 0, 365 * 86_400);
            let text = if seconds == 0 { "off".to_owned() } else { format!("{seconds}s") };
            self.set(&[a, b, "statistics", "interval"], tree::text(text, at));
        }
    }
}
