//! Stderr, shared by log lines and the bar: lines are written above the bar, which stays last.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// The text of the terminal's last line: a bar, or nothing.
static BAR: Mutex<String> = Mutex::new(String::new());

/// Moves to the beginning of the line and erases it.
const ERASE: &str = "\r\x1b[2K";

/// Writes a whole line.
pub(super) fn line(text: &str) {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner);
    put(&above(text, &bar));
}

/// Replaces the current bar; an empty text removes it.
pub(super) fn bar(text: &str) {
    let mut bar = BAR.lock().unwrap_or_else(PoisonError::into_inner);
    if *bar != text {
        put(&format!("{ERASE}{text}"));
        text.clone_into(&mut bar);
    }
}

/// Returns a line, followed by the bar that it pushes down.
fn above(text: &str, bar: &str) -> String {
    if bar.is_empty() { format!("{text}\n") } else { format!("{ERASE}{text}\n{bar}") }
}

/// Writes the text with one write, so that lines of several processes do not mix. A closed stderr
/// must not end a training.
fn put(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns whether stderr is a terminal that can erase a bar.
pub(super) fn can_show_bar() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns the width of stderr's terminal in columns; 80 if it is unknown.
pub(super) fn width() -> usize {
    columns().filter(|&n| n > 0).unwrap_or(80)
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: this request writes one `winsize`, which is ours.
    let failed = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) } != 0;
    (!failed).then_some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_above_the_bar() {
        assert_eq!(above("saved", ""), "saved\n");
        assert_eq!(above("saved", "50%"), "\r\x1b[2Ksaved\n50%");
    }
}
