//! Signal handlers with `sigaction`. The crates for signals cannot restore a previous handler or
//! the default one.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::{Signal, request};

/// The action of each signal before ours.
pub(super) type Previous = [(libc::c_int, libc::sigaction); 2];

pub(super) fn install() -> io::Result<Previous> {
    let interrupt = take_over(libc::SIGINT)?;
    match take_over(libc::SIGTERM) {
        Ok(terminate) => Ok([(libc::SIGINT, interrupt), (libc::SIGTERM, terminate)]),
        Err(error) => {
            put_back(libc::SIGINT, &interrupt);
            Err(error)
        }
    }
}

pub(super) fn restore(previous: &Previous) {
    for (number, action) in previous {
        put_back(*number, action);
    }
}

fn take_over(number: libc::c_int) -> io::Result<libc::sigaction> {
    let mut previous = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks for the present action, which the call writes.
    if unsafe { libc::sigaction(number, ptr::null(), previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it is written.
    let previous = unsafe { previous.assume_init() };
    if previous.sa_sigaction == libc::SIG_IGN {
        return Ok(previous);
    }
    // SAFETY: all its fields are numbers, pointers or sets of bits, for which zero is a value.
    let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    ours.sa_sigaction = handler as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // Reads that a signal interrupts resume automatically: other threads read files too.
    ours.sa_flags = libc::SA_RESTART;
    // SAFETY: the set is ours; the handler does only what a handler may.
    let failed = unsafe {
        libc::sigemptyset(&mut ours.sa_mask);
        libc::sigaction(number, &ours, ptr::null_mut()) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(previous) }
}

fn put_back(number: libc::c_int, action: &libc::sigaction) {
    // SAFETY: the action is one that this call gave us. It cannot fail: the signal's number was
    // good before.
    unsafe { libc::sigaction(number, action, ptr::null_mut()) };
}

extern "C" fn handler(number: libc::c_int) {
    let signal = if number == libc::SIGINT { Signal::Interrupt } else { Signal::Terminate };
    if request(signal) {
        // SAFETY: `_exit` may be called in a handler.
        unsafe { libc::_exit(Signal::Interrupt.exit_code()) };
    }
}
