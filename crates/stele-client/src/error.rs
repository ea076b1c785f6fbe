//! Why a call brought nothing.

use serde_json::Value;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot reach {url}: {cause}. Is `stele serve` running there? STELE_URL names another address")]
    Unreachable {
        /// The address.
        url: String,
        /// What the operating system says.
        cause: String,
    },
    /// The server did not answer in time.
    #[error("{url} does not answer in time: what was asked may or may not have been done")]
    Slow {
        /// The address.
        url: String,
    },
    /// The server refuses the call.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What kind of error the server says it is: `code`, `details.error_code` or `type` of its envelope.
        code: String,
        /// What the server says.
        message: String,
    },
    /// The server takes none of the files that were sent.
    #[error("{message}")]
    Unfit {
        /// What the server says.
        message: String,
        /// Files, each with what is wrong with it: the first 100.
        problems: Vec<(String, String)>,
    },
    /// The answer is not one of a Stele server.
    #[error("{url} does not answer like a Stele server: {cause}")]
    Strange {
        /// The address.
        url: String,
        /// What is strange.
        cause: String,
    },
}

impl ClientError {
    /// The refusal in the flat envelope of Stele's own routes, or in the nested one of the Anthropic dialect.
    pub fn refused(status: u16, body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let code = text(error.pointer("/details/error_code"))
            .or_else(|| text(error.get("code")))
            .or_else(|| text(error.get("type")));
        let message = text(error.get("message")).unwrap_or_else(|| format!("refused with status {status}"));
        let listed = error.pointer("/details/problems").and_then(Value::as_array);
        let problem = |listed: &Value| Some((text(listed.get("path"))?, text(listed.get("problem"))?));
        let problems: Vec<_> = listed.into_iter().flatten().filter_map(problem).collect();
        if !problems.is_empty() {
            return Self::Unfit { message, problems };
        }
        Self::Refused { status, code: code.unwrap_or_default(), message }
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unfit { .. } => Some(400),
            Self::Unreachable { .. } | Self::Slow { .. } | Self::Strange { .. } => None,
        }
    }

    /// Whether a precondition failed: the memory changed since it was read.
    pub fn is_precondition(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "memory_precondition_failed_error")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_envelopes_are_understood() {
        let nested =
            json!({"type": "error", "error": {"type": "memory_precondition_failed_error", "message": "m"}});
        assert!(ClientError::refused(409, &nested).is_precondition());
        let flat = json!({"code": "not_found", "message": "gone", "details": {}});
        let error = ClientError::refused(404, &flat);
        assert!(matches!(&error, ClientError::Refused { code, .. } if code == "not_found"));
        assert_eq!(error.to_string(), "gone");
        assert_eq!(ClientError::refused(502, &Value::Null).to_string(), "refused with status 502");
    }
}
