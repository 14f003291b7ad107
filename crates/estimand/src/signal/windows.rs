//! A handler of console events. Windows calls it in a separate thread and stacks handlers itself.

use std::time::Duration;
use std::{io, process, thread};

use super::{Signal, request};

const CTRL_C_EVENT: u32 = 0;
const CTRL_BREAK_EVENT: u32 = 1;

type Handler = unsafe extern "system" fn(u32) -> i32;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn SetConsoleCtrlHandler(handler: Option<Handler>, add: i32) -> i32;
}

/// Windows itself remembers the previous handlers.
pub(super) type Previous = ();

pub(super) fn install() -> io::Result<Previous> {
    // SAFETY: the handler has the type that Windows calls and lives as long as the process.
    let done = unsafe { SetConsoleCtrlHandler(Some(handler), 1) } != 0;
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn restore(_: &Previous) {
    // SAFETY: takes away the handler that `install` has added.
    unsafe { SetConsoleCtrlHandler(Some(handler), 0) };
}

unsafe extern "system" fn handler(event: u32) -> i32 {
    let interrupt = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    if request(if interrupt { Signal::Interrupt } else { Signal::Terminate }) {
        process::exit(Signal::Interrupt.exit_code());
    }
    if !interrupt {
        // When the console closes, Windows ends the process as soon as this returns, and in any
        // case after five seconds.
        thread::sleep(Duration::from_secs(10));
    }
    1
}
