//! Listeners, and what stands at the top of a file.

use diagnostic::{At, Span};
use plan::listeners::TransportWord;
use policy::ENTRY;

use super::write::{Map, Noted, Out};
use super::{Args, Dialect, Kind, Translator};

/// The finding where a sequence believes peers about their clients.
pub(super) const TRUSTED_FROM_THE_START: &str =
    "peers that are trusted are taken at their word from the first rule on, not from this one on";

/// The finding where a server believes whoever speaks HTTP about the client.
const FORWARDED_FROM_HERE: &str =
    "there everybody is believed who says for whom it asks; here only whom you list, at first this machine";
/// The finding where servers have certificates of their own.
const BY_NAME: &str =
    "There each server has its own certificate; here the server name that the client sends chooses.";

/// A path of HTTP requests, and what they begin with.
type PathEntry = (String, At<String>);

/// A place where queries are taken.
struct Door {
    at: String,
    speaks: Vec<TransportWord>,
    /// What queries begin with.
    entry: At<String>,
    /// Paths of HTTP requests that begin elsewhere.
    paths: Vec<PathEntry>,
    /// Whether the client's address comes in a header.
    is_forwarded: bool,
}

/// What a server has to prove who it is.
#[derive(PartialEq, Eq)]
struct Proof {
    certificate: String,
    key: String,
}

/// Returns where a server listens that is told this: both programs take `:53` and `[::]:53` for
/// both families.
fn places(at: &str) -> Vec<String> {
    match at.strip_prefix("[::]:").or_else(|| at.strip_prefix(':')) {
        Some(port) => vec![format!("0.0.0.0:{port}"), format!("[::]:{port}")],
        None => vec![at.to_owned()],
    }
}

impl<'a> Translator<'a> {
    /// Reads what is beside the plugins.
    pub(super) fn top_level(&mut self, top: &mut Map) {
        let declared = self.declared;
        let mut server = Map::default();
        for entry in &declared.others {
            match entry.key.as_str() {
                "log" => {
                    let args = Args::new(self.dialect, "\"log\"", &entry.node, &mut self.problems);
                    let mut log = Map::default();
                    if let Some(level) = args.text("level", &mut self.problems) {
                        match level.value.as_str() {
                            word @ ("trace" | "debug" | "info" | "warn" | "error") => log.put("level", word),
                            "off" => log.put("level", "error"),
                            other => self.wrong(level.span, format!("unknown level \"{other}\"")),
                        }
                    }
                    if args.flag("production", &mut self.problems).is_some_and(|flag| flag.value) {
                        log.put("format", "json");
                    }
                    args.ignore(
                        &["file", "rotation"],
                        "messages go where the service manager puts them",
                        &mut self.problems,
                    );
                    args.finish(&mut self.problems);
                    if !log.is_empty() {
                        top.put("log", log);
                    }
                }
                "api" => self.warn(
                    entry.key_span,
                    "the programming interface is left out: the command \"gannet\" looks after the server through its socket",
                ),
                "runtime" if self.dialect == Dialect::Oxidns => {
                    let args = Args::new(self.dialect, "\"runtime\"", &entry.node, &mut self.problems);
                    if let Some(workers) = args.number("worker_threads", &mut self.problems) {
                        server.put("workers", workers.value.to_string());
                    }
                    args.finish(&mut self.problems);
                }
                "network" if self.dialect == Dialect::Oxidns => {
                    let resolvers = self.ways_out(&entry.node);
                    server.put_some("resolvers", resolvers.map(Out::Row));
                }
                other => self.wrong(entry.key_span, format!("{} has no setting \"{other}\"", self.dialect.name())),
            }
        }
        if !server.is_empty() {
            top.put("server", server);
        }
    }

    /// Translates every server, and asks for the policies that they begin with.
    pub(super) fn servers(&mut self, top: &mut Map) {
        let mut doors: Vec<Door> = Vec::new();
        let mut proofs: Vec<Proof> = Vec::new();
        let declared = self.declared;
        for plugin in &declared.plugins {
            let kind = plugin.kind.value.as_str();
            if !matches!(kind, "udp_server" | "tcp_server" | "http_server" | "quic_server") {
                continue;
            }
            self.used.insert(plugin.tag.value.clone());
            let args = self.args(plugin);
            let listen = args.text("listen", &mut self.problems);
            let proof = if kind == "udp_server" { None } else { self.proof(&args, plugin.kind.span) };
            let (speaks, paths, is_forwarded) = match (kind, &proof) {
                ("udp_server", _) => (vec![TransportWord::Udp], Vec::new(), false),
                ("tcp_server", None) => (vec![TransportWord::Tcp], Vec::new(), false),
                ("tcp_server", Some(_)) => (vec![TransportWord::Tls], Vec::new(), false),
                ("quic_server", _) => (vec![TransportWord::Quic], Vec::new(), false),
                _ => self.http_server(&args, proof.is_some()),
            };
            if kind == "quic_server" && proof.is_none() {
                self.wrong(plugin.kind.span, "this server has no \"cert\" and \"key\"".to_owned());
            }
            let entry = match paths.first() {
                Some((_, entry)) => Some(entry.clone()),
                None => args.text("entry", &mut self.problems),
            };
            if kind != "udp_server" {
                let why = "\"limits.tcp\" has one for all listeners";
                args.ignore(&["idle_timeout"], why, &mut self.problems);
            }
            args.finish(&mut self.problems);
            if let Some(proof) = proof.filter(|proof| !proofs.contains(proof)) {
                proofs.push(proof);
            }
            let at = match (&listen, self.dialect) {
                (Some(listen), _) => listen.value.clone(),
                (None, Dialect::Mosdns) => "127.0.0.1:53".to_owned(),
                (None, Dialect::Oxidns) => {
                    self.wrong(plugin.kind.span, "this server has no \"listen\"".to_owned());
                    continue;
                }
            };
            let places = places(&at);
            if places.iter().any(|at| values::socket_address(at, 53).is_err()) {
                let span = listen.map_or(plugin.kind.span, |listen| listen.span);
                self.wrong(span, format!("\"{at}\" is not an address to listen at"));
                continue;
            }
            let Some(entry) = entry else {
                self.wrong(plugin.kind.span, "this server has no \"entry\"".to_owned());
                continue;
            };
            let entries = paths.iter().map(|(_, entry)| entry).chain([&entry]);
            // All of them, so that every one that is missing is told.
            let missing = entries.filter(|entry| self.plugin(entry).is_none()).count();
            if missing == 0 {
                let door = |at| Door {
                    at,
                    speaks: speaks.clone(),
                    entry: entry.clone(),
                    paths: paths.clone(),
                    is_forwarded,
                };
                doors.extend(places.into_iter().map(door));
            }
        }
        if doors.is_empty() {
            self.problems.push(diagnostic::Problem::of_file(
                diagnostic::FileId(0),
                "no server takes queries: there is no \"udp_server\" or \"tcp_server\"",
            ));
            return;
        }
        self.entries(doors, top);
        if !proofs.is_empty() {
            let notes = if proofs.len() > 1 { vec![BY_NAME.to_owned()] } else { Vec::new() };
            let certificates = proofs.into_iter().map(|proof| {
                let mut certificate = Map::default();
                certificate.put("certificate", proof.certificate);
                certificate.put("key", proof.key);
                Noted::from(certificate)
            });
            let mut tls = Map::default();
            tls.note("certificates", notes, Out::List(certificates.collect()));
            top.put("tls", tls);
        }
        // Both programs answer everybody who can reach them.
        let allow = Noted {
            notes: vec![format!(
                "{} answers everybody. Say \"any\" here if you must, behind a firewall.",
                self.dialect.name()
            )],
            value: Out::Row(vec!["loopback".to_owned(), "private".to_owned()]),
        };
        top.put("allow", allow);
    }

    /// Reads the certificate of a server; neither file or both must be named.
    fn proof(&mut self, args: &Args<'_>, place: Span) -> Option<Proof> {
        let [certificate, key] = ["cert", "key"].map(|name| {
            let file = args.text(name, &mut self.problems);
            file.map(|file| file.value).filter(|file| !file.is_empty())
        });
        match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Proof { certificate, key }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                self.wrong(place, "\"cert\" and \"key\" go together".to_owned());
                None
            }
        }
    }

    /// Reads what is special about a server of DNS over HTTPS: what it speaks, its paths, and
    /// whether the client's address comes in a header.
    fn http_server(
        &mut self,
        args: &Args<'_>,
        is_secured: bool,
    ) -> (Vec<TransportWord>, Vec<PathEntry>, bool) {
        let mut speaks = vec![if is_secured { TransportWord::Https } else { TransportWord::Http }];
        if args.flag("enable_http3", &mut self.problems).is_some_and(|flag| flag.value) {
            speaks.push(TransportWord::H3);
            if let (false, Some(place)) = (is_secured, args.place("enable_http3")) {
                self.wrong(place, "HTTP/3 takes \"cert\" and \"key\"".to_owned());
            }
        }
        let header = args.text("src_ip_header", &mut self.problems).filter(|header| !header.value.is_empty());
        if let Some(header) = &header {
            let is_known =
                ["x-forwarded-for", "forwarded"].iter().any(|known| header.value.eq_ignore_ascii_case(known));
            if is_known {
                self.warn(header.span, FORWARDED_FROM_HERE);
            } else {
                let message = format!("the header \"{}\" is not read", header.value);
                self.problems.push(
                    diagnostic::Problem::error(header.span, message).expected("X-Forwarded-For or Forwarded"),
                );
            }
        }
        let mut paths = Vec::new();
        for node in args.items("entries") {
            let item = Args::new(self.dialect, "an entry", node, &mut self.problems);
            let path = item.text("path", &mut self.problems);
            let entry = item.text("exec", &mut self.problems);
            let why = "JSON is answered at every path";
            item.ignore(&["json_api"], why, &mut self.problems);
            item.finish(&mut self.problems);
            match (path, entry) {
                (Some(path), Some(entry)) if path.value.starts_with('/') => paths.push((path.value, entry)),
                _ => self.wrong(
                    node.head(),
                    "an entry has a \"path\" that begins with \"/\", and \"exec\"".to_owned(),
                ),
            }
        }
        (speaks, paths, header.is_some())
    }

    /// Writes listeners; where they begin with different plugins, views choose by listener and
    /// path.
    fn entries(&mut self, doors: Vec<Door>, top: &mut Map) {
        let Some(main) = doors.first().map(|door| door.entry.value.clone()) else { return };
        self.entry_policy(&main, ENTRY);
        let mut listen: Vec<Door> = Vec::new();
        for door in doors {
            let known =
                listen.iter_mut().find(|known| known.at == door.at && known.entry.value == door.entry.value);
            match known {
                Some(known) if door.speaks.iter().all(|word| known.speaks.contains(word)) => {}
                Some(known)
                    if door
                        .speaks
                        .iter()
                        .all(|word| known.speaks.iter().all(|other| other.goes_with(*word))) =>
                {
                    known.speaks.extend(door.speaks);
                    known.paths.extend(door.paths);
                    known.is_forwarded |= door.is_forwarded;
                }
                _ => listen.push(door),
            }
        }
        let has_views = listen.iter().any(|door| door.entry.value != main);
        let mut views = Vec::new();
        let mut written = Vec::new();
        let mut number = 0;
        for door in listen {
            let Door { at, mut speaks, entry, paths, is_forwarded } = door;
            speaks.sort_unstable_by_key(|word| *word as u8);
            let is_usual = speaks == [TransportWord::Udp, TransportWord::Tcp];
            if is_usual && !(has_views && entry.value != main) {
                written.push(Noted::bare(Out::Text(at)));
                continue;
            }
            let mut map = Map::default();
            map.put("at", at);
            match speaks.as_slice() {
                _ if is_usual => {}
                [only] => map.put("transport", only.word()),
                several => {
                    map.put(
                        "transport",
                        Out::Row(several.iter().map(|word| word.word().to_owned()).collect()),
                    );
                }
            }
            if !paths.is_empty() {
                map.put("paths", Out::Row(paths.iter().map(|(path, _)| path.clone()).collect()));
            }
            if is_forwarded {
                let notes = vec!["The proxies in front of this server.".to_owned()];
                map.note("forwarded-from", notes, Out::Row(vec!["loopback".to_owned()]));
            }
            let others = paths
                .iter()
                .filter(|(_, other)| other.value != main)
                .map(|(path, other)| (Some(path), other));
            let others: Vec<(Option<&String>, &At<String>)> = match paths.is_empty() {
                true if entry.value != main => vec![(None, &entry)],
                true => Vec::new(),
                false => others.collect(),
            };
            if !others.is_empty() {
                number += 1;
                let name = self.fresh(Kind::Records, &format!("{}-{number}", entry.value));
                map.put("name", name.as_str());
                for (path, other) in others {
                    let policy = match self.declared.find(&other.value) {
                        Some(plugin) if plugin.kind.value == "sequence" => {
                            self.sequence_policy(&other.value, false)
                        }
                        _ => self.single_policy(&other.value),
                    };
                    let mut view = Map::default();
                    view.put("policy", policy);
                    view.put("listeners", Out::Row(vec![name.clone()]));
                    view.put_some("paths", path.map(|path| Out::Row(vec![path.clone()])));
                    views.push(Noted::from(view));
                }
            }
            written.push(map.into());
        }
        top.put("listen", Out::List(written));
        if !views.is_empty() {
            top.put("views", Out::List(views));
        }
    }

    /// Notes whose word about their clients is taken.
    pub(super) fn trusted_peers(&mut self, peers: &[String], place: Span) {
        self.warn(place, TRUSTED_FROM_THE_START);
        if peers.is_empty() {
            self.trusted.insert("127.0.0.1".to_owned());
        }
        self.trusted.extend(peers.iter().cloned());
    }
}
