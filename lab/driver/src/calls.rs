//! The log that the preloaded library writes, read.

/// One call that changed files, or tried to.
#[derive(Clone, Debug)]
pub struct SystemCall {
    /// Its name in every run: the kind, the file, and how many calls of that kind the file has had.
    pub point: String,
    pub kind: String,
    /// Relative to the watched folder; `.` for that folder itself.
    pub path: String,
    /// The new name of a rename or link.
    pub to: String,
    /// Where a write begins, or the size that a file is cut to.
    pub offset: u64,
    /// How many bytes a write was asked for.
    pub n_bytes: usize,
    /// What it returned; an error is negative.
    pub result: i64,
    /// The bytes that were written, if they were kept.
    pub data: Vec<u8>,
    /// `killed` or `failed` where the library did that.
    pub note: String,
}

/// The calls of a log, in order. A log that ends within a call (the process was killed) ends before
/// it.
pub fn parse(mut bytes: &[u8]) -> Vec<SystemCall> {
    let mut calls = Vec::new();
    while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, point, kind, path, to, offset, n_bytes, result, kept, note] = fields[..] else { break };
        let (Ok(offset), Ok(n_bytes), Ok(result), Ok(kept)) =
            (offset.parse::<i64>(), n_bytes.parse(), result.parse(), kept.parse::<usize>())
        else {
            break;
        };
        let Some(data) = bytes[end + 1..].get(..kept) else { break };
        calls.push(SystemCall {
            point: point.into(),
            kind: kind.into(),
            path: path.into(),
            to: to.into(),
            offset: offset.max(0) as u64,
            n_bytes,
            result,
            data: data.to_vec(),
            note: note.into(),
        });
        bytes = &bytes[end + 1 + kept..];
    }
    calls
}
