//! From text to a zone.

use wire::{HashKey, Name};

use crate::build::Builder;
use crate::check::Finding;
use crate::master::{self, Include, Mistake, NoIncludes, Options};
use crate::zone::Zone;

/// What came of a zone's file.
pub struct Loaded {
    /// The zone; none if there are mistakes, or findings that are errors.
    pub zone: Option<Zone>,
    /// The files that were read, by number.
    pub files: Vec<String>,
    /// What could not be read, in the order of reading.
    pub mistakes: Vec<Mistake>,
    /// What is wrong with the data, in the order of the file.
    pub findings: Vec<Finding>,
    /// Mistakes and findings that are not told.
    pub more: usize,
}

/// Reads and compiles a zone. `file` is what its text is called in messages.
pub fn load(apex: Name<'_>, file: &str, text: &[u8], include: &mut dyn Include, key: HashKey) -> Loaded {
    load_by(&Options::of_zone(apex), file, text, include, key)
}

/// Reads and compiles a zone that somebody sent: it is not larger than its text, as `$GENERATE` and
/// `$INCLUDE` are mistakes.
pub fn load_sent(apex: Name<'_>, file: &str, text: &[u8], key: HashKey) -> Loaded {
    let options = Options { generated_max: 0, ..Options::of_zone(apex) };
    load_by(&options, file, text, &mut NoIncludes, key)
}

fn load_by(
    options: &Options<'_>,
    file: &str,
    text: &[u8],
    include: &mut dyn Include,
    key: HashKey,
) -> Loaded {
    let mut builder = Builder::new(options.origin, key);
    builder.reserve(text.len());
    let read = master::read(file, text, options, include, |entry| builder.push(entry));
    let mut built = builder.compile();
    if !read.mistakes.is_empty() {
        // What is not there may only be what could not be read.
        built.findings.retain(|finding| !finding.problem.is_of_absence());
    }
    Loaded {
        zone: built.zone.filter(|_| read.mistakes.is_empty()),
        files: read.files,
        mistakes: read.mistakes,
        findings: built.findings,
        more: read.more_mistakes + built.more_findings,
    }
}
