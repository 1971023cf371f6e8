//! How policies are drawn.

use policy::graph::{Language, graph};

use environment::Memory;
use settings::load::load_text;
use std::path::Path;

const POLICY: &str = "policy:\n  main:\n    - {if: qname == \"a.example\", do: [call(kids), drop]}\n    - [cache(main), forward(default)]\n  kids: [{if: mark(1), do: return}, reject(refused)]\nviews: [{if: rd, policy: kids}]\n";

fn drawn(language: Language) -> String {
    let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
    let loaded = load_text(Path::new("x"), POLICY, &memory).expect("no mistakes");
    graph(loaded.settings.written(), &loaded.sources, language)
}

#[test]
fn mermaid_shows_questions_deeds_and_ways() {
    let text = drawn(Language::Mermaid);
    for line in [
        "flowchart TD",
        "    subgraph ng_2emain [\"policy main\"]",
        "        np_2emain_2e0_2eif{\"qname == #quot;a.example#quot;\"}",
        "        np_2emain_2e0[\"call(kids)<br>drop\"]",
        "    np_2emain_2e0_2eif -->|yes| np_2emain_2e0",
        "    np_2emain_2e0 -.->|calls| np_2ekids",
        "    np_2emain_2e0_2eif -->|no| np_2emain_2e1",
        "    np_2emain_2e1 --> np_2emain_2eend",
        "    nview0 -->|yes| np_2ekids",
        "    nview0 -->|no| np_2emain",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // `drop` ends: nothing leads on from there.
    assert!(!text.contains("np_2emain_2e0 -->"), "{text}");
}

#[test]
fn dot_shows_the_same() {
    let text = drawn(Language::Dot);
    for line in [
        "digraph policy {",
        "        np_2emain_2e0_2eif [shape=diamond, label=\"qname == \\\"a.example\\\"\"];",
        "        np_2emain_2e0 [shape=box, label=\"call(kids)\\ndrop\"];",
        "    np_2emain_2e0_2eif -> np_2emain_2e0 [label=\"yes\"];",
        "    np_2emain_2e0 -> np_2ekids [label=\"calls\", style=dashed];",
        "}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
