//! The process, its log, and what it says of itself.

use super::Lowering;
use crate::tree;

/// Returns the level of our log that a verbosity is.
pub const fn log_level(verbosity: u64) -> &'static str {
    match verbosity {
        0 => "warn",
        1 => "info",
        2 | 3 => "debug",
        _ => "trace",
    }
}

impl Lowering<'_> {
    pub(super) fn process(&mut self) {
        let (threads, at) = self.bounded("num-threads", 1, 1024);
        self.set_number(&["server", "workers"], (threads, at));
        if let Some(user) = self.last("username") {
            let name = if user.text.is_empty() { "root" } else { &user.text };
            self.set(&["server", "user"], tree::text(name, user.span));
        }
        if let Some(chroot) = self.last("chroot").filter(|chroot| !chroot.text.is_empty()) {
            self.warn(
                chroot.span,
                "\"chroot\" has no effect: the server sees the whole file system; systemd can restrict it",
            );
        }
        let (level, at) = self.number("verbosity");
        self.set(&["log", "level"], tree::text(log_level(level), at));
        self.presentation();
        let (rotates, at) = self.flag("rrset-roundrobin");
        self.set(&["server", "rotate"], tree::flag(rotates, at));
        let (denies, at) = self.flag("deny-any");
        self.set(&["server", "minimal-any"], tree::flag(denies, at));
    }

    /// What is told of the server in class CHAOS, and as its NSID.
    fn presentation(&mut self) {
        if let (false, _) = self.flag("hide-version") {
            let (text, at) = match self.last("version").filter(|word| !word.text.is_empty()) {
                Some(word) => (word.text.clone(), word.span),
                None => (concat!("gannet ", env!("CARGO_PKG_VERSION")).to_owned(), self.tree.whole()),
            };
            self.set(&["server", "version"], tree::text(text, at));
        }
        let (text, at) = match self.last("nsid").filter(|word| !word.text.is_empty()) {
            Some(word) => match word.text.strip_prefix("ascii_") {
                Some(text) => (text.to_owned(), word.span),
                None => (format!("hex:{}", word.text), word.span),
            },
            None => ("hidden".to_owned(), self.tree.whole()),
        };
        self.set(&["server", "nsid"], tree::text(text, at));
        let (hides, at) = self.flag("hide-trustanchor");
        self.set(&["server", "trust-anchors"], tree::flag(!hides, at));
        let identity = self.last("identity").filter(|word| !word.text.is_empty());
        if let (false, _) = self.flag("hide-identity") {
            let node = identity.map_or_else(|| tree::text("host", self.tree.whole()), tree::as_written);
            self.set(&["server", "hostname"], node.clone());
            self.set(&["server", "identity"], node);
        }
    }
}
