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
    use std::path::PathBuf;

    use super::*;
    use environment::Memory;

    /// Fails unless a file and what is imported of it have the same settings.
    fn means_the_same(path: &Path, environment: &Memory, shown: &str) {
        let found =
            |found: Vec<Diagnostic>| found.iter().map(Diagnostic::line).collect::<Vec<_>>().join("\n");
        let read = settings::load_unbound_in(path, environment);
        let read = read.unwrap_or_else(|mistakes| panic!("{shown}: {}", found(mistakes)));
        let imported = unbound(path, environment).expect("it was read before");
        let again = settings::load_text(Path::new("/g.yaml"), &imported.text, environment);
        let again =
            again.unwrap_or_else(|mistakes| panic!("{shown}: {}\n{}", found(mistakes), imported.text));
        assert_eq!(read.settings, again.settings, "{shown}");
    }

    /// Returns every file below a folder, by its path there.
    fn tree(folder: &Path, inside: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let (path, inside) = (entry.path(), inside.join(entry.file_name()));
            if path.is_dir() {
                tree(&path, &inside, files);
            } else if let Ok(octets) = std::fs::read(&path) {
                files.push((inside, octets));
            }
        }
    }

    /// Returns the files of benchmarks, by the names of their settings: a template with what each
    /// has in the place of its words.
    fn of_benchmarks(rival: &Path) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(rival).expect("text");
        let value = |of: &str, key: &str| {
            let long = of.split_once(&format!("\n{key} = '''")).and_then(|(_, rest)| rest.split_once("'''"));
            let short = of.split_once(&format!("\n{key} = \"")).and_then(|(_, rest)| rest.split_once('"'));
            long.or(short).map(|(value, _)| value.to_owned())
        };
        let template = value(&text, "\"unbound.conf\"").expect("a template");
        let usual = text.split_once("\n[defaults]").and_then(|(_, rest)| value(rest, "modules"));
        let settings = text.split("\n[settings.").skip(1).map(|section| {
            let (name, section) = section.split_once(']').expect("a name");
            let section = section.split("\n[").next().unwrap_or("");
            let modules = value(section, "modules").or(usual.clone()).unwrap_or_default();
            let mut conf = template.clone();
            for (word, text) in [
                ("server", value(section, "server").unwrap_or_default()),
                ("zones", value(section, "zones").unwrap_or_default()),
                ("modules", modules),
                ("dir", "/d".to_owned()),
                ("threads", "1".to_owned()),
                ("secure", "8853".to_owned()),
            ] {
                conf = conf.replace(&format!("{{{{{word}}}}}"), &text);
            }
            // What is left are ports.
            while let Some((before, (_, after))) =
                conf.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
            {
                conf = format!("{before}5353{after}");
            }
            (name.to_owned(), conf)
        });
        settings.collect()
    }

    /// All files there are: those of machines, and those that Unbound gets in benchmarks.
    #[test]
    fn every_file_of_the_repository_and_its_import_have_the_same_settings() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let machines = root.join("tests/fixtures/unbound");
        let mut count = 0;
        for entry in std::fs::read_dir(&machines).expect("a folder") {
            let machine = entry.expect("an entry").path();
            let Ok(conf) = std::fs::read_to_string(machine.join("conf")) else { continue };
            let mut files = Vec::new();
            tree(&machine.join("root"), Path::new("/"), &mut files);
            let environment = Memory { files: files.into_iter().collect(), ..Memory::default() };
            means_the_same(Path::new(conf.trim()), &environment, &machine.display().to_string());
            count += 1;
        }
        for (name, text) in of_benchmarks(&root.join("bench/rivals/unbound.toml")) {
            let mentioned = text.split("/d/").skip(1).filter_map(|rest| rest.split(['"', '\n']).next());
            let empty = mentioned.map(|file| (PathBuf::from(format!("/d/{file}")), Vec::new()));
            let mut environment = Memory { files: empty.collect(), ..Memory::default() };
            environment.files.insert("/d/unbound.conf".into(), text.clone().into_bytes());
            means_the_same(Path::new("/d/unbound.conf"), &environment, &name);
            count += 1;
        }
        assert!(count > 15, "{count}");
    }

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
            means_the_same(Path::new("/u.conf"), &environment, text);
        }
    }
}
