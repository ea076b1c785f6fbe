//! Why a call of a model did not answer. Never what the provider said: its text may repeat the conversation or a key.

/// The class of a failure, as runs and sessions show it. spec/recursion.md 9.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The provider wants fewer calls.
    RateLimited,
    /// It did not answer in time.
    Timeout,
    /// All else.
    Error,
}

impl ErrorClass {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Timeout => "model_timeout",
            Self::Error => "model_error",
        }
    }
}

/// What went wrong where no class says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No connection.
    #[error("cannot be reached: see that it runs, and its base_url")]
    Unreachable,
    /// The connection ended before the answer did.
    #[error("broke off in its answer")]
    BrokenOff,
    /// The answer is not what its wire says.
    #[error("answered what cannot be read: see its kind and base_url")]
    Unreadable,
    /// The answer was larger than any sensible one.
    #[error("answered more than is taken")]
    TooLarge,
    /// The provider refuses the request as malformed.
    #[error(
        "refuses the request as malformed: see its kind, and tools = false where its models take no tools"
    )]
    Malformed,
    /// The provider does not know the key.
    #[error("refuses the key: see api_key_env or api_key_file, and what the key may do")]
    Key,
    /// The provider does not know the address or the model.
    #[error("knows no such model or address: see the model's name and base_url")]
    NotFound,
    /// The request is too large.
    #[error("refuses the request as too large")]
    RequestTooLarge,
    /// The provider sends elsewhere; the key goes to no other address than the configured one.
    #[error("sends elsewhere: name its true address as base_url")]
    Redirected,
    /// The provider has trouble of its own, or any other status.
    #[error("failed")]
    Status,
}

/// Why a call failed, after all its tries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// There is no provider at all.
    #[error("no model provider is configured: add a [models.providers.NAME] table to stele.toml")]
    Unconfigured,
    /// No provider has the model.
    #[error("no configured provider lists the model {name:?}: `stele model list` shows those there are")]
    UnknownModel {
        /// As it was named.
        name: String,
    },
    /// The providers could not be asked what they list.
    #[error("no model provider can be reached: {}", .providers.join(", "))]
    Unreachable {
        /// Those that were asked.
        providers: Vec<String>,
    },
    /// The provider wants fewer calls.
    #[error("the model provider {provider} refuses for now: too many calls (status {status})")]
    RateLimited {
        /// The provider.
        provider: String,
        /// Its status.
        status: u16,
        /// Seconds that it asks to wait, where it says.
        retry_after_secs: Option<u64>,
    },
    /// No whole answer in time.
    #[error("the model provider {provider} did not answer within {secs} s")]
    TimedOut {
        /// The provider.
        provider: String,
        /// The time it had, in seconds.
        secs: u64,
    },
    /// Anything else.
    #[error("the model provider {provider} {fault}{}", .status.map(|s| format!(" (status {s})")).unwrap_or_default())]
    Failed {
        /// The provider.
        provider: String,
        /// Its status, where it answered with one that is a failure.
        status: Option<u16>,
        /// What went wrong.
        fault: Fault,
    },
    /// The conversation does not fit into the model's context.
    #[error("the conversation is longer than the model of {provider} can read: see context_tokens")]
    Overflow {
        /// The provider.
        provider: String,
        /// Its status, where it answered with one that is a failure.
        status: Option<u16>,
    },
    /// The model refused.
    #[error("the model of {provider} refused")]
    Refused {
        /// The provider.
        provider: String,
    },
    /// The answer reached its most tokens.
    #[error("the answer of the model of {provider} was cut: it reached the most tokens asked for")]
    Cut {
        /// The provider.
        provider: String,
    },
    /// The provider failed so often that it is left alone for a while; no call was made.
    #[error("the model provider {provider} failed too often and rests for {secs} s more")]
    Resting {
        /// The provider.
        provider: String,
        /// Seconds until it is asked again.
        secs: u64,
    },
}

impl ModelError {
    /// Its class.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::RateLimited { .. } => ErrorClass::RateLimited,
            Self::TimedOut { .. } => ErrorClass::Timeout,
            Self::Unconfigured
            | Self::UnknownModel { .. }
            | Self::Unreachable { .. }
            | Self::Failed { .. }
            | Self::Overflow { .. }
            | Self::Refused { .. }
            | Self::Cut { .. }
            | Self::Resting { .. } => ErrorClass::Error,
        }
    }

    /// The status that the provider answered with, where it was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::RateLimited { status, .. } => Some(*status),
            Self::Failed { status, .. } | Self::Overflow { status, .. } => *status,
            _ => None,
        }
    }

    /// Seconds after which a caller may try again where the provider is the reason to wait, and no call was made or
    /// it says so itself.
    pub fn wait_secs(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_secs, .. } => *retry_after_secs,
            Self::Resting { secs, .. } => Some(*secs),
            _ => None,
        }
    }

    /// Whether the same conversation would fail in the same way again, whatever the provider's state.
    pub fn is_of_the_conversation(&self) -> bool {
        match self {
            Self::Overflow { .. } | Self::Refused { .. } | Self::Cut { .. } => true,
            Self::Failed { fault, .. } => matches!(fault, Fault::Malformed | Fault::RequestTooLarge),
            _ => false,
        }
    }
}
