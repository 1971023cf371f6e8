//! What is known of a certificate beside it, kept over restarts: what became of orders, so that a
//! server that starts again and again does not order again and again.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use plan::certificates::CertificatePlan;
use serde_json::{Value, json};

use crate::schedule::Window;

/// Rights of files with keys: their owner's alone.
const PRIVATE: u32 = 0o600;
/// Octets of what is kept of orders and accounts: some hundred are usual.
const FILE_OCTETS_MAX: u64 = 1 << 16;

/// What became of orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// What was ordered, and of whom: what is known of failures holds for that alone.
    pub(crate) order: String,
    /// The URL of the authority that gave the certificate.
    pub(crate) authority: Option<String>,
    /// When it came, in seconds since 1970.
    pub(crate) issued_at: u64,
    /// Orders that were begun.
    pub(crate) attempts: u64,
    /// Orders in a row that came to nothing.
    pub(crate) failures: u32,
    /// Nothing is ordered before.
    pub(crate) next_at: u64,
    /// What was in the way of the last one, and when.
    pub(crate) trouble: Option<(u64, String)>,
    /// When the authority wants it renewed.
    pub(crate) window: Option<Window>,
    /// When it is asked again.
    pub(crate) ask_at: u64,
}

/// Returns where a certificate and all that belongs to it is kept.
pub(crate) fn folder_of(plan: &CertificatePlan) -> PathBuf {
    plan.file.parent().unwrap_or(Path::new("")).to_owned()
}

/// Writes a file that is its owner's alone, in one step; makes its folder. It stays over a power
/// cut.
pub(crate) fn write_private(file: &Path, octets: &[u8]) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    // What a process left that was killed.
    drop(fs::remove_file(&new));
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&new)?;
    let written = opened.write_all(octets).and_then(|()| opened.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&new, file)) {
        drop(fs::remove_file(&new));
        return Err(error);
    }
    folder.map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

/// Reads a small text.
pub(crate) fn read_text(file: &Path) -> io::Result<String> {
    let octets = fs::metadata(file)?.len();
    if octets > FILE_OCTETS_MAX {
        return Err(io::Error::other(format!("larger than {FILE_OCTETS_MAX} octets")));
    }
    fs::read_to_string(file)
}

/// Returns what tells one order from another: names, key, and who is asked how.
pub(crate) fn order_of(plan: &CertificatePlan) -> String {
    let authorities: Vec<_> = plan
        .authorities
        .iter()
        .map(|it| (&it.url, &it.profile, it.binding.as_ref().map(|(key_id, _)| key_id)))
        .collect();
    let text = format!("{:?}{:?}{:?}{authorities:?}", plan.identifiers, plan.challenge, plan.key);
    digest(&SHA256, text.as_bytes()).as_ref().iter().take(8).map(|octet| format!("{octet:02x}")).collect()
}

impl Record {
    /// Reads what is known; nothing if there is nothing, or nothing that makes sense.
    pub(crate) fn read(plan: &CertificatePlan) -> Self {
        let file = Self::file(plan);
        match read_text(&file) {
            Ok(text) => Self::parse(&text).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "what became of orders is not known");
                Self::default()
            }
        }
    }

    /// Writes what is known.
    pub(crate) fn write(&self, plan: &CertificatePlan) -> io::Result<()> {
        write_private(&Self::file(plan), self.text().as_bytes())
    }

    fn file(plan: &CertificatePlan) -> PathBuf {
        plan.file.with_extension("json")
    }

    fn text(&self) -> String {
        json!({
            "order": self.order,
            "authority": self.authority,
            "issued-at": self.issued_at,
            "attempts": self.attempts,
            "failures": self.failures,
            "next-at": self.next_at,
            "trouble": self.trouble.as_ref().map(|(at, why)| json!({"at": at, "why": why})),
            "window": self.window.map(|window| json!({"start": window.start, "end": window.end})),
            "ask-at": self.ask_at,
        })
        .to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let read: Value = serde_json::from_str(text).ok()?;
        let number = |value: &Value| value.as_u64();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let trouble = &read["trouble"];
        let window = &read["window"];
        Some(Self {
            order: text(&read["order"])?,
            authority: text(&read["authority"]),
            issued_at: number(&read["issued-at"])?,
            attempts: number(&read["attempts"])?,
            failures: u32::try_from(number(&read["failures"])?).ok()?,
            next_at: number(&read["next-at"])?,
            trouble: number(&trouble["at"]).zip(text(&trouble["why"])),
            window: number(&window["start"])
                .zip(number(&window["end"]))
                .map(|(start, end)| Window { start, end }),
            ask_at: number(&read["ask-at"])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nonsense_is_nothing() {
        let record = Record {
            order: "0011".to_owned(),
            authority: Some("https://ca.example.org/".to_owned()),
            issued_at: 1,
            attempts: 7,
            failures: 2,
            next_at: 3,
            trouble: Some((4, "no \"way\"".to_owned())),
            window: Some(Window { start: 5, end: 6 }),
            ask_at: 8,
        };
        assert_eq!(Record::parse(&record.text()), Some(record));
        assert_eq!(Record::parse(&Record::default().text()), Some(Record::default()));
        for nonsense in ["", "[]", "{}", "{\"order\": 1}", "\0"] {
            assert_eq!(Record::parse(nonsense), None, "{nonsense:?}");
        }
    }
}
