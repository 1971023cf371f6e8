//! The code of RFC 7541, appendix B. It is canonical, so that the lengths say everything: among
//! those of one length, and from the shorter to the longer, codes count upwards with the octets.

use super::Garbled;

/// Octets, and the end of the text.
const SYMBOLS: usize = 257;
/// The end, which must not be in the text.
const END: u16 = 256;
/// Bits of the longest code.
const BITS_MAX: usize = 30;
/// Bits that are looked up at once: all but rare octets have shorter codes.
const LOOKED_UP_BITS: u32 = 10;

/// Bits of the code of each octet.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// What the code is read with.
struct Tables {
    /// By the next bits: an octet and the length of its code; length 0 for codes that are longer.
    short: [(u8, u8); 1 << LOOKED_UP_BITS],
    /// Symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
    /// For each length, the first code of that length, put to the left of 32 bits, and where its
    /// symbol is.
    first: [(u32, u16); BITS_MAX + 2],
}

const TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        short: [(0, 0); 1 << LOOKED_UP_BITS],
        symbols: [0; SYMBOLS],
        first: [(u32::MAX, SYMBOLS as u16); BITS_MAX + 2],
    };
    let (mut code, mut count, mut length) = (0_u64, 0, 1);
    while length <= BITS_MAX {
        tables.first[length] = ((code << (32 - length)) as u32, count as u16);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                tables.symbols[count] = symbol as u16;
                if length <= LOOKED_UP_BITS as usize {
                    let spare = LOOKED_UP_BITS as usize - length;
                    let mut at = 0;
                    while at < 1 << spare {
                        tables.short[((code as usize) << spare) + at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                code += 1;
                count += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    tables
}

static LOOK_UP: Tables = TABLES;

/// Appends what `coded` stands for.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Garbled> {
    // Five bits are the shortest code.
    out.reserve(coded.len() * 8 / 5);
    let mut rest = coded;
    // The next bits, at the left, and how many there are.
    let (mut bits, mut held) = (0_u64, 0_u32);
    loop {
        while held <= 56
            && let Some((&octet, after)) = rest.split_first()
        {
            bits |= u64::from(octet) << (56 - held);
            held += 8;
            rest = after;
        }
        let (octet, length) = LOOK_UP.short[(bits >> (64 - LOOKED_UP_BITS)) as usize];
        let (octet, length) =
            if length == 0 { long((bits >> 32) as u32)? } else { (octet, u32::from(length)) };
        if length > held {
            // What is left is padding: the first bits of the end, less than an octet of them (RFC
            // 7541 §5.2).
            let padding = u64::MAX.checked_shl(64 - held).unwrap_or(0);
            return if held < 8 && bits & padding == padding { Ok(()) } else { Err(Garbled) };
        }
        bits <<= length;
        held -= length;
        out.push(octet);
    }
}

/// Reads a code that is longer than what is looked up.
#[cold]
fn long(bits: u32) -> Result<(u8, u32), Garbled> {
    let mut length = LOOKED_UP_BITS as usize + 1;
    while length < BITS_MAX && LOOK_UP.first[length + 1].0 <= bits {
        length += 1;
    }
    let (first, at) = LOOK_UP.first[length];
    let beyond = (bits.wrapping_sub(first)) >> (32 - length);
    let symbol = LOOK_UP.symbols.get(usize::from(at) + beyond as usize).copied().unwrap_or(END);
    match u8::try_from(symbol) {
        Ok(octet) => Ok((octet, length as u32)),
        Err(_) => Err(Garbled),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the code of each symbol, made from the lengths.
    fn codes() -> Vec<(u32, u32)> {
        let mut order: Vec<usize> = (0..SYMBOLS).collect();
        order.sort_by_key(|&symbol| (LENGTHS[symbol], symbol));
        let mut codes = vec![(0, 0); SYMBOLS];
        let (mut code, mut length) = (0_u32, 0);
        for symbol in order {
            let now = u32::from(LENGTHS[symbol]);
            code <<= now - length;
            length = now;
            codes[symbol] = (code, length);
            code += 1;
        }
        codes
    }

    fn encode(text: &[u8]) -> Vec<u8> {
        let codes = codes();
        let (mut bits, mut held, mut out) = (0_u64, 0, Vec::new());
        for &octet in text {
            let (code, length) = codes[usize::from(octet)];
            bits = bits << length | u64::from(code);
            held += length;
            while held >= 8 {
                out.push((bits >> (held - 8)) as u8);
                held -= 8;
            }
        }
        if held > 0 {
            out.push((bits << (8 - held)) as u8 | 0xff >> held);
        }
        out
    }

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, Garbled> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn the_code_is_that_of_the_standard() {
        let codes = codes();
        // RFC 7541, appendix B: of each length one, and the end.
        for (symbol, code, length) in [
            (48, 0x0, 5),
            (116, 0x9, 5),
            (32, 0x14, 6),
            (122, 0x7b, 7),
            (90, 0xfd, 8),
            (63, 0x3fc, 10),
            (124, 0x7fc, 11),
            (35, 0xffa, 12),
            (0, 0x1ff8, 13),
            (125, 0x3ffd, 14),
            (123, 0x7ffe, 15),
            (92, 0x7fff0, 19),
            (128, 0xfffe6, 20),
            (153, 0x1fffdc, 21),
            (129, 0x3fffd2, 22),
            (1, 0x7fffd8, 23),
            (9, 0xffffea, 24),
            (199, 0x1ffffec, 25),
            (192, 0x3ffffe0, 26),
            (203, 0x7ffffde, 27),
            (2, 0xfffffe2, 28),
            (10, 0x3ffffffc, 30),
            (256, 0x3fffffff, 30),
        ] {
            assert_eq!(codes[symbol], (code, length), "{symbol}");
        }
        // RFC 7541 §C.4.1.
        let coded = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&coded), Ok(b"www.example.com".to_vec()));
    }

    #[test]
    fn padding_is_short_and_of_ones() {
        assert_eq!(decoded(b""), Ok(Vec::new()));
        // "0" is 00000.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(Garbled), "not of ones");
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(Garbled), "eight bits or more");
        assert_eq!(decoded(&[0xff]), Err(Garbled), "an octet of nothing else");
        assert_eq!(decoded(&[0xff; 4]), Err(Garbled), "the end");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encode(&text)), Ok(text));
        }

        #[test]
        fn no_octets_panic(coded in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut out = Vec::new();
            let _ = decode(&coded, &mut out);
            prop_assert!(out.len() <= coded.len() * 8 / 5);
        }
    }
}
