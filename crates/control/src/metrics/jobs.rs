//! What the jobs count, in sentences.

/// What the jobs count, which has no sentence of its own elsewhere: group, name, and the sentence.
pub(super) const JOBS: [(&str, &str, &str); 25] = [
    (
        "audit-checkpoints",
        "delivered",
        "Checkpoints of the audit log that were given to those who keep them.",
    ),
    ("audit-checkpoints", "failed", "Tries to give away a checkpoint of the audit log that failed."),
    (
        "audit-checkpoints",
        "dropped",
        "Checkpoints of the audit log that found no room in the queue of a sink.",
    ),
    ("events", "told", "Records that workers told of queries."),
    ("events", "dropped", "Records that found no room in a worker's ring."),
    ("events", "read", "Records that were read from the rings."),
    ("events", "lost", "Records read that could not be understood."),
    ("events", "logged", "Lines that policies wrote to the log."),
    ("events", "unlogged", "Lines of policies that were left out of the log because there were too many."),
    ("downloads", "fetched", "Lists downloaded."),
    ("downloads", "unchanged", "Lists that had not changed at their servers."),
    ("downloads", "failed", "Lists that could not be downloaded or used."),
    ("downloads", "octets", "Octets of lists downloaded."),
    ("recorder", "written", "Queries written to the record."),
    ("recorder", "dropped", "Queries left out of the record because they came faster than they are written."),
    ("recorder", "failed", "Writes to the record that failed."),
    ("recorder", "removed", "Queries removed from the record because of their age or its size."),
    ("dnstap", "sent", "Messages written to a receiver of dnstap."),
    ("dnstap", "lost", "Messages for dnstap that found no room, or were written to a connection that ended."),
    ("dnstap", "connected", "Connections made to a receiver of dnstap."),
    ("dnstap", "failed", "Connections to a receiver of dnstap that could not be made."),
    ("ds-push", "taken", "Times a server of a parent took the DS of a zone."),
    ("ds-push", "refused", "Times no server of a parent took the DS of a zone."),
    ("signatures", "made", "Signatures made while clients waited."),
    ("signatures", "refused", "Answers refused because too many signatures were made in that second."),
];
