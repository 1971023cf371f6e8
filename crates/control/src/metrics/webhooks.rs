//! What became of events for webhooks.

use super::Exposition;

/// Adds a number of a webhook.
pub(super) fn add(out: &mut Exposition, webhook: &str, name: &str, value: u64) {
    match name {
        "waiting" => {
            let help = "Events that wait for the receiver of the webhook.";
            out.gauge("gannet_webhook_waiting", help, &[("webhook", webhook)], value);
        }
        "failed" => {
            let help = "Tries to send events to the receiver of the webhook that failed.";
            out.counter("gannet_webhook_failures_total", help, &[("webhook", webhook)], value);
        }
        outcome => {
            let labels = [("webhook", webhook), ("outcome", outcome)];
            let help = "What became of events for the receiver of the webhook.";
            out.counter("gannet_webhook_events_total", help, &labels, value);
        }
    }
}
