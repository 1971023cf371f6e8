//! From text of another server to a zone: a master file that came from a web server.

use std::fmt;

use wire::{HashKey, Name};

use crate::build::Builder;
use crate::check::Origin;
use crate::difference::{Misfit, judged};
use crate::master::{self, Mistake, NoIncludes, Options};
use crate::zone::Zone;

/// Why a master file from elsewhere is no zone that can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// What cannot be read first, and how many mistakes there are.
    Unreadable(Box<Mistake>, usize),
    /// What comes of its records is not served.
    Unfit(Misfit),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(first, count) => {
                write!(f, "line {}: {first}", first.place.line)?;
                if *count > 1 { write!(f, "; and {} more mistakes", count - 1) } else { Ok(()) }
            }
            Self::Unfit(misfit) => write!(f, "what came cannot be served: {misfit}"),
        }
    }
}

/// Reads and compiles a zone from a master file of another server. It is judged as a transfer is:
/// what is wrong with its data does not keep it from being served. `$INCLUDE` and `$GENERATE` are
/// mistakes, so that it has no more records than its octets allow.
pub fn receive(apex: Name<'_>, text: &[u8], key: HashKey) -> Result<Zone, Unusable> {
    let mut builder = Builder::new(apex, key).from(Origin::Received);
    builder.reserve(text.len());
    let options = Options { generated_max: 0, includes_max: 0, ..Options::of_zone(apex) };
    let read = master::read("", text, &options, &mut NoIncludes, |entry| builder.push(entry));
    let count = read.mistakes.len() + read.more_mistakes;
    if let Some(first) = read.mistakes.into_iter().next() {
        return Err(Unusable::Unreadable(Box::new(first), count));
    }
    judged(builder.compile(), Origin::Received).map_err(Unusable::Unfit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<u32, String> {
        let apex: wire::NameBuf = "example.org".parse().expect("a name");
        let found = receive(apex.as_name(), text.as_bytes(), HashKey::new([1, 2]));
        found.map(|zone| zone.facts().serial).map_err(|why| why.to_string())
    }

    const SOA: &str =
        "@ 300 IN SOA ns.example.net. admin.example.net. 7 7200 600 86400 300\n@ 300 NS ns.example.net.\n";

    #[test]
    fn a_master_file_of_a_stranger_is_a_zone() {
        assert_eq!(check(SOA), Ok(7));
        assert_eq!(check(&format!("{SOA}www 300 A 192.0.2.1\n")), Ok(7));
    }

    #[test]
    fn a_page_that_says_not_found_is_none() {
        let why = check("<html>\n<body>\n404 not found\n</body>\n").expect_err("it is no zone");
        assert!(why.starts_with("line 1: "), "{why}");
        assert!(check("www 300 A 192.0.2.1\n").is_err(), "without a SOA");
    }

    #[test]
    fn it_includes_no_files_and_generates_no_records() {
        let why = check(&format!("{SOA}$INCLUDE /etc/passwd\n")).expect_err("a file of this machine");
        assert!(why.starts_with("line 3: "), "{why}");
        assert!(check(&format!("{SOA}$GENERATE 1-16000000 h$ A 192.0.2.1\n")).is_err());
    }
}
