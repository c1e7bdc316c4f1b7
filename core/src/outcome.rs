//! What came of an attempt. The remote side failing is data, never an error.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// What came of one attempt, as far as the sender can know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// A final response arrived. Its status decides, whatever became of its body afterwards.
    Answered {
        /// The status code, 100 to 999.
        status: u16,
        /// What a valid `Retry-After` asked for, counted from the arrival of the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Millis>,
    },
    /// No response arrived.
    Failed {
        /// What happened instead.
        failure: Failure,
    },
    /// The process that made the attempt ended before it could tell. The receiver may or may not
    /// have acted, which is why the retry carries the same event id.
    Unknown,
}

/// Why no response arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The host name did not resolve.
    Dns,
    /// The connection was refused, or the network said that the host cannot be reached.
    ConnectRefused,
    /// The connection was not established in time.
    ConnectTimeout,
    /// The TLS handshake failed, or the certificate was not accepted.
    Tls,
    /// The connection broke after it was established. The request may have been acted on.
    Reset,
    /// No response within the total timeout. The request may have been acted on.
    Timeout,
    /// What arrived was not HTTP.
    Protocol,
    /// The head of the response was larger than is read. A body never is too large: what is beyond
    /// the part that is kept is left unread, and the status decides.
    Oversize,
    /// Our own settings forbid the request; nothing was sent.
    Blocked,
}

impl Failure {
    /// Each of them.
    pub const ALL: [Self; 9] = [
        Self::Dns,
        Self::ConnectRefused,
        Self::ConnectTimeout,
        Self::Tls,
        Self::Reset,
        Self::Timeout,
        Self::Protocol,
        Self::Oversize,
        Self::Blocked,
    ];

    /// A stable name: `connect_timeout`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Oversize => "oversize",
            Self::Blocked => "blocked",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { status, retry_after: None } => write!(f, "{status}"),
            Self::Answered { status, retry_after: Some(wait) } => {
                write!(f, "{status}, retry after {wait}")
            }
            Self::Failed { failure } => f.write_str(failure.as_str()),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}
