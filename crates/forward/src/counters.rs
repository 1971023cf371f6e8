//! What one worker counts about fetches. Only its worker writes; anybody may read and add up.

events::counters! {
    fetches: "Fetches begun for clients and refreshes.",
    retransmitted: "Queries sent again because no reply came in time.",
    hedged: "Queries also sent to a second upstream because the first was slow.",
    explored: "Queries also sent to another upstream to measure it.",
    fallbacks: "Queries sent to the next upstream after an unusable reply or a network error.",
    upstreams_down: "Times an upstream was taken out of use.",
    upstreams_up: "Times an upstream came back.",
    probes: "Probes sent to upstreams that are down.",
    resolutions: "Look-ups of upstream names.",
    timeouts: "Fetches that failed because no upstream answered in time.",
    failures: "Fetches that failed for another reason.",
}
