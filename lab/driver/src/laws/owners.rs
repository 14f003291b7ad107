//! Two trainings in one folder: one owns it, the other gets an error that names the owner.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Bench, Law};
use crate::experiment::{Experiment, Verdict};
use crate::outcome::{Outcome, brief};
use crate::victim::{End, Ran, Started};

pub const BESIDE: Law = Law {
    name: "owners",
    promise: "Two trainings in one folder: one trains, the other ends with an error that names the owner, and changes nothing.",
    experiment: "Two runs in one folder: the second started while the first trains, or both at once",
    experiments: beside,
};

pub const AFTER_DEATH: Law = Law {
    name: "owner-killed",
    promise: "A killed run frees its lock: the next run starts at once, and ends in the same bytes.",
    experiment: "SIGKILL of a run that owns the folder, and a run to the end",
    experiments: after_death,
};

pub const NO_LOCKS: Law = Law {
    name: "no-locks",
    promise: "On a file system without locks a training runs, and warns once that nobody guards the folder.",
    experiment: "Every flock returns EOPNOTSUPP (simulated)",
    experiments: no_locks,
};

/// Long enough for a second process to start many times over.
const STEP_MS: u64 = 8;

fn numbered<'a>(
    bench: &'a Bench,
    name: &'static str,
    n: usize,
    act: fn(&Bench, usize) -> Result<Verdict, String>,
) -> Vec<Experiment<'a>> {
    (0..n).map(|i| Experiment::new(format!("{name}/{i}"), move || act(bench, i))).collect()
}

fn beside(bench: &Bench) -> Vec<Experiment<'_>> {
    numbered(bench, "owners", if bench.is_full { 40 } else { 6 }, two_at_once)
}

fn after_death(bench: &Bench) -> Vec<Experiment<'_>> {
    numbered(bench, "owner-killed", if bench.is_full { 20 } else { 4 }, next_after_death)
}

fn no_locks(bench: &Bench) -> Vec<Experiment<'_>> {
    numbered(bench, "no-locks", 1, without_locks)
}

/// Waits until a training has saved a checkpoint: from then on it is the owner.
fn wait_for_checkpoint(model: &Path, run: &mut Started) -> Result<(), String> {
    let began = Instant::now();
    while !model.join("checkpoint").exists() {
        let is_running = run.is_running().map_err(|e| e.to_string())?;
        if !is_running || began.elapsed() > Duration::from_secs(60) {
            return Err("the first run did not come to its first checkpoint".to_string());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn two_at_once(bench: &Bench, i: usize) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    let start = || bench.place.train(&folder).step_ms(STEP_MS).start().map_err(|e| e.to_string());
    let mut first = start()?;
    if i.is_multiple_of(2) {
        wait_for_checkpoint(&folder.model(), &mut first)?;
    }
    let second = start()?;
    let (first_id, second_id) = (first.id(), second.id());
    // Read the second one first: it should end soon.
    let second = second.finish().map_err(|e| e.to_string())?;
    let first = first.finish().map_err(|e| e.to_string())?;
    let (owner, other, owner_id) = match (first.end, second.end) {
        (End::Code(0), End::Code(0)) => return Err("both trained, and both ended well".to_string()),
        (End::Code(0), _) => (first, second, first_id),
        (_, End::Code(0)) => (second, first, second_id),
        _ => return Err(format!("none ended well: {} / {}", brief(&first.stderr), brief(&second.stderr))),
    };
    check_refusal(&other, owner_id)?;
    Outcome::of(&owner, &folder.work())?.check_same(&bench.undisturbed)?;
    Ok(Verdict::Held(1))
}

fn check_refusal(ran: &Ran, owner: u32) -> Result<(), String> {
    let names_owner = ran.stderr.split(|c: char| !c.is_ascii_digit()).any(|word| word == owner.to_string());
    match ran.end {
        End::Code(2) if names_owner => Ok(()),
        end => Err(format!("the other ended with {end:?} and does not name process {owner}: {}", brief(&ran.stderr))),
    }
}

fn next_after_death(bench: &Bench, _: usize) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    let mut owner = bench.place.train(&folder).step_ms(STEP_MS).start().map_err(|e| e.to_string())?;
    wait_for_checkpoint(&folder.model(), &mut owner)?;
    owner.kill().map_err(|e| e.to_string())?;
    owner.finish().map_err(|e| e.to_string())?;
    bench.finish_and_compare(&folder)?;
    Ok(Verdict::Held(1))
}

fn without_locks(bench: &Bench, _: usize) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    let ran = bench.place.train(&folder).plan("nolocks").finish().map_err(|e| e.to_string())?;
    if !ran.calls.iter().any(|call| call.kind == "flock") {
        return Ok(Verdict::Skipped("the training asks for no lock".to_string()));
    }
    Outcome::of(&ran, &folder.work())?.check_same(&bench.undisturbed)?;
    match ran.stderr.lines().filter(|line| line.contains("lock")).count() {
        1 => Ok(Verdict::Held(1)),
        n => Err(format!("{n} lines say that there are no locks: {}", brief(&ran.stderr))),
    }
}
