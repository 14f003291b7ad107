//! The laboratory: it tests every law of `docs/trust.md`.
//!
//! `main` counts the calls of an undisturbed run, then tests one law after the other (`laws/`). An
//! experiment (`experiment.rs`) runs the program (`victim.rs`) under the preloaded library, reads
//! the library's log (`calls.rs`), and compares the resulting files (`outcome.rs`). `replay.rs`
//! simulates a disk after a power failure.

mod arguments;
mod calls;
mod experiment;
mod laws;
mod outcome;
mod process_1;
mod replay;
mod report;
mod victim;

use std::process::ExitCode;
use std::time::Instant;

use arguments::{Arguments, Wish};
use experiment::Verdict;
use laws::{Bench, LAWS};
use outcome::Outcome;
use report::Report;
use victim::Place;

/// Does the undisturbed run twice: its outcome must not depend on the run.
fn undisturbed(place: Place, is_full: bool) -> Result<Bench, String> {
    let run = || -> Result<(Outcome, Vec<calls::SystemCall>), String> {
        let folder = place.folder().map_err(|e| e.to_string())?;
        let ran = place.train(&folder).record().finish().map_err(|e| e.to_string())?;
        Ok((Outcome::of(&ran, &folder.work())?, ran.calls))
    };
    let (first, calls) = run()?;
    let (second, _) = run()?;
    second.check_same(&first).map_err(|how| format!("two undisturbed runs differ: {how}"))?;
    Ok(Bench { place, undisturbed: first, calls, is_full })
}

fn try_laws(wish: &Wish) -> Result<Report, String> {
    let place = Place::new(wish.folder.clone(), wish.keeps_folders).map_err(|e| e.to_string())?;
    let bench = undisturbed(place, wish.is_full || wish.only.is_some())?;
    let end: Vec<&str> = bench.undisturbed.said.lines().take(2).collect();
    println!("an undisturbed run changes files in {} calls; {}", bench.calls.len(), end.join(", "));
    let mut report = Report::default();
    for law in LAWS {
        let began = Instant::now();
        let mut experiments = (law.experiments)(&bench);
        if let Some(only) = &wish.only {
            let is_exact = experiments.iter().any(|experiment| experiment.name == *only);
            let is_meant = |name: &str| if is_exact { name == only } else { name.starts_with(only.as_str()) };
            experiments.retain(|experiment| is_meant(&experiment.name));
            if experiments.is_empty() {
                continue;
            }
        }
        let tally = experiment::run(experiments, wish.n_threads, |name, verdict| match verdict {
            Verdict::Held(_) => {}
            Verdict::Broken(how) => {
                println!("BROKEN {name}: {how}\n  again: bash .ci/lab --only '{name}'");
            }
            Verdict::Skipped(why) => println!("skipped {name}: {why}"),
        });
        report.add(law, tally, began.elapsed());
    }
    Ok(report)
}

fn main() -> ExitCode {
    let wish = match Arguments::read(std::env::args().skip(1)) {
        Ok(Arguments::Try(wish)) => wish,
        Ok(Arguments::AsProcess1(program, arguments)) => {
            return process_1::run(&program, &arguments).unwrap_or_else(|error| {
                eprintln!("{error}");
                ExitCode::from(3)
            });
        }
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    match try_laws(&wish) {
        Ok(report) => {
            report.print(wish.wants_table);
            if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("BROKEN before the first experiment: {error}\n\n0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}
