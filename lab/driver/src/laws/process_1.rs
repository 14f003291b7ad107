//! In a container every run is process 1: files of a killed run must not stop the next.

use super::{Bench, Law, was_killed};
use crate::calls::SystemCall;
use crate::experiment::{Experiment, Verdict, spread};
use crate::outcome::Outcome;
use crate::process_1;

pub const LAW: Law = Law {
    name: "process-1",
    promise: "In a container, where each run has the same process number, a kill blocks no later run.",
    experiment: "The run as process 1, killed twice at the same call while temporary files are there; then a run to the end as process 1",
    experiments,
};

fn experiments(bench: &Bench) -> Vec<Experiment<'_>> {
    let is_first_of_file = |call: &&SystemCall| call.point.ends_with("/1");
    let points: Vec<&SystemCall> = bench.calls.iter().filter(is_first_of_file).collect();
    let chosen = spread(points, if bench.is_full { 150 } else { 30 });
    let experiment = |call: &SystemCall| {
        let point = call.point.clone();
        Experiment::new(format!("process-1/after/{point}"), move || kill_twice(bench, &point))
    };
    chosen.into_iter().map(experiment).collect()
}

fn kill_twice(bench: &Bench, point: &str) -> Result<Verdict, String> {
    if point.starts_with("unlink/") && point.contains("unfinished.json/") {
        return Ok(Verdict::Skipped(
            "the run is over once this file is gone: a later start is another training".into(),
        ));
    }
    let (number, _) = process_1::possible();
    let folder = bench.folder()?;
    for time in ["first", "second"] {
        let run = bench.place.train(&folder).process_number(number).plan(format!("kill-after {point}"));
        let ran = run.finish().map_err(|e| e.to_string())?;
        let was_killed = was_killed(&ran, point).map_err(|how| format!("the {time} time: {how}"))?;
        if !was_killed && time == "first" {
            return Ok(Verdict::Skipped(format!("this run did not come to {point}")));
        }
        // A second run that resumes after this point does not reach it.
        if !was_killed {
            let outcome = Outcome::of(&ran, &folder.work())?;
            return outcome.check_same(&bench.undisturbed).map(|()| Verdict::Held(1));
        }
    }
    let ran = bench.place.train(&folder).process_number(number).finish().map_err(|e| e.to_string())?;
    let outcome = Outcome::of(&ran, &folder.work()).map_err(|how| format!("the third time: {how}"))?;
    outcome.check_same(&bench.undisturbed).map_err(|how| format!("the third time: {how}"))?;
    Ok(Verdict::Held(1))
}
