//! `gannet dnscrypt`: keys and certificates of a provider and its resolvers, and its stamp.

use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ::dnscrypt::{Certificate, KEY_OCTETS, ProviderKey, System, generate};
use wire::NameBuf;
use zeroize::Zeroizing;

use crate::certificate::{make_folder, write_new};
use crate::cli::{
    DnscryptCertificateArgs, DnscryptCipher, DnscryptCommand, DnscryptProviderArgs, DnscryptStampArgs,
};
use crate::out;

/// A clock that is behind ours should not make a certificate invalid.
const EARLIER_S: u32 = 3600;
const DAY_S: u32 = 86_400;
/// The port of a stamp that names none.
const PORT: u16 = 443;

/// Runs `gannet dnscrypt`.
pub fn run(command: &DnscryptCommand) -> ExitCode {
    out::told(match command {
        DnscryptCommand::Provider(args) => provider(args),
        DnscryptCommand::Certificate(args) => certificate(args),
        DnscryptCommand::Stamp(args) => stamp(args),
    })
}

fn provider(args: &DnscryptProviderArgs) -> Result<String, String> {
    let (key, secret) = ProviderKey::generate().map_err(|why| format!("no key: {why}"))?;
    let (secret, public) = (Zeroizing::new(secret), key.public().map_err(|why| format!("no key: {why}"))?);
    make_folder(&args.to)?;
    let (secret_file, public_file) = (args.to.join("secret.key"), args.to.join("public.key"));
    write_new(&secret_file, &*secret, 0o600, args.force)?;
    write_new(&public_file, &public, 0o644, args.force)?;
    Ok(format!(
        "# The provider's key is in {}: it signs certificates, and the server does not need it.\n\
         # \"gannet dnscrypt certificate\" makes a resolver's key with a certificate.\n",
        secret_file.display()
    ))
}

fn certificate(args: &DnscryptCertificateArgs) -> Result<String, String> {
    let file = &args.provider_key;
    let octets = Zeroizing::new(
        std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?,
    );
    let provider = ProviderKey::parse(&octets)
        .map_err(|why| format!("{} has no key of a provider: {why}", file.display()))?;
    let (secret, key) = generate().map_err(|why| format!("no key: {why}"))?;
    let secret = Zeroizing::new(secret);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = u32::try_from(now).map_err(|_| "the clock of this machine is wrong".to_owned())?;
    let valid = (now.saturating_sub(EARLIER_S), now.saturating_add(DAY_S.saturating_mul(args.days)));
    let system = match args.cipher {
        DnscryptCipher::Xchacha20 => System::XChaCha20,
        DnscryptCipher::Xsalsa20 => System::XSalsa20,
    };
    // As other programs do it: so no two keys of a resolver have the same one.
    let magic = key.first_chunk().copied().unwrap_or_default();
    make_folder(&args.to)?;
    let named = |serial: u32, end: &str| args.to.join(format!("{serial}.{end}"));
    let is_free = |serial: &u32| !named(*serial, "key").exists() && !named(*serial, "cert").exists();
    // Two of one second are told apart all the same.
    let serial = (now..).find(is_free).unwrap_or(now);
    let signed = Certificate { system, key, magic, serial, valid }.sign(&provider);
    let (key_file, certificate_file) = (named(serial, "key"), named(serial, "cert"));
    // The key first: a certificate without its key is a mistake.
    write_new(&key_file, &*secret, 0o600, false)?;
    write_new(&certificate_file, &signed, 0o644, false)?;
    Ok(format!(
        "# A certificate for {} days. To use it:\n\
         dnscrypt:\n  keys: [\"{}\"]\n  certificates: [\"{}\"]\n",
        args.days,
        key_file.display(),
        certificate_file.display()
    ))
}

fn stamp(args: &DnscryptStampArgs) -> Result<String, String> {
    let provider: NameBuf =
        args.provider.parse().map_err(|why| format!("\"{}\" is not a name: {why}", args.provider))?;
    let address = values::socket_address(&args.address, PORT)
        .map_err(|_| format!("\"{}\" is not an address", args.address))?;
    let key = public_key(&args.public_key)?;
    // An address without a port has this one; that of IPv6 is in brackets all the same.
    let address = match address {
        address if address.port() != PORT => address.to_string(),
        std::net::SocketAddr::V4(address) => address.ip().to_string(),
        std::net::SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    let flags = [(args.dnssec, 1_u64), (args.no_logs, 2), (args.no_filter, 4)];
    let flags = flags.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, flag)| all | flag);
    let name = provider.to_string();
    let name = name.strip_suffix('.').unwrap_or(&name);
    let mut octets = vec![1];
    octets.extend(flags.to_le_bytes());
    for part in [address.as_bytes(), &key, name.as_bytes()] {
        octets.push(u8::try_from(part.len()).map_err(|_| "the provider's name is too long".to_owned())?);
        octets.extend(part);
    }
    Ok(format!("sdns://{}\n", base64url(&octets)))
}

fn public_key(file: &Path) -> Result<[u8; KEY_OCTETS], String> {
    let octets = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let has = octets.len();
    octets.try_into().map_err(|_| format!("{} has {has} octets, not {KEY_OCTETS}", file.display()))
}

/// Writes octets as stamps do (RFC 4648 §5, without padding).
fn base64url(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for three in octets.chunks(3) {
        let number =
            (0..3).fold(0_u32, |number, at| number << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        for digit in 0..=three.len() {
            let at = number >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS.get(at as usize).copied().unwrap_or(b'A')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_written_in_the_alphabet_for_addresses() {
        // RFC 4648, section 10, and the two digits that are others than in base64.
        for (octets, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (b"\xfb\xff", "-_8"),
        ] {
            assert_eq!(base64url(octets), text);
        }
    }
}
