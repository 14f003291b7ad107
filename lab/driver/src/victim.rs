//! Runs the program under test, the victim.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::calls::{self, SystemCall};

/// The timeout: a run takes a fraction of a second, so one that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The paths of the programs and folders.
#[derive(Clone, Debug)]
pub struct Place {
    victim: PathBuf,
    library: PathBuf,
    /// The folder that holds one folder per experiment.
    base: PathBuf,
    keeps_folders: bool,
}

/// The process id that the program sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessNumber {
    /// Its real id.
    Own,
    /// Process 1 of its own namespace.
    Namespace,
    /// A `getpid` that returns 1.
    Simulated,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Code(i32),
    Killed,
    Hung,
}

/// A finished run.
#[derive(Debug)]
pub struct Ran {
    pub end: End,
    pub stdout: String,
    pub stderr: String,
    pub calls: Vec<SystemCall>,
}

/// A run before its start.
pub struct Run<'a> {
    place: &'a Place,
    arguments: Vec<String>,
    root: &'a Path,
    plan: String,
    keeps_data: bool,
    number: ProcessNumber,
    step_ms: u64,
}

impl Place {
    /// Finds the programs beside the driver, where cargo puts them.
    pub fn new(base: PathBuf, keeps_folders: bool) -> io::Result<Place> {
        let beside = std::env::current_exe()?;
        let beside = beside.parent().unwrap_or(Path::new(".")).to_path_buf();
        let (victim, library) = (beside.join("estimand-lab-victim"), beside.join("libestimand_lab_inject.so"));
        for file in [&victim, &library] {
            if !file.exists() {
                return Err(io::Error::other(format!("{} is not built; run bash .ci/lab", file.display())));
            }
        }
        fs::create_dir_all(&base)?;
        Ok(Place { victim, library, base: base.canonicalize()?, keeps_folders })
    }

    /// Makes a new folder, with the subfolders that users make themselves.
    pub fn folder(&self) -> io::Result<Folder> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.base.join(format!("{}-{number}", std::process::id()));
        for name in ["work/data", "work/model", "work/cache"] {
            fs::create_dir_all(path.join(name))?;
        }
        Ok(Folder { path, is_kept: self.keeps_folders })
    }

    /// Prepares a run of the victim in the work folder below `root`: `train FOLDER` and similar.
    /// Names are relative, so that files which contain them are the same in every experiment.
    pub fn run<'a>(&'a self, root: &'a Path, arguments: &[&str]) -> Run<'a> {
        Run {
            place: self,
            arguments: arguments.iter().map(ToString::to_string).collect(),
            root,
            plan: "watch".to_string(),
            keeps_data: false,
            number: ProcessNumber::Own,
            step_ms: 0,
        }
    }

    /// Prepares the training with all writers.
    pub fn train<'a>(&'a self, folder: &'a Folder) -> Run<'a> {
        self.run(&folder.path, &["train", "."])
    }
}

/// The folder of an experiment; removed when this is dropped, unless folders are kept.
pub struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    /// The folder that the program works in.
    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// The folder that contains the work folder.
    pub fn root(&self) -> &Path {
        &self.path
    }

    pub fn model(&self) -> PathBuf {
        self.path.join("work/model")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl Run<'_> {
    /// Sets the plan of injected faults, in the library's format.
    pub fn plan(mut self, plan: impl Into<String>) -> Self {
        self.plan = plan.into();
        self
    }

    /// Records the bytes of all writes.
    pub fn record(mut self) -> Self {
        self.keeps_data = true;
        self
    }

    pub fn process_number(mut self, number: ProcessNumber) -> Self {
        self.number = number;
        self
    }

    pub fn step_ms(mut self, ms: u64) -> Self {
        self.step_ms = ms;
        self
    }

    /// Starts the run.
    pub fn start(self) -> io::Result<Started> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = self.place.base.join(format!("{}-log-{number}", std::process::id()));
        let mut command = match self.number {
            ProcessNumber::Namespace => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("--as-process-1").arg(&self.place.victim);
                command
            }
            _ => Command::new(&self.place.victim),
        };
        let root = self.root.join("work");
        command
            .args(&self.arguments)
            .current_dir(&root)
            .env("LD_PRELOAD", &self.place.library)
            .env("LAB_ROOT", &root)
            .env("LAB_LOG", &log)
            .env("LAB_PLAN", &self.plan)
            .env("VICTIM_STEP_MS", self.step_ms.to_string())
            .env_remove("TF_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.keeps_data {
            command.env("LAB_DATA", "1");
        }
        if self.number == ProcessNumber::Simulated {
            command.env("LAB_PROCESS_1", "1");
        }
        Ok(Started { child: command.spawn()?, log })
    }

    /// Runs it to its end.
    pub fn finish(self) -> io::Result<Ran> {
        self.start()?.finish()
    }
}

/// A running process.
pub struct Started {
    child: Child,
    log: PathBuf,
}

impl Started {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `SIGKILL`.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    pub fn is_running(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for its end.
    pub fn finish(mut self) -> io::Result<Ran> {
        let stdout = read_all(self.child.stdout.take());
        let stderr = read_all(self.child.stderr.take());
        let began = Instant::now();
        let mut is_hung = false;
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if began.elapsed() > PATIENCE => {
                    is_hung = true;
                    self.child.kill()?;
                    break self.child.wait()?;
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let end = match (status.code(), status.signal()) {
            _ if is_hung => End::Hung,
            (Some(137), _) | (_, Some(libc::SIGKILL)) => End::Killed,
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Code(128 + signal.unwrap_or(0)),
        };
        let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            file.read_to_end(&mut bytes)?;
        }
        let _ = fs::remove_file(&self.log);
        Ok(Ran { end, stdout: text(stdout), stderr: text(stderr), calls: calls::parse(&bytes) })
    }
}

/// Reads a pipe to its end in a thread, so that the process never blocks on it.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
