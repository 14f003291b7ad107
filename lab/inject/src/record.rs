//! The log of calls. The driver reads the points from it, and replays a power failure from it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use libc::{SYS_exit_group, SYS_getpid, SYS_kill, SYS_lseek, SYS_openat, SYS_readlinkat, SYS_write, c_int, c_long};

use crate::plan::{Fate, FaultKind, Plan};

/// The watched folder and the plan, from the environment.
pub struct Settings {
    /// The folder whose files are watched, with a slash at its end.
    root: Vec<u8>,
    log: Option<c_int>,
    /// Whether the log holds the bytes that were written.
    keeps_data: bool,
    pub plan: Plan,
    /// Whether the program sees itself as process 1.
    pub is_process_1: bool,
}

/// The calls so far.
#[derive(Default)]
pub struct Calls {
    number: u64,
    /// The number of calls of each kind on each file.
    of_file: HashMap<(FaultKind, String), u64>,
    hit: bool,
}

/// One call, before it is made.
pub struct SystemCall<'a> {
    pub kind: FaultKind,
    pub path: Vec<u8>,
    /// The new name of a rename or link.
    pub to: Vec<u8>,
    /// The written bytes, and their offset; for truncation, the offset is the new size.
    pub data: &'a [u8],
    pub fd: Option<c_int>,
    pub offset: Option<i64>,
}

impl Settings {
    /// Reads the settings; `None` if no folder is set.
    pub fn read() -> Option<Settings> {
        let text = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let mut root = text("LAB_ROOT")?.as_bytes().to_vec();
        root.push(b'/');
        let log = text("LAB_LOG").map(|path| open_log(&path));
        let plan = text("LAB_PLAN").unwrap_or_else(|| "watch".into());
        let Some(plan) = plan.to_str().and_then(Plan::parse) else { die() };
        let is_process_1 = text("LAB_PROCESS_1").is_some();
        Some(Settings { root, log, keeps_data: text("LAB_DATA").is_some(), plan, is_process_1 })
    }

    /// Returns whether files of this path are watched.
    pub fn watches(&self, path: &[u8]) -> bool {
        let is_root = self.root.strip_suffix(b"/") == Some(path);
        (is_root || path.starts_with(&self.root)) && !path.ends_with(b" (deleted)")
    }

    /// Returns the path below the folder; `.` for the folder itself.
    fn relative<'a>(&self, path: &'a [u8]) -> &'a [u8] {
        path.get(self.root.len()..).unwrap_or(b".")
    }

    /// Counts a call and decides its fate. Returns its number, its point and its fate.
    pub fn begin(&self, calls: &mut Calls, call: &SystemCall<'_>) -> (u64, String, Fate) {
        calls.number += 1;
        let name = plain_name(self.relative(&call.path));
        let n = calls.of_file.entry((call.kind, name.clone())).or_default();
        *n += 1;
        let point = format!("{}/{name}/{n}", call.kind.name());
        let fate = self.plan.fate(call.kind, &point, calls.number, &mut calls.hit);
        (calls.number, point, fate)
    }

    /// Logs a call and its result: a line of fields, then the bytes of a write.
    pub fn log(&self, number: u64, point: &str, call: &SystemCall<'_>, result: i64, note: &str) {
        let Some(log) = self.log else { return };
        let done = usize::try_from(result).unwrap_or(0).min(call.data.len());
        let kept = if self.keeps_data { done } else { 0 };
        let offset = call.offset.or_else(|| {
            // The position after the write, which is also right for an append.
            let end = call.fd.map(position)?;
            Some(end - done as i64)
        });
        let shown = |path: &[u8]| String::from_utf8_lossy(self.relative(path)).into_owned();
        let line = format!(
            "{number}\t{point}\t{}\t{}\t{}\t{}\t{}\t{result}\t{kept}\t{note}\n",
            call.kind.name(),
            shown(&call.path),
            shown(&call.to),
            offset.unwrap_or(0),
            call.data.len(),
        );
        let mut bytes = line.into_bytes();
        bytes.extend_from_slice(&call.data[..kept]);
        // SAFETY: the log's descriptor is open for as long as the process lives, and the buffer is
        // whole.
        unsafe { libc::syscall(SYS_write, c_long::from(log), bytes.as_ptr(), bytes.len()) };
    }
}

fn open_log(path: &OsStr) -> c_int {
    let mut path = path.as_bytes().to_vec();
    path.push(0);
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { libc::syscall(SYS_openat, c_long::from(libc::AT_FDCWD), path.as_ptr(), flags, 0o644) };
    if fd < 0 {
        die();
    }
    fd as c_int
}

fn position(fd: c_int) -> i64 {
    // SAFETY: asks for a number, whatever the descriptor is.
    unsafe { libc::syscall(SYS_lseek, c_long::from(fd), 0, libc::SEEK_CUR) }
}

/// The path of an open file; empty if it has none.
pub fn path_of(fd: c_int) -> Vec<u8> {
    let link = format!("/proc/self/fd/{fd}\0");
    let mut path = vec![0u8; 4096];
    // SAFETY: the link's name ends with a zero byte, and the buffer has the length that is said.
    let n = unsafe {
        libc::syscall(SYS_readlinkat, c_long::from(libc::AT_FDCWD), link.as_ptr(), path.as_mut_ptr(), path.len())
    };
    path.truncate(usize::try_from(n).unwrap_or(0));
    path
}

/// Returns the name of a file without the parts that differ between runs: random suffixes, times,
/// hosts and processes.
fn plain_name(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let of_file = |name: &str| match name {
        name if name.contains("tfevents") => "events".to_string(),
        name => match name.find(".tmp") {
            Some(at) => format!("{}.tmp", &name[..at]),
            None => name.to_string(),
        },
    };
    text.split('/').map(of_file).collect::<Vec<_>>().join("/")
}

/// Ends the process like a power switch: no handler runs, nothing is flushed.
pub fn die() -> ! {
    // SAFETY: neither call returns to code that could see a broken state.
    unsafe {
        libc::syscall(SYS_kill, libc::syscall(SYS_getpid), libc::SIGKILL);
        // Process 1 of a namespace ignores its own signal; this is just as sudden.
        libc::syscall(SYS_exit_group, 137);
    }
    loop {
        std::hint::spin_loop();
    }
}
