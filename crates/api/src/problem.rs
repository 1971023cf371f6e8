//! Why a request was not carried out (RFC 9457).

use control::api;
use serde::Serialize;
use server::OperatorError;
use utoipa::ToSchema;

/// Why a request was not carried out.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Problem {
    /// Always `about:blank`: the status says which kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// What is wrong, for a person.
    detail: String,
    /// The same, for programs that speak PowerDNS's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    error: Option<Box<str>>,
    /// What the checker found, in settings or in files that they name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<api::Diagnostic>,
    /// The setting as it is, when somebody else has changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Box<api::Setting>>,
    /// Who changed it last, when somebody else has.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Box<api::LastChange>>,
}

impl Problem {
    pub(crate) fn new(status: u16, detail: impl Into<String>) -> Self {
        let title = hyper::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        Self {
            kind: "about:blank",
            title: title.unwrap_or("Error"),
            status,
            detail: detail.into(),
            error: None,
            diagnostics: Vec::new(),
            current: None,
            changed: None,
        }
    }

    pub(crate) const fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn into_detail(self) -> String {
        self.detail
    }

    /// Adds what is wrong with lines of a body.
    pub(crate) fn with_diagnostics(mut self, diagnostics: Vec<api::Diagnostic>) -> Self {
        self.diagnostics = diagnostics;
        self
    }

    #[cfg(test)]
    pub(crate) fn diagnostics(&self) -> &[api::Diagnostic] {
        &self.diagnostics
    }

    #[cfg(test)]
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Says it as PowerDNS does, too.
    pub(crate) fn for_powerdns(self) -> Self {
        Self { error: Some(self.detail.as_str().into()), ..self }
    }

    /// Adds who changed it last.
    pub(crate) fn with_change(mut self, changed: Option<api::LastChange>) -> Self {
        if let Some(api::LastChange { by, at }) = &changed {
            self.detail = format!("{}: {by} changed it last, at {at}", self.detail);
        }
        self.changed = changed.map(Box::new);
        self
    }

    /// Adds how a setting stands.
    pub(crate) fn with_current(mut self, current: Option<api::Setting>) -> Self {
        self.current = current.map(Box::new);
        self
    }
}

impl From<OperatorError> for Problem {
    fn from(error: OperatorError) -> Self {
        let status = match &error {
            OperatorError::Argument(_) => 400,
            OperatorError::Forbidden(_) | OperatorError::Locked(_) => 403,
            OperatorError::NotFound { .. } => 404,
            OperatorError::Busy(_) | OperatorError::Refused(_) => 409,
            OperatorError::Conflict(_) => 412,
            OperatorError::Invalid(_) | OperatorError::Lines(_) | OperatorError::Unfit(_) => 422,
            OperatorError::Io { .. } => 500,
            OperatorError::NotKnown(_) => 503,
            OperatorError::TimedOut(_) => 504,
            OperatorError::NotKept(_) => 507,
        };
        let problem = Self::new(status, error.to_string());
        match error {
            OperatorError::Invalid(rejected) => {
                let diagnostics = rejected.diagnostics.iter().map(api::Diagnostic::from).collect();
                Self { diagnostics, ..problem }
            }
            OperatorError::Lines(found) => {
                problem.with_diagnostics(found.iter().map(api::Diagnostic::from).collect())
            }
            _ => problem,
        }
    }
}
