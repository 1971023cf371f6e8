//! Hashed names (RFC 5155).

mod hash;

use wire::{Name, NameBuf, Rtype};

use crate::bitmap::write_bitmap;

/// The hash of a name. SHA-1 protects nothing here: it spreads names.
pub type Nsec3Hash = [u8; 20];

/// Flag of NSEC3: unsigned delegations may be missing from the chain (RFC 5155 §3.1.2.1).
pub(crate) const OPT_OUT: u8 = 1;

/// How names are hashed. RFC 9276 asks for no rounds and no salt, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nsec3Parameters {
    /// Rounds after the first.
    pub iterations: u16,
    /// At most 255 octets.
    pub salt: Box<[u8]>,
    /// Whether unsigned delegations are left out.
    pub opts_out: bool,
}

impl Nsec3Parameters {
    /// Reads the data of an NSEC3PARAM, or the beginning of an NSEC3's; only hash algorithm 1 is
    /// known.
    pub fn parse(rdata: &[u8]) -> Option<Self> {
        let (&[algorithm, flags, i0, i1, salt_len], rest) = rdata.split_first_chunk::<5>()?;
        let salt = rest.get(..usize::from(salt_len))?;
        (algorithm == 1).then(|| Self {
            iterations: u16::from_be_bytes([i0, i1]),
            salt: salt.into(),
            opts_out: flags & OPT_OUT != 0,
        })
    }

    /// Returns whether the data of an NSEC3 was made with the same iterations and salt.
    pub fn are_of(&self, rdata: &[u8]) -> bool {
        Self::parse(rdata).is_some_and(|other| other.iterations == self.iterations && other.salt == self.salt)
    }

    fn write_head(&self, flags: u8, out: &mut Vec<u8>) {
        out.extend([1, flags]);
        out.extend(self.iterations.to_be_bytes());
        let salt = self.salt.get(..self.salt.len().min(255)).unwrap_or(&[]);
        out.push(salt.len() as u8);
        out.extend(salt);
    }

    /// Returns the data of the NSEC3PARAM; its flags are 0 whatever the chain's are (RFC 5155
    /// §4.1.2).
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(5 + self.salt.len());
        self.write_head(0, &mut out);
        out
    }

    /// Returns the data of an NSEC3.
    pub fn write_nsec3(&self, next: &Nsec3Hash, types: impl IntoIterator<Item = Rtype>) -> Vec<u8> {
        let mut out = Vec::with_capacity(48 + self.salt.len());
        self.write_head(u8::from(self.opts_out) * OPT_OUT, &mut out);
        out.push(next.len() as u8);
        out.extend(next);
        write_bitmap(types, &mut out);
        out
    }
}

/// Returns the owner of the NSEC3 of a hash.
pub(crate) fn owner_of(hash: &Nsec3Hash, apex: Name<'_>) -> Option<NameBuf> {
    let mut label = String::with_capacity(33);
    wire::text::write_base32_hex(&mut label, hash).ok()?;
    label.make_ascii_lowercase();
    let row = [&[label.len() as u8], label.as_bytes()].concat();
    NameBuf::below(&row, apex).ok()
}

/// Returns the hash that an owner of an NSEC3 stands for.
pub(crate) fn hash_of(owner: Name<'_>) -> Option<Nsec3Hash> {
    wire::text::read_base32_hex(owner.labels().next()?)?.try_into().ok()
}

/// Returns the next hash and the bitmap of an NSEC3's data.
pub(crate) fn next_and_types(rdata: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&salt, rest) = rdata.get(4..)?.split_first()?;
    let (&len, rest) = rest.get(usize::from(salt)..)?.split_first()?;
    rest.split_at_checked(usize::from(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_in_rfc_5155_appendix_a() {
        let parameters =
            Nsec3Parameters::parse(&[1, 1, 0, 12, 4, 0xaa, 0xbb, 0xcc, 0xdd]).expect("parameters");
        assert!(parameters.opts_out);
        let apex = NameBuf::from_text("example").expect("a name");
        for (name, hash) in [
            ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            ("a.example", "35mthgpgcu1qg68fab165klnsnk3dpvl"),
            ("ns1.example", "2t7b4g4vsa5smi47k61mv5bv1a22bojr"),
            ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
            ("X.Y.W.example", "2vptu5timamqttgl4luu9kg21e0aor3s"),
            ("2T7B4G4VSA5SMI47K61MV5BV1A22BOJR.example", "kohar7mbb8dc2ce8a9qvl8hon4k53uhi"),
        ] {
            let name = NameBuf::from_text(name).expect("a name");
            let hashed = parameters.hash(name.as_name());
            let owner = owner_of(&hashed, apex.as_name()).expect("a short apex");
            assert_eq!(owner.to_string(), format!("{hash}.example."));
            assert_eq!(hash_of(owner.as_name()), Some(hashed));
        }
    }

    /// Hashes by the definition of RFC 5155 §5, octets put together anew in each round.
    fn by_definition(name: &[u8], salt: &[u8], iterations: u16) -> Nsec3Hash {
        let round = |octets: &[u8]| -> Nsec3Hash {
            let input = [octets, salt].concat();
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, &input);
            digest.as_ref().try_into().expect("20 octets")
        };
        (0..iterations).fold(round(name), |hash, _| round(&hash))
    }

    #[test]
    fn names_and_salts_of_any_length_hash_as_defined() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
        for name in [".", "example", "WWW.Example.ORG", &longest] {
            let name = NameBuf::from_text(name).expect("a name");
            for salt in [0, 1, 35, 36, 44, 255] {
                let salt = vec![0xa5; salt];
                for iterations in [0, 1, 2, 10] {
                    let parameters =
                        Nsec3Parameters { iterations, salt: salt.as_slice().into(), opts_out: false };
                    assert_eq!(
                        parameters.hash(name.as_name()),
                        by_definition(name.as_name().to_folded().as_bytes(), &salt, iterations),
                        "{name} with {} octets of salt, {iterations} iterations",
                        salt.len()
                    );
                }
            }
        }
    }
}
