//! Messages that are sent as dnstap.

use std::net::SocketAddr;

use diagnostic::{Problem, Span};
use yaml::Node;

use super::Lowering;
use crate::keywords::{self, Section};
use crate::read::{Block, Word};
use crate::tree;

/// Where the settings are.
const DNSTAP: &str = "dnstap";
/// The port of a receiver if none is written, there: that of DNS.
const PORT: u16 = 53;

/// Keywords of the kinds of messages, and what they are called here.
const KINDS: [(&str, &str); 6] = [
    ("dnstap-log-client-query-messages", "client-query"),
    ("dnstap-log-client-response-messages", "client-response"),
    ("dnstap-log-resolver-query-messages", "resolver-query"),
    ("dnstap-log-resolver-response-messages", "resolver-response"),
    ("dnstap-log-forwarder-query-messages", "forwarder-query"),
    ("dnstap-log-forwarder-response-messages", "forwarder-response"),
];

/// Returns what is written, if that is not nothing.
fn written<'b>(block: &'b Block, name: &'static str) -> Option<&'b Word> {
    block.last(name).filter(|word| !word.text.is_empty())
}

impl Lowering<'_> {
    pub(super) fn dnstap(&mut self) {
        let Some(block) = self.blocks(Section::Dnstap).next() else { return };
        let (true, at) = block.flag("dnstap-enable") else { return };
        let mut kinds = Vec::new();
        for (theirs, ours) in KINDS {
            if let (true, at) = block.flag(theirs) {
                kinds.push(tree::text(ours, at));
            }
        }
        if kinds.is_empty() {
            self.warn(at, "no dnstap messages are sent: none of the \"dnstap-log-\" keywords says \"yes\"");
            return;
        }
        self.set(&[DNSTAP, "messages"], tree::list(kinds));
        let (is_bidirectional, at) = block.flag("dnstap-bidirectional");
        self.set(&[DNSTAP, "bidirectional"], tree::flag(is_bidirectional, at));
        self.receiver(block);
        for (send, text, ours, otherwise) in [
            ("dnstap-send-identity", "dnstap-identity", "identity", "hostname"),
            ("dnstap-send-version", "dnstap-version", "version", "gannet"),
        ] {
            if let (true, at) = block.flag(send) {
                let node = written(block, text).map_or_else(|| tree::text(otherwise, at), tree::as_written);
                self.set(&[DNSTAP, ours], node);
            }
        }
        if let Some(word) = block.last("dnstap-sample-rate") {
            // Zero takes all, there.
            let one_of = word.text.parse::<u64>().unwrap_or(0).clamp(1, 1_000_000_000);
            self.set(&[DNSTAP, "one-of"], tree::text(one_of.to_string(), word.span));
        }
    }

    fn receiver(&mut self, block: &Block) {
        let Some(word) = written(block, "dnstap-ip") else {
            let place = match block.last("dnstap-socket-path") {
                Some(word) => self.file(word),
                None => tree::text(default("dnstap-socket-path"), block.at),
            };
            let at = place.span;
            let path = text_of(place);
            self.set(&[DNSTAP, "to"], tree::text(format!("unix:{path}"), at));
            return;
        };
        let Ok(address) = values::socket_address(&word.text, PORT) else {
            let problem = Problem::error(word.span, format!("\"{}\" is not an address", word.text));
            self.problems.push(problem.expected("one such as 192.0.2.1@6000"));
            return;
        };
        let (is_tls, _) = block.flag("dnstap-tls");
        let scheme = if is_tls { "tls" } else { "tcp" };
        self.set(&[DNSTAP, "to"], tree::text(format!("{scheme}://{address}"), word.span));
        if is_tls {
            self.receiver_tls(block, (word.span, address));
        }
    }

    /// What the receiver must prove: nothing, there, if neither its name nor an authority is
    /// written.
    fn receiver_tls(&mut self, block: &Block, (at, address): (Span, SocketAddr)) {
        let name = written(block, "dnstap-tls-server-name");
        let bundle = written(block, "dnstap-tls-cert-bundle");
        if let Some(word) = name {
            self.set(&[DNSTAP, "tls-name"], tree::as_written(word));
        }
        match (name, bundle) {
            (None, None) => {
                self.warn(at, "whoever answers there is sent the messages: no name is written");
                self.set(&[DNSTAP, "verify"], tree::flag(false, at));
            }
            (None, Some(word)) => {
                let message = format!("the receiver's certificate has to be for {} here", address.ip());
                let problem = Problem::warning(word.span, message);
                self.problems.push(problem.hint("set \"dnstap-tls-server-name\" to the name in it"));
            }
            (Some(_), _) => {}
        }
        for (theirs, ours) in [
            ("dnstap-tls-cert-bundle", "roots"),
            ("dnstap-tls-client-cert-file", "certificate"),
            ("dnstap-tls-client-key-file", "key"),
        ] {
            if let Some(word) = written(block, theirs) {
                // They are read before the other program confines itself.
                let file = self.file_outside(word);
                self.set(&[DNSTAP, ours], file);
            }
        }
    }
}

/// Returns what a keyword of the section is if it is not written.
fn default(name: &str) -> &'static str {
    keywords::rows(Section::Dnstap).iter().find(|row| row.name == name).map_or("", |row| row.default)
}

fn text_of(node: Node) -> String {
    match node.value {
        yaml::Value::Scalar(scalar) => scalar.text,
        yaml::Value::Null | yaml::Value::Long(_) | yaml::Value::List(_) | yaml::Value::Map(_) => {
            String::new()
        }
    }
}
