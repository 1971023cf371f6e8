//! The types of local zones.

/// What a zone does with names that have no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deny,
    Refuse,
    Static,
    Transparent,
    TypeTransparent,
    Redirect,
    BlockA,
    BlockAaaa,
    BlockAOrData,
    BlockAaaaOrData,
    AlwaysTransparent,
    AlwaysRefuse,
    AlwaysNxdomain,
    AlwaysNodata,
    AlwaysDeny,
    AlwaysNull,
    Truncate,
    NoView,
    Ipset,
}

/// What the types of zones are called; the first name of several is the usual one.
pub(crate) const KINDS: [(&str, Kind); 23] = [
    ("deny", Kind::Deny),
    ("refuse", Kind::Refuse),
    ("static", Kind::Static),
    ("transparent", Kind::Transparent),
    ("nodefault", Kind::AlwaysTransparent),
    ("typetransparent", Kind::TypeTransparent),
    ("redirect", Kind::Redirect),
    ("inform", Kind::Transparent),
    ("inform_deny", Kind::Deny),
    ("inform_redirect", Kind::Redirect),
    ("block_a", Kind::BlockA),
    ("block_aaaa", Kind::BlockAaaa),
    ("block_a_wdata", Kind::BlockAOrData),
    ("block_aaaa_wdata", Kind::BlockAaaaOrData),
    ("always_transparent", Kind::AlwaysTransparent),
    ("always_refuse", Kind::AlwaysRefuse),
    ("always_nxdomain", Kind::AlwaysNxdomain),
    ("always_nodata", Kind::AlwaysNodata),
    ("always_deny", Kind::AlwaysDeny),
    ("always_null", Kind::AlwaysNull),
    ("truncate", Kind::Truncate),
    ("noview", Kind::NoView),
    ("ipset", Kind::Ipset),
];

impl Kind {
    /// Returns whether names with data are answered with that.
    pub(crate) const fn has_data(self) -> bool {
        matches!(self, Self::Deny | Self::Refuse | Self::Static | Self::Transparent | Self::Ipset)
    }

    /// Returns the type of addresses that names of such a zone do not have.
    pub(crate) const fn blocked_type(self) -> Option<&'static str> {
        match self {
            Self::BlockA | Self::BlockAOrData => Some("A"),
            Self::BlockAaaa | Self::BlockAaaaOrData => Some("AAAA"),
            _ => None,
        }
    }

    /// Returns whether names of such a zone have the types of their data, and others are looked at
    /// as if they had none.
    pub(crate) const fn is_by_type(self) -> bool {
        matches!(self, Self::TypeTransparent | Self::BlockAOrData | Self::BlockAaaaOrData)
    }

    /// Returns what is done with names of such a zone that have no data.
    pub(crate) const fn action(self) -> &'static str {
        match self {
            Self::Deny | Self::AlwaysDeny => "drop",
            Self::Refuse | Self::AlwaysRefuse => "respond(refused, authoritative)",
            Self::Static | Self::AlwaysNxdomain => "respond(nxdomain, authoritative)",
            Self::Transparent
            | Self::TypeTransparent
            | Self::Redirect
            | Self::BlockA
            | Self::BlockAaaa
            | Self::BlockAOrData
            | Self::BlockAaaaOrData
            | Self::NoView
            | Self::Ipset
            | Self::Truncate
            | Self::AlwaysTransparent => "return",
            Self::AlwaysNodata => "respond(noerror, authoritative)",
            Self::AlwaysNull => "block(null, ttl 1h, ede none, authoritative, without-soa)",
        }
    }

    /// Returns its name.
    pub(crate) fn word(self) -> String {
        let word = KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |&(word, _)| word);
        word.replace('_', "-")
    }
}

/// Returns the type of zones that a word stands for.
pub(crate) fn kind_of(word: &str) -> Option<Kind> {
    KINDS.iter().find(|(known, _)| *known == word).map(|&(_, kind)| kind)
}

/// Returns whether zones of a type all do the same, so that many of them are one set of names, and
/// nothing is said of each.
pub(crate) fn is_alike_in_bulk(word: &str) -> bool {
    let has_rules_of_its_own =
        |kind| matches!(kind, Kind::Redirect | Kind::NoView | Kind::Ipset | Kind::Truncate);
    word != "nodefault"
        && !word.starts_with("inform")
        && kind_of(word).is_some_and(|kind| !has_rules_of_its_own(kind))
}

/// Returns the name of a type of local zones as they are listed; none of what is no type.
pub fn kind_word(word: &str) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == word).map(|&(known, _)| known)
}
