//! Checks whether there is enough memory to copy the state of a run before it is written.

/// Returns whether a copy of this many bytes fits into memory. If so, checkpoints are written in
/// the background from a copy while training continues.
pub(crate) fn has_room(bytes: u64) -> bool {
    fits(bytes, available())
}

/// A copy may use a quarter of the free memory. If the system does not report the free memory, the
/// copy fits.
fn fits(bytes: u64, available: Option<u64>) -> bool {
    available.is_none_or(|available| bytes <= available / 4)
}

/// Returns the bytes that programs can use without swapping. Only Linux reports them.
fn available() -> Option<u64> {
    if cfg!(target_os = "linux") { parse(&std::fs::read_to_string("/proc/meminfo").ok()?) } else { None }
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_what_is_free() {
        assert!(fits(256, Some(1024)) && !fits(257, Some(1024)));
        assert!(fits(0, Some(0)) && fits(u64::MAX, None));
    }

    #[test]
    fn what_linux_says() {
        let text =
            "MemTotal:       16316412 kB\nMemFree:          123456 kB\nMemAvailable:    8000000 kB\nBuffers: 1 kB\n";
        assert_eq!(parse(text), Some(8_192_000_000));
        for other in ["", "MemAvailable: many kB\n", "MemAvailable: 1 MB\n", "MemAvailable: 99999999999999999999 kB"] {
            assert_eq!(parse(other), None);
        }
        assert_eq!(available().is_some(), cfg!(target_os = "linux"));
    }
}
