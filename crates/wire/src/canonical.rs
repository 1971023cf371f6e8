//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The canonical order of names (RFC 4034 §6.1), as keys that compare octet by octet.

/// Labels a name may have, root label excluded.
const LABELS_MAX: usize = 127;
/// Octets a key may have: each octet of a name may become two.
pub const KEY_OCTETS_MAX: usize = 512;

/// The key of a name.
#[derive(Clone, Copy)]
pub struct Key {
    octets: [u8; KEY_OCTETS_MAX],
    len: usize,
}

impl Key {
    /// Returns the key of the name that `labels` begin; they stand in a row, the root label may
    /// follow.
    ///
    /// Labels come from the right, in lower case, each behind a zero octet; zero and one inside of
    /// a label are written as two octets, so that nothing in a label compares like its end.
    pub fn new(labels: &[u8]) -> Self {
        let mut key = Self { octets: [0; KEY_OCTETS_MAX], len: 0 };
        let mut starts = [0_u8; LABELS_MAX];
        let mut count = 0;
        let mut at = 0_usize;
        for start in &mut starts {
            match labels.get(at) {
                Some(&len @ 1..) => {
                    *start = at as u8;
                    at += 1 + usize::from(len);
                    count += 1;
                }
                _ => break,
            }
        }
        for &start in starts.get(..count).unwrap_or(&[]).iter().rev() {
            let rest = labels.get(usize::from(start)..).unwrap_or(&[]);
            let Some((&len, rest)) = rest.split_first() else { break };
            key.push(0);
            for octet in rest.get(..usize::from(len)).unwrap_or(&[]) {
                match octet.to_ascii_lowercase() {
                    octet @ 0..=1 => {
                        key.push(1);
                        key.push(octet + 1);
                    }
                    octet => key.push(octet),
                }
            }
        }
        key
    }

    fn push(&mut self, octet: u8) {
        if let Some(place) = self.octets.get_mut(self.len) {
            *place = octet;
            self.len += 1;
        }
    }

    /// Returns the octets of the key.
    pub fn as_bytes(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or(&[])
    }
}

/// Returns the eight octets of a key after the first `skipped`, so that numbers compare like keys
/// do; where a key ends, zeros follow.
pub fn word(key: &[u8], skipped: usize) -> u64 {
    let mut octets = [0; 8];
    for (place, octet) in octets.iter_mut().zip(key.get(skipped..).unwrap_or(&[])) {
        *place = *octet;
    }
    u64::from_be_bytes(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NameBuf;

    #[test]
    fn keys_are_in_the_order_of_rfc_4034() {
        // RFC 4034 §6.1, in this order.
        let names = [
            "example.",
            "a.example.",
            "yljkjljk.a.example.",
            "Z.a.example.",
            "zABC.a.EXAMPLE.",
            "z.example.",
            "\\001.z.example.",
            "*.z.example.",
            "\\200.z.example.",
        ];
        let of = |text: &str| {
            Key::new(NameBuf::from_text(text).expect("a name").as_name().as_bytes()).as_bytes().to_vec()
        };
        let keys: Vec<Vec<u8>> = names.iter().map(|text| of(text)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        assert!(of("\\000.a.") < of("\\000\\000.a."));
        assert!(of("b.\\000.a.") < of("\\000\\000.a."));
        assert!(of("\\000.") < of("\\001."));
        assert!(of("\\001.") < of("\\002."));
        assert!(of("a.b.") < of("a\\000.b."));
        assert_eq!(of("A.B."), of("a.b."));
    }
}
