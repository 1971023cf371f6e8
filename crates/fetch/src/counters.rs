//! What one worker's fetching counts. Only its worker writes; anybody may read and add up.

use engine::counters::Counter;

/// Declares the counters with their metric names and help texts.
macro_rules! counters {
    ($($name:ident: $help:literal),* $(,)?) => {
        /// One worker's counters, on cache lines of their own.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $(#[doc = $help] pub $name: Counter,)*
        }

        impl Counters {
            /// Returns every counter's name and help text, in the order of [`Counters::read`].
            pub const DESCRIPTIONS: &[(&'static str, &'static str)] = &[$((stringify!($name), $help),)*];

            /// Calls `f` with every counter's name and value.
            pub fn read(&self, mut f: impl FnMut(&'static str, u64)) {
                $(f(stringify!($name), self.$name.read());)*
            }
        }
    };
}

counters! {
    fetches: "Fetches begun for clients and refreshes.",
    coalesced: "Queries that joined a fetch already under way.",
    sent_udp: "Queries sent to upstreams over UDP.",
    sent_tcp: "Queries sent to upstreams over TCP.",
    replies: "Replies from upstreams that belonged to a query.",
    retransmitted: "Queries sent again because no reply came in time.",
    hedged: "Queries also sent to a second upstream because the first was slow.",
    explored: "Queries also sent to another upstream to measure it.",
    fallbacks: "Queries sent to the next upstream after an unusable reply or a network error.",
    truncated: "Replies with TC, asked for again over TCP.",
    edns_refused: "Replies that made us ask again without EDNS.",
    mismatched: "Datagrams dropped because ID, question or form was wrong.",
    spoofs_suspected: "Fetches moved to TCP because of wrong replies.",
    network_errors: "Sends or connections that the network refused.",
    upstreams_down: "Times an upstream was taken out of use.",
    upstreams_up: "Times an upstream came back.",
    probes: "Probes sent to upstreams that are down.",
    resolutions: "Look-ups of upstream names.",
    timeouts: "Fetches that failed because no upstream answered in time.",
    failures: "Fetches that failed for another reason.",
    impatient: "Clients given a stale answer because the fetch took long.",
    shed_fetching: "Queries shed because too many fetches were under way.",
    shed_waiting: "Queries shed because too many queries were waiting.",
    shed_client: "Queries shed because their client had too many waiting.",
}
