//! What is logged, changed while the server runs.

use settings::LogLevel;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Registry, reload};

/// Changes the level of a running log.
pub struct LogLevelHandle(reload::Handle<LevelFilter, Registry>);

/// Returns the level of a word, as the setting `log.level` and `gannet log-level` have them.
pub(crate) fn level(word: &str) -> Option<LevelFilter> {
    LogLevel::parse(word).map(filter)
}

/// Returns what lets through what is at least as important as the setting says.
pub const fn filter(wanted: LogLevel) -> LevelFilter {
    match wanted {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

impl LogLevelHandle {
    /// Returns what changes the level of this layer.
    pub const fn new(layer: reload::Handle<LevelFilter, Registry>) -> Self {
        Self(layer)
    }

    /// Lets through what is at least as important as `level`.
    pub fn set(&self, level: LevelFilter) {
        // Fails only when the subscriber is gone, which lives as long as the process.
        let _ = self.0.reload(level);
    }

    /// Returns the level.
    pub fn level(&self) -> LevelFilter {
        self.0.clone_current().unwrap_or(LevelFilter::INFO)
    }
}
