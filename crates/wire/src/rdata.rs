//! Record data by the table of types.

use crate::rtypes::Field;

/// Returns how many octets of `rest` (the data from this field to its end) a field takes; `None` when it does not fit.
///
/// Names and the fields that hold names are not for this function.
pub(crate) fn extent(field: Field, rest: &[u8]) -> Option<usize> {
    let len = match field {
        Field::U8 | Field::Algorithm | Field::Scheme | Field::Protocol => 1,
        Field::U16 | Field::TypeNumber | Field::CertType | Field::ErrorCode => 2,
        Field::U32 | Field::Period | Field::Time | Field::Ipv4 => 4,
        Field::U48 | Field::Eui48 => 6,
        Field::U64 | Field::Groups64 | Field::Eui64 => 8,
        Field::Ipv6 | Field::Loc => 16,
        Field::String | Field::Tag | Field::Salt | Field::Base32Hex => 1 + usize::from(*rest.first()?),
        Field::Base64Sized => 2 + usize::from(u16::from_be_bytes(*rest.first_chunk()?)),
        Field::StringMaybe
        | Field::Strings
        | Field::Text
        | Field::Base64
        | Field::Base64Maybe
        | Field::Base64Dash
        | Field::Hex
        | Field::Types
        | Field::TypesNxt
        | Field::Ports
        | Field::Nsap
        | Field::Atma
        | Field::Prefixes
        | Field::SvcParams => rest.len(),
        Field::Name(_) | Field::A6 | Field::Ipseckey | Field::Relay | Field::Hip => return None,
    };
    (len <= rest.len()).then_some(len)
}
