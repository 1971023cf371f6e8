//! Who is banned.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which bans; all when absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BansOf {
    /// Those that hold for this address or prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Those after this one, by its `id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// At most so many; 1,000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Whom to ban.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BanAdd {
    /// An address or a prefix. Its queries get no reply.
    pub prefix: String,
    /// For how many seconds; until somebody ends it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub for_s: Option<u64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The ETag that the bans of the prefix have to have: `*` any, nothing if no operator has
    /// banned it. Not compared when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether it is only checked.
    #[serde(default)]
    pub is_dry_run: bool,
}

/// Whom to ban no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BanRemove {
    /// The address or prefix that is banned. Bans by the rate limit of prefixes within it end, too.
    pub prefix: String,
    /// The ETag that the bans of the prefix have to have, or `*`. Not compared when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether it is only checked.
    #[serde(default)]
    pub is_dry_run: bool,
}

/// Where a ban comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BanSource {
    /// The setting `deny`.
    Configuration,
    /// The set that the setting `deny-set` names.
    Set,
    /// The rate limit.
    RateLimit,
    /// An operator, while the server runs.
    #[default]
    Operator,
}

impl BanSource {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Configuration, Self::Set, Self::RateLimit, Self::Operator];

    /// Returns what it is called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Set => "set",
            Self::RateLimit => "rate-limit",
            Self::Operator => "operator",
        }
    }
}

/// A prefix that is banned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Ban {
    /// Names it among all bans: a prefix may be banned for several reasons.
    pub id: String,
    /// The prefix.
    pub prefix: String,
    /// Where the ban comes from.
    pub source: BanSource,
    /// The set that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// When it ends (RFC 3339); absent if it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Seconds until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in_s: Option<u64>,
    /// Who banned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The change that made it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

impl Ban {
    /// Returns what bans are known by: others are known by something else.
    pub fn tag<'b>(bans: impl IntoIterator<Item = &'b Self>) -> String {
        let part = |ban: &Self| format!("{} {}", ban.id, ban.revision.unwrap_or(0));
        let parts: Vec<String> = bans.into_iter().map(part).collect();
        super::tag(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// What became of a change of bans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BanChanged {
    /// How many bans began, changed or ended, or would have.
    pub changed: u64,
    /// The bans that hold for the prefix then, or would.
    pub bans: Vec<Ban>,
    /// Whether it was only checked.
    pub is_dry_run: bool,
}
