//! How OxiDNS gets out: profiles of resolvers and proxies, and files that it downloads.

use std::collections::{BTreeMap, BTreeSet};

use diagnostic::{At, Span};
use yaml::{Node, Value};

use super::args::Args;
use super::plugins::Plugin;
use super::write::{Map, Noted, Out};
use super::{Dialect, Translator};

/// A way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// Who is asked for addresses; nobody: the machine's own resolvers.
    pub(super) resolvers: Vec<String>,
    /// The SOCKS5 proxy on the way.
    pub(super) proxy: Option<At<String>>,
}

/// A file with a list.
pub(super) struct ListFile {
    pub(super) format: &'static str,
    pub(super) file: String,
    /// The part of it that counts, if not all of it does.
    pub(super) part: Option<String>,
}

impl ListFile {
    pub(super) const fn whole(format: &'static str, file: String) -> Self {
        Self { format, file, part: None }
    }
}

/// The ways out, and the files that come in on them.
#[derive(Default)]
pub(super) struct Outbound {
    profiles: BTreeMap<String, Profile>,
    /// The profile of those that name none.
    default: Option<String>,
    /// Where files come from that are downloaded, by the path under which others read them.
    downloads: BTreeMap<String, At<String>>,
    /// Those of them that something reads.
    read: BTreeSet<String>,
}

impl<'a> Translator<'a> {
    /// Reads `network`; returns who finds the addresses of web servers, if it names one.
    pub(super) fn ways_out(&mut self, node: &'a Node) -> Option<Vec<String>> {
        let args = Args::new(self.dialect, "\"network\"", node, &mut self.problems);
        let outbound = args.node("outbound");
        args.finish(&mut self.problems);
        let args = Args::new(self.dialect, "\"outbound\"", outbound?, &mut self.problems);
        let default = args.text("default", &mut self.problems);
        let profiles = args.node("profiles");
        args.finish(&mut self.problems);
        if let Some(profiles) = profiles {
            let Value::Map(entries) = &profiles.value else {
                self.wrong(profiles.head(), "\"profiles\" takes \"name: profile\" lines".to_owned());
                return None;
            };
            for entry in entries {
                let profile = self.profile(&entry.node);
                self.outbound.profiles.insert(entry.key.clone(), profile);
            }
        }
        let default = default?;
        let Some(profile) = self.outbound.profiles.get(&default.value).cloned() else {
            self.wrong(default.span, format!("there is no profile \"{}\"", default.value));
            return None;
        };
        self.outbound.default = Some(default.value);
        (!profile.resolvers.is_empty()).then_some(profile.resolvers)
    }

    fn profile(&mut self, node: &'a Node) -> Profile {
        let args = Args::new(self.dialect, "a profile", node, &mut self.problems);
        let (resolver, proxy) = (args.node("resolver"), args.node("proxy"));
        args.finish(&mut self.problems);
        let mut profile = Profile::default();
        match resolver.map(|node| (&node.value, node)) {
            None => {}
            Some((Value::Scalar(word), _)) if word.text == "system" => {}
            Some((Value::Map(_), node)) => profile.resolvers = self.resolvers(node),
            Some((_, node)) => {
                self.wrong(node.head(), "a resolver is \"system\" or has \"nameservers\"".to_owned());
            }
        }
        match proxy.map(|node| (&node.value, node)) {
            None => {}
            Some((Value::Scalar(word), _)) if matches!(word.text.as_str(), "none" | "direct") => {}
            Some((Value::Map(_), node)) => {
                let args = Args::new(self.dialect, "a proxy", node, &mut self.problems);
                profile.proxy = args.text("socks5", &mut self.problems).filter(|text| !text.value.is_empty());
                args.finish(&mut self.problems);
            }
            Some((_, node)) => {
                self.wrong(node.head(), "a proxy is \"none\", \"direct\" or has \"socks5\"".to_owned());
            }
        }
        profile
    }

    /// Returns the name servers of a profile as ours are written.
    fn resolvers(&mut self, node: &'a Node) -> Vec<String> {
        let args = Args::new(self.dialect, "a resolver", node, &mut self.problems);
        let mut servers = Vec::new();
        for node in args.items("nameservers") {
            let (address, dial) = match &node.value {
                Value::Scalar(scalar) => (Some(At { value: scalar.text.clone(), span: node.span }), None),
                Value::Long(_) | Value::Map(_) | Value::List(_) | Value::Null => {
                    let args = Args::new(self.dialect, "a name server", node, &mut self.problems);
                    let found =
                        (args.text("addr", &mut self.problems), args.text("dial_addr", &mut self.problems));
                    args.finish(&mut self.problems);
                    found
                }
            };
            let Some(address) = address else { continue };
            let (scheme, host) = address.value.split_once("://").unwrap_or(("udp", &address.value));
            let host = dial.as_ref().map_or(host, |dial| dial.value.as_str());
            if scheme != "udp" {
                self.wrong(
                    address.span,
                    format!("a resolver over \"{scheme}\" cannot be expressed: addresses of servers are asked for over UDP"),
                );
            } else if values::socket_address(host, 53).is_err() {
                self.wrong(address.span, format!("\"{host}\" is no address of a name server"));
            } else {
                servers.push(host.to_owned());
            }
        }
        if let Some(proxy) = args.text("proxy", &mut self.problems)
            && !matches!(proxy.value.as_str(), "none" | "direct")
        {
            self.wrong(proxy.span, "resolvers cannot be asked through a proxy".to_owned());
        }
        args.ignore(&["ip_version"], "both families are looked up", &mut self.problems);
        args.ignore(&["timeout"], "it follows from measured times here", &mut self.problems);
        args.finish(&mut self.problems);
        servers
    }

    /// Returns the way out that a plugin or an upstream names, or else the usual one.
    pub(super) fn way_out(&mut self, args: &Args<'_>) -> Profile {
        if self.dialect == Dialect::Mosdns {
            return Profile::default();
        }
        let Some(named) = args.text("outbound", &mut self.problems) else { return self.usual_way_out() };
        let found = self.outbound.profiles.get(&named.value).cloned();
        found.unwrap_or_else(|| {
            self.wrong(named.span, format!("there is no profile \"{}\"", named.value));
            Profile::default()
        })
    }

    /// Returns the way out of those that name none.
    pub(super) fn usual_way_out(&self) -> Profile {
        let usual = self.outbound.default.as_ref().and_then(|name| self.outbound.profiles.get(name));
        usual.cloned().unwrap_or_default()
    }

    /// Says of what asks web servers, or measures distances, that it has no proxy and no resolvers
    /// of its own.
    pub(super) fn no_way_of_its_own(&mut self, args: &Args<'_>, what: &str, plugin: Span) {
        let local = args.text("socks5", &mut self.problems).filter(|socks5| !socks5.value.is_empty());
        let (has_local, profile) = (local.is_some(), self.way_out(args));
        let place = args.place(if has_local { "socks5" } else { "outbound" }).unwrap_or(plugin);
        if has_local || profile.proxy.is_some() {
            self.wrong(place, format!("{what} cannot go through a proxy"));
        }
        if self.usual_way_out().resolvers != profile.resolvers {
            self.wrong(
                place,
                format!(
                    "{what} finds addresses by \"server.resolvers\", which come from the default profile"
                ),
            );
        }
    }

    /// Says of downloads that they go straight to the web server, by the resolvers that all have in
    /// common.
    fn no_proxy_of_a_download(&mut self, args: &Args<'_>, plugin: Span) {
        let local = args.text("socks5", &mut self.problems).filter(|socks5| !socks5.value.is_empty());
        let (has_local, profile) = (local.is_some(), self.way_out(args));
        let place = args.place(if has_local { "socks5" } else { "outbound" }).unwrap_or(plugin);
        if has_local || profile.proxy.is_some() {
            self.warn(place, "the proxy is left out: lists are fetched without one here");
        }
        if self.usual_way_out().resolvers != profile.resolvers {
            self.warn(
                place,
                "the resolvers are left out: lists are fetched by \"server.resolvers\", which come from the default profile",
            );
        }
    }

    /// Notes what `download` plugins fetch, before anything asks for their files.
    pub(super) fn note_downloads(&mut self) {
        let declared = self.declared;
        for plugin in declared.plugins.iter().filter(|plugin| plugin.kind.value == "download") {
            if self.dialect == Dialect::Oxidns {
                self.note_download(plugin);
            }
        }
    }

    fn note_download(&mut self, plugin: &'a Plugin) {
        let args = self.args(plugin);
        for node in args.items("downloads") {
            let item = Args::new(self.dialect, "a download", node, &mut self.problems);
            let url = item.text("url", &mut self.problems);
            let directory = item.text("dir", &mut self.problems);
            let file = item.text("filename", &mut self.problems);
            item.finish(&mut self.problems);
            let Some(url) = url else {
                self.wrong(node.head(), "this download has no \"url\"".to_owned());
                continue;
            };
            // Without a name it is the last part of the URL.
            let file = file.map_or_else(
                || {
                    url.value
                        .split(['?', '#'])
                        .next()
                        .unwrap_or("")
                        .rsplit('/')
                        .next()
                        .unwrap_or("")
                        .to_owned()
                },
                |file| file.value,
            );
            let path = match directory {
                Some(directory) => format!("{}/{file}", directory.value.trim_end_matches('/')),
                None => file,
            };
            self.outbound.downloads.insert(plain(&path), url);
        }
        self.no_proxy_of_a_download(&args, plugin.kind.span);
        if args.flag("insecure_skip_verify", &mut self.problems).is_some_and(|flag| flag.value) {
            let place = args.place("insecure_skip_verify").unwrap_or(plugin.kind.span);
            self.wrong(
                place,
                "a list is never fetched from a web server that does not prove who it is".to_owned(),
            );
        }
        args.ignore(&["timeout"], "each list may take a minute here", &mut self.problems);
        args.ignore(
            &["startup_if_missing"],
            "a list without a copy is fetched when the server starts, which does not wait for it",
            &mut self.problems,
        );
        args.finish(&mut self.problems);
    }

    /// Returns lists as a set names them: files, or the URLs that files are downloaded from.
    pub(super) fn lists(&mut self, lists: impl IntoIterator<Item = ListFile>) -> Noted {
        let mut rows = Vec::new();
        let mut items: Vec<Noted> = Vec::new();
        let (mut is_fetched, mut is_lenient) = (false, false);
        for ListFile { format, file, part } in lists {
            let part = part.map_or(String::new(), |part| format!(":{part}"));
            let path = plain(&file);
            let mut map = Map::default();
            match self.outbound.downloads.get(&path) {
                Some(url) => {
                    is_fetched = true;
                    map.put("list", format!("{format}:{}{part}", url.value));
                    map.put("refresh", "off");
                    self.outbound.read.insert(path);
                }
                None => {
                    let list = format!("{format}:{file}{part}");
                    map.put("list", list.clone());
                    if matches!(format, "names" | "addresses") {
                        // What cannot be read there is not a mistake of whoever imports.
                        map.put("strict", Out::Flag(false));
                        is_lenient = true;
                    }
                    rows.push(list);
                }
            }
            items.push(map.into());
        }
        if !is_fetched {
            return if is_lenient { Out::List(items).into() } else { Out::Row(rows).into() };
        }
        let note = "What OxiDNS downloads into files is fetched into the set itself, at first and when a schedule says so.";
        Noted { notes: vec![note.to_owned()], value: Out::List(items) }
    }

    /// Says of files that are downloaded and that no set reads that nobody fetches them.
    pub(super) fn unread_downloads(&mut self) {
        let unread: Vec<At<String>> = self
            .outbound
            .downloads
            .iter()
            .filter(|(path, _)| !self.outbound.read.contains(*path))
            .map(|(_, url)| url.clone())
            .collect();
        for url in unread {
            self.warn(
                url.span,
                format!(
                    "nothing here reads what comes from \"{}\": it is not downloaded, only lists of sets are",
                    url.value
                ),
            );
        }
    }
}

/// Returns a path without what leads nowhere, so that two ways to write it are the same.
fn plain(path: &str) -> String {
    path.trim_start_matches("./").replace("/./", "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        for text in ["lists/a.txt", "./lists/a.txt", "lists/./a.txt"] {
            assert_eq!(plain(text), "lists/a.txt", "{text}");
        }
        assert_eq!(plain("/lists/a.txt"), "/lists/a.txt");
    }
}
