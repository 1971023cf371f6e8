//! The words of the log.

values::words! {
    /// How log lines look.
    LogFormat {
        /// By where they go.
        Auto = "auto",
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
        /// The journal's own protocol.
        Journald = "journald",
    }
}

values::words! {
    /// The least important messages to log.
    LogLevel {
        /// What needs a person.
        Error = "error",
        /// What may need one.
        Warn = "warn",
        /// Changes of state.
        Info = "info",
        /// For finding mistakes.
        Debug = "debug",
        /// Everything, also what happens for every query.
        Trace = "trace",
    }
}
