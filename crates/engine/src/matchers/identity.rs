//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Who a client is, as a forwarder in front of us tells it in EDNS options. Only peers on the list
//! of trusted ones are believed: anybody can write such options.

use wire::OptionCode;

use super::Facts;

/// A client's hardware address, in binary: what dnsmasq's `add-mac` sends.
pub const MAC: OptionCode = OptionCode(65001);
/// A client's hardware address as text: what dnsmasq's `add-mac=text` sends.
pub const MAC_TEXT: OptionCode = OptionCode(65073);
/// A name of the client: what dnsmasq's `add-cpe-id` sends.
pub const CLIENT_ID: OptionCode = OptionCode(65074);

/// A hardware address.
pub type Mac = [u8; 6];

/// A set of hardware addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Macs(Box<[Mac]>);

impl Macs {
    /// Builds the set.
    // Once per configuration.
    pub fn new(mut macs: Vec<Mac>) -> Self {
        macs.sort_unstable();
        macs.dedup();
        Self(macs.into_boxed_slice())
    }

    pub(super) fn has(&self, mac: Mac) -> bool {
        self.0.binary_search(&mac).is_ok()
    }
}

/// Returns the client's hardware address, in whichever form it is told.
pub(super) fn mac(facts: &Facts<'_>) -> Option<Mac> {
    match facts.edns_option(MAC) {
        Some(octets) => Mac::try_from(octets).ok(),
        None => parse_mac(facts.edns_option(MAC_TEXT)?),
    }
}

/// Returns the client's name.
pub(super) fn id<'a>(facts: &'a Facts<'_>) -> Option<&'a [u8]> {
    facts.edns_option(CLIENT_ID)
}

/// Reads `00:00:5e:00:53:01`, in either letter case, with `:` or `-`.
pub fn parse_mac(text: &[u8]) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut pieces = text.split(|octet| matches!(octet, b':' | b'-'));
    for octet in &mut mac {
        let &[high, low] = pieces.next()? else { return None };
        let digit = |octet: u8| char::from(octet).to_digit(16);
        *octet = (digit(high)? << 4 | digit(low)?) as u8;
    }
    pieces.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_are_read_in_each_notation() {
        let mac = Some([0, 0, 0x5e, 0, 0x53, 0xaf]);
        for (text, expect) in [
            ("00:00:5e:00:53:af", mac),
            ("00-00-5E-00-53-AF", mac),
            ("0:0:5e:0:53:af", None),
            ("00:00:5e:00:53", None),
            ("00:00:5e:00:53:af:00", None),
            ("00:00:5e:00:53:ag", None),
            ("", None),
        ] {
            assert_eq!(parse_mac(text.as_bytes()), expect, "{text}");
        }
    }
}
