//! Whether the state of a run can be copied before it is written.

/// Whether there is room for a copy of so many bytes: then checkpoints are written in the
/// background, from a copy, while training goes on.
pub(crate) fn has_room(bytes: u64) -> bool {
    fits(bytes, available())
}

/// A copy may take a quarter of what is free. A system that does not say how much that is has
/// enough.
fn fits(bytes: u64, available: Option<u64>) -> bool {
    available.is_none_or(|available| bytes <= available / 4)
}

/// Bytes that programs can have without others being swapped out; only Linux tells.
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
