//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `effect(…)`, `learn(…)`, `log(…)`, `record` and `label(…)`: what others are to hear about a
//! query.
//!
//! Nothing happens where the step stands, `label` aside: what is to be told is noted, and goes to
//! the worker's ring when the reply is complete, with the answer that the client gets. So it does
//! not matter whether such a step stands before or after the one that answers, and answers from the
//! cache are told too. What is fetched without a client is not.

use events::{EventId, EventSet, EventSink, LabelId};

/// What a step has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStep {
    /// Something for a job.
    Emit {
        /// What.
        id: EventId,
        /// Of how many queries, in parts of 2³²; `None`: of all.
        share: Option<u32>,
        /// Whether the job is to hear it at once: an address is in a set before the client uses it.
        is_urgent: bool,
    },
    /// One more query of this label; counted by the worker itself, so none is lost.
    Count(LabelId),
}

impl EventStep {
    /// Takes the step for a query.
    pub(crate) fn emit(self, event_set: &mut EventSet, event_sink: &mut EventSink) {
        let chance = if let Self::Emit { share: Some(_), .. } = self { event_sink.chance() } else { 0 };
        let Some(writer) = event_sink.writer() else { return };
        match self {
            Self::Count(label) => writer.count(label),
            Self::Emit { id, share, is_urgent } => {
                let is_chosen = share.is_none_or(|share| chance < share);
                if is_chosen && !event_set.add(id, is_urgent) {
                    writer.lose();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::ring;
    use std::sync::Arc;

    fn step(share: Option<u32>) -> EventStep {
        EventStep::Emit { id: EventId(1), share, is_urgent: false }
    }

    #[test]
    fn a_share_of_the_queries_is_told() {
        let (writer, reader) = ring(0, Arc::default());
        let mut event_sink = EventSink::default();
        event_sink.attach(writer);
        let mut taken = |share| {
            let queries = (0..10_000).filter(|_| {
                let mut event_set = EventSet::default();
                step(share).emit(&mut event_set, &mut event_sink);
                !event_set.is_empty()
            });
            queries.count()
        };
        assert_eq!((taken(None), taken(Some(0))), (10_000, 0));
        assert!((900..1100).contains(&taken(Some(u32::MAX / 10))));
        EventStep::Count(LabelId(3)).emit(&mut EventSet::default(), &mut event_sink);
        assert_eq!((reader.counts().label(LabelId(3)), reader.counts().label(LabelId(4))), (1, 0));
    }

    #[test]
    fn without_a_ring_or_a_client_nothing_is_noted() {
        let mut event_set = EventSet::default();
        step(None).emit(&mut event_set, &mut EventSink::default());
        assert!(event_set.is_empty());
        let (writer, _) = ring(0, Arc::default());
        let (mut event_sink, mut silent) = (EventSink::default(), EventSet::SILENT);
        event_sink.attach(writer);
        step(None).emit(&mut silent, &mut event_sink);
        assert!(silent.is_empty());
    }
}
