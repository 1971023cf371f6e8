//! How long things took, as histograms.

use super::{Exposition, Numbers};

/// Adds how long clients waited and replies of upstreams took.
pub(super) fn add(out: &mut Exposition, numbers: &Numbers<'_>) {
    let Numbers { waits, replies, upstreams, .. } = *numbers;
    for (source, buckets) in waits {
        let help = "Time for which clients waited for answers that were not in memory, by what for.";
        out.histogram("gannet_wait_seconds", help, &[("source", source)], buckets);
    }
    for (transport, buckets) in replies {
        let help = "Time from queries to their replies, by transport; queries that waited for nobody are below the lowest bound.";
        out.histogram("gannet_reply_seconds", help, &[("transport", transport)], buckets);
    }
    for ([pool, server], buckets) in upstreams {
        let help = "Time that the upstream's replies took, each from when its query was sent.";
        out.histogram("gannet_upstream_reply_seconds", help, &[("pool", pool), ("server", server)], buckets);
    }
}
