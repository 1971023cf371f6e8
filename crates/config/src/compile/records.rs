//! Sets of records, ready to answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diagnostic::{At, Problem, io_text};
use engine::records::Records;
use lists::Mistakes;
use policy::records::{Includes, Record, alias_with_others, parse_all};
use wire::{HashKey, NameBuf, Rtype};

use environment::Environment;
use settings::{RecordSet, Settings};

/// Compiles every set, by name.
pub(super) fn compile(
    settings: &Settings,
    key: HashKey,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Arc<Records>> {
    let compiled = settings.records.iter().map(|set| {
        let mut records = set.records.clone();
        read_texts(set, &mut records, environment, problems);
        read_files(set, &mut records, environment, problems);
        read_hosts(set, &mut records, (settings, environment), problems);
        problems.extend(records.iter().filter(|record| record.is_split).map(
            |Record { owner, rtype, .. }| {
                let message = format!(
                    "{owner}: a text of more than 255 octets in {rtype}; it is split into several strings"
                );
                Problem::warning(set.name.span, message)
            },
        ));
        if let Some(owner) = alias_with_others(&records) {
            problems.push(
                Problem::error(set.name.span, format!("{owner} has an alias (CNAME) and other records"))
                    .expected("either one CNAME or other records (RFC 2181 §10.1)"),
            );
        }
        let mut builder = policy::records::builder(&records);
        if !set.synthesized_soa {
            builder.leave_out_soa();
        }
        (set.name.value.clone(), Arc::new(builder.compile(key)))
    });
    compiled.collect()
}

/// Returns the files that a set is read from, with those that they include.
pub(super) fn files(set: &RecordSet, environment: &dyn Environment) -> Vec<PathBuf> {
    let files = RefCell::new(Vec::new());
    let read = |path: &Path| {
        files.borrow_mut().push(path.to_owned());
        environment.read(path)
    };
    for text in &set.including {
        let includes = Includes { directory: text.directory.clone(), read: &read };
        drop(parse_all(&text.text.value, set.origin.as_name(), &includes));
    }
    for file in &set.files {
        if let Ok(octets) = read(&file.value) {
            let includes = Includes { directory: directory_of(&file.value), read: &read };
            drop(parse_all(&String::from_utf8_lossy(&octets), set.origin.as_name(), &includes));
        }
    }
    files.borrow_mut().extend(set.hosts.iter().map(|file| file.value.clone()));
    files.into_inner()
}

/// Returns the text of a file; says so if it cannot be read.
fn read(file: &At<PathBuf>, environment: &dyn Environment, problems: &mut Vec<Problem>) -> Option<String> {
    match environment.read(&file.value) {
        Ok(octets) => Some(String::from_utf8_lossy(&octets).into_owned()),
        Err(error) => {
            let message = format!("cannot read \"{}\": {}", file.value.display(), io_text(&error));
            problems.push(Problem::error(file.span, message));
            None
        }
    }
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

fn read_texts(
    set: &RecordSet,
    records: &mut Vec<Record>,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) {
    for text in &set.including {
        let includes = Includes { directory: text.directory.clone(), read: &|path| environment.read(path) };
        let (found, mistakes) = parse_all(&text.text.value, set.origin.as_name(), &includes);
        records.extend(found);
        // The text itself was read without mistakes when it was loaded: they are in the files.
        problems.extend(
            mistakes
                .into_iter()
                .map(|mistake| Problem::error(text.text.span, mistake.message).expected(mistake.expected)),
        );
    }
}

/// A name of a hosts file, and whether it is all that is below it.
type HostOwner = (NameBuf, bool);

/// Reads files of names and addresses; lines that cannot be read are left out, as their authors are
/// others.
fn read_hosts(
    set: &RecordSet,
    records: &mut Vec<Record>,
    (settings, environment): (&Settings, &dyn Environment),
    problems: &mut Vec<Problem>,
) {
    for file in &set.hosts {
        let shown = file.value.display();
        let Some(text) = read(file, environment, problems) else { continue };
        let mut mistakes = Mistakes::of(false);
        let mut hosts: BTreeMap<Vec<u8>, (HostOwner, Vec<IpAddr>)> = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            let read = match words.as_slice() {
                [] => continue,
                [first, names @ ..] if first.parse::<IpAddr>().is_ok() => names.iter().try_for_each(|name| {
                    let owner = (host_name(name)?, false);
                    let known = hosts.entry(sort_key(&owner)).or_insert((owner, Vec::new()));
                    known.1.extend(first.parse::<IpAddr>());
                    Ok(())
                }),
                [first, addresses @ ..] => host_pattern(first).and_then(|owner| {
                    let addresses = addresses.iter().map(|word| {
                        word.parse::<IpAddr>().map_err(|_| format!("\"{word}\" is not an address"))
                    });
                    let addresses: Vec<IpAddr> = addresses.collect::<Result<_, _>>()?;
                    if addresses.is_empty() {
                        return Err(format!("\"{first}\" has no address"));
                    }
                    hosts.insert(sort_key(&owner), (owner, addresses));
                    Ok(())
                }),
            };
            if let Err(why) = read {
                mistakes.add(number, || why);
            }
        }
        if let Some(found) = mistakes.describe() {
            problems.push(Problem::warning(file.span, format!("\"{shown}\": {found}")));
        }
        let ttl = super::ttl(settings.hosts.ttl);
        for ((owner, covers_below), addresses) in hosts.into_values() {
            let below = covers_below.then(|| NameBuf::below(b"\x01*", owner.as_name()).ok()).flatten();
            for owner in [Some(owner), below].into_iter().flatten() {
                records.extend(addresses.iter().map(|address| match address {
                    IpAddr::V4(address) => Record {
                        owner,
                        rtype: Rtype::A,
                        ttl,
                        rdata: address.octets().to_vec(),
                        is_split: false,
                    },
                    IpAddr::V6(address) => Record {
                        owner,
                        rtype: Rtype::AAAA,
                        ttl,
                        rdata: address.octets().to_vec(),
                        is_split: false,
                    },
                }));
            }
        }
    }
}

fn sort_key((owner, covers_below): &HostOwner) -> Vec<u8> {
    let mut key = owner.as_name().to_folded().as_bytes().to_vec();
    key.push(u8::from(*covers_below));
    key
}

fn host_name(text: &str) -> Result<NameBuf, String> {
    values::name(text).map_err(|misread| misread.message)
}

/// Reads what stands before the addresses.
fn host_pattern(text: &str) -> Result<HostOwner, String> {
    match text.split_once(':') {
        None => Ok((host_name(text)?, false)),
        Some(("full" | "exact", name)) => Ok((host_name(name)?, false)),
        Some(("domain" | "suffix", name)) => Ok((host_name(name)?, true)),
        Some((other, _)) => Err(format!("\"{other}:\" cannot stand for a name with addresses")),
    }
}

fn read_files(
    set: &RecordSet,
    records: &mut Vec<Record>,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) {
    for file in &set.files {
        let shown = file.value.display();
        let Some(text) = read(file, environment, problems) else { continue };
        let includes =
            Includes { directory: directory_of(&file.value), read: &|path| environment.read(path) };
        let (found, mistakes) = parse_all(&text, set.origin.as_name(), &includes);
        records.extend(found);
        problems.extend(mistakes.into_iter().map(|mistake| {
            let message = match mistake.is_within {
                true => mistake.message,
                false => format!("\"{shown}\", line {}: {}", mistake.line(&text), mistake.message),
            };
            Problem::error(file.span, message).expected(mistake.expected)
        }));
    }
}
