//! What somebody looks for in the record of queries: any text is a test of names, or a mistake.

use recorder::{Clients, NameTest, Names, Outcome};

/// Lines: a regular expression, a text, a suffix, a client, an outcome, and then names.
pub fn search(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or("");
    let (regex, part, suffix, client, outcome) = (next(), next(), next(), next(), next());
    let mut tests: Vec<NameTest> =
        vec![NameTest::part(&part.to_lowercase()), NameTest::Suffix(NameTest::whole(suffix))];
    match NameTest::regex(regex) {
        Ok(test) => tests.push(test),
        Err(why) => assert!(!why.is_empty(), "a refusal has a reason"),
    }
    let names: Vec<String> = lines.take(16).map(NameTest::whole).collect();
    for test in tests {
        let (mut are, mut are_not) = (Names::default(), Names::default());
        are.are(test.clone());
        are_not.are_not(test);
        for name in &names {
            assert_ne!(are.fit(name), are_not.fit(name), "{name}: either it fits, or it does not");
        }
    }
    for name in &names {
        let mut exact = Names::default();
        exact.are(NameTest::Exact(name.clone()));
        assert!(exact.fit(name), "{name} is itself");
    }
    if let Err(why) = client.parse::<Clients>() {
        assert!(!why.is_empty(), "a refusal has a reason");
    }
    if let Ok(known) = outcome.parse::<Outcome>() {
        assert_eq!(known.word().parse::<Outcome>().ok(), Some(known));
    }
}
