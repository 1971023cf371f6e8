//! BIND's pair of files: `K<zone>+<algorithm>+<tag>.key` holds the DNSKEY, `.private` the private
//! key and its times.
//!
//! Where the private key is in a hardware module, `.private` says which it is (`Label`), as
//! `dnssec-keyfromlabel` writes it.

use std::fmt::Write as _;
use std::sync::Arc;

use wire::text::{read_base64, write_base64};
use wire::{NameBuf, Rtype};
use zeroize::Zeroizing;

use super::{KeyFault, Times, ZoneKey};
use crate::algorithm::Algorithm;
use crate::dnskey::{Dnskey, RsaParts};
use crate::secret::{Holder, Parts, RsaNumbers, SecretKey};
use crate::times::{parse_compact, write_compact};

/// Finds one of a key's times.
type Place = fn(&mut Times) -> &mut Option<u64>;

/// Finds who holds the key of a label, or says why nobody does.
pub type Opener<'a> = &'a dyn Fn(Algorithm, &str) -> Result<Arc<dyn Holder>, String>;

/// The names of times, as both files write them.
const TIMES: [(&str, Place); 8] = [
    ("Created", |times| &mut times.created),
    ("Publish", |times| &mut times.publish),
    ("Activate", |times| &mut times.activate),
    ("Revoke", |times| &mut times.revoke),
    ("Inactive", |times| &mut times.inactive),
    ("Delete", |times| &mut times.delete),
    ("SyncPublish", |times| &mut times.sync_publish),
    ("SyncDelete", |times| &mut times.sync_delete),
];

/// The numbers of an RSA key, as the private file writes them.
const RSA: [&str; 8] = [
    "Modulus",
    "PublicExponent",
    "PrivateExponent",
    "Prime1",
    "Prime2",
    "Exponent1",
    "Exponent2",
    "Coefficient",
];

/// Reads the DNSKEY record of a `.key` file: its owner and data.
pub fn read_public(text: &str) -> Result<(NameBuf, Vec<u8>), KeyFault> {
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let fault = |what: String| KeyFault::new(index + 1, what);
        // `owner [TTL] [IN] DNSKEY data`.
        let Some(at) = line.find("DNSKEY") else {
            return Err(fault("expected a DNSKEY record".to_owned()));
        };
        let (head, data) = line.split_at(at);
        let owner = head.split_whitespace().next().unwrap_or("");
        let owner = NameBuf::from_text(owner).map_err(|error| fault(error.to_string()))?;
        let data = data.get("DNSKEY".len()..).unwrap_or("");
        let mut rdata = Vec::new();
        wire::rdata::parse_text(Rtype::DNSKEY, data, None, &mut rdata)
            .map_err(|error| fault(error.to_string()))?;
        return Ok((owner, rdata));
    }
    Err(KeyFault::new(0, "expected a DNSKEY record, found the end"))
}

/// Reads a key from both of its files. `open` is asked for keys that are elsewhere.
pub fn read(public: &str, private: &str, open: Opener<'_>) -> Result<ZoneKey, KeyFault> {
    let (owner, rdata) = read_public(public)?;
    let dnskey = Dnskey::parse(&rdata).ok_or_else(|| KeyFault::new(0, "the DNSKEY has no key"))?;
    let mut times = Times::default();
    let mut algorithm = None;
    let mut scalar = None;
    let mut label = None;
    let mut numbers: [Option<Zeroizing<Vec<u8>>>; 8] = Default::default();
    for (index, line) in private.lines().enumerate() {
        let fault = |what: &str| KeyFault::new(index + 1, what);
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                continue;
            }
            return Err(fault("expected a name, a colon and a value"));
        };
        let (name, value) = (name.trim(), value.trim());
        let base64 =
            || read_base64(value.as_bytes()).map(Zeroizing::new).ok_or_else(|| fault("expected Base64"));
        if name == "Private-key-format" {
            if !value.starts_with("v1.") {
                return Err(fault("expected the format v1.2 or v1.3"));
            }
        } else if name == "Algorithm" {
            let number = value.split_whitespace().next().and_then(|number| number.parse().ok());
            algorithm = Some(Algorithm(number.ok_or_else(|| fault("expected a number"))?));
        } else if name == "PrivateKey" {
            scalar = Some(base64()?);
        } else if let Some(at) = RSA.iter().position(|known| *known == name) {
            if let Some(place) = numbers.get_mut(at) {
                *place = Some(base64()?);
            }
        } else if let Some((_, place)) = TIMES.iter().find(|(known, _)| *known == name) {
            let time = parse_compact(value.split_whitespace().next().unwrap_or(""));
            *place(&mut times) = Some(time.ok_or_else(|| fault("expected YYYYMMDDHHmmSS"))?);
        } else if name == "Label" {
            let octets = base64()?;
            // It ends in a zero, as strings do in C.
            let text = octets.strip_suffix(&[0]).unwrap_or(&octets);
            let text = std::str::from_utf8(text).map_err(|_| fault("expected a text in Base64"))?;
            label = Some((index + 1, text.to_owned()));
        }
        // Others, such as `Engine`, `Predecessor` or `Lifetime`, say nothing about the key itself.
    }
    let algorithm = algorithm.ok_or_else(|| KeyFault::new(0, "the private file lacks \"Algorithm\""))?;
    if algorithm != dnskey.algorithm() {
        return Err(KeyFault::new(
            0,
            format!("the private key is of algorithm {algorithm}, the DNSKEY of {}", dnskey.algorithm()),
        ));
    }
    if !algorithm.is_supported() {
        return Err(crate::secret::Unusable::Algorithm(algorithm).into());
    }
    let secret = if let Some((line, label)) = label {
        let holder = open(algorithm, &label).map_err(|why| KeyFault::new(line, why))?;
        SecretKey::held(algorithm, dnskey.key(), holder)?
    } else if algorithm.is_rsa() {
        let lacking = numbers.iter().zip(RSA).find(|(number, _)| number.is_none());
        if let Some((_, name)) = lacking {
            return Err(KeyFault::new(0, format!("the private file lacks \"{name}\"")));
        }
        let [n, e, d, p, q, dp, dq, qinv] = numbers.map(Option::unwrap_or_default);
        let plain = |number: &[u8]| crate::dnskey::without_zeros(number).to_vec();
        SecretKey::from_rsa(
            algorithm,
            RsaNumbers {
                modulus: plain(&n),
                public_exponent: plain(&e),
                private_exponent: d,
                prime_1: p,
                prime_2: q,
                exponent_1: dp,
                exponent_2: dq,
                coefficient: qinv,
            },
        )?
    } else {
        let scalar = scalar.ok_or_else(|| KeyFault::new(0, "the private file lacks \"PrivateKey\""))?;
        SecretKey::from_scalar(algorithm, &scalar, Some(dnskey.key()))?
    };
    if secret.public() != dnskey.key() {
        return Err(crate::secret::Unusable::OtherPublicKey.into());
    }
    Ok(ZoneKey { owner, flags: dnskey.flags(), secret: secret.into(), times })
}

/// Returns the text of the `.key` file.
pub fn write_public(key: &ZoneKey) -> String {
    let rdata = key.dnskey();
    let kind = if key.is_entry_point() { "key-signing" } else { "zone-signing" };
    let mut text = String::new();
    let _ = writeln!(text, "; This is a {kind} key, keyid {}, for {}", key.tag(), key.owner);
    let mut times = key.times;
    for (name, place) in TIMES {
        if let Some(time) = *place(&mut times) {
            let _ = writeln!(text, "; {name}: {}", write_compact(time));
        }
    }
    let data = wire::rdata::display(Rtype::DNSKEY, &rdata, 0..rdata.len());
    let _ = writeln!(text, "{} IN DNSKEY {data}", key.owner);
    text
}

/// Returns the text of the `.private` file.
pub fn write_private(key: &ZoneKey) -> Result<Zeroizing<String>, KeyFault> {
    // Room for the largest key, so that no copy is left behind where the text grew out of.
    let mut text = Zeroizing::new(String::with_capacity(16_384));
    let algorithm = key.secret.algorithm();
    let _ = writeln!(text, "Private-key-format: v1.3\nAlgorithm: {} ({algorithm})", algorithm.0);
    let mut line = |name: &str, octets: &[u8]| {
        let _ = write!(text, "{name}: ");
        let _ = write_base64(&mut *text, octets);
        text.push('\n');
    };
    if let Some(place) = key.secret.place() {
        // BIND wants to see the public numbers of an RSA key here, too.
        if let Some(parts) = RsaParts::parse(key.secret.public()).filter(|_| algorithm.is_rsa()) {
            RSA.iter().zip([parts.modulus, parts.exponent]).for_each(|(name, octets)| line(name, octets));
        }
        line("Label", &[place.as_bytes(), &[0]].concat());
        write_times(&mut text, key.times);
        return Ok(text);
    }
    match key.secret.parts()? {
        Parts::Rsa(numbers) => {
            let RsaNumbers {
                modulus,
                public_exponent,
                private_exponent,
                prime_1,
                prime_2,
                exponent_1,
                exponent_2,
                coefficient,
            } = &numbers;
            let secret = [private_exponent, prime_1, prime_2, exponent_1, exponent_2, coefficient];
            let values = [modulus.as_slice(), public_exponent].into_iter();
            let values = values.chain(secret.into_iter().map(|number| number.as_slice()));
            RSA.iter().zip(values).for_each(|(name, octets)| line(name, octets));
        }
        Parts::Scalar(scalar) => line("PrivateKey", &scalar),
    }
    write_times(&mut text, key.times);
    Ok(text)
}

fn write_times(text: &mut String, mut times: Times) {
    for (name, place) in TIMES {
        if let Some(time) = *place(&mut times) {
            let _ = writeln!(text, "{name}: {}", write_compact(time));
        }
    }
}
