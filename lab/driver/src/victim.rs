//! Runs of the program that is disturbed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::calls::{self, SystemCall};

/// A run takes a fraction of a second; one that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Place {
    victim: PathBuf,
    library: PathBuf,
    /// Holds one folder for each experiment.
    base: PathBuf,
    keeps_folders: bool,
}

/// The number that the program believes to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessNumber {
    /// Its own.
    Own,
    /// Process 1 of a namespace of its own.
    Namespace,
    /// `getpid` says 1.
    Simulated,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Code(i32),
    Killed,
    Hung,
}

/// A run that is over.
#[derive(Debug)]
pub struct Ran {
    pub end: End,
    pub stdout: String,
    pub stderr: String,
    pub calls: Vec<SystemCall>,
}

/// A run to be.
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
    /// The programs lie beside the driver, where cargo puts them.
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

    /// A new folder, with the folders that users make themselves.
    pub fn folder(&self) -> io::Result<Folder> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.base.join(format!("{}-{number}", std::process::id()));
        for name in ["work/data", "work/model", "work/cache"] {
            fs::create_dir_all(path.join(name))?;
        }
        Ok(Folder { path, is_kept: self.keeps_folders })
    }

    /// A run of the victim in the work folder below `root`: `train FOLDER` and its like. Names are
    /// relative, so that files which hold them are the same in every experiment.
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

    /// The training with all writers.
    pub fn train<'a>(&'a self, folder: &'a Folder) -> Run<'a> {
        self.run(&folder.path, &["train", "."])
    }
}

/// The folder of an experiment; gone when this is, unless folders are kept.
pub struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    /// What the program works in.
    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// What holds it.
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
    /// What happens to which call, as the library reads it.
    pub fn plan(mut self, plan: impl Into<String>) -> Self {
        self.plan = plan.into();
        self
    }

    /// Keeps the bytes of all writes.
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

    /// Starts it.
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

/// A run that goes on.
pub struct Started {
    child: Child,
    log: PathBuf,
}

impl Started {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `SIGKILL`.
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

/// Reads a pipe to its end beside the process, which must not wait for it.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
