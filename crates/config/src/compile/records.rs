//! Sets of records, ready to answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::records::{Records, RecordsBuilder};
use wire::HashKey;

use crate::diagnostic::Problem;
use crate::load::Surroundings;
use crate::lower::io_text;
use crate::records::{Includes, Record, alias_with_others, parse_all};
use crate::settings::{RecordSet, Settings};

/// Compiles every set, by name.
pub(super) fn compile(
    settings: &Settings,
    key: HashKey,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Arc<Records>> {
    let compiled = settings.records.iter().map(|set| {
        let mut records = set.records.clone();
        read_texts(set, &mut records, surroundings, problems);
        read_files(set, &mut records, surroundings, problems);
        if let Some(owner) = alias_with_others(&records) {
            problems.push(
                Problem::error(set.name.span, format!("{owner} has an alias (CNAME) and other records"))
                    .expected("either one CNAME or other records (RFC 2181 §10.1)"),
            );
        }
        (set.name.value.clone(), of(&records, key))
    });
    compiled.collect()
}

/// Compiles some records.
pub(super) fn of(records: &[Record], key: HashKey) -> Arc<Records> {
    let mut builder = RecordsBuilder::new();
    for Record { owner, rtype, ttl, rdata } in records {
        builder.add(owner.as_name(), *rtype, *ttl, rdata);
    }
    Arc::new(builder.compile(key))
}

/// Returns the files that a set is read from, with those that they include.
pub(super) fn files(set: &RecordSet, surroundings: &dyn Surroundings) -> Vec<PathBuf> {
    let files = RefCell::new(Vec::new());
    let read = |path: &Path| {
        files.borrow_mut().push(path.to_owned());
        surroundings.read(path)
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
    files.into_inner()
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

fn read_texts(
    set: &RecordSet,
    records: &mut Vec<Record>,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
) {
    for text in &set.including {
        let includes = Includes { directory: text.directory.clone(), read: &|path| surroundings.read(path) };
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

fn read_files(
    set: &RecordSet,
    records: &mut Vec<Record>,
    surroundings: &dyn Surroundings,
    problems: &mut Vec<Problem>,
) {
    for file in &set.files {
        let shown = file.value.display();
        let octets = match surroundings.read(&file.value) {
            Ok(octets) => octets,
            Err(error) => {
                let message = format!("cannot read \"{shown}\": {}", io_text(&error));
                problems.push(Problem::error(file.span, message));
                continue;
            }
        };
        let text = String::from_utf8_lossy(&octets);
        let includes =
            Includes { directory: directory_of(&file.value), read: &|path| surroundings.read(path) };
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
