//! A power failure: any mixture of unsynced data may be lost.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Bench, Law};
use crate::experiment::{Experiment, Verdict};
use crate::outcome::Outcome;
use crate::replay::{self, Disk, Survivors, Tree};

pub const CUT: Law = Law {
    name: "power",
    promise: "After a power failure at any moment, files are whole or absent, and the next run ends in the same bytes.",
    experiment: "The log of an undisturbed run replayed up to each call, without bytes and names that were not synced: \
        none of them, names alone, bytes alone, half of the bytes, removals alone; then a run to the end (simulated)",
    experiments: cuts,
};

pub const KEPT: Law = Law {
    name: "power-end",
    promise: "Once a training has returned, a power failure loses none of its checkpoints and written files.",
    experiment: "The whole log replayed, in the same five ways (simulated)",
    experiments: at_the_end,
};

fn new_disk() -> Disk {
    Disk::new(&["data", "model", "cache"])
}

/// Returns the possible states after a power failure; each different state once, named by the call
/// before it.
fn cuts(bench: &Bench) -> Vec<Experiment<'_>> {
    let (mut disk, mut seen, mut states) = (new_disk(), HashSet::new(), Vec::new());
    for call in &bench.calls {
        disk.apply(call);
        for survivors in Survivors::ALL {
            let tree = disk.after_power_failure(survivors);
            let mut hasher = DefaultHasher::new();
            tree.hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                states.push((format!("power/{}/{}", survivors.name(), call.point), tree));
            }
        }
    }
    let experiment = |(name, tree): (String, Tree)| Experiment::new(name, move || go_on(bench, &tree));
    bench.choose(states, 150).into_iter().map(experiment).collect()
}

fn go_on(bench: &Bench, tree: &Tree) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    replay::write(tree, &folder.work()).map_err(|e| format!("the replay cannot be written: {e}"))?;
    Outcome::check_whole(&folder.work(), &bench.undisturbed)
        .map_err(|how| format!("after the power failure: {how}"))?;
    bench.finish_and_compare(&folder)?;
    Ok(Verdict::Held(1))
}

fn at_the_end(bench: &Bench) -> Vec<Experiment<'_>> {
    let mut disk = new_disk();
    bench.calls.iter().for_each(|call| disk.apply(call));
    let experiment = |survivors: Survivors| {
        let tree = disk.after_power_failure(survivors);
        let name = format!("power-end/{}", survivors.name());
        Experiment::new(name, move || {
            let folder = bench.folder()?;
            replay::write(&tree, &folder.work()).map_err(|e| format!("the replay cannot be written: {e}"))?;
            Outcome::read(&folder.work(), "")?.check_kept(&bench.undisturbed)?;
            Ok(Verdict::Held(1))
        })
    };
    Survivors::ALL.into_iter().map(experiment).collect()
}
