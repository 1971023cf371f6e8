//! Bodies of responses: all at once, or in parts as they are made.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

/// Parts that wait for the client; whoever makes more waits with them.
const PARTS_MAX: usize = 2;

/// A body.
pub(crate) struct Body {
    first: Option<Bytes>,
    rest: Option<mpsc::Receiver<Bytes>>,
}

impl Body {
    /// Returns a body that is there already.
    pub(crate) fn whole(octets: impl Into<Bytes>) -> Self {
        let octets: Bytes = octets.into();
        Self { first: Some(octets).filter(|octets| !octets.is_empty()), rest: None }
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
        let (sender, rest) = mpsc::channel(PARTS_MAX);
        drop(tokio::task::spawn_blocking(move || {
            for part in parts.filter(|part| !part.is_empty()) {
                // A client that is gone wants no more.
                if sender.blocking_send(Bytes::from(part)).is_err() {
                    break;
                }
            }
        }));
        Self { first: None, rest: Some(rest) }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
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
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.first.as_ref().map_or(0, |first| first.len() as u64)),
        }
    }
}
