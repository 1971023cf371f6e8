//! Listeners, and what stands at the top of a file.

use super::write::{Map, Noted, Out};
use super::{Args, Dialect, Kind, Translator};
use crate::policy::ENTRY;
use crate::source::{At, Span};
use crate::values;

/// What is said where a sequence takes the word of peers about their clients.
pub(super) const TRUSTED_FROM_THE_START: &str =
    "peers that are trusted are taken at their word from the first rule on, not from this one on";

/// A place where queries are taken.
struct Door {
    at: String,
    transport: &'static str,
    entry: At<String>,
}

impl Translator<'_> {
    /// Reads what is beside the plugins.
    pub(super) fn top_level(&mut self, top: &mut Map) {
        let declared = self.declared;
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
                        let mut server = Map::default();
                        server.put("workers", workers.value.to_string());
                        top.put("server", server);
                    }
                    args.finish(&mut self.problems);
                }
                "network" if self.dialect == Dialect::Oxidns => {
                    self.wrong(entry.key_span, "outbound profiles cannot be expressed yet".to_owned());
                }
                other => self.wrong(entry.key_span, format!("{} has no setting \"{other}\"", self.dialect.name())),
            }
        }
    }

    /// Translates every server, and asks for the policies that they begin with.
    pub(super) fn servers(&mut self, top: &mut Map) {
        let mut doors: Vec<Door> = Vec::new();
        let declared = self.declared;
        for plugin in &declared.plugins {
            let transport = match plugin.kind.value.as_str() {
                "udp_server" => "udp",
                "tcp_server" => "tcp",
                "http_server" | "quic_server" => {
                    self.used.insert(plugin.tag.value.clone());
                    self.wrong(
                        plugin.kind.span,
                        format!("\"{}\": encrypted transports cannot be expressed yet", plugin.kind.value),
                    );
                    continue;
                }
                _ => continue,
            };
            self.used.insert(plugin.tag.value.clone());
            let args = self.args(plugin);
            let entry = args.text("entry", &mut self.problems);
            let listen = args.text("listen", &mut self.problems);
            if transport == "tcp" {
                for key in ["cert", "key"] {
                    if args.text(key, &mut self.problems).is_some_and(|value| !value.value.is_empty())
                        && let Some(place) = args.place(key)
                    {
                        self.wrong(place, "encrypted transports cannot be expressed yet".to_owned());
                    }
                }
                args.ignore(
                    &["idle_timeout"],
                    "\"limits.tcp\" has one for all listeners",
                    &mut self.problems,
                );
            }
            args.finish(&mut self.problems);
            let at = match (&listen, self.dialect) {
                (Some(listen), _) => listen.value.clone(),
                (None, Dialect::Mosdns) => "127.0.0.1:53".to_owned(),
                (None, Dialect::Oxidns) => {
                    self.wrong(plugin.kind.span, "this server has no \"listen\"".to_owned());
                    continue;
                }
            };
            let at = match at.strip_prefix(':') {
                Some(port) => format!("[::]:{port}"),
                None => at,
            };
            if values::socket_address(&at, 53).is_err() {
                let span = listen.map_or(plugin.kind.span, |listen| listen.span);
                self.wrong(span, format!("\"{at}\" is not an address to listen at"));
                continue;
            }
            let Some(entry) = entry else {
                self.wrong(plugin.kind.span, "this server has no \"entry\"".to_owned());
                continue;
            };
            if self.plugin(&entry).is_some() {
                doors.push(Door { at, transport, entry });
            }
        }
        if doors.is_empty() {
            self.problems.push(crate::diagnostic::Problem::of_file(
                crate::source::FileId(0),
                "no server takes queries: there is no \"udp_server\" or \"tcp_server\"",
            ));
            return;
        }
        self.entries(&doors, top);
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

    /// Writes listeners; where they begin with different plugins, views choose by listener.
    fn entries(&mut self, doors: &[Door], top: &mut Map) {
        let main = &doors[0].entry.value;
        self.entry_policy(main, ENTRY);
        let mut listen: Vec<(String, Vec<&'static str>, String)> = Vec::new();
        for door in doors {
            let tag = &door.entry.value;
            match listen.iter_mut().find(|(at, _, entry)| *at == door.at && entry == tag) {
                Some((_, transports, _)) if !transports.contains(&door.transport) => {
                    transports.push(door.transport);
                }
                Some(_) => {}
                None => listen.push((door.at.clone(), vec![door.transport], tag.clone())),
            }
        }
        let has_views = listen.iter().any(|(_, _, entry)| entry != main);
        let mut views = Vec::new();
        let mut doors = Vec::new();
        let mut number = 0;
        for (at, transports, entry) in listen {
            let is_plain = transports.len() == 2 && !(has_views && entry != *main);
            if is_plain {
                doors.push(Noted::bare(Out::Text(at)));
                continue;
            }
            let mut door = Map::default();
            door.put("at", at);
            if transports.len() == 1 {
                door.put("transport", transports[0]);
            }
            if entry != *main {
                number += 1;
                let name = format!("{entry}-{number}");
                let name = self.fresh(Kind::Records, &name);
                door.put("name", name.as_str());
                let policy = match self.declared.find(&entry) {
                    Some(plugin) if plugin.kind.value == "sequence" => self.sequence_policy(&entry, false),
                    _ => self.single_policy(&entry),
                };
                let mut view = Map::default();
                view.put("policy", policy);
                view.put("listeners", Out::Row(vec![name]));
                views.push(Noted::from(view));
            }
            doors.push(door.into());
        }
        top.put("listen", Out::List(doors));
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
