//! Effects, schedules and the recorder: the tree to settings.

use std::time::Duration;

use diagnostic::suggest::one_of;
use diagnostic::{At, Problem, Span, io_text};
use plan::Secret;
use plan::jobs::{
    EffectKind, Family, Http, Ipset, Method, Mikrotik, MikrotikWhat, Nftset, RecordedClients, Recorder,
    RouterTls, Script, Template, Timeout,
};
use values::{Misread, Read};

use super::read::unreachable_kind;
use super::{Lowering, Section};
use crate::jobs::{self, EffectSettings, ScheduleSettings};
use schema::{Kind, Value};

/// Octets of a text in a setting: a body may be a few lines.
const TEXT_OCTETS_MAX: usize = 16 * 1024;
/// The bounds of `timeout: ttl`, as other servers have them.
const TTL_MIN: Duration = Duration::from_secs(60);
const TTL_MAX: Duration = Duration::from_secs(3600);

/// Where the encrypted API of MikroTik routers listens.
const TLS_PORT: u16 = 8729;

/// Settings that effects of every kind have.
const COMMON: &[&str] = &["type", "queue"];
/// Settings of each kind of effect.
const KINDS: &[(&str, &[&str])] = &[
    (
        "nftset",
        &[
            "family",
            "table",
            "set",
            "set4",
            "set6",
            "prefix4",
            "prefix6",
            "timeout",
            "timeout-min",
            "timeout-max",
        ],
    ),
    ("ipset", &["set4", "set6", "prefix4", "prefix6", "timeout", "timeout-min", "timeout-max"]),
    (
        "mikrotik-list",
        &[
            "address",
            "tls",
            "server-name",
            "ca",
            "verify",
            "user",
            "password",
            "list4",
            "list6",
            "always",
            "comment",
            "patience",
            "timeout",
            "timeout-min",
            "timeout-max",
        ],
    ),
    (
        "mikrotik-route",
        &[
            "address",
            "tls",
            "server-name",
            "ca",
            "verify",
            "user",
            "password",
            "gateway4",
            "gateway6",
            "routing-table",
            "distance",
            "comment",
            "patience",
            "timeout",
            "timeout-min",
            "timeout-max",
        ],
    ),
    ("http", &["url", "method", "headers", "body", "ca", "verify", "patience", "concurrency"]),
    ("script", &["command", "arguments", "environment", "directory", "patience", "concurrency"]),
];

fn any_text(text: &str) -> Read<String> {
    if text.is_empty() || text.len() > TEXT_OCTETS_MAX {
        let message = if text.is_empty() { "the text is empty" } else { "the text is too long" };
        return Err(Misread {
            at: 0..text.len(),
            message: message.to_owned(),
            expected: Some(format!("1 to {TEXT_OCTETS_MAX} octets")),
            hint: None,
        });
    }
    Ok(text.to_owned())
}

fn template(text: &str) -> Read<Template> {
    any_text(text).and_then(|text| jobs::template(&text))
}

/// Reads `Name: value` or `NAME=value`.
fn pair(text: &str, separator: char, example: &str) -> Read<(String, Template)> {
    let wrong = || Misread {
        at: 0..text.len(),
        message: format!("\"{text}\" has no name and value"),
        expected: Some(example.to_owned()),
        hint: None,
    };
    let (name, value) = text.split_once(separator).ok_or_else(wrong)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(wrong());
    }
    let value = if separator == ':' { value.trim() } else { value };
    let at = value.as_ptr() as usize - text.as_ptr() as usize;
    let template = jobs::template(value)
        .map_err(|misread| Misread { at: at + misread.at.start..at + misread.at.end, ..misread })?;
    Ok((name.to_owned(), template))
}

/// Reads `http://…` or `https://…`.
fn url(text: &str) -> Read<Template> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => template(text),
        _ => Err(Misread {
            at: 0..text.len(),
            message: format!("\"{text}\" is not a URL of HTTP"),
            expected: Some("https://example.org/path or http://192.0.2.1:8080/path".to_owned()),
            hint: None,
        }),
    }
}

/// Checks a time in the form of cron.
fn cron(text: &str) -> Read<String> {
    match text.parse::<croner::Cron>() {
        Ok(_) if text.split_whitespace().count() == 5 || text.starts_with('@') => Ok(text.to_owned()),
        found => Err(Misread {
            at: 0..text.len(),
            message: match found {
                Ok(_) => format!("\"{text}\" has not five fields"),
                Err(error) => format!("\"{text}\" is not a time: {}", error.to_string().to_lowercase()),
            },
            expected: Some(
                "minute, hour, day of the month, month, day of the week, such as 0 4 * * *".to_owned(),
            ),
            hint: None,
        }),
    }
}

/// Checks the name of a time zone.
fn zone(text: &str) -> Read<String> {
    if text == "local" || jiff::tz::TimeZone::get(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err(Misread {
        at: 0..text.len(),
        message: format!("unknown time zone \"{text}\""),
        expected: Some("one of the IANA database such as Europe/Berlin, or \"local\"".to_owned()),
        hint: None,
    })
}

impl Lowering<'_> {
    pub(super) fn effects(&mut self, root: &Section<'_>) -> Vec<EffectSettings> {
        let mut effects = Vec::new();
        for (name, section) in self.named_sections(root, "effects") {
            let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            let kind = self.optional(&section, "type", |lowering, row, node| {
                let Kind::One(Value::Word(words)) = row.kind else { unreachable_kind(&row.kind) };
                lowering.read(node, &one_of(words), |text| {
                    Self::one_word(words, text, |text| kinds.iter().position(|kind| *kind == text))
                })
            });
            let queue = self.whole(&section, "queue") as usize;
            let Some(kind) = kind else {
                if section.entry("type").is_none() {
                    self.problems.push(
                        Problem::error(name.span, format!("effect \"{}\" has no type", name.value))
                            .expected(format!("\"type:\" and {}", one_of(&kinds))),
                    );
                }
                continue;
            };
            let Some((word, keys)) = KINDS.get(kind.value) else { continue };
            for entry in section.entries.iter() {
                let is_elsewhere = KINDS.iter().any(|(_, keys)| keys.contains(&entry.key.as_str()));
                let is_known = COMMON.contains(&entry.key.as_str()) || keys.contains(&entry.key.as_str());
                if !is_known && is_elsewhere {
                    let message = format!("an effect of the type {word} has no \"{}\"", entry.key);
                    self.problems.push(Problem::error(entry.key_span, message).expected(one_of(keys)));
                }
            }
            let before = self.problems.len();
            let made = match *word {
                "nftset" => self.nftset(&section),
                "ipset" => self.ipset(&section),
                "mikrotik-list" | "mikrotik-route" => {
                    self.mikrotik(&section, *word == "mikrotik-list", &name)
                }
                "http" => self.http(&section),
                _ => self.script(&section),
            };
            match made {
                Some(kind) => effects.push(EffectSettings { name, queue, kind }),
                // Something that is needed is not there, or not right; then it was said.
                None if self.problems.len() > before => {}
                None => {
                    let needs = match *word {
                        "nftset" => "\"table:\" and \"set4:\" or \"set6:\"",
                        "ipset" => "\"set4:\" or \"set6:\"",
                        "mikrotik-list" => {
                            "\"address:\", \"user:\", \"password:\" and \"list4:\" or \"list6:\""
                        }
                        "mikrotik-route" => {
                            "\"address:\", \"user:\", \"password:\" and \"gateway4:\" or \"gateway6:\""
                        }
                        "http" => "\"url:\"",
                        _ => "\"command:\"",
                    };
                    let message = format!("effect \"{}\" is incomplete", name.value);
                    self.problems.push(Problem::error(name.span, message).expected(needs));
                }
            }
        }
        effects
    }

    pub(super) fn some_text(&mut self, section: &Section<'_>, key: &str) -> Option<String> {
        let read = |lowering: &mut Self, _, node: &_| lowering.read(node, "a text", any_text);
        self.optional(section, key, read).map(|at| at.value)
    }

    fn prefix(&mut self, section: &Section<'_>, key: &str) -> u8 {
        self.whole(section, key) as u8
    }

    fn timeout(&mut self, section: &Section<'_>, otherwise: Timeout) -> Timeout {
        let mut bound = |key: &str| {
            let read = |lowering: &mut Self, _, node: &_| lowering.read(node, "a duration", values::duration);
            self.optional(section, key, read).map(|at| at.value)
        };
        let (min, max) = (bound("timeout-min"), bound("timeout-max"));
        let ttl = Timeout::Ttl {
            min: min.unwrap_or(TTL_MIN),
            max: max.unwrap_or(TTL_MAX).max(min.unwrap_or(TTL_MIN)),
        };
        let timeout = self.optional(section, "timeout", |lowering, _, node| {
            lowering.read(node, "\"ttl\", \"none\" or a duration", |text| match text {
                "none" => Ok(Timeout::None),
                "ttl" => Ok(ttl),
                text => values::duration(text).map(Timeout::Fixed),
            })
        });
        let timeout = timeout.map_or(if otherwise == Timeout::None { otherwise } else { ttl }, |at| at.value);
        for key in ["timeout-min", "timeout-max"] {
            if let (false, Some(entry)) = (matches!(timeout, Timeout::Ttl { .. }), section.entry(key)) {
                let message = format!("\"{key}\" is ignored: the timeout does not follow the TTL");
                self.problems.push(Problem::warning(entry.key_span, message));
            }
        }
        timeout
    }

    fn nftset(&mut self, section: &Section<'_>) -> Option<EffectKind> {
        let family = self.word(section, "family", |text| {
            Family::WORDS.iter().find(|(word, _)| *word == text).map(|(_, family)| *family)
        });
        let table = self.some_text(section, "table");
        let [set, set4, set6] = ["set", "set4", "set6"].map(|key| self.some_text(section, key));
        let [prefix4, prefix6] = ["prefix4", "prefix6"].map(|key| self.prefix(section, key));
        let timeout = self.timeout(section, Timeout::None);
        if set.is_none() && set4.is_none() && set6.is_none() {
            return None;
        }
        Some(EffectKind::Nftset(Nftset { family, table: table?, set4, set6, set, prefix4, prefix6, timeout }))
    }

    fn ipset(&mut self, section: &Section<'_>) -> Option<EffectKind> {
        let [set4, set6] = ["set4", "set6"].map(|key| self.some_text(section, key));
        let [prefix4, prefix6] = ["prefix4", "prefix6"].map(|key| self.prefix(section, key));
        let timeout = self.timeout(section, Timeout::None);
        if set4.is_none() && set6.is_none() {
            return None;
        }
        Some(EffectKind::Ipset(Ipset { set4, set6, prefix4, prefix6, timeout }))
    }

    fn mikrotik(&mut self, section: &Section<'_>, is_list: bool, name: &At<String>) -> Option<EffectKind> {
        let tls = self.router_tls(section);
        let address = self.optional(section, "address", |lowering, row, node| {
            let Kind::One(Value::Socket { port, .. }) = row.kind else { unreachable_kind(&row.kind) };
            let port = if tls.is_some() { TLS_PORT } else { port };
            lowering.read(node, "an address", |text| values::socket_address(text, port))
        });
        let user = self.some_text(section, "user");
        let password = self.password(section, "password");
        let comment = self.some_text(section, "comment").unwrap_or_else(|| format!("gannet:{}", name.value));
        let patience = self.duration(section, "patience");
        let ttl = Timeout::Ttl { min: TTL_MIN, max: TTL_MAX };
        let timeout = self.timeout(section, ttl);
        let what = if is_list {
            let [list4, list6] = ["list4", "list6"].map(|key| self.some_text(section, key));
            if list4.is_none() && list6.is_none() {
                return None;
            }
            let always = self.prefixes(section, "always");
            for prefix in &always {
                let list = if prefix.address().is_ipv4() { (&list4, "list4") } else { (&list6, "list6") };
                if let ((None, key), Some(entry)) = (list, section.entry("always")) {
                    let message = format!("{prefix} has no list to be in");
                    self.problems
                        .push(Problem::error(entry.key_span, message).expected(format!("\"{key}:\"")));
                }
            }
            MikrotikWhat::Lists { list4, list6, always }
        } else {
            let [gateway4, gateway6, table] =
                ["gateway4", "gateway6", "routing-table"].map(|key| self.some_text(section, key));
            let distance = self.whole(section, "distance") as u8;
            if gateway4.is_none() && gateway6.is_none() {
                return None;
            }
            MikrotikWhat::Routes { gateway4, gateway6, table, distance }
        };
        let (address, user, password) = (address?.value, user?, password?);
        let router = Mikrotik { address, tls, user, password, patience, comment, timeout, what };
        Some(EffectKind::Mikrotik(router))
    }

    fn router_tls(&mut self, section: &Section<'_>) -> Option<RouterTls> {
        let is_encrypted = self.boolean(section, "tls");
        let name = self.some_text(section, "server-name");
        let ca = self.path(section, "ca").map(|at| self.beside(at.span.file, &at.value));
        let verifies = self.boolean(section, "verify");
        if is_encrypted {
            return Some(RouterTls { name, ca, verifies });
        }
        for key in ["server-name", "ca", "verify"] {
            if let Some(entry) = self.said(section, key) {
                let message = format!("\"{key}\" is ignored: the API is not encrypted");
                self.problems
                    .push(Problem::warning(entry.key_span, message).hint("set \"tls: true\" beside it"));
            }
        }
        None
    }

    fn http(&mut self, section: &Section<'_>) -> Option<EffectKind> {
        let address = self.optional(section, "url", |lowering, _, node| lowering.read(node, "a URL", url));
        let method = self.optional(section, "method", |lowering, row, node| {
            let Kind::One(Value::Word(words)) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &one_of(words), |text| {
                let find = |text: &str| {
                    Method::WORDS.iter().find(|(word, _)| *word == text).map(|(_, method)| *method)
                };
                Self::one_word(words, &text.to_ascii_lowercase(), find)
            })
        });
        let headers =
            self.list(section, "headers", |_, _, scalar| pair(&scalar.text, ':', "\"Name: value\""));
        let body =
            self.optional(section, "body", |lowering, _, node| lowering.read(node, "a text", template));
        let ca = self.path(section, "ca").map(|at| self.beside(at.span.file, &at.value));
        let verifies = self.boolean(section, "verify");
        let patience = self.duration(section, "patience");
        let concurrency = self.whole(section, "concurrency") as usize;
        // Without being told: what has a body is posted.
        let usual = if body.is_some() { Method::Post } else { Method::Get };
        Some(EffectKind::Http(Http {
            url: address?.value,
            method: method.map_or(usual, |at| at.value),
            headers: headers.into_iter().map(|at| at.value).collect(),
            body: body.map(|at| at.value),
            patience,
            ca,
            verifies,
            concurrency,
        }))
    }

    fn script(&mut self, section: &Section<'_>) -> Option<EffectKind> {
        let command = self.path(section, "command");
        let arguments = self.list(section, "arguments", |_, _, scalar| jobs::template(&scalar.text));
        let environment =
            self.list(section, "environment", |_, _, scalar| pair(&scalar.text, '=', "NAME=value"));
        let directory = self.path(section, "directory").map(|at| self.beside(at.span.file, &at.value));
        let patience = self.duration(section, "patience");
        let concurrency = self.whole(section, "concurrency") as usize;
        let command = command?;
        // A word without a slash is looked for as a shell would.
        let has_slash = command.value.as_os_str().as_encoded_bytes().contains(&b'/');
        let command = if has_slash { self.beside(command.span.file, &command.value) } else { command.value };
        Some(EffectKind::Script(Script {
            command,
            arguments: arguments.into_iter().map(|at| at.value).collect(),
            environment: environment.into_iter().map(|at| at.value).collect(),
            directory,
            patience,
            concurrency,
        }))
    }

    /// Warns of a file with a secret that everybody can read.
    pub(super) fn warn_of_open_file(&mut self, file: &std::path::Path, place: Span) {
        if (self.is_open_to_all)(file) {
            let message = format!("every user of this machine can read the secret in \"{}\"", file.display());
            let problem = Problem::warning(place, message);
            self.problems.push(problem.hint("\"chmod o-rwx\" keeps it to those who need it"));
        }
    }

    /// Reads a secret text, or the file that holds it.
    pub(super) fn password(&mut self, section: &Section<'_>, key: &str) -> Option<Secret> {
        let text =
            self.optional(section, key, |lowering, _, node| lowering.read(node, "a text", any_text))?;
        let Some(name) = text.value.strip_prefix("file:") else {
            return Some(Secret::new(text.value.into_bytes()));
        };
        let file = self.beside(text.span.file, std::path::Path::new(name));
        match (self.read_file)(&file) {
            Ok(octets) => {
                self.warn_of_open_file(&file, text.span);
                Some(Secret::new(octets.trim_ascii_end().to_vec()))
            }
            Err(error) => {
                let message = format!("cannot read \"{}\": {}", file.display(), io_text(&error));
                self.problems.push(Problem::error(text.span, message));
                None
            }
        }
    }

    pub(super) fn recorder(&mut self, root: &Section<'_>) -> Option<Recorder> {
        let section = self.section(root, "recorder");
        let file = self.path(&section, "file");
        let recorder = Recorder {
            file: file.as_ref().map(|at| at.value.clone()).unwrap_or_default(),
            records_all: self.word(&section, "queries", |text| match text {
                "all" => Some(true),
                "chosen" => Some(false),
                _ => None,
            }),
            share_percent: self.percent_or(&section, "share").unwrap_or(100),
            keeps_path: self.boolean(&section, "path"),
            keep: self.duration(&section, "keep"),
            octets_max: self.size(&section, "size"),
            clients: self.word(&section, "clients", |text| match text {
                "full" => Some(RecordedClients::Full),
                "prefix" => Some(RecordedClients::Prefix),
                "pseudonym" => Some(RecordedClients::Pseudonym),
                "none" => Some(RecordedClients::None),
                _ => None,
            }),
            except_clients: self.prefixes(&section, "except-clients"),
        };
        if file.is_none() {
            // A default that is written out says nothing that could be missed.
            let is_default = |entry: &&yaml::Entry| {
                let default = schema::find(&format!("recorder.{}", entry.key)).and_then(|row| row.default);
                match &entry.node.value {
                    yaml::Value::Scalar(scalar) => default == Some(scalar.text.as_str()),
                    yaml::Value::List(items) => items.is_empty() && default == Some("[]"),
                    _ => false,
                }
            };
            let others = section.entries.iter().filter(|entry| entry.key != "file");
            for entry in others.filter(|entry| !is_default(entry)) {
                let message = format!("\"{}\" is ignored: nothing is recorded", entry.key);
                self.problems.push(Problem::warning(entry.key_span, message).hint("set \"file\" beside it"));
            }
        }
        file.map(|_| recorder)
    }

    pub(super) fn schedules(&mut self, root: &Section<'_>) -> Vec<ScheduleSettings> {
        let mut schedules: Vec<ScheduleSettings> = Vec::new();
        for item in self.items(root, "schedules") {
            let at = self.optional(&item, "at", |lowering, _, node| lowering.read(node, "five fields", cron));
            let time_zone = self
                .optional(&item, "time-zone", |lowering, _, node| lowering.read(node, "a time zone", zone));
            let name = self.optional(&item, "name", |lowering, _, node| {
                lowering.read(node, "a name", |text| values::identifier(text).map(str::to_owned))
            });
            let tasks = self.list(&item, "do", |_, _, scalar| jobs::task(&scalar.text));
            let Some(at) = at else {
                if item.entry("at").is_none() {
                    let message = "\"at\" is missing";
                    self.problems
                        .push(Problem::error(item.span, message).expected("a time such as \"0 4 * * *\""));
                }
                continue;
            };
            if tasks.is_empty() && item.entry("do").is_none() {
                self.problems
                    .push(Problem::error(item.span, "this schedule does nothing").expected("\"do:\""));
            }
            let usual = || tasks.first().map_or_else(String::new, |task| task.value.to_string());
            let (mut name, span) = name.map_or_else(|| (usual(), item.span), |at| (at.value, at.span));
            if schedules.iter().any(|other| other.name == name) {
                if item.entry("name").is_some() {
                    self.problems.push(Problem::error(span, format!("schedule \"{name}\" is there twice")));
                }
                name = format!("{name} {}", schedules.len() + 1);
            }
            schedules.push(ScheduleSettings {
                name,
                at,
                time_zone: time_zone.filter(|zone| zone.value != "local"),
                tasks,
            });
        }
        schedules
    }
}
