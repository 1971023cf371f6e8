//! erldns's configuration: Erlang terms, as `sys.config` has them.

use diagnostic::{FileId, Span};

use super::super::write::{Map, Noted, Out};
use super::Files;
use super::made::Made;

/// How deep terms may nest: protects the stack.
const NESTING_MAX: usize = 32;

/// A stage of a pipeline, by a piece of its name, and what does that here.
const STAGES: [(&str, bool); 11] = [
    ("questions", true),
    ("packet_cache", true),
    ("recursive", true),
    ("resolver", true),
    ("dnssec", true),
    ("sorter", true),
    ("section_counter", true),
    ("empty_verification", true),
    ("edns_max_payload", true),
    ("edns_ede", true),
    ("axfr", false),
];

/// One term and where it is.
struct Term {
    value: Value,
    span: Span,
}

enum Value {
    /// An atom, a text or a number: its text.
    Word(String),
    List(Vec<Term>),
    Tuple(Vec<Term>),
    Map(Vec<(Term, Term)>),
}

impl Term {
    fn word(&self) -> Option<&str> {
        match &self.value {
            Value::Word(word) => Some(word),
            Value::List(_) | Value::Tuple(_) | Value::Map(_) => None,
        }
    }

    fn list(&self) -> &[Self] {
        match &self.value {
            Value::List(list) => list,
            Value::Word(_) | Value::Tuple(_) | Value::Map(_) => &[],
        }
    }

    /// Returns the keys and values of a mapping, or of a list of pairs.
    fn pairs(&self) -> Vec<(&Self, &Self)> {
        match &self.value {
            Value::Map(pairs) => pairs.iter().map(|(key, value)| (key, value)).collect(),
            Value::List(list) => list
                .iter()
                .filter_map(|item| match &item.value {
                    Value::Tuple(pair) => Some((pair.first()?, pair.get(1)?)),
                    Value::Word(_) | Value::List(_) | Value::Map(_) => None,
                })
                .collect(),
            Value::Word(_) | Value::Tuple(_) => Vec::new(),
        }
    }

    fn get(&self, key: &str) -> Option<&Self> {
        self.pairs().into_iter().find(|(found, _)| found.word() == Some(key)).map(|(_, value)| value)
    }
}

pub(super) fn import(files: &mut Files<'_>, made: &mut Made, file: FileId, text: &str) {
    let mut reader = Reader { text, file, at: 0 };
    let root = match reader.term(0) {
        Ok(root) => root,
        Err((span, message)) => return files.wrong(span, message),
    };
    made.head.push(
        "\"gannet reload\" reads zones whose files have changed, and takes away those whose files are gone."
            .to_owned(),
    );
    let Some(erldns) = root.get("erldns") else {
        return files.wrong(root.span, "there is no application \"erldns\" in this file");
    };
    for (name, settings) in root.pairs() {
        match name.word() {
            Some("erldns") => {}
            Some("kernel") => level(made, settings),
            Some(other) => {
                files.warn(name.span, format!("\"{other}\" is left out: it is another application"));
            }
            None => {}
        }
    }
    for (name, value) in erldns.pairs() {
        match name.word().unwrap_or("") {
            "listeners" => listeners(files, made, value),
            "zones" => zones(files, made, value),
            "packet_pipeline" | "pipeline" => pipeline(files, made, value, erldns),
            "use_root_hints" if value.word() == Some("true") => {
                files.warn(name.span, "\"use_root_hints\" is left out: a refusal names no root servers");
            }
            // Looked at with the pipeline.
            "use_root_hints" | "query_throttle" | "throttle" => {}
            "packet_cache" => files.warn(
                name.span,
                "\"packet_cache\" is left out: answers are made as fast as they would be found",
            ),
            "admin" => files.warn(
                name.span,
                "\"admin\" is left out: the command \"gannet\" looks after the server through its socket",
            ),
            "autostart_listeners" if value.word() == Some("false") => {
                files.wrong(
                    name.span,
                    "\"autostart_listeners\" cannot be carried over: a server listens when it is started",
                );
            }
            "autostart_listeners" => {}
            other => files.wrong(name.span, format!("erldns has no setting \"{other}\" that is known here")),
        }
    }
}

fn level(made: &mut Made, kernel: &Term) {
    if let Some(level) = kernel.get("logger_level").and_then(Term::word) {
        let word = match level {
            "emergency" | "alert" | "critical" | "error" => "error",
            "warning" | "notice" => "warn",
            "debug" | "all" => "debug",
            _ => "info",
        };
        made.log.put("level", word);
    }
}

fn listeners(files: &mut Files<'_>, made: &mut Made, list: &Term) {
    for listener in list.list() {
        let port = listener.get("port").and_then(Term::word).unwrap_or("53").to_owned();
        let transport = listener.get("transport").and_then(Term::word).unwrap_or("standard");
        let transports: &[&str] = match transport {
            "standard" => &[],
            "udp" => &["udp"],
            "tcp" => &["tcp"],
            "tls" => &["tls"],
            other => {
                files.wrong(listener.span, format!("\"{other}\" is no transport"));
                continue;
            }
        };
        let ips: Vec<String> = match listener.get("ip") {
            None => vec!["0.0.0.0".to_owned(), "::".to_owned()],
            Some(ip) => match &ip.value {
                Value::Word(word) if word == "any" => vec!["0.0.0.0".to_owned(), "::".to_owned()],
                Value::Word(word) => vec![word.clone()],
                Value::Tuple(parts) => {
                    let parts: Vec<&str> = parts.iter().filter_map(Term::word).collect();
                    let hex =
                        |part: &&str| part.parse::<u16>().map_or(String::new(), |part| format!("{part:x}"));
                    match parts.len() {
                        4 => vec![parts.join(".")],
                        _ => vec![parts.iter().map(hex).collect::<Vec<_>>().join(":")],
                    }
                }
                Value::List(_) | Value::Map(_) => Vec::new(),
            },
        };
        for ip in ips {
            match (ip.parse::<std::net::IpAddr>(), port.parse::<u16>()) {
                (Ok(ip), Ok(port)) => {
                    made.listens(&std::net::SocketAddr::new(ip, port).to_string(), transports, &[]);
                }
                _ => files.wrong(
                    listener.span,
                    format!("\"{ip}\" and port \"{port}\" are no address to listen at"),
                ),
            }
        }
        for (key, value) in listener.pairs() {
            match key.word().unwrap_or("") {
                "name" | "port" | "ip" | "transport" => {}
                "parallel_factor" => files
                    .warn(key.span, "\"parallel_factor\" is left out: there is a worker for each processor"),
                "opts" => options(files, made, value),
                other => {
                    files
                        .wrong(key.span, format!("a listener has no setting \"{other}\" that is known here"));
                }
            }
        }
    }
}

fn options(files: &mut Files<'_>, made: &mut Made, options: &Term) {
    let put = |map: &mut Map, key: &str, value: String| {
        // One bound holds for all listeners: the first.
        if map.get(key).is_none() {
            map.put(key, value);
        }
    };
    for (key, value) in options.pairs() {
        match (key.word().unwrap_or(""), value.word()) {
            ("idle_timeout_ms", Some(ms)) => put(&mut made.tcp, "idle-timeout", format!("{ms}ms")),
            ("max_concurrent_queries", Some(count)) => put(&mut made.tcp, "pipeline", count.to_owned()),
            ("max_connections", Some(count)) => put(&mut made.tcp, "connections", count.to_owned()),
            ("tls_opts", _) => {
                match (value.get("certfile").and_then(Term::word), value.get("keyfile").and_then(Term::word))
                {
                    (Some(certificate), Some(private)) => {
                        let (certificate, private) = (files.beside(certificate), files.beside(private));
                        made.shows(certificate, private);
                    }
                    _ => files.wrong(
                        key.span,
                        "\"tls_opts\" without \"certfile\" and \"keyfile\" cannot be carried over",
                    ),
                }
            }
            (other, _) => files.warn(
                key.span,
                format!("\"{other}\" is left out: it tunes erldns's own processes and sockets"),
            ),
        }
    }
}

fn zones(files: &mut Files<'_>, made: &mut Made, zones: &Term) {
    let Some(path) = zones.get("path").and_then(Term::word) else {
        return files.warn(zones.span, "\"zones\" names no \"path\": no zones are loaded");
    };
    let mut map = Map::default();
    let format = match zones.get("format").and_then(Term::word) {
        None | Some("json") => "json",
        Some("zonefile") => "master",
        Some("auto") => "auto",
        Some(other) => {
            return files.wrong(zones.span, format!("\"{other}\" is no format of zones"));
        }
    };
    // A file is a directory with one file in it there; here it is a zone whose name has to be
    // known.
    if path.ends_with(".json") || path.ends_with(".zone") {
        let span = zones.get("path").map_or(zones.span, |path| path.span);
        return files.wrong(span, "a single file cannot be carried over: put it into a directory of its own");
    }
    map.put("path", files.beside(path.trim_end_matches('/')));
    map.put("format", format);
    for (key, value) in zones.pairs() {
        match key.word().unwrap_or("") {
            "path" | "format" => {}
            "strict" if value.word() == Some("true") => {
                files.warn(key.span, "\"strict\" is left out: a zone that has mistakes is not served, and keeps no other from being served");
            }
            "strict" => {}
            "timeout" => {
                files.warn(key.span, "\"timeout\" is left out: zones are read for as long as it takes");
            }
            "keys_path" => match value.word() {
                Some(path) => map.put("key-sets", files.beside(path.trim_end_matches('/'))),
                None => files.wrong(key.span, "\"keys_path\" should be a path"),
            },
            "codecs" if value.list().is_empty() => {}
            "codecs" => files.wrong(
                key.span,
                "\"codecs\" cannot be carried over: types of your own are written as in RFC 3597",
            ),
            "context_options" => {
                let allow = value.get("allow").map_or(&[][..], Term::list);
                let allow: Vec<String> = allow.iter().filter_map(Term::word).map(str::to_owned).collect();
                map.put("contexts", Out::Row(allow));
                if let Some(empty) =
                    value.get("match_empty").and_then(Term::word).filter(|word| *word == "true")
                {
                    map.put("match-empty", empty);
                }
            }
            other => {
                files.wrong(key.span, format!("\"zones\" has no setting \"{other}\" that is known here"));
            }
        }
    }
    made.directories.push(map.into());
}

fn pipeline(files: &mut Files<'_>, made: &mut Made, stages: &Term, erldns: &Term) {
    for stage in stages.list() {
        let Some(name) = stage.word() else {
            files.wrong(stage.span, "a stage that is a function cannot be carried over");
            continue;
        };
        if name.contains("throttle") {
            throttle(files, made, erldns);
            continue;
        }
        let known = STAGES.iter().find(|(piece, _)| name.starts_with("erldns") && name.contains(piece));
        match known {
            Some((_, true)) => {}
            Some((_, false)) => files.warn(
                stage.span,
                format!("\"{name}\" is left out: \"transfer\" says who may take a zone over"),
            ),
            None => files.wrong(stage.span, format!("the stage \"{name}\" cannot be carried over")),
        }
    }
}

/// Writes what the throttle does: one answer to ANY and RRSIG, then the client has to come over
/// TCP.
fn throttle(files: &mut Files<'_>, made: &mut Made, erldns: &Term) {
    let settings = erldns.get("query_throttle").or_else(|| erldns.get("throttle"));
    let word = |key: &str| settings.and_then(|settings| settings.get(key)).and_then(Term::word);
    if word("enabled") == Some("false") {
        return;
    }
    let limit = word("limit").unwrap_or("1").to_owned();
    if let (Some(ttl), Some(settings)) = (word("ttl"), settings)
        && !matches!(ttl, "60" | "60000")
    {
        files.warn(settings.span, "\"ttl\" of the throttle is left out: queries are counted by the minute");
    }
    let mut rule = Map::default();
    rule.put(
        "if",
        format!("transport == udp and qtype in ANY|RRSIG and client not in loopback and rate(client) > {limit}/m burst {limit}"),
    );
    let steps = ["respond(authoritative, continue)", "truncate", "accept"];
    rule.put("do", Out::Row(steps.iter().map(|&step| step.to_owned()).collect()));
    let note = "Queries for ANY and RRSIG that come too often have to come over TCP.".to_owned();
    made.main = vec![Noted { notes: vec![note], value: rule.into() }, Noted::from("zones")];
}

/// What is wrong, and where.
type Wrong = (Span, String);

struct Reader<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at.max(start + 1).min(self.text.len()) as u32 }
    }

    fn skip(&mut self) -> Option<char> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('%') {
                return trimmed.chars().next();
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take(&mut self, text: &str) -> bool {
        self.skip();
        let is_there = self.rest().starts_with(text);
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    fn wrong(&self, start: usize, message: &str) -> Wrong {
        (self.span(start), message.to_owned())
    }

    fn term(&mut self, depth: usize) -> Result<Term, Wrong> {
        let first = self.skip();
        let start = self.at;
        if depth > NESTING_MAX {
            return Err(self.wrong(start, "nested too deeply"));
        }
        let value = match first {
            None => return Err(self.wrong(start, "a term is missing here")),
            Some('[') => {
                self.at += 1;
                Value::List(self.items("]", depth)?)
            }
            Some('{') => {
                self.at += 1;
                Value::Tuple(self.items("}", depth)?)
            }
            Some('#') if self.rest().starts_with("#{") => {
                self.at += 2;
                Value::Map(self.entries(depth)?)
            }
            Some('<') if self.rest().starts_with("<<") => {
                self.at += 2;
                let inside = self.term(depth + 1)?;
                // `<<"text"/utf8>>`.
                self.take("/utf8");
                if !self.take(">>") {
                    return Err(self.wrong(start, "this \"<<\" is not closed"));
                }
                inside.value
            }
            Some(quote @ ('"' | '\'')) => Value::Word(self.quoted(quote)?),
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') => {
                let rest = self.rest();
                let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '-' | '#');
                let mut len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                // A number may have a fraction; a full stop ends the file.
                if rest[len..].starts_with('.') && rest[len + 1..].starts_with(|c: char| c.is_ascii_digit()) {
                    len += 1 + rest[len + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
                }
                let word = rest[..len].to_owned();
                self.at += len;
                Value::Word(word)
            }
            Some(_) => {
                self.at += 1;
                return Err(self.wrong(start, "this is no Erlang term"));
            }
        };
        Ok(Term { value, span: self.span(start) })
    }

    fn items(&mut self, end: &str, depth: usize) -> Result<Vec<Term>, Wrong> {
        let mut items = Vec::new();
        loop {
            if self.take(end) {
                return Ok(items);
            }
            items.push(self.term(depth + 1)?);
            if !self.take(",") && !self.rest().starts_with(end) {
                return Err(self.wrong(self.at, &format!("a \",\" or \"{end}\" is missing here")));
            }
        }
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<(Term, Term)>, Wrong> {
        let mut entries = Vec::new();
        loop {
            if self.take("}") {
                return Ok(entries);
            }
            let key = self.term(depth + 1)?;
            if !self.take("=>") {
                return Err(self.wrong(self.at, "a \"=>\" is missing here"));
            }
            entries.push((key, self.term(depth + 1)?));
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.wrong(self.at, "a \",\" or \"}\" is missing here"));
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Wrong> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            match c {
                c if c == quote => return Ok(text),
                '\\' => {
                    let escaped = self.rest().chars().next().unwrap_or('\\');
                    self.at += escaped.len_utf8();
                    text.push(if escaped == 'n' { '\n' } else { escaped });
                }
                c => text.push(c),
            }
        }
        Err((Span { end: start as u32 + 1, ..self.span(start) }, "this text is not closed".to_owned()))
    }
}
