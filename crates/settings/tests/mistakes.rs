//! A file with many mistakes: all of them are reported at once, in file order, as people read them.

use std::fs;
use std::path::Path;

const GOLDEN: &str = "tests/golden/mistakes.txt";

/// Set `GANNET_UPDATE_GOLDEN=1` to write what is found as what is expected.
#[test]
fn every_mistake_is_reported_with_its_place() {
    let found =
        settings::load(Path::new("tests/golden/mistakes.yaml")).expect_err("the file is full of mistakes");
    let text: String = found.iter().map(|found| format!("{}\n", found.human())).collect();
    if std::env::var_os("GANNET_UPDATE_GOLDEN").is_some() {
        fs::write(GOLDEN, &text).expect("the test's directory is writable");
    }
    let expected = fs::read_to_string(GOLDEN).expect("the expected output is there");
    for (number, (found, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {GOLDEN}", number + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}

#[test]
fn one_line_forms_begin_with_file_line_and_column() {
    let found =
        settings::load(Path::new("tests/golden/mistakes.yaml")).expect_err("the file is full of mistakes");
    for found in found {
        let line = found.line();
        let mut parts = line.split(':');
        assert_eq!(parts.next(), Some("tests/golden/mistakes.yaml"));
        assert!(parts.next().is_some_and(|line| line.parse::<u32>().is_ok()), "{line}");
        assert!(parts.next().is_some_and(|column| column.parse::<u32>().is_ok()), "{line}");
        assert!(!found.json().contains('\n'));
    }
}
