//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! Hashes of names as NSEC3 has them (RFC 5155 §5). SHA-1 protects nothing here: it spreads names.

use wire::Name;

/// Octets of a hash.
pub(crate) const HASH_OCTETS: usize = 20;
/// Octets a salt may have.
const SALT_OCTETS_MAX: usize = 255;
/// Rounds beyond which a zone's proofs are not made: RFC 9276 asks for none, and validators refuse more than this.
pub const ITERATIONS_MAX: u16 = 500;

/// The hash of a name.
pub(crate) type Hash = [u8; HASH_OCTETS];

/// How a zone hashes names.
#[derive(Clone)]
pub(crate) struct Parameters {
    iterations: u16,
    salt: Box<[u8]>,
}

// Once per configuration.
impl Parameters {
    /// Reads the data of an NSEC3PARAM, or the beginning of an NSEC3's; other algorithms than SHA-1 are not known.
    pub(crate) fn parse(rdata: &[u8]) -> Option<Self> {
        let (&[algorithm, _, i0, i1, salt_len], rest) = rdata.split_first_chunk::<5>()?;
        let salt = rest.get(..usize::from(salt_len))?;
        (algorithm == 1).then(|| Self { iterations: u16::from_be_bytes([i0, i1]), salt: salt.into() })
    }

    /// Returns the rounds after the first.
    pub(crate) const fn iterations(&self) -> u16 {
        self.iterations
    }

    /// Returns whether the data of an NSEC3 was made with these.
    pub(crate) fn are_of(&self, rdata: &[u8]) -> bool {
        Self::parse(rdata).is_some_and(|other| other.iterations == self.iterations && other.salt == self.salt)
    }
}

impl Parameters {
    /// Hashes a name, letter case ignored.
    pub(crate) fn hash(&self, name: Name<'_>) -> Hash {
        let folded = name.to_folded();
        let mut hash = self.round(folded.as_bytes());
        // Ends: `ITERATIONS_MAX` bounds what a zone that is loaded may ask for.
        for _ in 0..self.iterations {
            hash = self.round(&hash);
        }
        hash
    }

    fn round(&self, octets: &[u8]) -> Hash {
        let mut sha = Sha1::new();
        sha.update(octets);
        sha.update(self.salt.get(..self.salt.len().min(SALT_OCTETS_MAX)).unwrap_or(&[]));
        sha.finish()
    }
}

/// SHA-1 (FIPS 180-4 §6.1).
struct Sha1 {
    state: [u32; 5],
    block: [u8; 64],
    len: usize,
    total: u64,
}

impl Sha1 {
    const fn new() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
        Self { state, block: [0; 64], len: 0, total: 0 }
    }

    fn update(&mut self, mut octets: &[u8]) {
        self.total += octets.len() as u64;
        while !octets.is_empty() {
            let room = self.block.get_mut(self.len..).unwrap_or(&mut []);
            let (now, later) = octets.split_at(octets.len().min(room.len()));
            for (place, octet) in room.iter_mut().zip(now) {
                *place = *octet;
            }
            self.len += now.len();
            octets = later;
            if self.len == 64 {
                self.compress();
            }
        }
    }

    fn finish(mut self) -> Hash {
        let bits = self.total * 8;
        self.update(&[0x80]);
        while self.len != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_be_bytes());
        let mut hash = [0; HASH_OCTETS];
        for (place, word) in hash.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *place = word.to_be_bytes();
        }
        hash
    }

    fn compress(&mut self) {
        self.len = 0;
        let mut words = [0_u32; 16];
        for (word, octets) in words.iter_mut().zip(self.block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*octets);
        }
        let [mut a, mut b, mut c, mut d, mut e] = self.state;
        for round in 0..80_usize {
            let (f, k) = match round {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc_u32),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let [word, ..] = words;
            let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
            // The schedule slides: the first word makes room for the one sixteen rounds on.
            let [w0, _, w2, .., w8, _, _, _, _, w13, _, _] = words;
            words.rotate_left(1);
            let [.., last] = &mut words;
            *last = (w0 ^ w2 ^ w8 ^ w13).rotate_left(1);
        }
        for (state, word) in self.state.iter_mut().zip([a, b, c, d, e]) {
            *state = state.wrapping_add(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NameBuf;

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn sha_1_is_that_of_the_standard() {
        for (text, hash) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
        ] {
            let mut sha = Sha1::new();
            sha.update(text.as_bytes());
            assert_eq!(hex(&sha.finish()), hash, "{text}");
        }
        let mut sha = Sha1::new();
        for _ in 0..10_000 {
            sha.update(&[b'a'; 100]);
        }
        assert_eq!(hex(&sha.finish()), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }

    #[test]
    fn names_hash_as_in_rfc_5155_appendix_a() {
        let parameters = Parameters::parse(&[1, 0, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xdd]).expect("parameters");
        for (name, hash) in [
            ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            ("a.example", "35mthgpgcu1qg68fab165klnsnk3dpvl"),
            ("ns1.example", "2t7b4g4vsa5smi47k61mv5bv1a22bojr"),
            ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
            ("2T7B4G4VSA5SMI47K61MV5BV1A22BOJR.example", "kohar7mbb8dc2ce8a9qvl8hon4k53uhi"),
        ] {
            let name = NameBuf::from_text(name).expect("a name");
            let expect = wire::text::read_base32_hex(hash.as_bytes()).expect("Base32hex");
            assert_eq!(parameters.hash(name.as_name()).as_slice(), expect);
        }
    }
}
