//! What happens to the server, as it happens.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which events are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EventsAsked {
    /// Of these kinds; all that the role may see when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Those behind the event with this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Those that are kept, too, not only those from now on.
    #[serde(skip_serializing_if = "is_false")]
    pub kept: bool,
    /// Only those that are kept: the responses end with them.
    #[serde(skip_serializing_if = "is_false")]
    pub ends: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(it: &bool) -> bool {
    !it
}

/// A part of a stream of events; without anything in it when nothing has happened for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EventPart {
    /// An event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// Events that the reader does not get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<EventsLost>,
    /// Whether this was the last part.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_last: bool,
}

/// Events that a reader does not get, because they are not kept any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EventsLost {
    /// How many, of all kinds; absent if the server was started again meanwhile, and nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

/// Something that happened to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Event {
    /// Its id: that of this run of the server, and a number that rises by one.
    pub id: String,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    #[serde(flatten)]
    pub what: EventOf,
}

/// What happened, by kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventOf {
    /// Something was changed while the server ran: settings, members of a set, a list, a zone, a
    /// user, a token.
    Change(ChangeEvent),
    /// The configuration, or files beside it, were read again.
    Reload(ReloadEvent),
    /// An upstream, or a whole group of them, went down or came back.
    Upstream(UpstreamEvent),
    /// A list was fetched, or could not be. A list that is as it was is no event.
    List(ListEvent),
    /// A certificate was ordered from an authority, or could not be.
    Certificate(CertificateEvent),
    /// Log-ins of a minute.
    Login(LoginEvent),
    /// A zone of another server was transferred, could not be, or has expired.
    Zone(ZoneEvent),
}

impl EventOf {
    /// The kinds.
    pub const KINDS: [&str; 7] = ["change", "reload", "upstream", "list", "certificate", "login", "zone"];

    /// Returns its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Change(_) => "change",
            Self::Reload(_) => "reload",
            Self::Upstream(_) => "upstream",
            Self::List(_) => "list",
            Self::Certificate(_) => "certificate",
            Self::Login(_) => "login",
            Self::Zone(_) => "zone",
        }
    }
}

/// Something was changed. What it says is nowhere in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ChangeEvent {
    /// The revision of the changes; absent where they are not kept by revision (zones, passwords,
    /// `unbound-control`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Who changed it.
    pub by: String,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was changed: `settings`, `set`, `list`, `zone`, `user` or `token`.
    pub what: String,
    /// The settings; none after a roll-back, or if something else was changed.
    pub paths: Vec<String>,
    /// The set, the list, the zones, the user or the token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The serial of the zone since, if its records were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// The revision that all of them are as of again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_to: Option<u64>,
}

/// The configuration, or files beside it, were read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ReloadEvent {
    /// What was read: `configuration`, `files` beside it, or `set`.
    pub what: String,
    /// Which set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The revision in use.
    pub revision: u64,
    /// Whether it came into use; otherwise what ran before goes on.
    pub is_adopted: bool,
    /// How many mistakes there are.
    pub mistakes: u64,
    /// The first of them, with its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An upstream, or a whole group of them, went down or came back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UpstreamEvent {
    /// The server; absent when it is about a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The groups that the server is in, or the group.
    pub groups: Vec<String>,
    /// Whether it answers again; of a group, whether one of its servers does.
    pub is_up: bool,
    /// Why a server is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Changes before this one that are no events, because they came too fast.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A list was fetched, or could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListEvent {
    /// The set it is for.
    pub set: String,
    /// Where it is, without secrets.
    pub url: String,
    /// Whether there is a new copy; otherwise the last good one stays in use.
    pub is_fetched: bool,
    /// Octets of the new copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<u64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A certificate was ordered from an authority, or could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CertificateEvent {
    /// What the configuration calls it.
    pub name: String,
    /// Whom it is for.
    pub names: Vec<String>,
    /// `ordered` (the first one), `renewed` or `failed`.
    pub what: String,
    /// The authority that gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// Until when it holds, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_s: Option<u64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it is tried again, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at_s: Option<u64>,
}

/// Log-ins from one prefix within a minute: sessions that were begun, and addresses that a token
/// was not shown from before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LoginEvent {
    /// The prefix, or `other prefixes`.
    pub from: String,
    /// Whether they proved who they are.
    pub is_accepted: bool,
    /// How many there were.
    pub count: u64,
}

/// A zone of another server was transferred, could not be, or has expired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ZoneEvent {
    /// The zone.
    pub zone: String,
    /// `transferred`, `failed` (once, until one is transferred or a primary answers) or `expired`.
    pub what: String,
    /// The serial of the version that is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// Why there is no new version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object_that_can_be_read_again() {
        let upstream = UpstreamEvent {
            server: Some("192.0.2.1:53".to_owned()),
            groups: vec!["main".to_owned()],
            why: Some("no answer".to_owned()),
            ..UpstreamEvent::default()
        };
        let event = Event { id: "ab-7".to_owned(), at_ms: 5, what: EventOf::Upstream(upstream) };
        let text = serde_json::to_string(&event).expect("JSON");
        assert_eq!(
            text,
            "{\"id\":\"ab-7\",\"at-ms\":5,\"kind\":\"upstream\",\"server\":\"192.0.2.1:53\",\
             \"groups\":[\"main\"],\"is-up\":false,\"why\":\"no answer\"}"
        );
        assert_eq!(serde_json::from_str::<Event>(&text).expect("an event"), event);
    }

    #[test]
    fn each_kind_has_its_word() {
        let all = [
            EventOf::Change(ChangeEvent::default()),
            EventOf::Reload(ReloadEvent::default()),
            EventOf::Upstream(UpstreamEvent::default()),
            EventOf::List(ListEvent::default()),
            EventOf::Certificate(CertificateEvent::default()),
            EventOf::Login(LoginEvent::default()),
            EventOf::Zone(ZoneEvent::default()),
        ];
        for (event, word) in all.iter().zip(EventOf::KINDS) {
            assert_eq!(event.kind(), word);
            let text = serde_json::to_string(event).expect("JSON");
            assert!(text.starts_with(&format!("{{\"kind\":\"{word}\"")), "{text}");
        }
    }
}
