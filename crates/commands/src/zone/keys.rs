//! `gannet zone keys`: keys in a directory.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use control::api;
use dnssec::keys::{Times, ZoneKey, bind, erldns, pem};
use dnssec::{Dnskey, Ds, KeySize, SecretKey, flags_of};
use jobs::signing::{KeyStore, Overwrites, StoredKey, Tokens, read_pair, read_text, write};
use values::TokenUri;
use wire::{Name, NameBuf, Rtype};
use zeroize::Zeroizing;

use super::sign::{date, now, point};
use crate::cli::{
    DsArgs, ExportArgs, GenerateArgs, KeyForm, KeyImportArgs, KeysCommand, KeysDirArgs, ListArgs, RoleWord,
};
use crate::{out, remote};

/// Rights of files with private keys.
const PRIVATE: u32 = 0o600;

/// Runs `gannet zone keys …`.
pub(super) fn run(command: &KeysCommand) -> ExitCode {
    let outcome = match command {
        KeysCommand::Generate(args) => generate(args),
        KeysCommand::List(args) => return list(args),
        KeysCommand::Import(args) => import(args),
        KeysCommand::Export(args) => export(args),
        KeysCommand::Ds(args) => ds(args),
        KeysCommand::Status(args) => return remote::zone_keys(args),
        KeysCommand::DsSeen(args) => return remote::zone_ds_seen(args),
        KeysCommand::Roll(args) => return remote::zone_roll(args),
    };
    out::told(outcome)
}

fn store(args: &KeysDirArgs) -> KeyStore {
    KeyStore::new(&args.keys, &Arc::default())
}

/// Reads the URI of a token or a key in one. What cannot be read is not repeated: it may have a PIN
/// in it.
fn token_uri(text: &str) -> Result<TokenUri, String> {
    TokenUri::parse(text).map_err(|misread| {
        let expected = misread.expected.map_or_else(String::new, |expected| format!(": expected {expected}"));
        let hint = misread.hint.map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{}{expected}{hint}", misread.message)
    })
}

const fn flags(role: RoleWord) -> u16 {
    flags_of(!matches!(role, RoleWord::Zsk))
}

fn new_times() -> Times {
    let now = Some(now());
    Times { created: now, publish: now, activate: now, ..Times::default() }
}

fn generate(args: &GenerateArgs) -> Result<String, String> {
    let size = KeySize::of_bits(args.bits).ok_or("an RSA key has 2048, 3072 or 4096 bits")?;
    let tokens = Arc::new(Tokens::new());
    let store = KeyStore::new(&args.directory.keys, &tokens);
    let token = args.token.as_deref().map(token_uri).transpose()?;
    if token.as_ref().is_some_and(TokenUri::names_key) {
        return Err("this is the URI of a key: for one that is in its token already there is \"gannet zone keys import\""
            .to_owned());
    }
    let known = store.keys(Some(args.zone.as_name()))?;
    // Two keys with one tag are hard to tell apart; there is a chance of one in some thousand for
    // each that is there.
    for _ in 0..16 {
        let secret = match &token {
            Some(token) => {
                let zone = args.zone.as_name().to_folded().to_string();
                let name = format!("{}-{}", zone.trim_end_matches('.'), args.role.word());
                tokens.generate(token, &name, args.algorithm, size)?
            }
            None => SecretKey::generate(args.algorithm, size)
                .map_err(|why| format!("cannot make a key: {why}"))?,
        };
        let key =
            ZoneKey { owner: args.zone, flags: flags(args.role), secret: secret.into(), times: new_times() };
        let is_alone = known.iter().all(|other| other.key.tag() != key.tag());
        let stored = is_alone.then(|| store.put(&key).map(|stem| format!("{stem}\n")));
        if let (Some(place), None | Some(Err(_))) = (key.secret.place(), &stored) {
            // No file says where it is, so it would stay there for ever.
            tokens.destroy(place)?;
        }
        if let Some(stored) = stored {
            return stored;
        }
    }
    Err("no key with a tag of its own came about".to_owned())
}

fn list(args: &ListArgs) -> ExitCode {
    let zone = args.zone.as_ref().map(NameBuf::as_name);
    match store(&args.directory).keys(zone) {
        Ok(keys) if args.output.json => {
            let now = now();
            out::print(&api::to_json(&keys.iter().map(|stored| shown(stored, now)).collect::<Vec<_>>()));
            out::FINE
        }
        Ok(keys) => {
            out::print(&list_text(args, &keys));
            out::FINE
        }
        Err(why) => out::failed(&why, args.output),
    }
}

/// Returns a key as programs read it.
fn shown(stored: &StoredKey, now: u64) -> api::StoredKey {
    let StoredKey { key, is_open, .. } = stored;
    let state = match (key.times.is_published(now), key.times.is_active(now)) {
        (_, true) => "active",
        (true, false) => "published",
        (false, false) => "absent",
    };
    api::StoredKey {
        zone: key.owner.to_string(),
        tag: key.tag(),
        algorithm: key.secret.algorithm().to_string(),
        bits: key.secret.bits(),
        is_entry_point: key.is_entry_point(),
        state: state.to_owned(),
        created: key.times.created.map(date),
        token: key.secret.place().map(ToString::to_string),
        is_weak: key.secret.is_small(),
        is_open: *is_open,
    }
}

fn list_text(args: &ListArgs, keys: &[StoredKey]) -> String {
    let mut text = String::new();
    if keys.is_empty() {
        let _ = writeln!(text, "no keys in \"{}\"", args.directory.keys.display());
    }
    let now = now();
    for StoredKey { key, is_open, .. } in keys {
        let kind = if key.is_entry_point() { "entry point" } else { "zone key" };
        let does = match (key.times.is_published(now), key.times.is_active(now)) {
            (_, true) => "active",
            (true, false) => "published",
            (false, false) => "not in the zone",
        };
        let _ = write!(
            text,
            "{} {:>5} {} {} bits, {kind}, {does}",
            key.owner,
            key.tag(),
            key.secret.algorithm(),
            key.secret.bits()
        );
        if let Some(created) = key.times.created {
            let _ = write!(text, ", made {}", dnssec::write_compact(created));
        }
        if let Some(place) = key.secret.place() {
            let _ = write!(text, ", in {place}");
        }
        if key.secret.is_small() {
            text.push_str(", weak: fewer than 2048 bits");
        }
        text.push_str(if *is_open { ", others may read its private key\n" } else { "\n" });
    }
    text
}

fn import(args: &KeyImportArgs) -> Result<String, String> {
    let tokens = Arc::new(Tokens::new());
    let store = KeyStore::new(&args.directory.keys, &tokens);
    let mut keys = Vec::new();
    for file in &args.files {
        match file.to_str().filter(|text| text.starts_with("pkcs11:")) {
            Some(text) => keys.push(in_token(text, args, &tokens)?),
            None => read_keys(file, args, &tokens, &mut keys)?,
        }
    }
    let mut text = String::new();
    for key in &keys {
        let _ = writeln!(text, "{}", store.put(key)?);
        warn_of_size(key);
    }
    Ok(text)
}

/// Warns of a key that is weak: it can be signed with until another has taken its place.
pub(super) fn warn_of_size(key: &ZoneKey) {
    if key.secret.is_small() {
        let (owner, tag, bits) = (key.owner, key.tag(), key.secret.bits());
        out::complain(&format!(
            "warning: RSA key {tag} of {owner} has {bits} bits; fewer than 2048 are weak, so roll it soon"
        ));
    }
}

/// Finds a key that is in its token already.
fn in_token(text: &str, args: &KeyImportArgs, tokens: &Arc<Tokens>) -> Result<ZoneKey, String> {
    let uri = token_uri(text)?;
    let owner = args.zone.ok_or("a key in a token does not say its zone; say it with --zone")?;
    let secret = tokens.find(&uri, args.algorithm)?;
    Ok(ZoneKey { owner, flags: flags(args.role), secret: secret.into(), times: new_times() })
}

fn read_keys(
    file: &Path,
    args: &KeyImportArgs,
    tokens: &Arc<Tokens>,
    keys: &mut Vec<ZoneKey>,
) -> Result<(), String> {
    let shown = file.display();
    if file.extension().is_some_and(|end| end == "private" || end == "key") {
        let first = file.with_extension("private");
        // erldns calls its key sets `.private` too.
        if file.extension().is_some_and(|end| end == "key") || first.with_extension("key").exists() {
            keys.push(read_pair(&first, tokens)?);
            return Ok(());
        }
    }
    let text =
        read_text(file).map(Zeroizing::new).map_err(|error| format!("cannot read \"{shown}\": {error}"))?;
    let zone = args.zone.ok_or_else(|| format!("\"{shown}\" does not say its zone; say it with --zone"))?;
    if text.trim_start().starts_with(['[', '{']) {
        let sets = erldns::read(zone.as_name(), &text).map_err(|fault| format!("\"{shown}\": {fault}"))?;
        keys.extend(sets.into_iter().flat_map(|set| [set.ksk, set.zsk]));
        return Ok(());
    }
    let secret = pem::read(&text, args.algorithm).map_err(|fault| format!("\"{shown}\": {fault}"))?;
    if secret.algorithm().is_rsa() && args.algorithm.is_none() {
        return Err(format!("\"{shown}\" is an RSA key; say its algorithm with --algorithm 8 or 10"));
    }
    keys.push(ZoneKey { owner: zone, flags: flags(args.role), secret: secret.into(), times: new_times() });
    Ok(())
}

fn export(args: &ExportArgs) -> Result<String, String> {
    let mut keys = store(&args.directory).keys(Some(args.zone.as_name()))?;
    if keys.is_empty() {
        return Err(no_keys(args.zone.as_name(), &args.directory));
    }
    if matches!(args.form, KeyForm::Erldns) {
        return key_set(args, keys);
    }
    keys.retain(|key| args.tag.is_none_or(|tag| key.key.tag() == tag));
    let key = match keys.as_slice() {
        [key] => &key.key,
        [] => return Err(format!("{} has no key with the tag {}", args.zone, args.tag.unwrap_or(0))),
        several => {
            let tags: Vec<String> = several.iter().map(|key| key.key.tag().to_string()).collect();
            return Err(format!("{} has several keys; say which: {}", args.zone, tags.join(", ")));
        }
    };
    match args.form {
        KeyForm::Bind => {
            let Some(directory) = &args.output else {
                return Ok(
                    bind::write_public(key) + &bind::write_private(key).map_err(|fault| fault.to_string())?
                );
            };
            KeyStore::new(directory, &Arc::default()).put(key).map(|stem| format!("{stem}\n"))
        }
        KeyForm::Pem | KeyForm::Erldns => {
            let text = pem::write(&key.secret).map_err(|why| why.to_string())?;
            written(args, &text)
        }
    }
}

/// Writes a key to the file that was asked for, or returns it to be printed.
fn written(args: &ExportArgs, text: &str) -> Result<String, String> {
    let Some(path) = &args.output else { return Ok(text.to_owned()) };
    write(path, text.as_bytes(), PRIVATE, Overwrites::No)
        .map(|()| String::new())
        .map_err(|error| format!("cannot write \"{}\": {error}", path.display()))
}

fn key_set(args: &ExportArgs, keys: Vec<StoredKey>) -> Result<String, String> {
    let now = now();
    let until = point(&args.until, now)?;
    let keys = keys.into_iter().map(|stored| stored.key).filter(|key| key.times.is_active(now));
    let (mut ksks, mut zsks): (Vec<ZoneKey>, Vec<ZoneKey>) = keys.partition(ZoneKey::is_entry_point);
    match (ksks.pop(), zsks.pop()) {
        (Some(ksk), Some(zsk)) if ksks.is_empty() && zsks.is_empty() => {
            let set = erldns::KeySet { ksk, zsk, inception: now, until };
            let text = erldns::write(&[set]).map_err(|fault| fault.to_string())?;
            written(args, &text)
        }
        _ => Err(format!("a key set needs one active KSK and one active ZSK of {}", args.zone)),
    }
}

fn ds(args: &DsArgs) -> Result<String, String> {
    let keys = store(&args.directory).keys(Some(args.zone.as_name()))?;
    let now = now();
    let entries: Vec<&ZoneKey> = keys
        .iter()
        .map(|stored| &stored.key)
        .filter(|key| key.is_entry_point() && key.times.is_published(now))
        .collect();
    if entries.is_empty() {
        return Err(no_keys(args.zone.as_name(), &args.directory));
    }
    let mut text = String::new();
    for key in entries {
        let rdata = key.dnskey();
        let Some(dnskey) = Dnskey::parse(&rdata) else { continue };
        if args.dnskey {
            let data = wire::rdata::display(Rtype::DNSKEY, &rdata, 0..rdata.len());
            let _ = writeln!(text, "{} IN DNSKEY {data}", key.owner);
        }
        for &digest in &args.digest {
            let rdata = Ds::write(key.owner.as_name(), dnskey, digest)
                .ok_or_else(|| format!("digest {digest} is not known"))?;
            let data = wire::rdata::display(Rtype::DS, &rdata, 0..rdata.len());
            let _ = writeln!(text, "{} IN DS {data}", key.owner);
        }
    }
    Ok(text)
}

fn no_keys(zone: Name<'_>, directory: &KeysDirArgs) -> String {
    format!("no entry point of {zone} in \"{}\"", directory.keys.display())
}
