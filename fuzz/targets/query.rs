//! Whatever passes as a query is a message with the same question, and accounts for every octet.
#![no_main]

use wire::{Message, Query};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(query) = Query::parse(bytes) else { return };
    let message = Message::parse(bytes).expect("a query is a message");
    let question = message.question.expect("a query has a question");
    assert!(question.qname == query.question.qname && question.qtype == query.question.qtype);
    assert_eq!(message.edns, query.edns);
    let name = query.question.qname;
    let folded = name.to_folded();
    assert!(folded.as_name() == name);
    assert_eq!(folded.as_bytes().len(), name.len());
    assert_eq!(query.question_bytes().len(), name.len() + 4);
    if let Some(edns) = query.edns {
        let octets: usize = edns.options().map(|option| 4 + option.data.len()).sum();
        assert!(octets <= bytes.len());
    }
});
