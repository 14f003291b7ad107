//! Attacks in a child process: which one was the last is on its standard output.

use std::env;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use estimand_tensor::parallel::Pool;

/// Set in the child.
const CHILD: &str = "ESTIMAND_HOSTILE_CHILD";
/// Attacks that end neither way are ended: they walk over sizes that are not there.
const DEADLINE: Duration = Duration::from_secs(120);

/// 2^32: its square wraps around to 0.
pub const HALF: usize = 1 << 32;
/// Sizes to try at every place: each wraps around in another way.
pub const HUGE: [usize; 6] = [HALF, 1 << 62, (1 << 63) + 1, usize::MAX / 3 + 1, usize::MAX - 1, usize::MAX];

/// What attacks are called with.
pub struct Attacks {
    pub pool: Pool,
    refused: usize,
    all: usize,
}

impl Attacks {
    /// The attack must end in a panic or an error.
    pub fn refused<E>(&mut self, name: &str, attack: impl FnOnce(&Pool) -> Result<(), E>) {
        assert!(!self.run(name, attack), "{name}: accepted");
    }

    /// The attack may also do nothing, as where an empty array has another size that is huge.
    pub fn harmless<E>(&mut self, name: &str, attack: impl FnOnce(&Pool) -> Result<(), E>) {
        self.run(name, attack);
    }

    fn run<E>(&mut self, name: &str, attack: impl FnOnce(&Pool) -> Result<(), E>) -> bool {
        println!("attack: {name}");
        std::io::stdout().flush().unwrap();
        let accepted = matches!(catch_unwind(AssertUnwindSafe(|| attack(&self.pool))), Ok(Ok(())));
        self.all += 1;
        self.refused += usize::from(!accepted);
        accepted
    }
}

/// Runs the attacks of the test called `name` in a child process and looks at how it ended.
pub fn in_child(name: &str, attacks: impl FnOnce(&mut Attacks)) {
    // Miri has no processes; it says itself which line is wrong.
    if cfg!(miri) || env::var_os(CHILD).is_some() {
        std::panic::set_hook(Box::new(|_| {}));
        let mut all = Attacks { pool: Pool::new(3), refused: 0, all: 0 };
        let result = catch_unwind(AssertUnwindSafe(|| attacks(&mut all)));
        let _ = std::panic::take_hook();
        if let Err(payload) = result {
            let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
            println!("failed: {text}");
            panic!("{text}");
        }
        println!("\ndone: {} of {} attacks refused", all.refused, all.all);
        return;
    }
    let mut child = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = thread::spawn(move || {
        let mut text = String::new();
        pipes.0.read_to_string(&mut text).map(|_| text)
    });
    let errors = thread::spawn(move || {
        let mut text = String::new();
        pipes.1.read_to_string(&mut text).map(|_| text)
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > DEADLINE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let (out, errors) = (read.join().unwrap().unwrap(), errors.join().unwrap().unwrap());
    let last = out.lines().rev().find(|line| line.contains("attack: ")).unwrap_or("none");
    match status {
        None => panic!("{name}: no end after {DEADLINE:?}; the last was {last}"),
        Some(status) => assert!(status.success(), "{name}: {status}; the last was {last}\n{errors}"),
    }
    assert!(out.contains("done: "), "{name}: the child ran no attack\n{out}\n{errors}");
    println!("{name}: {}", out.lines().rev().find(|line| line.contains("done: ")).unwrap_or_default());
}

/// What a function returns that cannot fail otherwise than by a panic.
pub fn none<T>(_: T) -> Result<(), std::convert::Infallible> {
    Ok(())
}
