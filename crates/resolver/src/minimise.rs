//! How much of a name the servers above its zone see (RFC 9156).

/// Questions that show one label more each; later ones show several.
const SINGLE_LABELS: u8 = 4;

/// Returns how many labels the next question shows, of a name with `labels` whose last `shown` the
/// server knows about. After `asked` such questions of at most `asked_max`, the labels that are
/// left are shared out among those that are left (RFC 9156 §2.3).
pub(crate) fn next_labels(labels: usize, shown: usize, asked: u8, asked_max: u8) -> usize {
    let hidden = labels.saturating_sub(shown);
    let questions_left = usize::from(asked_max.saturating_sub(asked));
    let step = match questions_left {
        0 => hidden,
        _ if asked < SINGLE_LABELS => 1,
        _ => hidden.div_ceil(questions_left),
    };
    (shown + step.max(1)).min(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_in_at_most_ten_questions_before_the_full_one() {
        let questions = |labels: usize| {
            let (mut shown, mut asked, mut seen) = (1, 0, Vec::new());
            while shown < labels {
                shown = next_labels(labels, shown, asked, 10);
                asked += 1;
                seen.push(shown);
            }
            seen
        };
        assert_eq!(questions(3), [2, 3]);
        assert_eq!(questions(5), [2, 3, 4, 5]);
        assert_eq!(questions(12), [2, 3, 4, 5, 7, 8, 9, 10, 11, 12]);
        for labels in 1..=127 {
            assert!(questions(labels).len() <= 11);
        }
        assert_eq!(next_labels(5, 1, 10, 10), 5);
        assert_eq!(next_labels(5, 1, 0, 0), 5, "minimisation is off");
        assert_eq!(next_labels(2, 5, 0, 10), 2);
    }
}
