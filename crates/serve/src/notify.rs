//! Tells systemd that the server is ready or stops, if it asks (`Type=notify`).

/// Sends a state, such as `READY=1`, to the socket that the environment names. Without one,
/// nothing happens.
pub(crate) fn notify(state: &str) {
    #[cfg(target_os = "linux")]
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = linux::send(&socket, state)
    {
        tracing::warn!("cannot tell systemd `{state}` at {}: {error}", socket.display());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = state;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::io;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    pub(super) fn send(socket: &OsStr, state: &str) -> io::Result<()> {
        // A name that begins with @ is no file.
        let address = match socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(socket)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
    }
}
