//! Clients as the record has them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Octets of a pseudonym.
pub(super) const PSEUDONYM_OCTETS: usize = 8;

/// Who asked, as far as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Client {
    /// Nobody in particular.
    Unknown,
    /// An address; of a prefix, if only that was recorded, the first.
    Address(IpAddr),
    /// What stands for an address for a day.
    Pseudonym([u8; PSEUDONYM_OCTETS]),
}

impl Client {
    /// Returns it as it stands in the database, and how many octets that is.
    pub(super) const fn octets(self) -> ([u8; 16], usize) {
        match self {
            Self::Unknown => ([0; 16], 0),
            Self::Address(IpAddr::V4(address)) => {
                let [a, b, c, d] = address.octets();
                ([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 4)
            }
            Self::Address(IpAddr::V6(address)) => (address.octets(), 16),
            Self::Pseudonym([a, b, c, d, e, f, g, h]) => {
                ([a, b, c, d, e, f, g, h, 0, 0, 0, 0, 0, 0, 0, 0], PSEUDONYM_OCTETS)
            }
        }
    }

    /// Reads what stands in the database.
    pub(super) fn read(octets: &[u8]) -> Self {
        if let Ok(octets) = <[u8; 4]>::try_from(octets) {
            return Self::Address(octets.into());
        }
        if let Ok(octets) = <[u8; 16]>::try_from(octets) {
            return Self::Address(octets.into());
        }
        <[u8; PSEUDONYM_OCTETS]>::try_from(octets).map_or(Self::Unknown, Self::Pseudonym)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Address(address) => address.fmt(f),
            Self::Pseudonym(octets) => {
                f.write_str("~")?;
                octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }
    }
}

/// Clients that are looked for: one, or those of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    first: Client,
    last: Client,
}

impl Clients {
    /// Returns the first and the last, of the same kind.
    pub(super) const fn range(self) -> (Client, Client) {
        (self.first, self.last)
    }

    /// Returns whether a client is one of them.
    pub fn contains(self, client: Client) -> bool {
        let of = |client: Client| {
            let (octets, len) = client.octets();
            (len, octets)
        };
        of(self.first).0 == of(client).0 && of(self.first) <= of(client) && of(client) <= of(self.last)
    }
}

impl From<Client> for Clients {
    fn from(client: Client) -> Self {
        Self { first: client, last: client }
    }
}

impl From<IpAddr> for Clients {
    fn from(address: IpAddr) -> Self {
        Client::Address(address).into()
    }
}

impl FromStr for Clients {
    type Err = String;

    /// Reads an address, a prefix, `unknown`, or a pseudonym as it is shown: `~` and 16 digits.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected an address, a prefix or a pseudonym such as ~0123456789abcdef".to_owned();
        if text == "unknown" {
            return Ok(Client::Unknown.into());
        }
        if let Some(digits) = text.strip_prefix('~') {
            let is_right =
                digits.len() == 2 * PSEUDONYM_OCTETS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_right).ok_or_else(wrong)?;
            return Ok(Client::Pseudonym(number.to_be_bytes()).into());
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.to_canonical().into());
        }
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let (address, bits) =
            (address.parse::<IpAddr>().map_err(|_| wrong())?, bits.parse::<u32>().map_err(|_| wrong())?);
        let (first, last): (IpAddr, IpAddr) = match address {
            IpAddr::V4(address) if bits <= 32 => {
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                (
                    (address.to_bits() & !rest).to_be_bytes().into(),
                    (address.to_bits() | rest).to_be_bytes().into(),
                )
            }
            IpAddr::V6(address) if bits <= 128 => {
                let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
                (
                    (address.to_bits() & !rest).to_be_bytes().into(),
                    (address.to_bits() | rest).to_be_bytes().into(),
                )
            }
            _ => return Err(wrong()),
        };
        Ok(Self { first: Client::Address(first), last: Client::Address(last) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_written_as_they_are_looked_for() {
        for client in [
            Client::Unknown,
            Client::Address("192.0.2.1".parse().expect("an address")),
            Client::Address("2001:db8::1".parse().expect("an address")),
            Client::Pseudonym([1, 0, 2, 0xfe, 9, 8, 7, 6]),
        ] {
            let (octets, len) = client.octets();
            assert_eq!(Client::read(&octets[..len]), client);
            assert_eq!(client.to_string().parse(), Ok(Clients::from(client)));
        }
        for wrong in ["", "~12", "~+123456789abcdef", "192.0.2.1/33", "192.0.2/24", "2001:db8::/129", "x/8"] {
            assert!(wrong.parse::<Clients>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_prefix_has_its_addresses_and_no_others() {
        let clients = |text: &str| text.parse::<Clients>().expect("a prefix");
        let client = |text: &str| Client::Address(text.parse().expect("an address"));
        assert!(clients("192.0.2.77/24").contains(client("192.0.2.0")));
        assert!(clients("192.0.2.0/24").contains(client("192.0.2.255")));
        assert!(!clients("192.0.2.0/24").contains(client("192.0.3.0")));
        assert!(!clients("::/0").contains(client("192.0.3.0")));
        assert!(clients("0.0.0.0/0").contains(client("255.255.255.255")));
        assert!(clients("2001:db8::/32").contains(client("2001:db8:ffff::1")));
        assert!(!clients("2001:db8::/32").contains(Client::Pseudonym([0x20; 8])));
    }
}
