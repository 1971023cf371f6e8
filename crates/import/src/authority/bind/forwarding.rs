//! What BIND asks other servers: zones of the type `forward`, and recursion with `forwarders`.

use diagnostic::{At, FileId, Problem};

use super::super::super::write::{Map, Noted, Out};
use super::super::made::zone_name;
use super::super::{Peer, prefixes};
use super::text::Statement;
use super::{Bind, Scope, find, is_yes};

impl<'s> Bind<'_, '_, 's> {
    /// Returns servers in the words of upstream groups.
    fn upstreams(&mut self, statement: &Statement) -> Vec<String> {
        let peers = self.peers(statement);
        peers
            .iter()
            .map(|Peer { address, tls, .. }| match (tls, address.port()) {
                (Some(tls), _) => format!(
                    "tls://{address}{}",
                    tls.name.as_ref().map_or(String::new(), |name| format!("#{name}"))
                ),
                (None, 53) => address.ip().to_string(),
                (None, _) => address.to_string(),
            })
            .collect()
    }

    pub(super) fn forwarded(
        &mut self,
        name: &At<String>,
        own: &'s [Statement],
        set: Option<&str>,
        rules: &mut Vec<Noted>,
    ) {
        let Some(list) = find(&vec![own], "forwarders") else {
            return self.files.wrong(name.span, format!("zone \"{}\" has no forwarders", name.value));
        };
        let servers = self.upstreams(list);
        if servers.is_empty() {
            return self.files.wrong(list.span, "a zone that is forwarded to nobody cannot be carried over");
        }
        let plain = zone_name(&name.value);
        let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let group = format!(
            "{}{}",
            set.map_or(String::new(), |set| format!("{set}-")),
            plain.chars().map(legal).collect::<String>()
        );
        let group = format!("to-{group}");
        // What stands behind it asks other servers.
        let mut steps = self.made.forwards(&group, servers);
        steps.push("accept".to_owned());
        let mut rule = Map::default();
        rule.put("if", format!("qname in suffix:{plain}"));
        rule.put("do", Out::Row(steps));
        rules.push(rule.into());
    }

    /// Carries over whom the server asks for the rest.
    pub(super) fn recursion(&mut self, scope: &Scope<'s>, set: Option<&str>, rules: &mut Vec<Noted>) {
        let said = find(scope, "recursion");
        if is_yes(said) == Some(false) {
            return;
        }
        let servers = match find(scope, "forwarders") {
            Some(list) => self.upstreams(list),
            None => Vec::new(),
        };
        if servers.is_empty() {
            const RESOLVES: &str = "cannot be carried over: nothing here asks the root servers";
            let problem = match said {
                Some(said) => {
                    Problem::error(said.span, format!("\"recursion\" without \"forwarders\" {RESOLVES}"))
                }
                // One finding is enough, at the place that would have to turn it off.
                None if self.has_said_recursion => return,
                None => {
                    self.has_said_recursion = true;
                    let message = format!(
                        "BIND resolves for its own networks unless it is told not to, which {RESOLVES}"
                    );
                    match self.top.iter().find(|statement| statement.key() == "options") {
                        Some(options) => {
                            let span = options.words().first().map_or(options.span, |word| word.span);
                            Problem::error(span, message)
                        }
                        None => Problem::of_file(FileId(0), message),
                    }
                }
            };
            self.files.problems.push(problem.hint("\"recursion no;\", or name forwarders"));
            return;
        }
        let group = set.map_or("forwarders".to_owned(), |set| format!("{set}-forwarders"));
        let steps = Out::Row(self.made.forwards(&group, servers));
        let who = find(scope, "allow-recursion").or_else(|| find(scope, "allow-query-cache"));
        let clients = match who {
            Some(statement) => self.clients(statement),
            None => {
                // What BIND says itself: localhost and localnets.
                Some(
                    ["loopback", "private"]
                        .iter()
                        .flat_map(|word| values::prefix_word(word))
                        .map(prefixes::text)
                        .collect(),
                )
            }
        };
        let mut rule = Map::default();
        match clients {
            Some(clients) if clients.is_empty() => return,
            Some(clients) => rule.put("if", format!("client in {}", clients.join("|"))),
            None => {}
        }
        rule.put("do", steps);
        rules.push(rule.into());
    }
}
