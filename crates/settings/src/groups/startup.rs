//! What only a new start changes, and how it is said that something did.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use plan::listeners::{LocalKind, LocalPlan};
use schema::{RoleWord, StayAwake};
use values::{duration_text, size_text};

use super::{AuditKey, Handshakes, Listener, LocalSocket, Log, Sockets, Tcp, UnboundChannel, Xdp};

/// What only a new start changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Startup {
    /// Threads that answer queries; `None`: one for each processor.
    pub workers: Option<u16>,
    /// Whether workers poll for more before they sleep.
    pub stay_awake: StayAwake,
    /// The user to become; `None`: `gannet` if there is one and we are root.
    pub user: Option<String>,
    /// Where state is kept.
    pub state_directory: PathBuf,
    /// How long a stopping server goes on with waiting queries.
    pub shutdown_timeout: Duration,
    /// Where clients' queries are taken; `None`: 127.0.0.1 and ::1 on port 53, or else on 5300.
    pub listen: Option<Vec<Listener>>,
    /// What holds for sockets of clients.
    pub sockets: Sockets,
    /// For how long each key of the oblivious target is the newest; `None`: there is no target.
    pub oblivious_target: Option<Duration>,
    /// Unix sockets where queries are taken.
    pub local_sockets: Vec<LocalSocket>,
    /// Interfaces whose packets are taken past the kernel's network stack.
    pub xdp: Xdp,
    /// Where metrics can be fetched.
    pub metrics: Vec<SocketAddr>,
    /// The group whose members may use the control socket.
    pub socket_group: Option<String>,
    /// What they may do.
    pub socket_role: RoleWord,
    /// Where the API can be reached.
    pub control: ApiListen,
    /// Where `unbound-control` can reach the server.
    pub unbound_channel: UnboundChannel,
    /// The first key of the audit log; `None`: one is made.
    pub audit_key: Option<AuditKey>,
    /// Where the log goes and how it looks.
    pub log: Log,
    /// Whether the server goes into the background; `None`: as its program does.
    pub daemonize: Option<bool>,
    /// A file that has the number of the process.
    pub pid_file: Option<PathBuf>,
    /// Limits of connections.
    pub tcp: Tcp,
    /// Limits of handshakes.
    pub tls: Handshakes,
    /// The memory for signatures that are made while clients wait, in octets.
    pub signatures_memory: u64,
    /// The memory of each cache, in octets.
    pub cache_sizes: Vec<(String, u64)>,
}

/// Where the API can be reached over the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiListen {
    /// Addresses and ports.
    pub at: Vec<SocketAddr>,
    /// Whether they are others than by default: then the server does not start without them.
    pub is_said: bool,
}

/// A changed setting that a running server does not take up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsRestart {
    /// The setting, such as `cache.main.size`.
    pub path: String,
    /// Its value in the running server.
    pub old: String,
    /// Its value in the file.
    pub new: String,
}

impl fmt::Display for NeedsRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, old, new } = self;
        write!(f, "{path}: {old} -> {new} takes a restart")
    }
}

/// Returns what of `new` a server that was started with `old` does not take up.
pub fn diff(old: &Startup, new: &Startup) -> Vec<NeedsRestart> {
    let mut found = Vec::new();
    let (old_values, new_values) = (old.values(), new.values());
    for (path, new) in &new_values {
        // A cache that is new is made at once; one that is gone is left to itself.
        let old = old_values.iter().find(|(other, _)| other == path).map(|(_, old)| old);
        if let Some(old) = old.filter(|old| *old != new) {
            found.push(NeedsRestart { path: path.clone(), old: old.clone(), new: new.clone() });
        }
    }
    found
}

/// Returns a Unix socket as text.
fn shown(socket: &LocalPlan) -> String {
    let whose = |word: &str, who: &Option<String>| {
        who.as_ref().map_or_else(String::new, |who| format!(" ({word} {who})"))
    };
    let (owner, group) = (whose("owner", &socket.owner), whose("group", &socket.group));
    let kind = socket.kind.word();
    let forwarded = if socket.is_forwarded { " (forwarded)" } else { "" };
    let paths = match socket.kind {
        LocalKind::Http => format!(" (paths {})", socket.paths.join(", ")),
        LocalKind::Stream | LocalKind::Datagram => String::new(),
    };
    format!("{} ({kind}, {:04o}){owner}{group}{paths}{forwarded}", socket.path.display(), socket.mode)
}

impl Startup {
    /// Returns each setting and its value as text.
    // A table: a row for each setting.
    fn values(&self) -> Vec<(String, String)> {
        let listener = |listener: &Listener| {
            let words: Vec<&str> = listener.speaks.iter().map(|word| word.word()).collect();
            let transports = match words.join(", ") {
                usual if usual == "udp, tcp" => String::new(),
                other => format!(" ({other})"),
            };
            let proxies: Vec<String> = listener.proxy_protocol_from.iter().map(ToString::to_string).collect();
            let proxies =
                if proxies.is_empty() { String::new() } else { format!(" (proxies {})", proxies.join(", ")) };
            let paths = match listener.paths.join(", ") {
                usual if usual == plan::listeners::ListenerPlan::PATH => String::new(),
                other => format!(" (paths {other})"),
            };
            let forwarders: Vec<String> = listener.forwarded_from.iter().map(ToString::to_string).collect();
            let forwarders = if forwarders.is_empty() {
                String::new()
            } else {
                format!(" (forwarded from {})", forwarders.join(", "))
            };
            let certificates = listener.client_certificates.as_ref().and_then(|at| at.value.word());
            let certificates =
                certificates.map_or_else(String::new, |word| format!(" (client certificates {word})"));
            format!("{}{transports}{proxies}{paths}{forwarders}{certificates}", listener.place())
        };
        let listen = self.listen.as_ref().map_or_else(
            || "auto".to_owned(),
            |listen| {
                let mut places: Vec<String> = listen.iter().map(listener).collect();
                // Of a device, whichever addresses it has now.
                places.dedup();
                format!("[{}]", places.join(", "))
            },
        );
        let local_sockets: Vec<String> =
            self.local_sockets.iter().map(|socket| shown(&socket.plan)).collect();
        let identity = self.unbound_channel.identity.as_ref();
        let auto = || "auto".to_owned();
        let none = || "none".to_owned();
        let metrics: Vec<String> = self.metrics.iter().map(ToString::to_string).collect();
        let control: Vec<String> = self.control.at.iter().map(ToString::to_string).collect();
        let xdp_interfaces: Vec<&str> = self.xdp.interfaces.iter().map(|at| at.value.as_str()).collect();
        let mut values = vec![
            ("server.workers".to_owned(), self.workers.map_or_else(auto, |workers| workers.to_string())),
            ("server.stay-awake".to_owned(), self.stay_awake.word().to_owned()),
            ("server.user".to_owned(), self.user.clone().unwrap_or_else(auto)),
            ("server.state-directory".to_owned(), self.state_directory.display().to_string()),
            ("server.shutdown-timeout".to_owned(), duration_text(self.shutdown_timeout)),
            ("limits.signatures.memory".to_owned(), self.signatures_memory.to_string()),
            ("listen".to_owned(), listen),
            ("sockets.receive-buffer".to_owned(), size_text(self.sockets.receive_buffer)),
            ("sockets.send-buffer".to_owned(), size_text(self.sockets.send_buffer)),
            (
                "sockets.queue-timeout".to_owned(),
                self.sockets.queue_timeout.map_or_else(|| "off".to_owned(), duration_text),
            ),
            ("sockets.dscp".to_owned(), self.sockets.options.dscp.to_string()),
            (
                "sockets.tcp-mss".to_owned(),
                self.sockets.options.tcp_mss.map_or_else(auto, |octets| octets.to_string()),
            ),
            ("sockets.free-bind".to_owned(), self.sockets.options.free_bind.to_string()),
            ("sockets.transparent".to_owned(), self.sockets.options.transparent.to_string()),
            ("oblivious.target".to_owned(), self.oblivious_target.is_some().to_string()),
            ("oblivious.key-lifetime".to_owned(), self.oblivious_target.map_or_else(none, duration_text)),
            ("local-sockets".to_owned(), format!("[{}]", local_sockets.join(", "))),
            ("xdp.interfaces".to_owned(), format!("[{}]", xdp_interfaces.join(", "))),
            ("xdp.mode".to_owned(), self.xdp.mode.word().to_owned()),
            ("xdp.existing".to_owned(), self.xdp.existing.word().to_owned()),
            ("xdp.map".to_owned(), self.xdp.map.as_ref().map_or_else(none, |map| map.display().to_string())),
            (
                "xdp.queues".to_owned(),
                self.xdp.queues.map_or_else(|| "all".to_owned(), |queues| queues.to_string()),
            ),
            ("xdp.ring".to_owned(), self.xdp.ring.map_or_else(auto, |entries| entries.to_string())),
            ("xdp.huge-pages".to_owned(), self.xdp.huge_pages.to_string()),
            (
                "xdp.busy-poll".to_owned(),
                self.xdp.busy_poll.map_or_else(|| "off".to_owned(), |microseconds| microseconds.to_string()),
            ),
            ("xdp.busy-poll-budget".to_owned(), self.xdp.busy_poll_budget.to_string()),
            ("metrics.listen".to_owned(), format!("[{}]", metrics.join(", "))),
            ("control.socket-group".to_owned(), self.socket_group.clone().unwrap_or_else(none)),
            ("control.socket-role".to_owned(), self.socket_role.word().to_owned()),
            ("control.listen".to_owned(), format!("[{}]", control.join(", "))),
            (
                "control.audit.key".to_owned(),
                self.audit_key.as_ref().map_or_else(none, |it| it.file.display().to_string()),
            ),
            ("control.unbound.listen".to_owned(), {
                let places: Vec<String> =
                    self.unbound_channel.places.iter().map(super::ControlPlace::text).collect();
                format!("[{}]", places.join(", "))
            }),
            ("control.unbound.certificates".to_owned(), identity.is_some().to_string()),
            (
                "control.unbound.certificate".to_owned(),
                identity.map_or_else(none, |it| it.certificate.display().to_string()),
            ),
            ("control.unbound.key".to_owned(), identity.map_or_else(none, |it| it.key.display().to_string())),
            ("log.format".to_owned(), self.log.format.word().to_owned()),
            ("log.to".to_owned(), self.log.place.text()),
            ("log.identity".to_owned(), self.log.identity.clone()),
            ("log.time".to_owned(), self.log.time.word().to_owned()),
            ("log.tag-queries".to_owned(), self.log.tags_queries.to_string()),
            (
                "server.daemonize".to_owned(),
                self.daemonize.map_or_else(auto, |daemonize| daemonize.to_string()),
            ),
            (
                "server.pid-file".to_owned(),
                self.pid_file.as_ref().map_or_else(none, |file| file.display().to_string()),
            ),
            ("limits.tcp.connections".to_owned(), self.tcp.connections.to_string()),
            ("limits.tcp.connections-per-client".to_owned(), self.tcp.connections_per_client.to_string()),
            ("limits.tcp.networks".to_owned(), {
                let networks = self.tcp.networks.iter();
                let texts = networks.map(|(prefix, connections)| format!("{prefix} {connections}"));
                format!("[{}]", texts.collect::<Vec<_>>().join(", "))
            }),
            ("limits.tcp.idle-timeout".to_owned(), duration_text(self.tcp.idle_timeout)),
            ("limits.tcp.announce".to_owned(), self.tcp.announced_to.word().to_owned()),
            ("limits.tcp.first-query-timeout".to_owned(), duration_text(self.tcp.first_query_timeout)),
            ("limits.tcp.age".to_owned(), self.tcp.age.map_or_else(|| "off".to_owned(), duration_text)),
            ("limits.tcp.pipeline".to_owned(), self.tcp.pipeline.to_string()),
            ("limits.tcp.buffers".to_owned(), self.tcp.buffers.to_string()),
            ("limits.tls.handshakes-per-second".to_owned(), self.tls.handshakes_per_second.to_string()),
            ("limits.tls.handshakes-per-client".to_owned(), self.tls.handshakes_per_client.to_string()),
            ("limits.tls.handshakes-burst".to_owned(), self.tls.handshakes_burst.to_string()),
            ("limits.tls.handshake-timeout".to_owned(), duration_text(self.tls.handshake_timeout)),
        ];
        values.extend(
            self.cache_sizes.iter().map(|(name, size)| (format!("cache.{name}.size"), size_text(*size))),
        );
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    fn startup(text: &str) -> Startup {
        load_text(Path::new("x"), text, &Memory::default()).expect("no mistakes").settings.startup
    }

    fn check(old: &str, new: &str, expect: &[&str]) {
        let found: Vec<String> = diff(&startup(old), &startup(new)).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn what_takes_a_restart_is_named() {
        check("", "", &[]);
        check("", "allow: any\nlog: {level: debug}\n", &[]);
        check(
            "cache: {main: {size: 32MiB}}\n",
            "cache: {main: {size: 1GiB}}\n",
            &["cache.main.size: 32MiB -> 1GiB takes a restart"],
        );
        check(
            "listen: 127.0.0.1\n",
            "listen: [{at: \"::1\", transport: udp}]\nserver: {workers: 3}\n",
            &[
                "server.workers: auto -> 3 takes a restart",
                "listen: [127.0.0.1:53] -> [[::1]:53 (udp)] takes a restart",
            ],
        );
        check(
            "",
            "limits: {tcp: {idle-timeout: 20s}}\n",
            &["limits.tcp.idle-timeout: 10s -> 20s takes a restart"],
        );
    }

    #[test]
    fn every_setting_that_takes_a_restart_is_compared() {
        let compared: Vec<String> = startup("").values().into_iter().map(|(path, _)| path).collect();
        for row in schema::rows().filter(|row| row.apply == schema::Apply::Restart) {
            let path = row.path.replace(".*.", ".main.");
            let path = path.split("[]").next().unwrap_or("").to_owned();
            assert!(compared.contains(&path), "{path}");
        }
    }
}
