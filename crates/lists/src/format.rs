//! How lists are written.

values::words! {
    /// How a list is written.
    ListFormat {
        /// A rule on names on each line: `domain:`, `full:`, `keyword:`, `regexp:`.
        Names = "names",
        /// An address, a prefix or a range on each line.
        Addresses = "addresses",
        /// The `geosite.dat` of v2ray.
        Geosite = "geosite",
        /// The `geoip.dat` of v2ray.
        Geoip = "geoip",
        /// The syntax of AdGuard and Adblock Plus.
        Adguard = "adguard",
        /// A hosts file: the names in it.
        Hosts = "hosts",
        /// A dnsmasq configuration: the names in `address=`, `server=` and `local=`.
        Dnsmasq = "dnsmasq",
        /// A response policy zone.
        Rpz = "rpz",
        /// A MaxMind database of countries or networks.
        Mmdb = "mmdb",
    }
}

impl ListFormat {
    /// Returns whether lists of this format say of names that they hold them.
    pub const fn has_names(self) -> bool {
        !matches!(self, Self::Addresses | Self::Geoip | Self::Mmdb)
    }

    /// Returns whether lists of this format hold addresses.
    pub const fn has_addresses(self) -> bool {
        matches!(self, Self::Addresses | Self::Geoip | Self::Mmdb | Self::Rpz)
    }

    /// Returns whether lists of this format have exceptions, or say what is to become of a query.
    pub const fn has_treatments(self) -> bool {
        matches!(self, Self::Adguard | Self::Rpz)
    }

    /// Returns whether parts of such a list can be selected.
    pub const fn has_parts(self) -> bool {
        matches!(self, Self::Geosite | Self::Geoip | Self::Mmdb)
    }
}
