//! Histograms with TensorFlow's buckets.

use std::sync::OnceLock;

use estimand_wire::event::HistogramProto;

/// The upper limits of all buckets: 0, then 1e-12 and each 10 % more than the one before up to
/// 1e20, their negatives, and the largest number.
fn limits() -> &'static [f64] {
    static LIMITS: OnceLock<Vec<f64>> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let positive = || {
            let powers =
                std::iter::successors(Some(1e-12), |limit| Some(limit * 1.1)).take_while(|&limit| limit < 1e20);
            powers.chain([f64::MAX])
        };
        let mut limits: Vec<f64> = positive().map(|limit| -limit).collect();
        limits.reverse();
        limits.push(0.0);
        limits.extend(positive());
        limits
    })
}

/// Makes the histogram of finite values. Consecutive empty buckets are merged.
pub(super) fn histogram(values: impl Iterator<Item = f64>) -> HistogramProto {
    let limits = limits();
    let mut counts = vec![0.0; limits.len()];
    let mut histogram = HistogramProto { min: f64::MAX, max: f64::MIN, ..HistogramProto::default() };
    for value in values {
        let bucket = limits.partition_point(|&limit| limit <= value).min(limits.len() - 1);
        counts[bucket] += 1.0;
        histogram.min = histogram.min.min(value);
        histogram.max = histogram.max.max(value);
        histogram.num += 1.0;
        histogram.sum += value;
        histogram.sum_squares += value * value;
    }
    for (&limit, &count) in limits.iter().zip(&counts) {
        match (histogram.bucket.last(), histogram.bucket_limit.last_mut()) {
            (Some(&0.0), Some(end)) if count == 0.0 => *end = limit,
            _ => {
                histogram.bucket.push(count);
                histogram.bucket_limit.push(limit);
            }
        }
    }
    histogram
}
