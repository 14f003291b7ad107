//! A model test of the pool: every interleaving of a caller and its workers over two runs.
//!
//! A thread is a small state machine whose steps are single accesses to shared memory, in the order
//! of the code in `parallel` and with the gate's own transitions ([`State`]). The search visits all
//! states that any order of steps reaches, with any of the tasks panicking and with workers that
//! stop spinning at any time. The model is sequentially consistent: weaker memory orders are not
//! covered. Comments at the accesses argue for them, and ThreadSanitizer checks the real code.

use std::collections::{HashMap, VecDeque};

use super::gate::State;

const RUNS: usize = 2;

/// The position of a worker between two accesses to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// Checks whether there is work.
    Wait,
    /// Has found no work and sets its flag.
    Raise,
    /// Has set its flag and checks once more.
    LookAgain,
    /// Sleeps until another thread wakes it.
    Parked,
    /// Clears its flag.
    Woken,
    /// Checks whether to stop.
    LookForStop,
    /// Loads the gate.
    Load,
    /// Exchanges the gate, if it still has the loaded state.
    Exchange(State),
    /// Reads the body to call.
    ReadBody,
    Working(Work),
    Leave,
    Finished,
}

/// The position of a thread in `Shared::work`, on the caller or inside the gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Work {
    Claim,
    Task(usize),
    /// Has panicked; ends the run for the others.
    EndRun,
    KeepPanic,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Worker {
    at: At,
    seen: u64,
    parked: bool,
    /// Whether there is an unused wake-up.
    token: bool,
}

/// The position of the caller between two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Caller {
    WriteBody,
    Open,
    /// Wakes this worker if its flag is set.
    Wake(usize),
    Working(Work),
    Close,
    WaitUntilEmpty,
    /// Takes the panic, the body and the pool back, and returns or unwinds.
    Return,
    Stop,
    WakeForStop(usize),
    Join,
    Finished,
}

/// The shared state, and the position of every thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    gate: State,
    /// The run whose body may be called; `None` outside of runs.
    body: Option<usize>,
    next_task: usize,
    panic: bool,
    stop: bool,
    caller: Caller,
    run: usize,
    workers: Vec<Worker>,
    /// The number of calls of each task of the run, and whether one panicked.
    calls: Vec<u8>,
    panicked: bool,
}

/// A deliberate fault in the protocol. The search must find it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// A worker parks without checking once more.
    ParksBlindly,
    /// The caller does not wait until the gate is empty.
    ReturnsEarly,
    /// A worker that panics does not leave the gate.
    StaysInside,
    /// The gate lets workers in when it is closed.
    AlwaysOpen,
}

struct Model {
    n_workers: usize,
    n_tasks: usize,
    fault: Fault,
}

impl Model {
    fn start(&self) -> World {
        World {
            gate: State::default(),
            body: None,
            next_task: 0,
            panic: false,
            stop: false,
            caller: Caller::WriteBody,
            run: 0,
            workers: vec![Worker { at: At::Wait, seen: 0, parked: false, token: false }; self.n_workers],
            calls: vec![0; self.n_tasks],
            panicked: false,
        }
    }

    /// One step of `Shared::work`; a task may return or panic.
    fn work(&self, world: &World, at: Work, then: impl Fn(World, Work) -> World) -> Result<Vec<World>, String> {
        let mut next = world.clone();
        match at {
            Work::Claim => {
                let task = world.next_task;
                // More claims than this lead to no new states.
                next.next_task = (task + 1).min(self.n_tasks + self.n_workers + 1);
                Ok(vec![then(next, if task < self.n_tasks { Work::Task(task) } else { Work::Done })])
            }
            Work::Task(task) => {
                if world.body != Some(world.run) || matches!(world.caller, Caller::WriteBody | Caller::Stop) {
                    return Err(format!("task {task} runs after its run has returned"));
                }
                next.calls[task] += 1;
                if next.calls[task] > 1 {
                    return Err(format!("task {task} runs twice"));
                }
                let mut panics = next.clone();
                panics.panicked = true;
                Ok(vec![then(next, Work::Claim), then(panics, Work::EndRun)])
            }
            Work::EndRun => {
                next.next_task = self.n_tasks;
                Ok(vec![then(next, Work::KeepPanic)])
            }
            Work::KeepPanic => {
                next.panic = true;
                Ok(vec![then(next, Work::Done)])
            }
            Work::Done => Ok(vec![]),
        }
    }

    fn step_worker(&self, world: &World, w: usize) -> Result<Vec<World>, String> {
        let me = world.workers[w];
        let to = |at: At| {
            let mut next = world.clone();
            next.workers[w].at = at;
            next
        };
        let has_news = world.gate.has_news(me.seen) || world.stop;
        Ok(match me.at {
            At::Wait if has_news => vec![to(At::LookForStop)],
            // The worker may also keep spinning, which changes nothing.
            At::Wait => vec![to(At::Raise)],
            At::Raise => {
                let mut next = to(if self.fault == Fault::ParksBlindly { At::Parked } else { At::LookAgain });
                next.workers[w].parked = true;
                vec![next]
            }
            At::LookAgain => vec![to(if has_news { At::Woken } else { At::Parked })],
            At::Parked if me.token => {
                let mut next = to(At::Woken);
                next.workers[w].token = false;
                vec![next]
            }
            At::Parked => vec![],
            At::Woken => {
                let mut next = to(At::Wait);
                next.workers[w].parked = false;
                vec![next]
            }
            At::LookForStop => vec![to(if world.stop { At::Finished } else { At::Load })],
            At::Load => match world.gate.entered(me.seen) {
                Some(_) => vec![to(At::Exchange(world.gate))],
                None if self.fault == Fault::AlwaysOpen && world.gate.run() != me.seen => {
                    vec![to(At::Exchange(world.gate))]
                }
                None => vec![to(At::Wait)],
            },
            At::Exchange(loaded) if loaded != world.gate => vec![to(At::Wait)],
            At::Exchange(loaded) => {
                let mut next = to(At::ReadBody);
                // The fault adds one worker inside without checking whether the gate is open;
                // `left` undoes it.
                let open = || State::default().opened().entered(0).filter(|_| self.fault == Fault::AlwaysOpen);
                next.gate = loaded.entered(me.seen).or_else(open).ok_or("a closed gate was entered")?;
                next.workers[w].seen = loaded.run();
                vec![next]
            }
            At::ReadBody => match world.body {
                Some(_) => vec![to(At::Working(Work::Claim))],
                None => return Err("a worker inside the gate finds no body".into()),
            },
            At::Working(Work::Done) => vec![to(At::Leave)],
            At::Working(at) => self.work(world, at, |mut next, at| {
                let stays = self.fault == Fault::StaysInside && at == Work::EndRun;
                next.workers[w].at = if stays { At::Finished } else { At::Working(at) };
                next
            })?,
            At::Leave => {
                let mut next = to(At::Wait);
                next.gate = world.gate.left();
                vec![next]
            }
            At::Finished => vec![],
        })
    }

    fn step_caller(&self, world: &World) -> Result<Vec<World>, String> {
        let to = |caller: Caller| World { caller, ..world.clone() };
        Ok(match world.caller {
            Caller::WriteBody => {
                if world.workers.iter().any(|w| matches!(w.at, At::ReadBody | At::Working(_))) {
                    return Err("the body is written while a worker reads it".into());
                }
                let mut next = to(Caller::Open);
                (next.body, next.next_task, next.panicked) = (Some(world.run), 0, false);
                next.calls.fill(0);
                vec![next]
            }
            Caller::Open => {
                let mut next = to(Caller::Wake(0));
                next.gate = world.gate.opened();
                vec![next]
            }
            // As many workers as there are tasks besides the caller's own.
            Caller::Wake(w) if w == self.n_workers.min(self.n_tasks - 1) => vec![to(Caller::Working(Work::Claim))],
            Caller::Wake(w) => {
                let mut next = to(Caller::Wake(w + 1));
                next.workers[w].token |= world.workers[w].parked;
                vec![next]
            }
            Caller::Working(Work::Done) => vec![to(Caller::Close)],
            Caller::Working(at) => self.work(world, at, |next, at| World { caller: Caller::Working(at), ..next })?,
            Caller::Close => {
                let early = self.fault == Fault::ReturnsEarly;
                let mut next = to(if early { Caller::Return } else { Caller::WaitUntilEmpty });
                next.gate = world.gate.closed();
                vec![next]
            }
            Caller::WaitUntilEmpty if world.gate.is_empty() => vec![to(Caller::Return)],
            Caller::WaitUntilEmpty => vec![],
            Caller::Return => {
                if !world.panicked && world.calls.iter().any(|&calls| calls != 1) {
                    return Err(format!("a run returns after its tasks were called {:?} times", world.calls));
                }
                if world.panic != world.panicked {
                    return Err("a panic is lost, or one of another run is raised".into());
                }
                let more = world.run + 1 < RUNS;
                let mut next = to(if more { Caller::WriteBody } else { Caller::Stop });
                (next.body, next.panic) = (None, false);
                next.run += usize::from(more);
                vec![next]
            }
            Caller::Stop => {
                let mut next = to(Caller::WakeForStop(0));
                next.stop = true;
                vec![next]
            }
            Caller::WakeForStop(w) if w == self.n_workers => vec![to(Caller::Join)],
            Caller::WakeForStop(w) => {
                let mut next = to(Caller::WakeForStop(w + 1));
                next.workers[w].token = true;
                vec![next]
            }
            Caller::Join if world.workers.iter().all(|w| w.at == At::Finished) => vec![to(Caller::Finished)],
            Caller::Join | Caller::Finished => vec![],
        })
    }

    /// The invariants of every state.
    fn check(&self, world: &World) -> Result<(), String> {
        // While the caller works, all workers that it should have woken are awake or about to wake
        // up.
        if matches!(world.caller, Caller::Working(_)) {
            for (w, worker) in world.workers.iter().enumerate().take(self.n_tasks - 1) {
                if worker.at == At::Parked && !worker.token && world.gate.has_news(worker.seen) {
                    return Err(format!("worker {w} sleeps through a run: the wake-up is lost"));
                }
            }
        }
        Ok(())
    }

    /// Visits all states. Returns their number, or the violation found.
    fn explore(&self) -> Result<usize, String> {
        let start = self.start();
        let mut number = HashMap::from([(start.clone(), 0)]);
        let mut before: Vec<Vec<usize>> = vec![vec![]];
        let mut finished = vec![];
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((world, id)) = queue.pop_front() {
            self.check(&world)?;
            let mut next = self.step_caller(&world)?;
            for w in 0..self.n_workers {
                next.extend(self.step_worker(&world, w)?);
            }
            if world.caller == Caller::Finished {
                finished.push(id);
            } else if next.is_empty() {
                return Err(format!("nobody can go on: {world:?}"));
            }
            for world in next {
                let known = number.len();
                let to = *number.entry(world.clone()).or_insert(known);
                if to == known {
                    before.push(vec![]);
                    queue.push_back((world, to));
                }
                before[to].push(id);
            }
        }
        // Every state has a path to the end, so threads do not wait for each other in a circle
        // either.
        let mut reaches = vec![false; number.len()];
        while let Some(id) = finished.pop() {
            if !std::mem::replace(&mut reaches[id], true) {
                finished.extend(&before[id]);
            }
        }
        match reaches.iter().position(|reaches| !reaches) {
            Some(id) => Err(format!("no way to the end from {:?}", number.iter().find(|(_, n)| **n == id))),
            None => Ok(number.len()),
        }
    }
}

fn ends_well(n_workers: usize, n_tasks: usize) {
    let model = Model { n_workers, n_tasks, fault: Fault::None };
    let n_states = model.explore().unwrap_or_else(|e| panic!("{n_workers} workers, {n_tasks} tasks: {e}"));
    assert!(n_states > 100);
}

#[test]
#[cfg_attr(miri, ignore)] // no unsafe code, and hundreds of thousands of states
fn every_interleaving_of_two_runs_ends_well() {
    for (n_workers, n_tasks) in [(1, 2), (1, 3), (2, 2), (2, 3)] {
        ends_well(n_workers, n_tasks);
    }
}

#[test]
#[ignore = "millions of states: a minute and some gigabytes"]
fn every_interleaving_with_three_workers_ends_well() {
    ends_well(3, 2);
}

#[test]
#[cfg_attr(miri, ignore)] // as above
fn the_search_finds_what_is_wrong() {
    for (fault, text) in [
        (Fault::ParksBlindly, "the wake-up is lost"),
        (Fault::ReturnsEarly, "returned|finds no body|written while|returns after"),
        (Fault::StaysInside, "nobody can go on|no way to the end|is lost"),
        (Fault::AlwaysOpen, "finds no body|written while|returned|another goes on|closed gate"),
    ] {
        // The debug assertions of the gate may also detect the fault.
        let found = std::panic::catch_unwind(|| Model { n_workers: 2, n_tasks: 2, fault }.explore());
        let message = match found {
            Ok(result) => result.expect_err(&format!("{fault:?} was not found")),
            Err(payload) => payload.downcast_ref::<String>().cloned().unwrap_or_default(),
        };
        assert!(text.split('|').any(|text| message.contains(text)), "{fault:?}: {message}");
    }
}
