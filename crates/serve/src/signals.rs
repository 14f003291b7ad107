//! `Signals`: the signals that end a process, caught so that a server can end in order.

use estimand_tensor::{Error, Result};
use tokio::runtime::Runtime;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a process: Ctrl-C, and on Unix `SIGTERM`. They are caught from the moment
/// this is made, and no longer end the process themselves. Made by
/// [`Running::signals`](crate::Running::signals).
#[must_use = "signals no longer end the process: wait for one"]
pub struct Signals<'a> {
    runtime: &'a Runtime,
    #[cfg(unix)]
    terminated: Signal,
    #[cfg(unix)]
    interrupted: Signal,
}

impl<'a> Signals<'a> {
    pub(crate) fn catch(runtime: &'a Runtime) -> Result<Signals<'a>> {
        let _entered = runtime.enter();
        Ok(Signals {
            runtime,
            #[cfg(unix)]
            terminated: signal(SignalKind::terminate()).map_err(failed)?,
            #[cfg(unix)]
            interrupted: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    /// Returns when a signal has come since this was made.
    pub fn wait(self) -> Result<()> {
        self.runtime.block_on(async {
            #[cfg(unix)]
            {
                let (mut terminated, mut interrupted) = (self.terminated, self.interrupted);
                tokio::select! {
                    _ = terminated.recv() => {}
                    _ = interrupted.recv() => {}
                }
                Ok(())
            }
            #[cfg(not(unix))]
            tokio::signal::ctrl_c().await.map_err(failed)
        })
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::config(format!("cannot wait for signals: {error}"))
}
