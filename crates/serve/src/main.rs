//! `estimand-serve`: the server as a program, with TensorFlow Serving's flags.
//!
//! `main` reads the flags (`flags.rs`) and the files that they name (`config.rs`), logs to stderr
//! (`log.rs`), runs the server, and tells systemd (`notify.rs`).

mod config;
mod flags;
mod log;
mod notify;
mod text_proto;

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use estimand_serve::{ModelConfig, Running};
use estimand_tensor::Result;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: estimand_serve::Allocator = estimand_serve::Allocator;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("estimand-serve: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flags = flags::Flags::parse(&arguments)?;
    if flags.is_help {
        println!("{}", flags::help());
        return Ok(());
    }
    if flags.is_version {
        println!("estimand-serve {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    log::start();
    // What is served at the start is what the first look at the file is compared with.
    let (server, configured) = flags.server()?;
    let watched = flags.watched()?;
    raise_file_limit();
    let running = server.start()?;
    // Before anybody is told that the server answers: who is told may end it.
    let signals = running.signals()?;
    for (what, address) in [("gRPC and REST", running.grpc_address()), ("REST and gRPC", running.rest_address())] {
        if let Some(address) = address {
            tracing::info!("{what} at {address}");
        }
    }
    notify::notify("READY=1");
    let (end, ended) = mpsc::channel::<()>();
    std::thread::scope(|threads| {
        if let Some((file, wait)) = &watched {
            let running = &running;
            let flags = &flags;
            threads.spawn(move || watch(running, configured, flags, (file, *wait), &ended));
        }
        let signalled = signals.wait();
        drop(end);
        signalled
    })?;
    notify::notify("STOPPING=1");
    tracing::info!("stopping: requests that have begun are answered");
    running.shutdown();
    Ok(())
}

/// Reads the file of models again and again, until the other end of the channel is dropped. A file
/// that is wrong changes nothing.
fn watch(
    running: &Running,
    models: Vec<ModelConfig>,
    flags: &flags::Flags,
    (file, wait): (&Path, Duration),
    ended: &mpsc::Receiver<()>,
) {
    let mut known = Some(models);
    while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
        let models = match config::models(file).and_then(|models| flags.limited(models)) {
            Ok(models) if known.as_ref() == Some(&models) => continue,
            Ok(models) => models,
            Err(error) => {
                if known.take().is_some() {
                    tracing::error!("the models stay as they are: {error}");
                }
                continue;
            }
        };
        match running.configure(models.clone()) {
            Ok(()) => tracing::info!("the models are those of {} again", file.display()),
            Err(error) => tracing::error!("the models stay as they are: {error}"),
        }
        known = Some(models);
    }
}

/// Allows as many connections as the system lets this user have.
fn raise_file_limit() {
    #[cfg(unix)]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls read or write only the struct.
        let is_raised = unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0
            }
        };
        match is_raised {
            true => tracing::info!("up to {} open files, about as many connections", limit.rlim_cur),
            false => {
                let error = std::io::Error::last_os_error();
                tracing::warn!("the limit of open files stays at {}: {error}", limit.rlim_cur);
            }
        }
    }
}
