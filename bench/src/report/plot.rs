//! Plots as strips of SVG: one per server, as wide as there is room, with text beside and not in
//! them.

use std::fmt::Write as _;

use super::model::Course;
use super::statistics::Spread;

/// Units across a strip; the browser stretches them to the width there is.
const WIDTH: f64 = 1000.0;
/// Units from top to bottom of a strip of a course.
const COURSE_HEIGHT: f64 = 100.0;

/// Opens a strip of `height` units that screen readers call `label`.
fn open(class: &str, height: f64, label: &str) -> String {
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    )
}

/// Draws a bar to the median with a whisker from the lowest to the highest, on a scale from 0 to
/// `max`; `limit` is marked by a line.
pub(super) fn bar(spread: &Spread, max: f64, limit: Option<f64>, class: &str, label: &str) -> String {
    let x = |value: f64| (value / max.max(f64::MIN_POSITIVE) * WIDTH).clamp(0.0, WIDTH);
    let mut out = open("strip", 20.0, label);
    let _ = write!(out, "<rect class=\"{class}\" y=\"3\" width=\"{:.1}\" height=\"14\"/>", x(spread.median));
    let (low, high) = (x(spread.low), x(spread.high));
    let _ =
        write!(out, "<path class=\"whisker\" d=\"M{low:.1} 10H{high:.1}M{low:.1} 6V14M{high:.1} 6V14\"/>");
    if let Some(limit) = limit {
        let _ = write!(out, "<path class=\"limit\" d=\"M{:.1} 0V20\"/>", x(limit));
    }
    out + "</svg>"
}

/// A scale whose steps are factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Logarithmic {
    low: f64,
    high: f64,
}

impl Logarithmic {
    /// Covers `values`, rounded out to powers of ten; `None` if none is above zero.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| *value > 0.0 && value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            return None;
        }
        // A little room on both sides keeps marks off the edge.
        Some(Self { low: low / 1.25, high: high * 1.25 })
    }

    /// Returns where `value` lies, from 0 to 1.
    pub(super) fn share(self, value: f64) -> f64 {
        ((value.max(self.low) / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Returns the powers of ten on the scale; if there are fewer than two, twice and five times
    /// them too.
    pub(super) fn marks(self) -> Vec<f64> {
        let powers = |factors: &[f64]| -> Vec<f64> {
            let first = self.low.log10().floor() as i32;
            let last = self.high.log10().ceil() as i32;
            let all = (first..=last)
                .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
            all.filter(|mark| *mark >= self.low && *mark <= self.high).collect()
        };
        let tens = powers(&[1.0]);
        if tens.len() < 2 { powers(&[1.0, 2.0, 5.0]) } else { tens }
    }
}

/// How long answers took: medians over the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latencies {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// Draws half of all answers' limit as a mark, and bars that grow thinner to the 95th and 99th
/// percentile and to the slowest.
pub(super) fn latencies(of: &Latencies, scale: Logarithmic, class: &str, label: &str) -> String {
    let x = |value: f64| scale.share(value) * WIDTH;
    let (p50, p95, p99, max) = (x(of.p50), x(of.p95), x(of.p99), x(of.max));
    let mut out = open("strip", 20.0, label);
    let _ = write!(out, "<path class=\"whisker thin\" d=\"M{p99:.1} 10H{max:.1}M{max:.1} 6V14\"/>");
    let _ = write!(
        out,
        "<rect class=\"{class} half\" x=\"{p95:.1}\" y=\"6\" width=\"{:.1}\" height=\"8\"/>",
        (p99 - p95).max(0.0)
    );
    let _ = write!(
        out,
        "<rect class=\"{class}\" x=\"{p50:.1}\" y=\"3\" width=\"{:.1}\" height=\"14\"/>",
        (p95 - p50).max(0.0)
    );
    let _ = write!(out, "<path class=\"mark\" d=\"M{p50:.1} 0V20\"/>");
    out + "</svg>"
}

/// Draws the answers of a run over time, on a scale from 0 to `max` a slice, lost and wrong ones
/// from the top down, and a line for each incident.
pub(super) fn course(of: &Course, max: f64, slices: usize, class: &str, label: &str) -> String {
    let step = WIDTH / slices.max(1) as f64;
    let height = |count: f64| (count / max.max(1.0)).clamp(0.0, 1.0) * COURSE_HEIGHT;
    let mut out = open("strip tall", COURSE_HEIGHT, label);
    let mut area = format!("M0 {COURSE_HEIGHT}");
    let mut harm = String::new();
    for (at, moment) in of.moments.iter().enumerate() {
        let (from, to) = (at as f64 * step, (at + 1) as f64 * step);
        let top = COURSE_HEIGHT - height(moment.answered);
        let _ = write!(area, "L{from:.1} {top:.1}L{to:.1} {top:.1}");
        let bad = moment.lost + moment.wrong;
        if bad > 0.0 {
            let _ = write!(harm, "M{from:.1} 0V{:.1}H{to:.1}V0Z", height(bad).max(3.0));
        }
    }
    let _ = write!(area, "L{:.1} {COURSE_HEIGHT}Z", of.moments.len() as f64 * step);
    let _ = write!(out, "<path class=\"{class}\" d=\"{area}\"/>");
    if !harm.is_empty() {
        let _ = write!(out, "<path class=\"harm\" d=\"{harm}\"/>");
    }
    for incident in &of.incidents {
        let x = (incident.at_s * 10.0 * step).min(WIDTH);
        let _ = write!(
            out,
            "<path class=\"incident\" d=\"M{x:.1} 0V{COURSE_HEIGHT}\"><title>{}</title></path>",
            escape(&incident.what)
        );
    }
    out + "</svg>"
}

/// Makes text safe inside of HTML and of its attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::course as example;
    use super::*;

    #[test]
    fn a_bar_ends_at_the_median_and_its_whisker_at_the_extremes() {
        let spread = Spread::of([1.0, 2.0, 4.0]).expect("not empty");
        let svg = bar(&spread, 8.0, Some(6.0), "ours", "a & b");
        assert!(svg.contains("<rect class=\"ours\" y=\"3\" width=\"250.0\""), "{svg}");
        assert!(svg.contains("M125.0 10H500.0"), "{svg}");
        assert!(svg.contains("<path class=\"limit\" d=\"M750.0 0V20\"/>"), "{svg}");
        assert!(svg.contains("aria-label=\"a &amp; b\"") && svg.ends_with("</svg>"), "{svg}");
    }

    #[test]
    fn a_logarithmic_scale_has_equal_steps_for_equal_factors() {
        let scale = Logarithmic::over([8.0, 800.0]).expect("above zero");
        assert_eq!(scale.marks(), [10.0, 100.0, 1000.0]);
        let step = scale.share(100.0) - scale.share(10.0);
        assert!((scale.share(1000.0) - scale.share(100.0) - step).abs() < 1e-9);
        assert_eq!((scale.share(0.001), scale.share(1e9)), (0.0, 1.0));
        assert_eq!(Logarithmic::over([0.0, f64::NAN]), None);
        assert_eq!(Logarithmic::over([30.0, 70.0]).expect("above zero").marks(), [50.0]);
    }

    #[test]
    fn latencies_grow_to_the_right() {
        let scale = Logarithmic { low: 1.0, high: 10_000.0 };
        let of = Latencies { p50: 10.0, p95: 100.0, p99: 1000.0, max: 10_000.0 };
        let svg = latencies(&of, scale, "ours", "latency");
        assert!(svg.contains("<rect class=\"ours\" x=\"250.0\" y=\"3\" width=\"250.0\""), "{svg}");
        assert!(svg.contains("<rect class=\"ours half\" x=\"500.0\" y=\"6\" width=\"250.0\""), "{svg}");
        assert!(svg.contains("M750.0 10H1000.0"), "{svg}");
    }

    #[test]
    fn a_course_shows_answers_losses_and_incidents() {
        let mut course_of = example(&[100.0, 50.0, 0.0]);
        course_of.moments[2].lost = 10.0;
        let svg = course(&course_of, 100.0, 10, "ours", "course");
        assert!(
            svg.contains("M0 100L0.0 0.0L100.0 0.0L100.0 50.0L200.0 50.0L200.0 100.0L300.0 100.0L300.0 100Z"),
            "{svg}"
        );
        assert!(svg.contains("<path class=\"harm\" d=\"M200.0 0V10.0H300.0V0Z\"/>"), "{svg}");
        assert_eq!(svg.matches("class=\"incident\"").count(), 2);
    }
}
