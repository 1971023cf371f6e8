//! Whatever a file says, reading it and compiling it ends with plans or mistakes.

use std::path::Path;

use config::compile;
use environment::Memory;
use schema::{Row, rows};
use settings::load_text;

fn any_text() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    // Pieces of configurations, so that more than the first reader sees them.
    let keys: Vec<&'static str> = rows().map(Row::key).collect();
    let pieces = vec![
        ": ",
        ":\n",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "|\n",
        ">\n",
        "#",
        "&a ",
        "*a",
        "!t ",
        "${",
        "}",
        "$${A}",
        "10s",
        "64MiB",
        "10%",
        "true",
        "auto",
        "off",
        "main",
        "default",
        "system",
        "::1",
        "[::1]:53",
        "9.9.9.9@53",
        "10.0.0.0/8",
        "udp://",
        "cache(main)",
        "forward(default)",
        "call(main)",
        "ttl(min 1s max ",
        "qname in suffix:a|",
        "mark(1) and not (",
        "client == ",
        "ä",
        "\u{0}",
        "\t",
        "---\n",
        "%YAML",
        "? ",
        "~",
    ];
    prop_oneof![
        "\\PC*",
        proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(keys).prop_map(str::to_owned),
                proptest::sample::select(pieces).prop_map(str::to_owned),
                "[a-z.:/$(){}0-9\"' -]{0,6}",
            ],
            0..60
        )
        .prop_map(|pieces| pieces.concat()),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1000))]

    #[test]
    fn no_text_panics(text in any_text()) {
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        match load_text(Path::new("x"), &text, &memory) {
            Ok(loaded) => {
                let _ = compile(&loaded, &[], None, &memory);
                // What is shown can be read again.
                let shown = settings::print::show(&loaded);
                proptest::prop_assert!(load_text(Path::new("y"), &shown, &memory).is_ok(), "{}", shown);
            }
            Err(found) => {
                proptest::prop_assert!(!found.is_empty());
                for found in found {
                    let _ = (found.human(), found.json());
                    proptest::prop_assert!(!found.message.is_empty());
                }
            }
        }
    }
}

proptest::proptest! {
    // Each compiles a whole configuration.
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(250))]

    #[test]
    fn a_damaged_file_of_defaults_does_not_panic(at in 0_usize..8000, with in "[ -~\n]{0,3}", len in 0_usize..12) {
        let mut text = settings::print::defaults();
        let start = at.min(text.len());
        let end = (start + len).min(text.len());
        if text.is_char_boundary(start) && text.is_char_boundary(end) {
            text.replace_range(start..end, &with);
        }
        let memory = Memory::new(&[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]);
        if let Ok(loaded) = load_text(Path::new("x"), &text, &memory) {
            let _ = compile(&loaded, &[], None, &memory);
        }
    }
}
