//! The name of this machine, as used in the names of event files.

/// Returns the host's name, with only the characters that a file name allows; `localhost` if there
/// is none.
pub(crate) fn host_name() -> String {
    let name: String = system_name()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
        .collect();
    if name.is_empty() { "localhost".to_string() } else { name }
}

#[cfg(unix)]
fn system_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the pointer and the length are those of one array. The last byte is not offered, so
    // that the text ends in a zero even where the system cuts a long name off without one.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    if failed { String::new() } else { String::from_utf8_lossy(&name[..end]).into_owned() }
}

#[cfg(not(unix))]
fn system_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
