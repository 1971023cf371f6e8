//! Sockets: the tree to settings.

use std::sync::Arc;

use diagnostic::Problem;
use plan::listeners::SocketOptions;
use plan::upstreams::{Outgoing, Ports, SERVER_OPTION_OCTETS_MAX, ServerOptions};
use values::{Misread, Read};
use wire::OptionCode;

use super::read::Values as _;
use super::{Lowering, Section};
use crate::groups::{OutgoingSettings, Sockets};

impl Lowering<'_> {
    /// Reads what is said of clients' sockets.
    pub(super) fn sockets(&mut self, root: &Section<'_>) -> Sockets {
        let section = self.section(root, "sockets");
        Sockets {
            receive_buffer: self.size(&section, "receive-buffer"),
            send_buffer: self.size(&section, "send-buffer"),
            queue_timeout: self.duration_or(&section, "queue-timeout"),
            options: SocketOptions {
                dscp: self.whole(&section, "dscp") as u8,
                tcp_mss: self.whole_or(&section, "tcp-mss").map(|octets| octets as u16),
                free_bind: self.boolean(&section, "free-bind"),
                transparent: self.boolean(&section, "transparent"),
            },
        }
    }

    /// Reads what is said of sockets to other servers.
    pub(super) fn outgoing(&mut self, root: &Section<'_>) -> OutgoingSettings {
        let section = self.section(root, "outgoing");
        let ports = self.list(&section, "ports", |_, _, scalar| ports(&scalar.text)).values();
        let bound = Outgoing {
            sources: self.prefixes(&section, "sources"),
            ports: Ports::of(ports),
            tcp_mss: self.whole_or(&section, "tcp-mss").map(|octets| octets as u16),
            dscp: self.whole(&section, "dscp") as u8,
            options: self.server_options(&section),
        };
        OutgoingSettings { bound: Arc::new(bound), connections: self.whole(&section, "connections") as u16 }
    }
}

impl Lowering<'_> {
    /// Reads which options servers are sent.
    fn server_options(&mut self, section: &Section<'_>) -> ServerOptions {
        let mut options = Vec::new();
        for item in self.items(section, "options") {
            let servers = self.optional(&item, "servers", |lowering, row, node| {
                lowering.read(node, &row.kind.expected(), values::prefix)
            });
            let code = OptionCode(self.whole(&item, "code") as u16);
            let text = self.optional(&item, "text", |lowering, row, node| {
                lowering.read(node, &row.kind.expected(), |text| match text.len() {
                    1..=TEXT_OCTETS_MAX => Ok(text.as_bytes().to_vec()),
                    _ => Err(Misread::whole(text, "this text is empty or too long".to_owned())
                        .expected(format!("1 to {TEXT_OCTETS_MAX} octets"))),
                })
            });
            for key in ["servers", "text"] {
                if item.entry(key).is_none() {
                    self.problems.push(Problem::error(item.span, format!("this item has no \"{key}\"")));
                }
            }
            if let (Some(servers), Some(text)) = (servers, text) {
                options.push((servers.value, code, text.value));
            }
        }
        ServerOptions::of(options)
    }
}

/// Octets of the text of an option.
const TEXT_OCTETS_MAX: usize = SERVER_OPTION_OCTETS_MAX - 4;

/// Reads a port or a range of ports.
fn ports(text: &str) -> Read<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
    let range = port(first).zip(port(last)).filter(|(first, last)| first <= last);
    let expected = "a port or a range of ports, such as 10000-20000";
    range
        .ok_or_else(|| Misread::whole(text, format!("\"{text}\" is not a range of ports")).expected(expected))
}

#[cfg(test)]
mod tests {
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    #[test]
    fn ports_are_single_ones_and_ranges() {
        let load = |ports: &str| {
            let text = format!("outgoing: {{ports: [{ports}]}}\n");
            let loaded = load_text(Path::new("x"), &text, &Memory::default());
            loaded.map(|loaded| loaded.settings.outgoing.bound.ports.len()).map_err(|found| found[0].line())
        };
        assert_eq!(load("10000-10009, 53, 10005-10010"), Ok(12));
        assert_eq!(load(""), Ok(0));
        for wrong in ["0", "10-9", "1-65536", "a", "-5"] {
            let found = load(wrong).expect_err("a mistake");
            assert!(found.contains(&format!("\"{wrong}\" is not a range of ports")), "{found}");
        }
    }
}
