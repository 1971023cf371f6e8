//! The process, its log, and what it says of itself.

use super::Lowering;
use crate::tree;

/// Whom packages of distributions have the server become.
const USER: &str = "unbound";
/// That user's directory there.
const HOME: &str = "/var/lib/unbound";
/// Where our state is in it, or in `directory`.
const STATE: &str = "gannet";

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
        let (user, at) = match self.last("username") {
            Some(user) if user.text.is_empty() => ("root", user.span),
            Some(user) => (&*user.text, user.span),
            None => (USER, self.tree.whole()),
        };
        self.set(&["server", "user"], tree::text(user, at));
        self.state_directory();
        if let Some(daemonize) = self.last("do-daemonize") {
            self.set(&["server", "daemonize"], tree::flag(daemonize.text == "yes", daemonize.span));
        }
        let (level, at) = self.number("verbosity");
        self.set(&["log", "level"], tree::text(log_level(level), at));
        self.presentation();
        let (rotates, at) = self.flag("rrset-roundrobin");
        self.set(&["server", "rotate"], tree::flag(rotates, at));
        let whole = self.tree.whole();
        // Local zones and the like come first: it is a step of the policy.
        self.set(&["server", "minimal-any"], tree::flag(false, whole));
        self.set(&["server", "fill-truncated"], tree::flag(true, whole));
    }

    /// Where our state is: below the directory that the server may write to.
    fn state_directory(&mut self) {
        let node = match self.last("directory").filter(|word| !word.text.is_empty()) {
            Some(word) => {
                let path = self.inside(self.statements.directory.join(STATE));
                tree::text(path.to_string_lossy(), word.span)
            }
            None => tree::text(format!("{HOME}/{STATE}"), self.tree.whole()),
        };
        self.set(&["server", "state-directory"], node);
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
