//! HTTP/2: reads, has the engine answer, writes; what `http2` says goes out with one system call
//! for each piece that came. Over TLS each response among it is a record of its own, because some
//! clients look at one response for each record.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use engine::Now;
use http2::{Connection, Event, Field, Request, RequestFault};
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::{AtOnce, Once, Visit, refuse, respond, without_body};
use super::corked::{Acknowledge, Carrier};
use super::limits::{GOODBYE_TIMEOUT, limits_h2};
use super::request::{MESSAGE, Refusal};
use crate::budget::{Charge, Progress};
use crate::service::{self, Service};
use crate::tcp::Ending;

/// Requests of one connection answered before what they came to is sent.
const REQUESTS_PER_TURN_MAX: usize = 64;
/// Turns of one connection before others get theirs.
const TURNS_MAX: u32 = 4;
/// Octets of responses to a batch of requests before they are charged: most batches are sent whole,
/// and cost no accounting.
const UNCHARGED_OCTETS_MAX: usize = 16 << 10;
/// Octets of a message from an address whose memory is kept for the next.
const QUERY_KEPT_OCTETS: usize = 512;
/// Octets read and thrown away when we have said goodbye, so that unread ones do not turn it into a
/// reset.
const LINGER_OCTETS_MAX: usize = 64 << 10;

/// How a conversation goes on.
enum Over {
    /// It has ended.
    Ended(Result<(), Ending>),
    /// It has to take leave, and to end after so long.
    Leave(Duration, Ending),
}

/// Speaks HTTP/2 until the connection ends. `opening` was read already.
pub(super) async fn conversation<S: Service + 'static, IO: AsyncRead + AsyncWrite + Acknowledge + Unpin>(
    visit: Rc<Visit<S>>,
    (stream, carrier): (IO, Carrier),
    opening: Vec<u8>,
) -> Result<(), Ending> {
    let plan = *visit.plan();
    let handle = Rc::clone(visit.handle());
    let mut conversation = Conversation::new(visit, (stream, carrier), opening);
    let mut sleep = pin!(sleep_until(Instant::now() + plan.first_timeout));
    loop {
        tokio::select! {
            biased;
            over = poll_fn(|context| conversation.poll(context, sleep.as_mut())) => match over {
                Over::Ended(ended) => return conversation.goodbye.map_or(ended, |(_, ending)| Err(ending)),
                Over::Leave(within, ending) => conversation.leave(within, ending),
            },
            () = handle.changed() => {
                if handle.is_evicted() {
                    return Err(handle.eviction());
                }
                if handle.is_stopping() {
                    // The worker's own deadline comes first, if it is sooner.
                    conversation.leave(plan.idle_timeout, Ending::Stopping);
                }
            }
            () = handle.grows_old(&plan), if conversation.goodbye.is_none() => {
                conversation.leave(plan.idle_timeout, Ending::Finished);
            }
        }
    }
}

/// A connection of HTTP/2.
struct Conversation<S: Service, IO> {
    visit: Rc<Visit<S>>,
    stream: IO,
    carrier: Carrier,
    connection: Connection,
    /// The request that is being worked on.
    request: Request,
    /// Room for a message that has to be read from the address.
    query: Vec<u8>,
    /// What was read and not worked on.
    kept: Vec<u8>,
    /// Whether whole frames are among it.
    is_behind: bool,
    /// Since when part of a frame waits for its rest.
    part_since: Option<Instant>,
    /// Whether something was read since the client was last told that all has come.
    has_read: bool,
    /// Responses that come later. Dropping them ends the work on them.
    late: JoinSet<(u32, Response<Once>)>,
    late_streams: Vec<(u32, AbortHandle)>,
    /// Whether the client takes its responses.
    progress: Progress,
    /// What the responses take that it has not taken.
    charge: Charge,
    needs_flush: bool,
    /// Until when the connection has to end, and why it does.
    goodbye: Option<(Instant, Ending)>,
    /// Octets thrown away since we have said that nothing more comes.
    lingered: Option<usize>,
    was_busy: bool,
}

impl<S: Service + 'static, IO: AsyncRead + AsyncWrite + Acknowledge + Unpin> Conversation<S, IO> {
    fn new(visit: Rc<Visit<S>>, (stream, carrier): (IO, Carrier), opening: Vec<u8>) -> Self {
        let connection = Connection::new(limits_h2(visit.plan()));
        let charge = visit.handle().account().charge(0);
        Self {
            visit,
            stream,
            carrier,
            connection,
            request: Request::default(),
            query: Vec::new(),
            is_behind: !opening.is_empty(),
            kept: opening,
            part_since: None,
            has_read: true,
            late: JoinSet::new(),
            late_streams: Vec::new(),
            progress: Progress::default(),
            charge,
            needs_flush: false,
            goodbye: None,
            lingered: None,
            was_busy: false,
        }
    }

    /// Takes leave of the client; the connection ends when all is answered, or after `within`.
    fn leave(&mut self, within: Duration, ending: Ending) {
        if self.goodbye.is_none() {
            self.connection.leave();
            self.goodbye = Some((Instant::now() + within, ending));
        }
    }

    /// Goes on with the conversation; `sleep` wakes it when something is due.
    fn poll(&mut self, context: &mut Context<'_>, sleep: Pin<&mut Sleep>) -> Poll<Over> {
        for _ in 0..TURNS_MAX {
            self.take_late(context);
            if let Err(ending) = self.write(context) {
                return Poll::Ready(Over::Ended(Err(ending)));
            }
            if self.connection.is_done() && self.connection.output().is_empty() && !self.needs_flush {
                return self.linger(context, sleep);
            }
            if self.connection.output().len() > self.visit.plan().output_octets_max {
                // It is asked for no more than it takes.
                return self.rest(context, sleep);
            }
            self.charge();
            if self.is_behind || self.connection.has_requests() {
                let kept = std::mem::take(&mut self.kept);
                self.work(&kept);
                continue;
            }
            match self.read(context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Over::Ended(Ok(()))),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(ending)) => return Poll::Ready(Over::Ended(Err(ending))),
                Poll::Pending => return self.rest(context, sleep),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Charges the connection for what its responses take. When that is as much as it may hold,
    /// further requests are held back; what else it says is still heard, because windows are among
    /// it.
    fn charge(&mut self) {
        self.charge.resize(self.connection.held());
        self.connection.hold_requests(!self.visit.handle().account().has_room());
    }

    /// Reads once and works on it; returns how many octets there were.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, Ending>> {
        let shared = Rc::clone(self.visit.shared());
        let mut input = shared.take_input();
        let mut room = ReadBuf::new(&mut input);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut room);
        let octets = room.filled().len();
        if octets > 0 {
            self.has_read = true;
            self.visit.handle().touch();
            if self.kept.is_empty() {
                self.work_on(&shared, input, octets);
                return Poll::Ready(Ok(octets));
            }
            self.kept.extend_from_slice(input.get(..octets).unwrap_or(&[]));
        }
        shared.return_input(input);
        ready!(read).map_err(|_| Ending::Error)?;
        if octets > 0 {
            let kept = std::mem::take(&mut self.kept);
            self.work(&kept);
        }
        Poll::Ready(Ok(octets))
    }

    /// Works on what stands in the input.
    fn work_on(&mut self, shared: &crate::tcp::Shared<S>, input: Box<[u8]>, octets: usize) {
        self.work(input.get(..octets).unwrap_or(&[]));
        shared.return_input(input);
    }

    /// Works on what came and keeps the rest.
    fn work(&mut self, came: &[u8]) {
        let service = Rc::clone(self.visit.shared().service());
        let now = service.now();
        let mut rest = came;
        let mut requests = 0;
        self.is_behind = false;
        loop {
            if self.connection.held() > self.charge.octets() + UNCHARGED_OCTETS_MAX {
                self.charge();
            }
            if requests >= REQUESTS_PER_TURN_MAX
                || self.connection.output().len() > self.visit.plan().output_octets_max
            {
                self.is_behind = !rest.is_empty();
                break;
            }
            match self.connection.next(&mut rest, now.monotonic_ms, &mut self.request) {
                Event::Starved | Event::Broken => break,
                Event::Gone(stream) => self.forget(stream),
                Event::Request => {
                    requests += 1;
                    self.answer(now);
                }
            }
        }
        if requests > 0 {
            self.visit.handle().count(requests as u64);
            service::finish(&*service, requests);
        }
        self.kept.clear();
        self.query.clear();
        self.query.shrink_to(QUERY_KEPT_OCTETS);
        if rest.is_empty() || self.connection.is_done() {
            self.part_since = None;
        } else {
            self.kept.extend_from_slice(rest);
            if rest.len() < came.len() || self.part_since.is_none() {
                self.part_since = Some(Instant::now());
            }
        }
    }

    /// Answers the request that has come, or begins to.
    fn answer(&mut self, now: Now) {
        let Self { visit, connection, request, query, .. } = self;
        let stream = request.stream;
        let answered = match request.trouble {
            RequestFault::None => {
                let alt_svc = visit.alt_svc().map(HeaderValue::as_bytes);
                visit.answer_now(&request.head, &request.body, query, now, |reply, max_age| {
                    write_reply(connection, stream, reply, max_age, alt_svc);
                })
            }
            trouble => {
                visit.shared().counters().http_requests.bump();
                visit.shared().counters().http_refused.bump();
                Err(refusal(trouble))
            }
        };
        match answered {
            Ok(AtOnce::Answered) => {}
            Ok(AtOnce::Late(late, unanswered)) => {
                let visit = Rc::clone(visit);
                self.await_response(stream, async move {
                    let reply = late.reply().await;
                    visit.respond_late(reply, unanswered)
                });
            }
            Ok(AtOnce::Other) => {
                let (visit, request) = (Rc::clone(visit), std::mem::take(request));
                self.await_response(stream, async move {
                    let Request { head, body, .. } = request;
                    respond(&visit, &head, async { Ok(body) }).await
                });
            }
            Err(refusal) => {
                let mut response = refuse(refusal);
                if request.head.method() == Some(b"HEAD") {
                    response = without_body(response);
                }
                write_response(connection, stream, &response);
            }
        }
    }

    /// Sends a response when it is there.
    fn await_response(&mut self, stream: u32, response: impl Future<Output = Response<Once>> + 'static) {
        let mut response = Box::pin(response);
        // Many need nobody else. One that does hears nothing of what happens from here until the
        // task begins, which looks at everything again.
        match response.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => write_response(&mut self.connection, stream, &response),
            Poll::Pending => {
                let handle = self.late.spawn_local(async move { (stream, response.await) });
                self.late_streams.push((stream, handle));
            }
        }
    }

    /// Gives up what was begun for a stream.
    fn forget(&mut self, stream: u32) {
        if let Some(place) = self.late_streams.iter().position(|(other, _)| *other == stream) {
            self.late_streams.swap_remove(place).1.abort();
        }
    }

    /// Takes the responses that have come.
    fn take_late(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some(done)) = self.late.poll_join_next(context) {
            // Work that was given up has no response.
            if let Ok((stream, response)) = done {
                self.late_streams.retain(|(other, _)| *other != stream);
                write_response(&mut self.connection, stream, &response);
            }
        }
    }

    /// Sends what there is, as far as the client takes it.
    fn write(&mut self, context: &mut Context<'_>) -> Result<(), Ending> {
        let mut stream = Pin::new(&mut self.stream);
        while !self.connection.output().is_empty() {
            let piece = match self.carrier {
                Carrier::Tls => self.connection.first_response(),
                Carrier::Plain => self.connection.output(),
            };
            match stream.as_mut().poll_write(context, piece) {
                Poll::Ready(Ok(octets)) if octets > 0 => {
                    self.connection.sent(octets);
                    self.needs_flush = true;
                }
                Poll::Ready(_) => return Err(Ending::Error),
                Poll::Pending => break,
            }
        }
        if self.needs_flush {
            match stream.poll_flush(context) {
                Poll::Ready(Ok(())) => self.needs_flush = false,
                Poll::Ready(Err(_)) => return Err(Ending::Error),
                Poll::Pending => {}
            }
        }
        let waiting = self.connection.unsent().max(usize::from(self.needs_flush));
        if waiting > 0 || self.progress.is_waiting() {
            self.progress.note(waiting, self.connection.taken(), Instant::now());
        }
        Ok(())
    }

    /// Says that nothing more comes, and hears the client out, within bounds.
    fn linger(&mut self, context: &mut Context<'_>, sleep: Pin<&mut Sleep>) -> Poll<Over> {
        let ended = Poll::Ready(Over::Ended(Err(Ending::Malformed)));
        if self.lingered.is_none() {
            match Pin::new(&mut self.stream).poll_shutdown(context) {
                Poll::Ready(Ok(())) => self.lingered = Some(0),
                Poll::Ready(Err(_)) => return ended,
                Poll::Pending => {}
            }
            self.part_since = None;
            let until = Instant::now() + GOODBYE_TIMEOUT;
            let (deadline, ending) = self.goodbye.unwrap_or((until, Ending::Malformed));
            self.goodbye = Some((deadline.min(until), ending));
        }
        let shared = Rc::clone(self.visit.shared());
        let mut input = shared.take_input();
        let mut is_over = false;
        while let Some(lingered) = self.lingered.filter(|_| !is_over) {
            let mut room = ReadBuf::new(&mut input);
            match Pin::new(&mut self.stream).poll_read(context, &mut room) {
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    let lingered = lingered + room.filled().len();
                    self.lingered = Some(lingered);
                    is_over = lingered > LINGER_OCTETS_MAX;
                }
                Poll::Ready(_) => is_over = true,
                Poll::Pending => break,
            }
        }
        shared.return_input(input);
        if is_over { ended } else { self.rest(context, sleep) }
    }

    /// Acknowledges what was read if it ends within a request.
    ///
    /// A client whose system holds a small segment back until the one before is acknowledged
    /// (Nagle, RFC 9293 §3.7.4), and which sends heads and bodies one by one, would wait for our
    /// system's delayed acknowledgement with each of its requests: 40 ms.
    fn ask_for_rest(&mut self) {
        let has_read = std::mem::take(&mut self.has_read);
        if has_read && (!self.kept.is_empty() || self.connection.waits_since_ms().is_some()) {
            self.stream.acknowledge();
        }
    }

    /// Waits for what comes next, or for the time to do something.
    fn rest(&mut self, context: &mut Context<'_>, mut sleep: Pin<&mut Sleep>) -> Poll<Over> {
        self.ask_for_rest();
        let is_busy = self.connection.open_streams() > 0 || self.progress.is_waiting();
        if is_busy || self.was_busy {
            // The response to the last request counts as activity.
            self.visit.handle().touch();
        }
        self.was_busy = is_busy;
        self.visit.note_busy(is_busy || !self.kept.is_empty());
        loop {
            let (at, due) = self.deadline(is_busy);
            if at > Instant::now() {
                // A deadline that moved further away is not worth setting the timer: it rings once
                // too early instead.
                if at < sleep.deadline() || sleep.is_elapsed() {
                    sleep.as_mut().reset(at);
                }
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                continue;
            }
            match due {
                Due::Over(over) => return Poll::Ready(over),
                Due::Body => {
                    let service = self.visit.shared().service();
                    let now = service.now();
                    let before = now.monotonic_ms.saturating_sub(millis(self.visit.plan().query_timeout));
                    match self.connection.overdue(before, &mut self.request) {
                        Event::Request => self.answer(now),
                        Event::Starved | Event::Broken | Event::Gone(_) => {}
                    }
                    // What that came to is to be sent.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    /// Returns the next moment at which something is due, and what.
    fn deadline(&self, is_busy: bool) -> (Instant, Due) {
        let (visit, handle) = (&self.visit, self.visit.handle());
        let plan = visit.plan();
        let ended = |ending| Due::Over(Over::Ended(Err(ending)));
        let mut next = match self.goodbye {
            Some((at, ending)) => (at, ended(ending)),
            None => {
                let quiet = if handle.requests.get() == 0 {
                    plan.first_timeout
                } else {
                    plan.idle_timeout(visit.shared().taken())
                };
                // A busy one has other deadlines; its fetches have theirs.
                let since = if is_busy { Instant::now() } else { handle.active_at.get() };
                (since + quiet, Due::Over(Over::Leave(GOODBYE_TIMEOUT, Ending::Idle)))
            }
        };
        let mut consider = |at: Instant, due: Due| {
            if at < next.0 {
                next = (at, due);
            }
        };
        if let Some(at) = self.progress.due(plan.write_timeout) {
            consider(at, ended(Ending::SlowReader));
        }
        if let Some(since) = self.part_since.filter(|_| !self.is_behind) {
            consider(since + plan.query_timeout, ended(Ending::SlowWriter));
        }
        if let Some(since_ms) = self.connection.waits_since_ms() {
            let age = visit.shared().service().now().monotonic_ms.saturating_sub(since_ms);
            let left = plan.query_timeout.saturating_sub(Duration::from_millis(age));
            consider(Instant::now() + left, Due::Body);
        }
        next
    }
}

/// What is to be done at some moment.
enum Due {
    /// The conversation goes on in another way, or not at all.
    Over(Over),
    /// A body that does not come is given up.
    Body,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the response to a request that is not as it should be.
fn refusal(trouble: RequestFault) -> Refusal {
    let (status, text) = match trouble {
        RequestFault::HeadTooLarge => {
            (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too large\n")
        }
        RequestFault::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "larger than a message can be\n"),
        RequestFault::None | RequestFault::BodyTooSlow => {
            (StatusCode::REQUEST_TIMEOUT, "the body took too long\n")
        }
    };
    Refusal { status, text }
}

/// Writes the response with a reply.
fn write_reply(connection: &mut Connection, stream: u32, reply: &[u8], max_age: u32, alt_svc: Option<&[u8]>) {
    let (mut of_length, mut of_age) = ([0; 20], *b"max-age=\0\0\0\0\0\0\0\0\0\0");
    let length = write_number(&mut of_length, 0, reply.len() as u32);
    let age = write_number(&mut of_age, "max-age=".len(), max_age);
    let fields = [
        Field::Lasting("content-type", MESSAGE.as_bytes()),
        Field::Passing("cache-control", age),
        Field::Passing("content-length", length),
        Field::Lasting("alt-svc", alt_svc.unwrap_or(&[])),
    ];
    let fields = fields.get(..if alt_svc.is_some() { 4 } else { 3 }).unwrap_or(&[]);
    connection.respond(stream, &http2::Response { status: StatusCode::OK.as_u16(), fields, body: reply });
}

/// Writes a number in decimal form behind the first `used` octets of `room`; returns all of it.
fn write_number(room: &mut [u8], used: usize, number: u32) -> &[u8] {
    let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut rest = number;
    for place in room.iter_mut().skip(used).take(digits).rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    room.get(..used + digits).unwrap_or(&[])
}

/// Writes any other response.
fn write_response(connection: &mut Connection, stream: u32, response: &Response<Once>) {
    let told = response.body().0.as_ref().map(Bytes::as_ref);
    let body = told.unwrap_or(&[]);
    let mut of_length = [0; 20];
    let length = write_number(&mut of_length, 0, u32::try_from(body.len()).unwrap_or(u32::MAX));
    let mut fields: Vec<_> = response
        .headers()
        .iter()
        .map(|(name, value)| Field::Passing(name.as_str(), value.as_bytes()))
        .collect();
    if told.is_some() {
        fields.push(Field::Passing("content-length", length));
    }
    connection
        .respond(stream, &http2::Response { status: response.status().as_u16(), fields: &fields, body });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal_form() {
        for (number, expect) in
            [(0, "n=0"), (9, "n=9"), (10, "n=10"), (3600, "n=3600"), (u32::MAX, "n=4294967295")]
        {
            let mut room = *b"n=----------";
            assert_eq!(write_number(&mut room, 2, number), expect.as_bytes());
        }
    }
}
