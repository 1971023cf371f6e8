//! How long servers take that were never asked before, as far as others tell.

/// Replies before anything is concluded from them.
const SAMPLES_MIN: u32 = 16;
/// Each reply counts for the inverse of this: one server says little of the next.
const WEIGHT: i64 = 32;
/// Milliseconds that a server has at least of which nothing is known.
const PATIENCE_MS_MIN: u32 = 50;

/// The first replies of servers: how long they took, and by how much this varies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstReplies {
    samples: u32,
    mean_us: i64,
    variation_us: i64,
}

impl FirstReplies {
    /// A server of which nothing was known answered after so long.
    pub(crate) fn heard(&mut self, took_us: u32) {
        let took_us = i64::from(took_us);
        // The first ones count alike.
        let weight = (i64::from(self.samples) + 1).min(WEIGHT);
        self.samples = self.samples.saturating_add(1);
        if self.samples > 1 {
            self.variation_us += ((took_us - self.mean_us).abs() - self.variation_us) / weight;
        }
        self.mean_us += (took_us - self.mean_us) / weight;
    }

    /// Returns the milliseconds after which a server is late of which nothing is known: the mean
    /// and four times the variation, as RFC 6298 §2.3 has it for one server, but no more than
    /// `most`.
    pub(crate) fn patience_ms(&self, most: u32) -> u32 {
        if self.samples < SAMPLES_MIN {
            return most;
        }
        let patience_us = self.mean_us + 4 * self.variation_us;
        u32::try_from(patience_us / 1000 + 1).unwrap_or(most).max(PATIENCE_MS_MIN).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples: impl IntoIterator<Item = u32>) -> FirstReplies {
        let mut replies = FirstReplies::default();
        samples.into_iter().for_each(|ms| replies.heard(ms * 1000));
        replies
    }

    #[test]
    fn where_all_answer_quickly_silence_is_noticed_sooner() {
        assert_eq!(after([20; 15]).patience_ms(150), 150, "too few to tell");
        assert_eq!(after([20; 100]).patience_ms(150), PATIENCE_MS_MIN);
        assert_eq!(after([70; 100]).patience_ms(150), 71);
        assert_eq!(after([70; 100]).patience_ms(60), 60);
    }

    #[test]
    fn where_some_are_far_away_nobody_is_hurried() {
        let near_and_far = (0..200).map(|at| if at % 4 == 0 { 200 } else { 10 });
        assert_eq!(after(near_and_far).patience_ms(150), 150);
        assert_eq!(after([400; 100]).patience_ms(150), 150);
        assert_eq!(after([u32::MAX / 1000; 100]).patience_ms(150), 150);
    }
}
