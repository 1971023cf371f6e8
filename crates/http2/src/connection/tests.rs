//! What a connection says to what a client sends, octet for octet where it matters.

use proptest::prelude::*;

use super::*;
use crate::frame::FRAME_OCTETS_MAX;

const LIMITS: Limits = Limits {
    streams_max: 4,
    head_octets_max: 1000,
    fields_max: 8,
    body_octets_max: 999,
    discarded_octets_max: 5000,
    window_octets: 100_000,
    resets_max: 3,
    mistakes_max: 3,
    idle_frames_max: 100,
};

/// :method GET, :scheme https, :path /.
const GET: &[u8] = &[0x82, 0x87, 0x84];
/// The same with POST.
const POST: &[u8] = &[0x83, 0x87, 0x84];

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const WHOLE: u8 = END_STREAM | END_HEADERS;

/// A frame that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Out {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Out {
    fn number(&self) -> u32 {
        self.payload.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets))
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_head(&mut out, payload.len(), Kind(kind), Flags(flags), stream);
    out.extend_from_slice(payload);
    out
}

/// A connection that was greeted, and what happens on it.
struct Fixture {
    connection: Connection,
    request: Request,
    now_ms: u64,
}

impl Fixture {
    fn new(limits: Limits) -> Self {
        let mut fixture =
            Self { connection: Connection::new(limits), request: Request::default(), now_ms: 0 };
        let greeting = [&PREFACE[..], &frame(4, 0, 0, &[])].concat();
        assert_eq!(fixture.take(&greeting), [Event::Starved]);
        let said = fixture.said();
        let kinds: Vec<_> = said.iter().map(|frame| (frame.kind, frame.flags)).collect();
        assert_eq!(kinds, [(4, 0), (8, 0), (4, 1)], "settings, a larger window, and that theirs were heard");
        fixture
    }

    /// Hands octets over; returns what happened.
    fn take(&mut self, mut octets: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.connection.next(&mut octets, self.now_ms, &mut self.request);
            events.push(event);
            if matches!(event, Event::Starved | Event::Broken) {
                return events;
            }
        }
    }

    /// Takes the frames that are to be sent.
    fn said(&mut self) -> Vec<Out> {
        let octets = self.connection.output().to_vec();
        self.connection.sent(octets.len());
        let (mut rest, mut frames) = (&octets[..], Vec::new());
        while !rest.is_empty() {
            let (frame, after) = frame::split(rest).expect("whole frames");
            let Frame { kind, flags, stream, payload } = frame;
            frames.push(Out { kind: kind.0, flags: flags.0, stream, payload: payload.to_vec() });
            rest = after;
        }
        frames
    }

    fn respond(&mut self, stream: u32, body: &[u8]) {
        let fields = [Field::Lasting("content-type", b"application/dns-message")];
        self.connection.respond(stream, &Response { status: 200, fields: &fields, body });
    }

    /// Asserts that these octets break the connection for this reason.
    #[track_caller]
    fn breaks(limits: Limits, octets: &[u8], code: Code) {
        let mut fixture = Self::new(limits);
        let events = fixture.take(octets);
        assert_eq!(events.last(), Some(&Event::Broken), "{octets:02x?}");
        let said = fixture.said();
        let last = said.last().expect("a frame");
        assert_eq!((last.kind, &last.payload[4..]), (7, &code.0.to_be_bytes()[..]), "{said:?}");
        assert!(fixture.connection.is_done());
    }

    /// Asserts that these octets have this stream reset for this reason, and that the connection
    /// goes on.
    #[track_caller]
    fn resets(octets: &[u8], stream: u32, code: Code) {
        let mut fixture = Self::new(LIMITS);
        assert_eq!(fixture.take(octets).last(), Some(&Event::Starved), "{octets:02x?}");
        let said = fixture.said();
        let reset = Out { kind: 3, flags: 0, stream, payload: code.0.to_be_bytes().to_vec() };
        assert!(said.contains(&reset), "{said:?}");
        assert_eq!(fixture.take(&frame(1, WHOLE, 99, GET)), [Event::Request, Event::Starved]);
    }
}

#[test]
fn a_request_is_answered_with_two_frames() {
    let mut fixture = Fixture::new(LIMITS);
    for stream in [1, 3] {
        assert_eq!(fixture.take(&frame(1, WHOLE, stream, GET)), [Event::Request, Event::Starved]);
        assert_eq!(fixture.request.stream, stream);
        assert_eq!(fixture.request.head.method(), Some(&b"GET"[..]));
        assert_eq!(fixture.request.head.path_and_query(), Some(&b"/"[..]));
        fixture.respond(stream, b"answer");
        let said = fixture.said();
        assert_eq!(said.len(), 2);
        assert_eq!((said[0].kind, said[0].flags, said[0].stream), (1, END_HEADERS, stream));
        let head =
            if stream == 1 { b"\x88\x5f\x17application/dns-message".to_vec() } else { vec![0x88, 0xbe] };
        assert_eq!(said[0].payload, head);
        let data = Out { kind: 0, flags: END_STREAM, stream, payload: b"answer".to_vec() };
        assert_eq!(said[1], data);
        assert_eq!(fixture.connection.open_streams(), 0);
    }
    assert_eq!(fixture.take(&frame(1, WHOLE, 5, GET))[0], Event::Request);
    fixture.respond(5, b"");
    assert_eq!(
        fixture.said().iter().map(|frame| (frame.kind, frame.flags)).collect::<Vec<_>>(),
        [(1, WHOLE)]
    );
}

#[test]
fn octets_may_come_one_by_one() {
    let mut connection = Connection::new(LIMITS);
    let mut request = Request::default();
    let mut octets = [&PREFACE[..], &frame(4, 0, 0, &[])].concat();
    octets.extend(frame(1, END_HEADERS, 1, POST));
    octets.extend(frame(0, END_STREAM, 1, b"question"));
    let (mut kept, mut events) = (Vec::new(), Vec::new());
    for octet in octets {
        kept.push(octet);
        let mut came = &kept[..];
        let event = connection.next(&mut came, 0, &mut request);
        kept = came.to_vec();
        if event != Event::Starved {
            events.push(event);
        }
    }
    assert_eq!(events, [Event::Request]);
    assert_eq!(request.body, b"question");
    assert!(kept.is_empty());
}

#[test]
fn heads_may_be_spread_over_frames_and_bodies_be_padded_and_followed_by_fields() {
    let mut fixture = Fixture::new(LIMITS);
    let octets = [
        frame(1, 0x28, 1, &[&[2, 0, 0, 0, 3, 7][..], &POST[..1], &[0, 0]].concat()),
        frame(9, 0, 1, &POST[1..2]),
        frame(9, END_HEADERS, 1, &POST[2..]),
        frame(0, 8, 1, b"\x03body\0\0\0"),
        frame(1, WHOLE, 1, b"\x40\x01x\x01y"),
    ];
    assert_eq!(fixture.take(&octets.concat()), [Event::Request, Event::Starved]);
    assert_eq!(fixture.request.head.method(), Some(&b"POST"[..]));
    assert_eq!(fixture.request.body, b"body");
}

#[test]
fn responses_wait_for_windows() {
    let mut fixture = Fixture::new(LIMITS);
    // SETTINGS_INITIAL_WINDOW_SIZE: 3.
    fixture.take(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 3]));
    fixture.take(&frame(1, WHOLE, 1, GET));
    fixture.said();
    fixture.respond(1, b"0123456789");
    let data = |fixture: &mut Fixture| {
        let said = fixture.said();
        let data = said.iter().filter(|frame| frame.kind == 0);
        data.map(|frame| (String::from_utf8_lossy(&frame.payload).into_owned(), frame.flags))
            .collect::<Vec<_>>()
    };
    assert_eq!(data(&mut fixture), [("012".to_owned(), 0)]);
    assert!(fixture.connection.is_held_up());
    // 1 less than was sent: the window is negative until more comes.
    fixture.take(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 2]));
    fixture.take(&frame(8, 0, 1, &1_u32.to_be_bytes()));
    assert_eq!(data(&mut fixture), []);
    fixture.take(&frame(8, 0, 1, &2_u32.to_be_bytes()));
    assert_eq!(data(&mut fixture), [("34".to_owned(), 0)]);
    fixture.take(&frame(4, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]));
    assert_eq!(data(&mut fixture), [("56789".to_owned(), 1)]);
    assert_eq!(fixture.connection.open_streams(), 0);
    // The connection has a window of its own: 65,535 octets less ten.
    let large = vec![b'x'; 70_000];
    fixture.take(&frame(8, 0, 0, &0_u32.to_be_bytes()[..3]));
    let mut fixture = Fixture::new(LIMITS);
    fixture.take(&frame(4, 0, 0, &[0, 4, 0x7f, 0, 0, 0]));
    fixture.take(&frame(1, WHOLE, 1, GET));
    fixture.respond(1, &large);
    let said = fixture.said();
    let octets: usize = said.iter().filter(|frame| frame.kind == 0).map(|frame| frame.payload.len()).sum();
    assert_eq!(octets, 65_535);
    assert!(said.iter().all(|frame| frame.payload.len() <= FRAME_OCTETS_MAX));
    fixture.take(&frame(8, 0, 0, &100_000_u32.to_be_bytes()));
    let said = fixture.said();
    assert_eq!((said[0].payload.len(), said[0].flags), (70_000 - 65_535, END_STREAM));
}

#[test]
fn windows_are_given_back_seldom_and_in_time() {
    let mut fixture = Fixture::new(LIMITS);
    let (mut updates, mut octets) = (Vec::new(), 0);
    for stream in (1..400).step_by(2) {
        fixture.take(&frame(1, END_HEADERS, stream, POST));
        assert_eq!(fixture.take(&frame(0, END_STREAM, stream, &[0; 900]))[0], Event::Request);
        octets += 900;
        fixture.respond(stream, b"x");
        updates.extend(fixture.said().into_iter().filter(|frame| frame.kind == 8));
    }
    assert_eq!(updates.len(), octets / 50_400, "{updates:?}");
    assert!(updates.iter().all(|update| update.stream == 0 && update.number() >= LIMITS.window_octets / 2));
}

#[test]
fn requests_that_are_too_much_are_handed_over_as_such_and_the_rest_is_ignored() {
    let mut fixture = Fixture::new(LIMITS);
    let long = [POST, &[0, 1, b'x', 0x7f, 0xf3, 0x06], &[b'y'; 1010]].concat();
    assert_eq!(fixture.take(&frame(1, END_HEADERS, 1, &long))[0], Event::Request);
    assert_eq!(fixture.request.trouble, RequestFault::HeadTooLarge);
    fixture.respond(1, b"no");
    let said = fixture.said();
    assert_eq!((said[2].kind, said[2].number()), (3, 0), "{said:?}");
    assert_eq!(fixture.take(&frame(0, END_STREAM, 1, b"body")), [Event::Starved]);

    fixture.take(&frame(1, END_HEADERS, 3, POST));
    for _ in 0..5 {
        assert_eq!(fixture.take(&frame(0, 0, 3, &[0; 1000])), [Event::Starved]);
    }
    assert_eq!(
        fixture.take(&frame(0, 0, 3, &[0; 1000]))[0],
        Event::Request,
        "nobody sends that much by mistake"
    );
    assert_eq!(fixture.request.trouble, RequestFault::BodyTooLarge);
    fixture.respond(3, b"no");
    let said = fixture.said();
    let last = said.last().expect("frames");
    assert_eq!((last.kind, last.number()), (3, 0), "{said:?}");
    assert_eq!(fixture.take(&frame(0, END_STREAM, 3, b"body")), [Event::Starved]);

    fixture.now_ms = 500;
    fixture.take(&frame(1, END_HEADERS, 5, POST));
    assert_eq!(fixture.connection.waits_since_ms(), Some(500));
    assert_eq!(fixture.connection.overdue(499, &mut fixture.request), Event::Starved);
    assert_eq!(fixture.connection.overdue(500, &mut fixture.request), Event::Request);
    assert_eq!((fixture.request.stream, fixture.request.trouble), (5, RequestFault::BodyTooSlow));
    assert_eq!(fixture.connection.overdue(500, &mut fixture.request), Event::Starved, "once");

    fixture.take(&frame(1, 0, 7, POST));
    assert_eq!(fixture.connection.overdue(500, &mut fixture.request), Event::Broken);
}

#[test]
fn a_body_that_is_too_large_is_read_to_its_end_and_its_stream_is_not_reset() {
    let trailer: &[u8] = &[0, 1, b'x', 1, b'y'];
    for end in [frame(0, END_STREAM, 1, b"end"), frame(0, END_STREAM, 1, &[]), frame(1, WHOLE, 1, trailer)] {
        let mut fixture = Fixture::new(LIMITS);
        fixture.take(&frame(1, END_HEADERS, 1, POST));
        let (mut window, mut sent) = (1000, 0);
        for _ in 0..8 {
            // As much as the client may send, and no octet more.
            assert!(window >= 500, "the client may go on");
            assert_eq!(fixture.take(&frame(0, 0, 1, &[0; 500])), [Event::Starved]);
            (window, sent) = (window - 500, sent + 500);
            for frame in fixture.said() {
                assert_eq!(frame.kind, 8, "{frame:?}");
                if frame.stream == 1 {
                    window += frame.number();
                }
            }
            assert_eq!(fixture.connection.waits_since_ms(), Some(0));
        }
        assert_eq!((sent, window), (4000, 1000));
        assert_eq!(fixture.take(&end), [Event::Request, Event::Starved]);
        assert_eq!((fixture.request.trouble, fixture.request.body.len()), (RequestFault::BodyTooLarge, 0));
        fixture.respond(1, b"no");
        let said: Vec<_> = fixture.said().into_iter().map(|frame| (frame.kind, frame.flags)).collect();
        assert_eq!(said, [(1, END_HEADERS), (0, END_STREAM)]);
        assert_eq!(fixture.connection.open_streams(), 0);
    }
    // Who stops in the middle is told the same when its time is over; who sends more than it may is
    // not.
    let mut fixture = Fixture::new(LIMITS);
    fixture.take(&[frame(1, END_HEADERS, 1, POST), frame(0, 0, 1, &[0; 1000])].concat());
    assert_eq!(fixture.connection.overdue(0, &mut fixture.request), Event::Request);
    assert_eq!(fixture.request.trouble, RequestFault::BodyTooLarge);
    let open = [frame(1, END_HEADERS, 1, POST), frame(0, 0, 1, &[0; 1000])].concat();
    let too_much = [open, frame(0, 0, 1, &[0; 1001])].concat();
    Fixture::resets(&too_much, 1, Code::FLOW_CONTROL_ERROR);
}

#[test]
fn a_body_whose_end_is_a_frame_of_its_own_is_handed_over_with_it() {
    let mut fixture = Fixture::new(LIMITS);
    assert_eq!(fixture.take(&frame(1, END_HEADERS, 1, POST)), [Event::Starved]);
    assert_eq!(fixture.connection.waits_since_ms(), Some(0), "the rest is to be asked for at once");
    assert_eq!(fixture.take(&frame(0, 0, 1, b"question")), [Event::Starved]);
    assert_eq!(fixture.take(&frame(0, END_STREAM, 1, &[])), [Event::Request, Event::Starved]);
    assert_eq!(
        (fixture.request.body.as_slice(), fixture.request.trouble),
        (&b"question"[..], RequestFault::None)
    );
    assert_eq!(fixture.connection.waits_since_ms(), None);
}

#[test]
fn streams_that_are_given_up_are_counted_against_those_that_are_answered() {
    let mut fixture = Fixture::new(LIMITS);
    let reset = |stream| frame(3, 0, stream, &8_u32.to_be_bytes());
    for stream in (1..40).step_by(4) {
        fixture.take(&frame(1, WHOLE, stream, GET));
        assert_eq!(fixture.take(&reset(stream))[0], Event::Gone(stream));
        fixture.take(&frame(1, WHOLE, stream + 2, GET));
        fixture.respond(stream, b"too late: it is not sent");
        fixture.respond(stream + 2, b"x");
        assert!(fixture.said().iter().all(|frame| frame.stream != stream));
    }
    let mut octets = Vec::new();
    for stream in [101, 103, 105, 107] {
        octets.extend(frame(1, END_HEADERS, stream, POST));
        octets.extend(reset(stream));
    }
    Fixture::breaks(LIMITS, &octets, Code::ENHANCE_YOUR_CALM);
}

#[test]
fn mistakes_and_idle_frames_are_counted() {
    let malformed: Vec<u8> =
        [1, 3, 5, 7].into_iter().flat_map(|stream| frame(1, WHOLE, stream, &GET[1..])).collect();
    Fixture::breaks(LIMITS, &malformed, Code::ENHANCE_YOUR_CALM);
    for idle in
        [frame(6, 0, 0, &[0; 8]), frame(4, 0, 0, &[]), frame(8, 0, 0, &[0, 0, 0, 1]), frame(77, 0, 0, &[])]
    {
        Fixture::breaks(LIMITS, &idle.repeat(101), Code::ENHANCE_YOUR_CALM);
    }
    let empty = [frame(1, END_HEADERS, 1, POST), frame(0, 0, 1, &[]).repeat(101)].concat();
    Fixture::breaks(LIMITS, &empty, Code::ENHANCE_YOUR_CALM);
    let endless = [frame(1, 0, 1, POST), frame(9, 0, 1, &[]).repeat(32)].concat();
    Fixture::breaks(LIMITS, &endless, Code::ENHANCE_YOUR_CALM);
    let long = [frame(1, 0, 1, POST), frame(9, 0, 1, &[0x82; 600]).repeat(4)].concat();
    Fixture::breaks(LIMITS, &long, Code::ENHANCE_YOUR_CALM);
}

#[test]
fn what_breaks_a_rule_of_the_connection_breaks_it() {
    let open = frame(1, END_HEADERS, 1, POST);
    let after = |more: &[u8]| [&open[..], more].concat();
    let protocol = Code::PROTOCOL_ERROR;
    for (octets, code) in [
        (frame(0, 0, 0, b"x"), protocol),
        (frame(0, 0, 1, b"x"), protocol),
        (frame(1, WHOLE, 0, GET), protocol),
        (frame(1, WHOLE, 2, GET), protocol),
        (after(&frame(0, 8, 1, b"\x02x")), protocol),
        (frame(1, WHOLE | 8, 1, b"\x09\x82"), protocol),
        (frame(1, WHOLE | 0x20, 1, b"\0\0\0"), Code::FRAME_SIZE_ERROR),
        (frame(1, WHOLE, 1, b"\xc0"), Code::COMPRESSION_ERROR),
        (frame(2, 0, 0, &[0; 5]), protocol),
        (frame(2, 0, 3, &[0, 0, 0, 3, 1]), protocol),
        (frame(2, 0, 3, &[0; 4]), Code::FRAME_SIZE_ERROR),
        (frame(3, 0, 1, &[0; 4]), protocol),
        (after(&frame(3, 0, 1, &[0; 3])), Code::FRAME_SIZE_ERROR),
        (frame(4, 0, 1, &[]), protocol),
        (frame(4, 0, 0, &[0; 5]), Code::FRAME_SIZE_ERROR),
        (frame(4, 1, 0, &[0; 6]), Code::FRAME_SIZE_ERROR),
        (frame(4, 0, 0, &[0, 2, 0, 0, 0, 2]), protocol),
        (frame(4, 0, 0, &[0, 4, 0x80, 0, 0, 0]), Code::FLOW_CONTROL_ERROR),
        (frame(4, 0, 0, &[0, 5, 0, 0, 0x3f, 0xff]), protocol),
        (frame(4, 0, 0, &[0, 5, 1, 0, 0, 0]), protocol),
        (frame(5, 4, 1, &[0; 4]), protocol),
        (frame(6, 0, 1, &[0; 8]), protocol),
        (frame(6, 0, 0, &[0; 7]), Code::FRAME_SIZE_ERROR),
        (frame(7, 0, 1, &[0; 8]), protocol),
        (frame(8, 0, 0, &[0; 4]), protocol),
        (frame(8, 0, 1, &[0, 0, 0, 1]), protocol),
        (frame(8, 0, 0, &[0; 3]), Code::FRAME_SIZE_ERROR),
        (frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), Code::FLOW_CONTROL_ERROR),
        (frame(9, 4, 1, &[]), protocol),
        ([frame(1, 0, 1, GET), frame(6, 0, 0, &[0; 8])].concat(), protocol),
        ([frame(1, 0, 1, GET), frame(9, 4, 3, &[])].concat(), protocol),
        ([frame(1, WHOLE, 5, GET), frame(1, WHOLE, 3, GET)].concat(), protocol),
        (frame(0, 0, 1, &vec![0; FRAME_OCTETS_MAX + 1]), Code::FRAME_SIZE_ERROR),
    ] {
        Fixture::breaks(LIMITS, &octets, code);
    }
    let mut strict = Connection::new(LIMITS);
    let mut request = Request::default();
    assert_eq!(strict.next(&mut &b"GET / HTTP/1.1\r\n\r\n"[..], 0, &mut request), Event::Broken);
    let mut strict = Connection::new(LIMITS);
    let octets = [&PREFACE[..], &frame(6, 0, 0, &[0; 8])].concat();
    assert_eq!(strict.next(&mut &octets[..], 0, &mut request), Event::Broken, "settings come first");
}

#[test]
fn what_breaks_a_rule_of_a_stream_resets_it() {
    let open = frame(1, END_HEADERS, 1, POST);
    let after = |more: &[u8]| [&open[..], more].concat();
    let whole = frame(1, WHOLE, 1, GET);
    let asked = |more: &[u8]| [&whole[..], more].concat();
    let protocol = Code::PROTOCOL_ERROR;
    for (octets, code) in [
        (frame(1, WHOLE, 1, &GET[1..]), protocol),
        (frame(1, WHOLE | 0x20, 1, &[&[0, 0, 0, 1, 1], GET].concat()), protocol),
        (frame(1, WHOLE, 1, &[GET, b"\x0f\x0d\x011"].concat()), protocol),
        (
            [frame(1, END_HEADERS, 1, &[POST, b"\x0f\x0d\x011"].concat()), frame(0, 1, 1, b"xx")].concat(),
            protocol,
        ),
        (after(&frame(1, END_HEADERS, 1, b"\x40\x01x\x01y")), protocol),
        (after(&frame(1, WHOLE, 1, GET)), protocol),
        (after(&frame(8, 0, 1, &[0; 4])), protocol),
        (after(&frame(8, 0, 1, &[0x7f, 0xff, 0xff, 0xff])), Code::FLOW_CONTROL_ERROR),
        (asked(&frame(0, 0, 1, b"x")), Code::STREAM_CLOSED),
        (asked(&frame(1, WHOLE, 1, GET)), Code::STREAM_CLOSED),
    ] {
        Fixture::resets(&octets, 1, code);
    }
    let many: Vec<u8> = [1, 3, 5, 7, 9].into_iter().flat_map(|stream| frame(1, WHOLE, stream, GET)).collect();
    let mut fixture = Fixture::new(LIMITS);
    fixture.take(&many);
    let refused = Out { kind: 3, flags: 0, stream: 9, payload: 7_u32.to_be_bytes().to_vec() };
    assert_eq!(fixture.said(), [refused], "one more than may be open");
    let more: Vec<u8> = (11..50).step_by(2).flat_map(|stream| frame(1, WHOLE, stream, GET)).collect();
    assert_eq!(fixture.take(&more), [Event::Starved], "it may not know yet how many that are");
    fixture.take(&frame(4, 1, 0, &[]));
    let more: Vec<u8> = (51..60).step_by(2).flat_map(|stream| frame(1, WHOLE, stream, GET)).collect();
    assert_eq!(fixture.take(&more).last(), Some(&Event::Broken), "now it does");
}

#[test]
fn leave_is_taken_in_two_steps() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.take(&frame(1, END_HEADERS, 1, POST));
    fixture.connection.leave();
    let said = fixture.said();
    assert_eq!((said[0].kind, said[0].number(), said[1].kind), (7, u32::MAX >> 1, 6));
    // What was under way is still taken.
    assert_eq!(fixture.take(&frame(1, WHOLE, 3, GET))[0], Event::Request);
    fixture.take(&frame(6, 1, 0, &said[1].payload));
    let last = fixture.said();
    assert_eq!((last[0].kind, last[0].number()), (7, 3));
    assert_eq!(fixture.take(&frame(1, END_HEADERS, 5, POST)), [Event::Starved], "too late");
    assert_eq!(fixture.take(&frame(0, 1, 5, b"x")), [Event::Starved]);
    fixture.respond(3, b"x");
    assert!(!fixture.connection.is_done());
    assert_eq!(fixture.take(&frame(0, 1, 1, b"x"))[0], Event::Request);
    fixture.respond(1, b"x");
    assert!(fixture.connection.is_done());
}

proptest! {
    #[test]
    fn no_frames_panic_and_nothing_grows(
        frames in prop::collection::vec(
            (0..11_u8, any::<u8>(), 0..12_u32, prop::collection::vec(any::<u8>(), 0..40), any::<bool>()),
            0..60,
        ),
    ) {
        let mut fixture = Fixture::new(LIMITS);
        for (kind, flags, stream, payload, has_head) in frames {
            let payload = if has_head && kind == 1 { POST.to_vec() } else { payload };
            let flags = if has_head { flags & 5 } else { flags };
            let octets = frame(kind, flags, stream, &payload);
            let mut came = &octets[..];
            loop {
                match fixture.connection.next(&mut came, 0, &mut fixture.request) {
                    Event::Request if stream % 3 != 0 => {
                        let stream = fixture.request.stream;
                        fixture.respond(stream, &[0; 30]);
                    }
                    Event::Request | Event::Gone(_) => {}
                    Event::Starved | Event::Broken => break,
                }
            }
            prop_assert!(fixture.connection.open_streams() <= LIMITS.streams_max as usize);
            prop_assert!(fixture.connection.output().len() < 200);
            fixture.said();
        }
    }
}

/// A GET of a path of so many octets, in the form of a head.
fn get_of(octets: usize) -> Vec<u8> {
    // :path as a literal that is not kept, with its length behind seven ones.
    let mut head = vec![0x82, 0x87, 0x04, 0x7f];
    let mut rest = octets - 127;
    while rest >= 128 {
        head.push((rest % 128) as u8 | 0x80);
        rest /= 128;
    }
    head.push(rest as u8);
    head.push(b'/');
    head.resize(head.len() + octets - 1, b'x');
    head
}

#[test]
fn responses_that_wait_for_windows_are_counted_and_given_back() {
    let mut fixture = Fixture::new(LIMITS);
    // SETTINGS_INITIAL_WINDOW_SIZE of zero.
    fixture.take(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    fixture.said();
    for stream in [1, 3, 5] {
        assert_eq!(fixture.take(&frame(1, WHOLE, stream, GET)), [Event::Request, Event::Starved]);
        fixture.respond(stream, &[7; 1000]);
    }
    fixture.said();
    assert_eq!((fixture.connection.held(), fixture.connection.unsent()), (3000, 3000));
    let taken = fixture.connection.taken();
    assert!(taken > 0, "the heads");
    // Pings are answered, but that takes nothing of what waits.
    for _ in 0..10 {
        fixture.take(&frame(6, 0, 0, &[1; 8]));
        assert!(fixture.connection.taken() <= taken);
        fixture.said();
    }
    assert_eq!(fixture.connection.taken(), taken);
    fixture.take(&frame(8, 0, 1, &400_u32.to_be_bytes()));
    fixture.said();
    assert_eq!((fixture.connection.held(), fixture.connection.unsent()), (3000, 2600), "its memory stays");
    assert_eq!(fixture.connection.taken(), taken + 409);
    fixture.take(&frame(8, 0, 1, &600_u32.to_be_bytes()));
    fixture.said();
    assert_eq!((fixture.connection.held(), fixture.connection.unsent()), (2000, 2000));
    fixture.take(&frame(3, 0, 3, &8_u32.to_be_bytes()));
    assert_eq!(fixture.connection.held(), 1000, "the client has given one up");
}

#[test]
fn requests_that_are_held_back_are_handed_over_later_and_windows_are_heard_meanwhile() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.take(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    assert_eq!(fixture.take(&frame(1, WHOLE, 1, GET)), [Event::Request, Event::Starved]);
    fixture.respond(1, b"answer");
    fixture.said();
    fixture.connection.hold_requests(true);
    let posted = [frame(1, END_HEADERS, 3, POST), frame(0, END_STREAM, 3, b"question")].concat();
    assert_eq!(fixture.take(&posted), [Event::Starved]);
    assert_eq!(fixture.take(&frame(1, WHOLE, 5, GET)), [Event::Starved]);
    assert!(!fixture.connection.has_requests());
    assert_eq!(fixture.take(&frame(8, 0, 1, &6_u32.to_be_bytes())), [Event::Starved]);
    let said = fixture.said();
    assert_eq!(said.last().map(|frame| &frame.payload[..]), Some(&b"answer"[..]));
    // One of those that wait is given up.
    assert_eq!(fixture.take(&frame(1, WHOLE, 7, GET)), [Event::Starved]);
    assert_eq!(fixture.take(&frame(3, 0, 5, &8_u32.to_be_bytes())), [Event::Gone(5), Event::Starved]);
    fixture.connection.hold_requests(false);
    assert!(fixture.connection.has_requests());
    let mut nothing = &[][..];
    assert_eq!(fixture.connection.next(&mut nothing, 0, &mut fixture.request), Event::Request);
    assert_eq!((fixture.request.stream, &fixture.request.body[..]), (3, &b"question"[..]));
    assert_eq!(fixture.take(&[]), [Event::Request, Event::Starved]);
    assert_eq!(fixture.request.stream, 7);
    assert_eq!(fixture.request.head.method(), Some(&b"GET"[..]));
    assert!(!fixture.connection.has_requests());
}

#[test]
fn heads_that_wait_are_bounded_in_memory() {
    let limits = Limits { streams_max: 128, head_octets_max: 16 << 10, ..LIMITS };
    for is_held in [true, false] {
        let mut fixture = Fixture::new(limits);
        fixture.connection.hold_requests(is_held);
        let flags = if is_held { WHOLE } else { END_HEADERS };
        for number in 0..40_u32 {
            assert_eq!(fixture.take(&frame(1, flags, 2 * number + 1, &get_of(8000))), [Event::Starved]);
        }
        let said = fixture.said();
        let refused = said.iter().filter(|frame| frame.kind == 3);
        assert!(refused.clone().all(|frame| frame.number() == Code::REFUSED_STREAM.0));
        let open = fixture.connection.open_streams();
        assert!((8..=16).contains(&open), "{open} heads of 8,000 octets in 128 KiB");
        assert_eq!(refused.count(), 40 - open);
        // What is refused is no mistake of the client's, and small ones still find room.
        assert!(!fixture.connection.is_done());
    }
}

#[test]
fn each_response_ends_where_it_can_be_sent_alone() {
    let mut fixture = Fixture::new(LIMITS);
    let requests: Vec<u8> = [1, 3, 5].iter().flat_map(|&stream| frame(1, WHOLE, stream, GET)).collect();
    let mut rest = &requests[..];
    for stream in [1, 3, 5] {
        assert_eq!(fixture.connection.next(&mut rest, 0, &mut fixture.request), Event::Request);
        fixture.respond(stream, &[stream as u8; 100]);
    }
    let whole = fixture.connection.output().to_vec();
    let mut pieces = Vec::new();
    while !fixture.connection.output().is_empty() {
        let piece = fixture.connection.first_response().to_vec();
        // In two parts, as a socket may take it.
        let half = piece.len() / 2;
        fixture.connection.sent(half);
        assert_eq!(fixture.connection.first_response(), &piece[half..]);
        fixture.connection.sent(piece.len() - half);
        pieces.push(piece);
    }
    assert_eq!(pieces.concat(), whole);
    assert_eq!(pieces.len(), 3);
    for (piece, stream) in pieces.iter().zip([1_u8, 3, 5]) {
        assert!(piece.ends_with(&[stream; 100]));
    }
}

#[test]
fn a_client_that_always_leaves_something_has_no_more_kept_than_that() {
    let mut fixture = Fixture::new(LIMITS);
    fixture.take(&frame(8, 0, 0, &(1_u32 << 30).to_be_bytes()));
    for number in 0..1000_u32 {
        let stream = 2 * number + 1;
        assert_eq!(fixture.take(&frame(1, WHOLE, stream, GET)), [Event::Request, Event::Starved]);
        fixture.respond(stream, &[0; 1000]);
        let some = fixture.connection.output().len() - 50;
        fixture.connection.sent(some);
        assert!(fixture.connection.output.capacity() < 64 << 10);
    }
}
