//! Whatever a client of HTTP/2 sends, in pieces of any size: nothing panics, nothing grows, and
//! what is said are whole frames.

use http2::{Connection, Event, Field, Limits, PREFACE, Request, Response};

const LIMITS: Limits = Limits {
    streams_max: 8,
    head_octets_max: 2000,
    fields_max: 16,
    body_octets_max: 5000,
    discarded_octets_max: 20_000,
    window_octets: 70_000,
    resets_max: 8,
    mistakes_max: 8,
    idle_frames_max: 100,
};

/// What a client sends: two octets say how large the pieces and the bodies of responses are.
pub fn http2(bytes: &[u8]) {
    let Some((&[piece, body], bytes)) = bytes.split_first_chunk::<2>() else { return };
    let mut connection = Connection::new(LIMITS);
    let mut request = Request::default();
    let body = vec![0; usize::from(body) * 40];
    // The preface is the same for everybody; settings are for the fuzzer to find, or in the seeds.
    let greeting = PREFACE.to_vec();
    let mut kept = greeting;
    let mut answered = 0;
    let mut said = connection.output().len();
    for (now_ms, piece) in (0..).zip(bytes.chunks(usize::from(piece) + 1)) {
        kept.extend_from_slice(piece);
        let mut came = &kept[..];
        loop {
            match connection.next(&mut came, now_ms, &mut request) {
                Event::Request => {
                    assert!(request.body.len() <= LIMITS.body_octets_max);
                    assert!(request.head.fields().count() <= LIMITS.fields_max);
                    answered += 1;
                    // Some are never answered.
                    if request.stream % 7 != 3 {
                        let fields = [Field::Lasting("content-type", b"x"), Field::Passing("age", b"1")];
                        connection
                            .respond(request.stream, &Response { status: 200, fields: &fields, body: &body });
                    }
                }
                Event::Gone(_) => {}
                Event::Starved | Event::Broken => break,
            }
        }
        kept = came.to_vec();
        assert!(connection.open_streams() <= LIMITS.streams_max as usize);
        let output = connection.output();
        let (mut rest, mut frames) = (output, 0);
        while let Some((head, after)) = rest.split_first_chunk::<9>() {
            let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            rest = after.get(len..).expect("whole frames");
            frames += 1;
        }
        assert!(rest.is_empty());
        said += output.len();
        // Besides responses nothing said is much longer than what it answers.
        assert!(
            said <= 200 + bytes.len() * 4 + answered * (body.len() + 200),
            "{said} octets in {frames} frames"
        );
        let octets = output.len();
        connection.sent(octets);
        if connection.is_done() {
            return;
        }
    }
    let _ = connection.overdue(u64::MAX, &mut request);
    connection.leave();
}
