//! Type bitmaps of NSEC, NSEC3 and CSYNC (RFC 4034 §4.1.2).

use wire::Rtype;

/// Octets of a window: 256 types.
const WINDOW_OCTETS: usize = 32;

/// Appends the bitmap of `types`, which may come in any order and more than once.
pub fn write_bitmap(types: impl IntoIterator<Item = Rtype>, out: &mut Vec<u8>) {
    let mut types: Vec<u16> = types.into_iter().map(|rtype| rtype.0).collect();
    types.sort_unstable();
    for window in types.chunk_by(|a, b| a >> 8 == b >> 8) {
        let Some(&first) = window.first() else { continue };
        let mut octets = [0_u8; WINDOW_OCTETS];
        let mut len = 0;
        for rtype in window {
            let low = usize::from(rtype & 0xff);
            if let Some(octet) = octets.get_mut(low / 8) {
                *octet |= 0x80 >> (low % 8);
                len = low / 8 + 1;
            }
        }
        out.push((first >> 8) as u8);
        out.push(len as u8);
        out.extend(octets.get(..len).unwrap_or(&[]));
    }
}

/// Returns whether a type is in a bitmap.
pub fn has_type(mut bitmap: &[u8], rtype: Rtype) -> bool {
    let (window, low) = ((rtype.0 >> 8) as u8, usize::from(rtype.0 & 0xff));
    while let [number, len, rest @ ..] = bitmap {
        let Some((octets, rest)) = rest.split_at_checked(usize::from(*len)) else { return false };
        if *number == window {
            return octets.get(low / 8).is_some_and(|octet| octet & (0x80 >> (low % 8)) != 0);
        }
        bitmap = rest;
    }
    false
}

/// Returns whether a bitmap has no types but these. One that cannot be read has others.
pub(crate) fn has_only(mut bitmap: &[u8], types: &[Rtype]) -> bool {
    while let [number, len, rest @ ..] = bitmap {
        let Some((octets, rest)) = rest.split_at_checked(usize::from(*len)) else { return false };
        for (low, octet) in (0..).step_by(8).zip(octets) {
            let strange = (0..8).filter(|bit| octet & (0x80 >> bit) != 0).any(|bit: u16| {
                let number = (u16::from(*number) << 8).wrapping_add(low).wrapping_add(bit);
                !types.contains(&Rtype(number))
            });
            if strange {
                return false;
            }
        }
        bitmap = rest;
    }
    bitmap.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitmap_is_that_of_rfc_4034() {
        // RFC 4034 §4.3: A MX RRSIG NSEC TYPE1234.
        let mut out = Vec::new();
        write_bitmap([Rtype(1234), Rtype::NSEC, Rtype::A, Rtype::RRSIG, Rtype::MX, Rtype::A], &mut out);
        let mut expect = vec![0, 6, 0x40, 0x01, 0, 0, 0, 0x03, 4, 27];
        expect.extend([0; 26]);
        expect.push(0x20);
        assert_eq!(out, expect);
        for rtype in [1, 15, 46, 47, 1234] {
            assert!(has_type(&out, Rtype(rtype)), "{rtype}");
        }
        for rtype in [0, 2, 48, 255, 1233, 1235, 65535] {
            assert!(!has_type(&out, Rtype(rtype)), "{rtype}");
        }
        assert!(!has_type(&[0, 6, 0x40], Rtype::A));
        let types = [Rtype::MX, Rtype::A, Rtype::RRSIG, Rtype(1234), Rtype::NSEC];
        assert!(has_only(&out, &types) && !has_only(&out, &types[1..]) && !has_only(&out, &types[..4]));
        assert!(has_only(&[], &[]) && !has_only(&[0], &types) && !has_only(&[0, 6, 0x40], &types));
    }
}
