//! `gannet zone sign` and `gannet zone verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use control::api;
use dnssec::keys::ZoneKey;
use dnssec::tree::Tree;
use dnssec::{Algorithm, Denial, KeyUse, Nsec3Parameters, Signer, SigningKey, Validity, ZonemdVerdict};
use environment::{Environment as _, System};
use jobs::signing::{self, KeyStore, Overwrites};
use wire::serial::SerialPolicy;
use wire::{Name, NameBuf};
use zone::Zone;

use super::{human_of, read};
use crate::cli::{OutputArgs, SerialWord, SignArgs, VerifyArgs};
use crate::out;

/// Names between two words about how far it is.
const TELL_EVERY: usize = 1 << 15;
/// Faults of a signed zone that are printed.
const FAULTS_MAX: usize = 100;

/// Returns the present, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Returns a moment as programs read it (RFC 3339).
pub(super) fn date(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// Reads a point in time: `YYYYMMDDHHmmSS`, or `+` or `-` and a period from now.
pub(super) fn point(text: &str, now: u64) -> Result<u64, String> {
    let wrong =
        || format!("\"{text}\" is no time: expected YYYYMMDDHHmmSS, or + or - and a period such as +30d");
    if let Some(period) = text.strip_prefix('+') {
        return wire::text::parse_period(period).map(|period| now + u64::from(period)).ok_or_else(wrong);
    }
    if let Some(period) = text.strip_prefix('-') {
        return wire::text::parse_period(period)
            .map(|period| now.saturating_sub(period.into()))
            .ok_or_else(wrong);
    }
    dnssec::parse_compact(text).ok_or_else(wrong)
}

fn period(text: &str) -> Result<u32, String> {
    wire::text::parse_period(text)
        .ok_or_else(|| format!("\"{text}\" is no period: expected seconds, or units as in 1h30m"))
}

/// Returns all records of a zone.
fn tree_of(zone: &Zone, apex: Name<'_>) -> Tree {
    let mut tree = Tree::new(apex);
    zone.for_each_record(|owner, rtype, ttl, rdata| {
        tree.push(owner, rtype, ttl.seconds(), rdata);
    });
    tree
}

/// Returns the text of a zone's file: every record on a line of its own.
fn text_of(tree: &Tree) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    tree.for_each_record(|(owner, rtype, ttl, rdata)| {
        let data = wire::rdata::display(rtype, rdata, 0..rdata.len());
        let _ = writeln!(text, "{owner} {ttl} IN {rtype} {data}");
    });
    text
}

/// Returns what each key does at `now`, by its times and by the others of its algorithm.
fn uses(keys: &[ZoneKey], now: u64) -> Vec<KeyUse> {
    let has = |algorithm: Algorithm, is_entry_point: bool| {
        keys.iter().any(|key| {
            key.secret.algorithm() == algorithm
                && key.is_entry_point() == is_entry_point
                && key.times.is_active(now)
        })
    };
    keys.iter()
        .map(|key| {
            let algorithm = key.secret.algorithm();
            // Where there is no key of the other kind, one does both.
            let is_alone = !has(algorithm, !key.is_entry_point());
            let is_active = key.times.is_active(now);
            let is_announced = key.is_entry_point()
                && key.times.sync_publish.is_none_or(|at| at <= now)
                && key.times.sync_delete.is_none_or(|at| now < at);
            KeyUse {
                is_published: key.times.is_published(now),
                signs_keys: is_active && (key.is_entry_point() || is_alone),
                signs_zone: is_active && (!key.is_entry_point() || is_alone),
                is_announced: is_announced && is_active,
            }
        })
        .collect()
}

/// Runs `gannet zone sign`.
pub(super) fn sign(args: &SignArgs) -> ExitCode {
    out::told(try_sign(args).map(Option::unwrap_or_default))
}

fn try_sign(args: &SignArgs) -> Result<Option<String>, String> {
    let now = now();
    let inception = point(&args.inception, now)?;
    let expiration = point(&args.expiration, now)?;
    let jitter = period(&args.jitter)?;
    if expiration <= inception + u64::from(jitter) {
        return Err("signatures would end before they begin: expiration less jitter is not after inception"
            .to_owned());
    }
    let denial = denial(args)?;
    let Some((apex, checked)) = read(&args.zone, OutputArgs { json: false }) else {
        return Err("nothing was signed".to_owned());
    };
    let Some(zone) = checked.zone else {
        let found = human_of(&args.zone.file.display().to_string(), &checked.diagnostics);
        return Err(found.trim_end().to_owned());
    };
    let keys = keys(args, &apex)?;
    let uses = uses(&keys, now);
    if !uses.iter().any(|does| does.signs_zone) {
        return Err(format!("none of the {} keys of {apex} is active by its times", keys.len()));
    }
    let signer = Signer {
        keys: keys
            .iter()
            .zip(&uses)
            .map(|(key, does)| SigningKey {
                secret: &key.secret,
                flags: key.flags,
                does: *does,
                validity: None,
            })
            .collect(),
        dnskey_ttl: args.dnskey_ttl,
        denial,
        validity: Validity {
            inception: inception as u32,
            expiration: expiration as u32,
            jitter,
            keep_after: (now + u64::from(period(&args.refresh)?)) as u32,
            now: now as u32,
        },
        cds_digests: args.cds.clone(),
        asks_for_removal: false,
        has_csync: args.csync,
        zonemd: args.zonemd,
    };
    let signer = Signer {
        keys: match args.cds.is_empty() {
            // Without a digest nothing is announced, CDNSKEY neither.
            true => signer.keys.iter().map(unannounced).collect(),
            false => signer.keys.clone(),
        },
        ..signer
    };
    let mut tree = tree_of(&zone, apex.as_name());
    drop(zone);
    let policy = match args.serial {
        SerialWord::Keep => None,
        SerialWord::Increment => Some(SerialPolicy::Increment),
        SerialWord::Unixtime => Some(SerialPolicy::Unixtime),
        SerialWord::Date => Some(SerialPolicy::Dateserial),
    };
    if let Some(policy) = policy
        && let Some((soa, _)) = tree.soa()
    {
        tree.set_serial(policy.next(soa.serial(), now));
    }
    let threads = args.threads.unwrap_or_else(|| System.processors()).max(1);
    let told = |done: usize| {
        if done.is_multiple_of(TELL_EVERY) {
            out::overwrite(&format!("{done} names signed"));
        }
    };
    let signed = signing::sign(&signer, &mut tree, &[], threads, || {}, told);
    out::overwrite("");
    let signed = signed.map_err(|why| format!("cannot sign {apex}: {why}"))?;
    let serial = tree.soa().map_or(0, |(soa, _)| soa.serial());
    let text = text_of(&tree);
    match &args.output {
        Some(path) if path == Path::new("-") => {
            out::print(&text);
            Ok(None)
        }
        given => {
            let path = given.clone().unwrap_or_else(|| signed_name(&args.zone.file));
            signing::write(&path, text.as_bytes(), 0o644, Overwrites::Yes)
                .map_err(|error| format!("cannot write \"{}\": {error}", path.display()))?;
            let until = signed.first_expiration.map_or(expiration, u64::from);
            Ok(Some(format!(
                "zone {apex}: serial {serial}, {} signatures made, {} kept, the first ends {}; written to {}\n",
                signed.made,
                signed.kept,
                dnssec::write_compact(until),
                path.display()
            )))
        }
    }
}

/// Returns how absence is proven.
fn denial(args: &SignArgs) -> Result<Denial, String> {
    let salt = match args.salt.as_str() {
        "-" => Vec::new(),
        hex => wire::text::read_hex(hex.as_bytes())
            .filter(|salt| salt.len() <= 255)
            .ok_or_else(|| format!("\"{hex}\" is no salt: expected up to 255 octets in hexadecimal, or -"))?,
    };
    Ok(match args.nsec3 {
        true => Denial::Nsec3(Nsec3Parameters {
            iterations: args.iterations,
            salt: salt.into(),
            opts_out: args.opt_out,
        }),
        false => Denial::Nsec,
    })
}

/// Reads the keys of a zone; warns of those that others may read and of weak ones.
fn keys(args: &SignArgs, apex: &NameBuf) -> Result<Vec<ZoneKey>, String> {
    let stored = KeyStore::new(&args.keys, &Arc::default()).keys(Some(apex.as_name()))?;
    for key in stored.iter().filter(|key| key.is_open) {
        out::complain(&format!("warning: others may read the private key {}; chmod 600 it", key.stem));
    }
    let keys: Vec<ZoneKey> = stored.into_iter().map(|stored| stored.key).collect();
    keys.iter().for_each(super::keys::warn_of_size);
    if keys.is_empty() {
        return Err(format!(
            "no keys of {apex} in \"{}\"; gannet zone keys generate {apex} --keys \"{}\" makes one",
            args.keys.display(),
            args.keys.display()
        ));
    }
    Ok(keys)
}

fn unannounced<'k>(key: &SigningKey<'k>) -> SigningKey<'k> {
    SigningKey { does: KeyUse { is_announced: false, ..key.does }, ..*key }
}

fn signed_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".signed");
    name.into()
}

/// Runs `gannet zone verify`.
pub(super) fn verify(args: &VerifyArgs) -> ExitCode {
    let at = match point(&args.at, now()) {
        Ok(at) => at,
        Err(why) => {
            return out::wrong(&why, args.output);
        }
    };
    let Some((apex, checked)) = read(&args.zone, args.output) else { return out::negative() };
    let Some(zone) = checked.zone else {
        let found = human_of(&args.zone.file.display().to_string(), &checked.diagnostics);
        return out::failed(found.trim_end(), args.output);
    };
    let mut tree = tree_of(&zone, apex.as_name());
    let digest = dnssec::check_zonemd(&tree);
    let mut faults = dnssec::check_tree(&mut tree, at as u32, FAULTS_MAX);
    let (digest, word) = match digest {
        ZonemdVerdict::Right => ("its ZONEMD is right", "right"),
        ZonemdVerdict::Absent => ("it has no ZONEMD", "absent"),
        ZonemdVerdict::Unsupported => ("its ZONEMD is of an unknown kind", "unsupported"),
        ZonemdVerdict::OtherSerial => {
            faults.push("ZONEMD: made for another serial".to_owned());
            ("its ZONEMD is of another serial", "other-serial")
        }
        ZonemdVerdict::Wrong => {
            faults.push("ZONEMD: not the digest of this zone".to_owned());
            ("its ZONEMD is wrong", "wrong")
        }
    };
    if args.output.json {
        let is_right = faults.is_empty();
        out::print(&api::to_json(&api::VerifiedZone {
            zone: apex.to_string(),
            is_right,
            at: date(at),
            zonemd: word.to_owned(),
            is_cut_short: faults.len() >= FAULTS_MAX,
            faults,
        }));
        return if is_right { out::FINE } else { out::negative() };
    }
    if faults.is_empty() {
        out::print(&format!(
            "zone {apex}: every signature is good at {}, absence is proved without a gap, {digest}\n",
            dnssec::write_compact(at)
        ));
        return out::FINE;
    }
    for fault in &faults {
        out::print(&format!("{}\n", out::escaped(fault)));
    }
    if faults.len() >= FAULTS_MAX {
        out::print("and perhaps more\n");
    }
    out::negative()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnssec::keys::Times;
    use dnssec::{KeySize, SecretKey, flags_of};
    use wire::NameBuf;

    #[test]
    fn points_in_time_are_read() {
        assert_eq!(point("+1h", 100), Ok(3700));
        assert_eq!(point("-90", 100), Ok(10));
        assert_eq!(point("19700101000010", 100), Ok(10));
        for bad in ["", "1", "+", "+1y", "2026-01-01"] {
            assert!(point(bad, 100).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_share_the_work_by_their_kind_and_times() {
        let key = |is_entry_point, times| ZoneKey {
            owner: NameBuf::root(),
            flags: flags_of(is_entry_point),
            secret: SecretKey::generate(Algorithm::ED25519, KeySize::Bits2048).expect("a key").into(),
            times,
        };
        let work = |keys: &[ZoneKey]| -> Vec<(bool, bool, bool)> {
            uses(keys, 100).iter().map(|does| (does.is_published, does.signs_keys, does.signs_zone)).collect()
        };
        let always = Times::default();
        assert_eq!(work(&[key(true, always)]), [(true, true, true)]);
        assert_eq!(
            work(&[key(true, always), key(false, always)]),
            [(true, true, false), (true, false, true)]
        );
        let later = Times { activate: Some(200), ..always };
        assert_eq!(
            work(&[key(true, always), key(false, always), key(false, later)]),
            [(true, true, false), (true, false, true), (true, false, false)]
        );
        let gone = Times { inactive: Some(50), delete: Some(90), ..always };
        assert_eq!(work(&[key(true, always), key(false, gone)]), [(true, true, true), (false, false, false)]);
    }
}
