//! What goes back, and what is read of what comes.

use std::future::poll_fn;
use std::io::Write as _;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use control::api;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::HeaderValue;
use server::Draft;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::Body;
use crate::problem::Problem;
use crate::transfers::Transfer;
use crate::validity::Validity;

/// How long a body may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a body may take that is longer than others.
pub(crate) const LONG_BODY_TIME_MAX: Duration = Duration::from_secs(300);
/// Octets of bodies that are not longer than others.
const SHORT_OCTETS_MAX: u64 = 1 << 20;
/// Parts of a body that wait to be written.
const PARTS_MAX: usize = 4;

/// What goes back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
    /// Whether the rest of what the client sends is not looked at.
    pub(crate) ends_connection: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: Body) -> Self {
        Self { status, headers: vec![("content-type", kind.to_owned())], body, ends_connection: false }
    }

    pub(crate) fn json(text: String) -> Self {
        Self::new(200, "application/json", Body::whole(text))
    }

    /// Returns what is made while the client takes it.
    pub(crate) fn stream(kind: &str, body: Body) -> Self {
        Self::new(200, kind, body)
    }

    pub(crate) fn text(kind: &str, text: String) -> Self {
        Self::new(200, kind, Body::whole(text))
    }

    /// Returns what was answered before.
    pub(crate) fn again(status: u16, kind: &str, text: String) -> Self {
        match kind {
            "" => Self::nothing(status),
            kind => Self::new(status, kind, Body::whole(text)),
        }
    }

    /// Returns status, type, ETag and body, if all of it is there already.
    pub(crate) fn known(&self) -> Option<(u16, String, Option<String>, String)> {
        let header = |name: &str| {
            self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        let kind = header("content-type").unwrap_or_default();
        Some((self.status, kind, header("etag"), self.body.text()?))
    }

    pub(crate) fn nothing(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::whole(""), ends_connection: false }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Says where what comes next is.
    pub(crate) fn linked(self, next: Option<String>) -> Self {
        match next {
            Some(next) => self.with("link", format!("<{next}>; rel=\"next\"")),
            None => self,
        }
    }

    /// Returns it with another status.
    pub(crate) const fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Has the body, if it is made while the client takes it, end with what it was asked for with,
    /// and the transfer of an archive last as long as the body.
    pub(crate) fn lasting(self, transfer: Option<Transfer>, validity: Option<Validity>) -> Self {
        Self { body: self.body.lasting(transfer, validity), ..self }
    }

    pub(crate) const fn ending(mut self) -> Self {
        self.ends_connection = true;
        self
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        let text = api::to_json(&problem);
        Self::new(problem.status(), "application/problem+json", Body::whole(text))
    }
}

pub(crate) fn not_allowed(methods: &str) -> Reply {
    let problem = Problem::new(405, format!("expected {methods}"));
    Reply::from(problem).with("allow", methods.to_owned())
}

/// Returns whether a Content-Type is that of JSON.
pub(crate) fn is_json(kind: &HeaderValue) -> bool {
    let text = kind.to_str().unwrap_or("");
    text.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/json")
}

/// Reads a body of so many octets at most.
pub(crate) async fn read(mut body: Incoming, octets_max: u64) -> Result<Vec<u8>, Problem> {
    let mut octets = Vec::new();
    let all = async {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| Problem::new(400, "the body was cut off"))?;
            if let Some(data) = frame.data_ref() {
                octets.extend_from_slice(data);
            }
            if octets.len() as u64 > octets_max {
                return Err(Problem::new(413, format!("this takes a body of at most {octets_max} octets")));
            }
        }
        Ok(())
    };
    let late = |_| Err(Problem::new(408, "the body took too long"));
    let patience = if octets_max > SHORT_OCTETS_MAX { LONG_BODY_TIME_MAX } else { BODY_TIME_MAX };
    timeout(patience, all).await.unwrap_or_else(late)?;
    Ok(octets)
}

/// Returns why a body is not read to its end, or not taken.
pub(crate) fn no_more() -> Problem {
    Problem::new(401, "the token or session that this was begun with counts no more")
}

/// How long a body may take.
#[derive(Clone, Copy)]
pub(crate) enum BodyTime {
    /// All of it.
    All(Duration),
    /// Nothing may come of it for so long, and it may fall behind a rate by as much.
    Rate(Rate),
}

/// How fast a body comes at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// How long nothing may come.
    pub(crate) silence: Duration,
    /// Octets in a second that come at least, as a mean since the beginning.
    pub(crate) octets_per_s: u64,
}

impl Rate {
    /// Returns until when something more has to come, of a body that began then and of which so
    /// many octets have come.
    fn due(self, begin: Instant, octets: u64, now: Instant) -> Instant {
        let of_octets = Duration::from_secs(octets / self.octets_per_s.max(1));
        (now + self.silence).min(begin + self.silence + of_octets)
    }
}

/// Writes a body to a file as it comes, of so many octets and within so long at most; returns the
/// file. It ends with what whoever sends it has shown.
pub(crate) async fn read_to_file(
    mut body: Incoming,
    mut draft: Draft,
    (octets_max, time): (u64, BodyTime),
    validity: &mut Option<Validity>,
) -> Result<Draft, Problem> {
    let late = || Problem::new(408, "the body took too long");
    let (sender, mut parts) = mpsc::channel::<Bytes>(PARTS_MAX);
    let writing = tokio::task::spawn_blocking(move || {
        while let Some(part) = parts.blocking_recv() {
            draft.write_all(&part)?;
        }
        Ok::<_, std::io::Error>(draft)
    });
    let all = async move {
        let (begin, mut octets) = (Instant::now(), 0);
        loop {
            let next = poll_fn(|context| {
                if validity.as_mut().is_some_and(|validity| validity.has_ended(context)) {
                    return Poll::Ready(Err(no_more()));
                }
                Pin::new(&mut body).poll_frame(context).map(Ok)
            });
            let next = match time {
                BodyTime::All(_) => next.await?,
                BodyTime::Rate(rate) => {
                    let due = rate.due(begin, octets, Instant::now());
                    timeout_at(due, next).await.map_err(|_| late())??
                }
            };
            let Some(frame) = next else { break };
            let frame = frame.map_err(|_| Problem::new(400, "the body was cut off"))?;
            let Ok(part) = frame.into_data() else { continue };
            octets += part.len() as u64;
            if octets > octets_max {
                return Err(Problem::new(413, format!("this takes a body of at most {octets_max} octets")));
            }
            // Whoever writes says why it does not go on.
            if sender.send(part).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    match time {
        BodyTime::All(patience) => timeout(patience, all).await.unwrap_or_else(|_| Err(late()))?,
        BodyTime::Rate(_) => all.await?,
    }
    let gone = |_| Problem::new(500, "the body could not be written");
    let written = writing.await.map_err(gone)?;
    written.map_err(|error| Problem::new(507, format!("the body cannot be kept: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_slower_than_the_least_rate_is_late() {
        let rate = Rate { silence: Duration::from_secs(60), octets_per_s: 1_000 };
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(rate.due(begin, 0, begin), at(60));
        // One octet before each silence is over gains no time.
        assert_eq!(rate.due(begin, 1, at(59)), at(60));
        // What came fast is no reason to wait for longer than a silence.
        assert_eq!(rate.due(begin, 1_000_000, at(10)), at(70));
        assert_eq!(rate.due(begin, 100_000, at(155)), at(160));
    }
}
