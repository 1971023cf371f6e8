//! Unbound: its configuration is read as settings of ours already, and printed.

use std::path::Path;

use diagnostic::Diagnostic;
use environment::Environment;
use yaml::{Node, Value};

use crate::Imported;
use crate::write::{Map, Noted, Out, document};

/// Turns the `unbound.conf` that begins in the file `path` into a configuration of ours; errors are
/// all mistakes in it.
pub fn unbound(path: &Path, environment: &dyn Environment) -> Result<Imported, Vec<Diagnostic>> {
    let loaded = settings::load_unbound_in(path, environment)?;
    let head = [
        format!("Made from {} (Unbound) by \"gannet import\".", path.display()),
        "It says what Unbound does without being told, too. \"gannet check\" checks it.".to_owned(),
    ];
    let mut sections = Map::default();
    if let Value::Map(entries) = &loaded.tree().value {
        for entry in entries {
            sections.put(entry.key.as_str(), out(&entry.node));
        }
    }
    Ok(Imported { text: document(&head, sections), warnings: loaded.warnings })
}

/// Returns what a node is printed as.
fn out(node: &Node) -> Out {
    match &node.value {
        Value::Null => Out::Text(String::new()),
        Value::Scalar(scalar) if matches!(scalar.text.as_str(), "true" | "false") => {
            Out::Flag(scalar.text == "true")
        }
        // A variable of the environment is meant only by YAML.
        Value::Scalar(scalar) => Out::Text(scalar.text.replace("${", "$${")),
        Value::Long(text) => Out::Block(text.to_string()),
        Value::List(items) => Out::List(items.iter().map(|item| Noted::bare(out(item))).collect()),
        Value::Map(entries) => {
            Out::Map(entries.iter().map(|entry| (entry.key.clone(), Noted::bare(out(&entry.node)))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;

    #[test]
    fn what_is_printed_means_the_same_as_what_was_read() {
        let list: String = (0..12_000).map(|it| format!("local-zone: n{it}.example always_null\n")).collect();
        for text in [
            &*format!("server:\n{list} local-data: \"a.n5000.example A 192.0.2.1\"\n"),
            "",
            "server:\n interface: 192.0.2.1@5353\n access-control: 192.0.2.0/24 allow_snoop\n",
            "server: local-zone: a.example refuse local-data: 'b.example. TXT \"${x} it\\'s\"' prefetch: yes\n",
            "server: outgoing-interface: 192.0.2.1 outgoing-interface: 2001:db8::/64 outgoing-port-avoid: 3000-4000\n\
             outgoing-port-permit: 3500 prefer-ip6: yes tcp-upstream: yes ip-dscp: 10 tcp-mss: 1220 so-rcvbuf: 1m\n\
             edns-client-string: 192.0.2.0/24 branch-7 outgoing-tcp-mss: 1200 ip-freebind: yes outgoing-num-tcp: 9 so-sndbuf: 1000000\n",
            "server: ratelimit: 5 ratelimit-for-domain: a.example 7 ratelimit-below-domain: b.example 0 ip-ratelimit: 9\n\
             ip-ratelimit-cookie: 20 ip-ratelimit-backoff: yes caps-exempt: c.example ignore-cd-flag: yes\n\
             val-bogus-ttl: 9 proxy-protocol-port: 53\n",
            "server: interface: 192.0.2.1 interface: 192.0.2.2 interface-action: 192.0.2.1 allow interface-view: 192.0.2.2 v\n\
             define-tag: t interface-tag: 192.0.2.1 t interface-tag-action: 192.0.2.1 t static interface-tag-data: 192.0.2.1 t\n\
             \"A 192.0.2.9\" local-zone: x.example redirect local-zone-tag: x.example t view: name: v local-zone: y.example refuse\n",
            "dnstap: dnstap-enable: yes dnstap-ip: 192.0.2.1@6000 dnstap-tls-server-name: a.example dnstap-sample-rate: 10\n\
             dnstap-send-identity: yes dnstap-send-version: yes dnstap-bidirectional: no dnstap-log-client-query-messages: yes\n\
             dnstap: dnstap-identity: me dnstap-tls-client-cert-file: /c.pem dnstap-tls-client-key-file: /k.pem\n",
            "server: val-override-date: \"20260131120000\" private-address: 10.0.0.0/8 serve-expired: yes\n",
        ] {
            let environment = Memory::new(&[("/u.conf", text)]);
            let read = settings::load_unbound_in(Path::new("/u.conf"), &environment).expect("no mistakes");
            let imported = unbound(Path::new("/u.conf"), &environment).expect("no mistakes");
            let again = settings::load_text(Path::new("/g.yaml"), &imported.text, &environment);
            let again = again.unwrap_or_else(|found| panic!("{}\n{}", found[0].line(), imported.text));
            assert_eq!(read.settings, again.settings, "{text}");
        }
    }
}
