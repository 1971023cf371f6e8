//! Signs with RSA keys that the library refuses because of their size: RSASSA-PKCS1-v1_5 (RFC 8017
//! §8.2.1) by the Chinese remainder theorem, in arithmetic whose time does not depend on the key.
//!
//! Such keys are weak; they are signed with so that a zone can be taken over, and its keys rolled
//! here.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd};
use zeroize::Zeroizing;

use crate::secret::RsaNumbers;

/// Bits of the smallest key that is signed with: smaller ones are refused by those who validate,
/// too.
pub(crate) const BITS_MIN: usize = 1024;

/// A private key.
pub(crate) struct SmallRsa {
    numbers: RsaNumbers,
    first: Prime,
    second: Prime,
    coefficient: Zeroizing<BoxedUint>,
}

/// A prime, and the exponent modulo it.
struct Prime {
    value: Zeroizing<BoxedUint>,
    nonzero: NonZero<BoxedUint>,
    params: BoxedMontyParams,
    exponent: Zeroizing<BoxedUint>,
}

/// Returns so many bits as whole words have that hold `octets`.
const fn precision(octets: usize) -> u32 {
    (octets.next_multiple_of(8) * 8) as u32
}

impl Prime {
    fn new(prime: &[u8], exponent: &[u8], bits: u32) -> Option<Self> {
        let value = BoxedUint::from_be_slice(prime, bits).ok()?;
        let nonzero = Option::from(NonZero::new(value.clone()))?;
        let odd: Odd<BoxedUint> = Option::from(Odd::new(value.clone()))?;
        let exponent = BoxedUint::from_be_slice(exponent, bits).ok()?;
        Some(Self {
            value: Zeroizing::new(value),
            nonzero,
            params: BoxedMontyParams::new(odd),
            exponent: Zeroizing::new(exponent),
        })
    }

    /// Raises a number to the exponent.
    fn raise(&self, number: &BoxedUint) -> Zeroizing<BoxedUint> {
        let rest = number.rem(&self.nonzero);
        Zeroizing::new(BoxedMontyForm::new(rest, &self.params).pow(&self.exponent).retrieve())
    }
}

impl SmallRsa {
    /// Takes a key; `None` if its parts do not fit together.
    pub(crate) fn new(numbers: RsaNumbers) -> Option<Self> {
        let bits = precision(numbers.prime_1.len().max(numbers.prime_2.len()));
        let first = Prime::new(&numbers.prime_1, &numbers.exponent_1, bits)?;
        let second = Prime::new(&numbers.prime_2, &numbers.exponent_2, bits)?;
        let coefficient = Zeroizing::new(BoxedUint::from_be_slice(&numbers.coefficient, bits).ok()?);
        let product = first.value.concatenating_mul(&*second.value);
        let is_whole = *product.to_be_bytes_trimmed_vartime() == *numbers.modulus;
        is_whole.then_some(Self { numbers, first, second, coefficient })
    }

    pub(crate) const fn numbers(&self) -> &RsaNumbers {
        &self.numbers
    }

    /// Signs a `DigestInfo`; `None` if it does not fit the key.
    pub(crate) fn sign(&self, info: &[u8]) -> Option<Vec<u8>> {
        let octets = self.numbers.modulus.len();
        // RFC 8017 §9.2: at least eight octets of padding.
        let padding = octets.checked_sub(info.len() + 3).filter(|&padding| padding >= 8)?;
        let padded = [&[0, 1], vec![0xff; padding].as_slice(), &[0], info].concat();
        let message = BoxedUint::from_be_slice(&padded, precision(octets)).ok()?;
        let (one, two) = (self.first.raise(&message), self.second.raise(&message));
        let prime = &self.first.nonzero;
        let distance = Zeroizing::new(one.sub_mod(&two.rem(prime), prime));
        let turns = Zeroizing::new(distance.mul_mod(&self.coefficient, prime));
        let above = Zeroizing::new(turns.concatenating_mul(&*self.second.value));
        let signature = above.wrapping_add(&*two);
        let written = signature.to_be_bytes();
        let skipped = written.len().checked_sub(octets)?;
        Some(written.get(skipped..)?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use crate::keys::pem;
    use crate::parsed::verify_octets;
    use crate::{Algorithm, Dnskey, ZONE_KEY};

    /// `openssl genrsa -traditional 512`.
    const BITS_512: &str = "MIIBOgIBAAJBALydtXijlOGiB7AXLbe5w8KGIhmWW0B0XatZ8XPNwPyYzDJNTygVmN8Ji8RzPrn8hqGp7MVwmzC3mS2IAdDEWj8C\
        AwEAAQJAHdeR+7ld9+kL8Fdqe1Qf3eodARFh9Ku0mkTLx/e43f4FXx8bJH82btgEb8r5jBb2ddI9XwYdAKCXw7BGrQBk6QIhAN4F\
        RCk2oNj+ajjb4N69GLUs9Suf6TJe0sOrbBMj2201AiEA2XuoiKKEQYSSG7u597mGmo2M83sdGRsIWg5wtIz8PCMCIQDWPFCsUClf\
        mgfXu9w+MkvQL4SYRuMYFsXbx+MuiPAobQIgTwocBBxcSJtvplihi6CHhN/w3ARgXOFwNZqN53Bds1UCIB/LmiB04TwNzgVaasHS\
        3vhHGJQsLVXyKrfM3Q0Zt0os";
    /// `openssl genrsa -traditional 1024`.
    const BITS_1024: &str = "MIICXQIBAAKBgQC7zahf7ztE6BV1j6OkfbljD5CNwAXwBceqHaskaAPKJiWS4ANeR1ggU6UwcN6XLuJgcTmgpWdpJ52/NFqpfWUk\
        T6jH4eXTp3kuKzTPO1VWi8nZ8nkivDK7ZTbW/hNXoFiufzD2b0sWav9KMmcQIKzRwSz6wnlyhvs9JDaVJkkMqQIDAQABAoGAO/Ce\
        vcfIHe0I9FWdACIUalaMZ4GTI5FksZn4ho0gMIPOWDthN9UDfoXT4ksT8CLJo8hfgTNpdvlq8pzOFuxrvAgGQwsNI0RpONPsg/18\
        Hs/fJ2XfomiH/c6Z/SL+QQObESdjtA3lCO1t++VzOD/hQW8DWBilHpgWmWHECtB9UQECQQDlxdesHZP6vZPxpK+RkFDW9dEsCn/8\
        4Mz3NoMHTwXoQV6r0RzPLgYAJWptC7YA67/79DUw+r6ZK7SbyVWVBJIJAkEA0T1ueXX5rI40pAADJYosnR89G6zkLJiIfC0mXLlU\
        IcKiWL4uhN5nRVPtm5WQTeBPtTpyd3j1vBT1ZJxWF7jNoQJAE0wKUOorA2PoiOLL2+3C3ErIxmobVaGLlTd+yZ5ZYKgcy1FEmiHD\
        Xz/FMGNLZchm10IrNXHZkAObp3nBNkKsAQJBAJ23V2lYQr0NZ6Jim/yU3TIF1PLibA8tXltzUOI9k6vq4KJRoBDo7yCztXs7zkzV\
        El/BUXy6gUem6J1QthglZWECQQDMSIRnFU4cfAJ0W6PV3votwxuJk2JC3jolkt40qcbeHHZUaoP0LyjJ0+p62oLzrk/894ApSnQ5\
        Bgwi8h+wfc5v";
    /// `openssl genrsa -traditional 1040`.
    const BITS_1040: &str = "MIICZQIBAAKBgwCoLtB9tcO2QOq42LWxvFwPLkH1XtRkfCfUjzkcZAlh4Oq1hsuqH48Px3d+Qg9WUnmNerDfMLSr7k3OUWmnVu5O\
        zTHEC6hMIILhtUIA/8d94R9ApqFErJSnXIRhPxBjbaPgwuQ9L1VotMlH2TUCGKHEfsqmRUl/RF4o3fq1flaov2r3AgMBAAECgYIs\
        RHY4QHmNJTUjBld8utl4XXKbBSTedhd9yVz87g/SJYNh2GMPGlNrkdMP9o9W50p7RMn9VTKY9pagMamflDARqV9zDRBw4ygvLJtX\
        0JPkrFsJWW95iQpdqF3kgh7WKH2cB4l33jfvIxRhJQ8XSp9EEddU/vkMzzhDy4A2Ga9jDDhhAkIA3XxGUfWRkcet4q9zNqUZvhmS\
        3zpe1qEb5Hl+AJHTZbnDgBXlykqNfytuAv7El4AARyWUUCFcTWA03pKziBBJE+kCQgDCZCNvH2MWOlb/zF7zQD5gJdpucZYi10k1\
        i3IPbcPb9ZdWJx0kspqE2MEHn4PJ8C7q7dqlUCFkxDY+ZNWWwSGb3wJBdRBtXn5sDWA78PeI7tX+sDJ2JZSFce2/f1gTmBt7X2X7\
        BeUNComzFgcPY3fi0qxt+SzMojmvvpnd99IUIBNzfJkCQWEXHO+akKYAe4WFsQLz2nOxVFkHWIKMXp9kx5JXM5UAJBc+r/qtTin+\
        DONe07cfxH9IT4Vz8UngCmu9d0S1r7CnAkIAqALb6IRGbN0wKKBuEaxYHVVDxxKCDQM3i3MaH6dlet4rV1n2Lc7d7wfcjpbzGLh3\
        pelpkn+z2RN2tR1LZZ5ZEYA=";
    /// `openssl genrsa -traditional 1536`.
    const BITS_1536: &str = "MIIDfAIBAAKBwQDJUJon97yNa4zZCitS74hLejMTE1a2Krhyaq2bjX+TEtIonb6LTtyMwGC60JAx6U0E++4JfnAg51SO2XKlhNdO\
        gH4p5RSgbBnhyMmscSjtuzea+NLyRslvz0ZViyB0sHAcI/e/JDN9JOoqhwUJW5nPRW1nenXRAb+ILiOUc3xKLkJV1KFSeyUJU62R\
        CyXsAsl+yd4vlukzOPxzVY1Udfta2J+JZCAam+OBFSgiF/yQ5rfP4839CNd3mB5WrSKZTqcCAwEAAQKBwQDBUnTnQsE/8XMtjdVy\
        7HGvQadAf0a64yWDQqx6/5PuUZmdxXYQ42dqhuedHuIJ/CepTKEXXuMgxeVu1KSDDKGSUlRVuRZow8bLCv2YaobKXQoV+TLh1FZm\
        196MEXHWfQNGrz36RYO7At42tVe+ROUt+ZNYBtPfzZuuMzNdEpopeAPr6ora5Pvj5F+JDjfrIqhk6hxXLZOjrgjHbwBr654jC8uX\
        Ol0uIqDj6QojgnlkgB1gUS2lIPr9Y7CrJ1emsuECYQD1xsKo1g35aX+1oRXPP/Sjv7lPlgjAgCXL4esmFQkHj+uo5S1xwDIDBQ/B\
        7BCOXae7RqtC5NuYAeiE1mHyeYoDKGBisVNoIsRfTKnN+Sa+YTMQAx5O/H9/Fhc7fw0kglcCYQDRsGBwP3yQpxe+9/HCN+jku7ia\
        GSsH91ma6imVPGDZfhBer/ov5XMMKdrhLcvgo3hZrFnHKc12Pb4w4/WRSwz0DgVFnPE2/8xyJAIVNxhoDUML5HP9Rq+eqoqtG7ol\
        BDECYEAyIFo1PwUsdz0bzDSMAfxbca3GBJczYav1YJRb3jXpc6Zz5gDWMLn1Mn52iISHFe6msMkSOgFkTjWUQZUyBch5XWOp6Z1D\
        p4M05Q11zJbhkJLYHayH601ombzinK4ylQJgTfUB1Zl0yR6mEGSD6A37MtarqfbDbcHC+XonHYmGBDX/BgTswdPPMu14p5DsJEcC\
        HmyaMBZVgakwxWJq0KqTVUTFJv1THHx7WNAUSijilQShMZGsobQe5KFIz1TonoxxAmAe2fdWol2D9FmX/GAJrNZMUASapIz3HlVr\
        2rw/2jQSc237oxIg2lqOUKbk8P2JC3kfPp+Q26r9FX8yHTdH4GBPj1+oL1JlFWS9XmU1h90tRfz9ScJ97qc34+SLqyE/y58=";

    fn read(base64: &str, algorithm: Algorithm) -> Result<crate::SecretKey, crate::keys::KeyFault> {
        let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{base64}\n-----END RSA PRIVATE KEY-----\n");
        pem::read(&text, Some(algorithm))
    }

    #[test]
    fn keys_that_the_library_refuses_sign_and_are_written_as_they_were_read() {
        for (base64, bits) in [(BITS_1024, 1024), (BITS_1040, 1040), (BITS_1536, 1536)] {
            for algorithm in [Algorithm::RSASHA256, Algorithm::RSASHA512] {
                let key = read(base64, algorithm).expect("a key");
                assert_eq!((key.bits(), key.is_small()), (bits, true));
                let rdata = key.dnskey(ZONE_KEY);
                let dnskey = Dnskey::parse(&rdata).expect("a DNSKEY");
                for message in [&b""[..], b"a message", &[7; 5000]] {
                    let mut signature = vec![1, 2];
                    key.sign(message, &mut signature).expect("it signs");
                    assert_eq!(signature.len(), 2 + bits / 8);
                    assert!(verify_octets(dnskey, message, &signature[2..]).is_ok(), "{bits} bits");
                    assert!(verify_octets(dnskey, b"another", &signature[2..]).is_err());
                }
                let written = pem::write(&key).expect("PKCS#8");
                let again = pem::read(&written, Some(algorithm)).expect("the same key");
                assert_eq!(again.public(), key.public());
            }
        }
    }

    #[test]
    fn keys_that_nobody_would_accept_are_refused_for_their_size_alone() {
        let fault = read(BITS_512, Algorithm::RSASHA256).expect_err("it is too small");
        assert!(fault.is_size && fault.what.contains("1024 to 8192 bits"), "{fault}");
        // Of another key's numbers.
        let wrong = read(&BITS_1024.replacen("AQAB", "AQAD", 1), Algorithm::RSASHA256);
        assert!(wrong.is_err_and(|fault| !fault.is_size));
    }
}
