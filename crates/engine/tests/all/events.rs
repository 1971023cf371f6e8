//! What queries tell, and when.

use std::sync::Arc;

use engine::ops::cache::CacheRules;
use engine::ops::event::EventStep;
use engine::program::Op;
use engine::{Failure, Reply, Verdict};
use events::{EventId, EventReader, EventRecord, LabelId, Mark, ring};
use wire::{Rcode, Rtype};

use crate::common;
use common::{Ask, Asked, Server, gate, usual, with_address};

/// What a test looks at in a record.
#[derive(Debug, PartialEq)]
struct Seen {
    event_set: Vec<u16>,
    qname: String,
    rcode: Option<Rcode>,
    addresses: Vec<String>,
    ttl: u32,
    waited_ms: u32,
}

/// Returns a server that tells 1 about every query before it answers, and 2 afterwards, and where
/// it tells.
fn server(rules: CacheRules) -> (Server, EventReader) {
    let tell = |id| Op::Event(EventStep::Emit { id: EventId(id), share: None, is_urgent: false });
    let mut server = Server::with(gate(), |cache| {
        let mut ops = vec![tell(1), Op::Event(EventStep::Count(LabelId(0)))];
        ops.extend(usual(cache, rules));
        ops.push(tell(2));
        ops
    });
    let (writer, reader) = ring(0, Arc::default());
    server.engine = server.engine.with_events(writer);
    (server, reader)
}

fn read(reader: &mut EventReader) -> Option<Seen> {
    let mut record = EventRecord::default();
    reader.read(&mut record).then(|| {
        let view = record.view();
        Seen {
            event_set: view.event_set().map(|tell| tell.0).collect(),
            qname: view.qname(&mut [0; 256]).to_string(),
            rcode: view.rcode(),
            addresses: view.addresses().map(|address| address.to_string()).collect(),
            ttl: view.ttl(),
            waited_ms: view.waited_ms(),
        }
    })
}

fn www() -> Ask {
    Ask::new("www.example.org", Rtype::A).edns(1232)
}

#[test]
fn a_query_is_told_once_with_the_answer_of_its_client() {
    let (mut server, mut reader) = server(CacheRules::default());
    let ask = www();
    let suspended = server.ask(&ask).deferred();
    assert_eq!(read(&mut reader), None, "there is no reply yet");
    server.wait(2);
    server.resume(suspended, Ok(&with_address(&ask, 60, [192, 0, 2, 7])));
    let seen = read(&mut reader).expect("a record");
    assert_eq!((seen.event_set, seen.addresses), (vec![1, 2], vec!["192.0.2.7".to_owned()]));
    assert_eq!((seen.rcode, seen.ttl, seen.waited_ms), (Some(Rcode::NOERROR), 60, 2000));
    // From memory: what stands behind the cache is not reached, what stands before it sees the aged
    // answer.
    server.wait(10);
    assert!(matches!(server.ask(&ask), Asked::Answered(_)));
    let seen = read(&mut reader).expect("a record");
    assert_eq!((seen.event_set, seen.ttl, seen.waited_ms), (vec![1], 50, 0));
    assert_eq!((seen.qname.as_str(), seen.addresses.len()), ("www.example.org.", 1));
    assert_eq!(read(&mut reader), None);
    assert_eq!(reader.counts().label(LabelId(0)), 2);
}

#[test]
fn failures_are_told_and_stale_answers_once() {
    let (mut server, mut reader) = server(CacheRules::default());
    let ask = www();
    let suspended = server.ask(&ask).deferred();
    server.resume(suspended, Err(Failure::Timeout));
    assert_eq!(read(&mut reader).expect("a record").rcode, Some(Rcode::SERVFAIL));
    server.wait(30);
    server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 7]));
    assert!(read(&mut reader).is_some());
    server.wait(70);
    let mut suspended = server.ask(&ask).deferred();
    let mut buffer = [0; 1232];
    let verdict = server.engine.answer_stale(&mut suspended, &mut Reply::new(&mut buffer));
    assert!(matches!(verdict, Verdict::Answered));
    let seen = read(&mut reader).expect("a record");
    assert_eq!((seen.rcode, seen.addresses.len()), (Some(Rcode::NOERROR), 1));
    // It goes on without its client.
    server.resume(suspended, Ok(&with_address(&ask, 60, [192, 0, 2, 8])));
    assert_eq!(read(&mut reader), None);
}

#[test]
fn what_no_client_waits_for_is_not_told() {
    let (mut server, mut reader) = server(CacheRules { prefetch_percent: 50, ..CacheRules::default() });
    let ask = www();
    server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 7]));
    assert!(read(&mut reader).is_some());
    // Only what was asked for again is fetched anew.
    assert!(matches!(server.ask(&ask), Asked::Answered(_)));
    assert!(read(&mut reader).is_some());
    server.wait(50);
    // What is asked for again and again is popular.
    for _ in 0..3 {
        assert!(matches!(server.ask(&ask), Asked::Answered(_)));
        assert!(read(&mut reader).is_some());
    }
    let prefetch = server.engine.next_prefetch().expect("it is fetched anew");
    server.resume(prefetch, Ok(&with_address(&ask, 60, [192, 0, 2, 7])));
    assert_eq!(read(&mut reader), None);
}

#[test]
fn a_query_without_a_reply_is_told() {
    let tell = Op::Event(EventStep::Emit { id: EventId(7), share: None, is_urgent: true });
    let mut server = Server::with(gate(), |_| vec![tell, Op::Drop]);
    let (writer, mut reader) = ring(0, Arc::default());
    server.engine = server.engine.with_events(writer);
    assert!(matches!(server.ask(&www()), Asked::Dropped));
    let seen = read(&mut reader).expect("a record");
    assert_eq!((seen.event_set, seen.rcode), (vec![7], None));
}

#[test]
fn the_way_goes_on_after_waiting() {
    let tell = Op::Event(EventStep::Emit { id: EventId(0), share: None, is_urgent: false });
    let mut server = Server::noting_path(gate(), |cache| {
        let mut ops = vec![tell];
        ops.extend(usual(cache, CacheRules::default()));
        ops
    });
    let (writer, mut reader) = ring(0, Arc::default());
    server.engine = server.engine.with_events(writer);
    let ask = www();
    server.fetch(&ask, &with_address(&ask, 60, [192, 0, 2, 7]));
    let mut record = EventRecord::default();
    assert!(reader.read(&mut record));
    let marks: Vec<Mark> = record.view().path().map(|(_, mark)| mark).collect();
    assert!(marks.contains(&Mark::Missed) && marks.contains(&Mark::Waited), "{marks:?}");
    assert!(matches!(server.ask(&ask), Asked::Answered(_)));
    assert!(reader.read(&mut record));
    let marks: Vec<Mark> = record.view().path().map(|(_, mark)| mark).collect();
    assert_eq!(marks.last(), Some(&Mark::Hit), "{marks:?}");
    assert!(!marks.contains(&Mark::Missed), "the way of another query is not mixed in: {marks:?}");
}
