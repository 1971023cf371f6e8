//! Medians, spreads, and whether a difference is one.

use crate::queries::Dice;

/// Resamplings from which an interval is read.
const RESAMPLES: usize = 2_000;
/// The seed of the resampling, so that the same runs give the same page.
const SEED: u64 = 20_261_120;
/// Share of the resampled medians that lies outside of the interval, on either side.
const TAIL: f64 = 0.025;
/// Differences up to this are neutral even when every round agrees.
pub const RELEVANT: f64 = 0.01;
/// Rounds from which [`RELEVANT`] holds.
pub const ROUNDS_MIN: usize = 5;
/// Differences up to this are neutral when there are fewer rounds: chance alone makes three of
/// three agree one time in four.
pub const RELEVANT_WHEN_FEW: f64 = 0.05;

/// Rounds below which nothing is known of the noise: every difference is neutral.
pub const ROUNDS_LEAST: usize = 3;

/// Several figures summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The first quartile.
    pub first_quartile: f64,
    /// The third quartile.
    pub third_quartile: f64,
    /// The highest.
    pub high: f64,
    /// How many.
    pub count: usize,
}

impl Spread {
    /// Sums up `figures`; `None` if there are none that are finite.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        let (&low, &high) = (figures.first()?, figures.last()?);
        Some(Self {
            median: quantile(&figures, 0.5),
            low,
            first_quartile: quantile(&figures, 0.25),
            third_quartile: quantile(&figures, 0.75),
            high,
            count: figures.len(),
        })
    }
}

/// Returns the value below which `share` of `sorted` lies, between neighbours in proportion; 0 if
/// there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The interval that holds the true median of `figures` in 95 of 100 cases, by resampling with
/// replacement (percentile bootstrap); `None` if there are no figures.
pub fn interval_of_median(figures: &[f64]) -> Option<(f64, f64)> {
    if figures.is_empty() {
        return None;
    }
    let mut dice = Dice::new(SEED);
    let mut sample = vec![0.0; figures.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for place in &mut sample {
                *place = figures[dice.below(figures.len())];
            }
            sample.sort_by(f64::total_cmp);
            quantile(&sample, 0.5)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Some((quantile(&medians, TAIL), quantile(&medians, 1.0 - TAIL)))
}

/// What is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A lower figure, as with costs.
    Lower,
    /// A higher figure, as with throughput.
    Higher,
}

/// Whether a difference is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours is better.
    Ahead,
    /// Ours is worse.
    Behind,
    /// Within the noise, or too small to matter.
    Neutral,
}

/// Ours by another's, round by round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratios.
    pub ratio: Spread,
    /// The interval of their median.
    pub interval: (f64, f64),
    /// What follows.
    pub verdict: Verdict,
}

impl Comparison {
    /// Judges the ratios of ours to another's, one per round; `None` if there are none.
    ///
    /// A difference counts when the 95 % interval of the median ratio leaves out 1 and the median
    /// is off by more than [`RELEVANT`], or [`RELEVANT_WHEN_FEW`] with fewer than [`ROUNDS_MIN`]
    /// rounds. Fewer than [`ROUNDS_LEAST`] prove nothing.
    pub fn of(ratios: &[f64], better: Better) -> Option<Self> {
        let ratios: Vec<f64> = ratios.iter().copied().filter(|ratio| ratio.is_finite()).collect();
        let ratio = Spread::of(ratios.iter().copied())?;
        let interval = interval_of_median(&ratios)?;
        let relevant = if ratio.count < ROUNDS_MIN { RELEVANT_WHEN_FEW } else { RELEVANT };
        let is_known = ratio.count >= ROUNDS_LEAST;
        let is_lower = is_known && interval.1 < 1.0 && ratio.median < 1.0 - relevant;
        let is_higher = is_known && interval.0 > 1.0 && ratio.median > 1.0 + relevant;
        let verdict = match (is_lower, is_higher, better) {
            (true, _, Better::Lower) | (_, true, Better::Higher) => Verdict::Ahead,
            (true, _, Better::Higher) | (_, true, Better::Lower) => Verdict::Behind,
            (false, false, _) => Verdict::Neutral,
        };
        Some(Self { ratio, interval, verdict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).expect("not empty");
        assert_eq!((spread.median, spread.low, spread.high), (2.5, 1.0, 4.0));
    }

    #[test]
    fn quartiles_lie_between_neighbours_in_proportion() {
        let spread = Spread::of([5.0, 1.0, 2.0, 4.0, 3.0]).expect("not empty");
        assert_eq!((spread.first_quartile, spread.median, spread.third_quartile), (2.0, 3.0, 4.0));
        let spread = Spread::of([1.0, 2.0]).expect("not empty");
        assert_eq!((spread.first_quartile, spread.third_quartile), (1.25, 1.75));
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        assert_eq!(Spread::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Spread::of([f64::NAN, 1.0]).expect("one").count, 1);
    }

    #[test]
    fn the_interval_of_five_reaches_from_the_lowest_to_the_highest() {
        // The median of a resample is the lowest of five when three of five draws are: 5.8 % of the
        // time.
        assert_eq!(interval_of_median(&[0.9, 0.95, 0.97, 0.98, 0.99]), Some((0.9, 0.99)));
        assert_eq!(interval_of_median(&[]), None);
    }

    #[test]
    fn the_interval_of_many_leaves_out_the_extremes() {
        let figures: Vec<f64> = (0..101).map(f64::from).collect();
        let (low, high) = interval_of_median(&figures).expect("not empty");
        // The theory of order statistics gives 40 and 60.
        assert!((36.0..=44.0).contains(&low) && (56.0..=64.0).contains(&high), "{low} {high}");
    }

    fn check(ratios: &[f64], expect: Verdict) {
        let found = Comparison::of(ratios, Better::Lower).map(|comparison| comparison.verdict);
        assert_eq!(found, Some(expect), "{ratios:?}");
    }

    #[test]
    fn a_difference_counts_when_the_interval_leaves_out_one() {
        check(&[0.9, 0.8, 0.95, 0.9, 0.97], Verdict::Ahead);
        check(&[0.9, 0.8, 1.02, 0.9, 0.97], Verdict::Neutral);
        check(&[0.9, 0.8, 1.02, 0.9, 0.97, 0.9, 0.85, 0.9, 0.9, 0.88, 0.91], Verdict::Ahead);
        check(&[1.2, 1.3, 1.1, 1.2, 1.4], Verdict::Behind);
        check(&[0.995, 0.993, 0.992, 0.994, 0.996], Verdict::Neutral);
    }

    #[test]
    fn few_rounds_have_to_differ_by_more() {
        check(&[0.97, 0.96, 0.98], Verdict::Neutral);
        check(&[0.9, 0.8, 0.85], Verdict::Ahead);
        check(&[0.5, 0.5], Verdict::Neutral);
        check(&[0.5], Verdict::Neutral);
        assert_eq!(Comparison::of(&[], Better::Lower), None);
    }

    #[test]
    fn more_throughput_is_better() {
        let verdict =
            |ratios: &[f64]| Comparison::of(ratios, Better::Higher).map(|comparison| comparison.verdict);
        assert_eq!(verdict(&[1.2, 1.3, 1.1, 1.2, 1.4]), Some(Verdict::Ahead));
        assert_eq!(verdict(&[0.9, 0.8, 0.95, 0.9, 0.97]), Some(Verdict::Behind));
    }
}
