//! Bodies of responses: all at once, or in parts as they are made.

use std::fs::File;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::transfers::Transfer;
use crate::validity::Validity;

/// Parts that wait for the client; whoever makes more waits with them.
const PARTS_MAX: usize = 2;

/// A body.
pub(crate) struct Body {
    first: Option<Bytes>,
    rest: Option<mpsc::Receiver<Bytes>>,
    /// How long the rest is, if that is known.
    octets: Option<u64>,
    /// Whether whoever asked may still hear the rest.
    validity: Option<Validity>,
    /// Whether it may end anywhere: a stream of events is never whole.
    is_endless: bool,
    /// An archive that is the rest.
    _transfer: Option<Transfer>,
}

/// Octets of a file that are read at once.
const PART_OCTETS: usize = 256 << 10;

impl Body {
    const fn new(first: Option<Bytes>, rest: Option<mpsc::Receiver<Bytes>>, octets: Option<u64>) -> Self {
        Self { first, rest, octets, validity: None, is_endless: false, _transfer: None }
    }

    /// Has it end with what it was asked for with, if it is not there already.
    pub(crate) fn lasting(self, transfer: Option<Transfer>, validity: Option<Validity>) -> Self {
        if self.rest.is_none() {
            return self;
        }
        Self { validity, _transfer: transfer, ..self }
    }

    /// Returns a body that is there already.
    pub(crate) fn whole(octets: impl Into<Bytes>) -> Self {
        let octets: Bytes = octets.into();
        Self::new(Some(octets).filter(|octets| !octets.is_empty()), None, None)
    }

    /// Returns it as text, if it is there already.
    pub(crate) fn text(&self) -> Option<String> {
        if self.rest.is_some() {
            return None;
        }
        String::from_utf8(self.first.as_deref().unwrap_or_default().to_vec()).ok()
    }

    /// Returns a body whose parts a thread makes while the client takes them.
    pub(crate) fn in_parts(parts: impl Iterator<Item = String> + Send + 'static) -> Self {
        Self::of(parts.filter(|part| !part.is_empty()).map(Bytes::from), None)
    }

    /// Returns a body of events, which a thread waits for while the client takes them.
    pub(crate) fn of_events(events: impl Iterator<Item = String> + Send + 'static) -> Self {
        Self { is_endless: true, ..Self::in_parts(events) }
    }

    /// Returns so many octets of a file, which is read while the client takes them.
    pub(crate) fn of_file(file: File, octets: u64) -> Self {
        let mut file = file.take(octets);
        let parts = std::iter::from_fn(move || {
            let mut part = vec![0; PART_OCTETS];
            // What is missing at the end shows: the length was said.
            let len = file.read(&mut part).unwrap_or(0);
            part.truncate(len);
            (len > 0).then(|| Bytes::from(part))
        });
        Self::of(parts, Some(octets))
    }

    fn of(parts: impl Iterator<Item = Bytes> + Send + 'static, octets: Option<u64>) -> Self {
        let (sender, rest) = mpsc::channel(PARTS_MAX);
        drop(tokio::task::spawn_blocking(move || {
            for part in parts {
                // A client that is gone wants no more.
                if sender.blocking_send(part).is_err() {
                    break;
                }
            }
        }));
        Self::new(None, Some(rest), octets)
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.validity.as_mut().is_some_and(|validity| validity.has_ended(context)) {
            (self.rest, self.validity) = (None, None);
            if !self.is_endless {
                // The connection breaks off: a client would take what it has for all of it.
                let why = "what it was asked for with counts no more";
                return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::PermissionDenied, why))));
            }
        }
        match &mut self.rest {
            Some(rest) => rest.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part)))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Some(_) => self.octets.map_or_else(SizeHint::default, SizeHint::with_exact),
            None => SizeHint::with_exact(self.first.as_ref().map_or(0, |first| first.len() as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Returns the parts that come of a body whose validity ends after the first, and how it
    /// ends.
    async fn cut(body: Body) -> (usize, Option<io::Result<()>>) {
        let mut body = body.lasting(None, Some(Validity::ended()));
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        (usize::from(matches!(next, Some(Ok(_)))), next.map(|next| next.map(drop)))
    }

    #[tokio::test]
    async fn what_is_cut_off_is_an_error_and_a_stream_of_events_ends() {
        let lines = || ["one\n", "two\n"].into_iter().map(str::to_owned);
        let (parts, end) = cut(Body::in_parts(lines())).await;
        assert_eq!(parts, 0);
        let error = end.expect("no end").expect_err("the connection breaks off");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let (parts, end) = cut(Body::of_events(lines())).await;
        assert!(parts == 0 && end.is_none(), "{end:?}");
        let mut whole = Body::in_parts(lines());
        let mut octets = 0;
        while let Some(next) = poll_fn(|context| Pin::new(&mut whole).poll_frame(context)).await {
            octets += next.expect("nothing cuts it off").data_ref().map_or(0, Bytes::len);
        }
        assert_eq!(octets, 8);
    }
}
