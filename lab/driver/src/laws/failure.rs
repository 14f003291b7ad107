//! A call that fails: the run reports it, complete files stay complete, and the next run ends as if
//! nothing had happened.

use super::{Bench, Law};
use crate::calls::SystemCall;
use crate::experiment::{Experiment, Verdict};
use crate::outcome::{Outcome, brief};
use crate::victim::{End, Ran};

pub const ONE_CALL: Law = Law {
    name: "fail",
    promise: "A call that fails (a full disk, an fsync that fails, a lock that is refused) ends the run with an \
        error, or costs nothing; the last whole checkpoint loads, and the next run ends in the same bytes.",
    experiment: "One call fails, each in turn: ENOSPC for create, write, rename, mkdir, link; EIO for fsync, truncate, unlink; ENOLCK for locks",
    experiments: |bench| experiments(bench, "fail", 120),
};

pub const FULL: Law = Law {
    name: "full",
    promise: "The same for a disk that is full from one moment on.",
    experiment: "ENOSPC from each call on, until the end of the process",
    experiments: |bench| experiments(bench, "full", 50),
};

pub const READ_ONLY: Law = Law {
    name: "readonly",
    promise: "The same for a disk that is mounted read-only while a training runs.",
    experiment: "EROFS from each call on (simulated by the preloaded library)",
    experiments: |bench| experiments(bench, "readonly", 50),
};

fn experiments<'a>(bench: &'a Bench, plan: &'static str, n_short: usize) -> Vec<Experiment<'a>> {
    let experiment = |call: &SystemCall| {
        let point = call.point.clone();
        Experiment::new(format!("{plan}/{point}"), move || fail_at(bench, plan, &point))
    };
    bench.choose(bench.calls.iter().collect(), n_short).into_iter().map(experiment).collect()
}

/// The system's messages for the injected errors.
const REASONS: [&str; 4] =
    ["No space left on device", "Input/output error", "Read-only file system", "No locks available"];

fn fail_at(bench: &Bench, plan: &str, point: &str) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    let ran = bench.place.train(&folder).plan(format!("{plan} {point}")).finish().map_err(|e| e.to_string())?;
    if !ran.calls.iter().any(|call| call.note == "failed") {
        return Ok(Verdict::Skipped(format!("nothing failed: no call from {point} on asks for what was missing")));
    }
    check_end(&ran)?;
    Outcome::check_whole(&folder.work(), &bench.undisturbed).map_err(|how| format!("after the failure: {how}"))?;
    if ran.end == End::Code(0) {
        let outcome = Outcome::read(&folder.work(), &ran.stdout)?;
        outcome.check_kept(&bench.undisturbed).map_err(|how| format!("it ended well, but {how}"))?;
        // The training has returned: another start would be another training.
        return Ok(Verdict::Held(1));
    }
    bench.finish_and_compare(&folder)?;
    Ok(Verdict::Held(1))
}

/// Checks that the run ended with an error that names the failure, or well; never with a panic.
fn check_end(ran: &Ran) -> Result<(), String> {
    if ran.stderr.contains("panicked") {
        return Err(format!("it panicked: {}", brief(&ran.stderr)));
    }
    match ran.end {
        End::Code(0) => Ok(()),
        End::Code(2) if REASONS.iter().any(|reason| ran.stderr.contains(reason)) => Ok(()),
        End::Code(2) => Err(format!("the error does not name the reason: {}", brief(&ran.stderr))),
        end => Err(format!("it ended with {end:?}: {}", brief(&ran.stderr))),
    }
}
