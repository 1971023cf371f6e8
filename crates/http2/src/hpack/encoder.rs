//! Heads that leave. What is the same in every response is kept in the client's table and is one
//! octet from then on.

use super::{ENTRY_EXTRA_OCTETS, TABLE_OCTETS};

/// Entries that we keep in a client's table.
const KEPT_MAX: usize = 8;
/// The first number of entries that are not of the standard table.
const FIRST_KEPT: usize = 62;

/// Writes heads, and remembers what the client's table holds.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// Names and values in the order in which the client heard them.
    kept: Vec<(&'static str, Box<[u8]>)>,
    octets: usize,
    octets_max: usize,
    /// A new size that the client has to be told (RFC 7541 §4.2).
    told: Option<usize>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { kept: Vec::new(), octets: 0, octets_max: TABLE_OCTETS, told: None }
    }
}

impl Encoder {
    /// Hears how large the client lets its table be.
    pub(crate) fn limit(&mut self, octets: usize) {
        // More than at first is of no use to us.
        let octets = octets.min(TABLE_OCTETS);
        if octets < self.octets_max {
            // Whatever is in it: we begin again, and keep nothing where it would not fit.
            self.kept.clear();
            self.octets = 0;
            self.octets_max = octets;
            self.told = Some(octets);
        }
    }

    /// Begins a head.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>, status: u16) {
        if let Some(size) = self.told.take() {
            // Through nothing, so that the client forgets as we did.
            number(out, 0x20, 5, 0);
            number(out, 0x20, 5, size);
        }
        let known = match status {
            200 => 8,
            204 => 9,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                number(out, 0, 4, 8);
                out.push(3);
                for place in [100, 10, 1] {
                    out.push(b'0' + (status / place % 10) as u8);
                }
                return;
            }
        };
        number(out, 0x80, 7, known);
    }

    /// Writes a field that changes from response to response.
    pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
        Self::name(out, 0, 4, name);
        Self::text(out, value);
    }

    /// Writes a field that is the same in many responses.
    pub(crate) fn lasting(&mut self, out: &mut Vec<u8>, name: &'static str, value: &[u8]) {
        if let Some(place) = self.kept.iter().position(|(known, text)| *known == name && **text == *value) {
            // The latest has the lowest number.
            number(out, 0x80, 7, FIRST_KEPT + self.kept.len() - 1 - place);
            return;
        }
        let octets = name.len() + value.len() + ENTRY_EXTRA_OCTETS;
        if self.kept.len() >= KEPT_MAX || self.octets + octets > self.octets_max {
            return Self::field(out, name, value);
        }
        Self::name(out, 0x40, 6, name);
        Self::text(out, value);
        self.kept.push((name, value.into()));
        self.octets += octets;
    }

    fn name(out: &mut Vec<u8>, first: u8, bits: u32, name: &str) {
        let known = match name {
            "allow" => 22,
            "cache-control" => 24,
            "content-length" => 28,
            "content-type" => 31,
            _ => {
                number(out, first, bits, 0);
                return Self::text(out, name.as_bytes());
            }
        };
        number(out, first, bits, known);
    }

    fn text(out: &mut Vec<u8>, text: &[u8]) {
        number(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

/// Writes a number behind the flags in `first` (RFC 7541 §5.1).
fn number(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1_usize << bits) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;
    use crate::head::{Bounds, Head};

    /// Reads what an encoder wrote; the status is a pseudo-header that requests have not.
    fn read(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let mut head = Head::default();
        head.clear(Bounds { octets_max: 16 << 10, fields_max: 64 });
        decoder.decode(block, &mut head).expect("a head");
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        head.fields().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn what_lasts_is_said_once() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let mut lengths = Vec::new();
        for (round, size) in [None, None, Some(8192), Some(120), None, Some(0), None].into_iter().enumerate()
        {
            if let Some(size) = size {
                encoder.limit(size);
            }
            let mut block = Vec::new();
            encoder.begin(&mut block, if round == 0 { 503 } else { 200 });
            encoder.lasting(&mut block, "content-type", b"application/dns-message");
            encoder.lasting(&mut block, "alt-svc", b"h3=\":443\"; ma=86400");
            Encoder::field(&mut block, "cache-control", b"max-age=300");
            let fields = read(&mut decoder, &block);
            let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            let expect = [
                ("content-type", "application/dns-message"),
                ("alt-svc", "h3=\":443\"; ma=86400"),
                ("cache-control", "max-age=300"),
            ];
            assert_eq!(fields, expect, "round {round}");
            lengths.push(block.len());
        }
        assert_eq!(lengths[1], 1 + 1 + 1 + 2 + 1 + 11);
        assert_eq!(lengths[2], lengths[1], "a larger table changes nothing");
        assert!(lengths[4] < lengths[0] && lengths[4] > lengths[1], "one of the two fits: {lengths:?}");
        assert!(lengths[6] > lengths[4], "nothing fits: {lengths:?}");
    }

    #[test]
    fn numbers_have_as_many_octets_as_they_need() {
        // RFC 7541 §C.1.
        for (first, bits, value, expect) in
            [(0, 5, 10, &[10][..]), (0, 5, 1337, &[31, 154, 10]), (0, 8, 42, &[42])]
        {
            let mut out = Vec::new();
            number(&mut out, first, bits, value);
            assert_eq!(out, expect, "{value}");
        }
    }
}
