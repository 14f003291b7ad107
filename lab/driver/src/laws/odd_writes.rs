//! Writes that write fewer bytes than requested, as the system allows.

use super::{Bench, Law};
use crate::experiment::{Experiment, Verdict};
use crate::outcome::Outcome;

pub const LAW: Law = Law {
    name: "odd-writes",
    promise: "Short writes, and writes interrupted by a signal, change no result.",
    experiment: "Every write takes at most 1, 2, 3, 7, 64, 1,000, 4,095 or 4,096 bytes; every other write returns EINTR first",
    experiments,
};

fn experiments(bench: &Bench) -> Vec<Experiment<'_>> {
    let sizes = bench.choose(vec![1, 2, 3, 7, 64, 1000, 4095, 4096], 4);
    let plans = sizes.into_iter().map(|n| format!("short {n}")).chain(["interrupt".to_string()]);
    plans
        .map(|plan| Experiment::new(format!("odd-writes/{}", plan.replace(' ', "/")), move || run(bench, &plan)))
        .collect()
}

fn run(bench: &Bench, plan: &str) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    let ran = bench.place.train(&folder).plan(plan).finish().map_err(|e| e.to_string())?;
    Outcome::of(&ran, &folder.work())?.check_same(&bench.undisturbed)?;
    Ok(Verdict::Held(1))
}
