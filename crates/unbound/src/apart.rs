//! Local zones of block lists while they are read: lines that differ in a name alone, of which
//! only the names are kept.

use diagnostic::{LineForm, LineRun};

use crate::kind::is_alike_in_bulk;
use crate::names::is_plain_lower_case;

/// Lines of a form that stay in the text, so that what people write by hand is there as it is.
const KEPT_LINES: u32 = 1000;
/// Forms of one file whose lines may be kept apart.
const FORMS_MAX: usize = 64;
/// Octets of what stands before and behind a name.
const FORM_OCTETS_MAX: usize = 256;

/// Whether anybody wants the names of zones that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Kept,
    /// They are checked, and forgotten.
    Forgotten,
}

/// What lines consist of besides their names.
struct Form {
    before: Vec<u8>,
    /// With the end of the line.
    behind: Vec<u8>,
    /// The section that they are in, by its place among all.
    block: usize,
    /// How many there were.
    seen: u32,
    /// The names of those that are kept apart.
    names: String,
    count: u32,
}

/// The lines of a file that are kept apart.
#[derive(Default)]
pub(crate) struct Apart {
    forms: Vec<Form>,
    /// The form of the last line: most are like the one before.
    last: usize,
    runs: Vec<LineRun>,
}

/// A line that is kept apart.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) form: u32,
    /// Where its name begins among those of the form.
    pub(crate) first: u32,
    /// Whether it follows a line of the same form.
    pub(crate) goes_on: bool,
}

impl Apart {
    /// Takes a line that is a local zone like many others: the one numbered `number`, behind `at`
    /// octets of text. Returns none if it is to stay in the text.
    pub(crate) fn take(
        &mut self,
        line: &[u8],
        block: usize,
        (number, at): (u32, u32),
        names: Names,
    ) -> Option<Taken> {
        let (place, name) = self.form_of(line, block)?;
        self.last = place;
        let form = self.forms.get_mut(place)?;
        form.seen = form.seen.saturating_add(1);
        if form.seen <= KEPT_LINES {
            return None;
        }
        // What is read is shorter than a number can say.
        let first = form.names.len() as u32;
        if names == Names::Kept {
            form.names.push_str(name);
            form.names.push('\n');
        }
        form.count += 1;
        let place = place as u32;
        let last = self.runs.last_mut();
        let goes_on = match last.filter(|run| run.form == place && run.line + run.count == number) {
            Some(run) => {
                run.count += 1;
                true
            }
            None => {
                self.runs.push(LineRun { at, line: number, count: 1, form: place, first });
                false
            }
        };
        Some(Taken { form: place, first, goes_on })
    }

    /// Returns the form of a line, and the name in it.
    fn form_of<'l>(&mut self, line: &'l [u8], block: usize) -> Option<(usize, &'l str)> {
        let name_in = |form: &Form| {
            let name = line.strip_prefix(&*form.before)?.strip_suffix(&*form.behind)?;
            (form.block == block && is_plain_lower_case(name)).then_some(name)
        };
        let text = |name: &'l [u8]| std::str::from_utf8(name).ok();
        if let Some(name) = self.forms.get(self.last).and_then(name_in) {
            return Some((self.last, text(name)?));
        }
        for (place, form) in self.forms.iter().enumerate() {
            if let Some(name) = name_in(form) {
                return Some((place, text(name)?));
            }
        }
        if self.forms.len() >= FORMS_MAX {
            return None;
        }
        let (before, name, behind) = parts(line)?;
        self.forms.push(Form {
            before: before.to_vec(),
            behind: behind.to_vec(),
            block,
            seen: 0,
            names: String::new(),
            count: 0,
        });
        Some((self.forms.len() - 1, text(name)?))
    }

    /// Returns the forms, and the lines.
    pub(crate) fn finish(self) -> (Vec<LineForm>, Vec<LineRun>) {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned().into_boxed_str();
        let form = |form: Form| LineForm {
            before: text(&form.before),
            behind: text(&form.behind),
            words: form.names.into(),
            count: form.count,
        };
        (self.forms.into_iter().map(form).collect(), self.runs)
    }
}

/// Takes a line apart that is nothing but a local zone with a plain name and a type whose zones can
/// be kept in bulk: what stands before the name, the name, and what stands behind it.
fn parts(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blanks = |text: &[u8]| text.iter().take_while(|octet| matches!(octet, b' ' | b'\t')).count();
    let begin = blanks(line);
    let keyword = line.get(begin..)?.strip_prefix(b"local-zone:")?;
    let mut at = line.len() - keyword.len() + blanks(keyword);
    let quote = line.get(at).copied().filter(|octet| matches!(octet, b'"' | b'\''));
    at += usize::from(quote.is_some());
    let is_of_name = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
    let mut end = at + line.get(at..)?.iter().take_while(|octet| is_of_name(octet)).count();
    let word_end = end;
    if line.get(at..end)?.ends_with(b".") {
        end -= 1;
    }
    let name = line.get(at..end).filter(|name| is_plain_lower_case(name))?;
    let mut rest = line.get(word_end..)?;
    if let Some(quote) = quote {
        rest = rest.strip_prefix(&[quote])?;
    }
    let kind = rest.strip_suffix(b"\n")?;
    let kind = kind.strip_suffix(b"\r").unwrap_or(kind);
    if blanks(kind) == 0 {
        return None;
    }
    let kind = kind.trim_ascii();
    let bare = match kind {
        [b'"', inside @ .., b'"'] | [b'\'', inside @ .., b'\''] => inside,
        bare => bare,
    };
    let is_bulk = std::str::from_utf8(bare).is_ok_and(is_alike_in_bulk);
    let (before, behind) = (line.get(..at)?, line.get(end..)?);
    let is_short = before.len() + behind.len() <= FORM_OCTETS_MAX;
    (is_bulk && is_short).then_some((before, name, behind))
}

/// Returns the type of the zones that lines of a form are.
pub(crate) fn kind_of(form: &LineForm) -> &str {
    form.behind.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Option<(&str, &str)>) {
        let found = parts(line.as_bytes()).map(|(before, name, behind)| {
            let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).expect("ASCII");
            let form =
                LineForm { before: "".into(), behind: text(behind).into(), words: "".into(), count: 0 };
            assert_eq!(text(before) + &text(name) + &text(behind), line);
            (text(name), kind_of(&form).to_owned())
        });
        assert_eq!(found, expect.map(|(name, kind)| (name.to_owned(), kind.to_owned())), "{line}");
    }

    #[test]
    fn a_line_is_kept_apart_only_if_nothing_else_could_be_meant() {
        for line in [
            "local-zone: a.example always_null\n",
            " local-zone: \"a.example\" always_null\n",
            "\tlocal-zone:'a.example.'  \"always_null\" \r\n",
            "local-zone:a.example. always_null\n",
        ] {
            check(line, Some(("a.example", "always_null")));
        }
        for line in [
            "local-zone: a.example always_null",
            "local-zone: A.example always_null\n",
            "local-zone: \"a.example always_null\n",
            "local-zone: a.example always_null # why\n",
            "local-zone: a.example redirect\n",
            "local-zone: a.example inform\n",
            "local-zone: a.example nodefault\n",
            "local-zone: a.example nonsense\n",
            "local-zone: a.example\n",
            "local-zone: \"a.example\"always_null\n",
            "local-zone: a..example static\n",
            "local-zone: a\\.example static\n",
            "local-zone: . static\n",
            "local-zone: static\n",
            "local-zone: a static local-zone: b static\n",
            "server: local-zone: a static\n",
            "local-zones: a static\n",
        ] {
            check(line, None);
        }
    }
}
