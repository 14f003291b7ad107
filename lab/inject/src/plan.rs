//! The plan of injected faults, parsed once from the environment.

use libc::{EINTR, EIO, ENOLCK, ENOSPC, EOPNOTSUPP, EROFS, c_int};

/// A call that changes files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// `open` that creates or truncates a file.
    Create,
    Write,
    Rename,
    Fsync,
    Truncate,
    Unlink,
    Mkdir,
    Rmdir,
    Link,
    Flock,
}

impl FaultKind {
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Create => "create",
            FaultKind::Write => "write",
            FaultKind::Rename => "rename",
            FaultKind::Fsync => "fsync",
            FaultKind::Truncate => "truncate",
            FaultKind::Unlink => "unlink",
            FaultKind::Mkdir => "mkdir",
            FaultKind::Rmdir => "rmdir",
            FaultKind::Link => "link",
            FaultKind::Flock => "flock",
        }
    }

    /// Returns the error that a failing call of this kind returns.
    fn error(self) -> c_int {
        match self {
            FaultKind::Create | FaultKind::Write | FaultKind::Rename | FaultKind::Mkdir | FaultKind::Link => ENOSPC,
            FaultKind::Fsync | FaultKind::Truncate | FaultKind::Unlink | FaultKind::Rmdir => EIO,
            FaultKind::Flock => ENOLCK,
        }
    }
}

/// The fate of one call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Go,
    /// A write of at most this many bytes.
    Short(usize),
    Fail(c_int),
    KillBefore,
    /// Half of a write, then the process is killed.
    KillMid,
    KillAfter,
}

/// The calls that do not simply proceed.
pub enum Plan {
    /// All calls proceed.
    Watch,
    /// One call, named by its point, is killed or fails.
    Once(Fate, String),
    /// The call itself fails with the error of its kind.
    FailOnce(String),
    /// From this call on, the disk is full.
    Full(String),
    /// From this call on, the file system is read-only.
    ReadOnly(String),
    /// Writes accept at most this many bytes.
    Short(usize),
    /// Every other write is interrupted by a signal before it begins.
    Interrupt,
    /// The file system does not support locks.
    NoLocks,
}

impl Plan {
    /// Parses `kill-before POINT`, `fail POINT`, `short 7`, ...
    pub fn parse(text: &str) -> Option<Plan> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let point = || rest.to_string();
        Some(match word {
            "watch" => Plan::Watch,
            "kill-before" => Plan::Once(Fate::KillBefore, point()),
            "kill-mid" => Plan::Once(Fate::KillMid, point()),
            "kill-after" => Plan::Once(Fate::KillAfter, point()),
            "fail" => Plan::FailOnce(point()),
            "full" => Plan::Full(point()),
            "readonly" => Plan::ReadOnly(point()),
            "short" => Plan::Short(rest.parse().ok()?),
            "interrupt" => Plan::Interrupt,
            "nolocks" => Plan::NoLocks,
            _ => return None,
        })
    }

    /// Returns the fate of a call. `hit` is whether the plan's point has been passed; it stays set.
    pub fn fate(&self, kind: FaultKind, point: &str, number: u64, hit: &mut bool) -> Fate {
        let mut reached = |at: &String| {
            let is_it = at == point;
            *hit |= is_it;
            (is_it, *hit)
        };
        let from_here_on = |fails: bool, errno| if fails { Fate::Fail(errno) } else { Fate::Go };
        match self {
            Plan::Watch => Fate::Go,
            Plan::Once(fate, at) => {
                if reached(at).0 {
                    *fate
                } else {
                    Fate::Go
                }
            }
            Plan::FailOnce(at) => from_here_on(reached(at).0, kind.error()),
            Plan::Full(at) => from_here_on(reached(at).1 && kind.error() == ENOSPC, ENOSPC),
            // A lock and a sync change nothing, so a read-only mount allows them.
            Plan::ReadOnly(at) => {
                from_here_on(reached(at).1 && !matches!(kind, FaultKind::Flock | FaultKind::Fsync), EROFS)
            }
            Plan::Short(n) if kind == FaultKind::Write => Fate::Short(*n),
            Plan::Short(_) => Fate::Go,
            Plan::Interrupt => from_here_on(kind == FaultKind::Write && number.is_multiple_of(2), EINTR),
            Plan::NoLocks => from_here_on(kind == FaultKind::Flock, EOPNOTSUPP),
        }
    }
}
