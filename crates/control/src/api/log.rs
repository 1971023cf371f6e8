//! What is logged.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is to be logged from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogLevel {
    /// The least important that is: `error`, `warn`, `info`, `debug` or `trace`; as it is when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

/// What is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LogLevelIs {
    /// The least important that is.
    pub level: String,
    /// What the configuration says, which counts again after a reload or a restart.
    pub configured: String,
}
