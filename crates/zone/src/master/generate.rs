//! `$GENERATE`: one line that stands for a row of records, as BIND has it.

use std::fmt::Write;

use wire::text::{Token, Tokens};

use super::{File, MistakeKind, Place, Reader, Wrong};

const RANGE: &str = "a range such as 1-10 or 0-100/2";
/// Characters that one number may be written in.
const WIDTH_MAX: usize = 255;

/// The numbers of a range.
struct Numbers {
    first: u32,
    last: u32,
    step: u32,
}

impl Numbers {
    fn parse(text: &str) -> Option<Self> {
        let (span, step) = text.split_once('/').unwrap_or((text, "1"));
        let (first, last) = span.split_once('-')?;
        let number = |text: &str| {
            let is_plain = text.bytes().all(|octet| octet.is_ascii_digit());
            text.parse::<u32>().ok().filter(|&number| is_plain && number <= i32::MAX as u32)
        };
        let numbers = Self { first: number(first)?, last: number(last)?, step: number(step)? };
        (numbers.first <= numbers.last && numbers.step > 0).then_some(numbers)
    }
}

impl Reader<'_, '_> {
    /// Reads `first-last[/step] owner [TTL] [class] type data` and makes a record for each number.
    pub(super) fn generate(
        &mut self,
        file: File<'_>,
        place: Place,
        tokens: &mut Tokens<'_>,
    ) -> Result<(), Wrong> {
        let range = tokens.expect(RANGE)?;
        let numbers =
            Numbers::parse(range.text).ok_or_else(|| Wrong::new(MistakeKind::Range, &range, RANGE))?;
        let generated_max = self.options.generated_max;
        if (numbers.last - numbers.first) / numbers.step >= generated_max {
            let expected = format!("a range of at most {generated_max} numbers");
            return Err(Wrong::new(MistakeKind::Range, &range, expected));
        }
        let mut words: Vec<Token<'_>> = Vec::new();
        while let Some(token) = tokens.next_token()? {
            words.push(token);
        }
        let Some(owner) = words.first() else {
            tokens.expect("an owner, a type and data")?;
            return Ok(());
        };
        if owner.text.starts_with('$')
            && owner.text.get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        {
            return Err(Wrong::new(MistakeKind::Unexpected, owner, "an owner"));
        }
        let mut line = String::new();
        for number in (numbers.first..=numbers.last).step_by(numbers.step as usize) {
            line.clear();
            for word in &words {
                let quote = if word.is_quoted { "\"" } else { "" };
                line.push_str(quote);
                substitute(word.text, number, &mut line).ok_or_else(|| {
                    let expected = "${offset,width,base}, the base one of d, o, x, X, n and N";
                    Wrong::new(MistakeKind::Unexpected, word, expected)
                })?;
                line.push_str(quote);
                line.push(' ');
            }
            // The record is not in the text; the word that made what is wrong is.
            let mut made = self.options.tokens(&line);
            if let Err(wrong) = self.generated(file, place, &mut made) {
                let word = blamed(&line, wrong.at, &words).unwrap_or(range);
                return Err(Wrong { at: word.at, len: word.text.len(), ..wrong });
            }
        }
        Ok(())
    }

    fn generated(&mut self, file: File<'_>, place: Place, tokens: &mut Tokens<'_>) -> Result<(), Wrong> {
        // A made owner may begin with a dollar sign that was escaped; a directive is never made.
        self.entry(file, place, tokens, false)
    }
}

/// Returns the word of the template that stands at `at` in the line made from it.
fn blamed<'t>(line: &str, at: usize, words: &[Token<'t>]) -> Option<Token<'t>> {
    let mut tokens = Tokens::new(line);
    for word in words {
        let made = tokens.next_token().ok()??;
        if at <= made.at + made.text.len() {
            return Some(*word);
        }
    }
    words.last().copied()
}

/// Appends `text` with `$` and `${offset,width,base}` replaced by the number; `\$` and `$$` stand
/// for a dollar sign.
fn substitute(text: &str, number: u32, out: &mut String) -> Option<()> {
    let mut rest = text;
    while let Some(at) = rest.find(['$', '\\']) {
        out.push_str(&rest[..at]);
        if let Some(after) = rest[at..].strip_prefix('\\') {
            let escaped = after.chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[at..at + 1 + escaped]);
            rest = &after[escaped..];
            continue;
        }
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push_str("\\$");
            rest = after;
            continue;
        }
        let Some(inside) = rest.strip_prefix('{') else {
            write!(out, "{number}").ok()?;
            continue;
        };
        let (inside, after) = inside.split_once('}')?;
        rest = after;
        write_number(inside, number, out)?;
    }
    out.push_str(rest);
    Some(())
}

/// Writes a number in the form that `offset[,width[,base]]` says.
fn write_number(form: &str, number: u32, out: &mut String) -> Option<()> {
    let mut parts = form.split(',').map(str::trim);
    let offset: i64 = parts.next()?.parse().ok()?;
    let width: usize =
        parts.next().map_or(Some(0), |text| text.parse().ok()).filter(|&width| width <= WIDTH_MAX)?;
    let base = parts.next().unwrap_or("d");
    if parts.next().is_some() {
        return None;
    }
    let value = u32::try_from(i64::from(number).checked_add(offset)?).ok()?;
    match base {
        "d" => write!(out, "{value:0width$}"),
        "o" => write!(out, "{value:0width$o}"),
        "x" => write!(out, "{value:0width$x}"),
        "X" => write!(out, "{value:0width$X}"),
        "n" | "N" => {
            write_nibbles(value, width, base == "N", out);
            Ok(())
        }
        _ => return None,
    }
    .ok()
}

/// Writes hexadecimal digits from the lowest on, each a label; the width counts the dots between
/// them.
fn write_nibbles(mut value: u32, width: usize, is_upper: bool, out: &mut String) {
    let mut room = width;
    loop {
        let digit = char::from_digit(value & 15, 16).unwrap_or('0');
        out.push(if is_upper { digit.to_ascii_uppercase() } else { digit });
        value >>= 4;
        room = room.saturating_sub(1);
        if room > 0 || value > 0 {
            out.push('.');
            room = room.saturating_sub(1);
        }
        if room == 0 && value == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, number: u32, expect: Option<&str>) {
        let mut out = String::new();
        let done = substitute(text, number, &mut out).map(|()| out.as_str());
        assert_eq!(done, expect, "{text} {number}");
    }

    #[test]
    fn dollar_signs_are_numbers() {
        check("host", 7, Some("host"));
        check("host$", 7, Some("host7"));
        check("$-$", 7, Some("7-7"));
        check("a\\$b", 7, Some("a\\$b"));
        check("a$$b", 7, Some("a\\$b"));
        check("h${0,3}", 7, Some("h007"));
        check("h${-5}", 7, Some("h2"));
        check("h${-8}", 7, None);
        check("h${10,4,x}", 245, Some("h00ff"));
        check("h${10,4,X}", 245, Some("h00FF"));
        check("h${0,0,o}", 8, Some("h10"));
        check("h${0,0,q}", 8, None);
        check("h${0,1,d,1}", 8, None);
        check("h${0", 8, None);
        check("${0,256}", 8, None);
    }

    #[test]
    fn nibbles_are_labels_from_the_lowest_on() {
        check("${0,0,n}", 0xabc, Some("c.b.a"));
        check("${0,5,n}", 0xabc, Some("c.b.a"));
        check("${0,7,N}", 0xabc, Some("C.B.A.0"));
        check("${0,3,n}", 1, Some("1.0"));
        check("${0,1,n}", 0x12, Some("2.1"));
        // An even width ends in a dot: more labels follow in the template.
        check("${0,4,n}8.b.d", 1, Some("1.0.8.b.d"));
    }
}
