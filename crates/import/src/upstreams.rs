//! `forward`: groups of upstream servers.

use std::net::{Ipv6Addr, SocketAddr};

use diagnostic::{At, Problem};
use settings::server;
use yaml::Node;

use super::executors::with_end;
use super::outbound::Profile;
use super::plugins::{Plugin, Quick};
use super::policies::Rule;
use super::write::{Map, Noted, Out};
use super::{Args, Dialect, Kind, Translator};

/// Most connections to one server.
const CONNECTIONS_MAX: u64 = plan::upstreams::CONNECTIONS_MAX as u64;
/// As long as upstreams are tried at all: until every one of them has ended.
const WAIT_FOR_ALL: &str = "5s";
/// Most connections to one server by default.
const CONNECTIONS_USUAL: u64 = 4;
/// Most upstreams that mosdns asks at once.
const MOSDNS_CONCURRENT_MAX: u64 = 3;

impl<'a> Translator<'a> {
    /// Translates a `forward` plugin, once, and returns the action that asks it.
    pub(super) fn forward(&mut self, plugin: &'a Plugin, members: &[At<String>]) -> Option<String> {
        let is_new = !self.names.contains_key(&(Kind::Upstream, plugin.tag.value.clone()));
        let name = self.name(Kind::Upstream, &plugin.tag.value);
        if is_new {
            self.group(plugin, &name);
        }
        if members.is_empty() {
            return Some(format!("forward({name})"));
        }
        let known = self.member_tags(plugin);
        let mut list = Vec::new();
        for member in members {
            if !known.contains(&member.value) {
                let message = format!("\"{}\" has no upstream \"{}\"", plugin.tag.value, member.value);
                self.wrong(member.span, message);
                return None;
            }
            list.push(member.value.clone());
        }
        Some(format!("forward({name}, members {})", list.join("|")))
    }

    /// Returns the tags of a group's servers.
    fn member_tags(&self, plugin: &'a Plugin) -> Vec<String> {
        let mut quiet = Vec::new();
        let args = Args::new(self.dialect, "", &plugin.args, &mut quiet);
        args.items("upstreams")
            .iter()
            .filter_map(|node| Args::new(self.dialect, "", node, &mut quiet).text("tag", &mut Vec::new()))
            .map(|tag| tag.value)
            .collect()
    }

    fn group(&mut self, plugin: &'a Plugin, name: &str) {
        let args = self.args(plugin);
        let concurrent = args.number("concurrent", &mut self.problems).map_or(1, |number| number.value);
        let mut group = Map::default();
        let mut notes = Vec::new();
        let defaults = match self.dialect {
            Dialect::Mosdns => {
                let defaults = Defaults {
                    mark: args.text("so_mark", &mut self.problems),
                    interface: args.text("bind_to_device", &mut self.problems),
                    bootstrap: args.text("bootstrap", &mut self.problems),
                    socks5: args.text("socks5", &mut self.problems),
                };
                args.ignore(&["bootstrap_version"], "both families are looked up", &mut self.problems);
                defaults
            }
            Dialect::Oxidns => Defaults::default(),
        };
        let selection = match self.dialect {
            Dialect::Mosdns => None,
            Dialect::Oxidns => {
                let _ = args.flag("short_circuit", &mut self.problems);
                args.text("response_selection", &mut self.problems)
            }
        };
        let mut servers = Vec::new();
        let mut bootstrap: Vec<String> = Vec::new();
        for node in args.items("upstreams") {
            servers.extend(self.server(node, &defaults, &mut bootstrap));
        }
        args.finish(&mut self.problems);
        if servers.is_empty() {
            self.wrong(plugin.tag.span, format!("\"{}\" has no upstreams", plugin.tag.value));
        }
        let count = servers.len() as u64;
        let concurrent = match self.dialect {
            Dialect::Mosdns => concurrent.clamp(1, MOSDNS_CONCURRENT_MAX),
            Dialect::Oxidns => concurrent.max(1),
        }
        .min(count.max(1));
        group.put("servers", Out::List(servers));
        // Since 1.4 this is what OxiDNS does where nobody says otherwise.
        let usual = (self.dialect == Dialect::Oxidns).then_some("balanced");
        let mut negative_wait = None;
        let mut any_rcode = false;
        let pick = match (selection.as_ref().map(|found| found.value.as_str()).or(usual), concurrent) {
            (Some("prefer_positive"), 2..) => {
                negative_wait = Some(WAIT_FOR_ALL);
                format!("prefer-positive({concurrent})")
            }
            // A negative answer waits as long there, too: 100 ms.
            (Some("balanced"), 2..) => format!("prefer-positive({concurrent})"),
            (Some("consensus"), 2..) => {
                notes.push(
                    "In OxiDNS one answer with records is enough; here two servers must agree.".to_owned(),
                );
                format!("consensus(2 of {concurrent})")
            }
            (Some("fastest"), 2..) => {
                any_rcode = true;
                format!("race({concurrent})")
            }
            (Some(other), _) if !["fastest", "balanced", "prefer_positive", "consensus"].contains(&other) => {
                if let Some(selection) = &selection {
                    self.wrong(selection.span, format!("unknown response selection \"{other}\""));
                }
                return;
            }
            (_, 1) if count == 1 => "ordered".to_owned(),
            (_, 1) => {
                notes.push(format!(
                    "{} asks one at random and gives up when it fails; here the next one is asked then.",
                    self.dialect.name()
                ));
                "balanced".to_owned()
            }
            (_, several) => format!("race({several})"),
        };
        if pick != "ordered" {
            group.put("pick", pick);
        }
        group.put_some("negative-wait", negative_wait);
        if any_rcode {
            group.put("fallback-on", Out::Row(Vec::new()));
        }
        if !bootstrap.is_empty() {
            bootstrap.dedup();
            group.put("bootstrap", Out::Row(bootstrap));
        }
        self.upstreams.note(name, notes, group);
    }

    /// Reads the settings of a server.
    fn server_args(&mut self, node: &Node, defaults: &Defaults) -> Option<Server> {
        let args = Args::new(self.dialect, "an upstream", node, &mut self.problems);
        let name = args.text("tag", &mut self.problems);
        let address = args.text("addr", &mut self.problems);
        let dial = args.text("dial_addr", &mut self.problems);
        let mark = args.text("so_mark", &mut self.problems).or_else(|| defaults.mark.clone());
        let interface =
            args.text("bind_to_device", &mut self.problems).or_else(|| defaults.interface.clone());
        let bootstrap = args.text("bootstrap", &mut self.problems).or_else(|| defaults.bootstrap.clone());
        let port = args.number("port", &mut self.problems);
        let Profile { proxy, resolvers } = self.way_out(&args);
        let socks5 = args.text("socks5", &mut self.problems).or_else(|| defaults.socks5.clone());
        let is_proxy_usual = socks5.is_none();
        let socks5 = socks5.or(proxy).filter(|socks5| !socks5.value.is_empty());
        let idle = args.number("idle_timeout", &mut self.problems).map(|seconds| seconds.value);
        let most = args.number("max_conns", &mut self.problems).map(|count| count.value);
        let least = args.number("min_conns", &mut self.problems).map(|count| count.value);
        let is_unproved =
            args.flag("insecure_skip_verify", &mut self.problems).is_some_and(|flag| flag.value);
        let http3 = args.flag("enable_http3", &mut self.problems).filter(|flag| flag.value);
        args.ignore(
            &["enable_pipeline", "bootstrap_version", "weight", "timeout"],
            "connections are looked after without it",
            &mut self.problems,
        );
        args.finish(&mut self.problems);
        let Some(address) = address else {
            self.wrong(node.head(), "this upstream has no \"addr\"".to_owned());
            return None;
        };
        let connections = Connections { idle, most, least };
        Some(Server {
            name,
            address,
            dial,
            mark,
            interface,
            bootstrap,
            port: port.map(|port| port.value),
            resolvers,
            socks5,
            is_proxy_usual,
            connections,
            is_unproved,
            has_http3: http3.is_some(),
        })
    }

    /// Translates a server; resolvers of its name are added to `bootstrap`.
    fn server(&mut self, node: &Node, defaults: &Defaults, bootstrap: &mut Vec<String>) -> Option<Noted> {
        let Server {
            name,
            address,
            dial,
            mark,
            interface,
            bootstrap: own_bootstrap,
            port,
            resolvers,
            socks5,
            is_proxy_usual,
            connections,
            is_unproved,
            has_http3,
        } = self.server_args(node, defaults)?;
        let (scheme, host) = address.value.split_once("://").unwrap_or(("udp", &address.value));
        let Some(prefix) = transport(scheme) else {
            self.wrong(address.span, format!("unknown scheme \"{scheme}\""));
            return None;
        };
        let prefix = if prefix == "https://" && has_http3 { "h3://" } else { prefix };
        let is_secured = matches!(prefix, "tls://" | "https://" | "quic://" | "h3://");
        let (host, path) = host.split_at(host.find('/').unwrap_or(host.len()));
        let with_port = |host: &str| match port {
            Some(port) if host.parse::<Ipv6Addr>().is_ok() => format!("[{host}]:{port}"),
            Some(port) if !has_port(host) => format!("{host}:{port}"),
            Some(_) | None => host.to_owned(),
        };
        // Where to go is what counts without encryption; the name has no meaning of its own then.
        let (host, dial) = match &dial {
            Some(dial) if is_secured => dialled(&with_port(host), &dial.value),
            Some(dial) => (with_port(&dial.value), None),
            None => (with_port(host), None),
        };
        let is_name = dial.is_none() && values::socket_address(&host, 53).is_err();
        match &own_bootstrap {
            Some(own) if is_name => bootstrap.push(own.value.trim_start_matches("udp://").to_owned()),
            None if is_name => bootstrap.extend(resolvers),
            Some(_) | None => {}
        }
        // OxiDNS does not look at a proxy there; one that everybody has is nobody's wish in
        // particular.
        let socks5 =
            socks5.filter(|_| passes_proxy(prefix) || !is_proxy_usual || self.dialect == Dialect::Mosdns);
        let text = format!("{prefix}{host}{path}");
        if let Err(misread) = server(&text) {
            let message = misread.message;
            self.problems.push(Problem::error(address.span, message));
            return None;
        }
        let mut map = Map::default();
        map.put("address", text.clone());
        let is_connected = !prefix.is_empty();
        let connections = if is_connected { connections } else { Connections::default() };
        let is_plain =
            name.is_none() && mark.is_none() && interface.is_none() && dial.is_none() && socks5.is_none();
        if is_plain && !(is_secured && is_unproved) && connections.is_usual() {
            return Some(text.into());
        }
        map.put_some("dial", dial);
        if let Some(socks5) = socks5 {
            put_proxy(&mut map, &socks5.value);
        }
        if is_secured && is_unproved {
            map.put("verify", "false");
        }
        connections.put(&mut map);
        map.put_some("name", name.map(|name| name.value));
        map.put_some("mark", mark.map(|mark| mark.value));
        map.put_some("interface", interface.map(|interface| interface.value));
        Some(map.into())
    }

    /// Translates `forward addr addr…`.
    pub(super) fn quick_forward(&mut self, quick: &Quick) -> Vec<Rule> {
        let mut ends = false;
        let mut addresses = quick.words();
        addresses.retain(|word| {
            let is_option = self.dialect == Dialect::Oxidns && word.value.starts_with("short_circuit");
            ends |= is_option && !word.value.ends_with("false");
            !is_option
        });
        let Profile { proxy, resolvers: usual } = self.usual_way_out();
        let mut servers: Vec<Noted> = Vec::new();
        let mut has_names = false;
        for address in &addresses {
            let (scheme, host) = address.value.split_once("://").unwrap_or(("udp", &address.value));
            let Some(prefix) = transport(scheme) else {
                self.wrong(address.span, format!("unknown scheme \"{scheme}\""));
                return Vec::new();
            };
            let (bare, _) = host.split_at(host.find('/').unwrap_or(host.len()));
            has_names |= values::socket_address(bare, 53).is_err();
            if let Err(misread) = server(&format!("{prefix}{host}")) {
                self.wrong(address.span, misread.message);
                return Vec::new();
            }
            match proxy.as_ref().filter(|_| passes_proxy(prefix)) {
                Some(proxy) => {
                    let mut map = Map::default();
                    map.put("address", format!("{prefix}{host}"));
                    put_proxy(&mut map, &proxy.value);
                    servers.push(map.into());
                }
                None => servers.push(format!("{prefix}{host}").into()),
            }
        }
        if servers.is_empty() {
            self.wrong(quick.span(), "\"forward\" has no addresses".to_owned());
            return Vec::new();
        }
        let most = if self.dialect == Dialect::Mosdns { MOSDNS_CONCURRENT_MAX as usize } else { usize::MAX };
        let concurrent = servers.len().min(most);
        let name = self.fresh(Kind::Upstream, "quick");
        let mut group = Map::default();
        group.put("servers", Out::List(servers));
        if concurrent > 1 {
            let way = if self.dialect == Dialect::Mosdns { "race" } else { "prefer-positive" };
            group.put("pick", format!("{way}({concurrent})"));
        }
        if has_names && !usual.is_empty() {
            group.put("bootstrap", Out::Row(usual));
        }
        self.upstreams.put(name.clone(), group);
        with_end(format!("forward({name})"), ends)
    }
}

/// What upstreams take from their group if they do not say otherwise.
#[derive(Default)]
struct Defaults {
    mark: Option<At<String>>,
    interface: Option<At<String>>,
    bootstrap: Option<At<String>>,
    socks5: Option<At<String>>,
}

/// The settings of one server.
struct Server {
    name: Option<At<String>>,
    address: At<String>,
    /// Where it is found, if its address is a name.
    dial: Option<At<String>>,
    mark: Option<At<String>>,
    interface: Option<At<String>>,
    /// Who resolves its name.
    bootstrap: Option<At<String>>,
    port: Option<u64>,
    /// Who resolves names unless a server has another.
    resolvers: Vec<String>,
    socks5: Option<At<String>>,
    /// Whether the proxy is the usual one, not its own.
    is_proxy_usual: bool,
    connections: Connections,
    /// Whether it need not prove who it is.
    is_unproved: bool,
    has_http3: bool,
}

/// The settings of the connections to a server.
#[derive(Default)]
struct Connections {
    /// Seconds until one that is idle is closed.
    idle: Option<u64>,
    most: Option<u64>,
    least: Option<u64>,
}

impl Connections {
    /// Returns whether nothing has to be written.
    fn is_usual(&self) -> bool {
        self.idle.or(self.most).or(self.least).is_none_or(|number| number == 0)
    }

    fn put(&self, map: &mut Map) {
        let bounded = |number: u64| number.min(CONNECTIONS_MAX).to_string();
        let most = self.most.filter(|&most| most > 0);
        let least = self.least.map(|least| least.min(most.unwrap_or(CONNECTIONS_USUAL)));
        map.put_some("connections-min", least.filter(|&least| least > 0).map(bounded));
        map.put_some("connections-max", most.map(bounded));
        let idle = self.idle.filter(|&idle| idle > 0);
        map.put_some("idle", idle.map(|idle| format!("{}s", idle.min(3600))));
    }
}

/// Returns how an address begins that is reached like this.
fn transport(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "udp" => "",
        "tcp" | "tcp+pipeline" => "tcp://",
        "tls" | "tls+pipeline" | "dot" => "tls://",
        "https" | "doh" => "https://",
        "quic" | "doq" => "quic://",
        "h3" => "h3://",
        _ => return None,
    })
}

/// Returns whether OxiDNS goes through a proxy to servers that are written so.
fn passes_proxy(prefix: &str) -> bool {
    !matches!(prefix, "" | "quic://" | "h3://")
}

/// Puts down the SOCKS5 proxy of a server: an address, perhaps with a scheme, a user and a
/// password.
fn put_proxy(map: &mut Map, text: &str) {
    let text = text.trim_start_matches("socks5://");
    let (login, place) = text.rsplit_once('@').map_or((None, text), |(login, place)| (Some(login), place));
    map.put("proxy", place);
    if let Some((user, password)) = login.and_then(|login| login.split_once(':')) {
        map.put("proxy-user", user);
        map.put("proxy-password", password);
    }
}

/// Returns whether a host is followed by a port.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(before, port)| {
        port.parse::<u16>().is_ok() && (!before.contains(':') || before.ends_with(']'))
    })
}

/// Puts together a name and the address it is to be found at, which may have the port.
fn dialled(host: &str, dial: &str) -> (String, Option<String>) {
    match dial.parse::<SocketAddr>() {
        Ok(address) if !has_port(host) => {
            (format!("{host}:{}", address.port()), Some(address.ip().to_string()))
        }
        Ok(address) => {
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
            (format!("{name}:{}", address.port()), Some(address.ip().to_string()))
        }
        Err(_) => {
            let address = dial.trim_start_matches('[').trim_end_matches(']');
            (host.to_owned(), Some(address.to_owned()))
        }
    }
}
