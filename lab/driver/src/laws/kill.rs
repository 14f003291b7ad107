//! A run that is killed at a call, once or twice, ends as if nothing had happened.

use super::{Bench, Law, was_killed};
use crate::calls::SystemCall;
use crate::experiment::{Experiment, Verdict, spread};
use crate::outcome::Outcome;

pub const ONCE: Law = Law {
    name: "kill",
    promise: "Killed at any moment and started again, a training ends with the same step, reason, best \
        evaluation, curves and bytes of every file as one that nobody disturbed; nothing is left over.",
    experiment: "SIGKILL before each call that changes a file, and in the middle of each write; then a run to the end",
    experiments: once,
};

pub const TWICE: Law = Law {
    name: "double-kill",
    promise: "The same holds if the resumed run is killed too.",
    experiment: "SIGKILL at one call, then at a later one in the next run, then a run to the end",
    experiments: twice,
};

/// Returns all moments of a run: before each call, in the middle of each write, after the last
/// call.
fn moments(calls: &[SystemCall]) -> Vec<(&'static str, &str)> {
    let mut moments = Vec::new();
    for call in calls {
        moments.push(("before", call.point.as_str()));
        if call.kind == "write" && call.n_bytes > 1 {
            moments.push(("mid", &call.point));
        }
    }
    moments.extend(calls.last().map(|last| ("after", last.point.as_str())));
    moments
}

fn once(bench: &Bench) -> Vec<Experiment<'_>> {
    let experiment = |(phase, point): (&'static str, &'_ str)| {
        let point = point.to_string();
        let name = format!("kill/{phase}/{point}");
        Experiment::new(name, move || kill_at(bench, &[(phase, &point)]))
    };
    bench.choose(moments(&bench.calls), 240).into_iter().map(experiment).collect()
}

fn twice(bench: &Bench) -> Vec<Experiment<'_>> {
    let moments = moments(&bench.calls);
    // Calls are counted from the start of a process. So the second moment must be one that a
    // resumed run reaches under the same name: the first call of its kind on a new checkpoint, or
    // on data.
    let comes_again = |point: &str| point.ends_with("/1") && (point.contains("ckpt-") || point.contains("/data/"));
    let pair = |i: usize| {
        let later: Vec<_> = moments[i + 1..].iter().filter(|(_, point)| comes_again(point)).collect();
        // A stride that shares no factor with the usual periods.
        later.get((i * 37 + 11) % later.len().max(1)).map(|second| (moments[i], **second))
    };
    let pairs: Vec<_> = (0..moments.len()).filter_map(pair).collect();
    let chosen = spread(pairs, if bench.is_full { 200 } else { 40 });
    let experiment = |((a_phase, a), (b_phase, b)): ((&'static str, &str), (&'static str, &str))| {
        let (a, b) = (a.to_string(), b.to_string());
        let name = format!("double-kill/{a_phase}/{a}+{b_phase}/{b}");
        Experiment::new(name, move || kill_at(bench, &[(a_phase, &a), (b_phase, &b)]))
    };
    chosen.into_iter().map(experiment).collect()
}

/// Kills one run after the other, each at its moment, and lets the last one run to its end.
fn kill_at(bench: &Bench, moments: &[(&str, &str)]) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    for (phase, point) in moments {
        let run = bench.place.train(&folder).plan(format!("kill-{phase} {point}"));
        let ran = run.finish().map_err(|e| e.to_string())?;
        if !was_killed(&ran, point)? {
            return Ok(Verdict::Skipped(format!("this run did not come to {phase} {point}")));
        }
        Outcome::check_whole(&folder.work(), &bench.undisturbed).map_err(|how| format!("after the kill: {how}"))?;
    }
    bench.finish_and_compare(&folder)?;
    Ok(Verdict::Held(1))
}
