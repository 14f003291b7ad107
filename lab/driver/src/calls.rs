//! Parses the log that the preloaded library writes.

/// One call that changed files, or tried to.
#[derive(Clone, Debug)]
pub struct SystemCall {
    /// Its name, the same in every run: the kind, the file, and the count of calls of that kind on
    /// the file.
    pub point: String,
    pub kind: String,
    /// The path relative to the watched folder; `.` for that folder itself.
    pub path: String,
    /// The new name of a rename or link.
    pub to: String,
    /// The offset of a write, or the new size of a truncated file.
    pub offset: u64,
    /// The number of bytes that a write requested.
    pub n_bytes: usize,
    /// The return value; an error is negative.
    pub result: i64,
    /// The written bytes, if they were recorded.
    pub data: Vec<u8>,
    /// `killed` or `failed` if the library did that.
    pub note: String,
}

/// Parses the calls of a log, in order. If the process was killed and the log ends within a call,
/// that call is left out.
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
