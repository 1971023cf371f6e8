//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! `effect(…)`, `learn(…)`, `log(…)`, `record` and `label(…)`: what others are to hear about a
//! query.
//!
//! Nothing happens where the step stands, `label` aside: what is to be told is noted, and goes to
//! the worker's ring when the reply is complete, with the answer that the client gets. So it does
//! not matter whether such a step stands before or after the one that answers, and answers from the
//! cache are told too. What is fetched without a client is not.

use crate::events::{LabelId, TellId, Teller, Tells};

/// What a step has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStep {
    /// Something for a job.
    Tell {
        /// What.
        id: TellId,
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
    pub(crate) fn emit(self, tells: &mut Tells, teller: &mut Teller) {
        let chance = if let Self::Tell { share: Some(_), .. } = self { teller.chance() } else { 0 };
        let Some(writer) = teller.writer() else { return };
        match self {
            Self::Count(label) => writer.count(label),
            Self::Tell { id, share, is_urgent } => {
                let is_chosen = share.is_none_or(|share| chance < share);
                if is_chosen && !tells.add(id, is_urgent) {
                    writer.lose();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ring;
    use std::sync::Arc;

    fn step(share: Option<u32>) -> EventStep {
        EventStep::Tell { id: TellId(1), share, is_urgent: false }
    }

    #[test]
    fn a_share_of_the_queries_is_told() {
        let (writer, reader) = ring(0, Arc::default());
        let mut teller = Teller::default();
        teller.attach(writer);
        let mut taken = |share| {
            let queries = (0..10_000).filter(|_| {
                let mut tells = Tells::default();
                step(share).emit(&mut tells, &mut teller);
                !tells.is_empty()
            });
            queries.count()
        };
        assert_eq!((taken(None), taken(Some(0))), (10_000, 0));
        assert!((900..1100).contains(&taken(Some(u32::MAX / 10))));
        EventStep::Count(LabelId(3)).emit(&mut Tells::default(), &mut teller);
        assert_eq!((reader.counts().label(LabelId(3)), reader.counts().label(LabelId(4))), (1, 0));
    }

    #[test]
    fn without_a_ring_or_a_client_nothing_is_noted() {
        let mut tells = Tells::default();
        step(None).emit(&mut tells, &mut Teller::default());
        assert!(tells.is_empty());
        let (writer, _) = ring(0, Arc::default());
        let (mut teller, mut silent) = (Teller::default(), Tells::SILENT);
        teller.attach(writer);
        step(None).emit(&mut silent, &mut teller);
        assert!(silent.is_empty());
    }
}
