//! Which names are looked for, and which rows of a file have one of them.

use memchr::memmem::Finder;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use rusqlite::{Connection, OptionalExtension as _};

/// Octets that a regular expression may take, and its search.
const REGEX_OCTETS_MAX: usize = 1 << 20;
/// The most names of a file that are tested at once, before rows are looked at. Of more, those of
/// one block after the other are.
const NAMES_AT_ONCE_MAX: i64 = 400_000;
/// Names that are looked for in a block one by one; of more, all names of the block are looked at.
const NAMES_FEW: usize = 64;
/// Names that are tested one by one, as rows have them, before it takes longer than testing all.
const NAMES_ALONE_MAX: usize = 2_000;

/// What a name must be. Texts are in lower case and without a final dot.
#[derive(Clone, Debug)]
pub enum NameTest {
    /// This name.
    Exact(String),
    /// This name or one below it.
    Suffix(String),
    /// A name that has this text in it.
    Part(Finder<'static>),
    /// A name that fits this regular expression somewhere.
    Regex(Regex),
}

impl NameTest {
    /// Returns the test for names that have a text in them.
    pub fn part(text: &str) -> Self {
        Self::Part(Finder::new(text).into_owned())
    }

    /// Reads a regular expression; letter case does not matter.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn regex(text: &str) -> Result<Self, String> {
        let config = Regex::config()
            .nfa_size_limit(Some(REGEX_OCTETS_MAX))
            .onepass_size_limit(Some(REGEX_OCTETS_MAX))
            .hybrid_cache_capacity(REGEX_OCTETS_MAX);
        let syntax = syntax::Config::new().case_insensitive(true).utf8(false).unicode(false);
        let built = Regex::builder().configure(config).syntax(syntax).build(text);
        built.map(Self::Regex).map_err(|error| match error.syntax_error() {
            Some(error) => format!("not a regular expression: {error}"),
            None => format!("the regular expression is too large: {error}"),
        })
    }

    /// Returns a name as the record has it: in lower case, without a final dot, in ASCII.
    pub fn whole(name: &str) -> String {
        let name = wire::idn::to_ascii(name).unwrap_or_else(|_| name.into()).to_ascii_lowercase();
        if name == "." { name } else { name.trim_end_matches('.').to_owned() }
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exact(wanted) => name == wanted,
            Self::Suffix(suffix) if suffix == "." => true,
            Self::Suffix(suffix) => {
                let before = name.strip_suffix(suffix.as_str());
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
            Self::Part(part) => part.find(name.as_bytes()).is_some(),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

/// Tests of names that all have to hold.
#[derive(Clone, Debug, Default)]
pub struct Names {
    tests: Vec<(NameTest, bool)>,
}

impl Names {
    /// Adds a test that has to hold.
    pub fn are(&mut self, test: NameTest) {
        self.tests.push((test, true));
    }

    /// Adds a test that must not hold.
    pub fn are_not(&mut self, test: NameTest) {
        self.tests.push((test, false));
    }

    /// Returns whether all names fit.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Returns whether a name fits.
    pub fn fit(&self, name: &str) -> bool {
        self.tests.iter().all(|(test, expect)| test.fits(name) == *expect)
    }

    /// Returns whether most names may fit.
    fn only_leave_out(&self) -> bool {
        self.tests.iter().all(|(_, expect)| !expect)
    }

    fn exact(&self) -> Option<&str> {
        self.tests.iter().find_map(|(test, expect)| match test {
            NameTest::Exact(name) if *expect => Some(name.as_str()),
            _ => None,
        })
    }
}

/// A bit for each number.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn has(&self, number: i64) -> bool {
        let at = usize::try_from(number).unwrap_or(0);
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    fn set(&mut self, number: i64) {
        let at = usize::try_from(number).unwrap_or(0);
        if self.0.len() <= at / 64 {
            self.0.resize(at / 64 + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }
}

/// How many rows of a file are looked at, as far as that is known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Few,
    Many,
}

/// The names of one file that fit.
pub(super) struct NamesOf<'a> {
    names: &'a Names,
    fitting: Bits,
    /// The first of them, if all names were tested and there are few.
    few: Option<Vec<i64>>,
    /// Those that were tested; `None`: all were.
    tested: Option<Bits>,
    /// How many may still be tested one by one before all are.
    alone: Option<usize>,
    /// Whether the file has `name_blocks`.
    has_blocks: bool,
}

impl<'a> NamesOf<'a> {
    /// Tests the names of a file, if they are not too many, and if more than few rows are looked
    /// at, which may have few of them.
    pub(super) fn new(
        names: &'a Names,
        database: &Connection,
        has_blocks: bool,
        rows: Rows,
    ) -> rusqlite::Result<Self> {
        let mut found =
            Self { names, fitting: Bits::default(), few: None, tested: None, alone: None, has_blocks };
        if names.is_empty() {
            return Ok(found);
        }
        let mut few = Vec::new();
        if let Some(name) = names.exact() {
            let id = database
                .query_row("SELECT id FROM names WHERE name = ?1", [name], |row| row.get::<_, i64>(0))
                .optional()?;
            if let Some(id) = id.filter(|_| names.fit(name)) {
                found.fitting.set(id);
                few.push(id);
            }
            found.few = Some(few);
            return Ok(found);
        }
        let count: i64 =
            database.query_row("SELECT coalesce(max(id), 0) FROM names", [], |row| row.get(0))?;
        let are_many = count > NAMES_AT_ONCE_MAX;
        if are_many || rows == Rows::Few {
            found.tested = Some(Bits::default());
            found.alone = (!are_many).then_some(NAMES_ALONE_MAX);
            return Ok(found);
        }
        found.test_all(database)?;
        Ok(found)
    }

    /// Tests all names of the file.
    fn test_all(&mut self, database: &Connection) -> rusqlite::Result<()> {
        let mut few = Vec::new();
        let mut query = database.prepare_cached("SELECT id, name FROM names")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            if self.names.fit(row.get_ref(1)?.as_str()?) {
                let id = row.get(0)?;
                self.fitting.set(id);
                if few.len() <= NAMES_FEW {
                    few.push(id);
                }
            }
        }
        self.few = Some(few).filter(|few| few.len() <= NAMES_FEW);
        self.tested = None;
        Ok(())
    }

    /// Returns whether names are tested as the few rows have them that are looked at.
    pub(super) fn are_few(&self) -> bool {
        self.alone.is_some() && self.tested.is_some()
    }

    /// Returns whether no row can fit.
    pub(super) fn are_none(&self) -> bool {
        self.few.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns whether a row with this name fits.
    pub(super) fn fit(&mut self, database: &Connection, name: i64) -> rusqlite::Result<bool> {
        if self.names.is_empty() {
            return Ok(true);
        }
        if let Some(tested) = &mut self.tested
            && !tested.has(name)
        {
            match &mut self.alone {
                Some(0) => {
                    self.test_all(database)?;
                    return Ok(self.fitting.has(name));
                }
                Some(alone) => *alone -= 1,
                None => {}
            }
            tested.set(name);
            let mut query = database.prepare_cached("SELECT name FROM names WHERE id = ?1")?;
            let fits = query.query_row([name], |row| Ok(self.names.fit(row.get_ref(0)?.as_str()?)))?;
            if fits {
                self.fitting.set(name);
            }
        }
        Ok(self.fitting.has(name))
    }

    /// Returns whether a row of a block may fit.
    pub(super) fn may_be_in(&mut self, database: &Connection, block: i64) -> rusqlite::Result<bool> {
        if self.names.only_leave_out() || !self.has_blocks {
            return Ok(true);
        }
        if let Some(few) = &self.few {
            let sql = "SELECT EXISTS (SELECT 1 FROM name_blocks WHERE block = ?1 AND name = ?2)";
            let mut query = database.prepare_cached(sql)?;
            for name in few {
                if query.query_row([block, *name], |row| row.get(0))? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let mut query = database.prepare_cached("SELECT name FROM name_blocks WHERE block = ?1")?;
        let mut rows = query.query([block])?;
        while let Some(row) = rows.next()? {
            if self.fit(database, row.get(0)?)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_what_they_are_and_are_not() {
        let check = |test: NameTest, fitting: &[&str], others: &[&str]| {
            let mut names = Names::default();
            names.are(test.clone());
            fitting.iter().for_each(|name| assert!(names.fit(name), "{test:?} {name}"));
            others.iter().for_each(|name| assert!(!names.fit(name), "{test:?} {name}"));
            let mut names = Names::default();
            names.are_not(test);
            assert!(fitting.iter().all(|name| !names.fit(name)) && others.iter().all(|name| names.fit(name)));
        };
        check(NameTest::Exact("a.example".into()), &["a.example"], &["b.a.example", "example"]);
        check(
            NameTest::Suffix("a.example".into()),
            &["a.example", "b.a.example"],
            &["xa.example", "example"],
        );
        check(NameTest::Suffix(".".into()), &["a.example", "."], &[]);
        check(NameTest::part("a.e"), &["a.example", "xa.example"], &["b.example"]);
        let regex = NameTest::regex("^AD[0-9]+\\.").expect("an expression");
        check(regex, &["ad7.example", "ad12.a.example"], &["xad7.example", "ad.example"]);
        assert!(NameTest::regex("(").is_err_and(|why| why.starts_with("not a regular expression")));
        assert!(NameTest::regex("(a{1000}){1000}").is_err());
    }
}
