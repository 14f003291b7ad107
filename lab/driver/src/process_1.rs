//! Process 1: the id of the main program in a container.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode};

use crate::victim::ProcessNumber;

/// Runs a program as process 1 of a new namespace, and exits with its status.
pub fn run(program: &str, arguments: &[String]) -> io::Result<ExitCode> {
    unshare()?;
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: between fork and exec, one system call: the program dies with this process. With such
    // a function the standard library forks rather than spawns, and the first fork after `unshare`
    // is process 1.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    let status = command.status()?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(code as u8))
}

fn unshare() -> io::Result<()> {
    // SAFETY: changes the namespace of later children, nothing of this process.
    match unsafe { libc::unshare(libc::CLONE_NEWPID) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns how to run as process 1 on this machine, and the reason if it must be simulated.
pub fn possible() -> (ProcessNumber, Option<String>) {
    let try_it = || -> io::Result<()> {
        let output =
            Command::new(std::env::current_exe()?).args(["--as-process-1", "/bin/sh", "-c", "test $$ = 1"]).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string())),
        }
    };
    match try_it() {
        Ok(()) => (ProcessNumber::Namespace, None),
        Err(error) => {
            let reason = format!("the machine refuses a process namespace ({error}); getpid answers 1 instead");
            (ProcessNumber::Simulated, Some(reason))
        }
    }
}
