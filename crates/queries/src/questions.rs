//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! How many queries of ours ask the same question, or the same server, at this moment, in a fixed
//! amount of memory.

/// Datagrams that may ask one question (name, type) at once; what asks besides goes over TCP.
///
/// Queries that differ in client subnet or EDNS options cannot share a fetch. Each one on the wire
/// is another ID that a forged reply may hit: the birthday attack that CVE-2002-2211 and
/// CVE-2025-5994 are about. With 50 a guess hits one of 65,536 / 50 IDs, and after
/// a few wrong guesses each query goes on over TCP.
pub const QUESTION_QUERIES_MAX: u16 = 50;
/// Cells for questions. Far more than questions are outstanding, so that few share one.
const QUESTION_CELLS: usize = 65_536;

/// Counts outstanding queries by question, or by whatever else has a keyed hash. Those that share a
/// cell are counted together, and nobody knows which do. Two octets a cell.
pub struct Questions<const CELLS: usize = QUESTION_CELLS>(Box<[u16; CELLS]>);

impl<const CELLS: usize> Questions<CELLS> {
    /// Returns cells that count nothing yet.
    #[expect(clippy::new_without_default, reason = "it takes 128 KiB, which nobody wants by the way")]
    pub fn new() -> Self {
        Self(Box::new([0; CELLS]))
    }

    /// Returns how many queries ask a question, given by its keyed hash.
    pub fn outstanding(&self, question: u32) -> u16 {
        self.0.get(question as usize % CELLS).copied().unwrap_or(0)
    }

    /// Counts one more.
    pub fn enter(&mut self, question: u32) {
        if let Some(count) = self.0.get_mut(question as usize % CELLS) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts one less.
    pub fn leave(&mut self, question: u32) {
        if let Some(count) = self.0.get_mut(question as usize % CELLS) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_counted_apart() {
        let mut questions = Questions::<64>::new();
        for _ in 0..3 {
            questions.enter(7);
        }
        questions.enter(8);
        questions.leave(7);
        assert_eq!((questions.outstanding(7), questions.outstanding(8), questions.outstanding(9)), (2, 1, 0));
    }
}
