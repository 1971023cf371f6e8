//! Whatever a stranger sends, the engine says nothing, defers, or writes a sound reply within the
//! client's limit.

use engine::{Engine, Reply, Transport, Verdict};
use std::cell::RefCell;
use wire::{Flags, Message};

// Built once: what is fuzzed is a query, not a start.
thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(gannet_tests::bare::warm(engine::ops::cache::CacheRules::default()));
    static SPLITTING: RefCell<Engine> = RefCell::new(gannet_tests::bare::splitting());
}

/// A client's message, over UDP and over TCP.
pub fn engine(bytes: &[u8]) {
    ENGINE.with_borrow_mut(|engine| check(engine, bytes));
    SPLITTING.with_borrow_mut(|engine| check(engine, bytes));
}

fn check(engine: &mut Engine, bytes: &[u8]) {
    for transport in [Transport::Udp, Transport::Tcp] {
        let client = gannet_tests::bare::client(transport);
        let mut buffer = [0; 65_535];
        let mut reply = Reply::new(&mut buffer);
        let verdict = engine.answer(bytes, &client, &mut reply);
        if !matches!(verdict, Verdict::Answered) {
            continue;
        }
        let reply = reply.bytes();
        assert!(reply.len() <= usize::from(client.reply_octets_max));
        let message = Message::parse(reply).expect("a sound reply");
        assert!(message.header.flags.has(Flags::QR));
        assert_eq!(reply.get(..2), bytes.get(..2), "the client's own ID");
        if let Ok(query) = wire::Query::parse(bytes) {
            assert_eq!(message.edns.is_some(), query.edns.is_some());
            assert!(message.question.is_some_and(|question| {
                question.qname.as_bytes() == query.question.qname.as_bytes()
                    && question.qtype == query.question.qtype
            }));
        }
    }
}
