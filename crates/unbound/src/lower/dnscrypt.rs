//! DNSCrypt: a port of the interfaces that are listened on.

use super::Lowering;
use super::listening::Interface;
use crate::keywords::{self, Section};
use crate::read::Word;
use crate::tree;

/// Where the settings are.
const DNSCRYPT: &str = "dnscrypt";

/// Keywords with files.
const FILES: [(&str, &str); 3] = [
    ("dnscrypt-secret-key", "keys"),
    ("dnscrypt-provider-cert", "certificates"),
    ("dnscrypt-provider-cert-rotated", "rotated-certificates"),
];

/// Keywords with sizes.
const SIZES: [(&str, &str); 2] =
    [("dnscrypt-shared-secret-cache-size", "client-keys"), ("dnscrypt-nonce-cache-size", "replay-memory")];

impl Lowering<'_> {
    pub(super) fn dnscrypt(&mut self) {
        let Some((port, at)) = self.dnscrypt_port() else { return };
        let Some(block) = self.blocks(Section::Dnscrypt).next() else { return };
        let usual = self.number("port").0 as u16;
        let names = |name: &str| matches!(name, "interface" | "ip-address");
        let mut interfaces = self.server().iter().filter(|statement| names(statement.row.name));
        let is_there = |text: &str| Interface::read(text, usual).is_some_and(|it| it.port() == port);
        if usual != port && !interfaces.any(|statement| is_there(&statement.word(0).text)) {
            self.warn(at, format!("nobody is served over DNSCrypt: no \"interface\" has the port {port}"));
        }
        if let Some(word) = block.last("dnscrypt-provider") {
            self.set(&[DNSCRYPT, "provider"], tree::as_written(word));
        }
        for (theirs, ours) in FILES {
            let words: Vec<&Word> = block.all(theirs).map(|statement| statement.word(0)).collect();
            for word in words {
                let file = self.file(word);
                self.tree.push(&[DNSCRYPT, ours], file);
            }
        }
        for (theirs, ours) in SIZES {
            if let Some(word) = block.last(theirs) {
                let octets = keywords::size(&word.text).unwrap_or(0).min(1 << 32);
                let text = format!("{}KiB", octets.div_ceil(1024));
                self.set(&[DNSCRYPT, ours], tree::text(text, word.span));
            }
        }
    }

    /// Returns the port on which DNSCrypt is spoken, if it is.
    pub(super) fn dnscrypt_port(&self) -> Option<(u16, diagnostic::Span)> {
        let block = self.blocks(Section::Dnscrypt).next()?;
        let (true, at) = block.flag("dnscrypt-enable") else { return None };
        let port = block.last("dnscrypt-port").map_or(Ok(443), |word| word.text.parse());
        Some((port.unwrap_or(443), at))
    }
}
