//! Checks of what records lead to: the tree to settings.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use diagnostic::suggest::nearest;
use diagnostic::{At, Problem, io_text};
use plan::tls::CertificateDer;
use values::Misread;

use super::{Lowering, Section};
use crate::groups::{CheckWord, TrustedRoots};
use plan::checks::{Check, CheckKind};

impl Lowering<'_> {
    /// Reads the checks.
    pub(super) fn checks(&mut self, root: &Section<'_>) -> Vec<Arc<Check>> {
        let mut checks = Vec::new();
        for (name, section) in self.named_sections(root, "checks") {
            checks.push(Arc::new(self.check(&name.value, &section)));
        }
        checks
    }

    fn check(&mut self, name: &str, section: &Section<'_>) -> Check {
        let word = self.word(section, "type", CheckWord::parse);
        let port = self.whole_or(section, "port").map(|port| port as u16);
        let (path, host) = (self.check_text(section, "path"), self.check_text(section, "host"));
        let statuses = self.list(section, "status", |_, _, scalar| read_statuses(&scalar.text));
        let verifies = self.boolean(section, "verify");
        let roots = self.roots(section);
        if let Some(entry) = section.entry("path")
            && !path.starts_with('/')
        {
            let problem = Problem::error(entry.node.span, format!("\"{path}\" is no path"));
            self.problems.push(problem.expected("something that begins with \"/\""));
        }
        for key in ["path", "host", "status", "verify", "roots"] {
            let is_used = match word {
                CheckWord::Tcp => false,
                CheckWord::Http => !["verify", "roots"].contains(&key),
                CheckWord::Https => true,
            };
            if let Some(entry) = section.entry(key).filter(|_| !is_used) {
                let message = format!("\"{key}\" does nothing with \"type: {}\"", word.word());
                self.problems.push(Problem::warning(entry.key_span, message));
            }
        }
        let roots = match &roots.value {
            TrustedRoots::File(_) if word == CheckWord::Https && !verifies => {
                let message = "\"roots\" is ignored: nothing is verified";
                self.problems.push(Problem::warning(roots.span, message));
                None
            }
            TrustedRoots::File(file) if word == CheckWord::Https => {
                self.authorities(&At { value: file.clone(), span: roots.span })
            }
            TrustedRoots::File(_) | TrustedRoots::Mozilla => None,
        };
        let port = match (port, word) {
            (Some(port), _) => port,
            (None, CheckWord::Https) => 443,
            (None, CheckWord::Http) => 80,
            (None, CheckWord::Tcp) => {
                let problem = Problem::error(section.span, "\"port\" is missing");
                self.problems.push(problem.expected("the port to connect to"));
                0
            }
        };
        let (interval, timeout) = (self.duration(section, "interval"), self.duration(section, "timeout"));
        if timeout > interval {
            let place = section.entry("timeout").map_or(section.span, |entry| entry.node.span);
            let problem = Problem::error(place, "a check would take longer than until the next one");
            self.problems.push(problem.expected("a timeout that is not longer than the interval"));
        }
        let kind = match word {
            CheckWord::Tcp => CheckKind::Tcp,
            CheckWord::Http | CheckWord::Https => CheckKind::Http {
                is_secure: word == CheckWord::Https,
                verifies,
                roots,
                host,
                path,
                statuses: statuses.into_iter().map(|at| at.value).collect(),
            },
        };
        Check {
            name: name.to_owned(),
            kind,
            port,
            interval,
            timeout,
            rise: self.whole(section, "rise") as u32,
            fall: self.whole(section, "fall") as u32,
        }
    }

    /// Reads the certificates of a file.
    fn authorities(&mut self, file: &At<PathBuf>) -> Option<Arc<[CertificateDer<'static>]>> {
        let read =
            (self.read_file)(&file.value).map_err(|error| format!("cannot be read: {}", io_text(&error)));
        let found = read.map(|octets| plan::tls::certificates(&octets)).and_then(|certificates| {
            if certificates.is_empty() { Err("has no certificates".to_owned()) } else { Ok(certificates) }
        });
        match found {
            Ok(certificates) => Some(certificates.into()),
            Err(why) => {
                let problem = Problem::error(file.span, format!("\"{}\" {why}", file.value.display()));
                self.problems.push(problem.expected("a file of certificates (PEM)"));
                None
            }
        }
    }

    fn check_text(&mut self, section: &Section<'_>, key: &str) -> String {
        let text = self.optional(section, key, |lowering, _, node| {
            lowering.read(node, "a text", |text| Ok(text.to_owned()))
        });
        text.map(|at| at.value).unwrap_or_default()
    }

    /// Finds the check that records name.
    pub(super) fn checked_by(&mut self, item: &Section<'_>, checks: &[Arc<Check>]) -> Option<At<Arc<Check>>> {
        let named = self.optional(item, "check", |lowering, _, node| {
            lowering.read(node, "the name of a check", |text| Ok(text.to_owned()))
        })?;
        let found = checks.iter().find(|check| check.name == named.value).cloned();
        if found.is_none() {
            let known: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            let problem = Problem::error(named.span, format!("there is no check \"{}\"", named.value))
                .expected("a check of \"checks:\"");
            self.problems.push(match nearest(&named.value, known.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean \"{near}\"?")),
                None => problem,
            });
        }
        found.map(|value| At { value, span: named.span })
    }
}

/// Reads a status, or a range of them: `200`, `200-299`.
fn read_statuses(text: &str) -> Result<RangeInclusive<u16>, Misread> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let read = |text: &str| text.trim().parse::<u16>().ok().filter(|status| (100..=599).contains(status));
    match (read(first), read(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" is no status of HTTP"),
            expected: Some("a number such as 200, or a range such as 200-299".to_owned()),
            hint: None,
        }),
    }
}
