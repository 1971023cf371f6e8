//! Where lists are: in files, on web servers with a copy here, in the configuration itself.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::{Mistake, Workshop};
use diagnostic::{io_text, without_secrets};
use environment::KeptList;
use lists::own::OCTETS_MAX as OWN_OCTETS_MAX;
use lists::{ListFormat, Progress, SetBuilder};
use settings::{ListPlace, Set, SetList, Settings};
use wire::NameBuf;

/// A list that comes from a web server.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlList {
    /// The set it is for.
    pub set: String,
    /// Where it is.
    pub url: String,
    /// Where its last good copy is kept.
    pub file: PathBuf,
    /// How it is written, and its limits.
    pub list: SetList,
}

/// Returns the lists of a configuration that come from web servers.
pub(crate) fn url_lists(settings: &Settings, state_directory: &Path) -> Vec<UrlList> {
    let all = settings.sets.iter().flat_map(|set| set.lists.iter().map(move |list| (set, list)));
    let urls = all.filter_map(|(set, list)| match &list.place.value {
        ListPlace::Url(url) => Some(UrlList {
            set: set.name.value.clone(),
            url: url.clone(),
            file: copy_file(state_directory, &set.name.value, url),
            list: list.clone(),
        }),
        ListPlace::File(_) | ListPlace::Here(_) | ListPlace::Zone(_) | ListPlace::Own(_) => None,
    });
    urls.collect()
}

/// Returns the zones from other servers that sets are made of, with the names of these sets.
pub(crate) fn policy_zones(settings: &Settings) -> Vec<(NameBuf, String)> {
    let all = settings.sets.iter().flat_map(|set| set.lists.iter().map(move |list| (set, list)));
    let zones = all.filter_map(|(set, list)| match &list.place.value {
        ListPlace::Zone(apex) => Some((*apex, set.name.value.clone())),
        ListPlace::File(_) | ListPlace::Url(_) | ListPlace::Here(_) | ListPlace::Own(_) => None,
    });
    zones.collect()
}

/// Returns where the last good copy of a URL is kept. What the server said about it stands beside
/// it, in a file whose name ends in `.meta`.
pub fn copy_file(state_directory: &Path, set: &str, url: &str) -> PathBuf {
    // FNV-1a, as part of a format on disk: with any other hash, a new version of this program would
    // not find the copies that an older one has kept.
    let hash = url.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    state_directory.join("sets").join(format!("{set}-{hash:016x}"))
}

/// Returns the file that a list is read from, if it is.
pub(crate) fn file_of(set: &Set, list: &SetList, state_directory: &Path) -> Option<PathBuf> {
    match &list.place.value {
        ListPlace::File(file) => Some(file.clone()),
        ListPlace::Url(url) => Some(copy_file(state_directory, &set.name.value, url)),
        ListPlace::Here(_) | ListPlace::Zone(_) | ListPlace::Own(_) => None,
    }
}

/// Returns what people call a list.
pub(super) fn label_of(set: &Set, list: &SetList) -> String {
    match &list.place.value {
        ListPlace::File(file) => file.display().to_string(),
        ListPlace::Url(url) => without_secrets(url).into_owned(),
        ListPlace::Here(_) => format!("rules of {}", set.name.value),
        ListPlace::Zone(apex) => format!("zone {apex}"),
        ListPlace::Own(name) => format!("list {name}"),
    }
}

/// Reads a list.
pub(super) fn read_list<'l>(
    set: &Set,
    list: &'l SetList,
    workshop: &Workshop<'_>,
) -> Result<Cow<'l, [u8]>, Mistake> {
    let label = label_of(set, list);
    let (file, is_url) = match &list.place.value {
        ListPlace::File(file) => (file.clone(), false),
        ListPlace::Url(url) => (copy_file(workshop.state_directory, &set.name.value, url), true),
        ListPlace::Here(text) => {
            let mut pieces = text.pieces();
            return Ok(match (pieces.next(), pieces.next()) {
                (Some(one), None) => Cow::Borrowed(one.as_bytes()),
                (None, _) => Cow::Borrowed(&[]),
                // Names are read piece by piece.
                (Some(_), Some(_)) if list.format == ListFormat::Names => Cow::Borrowed(&[]),
                (Some(_), Some(_)) => Cow::Owned(text.to_string().into_bytes()),
            });
        }
        // Its records are in memory.
        ListPlace::Zone(_) => return Ok(Cow::Borrowed(&[])),
        // Names are read by the first set that has the list.
        ListPlace::Own(_) if list.format == ListFormat::Names => return Ok(Cow::Borrowed(&[])),
        ListPlace::Own(name) => {
            let Some(kept) = workshop.environment.own_list(name) else { return Ok(Cow::Borrowed(&[])) };
            let read = read_own(&kept, workshop)
                .map_err(|error| Mistake { text: cannot_read(&label, &error), is_error: true })?;
            return Ok(Cow::Owned(kept.list.text(read)));
        }
    };
    let wrong = |text: String| Mistake { text, is_error: !is_url };
    match workshop.environment.read_list(&file, list.octets_max) {
        Ok(octets) if octets.len() as u64 > list.octets_max => {
            let size = values::size_text(list.octets_max);
            Err(wrong(format!(
                "\"{label}\" is larger than {size}; if it may be, say so with \"size\" beside \"list\""
            )))
        }
        Ok(octets) => Ok(Cow::Owned(octets)),
        Err(error) if is_url && error.kind() == io::ErrorKind::NotFound => {
            Err(wrong(format!("\"{label}\" was not fetched yet; the set is without it until then")))
        }
        Err(error) => {
            let may_be_missing = list.is_optional && error.kind() == io::ErrorKind::NotFound;
            Err(Mistake { text: cannot_read(&label, &error), is_error: !is_url && !may_be_missing })
        }
    }
}

fn cannot_read(label: &str, error: &io::Error) -> String {
    format!("cannot read \"{label}\": {}", io_text(error))
}

/// Reads the text of a list that is kept beside the settings.
fn read_own(kept: &KeptList, workshop: &Workshop<'_>) -> io::Result<Vec<u8>> {
    match &kept.file {
        Some(file) => workshop.environment.read_list(file, OWN_OCTETS_MAX),
        None => Ok(Vec::new()),
    }
}

/// Adds a list of names that is kept beside the settings; returns what is wrong with it.
pub(super) fn read_own_names(
    (name, label): (&str, &str),
    builder: &mut SetBuilder<'_>,
    workshop: &Workshop<'_>,
    progress: Progress<'_>,
) -> Vec<Mistake> {
    // A checker of files does not know it.
    let Some(kept) = workshop.environment.own_list(name) else { return Vec::new() };
    let told = |text: String| Mistake { text, is_error: true };
    match kept.list.names((&workshop.key, label), progress, || read_own(&kept, workshop)) {
        Ok((names, mistakes)) => {
            builder.changing(names);
            mistakes.each().map(|text| told(format!("\"{label}\": {text}"))).collect()
        }
        Err(error) => vec![told(cannot_read(label, &error))],
    }
}
