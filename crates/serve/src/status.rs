//! The outcome of a failed request: TensorFlow's code and a message, for both protocols.

use std::fmt;

use estimand_tensor::{Error, ErrorKind};

/// The code of a [`Status`]; the numbers are gRPC's and TensorFlow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The client went away.
    Cancelled = 1,
    /// An error that has no other code.
    Unknown = 2,
    /// The request is wrong, whatever the server holds.
    InvalidArgument = 3,
    /// The time limit of the request has passed.
    DeadlineExceeded = 4,
    /// There is no such model or version.
    NotFound = 5,
    /// It exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// The server is full: try again later.
    ResourceExhausted = 8,
    /// The request does not fit to what the server holds.
    FailedPrecondition = 9,
    /// A conflict with another request.
    Aborted = 10,
    /// A value is out of range.
    OutOfRange = 11,
    /// The server cannot do this.
    Unimplemented = 12,
    /// A bug in the server.
    Internal = 13,
    /// The server is starting or stopping.
    Unavailable = 14,
    /// Data is lost or damaged.
    DataLoss = 15,
    /// The caller is unknown.
    Unauthenticated = 16,
}

impl Code {
    /// All codes; the index of each is its number.
    pub const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// TensorFlow's spelling, such as `INVALID_ARGUMENT`.
    pub fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// The status code of HTTP that TensorFlow Serving answers with.
    pub fn http(self) -> u16 {
        match self {
            Code::Ok => 200,
            Code::Cancelled => 499,
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
            Code::DeadlineExceeded => 504,
            Code::NotFound => 404,
            Code::AlreadyExists | Code::Aborted => 409,
            Code::PermissionDenied => 403,
            Code::ResourceExhausted => 429,
            Code::Unimplemented => 501,
            Code::Unavailable => 503,
            Code::Unauthenticated => 401,
            Code::Unknown | Code::Internal | Code::DataLoss => 500,
        }
    }
}

/// The outcome of a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The kind of failure.
    pub code: Code,
    /// What was wrong, and where.
    pub message: String,
}

/// The result of serving a request.
pub type Answer<T> = Result<T, Status>;

impl Status {
    /// Creates a status.
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status { code, message: message.into() }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Status {
        Status::new(Code::InvalidArgument, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Status {
        Status::new(Code::NotFound, message)
    }

    /// The time limit has passed.
    pub fn late(message: impl Into<String>) -> Status {
        Status::new(Code::DeadlineExceeded, message)
    }

    /// The server is full.
    pub fn full(message: impl Into<String>) -> Status {
        Status::new(Code::ResourceExhausted, message)
    }
}

/// As TensorFlow prints a status inside of another message: `INVALID_ARGUMENT: text`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

/// An error of a model that runs: bugs are `Internal`, everything else comes from the request.
impl From<Error> for Status {
    fn from(error: Error) -> Status {
        let code = match error.kind() {
            ErrorKind::Internal => Code::Internal,
            ErrorKind::Unsupported => Code::Unimplemented,
            ErrorKind::Io { .. } | ErrorKind::Checkpoint { .. } => Code::DataLoss,
            _ => Code::InvalidArgument,
        };
        Status::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_code_is_its_number() {
        for (i, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, i);
        }
    }
}
