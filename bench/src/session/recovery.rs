//! Names that are asked through an outage of the upstream, until each has been answered.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use super::event::Change;
use crate::load::Tally;
use crate::queries::Packets;
use crate::scenario::Outage;
use crate::sys::Poller;

/// Names that are asked.
pub(super) const NAMES: usize = 16;
/// The first of them: one that was not asked when the server's answers were judged.
const FIRST: usize = 1;
/// How often each is asked.
const INTERVAL: Duration = Duration::from_millis(50);
/// How long a name may go unanswered when the upstream is back; if it does, it counts as lost.
const RECOVERY_MAX: Duration = Duration::from_secs(30);

/// What became of one name.
struct Course {
    socket: UdpSocket,
    query: Vec<u8>,
    /// Octets of the question behind the header.
    question_octets: usize,
    /// When the first right answer came.
    answered_at: Option<Instant>,
}

/// What the server said until it had answered.
#[derive(Default)]
struct Heard {
    asked: u64,
    errors: u64,
}

/// Lets the upstream be away for `length` while the names are asked; latency is the time from its
/// return to the first right answer, and what counts are names.
pub(super) fn run(
    server: SocketAddr,
    packets: &Packets,
    change: &dyn Fn(Change) -> Result<(), String>,
    outage: Outage,
    length: Duration,
) -> Result<Tally, String> {
    let mut courses = Vec::with_capacity(NAMES);
    for at in FIRST..FIRST + NAMES {
        let course = Course::new(server, packets, at).map_err(|error| format!("recovery: {error}"))?;
        courses.push(course);
    }
    let begun = Instant::now();
    change(outage.begins())?;
    // Says when the upstream was back, or that it will not come.
    let returned: OnceLock<Result<Instant, ()>> = OnceLock::new();
    let (heard, ended) = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&mut courses, &returned));
        // The events stay on this thread: what it starts ends with it.
        thread::sleep(length.saturating_sub(begun.elapsed()));
        let ended = change(outage.ends());
        // Nobody else sets it.
        let _ = returned.set(ended.as_ref().map(|()| Instant::now()).map_err(drop));
        (asking.join(), ended)
    });
    ended?;
    let heard = heard.map_err(|_| "the client panicked".to_owned())?;
    let heard = heard.map_err(|error| format!("recovery: {error}"))?;
    let back = returned.get().and_then(|returned| returned.ok()).ok_or("the upstream has not come back")?;

    let mut tally = Tally { sent: NAMES as u64, elapsed: begun.elapsed(), ..Tally::default() };
    let mut times: Vec<Duration> =
        courses.iter().filter_map(|it| it.answered_at).map(|at| at.saturating_duration_since(back)).collect();
    times.sort_unstable();
    for time in &times {
        tally.answered += 1;
        tally.latency.record(time.as_nanos() as u64);
    }
    tally.lost = tally.sent - tally.answered;
    let all = match times.last() {
        Some(last) if tally.lost == 0 => {
            format!("all answered {:.2} s after the upstream's return", last.as_secs_f64())
        }
        _ => format!(
            "{} of {NAMES} not answered {} s after the upstream's return",
            tally.lost,
            RECOVERY_MAX.as_secs()
        ),
    };
    tally.remark =
        Some(format!("asked {} times, {} of them answered with an error; {all}", heard.asked, heard.errors));
    Ok(tally)
}

impl Course {
    fn new(server: SocketAddr, packets: &Packets, at: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            query: packets.packet(at).to_vec(),
            question_octets: packets.question(at).len(),
            answered_at: None,
        })
    }

    /// Asks; a query that cannot be sent is one that is lost.
    fn ask(&mut self, id: u16) {
        if let Some(place) = self.query.first_chunk_mut::<2>() {
            *place = id.to_be_bytes();
        }
        let _ = self.socket.send(&self.query);
    }

    /// Takes what has come; returns how many errors.
    fn hear(&mut self) -> u64 {
        let mut errors = 0;
        let mut buffer = [0; 2048];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            // An answer to an earlier query for the name is as good. The question follows the
            // header of 12 octets.
            let question = self.query.get(12..12 + self.question_octets).unwrap_or(&[]);
            let is_reply = buffer.get(12..len).is_some_and(|rest| rest.starts_with(question));
            let [_, _, flags, code, _, _, a0, a1] = *buffer.first_chunk::<8>().unwrap_or(&[0; 8]);
            if !is_reply || flags & 0x80 == 0 {
                continue;
            }
            if code & 0xf == 0 && [a0, a1] != [0, 0] {
                self.answered_at = self.answered_at.or(Some(Instant::now()));
            } else {
                errors += 1;
            }
        }
        errors
    }
}

/// Asks each name that has not been answered in turn, until all have been, or the upstream has been
/// back for long.
fn ask(courses: &mut [Course], returned: &OnceLock<Result<Instant, ()>>) -> io::Result<Heard> {
    let mut poller = Poller::with_capacity(courses.len())?;
    for (at, course) in courses.iter().enumerate() {
        poller.watch(&course.socket, at, crate::sys::Interest::Read)?;
    }
    let step = INTERVAL / courses.len().max(1) as u32;
    let begun = Instant::now();
    let mut heard = Heard::default();
    let mut turn: u32 = 0;
    loop {
        let is_hopeless = match returned.get() {
            None => false,
            Some(Ok(back)) => back.elapsed() > RECOVERY_MAX,
            Some(Err(())) => true,
        };
        if is_hopeless || courses.iter().all(|course| course.answered_at.is_some()) {
            return Ok(heard);
        }
        let now = begun.elapsed();
        if now >= step * turn {
            let at = turn as usize % courses.len();
            if let Some(course) = courses.get_mut(at).filter(|course| course.answered_at.is_none()) {
                course.ask(turn as u16);
                heard.asked += 1;
            }
            turn += 1;
        }
        let ready = poller.wait((step * turn).saturating_sub(begun.elapsed()))?;
        for i in 0..ready {
            if let Some(course) = courses.get_mut(poller.ready(i)) {
                heard.errors += course.hear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::{Ask, Extras};
    use wire::Rtype;

    /// Errors that the server answers with before it answers rightly.
    const ERRORS: u64 = 40;

    fn courses(server: SocketAddr) -> Vec<Course> {
        let asks: Vec<Ask> = (0..4).map(|i| Ask::new(format!("host{i}.example.org"), Rtype::A)).collect();
        // Behind the question of a query there may be an OPT record, which a reply need not have.
        let extras = Extras { edns_size: Some(1232), ..Extras::default() };
        let packets = Packets::new(&asks, extras).expect("encodes");
        (0..4).map(|at| Course::new(server, &packets, at).expect("loopback")).collect()
    }

    #[test]
    fn each_name_is_asked_until_it_has_been_answered() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let mut courses = courses(socket.local_addr().expect("bound"));
        let returned = OnceLock::from(Ok(Instant::now()));
        let heard = thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut buffer, mut answered) = ([0; 512], Vec::new());
                for count in 0.. {
                    let (len, sender) = socket.recv_from(&mut buffer).expect("loopback");
                    buffer[2] |= 0x80;
                    // SERVFAIL, then a header that claims a record, which is all that is looked at.
                    [buffer[3], buffer[7]] = if count < ERRORS { [2, 0] } else { [0, 1] };
                    socket.send_to(&buffer[..len], sender).expect("loopback");
                    if count >= ERRORS && !answered.contains(&sender) {
                        answered.push(sender);
                    }
                    if answered.len() == 4 {
                        return;
                    }
                }
            });
            let heard = ask(&mut courses, &returned).expect("loopback");
            server.join().expect("ended well");
            heard
        });
        assert_eq!(heard.errors, ERRORS);
        assert!(heard.asked >= ERRORS + 4 && courses.iter().all(|course| course.answered_at.is_some()));
    }

    #[test]
    fn nobody_asks_further_if_the_upstream_will_not_come_back() {
        let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let mut courses = courses(silent.local_addr().expect("bound"));
        let heard = ask(&mut courses, &OnceLock::from(Err(()))).expect("loopback");
        assert_eq!((heard.asked, heard.errors), (0, 0));
    }
}
