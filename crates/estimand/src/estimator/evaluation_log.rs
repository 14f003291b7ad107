//! The lines that frame an evaluation in the log, as in TensorFlow.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tracing::info;

/// A running evaluation. Begins with a line that has the time, and ends with two.
pub(crate) struct EvaluationLog(Instant);

impl EvaluationLog {
    /// Logs the beginning; several evaluations have names.
    pub(crate) fn begin(name: Option<&str>) -> EvaluationLog {
        let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
        info!("Starting evaluation at {}{name}", time('T'));
        EvaluationLog(Instant::now())
    }

    /// Logs the end, and how long the evaluation took.
    pub(crate) fn end(self) {
        info!("Inference Time : {:.5}s", self.0.elapsed().as_secs_f64());
        // TF: a hyphen here, a `T` at the beginning.
        info!("Finished evaluation at {}", time('-'));
    }
}

/// The time now in UTC, with this sign between day and hour.
fn time(sign: char) -> String {
    format_time(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs()), sign)
}

fn format_time(secs: u64, sign: char) -> String {
    let [year, month, day] = date(secs / 86_400);
    let (hour, minute, second) = (secs / 3_600 % 24, secs / 60 % 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}{sign}{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day, from the number of days since 1970.
fn date(mut days: u64) -> [u64; 3] {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for n in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < n {
            break;
        }
        days -= n;
        month += 1;
    }
    [year, month, days + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_date_prints_them() {
        // `date -u -d @SECONDS +%FT%T`.
        assert_eq!(format_time(0, 'T'), "1970-01-01T00:00:00");
        assert_eq!(format_time(951_782_400, 'T'), "2000-02-29T00:00:00");
        assert_eq!(format_time(951_868_799, '-'), "2000-02-29-23:59:59");
        assert_eq!(format_time(1_709_251_199, 'T'), "2024-02-29T23:59:59");
        assert_eq!(format_time(1_735_689_599, 'T'), "2024-12-31T23:59:59");
        assert_eq!(format_time(4_107_542_400, 'T'), "2100-03-01T00:00:00");
    }
}
