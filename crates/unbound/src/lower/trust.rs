//! What is validated, and what is trusted for it.

use diagnostic::Problem;

use super::{Lowering, RESOLVER};
use crate::tree;

impl Lowering<'_> {
    pub(super) fn trust(&mut self) {
        let [a, b] = RESOLVER;
        let files: Vec<_> = self
            .server()
            .iter()
            .filter(|it| {
                matches!(it.row.name, "trust-anchor-file" | "auto-trust-anchor-file" | "trusted-keys-file")
            })
            .map(|it| (it.row.name, it.word(0)))
            .filter(|(_, word)| !word.text.is_empty())
            .collect();
        let mut has_anchor = false;
        for (name, word) in files {
            has_anchor = true;
            let file = self.file(word);
            // What Unbound follows is in the file that it writes.
            if name == "auto-trust-anchor-file" && !self.tree.has(&[a, b, "trust-anchor-state"]) {
                self.set(&[a, b, "trust-anchor-state"], file);
                continue;
            }
            if name == "auto-trust-anchor-file" {
                self.warn(
                    word.span,
                    "of several \"auto-trust-anchor-file\" the first is written: the keys of all zones are in it",
                );
            }
            self.tree.push(&[a, b, "trust-anchors"], file);
        }
        for anchor in self.all("trust-anchor") {
            has_anchor = true;
            self.tree.push(&[a, b, "trust-anchor-records"], tree::as_written(anchor.word(0)));
        }
        for key in ["trust-anchor-signaling", "root-key-sentinel", "aggressive-nsec"] {
            let (is_on, at) = self.flag(key);
            self.set(&[a, b, key], tree::flag(is_on, at));
        }
        self.hold_down();
        self.validation(has_anchor);
        for zone in self.all("domain-insecure") {
            self.tree.push(&[a, b, "negative-trust-anchors"], tree::as_written(zone.word(0)));
        }
        if let (true, at) = self.flag("insecure-lan-zones") {
            for zone in crate::names::lan_zones() {
                self.tree.push(&[a, b, "negative-trust-anchors"], tree::text(zone, at));
            }
        }
        self.algorithms();
        self.time();
    }

    fn hold_down(&mut self) {
        let [a, b] = RESOLVER;
        for (keyword, key) in [("add-holddown", "add-hold-down"), ("del-holddown", "remove-hold-down")] {
            let (seconds, at) = self.number(keyword);
            self.set_seconds(&[a, b, key], (seconds.max(1), at));
        }
        match self.number("keep-missing") {
            (0, at) => self.set(&[a, b, "keep-missing"], tree::text("forever", at)),
            seconds => self.set_seconds(&[a, b, "keep-missing"], seconds),
        }
    }

    fn validation(&mut self, has_anchor: bool) {
        let [a, b] = RESOLVER;
        let whole = self.tree.whole();
        let modules = self.last("module-config");
        let validates = self.has_module("validator");
        let (is_permissive, permissive_at) = self.flag("val-permissive-mode");
        let (denies, denies_at) = self.flag("disable-edns-do");
        if denies && validates && has_anchor {
            self.warn(denies_at, "\"disable-edns-do\" has no effect: answers are validated");
        } else if denies {
            self.set(&["edns", "dnssec"], tree::flag(false, denies_at));
        }
        let (word, at) = match (validates && has_anchor, is_permissive) {
            // Without an anchor nothing can be secure or bogus; clients that validate get what they
            // need for it.
            (false, _) if denies => ("off", denies_at),
            (false, _) => ("relay", modules.map_or(whole, |word| word.span)),
            (true, true) => ("permissive", permissive_at),
            (true, false) => ("on", whole),
        };
        self.set(&[a, b, "validation"], tree::text(word, at));
    }

    fn algorithms(&mut self) {
        let [a, b] = RESOLVER;
        // Zones that are signed with SHA-1 alone are validated there.
        let whole = self.tree.whole();
        self.set(&[a, b, "accept-sha1"], tree::flag(true, whole));
        if let (true, at) = self.flag("harden-algo-downgrade") {
            self.set(&[a, b, "require-all-algorithms"], tree::flag(true, at));
        }
        // DSA, which nobody can check any more, and RSA with SHA-1, which some systems refuse to.
        for (keyword, numbers) in [("fake-sha1", &["3", "5", "6", "7"][..]), ("fake-dsa", &["3", "6"][..])] {
            if let (true, at) = self.flag(keyword)
                && !self.tree.has(&[a, b, "believed-algorithms"])
            {
                for number in numbers {
                    self.tree.push(&[a, b, "believed-algorithms"], tree::text(*number, at));
                }
            }
        }
        if let (false, at) = self.flag("harden-dnssec-stripped") {
            self.set(&[a, b, "require-anchor-keys"], tree::flag(false, at));
        }
        let iterations = self.last("val-nsec3-keysize-iterations");
        let (text, at) = iterations
            .map_or(("1024 150 2048 150 4096 150", self.tree.whole()), |word| (&*word.text, word.span));
        let numbers: Option<Vec<u64>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
        match numbers.filter(|numbers| numbers.len() >= 2 && numbers.len() % 2 == 0) {
            Some(numbers) => {
                // One bound holds for keys of all sizes.
                let most = numbers.iter().skip(1).step_by(2).max().copied().unwrap_or(0);
                self.set_number(&[a, b, "nsec3-iterations"], (most.min(2500), at));
            }
            None => {
                let problem = Problem::error(at, format!("\"{text}\" is no list of sizes and iterations"));
                self.problems
                    .push(problem.expected("pairs of numbers, such as \"1024 150 2048 150 4096 150\""));
            }
        }
    }

    fn time(&mut self) {
        let [a, b] = RESOLVER;
        let Some(word) =
            self.last("val-override-date").filter(|word| word.text != "0" && !word.text.is_empty())
        else {
            return;
        };
        if word.text == "-1" {
            return self.set(&[a, b, "signature-time"], tree::text("any", word.span));
        }
        self.set(&[a, b, "signature-time"], tree::as_written(word));
    }
}
