//! The files of the record: one for each day, named after it, beside what the setting says.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::civil::Date;

/// Milliseconds of a day; the record's days are those of UTC.
pub(super) const DAY_MS: i64 = 86_400_000;
/// Where the day stands in the number of a row over all files.
const DAY_SHIFT: u32 = 36;
/// What SQLite keeps beside a database, and the database.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];

/// A day, counted from 1970; the file that versions before 3 wrote counts as day 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Day(pub(super) i64);

impl Day {
    /// What one file for all days counts as.
    pub(super) const UNDIVIDED: Self = Self(0);
    /// The greatest number of a row in its file.
    pub(super) const ID_MAX: i64 = (1 << DAY_SHIFT) - 1;

    /// Returns the day of a moment, in milliseconds since 1970.
    pub(super) fn of(at_ms: i64) -> Self {
        // Before 1970 there was no DNS; a clock that says so is wrong.
        Self(at_ms.div_euclid(DAY_MS).max(1))
    }

    /// Returns when it begins, in milliseconds since 1970.
    pub(super) const fn begin_ms(self) -> i64 {
        self.0.saturating_mul(DAY_MS)
    }

    /// Returns when it is over.
    pub(super) const fn end_ms(self) -> i64 {
        self.begin_ms().saturating_add(DAY_MS)
    }

    /// Returns the number of one of its rows over all files: rises from day to day, and within one.
    pub(super) const fn global(self, id: i64) -> i64 {
        self.0 << DAY_SHIFT | id
    }

    /// Returns the day and the number in its file that a number over all files stands for.
    pub(super) const fn split(global: i64) -> (Self, i64) {
        (Self(global >> DAY_SHIFT), global & Self::ID_MAX)
    }

    /// Returns how files are named after it: `2026-11-27`.
    fn text(self) -> String {
        let at = jiff::Timestamp::from_millisecond(self.begin_ms()).unwrap_or_default();
        at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let date: Date = text.parse().ok().filter(|date: &Date| date.to_string() == text)?;
        let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Self::of(midnight.timestamp().as_millisecond()))
    }
}

/// Where the files of the record are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// What the setting says: `queries.db` stands for `queries-2026-11-27.db` and so on.
    file: PathBuf,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DayFile {
    pub(super) day: Day,
    pub(super) path: PathBuf,
}

impl Files {
    /// Returns those of a setting.
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }

    fn stem(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns what names end with: a dot and the extension, or nothing.
    fn end(&self) -> String {
        self.file.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()))
    }

    /// Returns the directory that they are in.
    pub(super) fn folder(&self) -> PathBuf {
        match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// Returns a file beside them: `queries-sums.db`.
    pub(super) fn beside(&self, what: &str) -> PathBuf {
        self.folder().join(format!("{}-{what}{}", self.stem(), self.end()))
    }

    /// Returns the file with the key of today's pseudonyms.
    pub(super) fn key(&self) -> PathBuf {
        self.folder().join(format!("{}.key", self.stem()))
    }

    /// Returns the database of sums.
    pub(super) fn sums(&self) -> PathBuf {
        self.beside("sums")
    }

    /// Returns the file of a day.
    pub(super) fn of(&self, day: Day) -> DayFile {
        match day {
            Day::UNDIVIDED => DayFile { day, path: self.file.clone() },
            day => DayFile { day, path: self.beside(&day.text()) },
        }
    }

    /// Returns the day of a file's name.
    fn day_of(&self, name: &str) -> Option<Day> {
        let rest = name.strip_prefix(&self.stem())?.strip_prefix('-')?;
        Day::parse(rest.strip_suffix(self.end().as_str())?)
    }

    /// Returns the files that there are, the oldest first.
    pub(super) fn all(&self) -> Vec<DayFile> {
        let entries = std::fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let days = entries.filter_map(|entry| self.day_of(entry.file_name().to_str()?));
        let mut days: Vec<Day> = days.collect();
        if self.file.is_file() {
            days.push(Day::UNDIVIDED);
        }
        days.sort_unstable();
        days.into_iter().map(|day| self.of(day)).collect()
    }
}

impl DayFile {
    /// Returns how many octets it takes, with what SQLite keeps beside it.
    pub(super) fn octets(&self) -> u64 {
        let octets = |path: PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        ENDS.iter().map(|end| octets(with_end(&self.path, end))).sum()
    }

    /// Returns when it was written last, in milliseconds since 1970.
    pub(super) fn written_ms(&self) -> Option<i64> {
        let found = std::fs::metadata(&self.path).ok()?;
        Some(found.mtime().saturating_mul(1000))
    }

    /// Returns what tells it from every other file, if it is there.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        let found = std::fs::metadata(&self.path).ok()?;
        Some((found.dev(), found.ino()))
    }

    /// Removes it; who reads it goes on reading.
    pub(super) fn remove(&self) -> std::io::Result<()> {
        std::fs::remove_file(&self.path)?;
        for end in &ENDS[1..] {
            // Mostly there is none.
            drop(std::fs::remove_file(with_end(&self.path, end)));
        }
        Ok(())
    }

    /// Gives it another name, so that a new one can be begun; returns that name.
    pub(super) fn put_aside(&self, why: &str) -> PathBuf {
        put_aside(&self.path, why)
    }
}

/// Gives a database another name, with what SQLite keeps beside it; returns that name.
pub(super) fn put_aside(path: &Path, why: &str) -> PathBuf {
    let aside = with_end(path, &format!(".{why}"));
    for end in ENDS {
        drop(std::fs::rename(with_end(path, end), with_end(&aside, end)));
    }
    aside
}

/// Returns a path with something behind its name.
pub(super) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_day_and_found_by_its_name() {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let files = Files::new(&folder.path().join("queries.db"));
        let day = Day::of(1_795_737_600_000);
        let name = |file: &DayFile| file.path.file_name().map(|name| name.to_string_lossy().into_owned());
        assert_eq!(name(&files.of(day)).as_deref(), Some("queries-2026-11-27.db"));
        assert_eq!((Day::of(day.end_ms() - 1), Day::of(day.end_ms()).0), (day, day.0 + 1));
        for name in [
            "queries-2026-11-27.db",
            "queries-2026-11-26.db",
            "queries-2026-11-26.db-wal",
            "queries-sums.db",
            "queries-2026-13-01.db",
            "queries-20261126.db",
            "others-2026-11-25.db",
            "queries.db",
        ] {
            std::fs::write(folder.path().join(name), "x").expect("a writable directory");
        }
        let days: Vec<Day> = files.all().iter().map(|file| file.day).collect();
        assert_eq!(days, [Day::UNDIVIDED, Day(day.0 - 1), day]);
        assert_eq!(files.all()[1].octets(), 2);
        files.all()[1].remove().expect("it is removed");
        assert!(!folder.path().join("queries-2026-11-26.db-wal").exists());
    }

    #[test]
    fn numbers_over_all_files_rise_from_day_to_day() {
        let day = Day(20_784);
        assert_eq!(Day::split(day.global(7)), (day, 7));
        assert!(day.global((1 << 36) - 1) < Day(day.0 + 1).global(1));
        assert!(Day::UNDIVIDED.global(1 << 30) < Day(1).global(1));
        // As JSON has numbers.
        assert!(Day(40_000).global((1 << 36) - 1) < 1 << 53);
    }
}
