//! Experiments: each is one test of a law, with a name that can be used to repeat it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The result of an experiment.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The law held, this many times.
    Held(u64),
    /// The law did not hold, with a description.
    Broken(String),
    /// It could not be tested, with the reason.
    Skipped(String),
}

/// The function of an experiment. An error means that the law did not hold.
pub type Act<'a> = Box<dyn Fn() -> Result<Verdict, String> + Send + Sync + 'a>;

/// One test of a law.
pub struct Experiment<'a> {
    /// `kill/before/write/model/training.csv/3`
    pub name: String,
    pub act: Act<'a>,
}

impl<'a> Experiment<'a> {
    pub fn new(
        name: impl Into<String>,
        act: impl Fn() -> Result<Verdict, String> + Send + Sync + 'a,
    ) -> Experiment<'a> {
        Experiment { name: name.into(), act: Box::new(act) }
    }
}

/// The results of all experiments of a law.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub n_experiments: u64,
    pub n_held: u64,
    pub broken: Vec<(String, String)>,
    pub skipped: Vec<(String, String)>,
}

/// Runs experiments on `n_threads` threads, in order; calls `told` with each result.
pub fn run(experiments: Vec<Experiment<'_>>, n_threads: usize, told: impl Fn(&str, &Verdict) + Sync) -> Tally {
    let queue = Mutex::new(VecDeque::from(experiments));
    let tally = Mutex::new(Tally::default());
    let work = || {
        loop {
            let Some(next) = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { return };
            let verdict = (next.act)().unwrap_or_else(Verdict::Broken);
            told(&next.name, &verdict);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.n_experiments += 1;
            match verdict {
                Verdict::Held(n) => tally.n_held += n,
                Verdict::Broken(how) => tally.broken.push((next.name, how)),
                Verdict::Skipped(why) => tally.skipped.push((next.name, why)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..n_threads.max(1) {
            scope.spawn(work);
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Selects at most `n` of them, evenly spread, including the first and the last.
pub fn spread<T>(all: Vec<T>, n: usize) -> Vec<T> {
    let len = all.len();
    if len <= n {
        return all;
    }
    let is_chosen = |i: usize| match n {
        0 => false,
        1 => i == 0,
        // The i-th is selected if the number of selected ones grows there.
        _ => i == 0 || i * (n - 1) / (len - 1) > (i - 1) * (n - 1) / (len - 1),
    };
    all.into_iter().enumerate().filter(|(i, _)| is_chosen(*i)).map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn samples_are_spread_and_hold_both_ends() {
        // 0 and 9 are the ends; the rest where i * 3 / 9 grows: at 3 and 6.
        assert_eq!(spread((0..10).collect(), 4), [0, 3, 6, 9]);
        assert_eq!(spread(vec![1, 2], 4), [1, 2]);
        assert_eq!(spread((0..5).collect(), 1), [0]);
        assert!(spread((0..5).collect::<Vec<i32>>(), 0).is_empty());
    }
}
