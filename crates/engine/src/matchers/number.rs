//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Numbers of a query that conditions compare.

use clients::subnet::client_subnet;
use wire::Query;

/// Which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The octets of a UDP message that the client says it takes; without EDNS, 512 (RFC 6891
    /// §6.2.5).
    EdnsSize,
    /// The labels of the name asked for, without that of the root (RFC 9499 §2).
    QnameLabels,
    /// The octets of the name asked for, with those of the lengths and the root: 1 to 255 (RFC 1035
    /// §3.1).
    QnameLength,
    /// The bits of the IPv4 network that the client asks for (RFC 7871); 0: it names none.
    SubnetIpv4Bits,
    /// The bits of the IPv6 network that the client asks for; 0: it names none.
    SubnetIpv6Bits,
}

impl Number {
    /// Returns it.
    pub(crate) fn of(self, query: &Query<'_>) -> u16 {
        match self {
            Self::EdnsSize => query.edns.map_or(0, |edns| edns.udp_size).max(512),
            Self::QnameLabels => query.question.qname.label_count() as u16,
            Self::QnameLength => query.question.qname.len() as u16,
            Self::SubnetIpv4Bits => subnet_bits(query, 1),
            Self::SubnetIpv6Bits => subnet_bits(query, 2),
        }
    }

    /// Returns its word in conditions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::EdnsSize => "edns-size",
            Self::QnameLabels => "qname-labels",
            Self::QnameLength => "qname-length",
            Self::SubnetIpv4Bits => "subnet-ipv4-bits",
            Self::SubnetIpv6Bits => "subnet-ipv6-bits",
        }
    }
}

/// Returns the bits of the client's subnet, if it is of that family.
fn subnet_bits(query: &Query<'_>, family: u8) -> u16 {
    client_subnet(query).filter(|subnet| subnet.family == family).map_or(0, |subnet| u16::from(subnet.prefix))
}
