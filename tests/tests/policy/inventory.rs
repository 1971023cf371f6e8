//! What is tested and what is documented, held against the tables of the language: no condition and
//! no action without a test of the whole server, and nothing of mosdns or OxiDNS without a row in
//! the manual.

use std::fs;
use std::path::Path;

/// Returns the tests of policies, and those of encrypted transports, which policies can ask about,
/// without their comments; those of this file aside.
fn tests() -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut all = String::new();
    collect(&tests.join("policy"), &mut all);
    collect(&tests.join("system/encrypted"), &mut all);
    all
}

/// Adds the code of the tests in a directory, and in those below it.
fn collect(directory: &Path, all: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory of tests") {
        let path = entry.expect("a readable directory").path();
        if path.ends_with(Path::new(file!()).file_name().unwrap_or_default()) {
            continue;
        }
        if path.is_dir() {
            collect(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a text");
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            all.extend(text.lines().filter(is_code).flat_map(|line| [line, "\n"]));
        }
    }
}

/// Returns whether `word` stands in a text where `before` and `after` say that it may.
fn stands(text: &str, word: &str, before: impl Fn(&str) -> bool, after: impl Fn(&str) -> bool) -> bool {
    text.match_indices(word).any(|(at, _)| before(&text[..at]) && after(&text[at + word.len()..]))
}

/// Returns whether an action of this word stands in the text: behind `do:`, in a list, or between
/// quotes.
fn has_action(text: &str, word: &str) -> bool {
    let begins = |before: &str| {
        let before = before.trim_end_matches(['\'', '"', '\\']);
        ["do: ", "- ", "[", ", "].iter().any(|mark| before.ends_with(mark))
    };
    let ends = |after: &str| after.starts_with(['(', ']', '}', ',', '\\', '\'', '"', '\n']);
    stands(text, word, begins, ends)
}

/// Returns whether a condition on this field stands in the text.
fn has_field(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let begins = |before: &str| !before.ends_with(is_part);
    let operators = [
        " in ",
        " not in ",
        " == ",
        " != ",
        " < ",
        " <= ",
        " > ",
        " >= ",
        " starts-with ",
        " ends-with ",
        " contains ",
        " matches ",
        " is ",
        " has ",
        " and ",
        " or ",
        "(",
        ")",
        "\"",
        "\\",
        "\n",
        ",",
    ];
    stands(text, word, begins, |after| operators.iter().any(|operator| after.starts_with(operator)))
}

#[test]
fn every_action_is_in_a_test_of_the_whole_server() {
    let tests = tests();
    let missing: Vec<&str> =
        policy::action::rows().map(|row| row.word).filter(|word| !has_action(&tests, word)).collect();
    assert!(missing.is_empty(), "no test of the whole server names these actions: {missing:?}");
    assert!(!has_action(&tests, "no-such-action"));
}

#[test]
fn every_condition_is_in_a_test_of_the_whole_server() {
    let tests = tests();
    let words = policy::condition::FIELDS.iter().map(|field| field.word);
    let missing: Vec<&str> = words.filter(|word| !has_field(&tests, word)).collect();
    assert!(missing.is_empty(), "no test of the whole server names these conditions: {missing:?}");
}

/// What mosdns v5 and OxiDNS 1.5 match with.
const MATCHERS: &[&str] = &[
    "_true",
    "_false",
    "any_match",
    "qname",
    "question",
    "qtype",
    "qclass",
    "rcode",
    "client_ip",
    "resp_ip",
    "ptr_ip",
    "cname",
    "has_resp",
    "has_wanted_ans",
    "mark",
    "env",
    "random",
    "rate_limiter",
    "string_exp",
    "time",
];

/// What they execute.
const EXECUTORS: &[&str] = &[
    "accept",
    "return",
    "jump",
    "goto",
    "reject",
    "mark",
    "set_mark",
    "forward",
    "cache",
    "fallback",
    "hosts",
    "arbitrary",
    "response",
    "black_hole",
    "redirect",
    "drop_resp",
    "ttl",
    "ecs",
    "ecs_handler",
    "client_ip_from_ecs",
    "forward_edns0opt",
    "prefer_ipv4",
    "prefer_ipv6",
    "ip_selector",
    "reverse_lookup",
    "sleep",
    "debug_print",
    "query_summary",
    "metrics_collector",
    "query_recorder",
    "learn_domain",
    "ipset",
    "nftset",
    "ros_address_list",
    "ros_route",
    "http_request",
    "script",
    "download",
    "reload_provider",
    "reload",
    "upgrade",
    "cron",
];

#[test]
fn everything_of_both_programs_has_a_row_whose_right_side_is_understood() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/manual/policy.md");
    let manual = fs::read_to_string(manual).expect("the manual");
    let (_, tables) = manual.split_once("## Coming from mosdns").expect("the chapter");
    // "\|" is a bar inside of a cell.
    let tables = tables.replace("\\|", "\u{1}");
    let rows: Vec<(&str, &str)> = tables
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for word in MATCHERS.iter().chain(EXECUTORS) {
        let has_word = |text: &str| {
            stands(text, word, |before| !before.ends_with(is_part), |after| !after.starts_with(is_part))
        };
        assert!(rows.iter().any(|(there, _)| has_word(there)), "the manual has no row for \"{word}\"");
    }
    // What stands there as an action or a field is one.
    let known: Vec<&str> = policy::action::rows()
        .map(|row| row.word)
        .chain(policy::condition::FIELDS.iter().map(|field| field.word))
        .chain([
            "true",
            "false",
            "not",
            "hours",
            "trusted-peers",
            "schedules",
            "effects",
            "refresh",
            "gannet",
        ])
        .collect();
    for (there, here) in &rows {
        for code in here.split('`').skip(1).step_by(2) {
            let word = code.split(['(', ' ', ':']).next().unwrap_or("");
            let is_operator =
                ["…", "starts-with", "ends-with", "contains", "matches", "is", "SRC", "stale", "continue"]
                    .contains(&word);
            assert!(
                is_operator || known.contains(&word),
                "\"{word}\" beside \"{there}\" is no word of the language"
            );
        }
    }
}
