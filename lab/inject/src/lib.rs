//! A preloaded library (`LD_PRELOAD`) that intercepts a program's calls on files.
//!
//! It replaces the C library's calls that change files; Rust's standard library uses these calls.
//! Calls on files below `LAB_ROOT` are counted and named: the third write to `model/training.csv`
//! is the point `write/model/training.csv/3`, in every run, independent of thread scheduling.
//! `LAB_PLAN` injects faults at points (`plan.rs`). `LAB_LOG` is the file to which every call is
//! logged (`record.rs`), with the bytes if `LAB_DATA` is set. Calls on other files pass unchanged
//! to the kernel.
#![cfg(target_os = "linux")]

mod plan;
mod record;

use std::ffi::CStr;
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{
    AT_FDCWD, AT_REMOVEDIR, ENOSYS, O_CREAT, O_TRUNC, SYS_fdatasync, SYS_flock, SYS_fsync, SYS_ftruncate, SYS_linkat,
    SYS_mkdirat, SYS_openat, SYS_pwrite64, SYS_renameat, SYS_unlinkat, SYS_write, SYS_writev, c_char, c_int, c_long,
    c_uint, c_void, iovec, mode_t, off_t, off64_t, size_t, ssize_t,
};

use plan::{Fate, FaultKind};
use record::{Calls, Settings, SystemCall, die, path_of};

static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
static CALLS: Mutex<Option<Calls>> = Mutex::new(None);

fn settings() -> Option<&'static Settings> {
    SETTINGS.get_or_init(Settings::read).as_ref()
}

/// Makes a system call with up to five arguments; sets errno like the C library.
fn system(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long) -> i64 {
    // SAFETY: the arguments are those of the program's own call, which the kernel checks.
    unsafe { libc::syscall(number, a, b, c, d, e) }
}

fn fail(errno: c_int) -> i64 {
    // SAFETY: the address is this thread's own errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

/// Makes a watched call; `act` takes the number of bytes to write. Calls are made one at a time, so
/// that the log has their order.
fn watched(settings: &Settings, call: &SystemCall<'_>, act: impl Fn(usize) -> i64) -> i64 {
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let (number, point, fate) = settings.begin(calls.get_or_insert_default(), call);
    let log = |result: i64, note: &str| settings.log(number, &point, call, result, note);
    let n = call.data.len();
    let result = match fate {
        Fate::KillBefore => {
            log(0, "killed");
            die();
        }
        Fate::KillMid => {
            log(act(n / 2), "killed");
            die();
        }
        Fate::Fail(errno) => {
            log(-i64::from(errno), "failed");
            return fail(errno);
        }
        Fate::Short(limit) => act(n.min(limit)),
        Fate::Go | Fate::KillAfter => act(n),
    };
    let errno = errno();
    let failed = result < 0;
    log(if failed { -i64::from(errno) } else { result }, if fate == Fate::KillAfter { "killed" } else { "" });
    if fate == Fate::KillAfter {
        die();
    }
    if failed { fail(errno) } else { result }
}

/// Returns the path that a call refers to.
fn resolve(folder: c_int, path: *const c_char) -> Vec<u8> {
    // SAFETY: the program's own call promises a string that ends with a zero byte.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.first() == Some(&b'/') {
        return path.to_vec();
    }
    let mut whole = match folder {
        AT_FDCWD => std::env::current_dir().map(|path| path.into_os_string().into_encoded_bytes()).unwrap_or_default(),
        folder => path_of(folder),
    };
    whole.push(b'/');
    whole.extend_from_slice(path.strip_prefix(b"./").unwrap_or(path));
    whole
}

/// Makes a call on names. For a call that makes a file, the log also has the flags.
fn on_names(kind: FaultKind, path: Vec<u8>, to: Vec<u8>, flags: c_int, act: impl Fn() -> i64) -> i64 {
    match settings() {
        Some(settings) if settings.watches(&path) => {
            let call = SystemCall { kind, path, to, data: &[], fd: None, offset: Some(flags.into()) };
            watched(settings, &call, |_| act())
        }
        _ => act(),
    }
}

/// Makes a call on an open file.
fn on_file(kind: FaultKind, fd: c_int, data: &[u8], offset: Option<i64>, act: impl Fn(usize) -> i64) -> i64 {
    match settings().map(|settings| (settings, path_of(fd))) {
        Some((settings, path)) if settings.watches(&path) => {
            let fd = (kind == FaultKind::Write).then_some(fd);
            watched(settings, &SystemCall { kind, path, to: Vec::new(), data, fd, offset }, act)
        }
        _ => act(data.len()),
    }
}

fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    let open = || system(SYS_openat, folder.into(), path as c_long, flags.into(), mode.into(), 0);
    let changes = flags & (O_CREAT | O_TRUNC) != 0;
    match changes && settings().is_some() {
        true => on_names(FaultKind::Create, resolve(folder, path), Vec::new(), flags, open) as c_int,
        false => open() as c_int,
    }
}

/// The replaced C functions. `open` always takes a third argument here: the calling conventions of
/// Linux allow that.
mod exported {
    use super::*;

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_at(AT_FDCWD, path, flags, mode)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_at(AT_FDCWD, path, flags, mode)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_at(folder, path, flags, mode)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_at(folder, path, flags, mode)
    }

    /// Same as the C library's function.
    ///
    /// # Safety
    /// `data` points to `n` bytes.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, n: size_t) -> ssize_t {
        let real = |n: usize| system(SYS_write, fd.into(), data as c_long, n as c_long, 0, 0);
        if fd <= 2 || n == 0 {
            return real(n) as ssize_t;
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), n) };
        on_file(FaultKind::Write, fd, bytes, None, real) as ssize_t
    }

    /// Same as the C library's function.
    ///
    /// # Safety
    /// `data` points to `n` bytes.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn pwrite64(fd: c_int, data: *const c_void, n: size_t, offset: off64_t) -> ssize_t {
        let real = |n: usize| system(SYS_pwrite64, fd.into(), data as c_long, n as c_long, offset, 0);
        if n == 0 {
            return real(n) as ssize_t;
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), n) };
        on_file(FaultKind::Write, fd, bytes, Some(offset), real) as ssize_t
    }

    /// Same as the C library's function.
    ///
    /// # Safety
    /// `data` points to `n` bytes.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, n: size_t, offset: off_t) -> ssize_t {
        // SAFETY: the caller's promise.
        unsafe { pwrite64(fd, data, n, offset) }
    }

    /// Same as the C library's function; for a watched file, all parts in one write.
    ///
    /// # Safety
    /// `parts` points to `n` descriptions of buffers.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, n: c_int) -> ssize_t {
        let is_watched = || settings().is_some_and(|settings| settings.watches(&path_of(fd)));
        if fd <= 2 || n <= 0 || !is_watched() {
            return system(SYS_writev, fd.into(), parts as c_long, n.into(), 0, 0) as ssize_t;
        }
        // SAFETY: the caller's promise.
        let parts = unsafe { std::slice::from_raw_parts(parts, n as usize) };
        let mut whole = Vec::new();
        for part in parts.iter().filter(|part| part.iov_len > 0) {
            // SAFETY: the caller's promise.
            whole.extend_from_slice(unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) });
        }
        // SAFETY: the buffer is whole and lives until the call is over.
        unsafe { write(fd, whole.as_ptr().cast(), whole.len()) }
    }

    /// Same as the C library's function on a file system that does not support it. The standard
    /// library then falls back to read and write.
    #[unsafe(no_mangle)]
    pub extern "C" fn copy_file_range(
        _from: c_int,
        _at: *mut off64_t,
        _to: c_int,
        _to_at: *mut off64_t,
        _n: size_t,
        _flags: c_uint,
    ) -> ssize_t {
        fail(ENOSYS) as ssize_t
    }

    /// Same as the C library's function on a file system that does not support it.
    #[unsafe(no_mangle)]
    pub extern "C" fn sendfile64(_to: c_int, _from: c_int, _at: *mut off64_t, _n: size_t) -> ssize_t {
        fail(ENOSYS) as ssize_t
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
        renameat(AT_FDCWD, from, AT_FDCWD, to)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn renameat(folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char) -> c_int {
        let real = || system(SYS_renameat, folder.into(), from as c_long, to_folder.into(), to as c_long, 0);
        on_names(FaultKind::Rename, resolve(folder, from), resolve(to_folder, to), 0, real) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
        linkat(AT_FDCWD, from, AT_FDCWD, to, 0)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn linkat(
        folder: c_int,
        from: *const c_char,
        to_folder: c_int,
        to: *const c_char,
        flags: c_int,
    ) -> c_int {
        let real = || system(SYS_linkat, folder.into(), from as c_long, to_folder.into(), to as c_long, flags.into());
        on_names(FaultKind::Link, resolve(folder, from), resolve(to_folder, to), 0, real) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn unlink(path: *const c_char) -> c_int {
        unlinkat(AT_FDCWD, path, 0)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn rmdir(path: *const c_char) -> c_int {
        unlinkat(AT_FDCWD, path, AT_REMOVEDIR)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
        let kind = if flags & AT_REMOVEDIR != 0 { FaultKind::Rmdir } else { FaultKind::Unlink };
        let real = || system(SYS_unlinkat, folder.into(), path as c_long, flags.into(), 0, 0);
        on_names(kind, resolve(folder, path), Vec::new(), 0, real) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
        let real = || system(SYS_mkdirat, AT_FDCWD.into(), path as c_long, mode.into(), 0, 0);
        on_names(FaultKind::Mkdir, resolve(AT_FDCWD, path), Vec::new(), 0, real) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn ftruncate64(fd: c_int, size: off64_t) -> c_int {
        let real = |_| system(SYS_ftruncate, fd.into(), size, 0, 0, 0);
        on_file(FaultKind::Truncate, fd, &[], Some(size), real) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn ftruncate(fd: c_int, size: off_t) -> c_int {
        ftruncate64(fd, size)
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn fsync(fd: c_int) -> c_int {
        on_file(FaultKind::Fsync, fd, &[], None, |_| system(SYS_fsync, fd.into(), 0, 0, 0, 0)) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn fdatasync(fd: c_int) -> c_int {
        on_file(FaultKind::Fsync, fd, &[], None, |_| system(SYS_fdatasync, fd.into(), 0, 0, 0, 0)) as c_int
    }

    /// Same as the C library's function.
    #[unsafe(no_mangle)]
    pub extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
        on_file(FaultKind::Flock, fd, &[], None, |_| system(SYS_flock, fd.into(), operation.into(), 0, 0, 0)) as c_int
    }

    /// Returns the id of the process, or 1 if process 1 is simulated.
    #[unsafe(no_mangle)]
    pub extern "C" fn getpid() -> c_int {
        match settings() {
            Some(settings) if settings.is_process_1 => 1,
            _ => system(libc::SYS_getpid, 0, 0, 0, 0, 0) as c_int,
        }
    }
}
