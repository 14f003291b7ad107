//! k-means++: rows drawn one by one, far from those drawn before.

use super::points::{Draws, Points};

/// The squared distance of two points.
pub(super) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    // Eight sums at once, in a fixed order: the compiler makes one vector of them.
    let mut sums = [0f32; 8];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| (x - y) * (x - y)).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((sum, x), y) in sums.iter_mut().zip(a).zip(b) {
            *sum += (x - y) * (x - y);
        }
    }
    f64::from(rest) + sums.iter().map(|sum| f64::from(*sum)).sum::<f64>()
}

/// Chooses `n` rows. Each is the best of `1 + num_retries` rows drawn by their weight times their
/// squared distance to the rows chosen so far; a negative `num_retries` stands for `2 + ln(n)`.
///
/// There must be at least `n` rows. By default, all weights are 1.
pub(super) fn plus_plus(
    points: Points<'_>,
    weights: Option<&[f64]>,
    n: usize,
    num_retries: i64,
    draws: &mut Draws,
) -> Vec<usize> {
    let n_candidates = match usize::try_from(num_retries) {
        Ok(retries) => 1 + retries.min(points.len()),
        Err(_) => 3 + (n.max(1) as f64).ln() as usize,
    };
    let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
    let mut nearest = vec![f64::INFINITY; points.len()];
    let mut is_chosen = vec![false; points.len()];
    let mut chosen = Vec::with_capacity(n);
    while chosen.len() < n {
        let first = chosen.is_empty();
        let mut up_to = Vec::with_capacity(points.len());
        let mut sum = 0.0;
        for (i, nearest) in nearest.iter().enumerate() {
            sum += if first { weight(i) } else { weight(i) * nearest };
            up_to.push(sum);
        }
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        for _ in 0..if first { 1 } else { n_candidates } {
            let row = match sum > 0.0 && sum.is_finite() {
                true => {
                    let target = draws.uniform() * sum;
                    up_to.partition_point(|&up_to| up_to <= target).min(points.len() - 1)
                }
                // All rows equal a chosen one, so any other row will do.
                false => any_other(&is_chosen, draws),
            };
            let center = points.row(row);
            let distances: Vec<f64> =
                nearest.iter().enumerate().map(|(i, d)| d.min(squared_distance(points.row(i), center))).collect();
            let potential = distances.iter().enumerate().map(|(i, distance)| weight(i) * distance).sum::<f64>();
            if best.as_ref().is_none_or(|(least, ..)| potential < *least) {
                best = Some((potential, row, distances));
            }
        }
        let Some((_, row, distances)) = best else { break };
        (nearest, is_chosen[row]) = (distances, true);
        chosen.push(row);
    }
    chosen
}

/// A row that was not chosen yet; any, if all were.
fn any_other(is_chosen: &[bool], draws: &mut Draws) -> usize {
    let others: Vec<usize> = (0..is_chosen.len()).filter(|&i| !is_chosen[i]).collect();
    match others.len() {
        0 => draws.below(is_chosen.len()),
        n => others[draws.below(n)],
    }
}
