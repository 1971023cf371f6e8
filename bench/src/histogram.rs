//! Latencies in buckets whose width is at most 1/64 of their value, beside exact moments.

/// Buckets per power of two.
const STEPS: u64 = 64;
/// Powers of two covered: values up to 2^40 ns, a quarter of an hour.
const POWERS: u64 = 40;

/// Counts of nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; (STEPS * POWERS) as usize], count: 0, sum: 0.0, sum_of_squares: 0.0, max: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, nanoseconds: u64) {
        let at = bucket(nanoseconds).min(self.buckets.len() - 1);
        self.buckets[at] += 1;
        self.count += 1;
        let value = nanoseconds as f64;
        self.sum += value;
        self.sum_of_squares += value * value;
        self.max = self.max.max(nanoseconds);
    }

    /// Returns the mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 / 1e3 }
    }

    /// Returns the standard deviation in microseconds.
    pub fn deviation_us(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        let variance = (self.sum_of_squares - self.sum * self.sum / n) / (n - 1.0);
        variance.max(0.0).sqrt() / 1e3
    }

    /// Returns the value below which `share` of all lie, in microseconds (the bucket's middle).
    pub fn quantile_us(&self, share: f64) -> f64 {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle(at) / 1e3;
            }
        }
        0.0
    }

    /// Returns the largest value in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max as f64 / 1e3
    }
}

fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = u64::from(value.ilog2() - STEPS.ilog2());
    ((shift + 1) * STEPS + (value >> shift) - STEPS) as usize
}

fn middle(at: usize) -> f64 {
    let at = at as u64;
    if at < STEPS {
        return at as f64;
    }
    let shift = at / STEPS - 1;
    ((STEPS + at % STEPS) << shift) as f64 + (1u64 << shift) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_64th_of_its_value_wide() {
        for value in [0, 1, 63, 64, 65, 127, 128, 1000, 123_456, 20_000_000, 5_000_000_000] {
            let off = (middle(bucket(value)) - value as f64).abs();
            assert!(off <= value as f64 / 64.0, "{value}: off by {off}");
        }
    }

    #[test]
    fn buckets_rise_with_the_value() {
        let mut last = 0;
        for value in 0..100_000 {
            let at = bucket(value);
            assert!(at == last || at == last + 1, "{value}");
            last = at;
        }
    }

    #[test]
    fn moments_are_exact() {
        let mut histogram = Histogram::default();
        for value in [1000, 2000, 3000, 4000] {
            histogram.record(value);
        }
        assert!((histogram.mean_us() - 2.5).abs() < 1e-9);
        assert!((histogram.deviation_us() - 1.290_994).abs() < 1e-5);
        assert!((histogram.quantile_us(0.5) - 2.0).abs() < 0.05);
        assert!((histogram.max_us() - 4.0).abs() < 1e-9);
    }
}
