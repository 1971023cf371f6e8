//! What stands between the parentheses of an action.
//!
//! ```text
//! arguments = argument { "," argument }
//! argument  = term { term }                                   values, keys and their values
//! term      = value { "|" value } | "[" value { "," value } "]"
//! value     = word | quoted text
//! ```
//!
//! An action asks for what it understands, by position or by key, and each piece is given out once:
//! `fallback(fast, root, after 300ms, on servfail|timeout)` is two positions and two keys. What
//! nobody asked for is reported at the end, so that no argument is accepted and ignored.

use std::ops::Range;

use diagnostic::suggest::one_of;
use diagnostic::{At, Problem, Scalar, Span};
use values::{Misread, Read};

use super::tokens::{Dialect, Token, TokenKind, tokens};

/// A mistake was found and noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

/// One word or quoted text, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'t> {
    /// The text, without quotation marks.
    pub text: &'t str,
    /// Whether it was in quotation marks.
    pub is_quoted: bool,
    /// Where the text begins in the scalar.
    start: usize,
}

impl<'t> Piece<'t> {
    fn new(token: Token<'t>) -> Self {
        Self { text: token.text, is_quoted: token.kind == TokenKind::Quoted, start: token.text_start() }
    }

    fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    fn is_word(&self, word: &str) -> bool {
        !self.is_quoted && self.text == word
    }
}

/// Alternatives: `a|b|c`, mostly one.
struct Term<'t> {
    pieces: Vec<Piece<'t>>,
    is_taken: bool,
}

impl Term<'_> {
    fn is_word(&self, word: &str) -> bool {
        !self.is_taken && matches!(self.pieces.as_slice(), [only] if only.is_word(word))
    }

    fn range(&self) -> Range<usize> {
        let start = self.pieces.first().map_or(0, |first| first.start);
        start..self.pieces.last().map_or(start, |last| last.range().end)
    }
}

/// The arguments of one action, given out piece by piece.
///
/// Ask for keys and flags before positions: a position takes the first argument of one term that is
/// left.
pub struct Arguments<'t> {
    scalar: &'t Scalar,
    word: &'t str,
    form: String,
    list: Vec<Vec<Term<'t>>>,
    /// The whole action.
    whole: Range<usize>,
    problems: &'t mut Vec<Problem>,
}

impl<'t> Arguments<'t> {
    /// Reads everything after the word of an action, which is `whole` of the scalar with `word` at
    /// its start.
    pub(super) fn parse(
        scalar: &'t Scalar,
        whole: Range<usize>,
        word: &'t str,
        form: String,
        problems: &'t mut Vec<Problem>,
    ) -> Result<Self, Reported> {
        let after = whole.start + word.len();
        let tokens = tokens(scalar, after, Dialect::Arguments, problems).ok_or(Reported)?;
        let mut parser =
            Parser { scalar, tokens: &tokens, at: 0, form: &form, whole: whole.clone(), problems };
        let list = parser.all()?;
        Ok(Self { scalar, word, form, list, whole, problems })
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether an argument is exactly this word.
    pub fn flag(&mut self, word: &str) -> Result<bool, Reported> {
        let mut found = false;
        for at in 0..self.list.len() {
            if let [term] = self.list[at].as_mut_slice()
                && term.is_word(word)
            {
                term.is_taken = true;
                if found {
                    let range = term.range();
                    return Err(self.twice(word, range));
                }
                found = true;
            }
        }
        Ok(found)
    }

    /// Returns the value of `key value`, if the key is there.
    pub fn keyed<T>(&mut self, key: &str, read: impl Fn(&str) -> Read<T>) -> Result<Option<At<T>>, Reported> {
        match self.key(key)?.as_deref() {
            None => Ok(None),
            Some([only]) => self.read(*only, read).map(Some),
            Some(several) => Err(self.several(key, several)),
        }
    }

    /// Returns the values of `key a|b|c` or `key [a, b]`, if the key is there.
    pub fn keyed_list<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Read<T>,
    ) -> Result<Option<Vec<At<T>>>, Reported> {
        match self.key(key)? {
            None => Ok(None),
            Some(pieces) => self.read_all(&pieces, read).map(Some),
        }
    }

    /// Returns all that follows the key in its argument: `set NAME element 1h` gives `NAME`,
    /// `element` and `1h`.
    pub fn keyed_words(&mut self, key: &str) -> Result<Option<Vec<Piece<'t>>>, Reported> {
        let Some((argument, term)) = self.find(key)? else { return Ok(None) };
        let mut pieces = Vec::new();
        for term in &mut self.list[argument][term + 1..] {
            term.is_taken = true;
            pieces.extend(term.pieces.iter().copied());
        }
        if pieces.is_empty() {
            return Err(self.lacks_value(key, argument, term));
        }
        Ok(Some(pieces))
    }

    /// Returns the next argument that is a single value; without one, says that the action needs
    /// it.
    pub fn positional<T>(&mut self, read: impl Fn(&str) -> Read<T>) -> Result<At<T>, Reported> {
        match self.optional(read)? {
            Some(value) => Ok(value),
            None => Err(self.missing()),
        }
    }

    /// Returns the next argument that is a single value, if there is one.
    pub fn optional<T>(&mut self, read: impl Fn(&str) -> Read<T>) -> Result<Option<At<T>>, Reported> {
        match self.next_piece()? {
            Some(piece) => self.read(piece, read).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the next argument that is a single value as it was written, if there is one.
    pub fn optional_piece(&mut self) -> Result<Option<Piece<'t>>, Reported> {
        self.next_piece()
    }

    /// Returns all arguments that are left, `a|b` as two; the action needs at least one.
    pub fn rest<T>(&mut self, read: impl Fn(&str) -> Read<T>) -> Result<Vec<At<T>>, Reported> {
        let values = self.rest_or_none(read)?;
        if values.is_empty() { Err(self.missing()) } else { Ok(values) }
    }

    /// Returns all arguments that are left, `a|b` as two; perhaps none.
    pub fn rest_or_none<T>(&mut self, read: impl Fn(&str) -> Read<T>) -> Result<Vec<At<T>>, Reported> {
        let mut pieces = Vec::new();
        for argument in &mut self.list {
            if let [term] = argument.as_mut_slice()
                && !term.is_taken
            {
                term.is_taken = true;
                pieces.extend(term.pieces.iter().copied());
            }
        }
        self.read_all(&pieces, read)
    }

    /// Returns all arguments of two single values that are left: `65001 0a0b` gives the pair.
    pub fn pairs(&mut self) -> Vec<(Piece<'t>, Piece<'t>)> {
        let mut pairs = Vec::new();
        for argument in &mut self.list {
            if let [first, second] = argument.as_mut_slice()
                && !first.is_taken
                && !second.is_taken
                && let ([one], [other]) = (first.pieces.as_slice(), second.pieces.as_slice())
            {
                pairs.push((*one, *other));
                (first.is_taken, second.is_taken) = (true, true);
            }
        }
        pairs
    }

    /// Reads one piece; a mistake points into it.
    pub fn read<T>(&mut self, piece: Piece<'t>, read: impl Fn(&str) -> Read<T>) -> Result<At<T>, Reported> {
        match read(piece.text) {
            Ok(value) => Ok(At { value, span: self.span(&piece) }),
            Err(misread) => {
                let Range { start, end } = misread.at.clone();
                let span = self.scalar.span(piece.start + start, piece.start + end);
                self.problems.push(misread.into_problem(span));
                Err(Reported)
            }
        }
    }

    /// Returns the name of something: a group, a cache, a policy.
    pub fn label(&mut self) -> Result<At<String>, Reported> {
        self.positional(label)
    }

    /// Returns where a piece was written.
    pub fn span(&self, piece: &Piece<'_>) -> Span {
        self.scalar.span(piece.start, piece.start + piece.text.len())
    }

    /// Notes a mistake in a value that was read before.
    pub fn wrong(&mut self, at: Span, message: impl Into<String>, expected: &str) -> Reported {
        let problem = Problem::error(at, message);
        self.problems.push(if expected.is_empty() { problem } else { problem.expected(expected) });
        Reported
    }

    /// Returns the place of the whole action.
    pub fn place(&self) -> Span {
        self.scalar.span(self.whole.start, self.whole.end)
    }

    /// Returns the whole action as it was written.
    pub fn text(&self) -> &'t str {
        &self.scalar.text[self.whole.clone()]
    }

    /// Notes that something is missing.
    pub fn missing(&mut self) -> Reported {
        let message = if self.is_empty() {
            format!("\"{}\" needs something in parentheses", self.word)
        } else {
            format!("something is missing in the parentheses of \"{}\"", self.word)
        };
        let form = self.form.clone();
        self.wrong(self.place(), message, &form)
    }

    /// Reports what nobody asked for.
    pub(super) fn finish(mut self) -> Result<(), Reported> {
        let left = self.list.iter().flatten().find(|term| !term.is_taken).map(Term::range);
        match left {
            None => Ok(()),
            Some(range) => {
                let text = &self.scalar.text[range.clone()];
                let span = self.scalar.span(range.start, range.end);
                let form = self.form.clone();
                Err(self.wrong(span, format!("\"{text}\" cannot stand here"), &form))
            }
        }
    }

    fn next_piece(&mut self) -> Result<Option<Piece<'t>>, Reported> {
        let mut arguments = self.list.iter_mut();
        let next = arguments.find_map(|argument| match argument.as_mut_slice() {
            [term] if !term.is_taken => Some(term),
            _ => None,
        });
        let Some(term) = next else { return Ok(None) };
        term.is_taken = true;
        match term.pieces.as_slice() {
            [only] => Ok(Some(*only)),
            several => {
                let several = several.to_vec();
                Err(self.several(self.word, &several))
            }
        }
    }

    /// Finds a key; says if it is there twice.
    fn find(&mut self, key: &str) -> Result<Option<(usize, usize)>, Reported> {
        let mut found = None;
        for (number, argument) in self.list.iter_mut().enumerate() {
            // What follows a key is its value, even if it is spelled like a key.
            let mut at = 0;
            while let Some(term) = argument.get_mut(at) {
                if term.is_word(key) {
                    term.is_taken = true;
                    if found.is_some() {
                        let range = term.range();
                        return Err(self.twice(key, range));
                    }
                    found = Some((number, at));
                    at += 1;
                }
                at += 1;
            }
        }
        Ok(found)
    }

    fn key(&mut self, key: &str) -> Result<Option<Vec<Piece<'t>>>, Reported> {
        let Some((argument, term)) = self.find(key)? else { return Ok(None) };
        match self.list[argument].get_mut(term + 1) {
            Some(value) if !value.is_taken => {
                value.is_taken = true;
                Ok(Some(value.pieces.clone()))
            }
            Some(_) | None => Err(self.lacks_value(key, argument, term)),
        }
    }

    fn read_all<T>(
        &mut self,
        pieces: &[Piece<'t>],
        read: impl Fn(&str) -> Read<T>,
    ) -> Result<Vec<At<T>>, Reported> {
        // Every mistake is reported, not only the first.
        let values: Vec<_> = pieces.iter().map(|piece| self.read(*piece, &read)).collect();
        values.into_iter().collect()
    }

    fn lacks_value(&mut self, key: &str, argument: usize, term: usize) -> Reported {
        let range = self.list[argument][term].range();
        let (span, form) = (self.scalar.span(range.start, range.end), self.form.clone());
        self.wrong(span, format!("\"{key}\" needs a value after it"), &form)
    }

    fn several(&mut self, key: &str, pieces: &[Piece<'_>]) -> Reported {
        let (first, last) = (pieces[0].range(), pieces[pieces.len() - 1].range());
        let form = self.form.clone();
        self.wrong(
            self.scalar.span(first.start, last.end),
            format!("\"{key}\" takes one value here, not several"),
            &form,
        )
    }

    fn twice(&mut self, key: &str, range: Range<usize>) -> Reported {
        let span = self.scalar.span(range.start, range.end);
        self.wrong(span, format!("\"{key}\" is said twice"), "it once")
    }
}

/// Reads the name of something that the file defines.
pub fn label(text: &str) -> Read<String> {
    values::identifier(text).map(str::to_owned)
}

/// Returns a reader of one of some words.
pub fn word<T: Copy>(words: &'static [(&'static str, T)]) -> impl Fn(&str) -> Read<T> {
    move |text| match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let hint = diagnostic::suggest::nearest(text, all.iter().copied());
            Err(Misread {
                at: 0..text.len(),
                message: format!("\"{text}\" cannot stand here"),
                expected: Some(one_of(&all)),
                hint: hint.map(|word| format!("did you mean \"{word}\"?")),
            })
        }
    }
}

struct Parser<'p, 't> {
    scalar: &'t Scalar,
    tokens: &'p [Token<'t>],
    at: usize,
    form: &'p str,
    whole: Range<usize>,
    problems: &'p mut Vec<Problem>,
}

impl<'t> Parser<'_, 't> {
    fn all(&mut self) -> Result<Vec<Vec<Term<'t>>>, Reported> {
        let Some(&open) = self.tokens.first() else { return Ok(Vec::new()) };
        let text = &self.scalar.text[self.whole.clone()];
        if !open.is("(") {
            return Err(self.wrong(self.whole.clone(), format!("\"{text}\" is not an action")));
        }
        self.at = 1;
        if self.take_if(")") {
            self.end()?;
            return Ok(Vec::new());
        }
        let mut list = vec![Vec::new()];
        loop {
            let Some(token) = self.tokens.get(self.at).copied() else {
                return Err(self.wrong(self.whole.clone(), format!("\"{text}\" has no \")\" at its end")));
            };
            let argument = list.len() - 1;
            if list[argument].is_empty() || !matches!(token.text, "," | ")") || token.kind != TokenKind::Sign
            {
                let term = self.term(text)?;
                list[argument].push(term);
                continue;
            }
            self.at += 1;
            if token.text == ")" {
                self.end()?;
                return Ok(list);
            }
            list.push(Vec::new());
        }
    }

    fn term(&mut self, text: &str) -> Result<Term<'t>, Reported> {
        let mut pieces = Vec::new();
        if self.take_if("[") {
            loop {
                pieces.push(self.value(text)?);
                if self.take_if("]") {
                    break;
                }
                if !self.take_if(",") {
                    return Err(self.unexpected(text, "\",\" or \"]\""));
                }
            }
        } else {
            pieces.push(self.value(text)?);
            while self.take_if("|") {
                pieces.push(self.value(text)?);
            }
        }
        Ok(Term { pieces, is_taken: false })
    }

    fn value(&mut self, text: &str) -> Result<Piece<'t>, Reported> {
        match self.tokens.get(self.at) {
            Some(token) if token.kind != TokenKind::Sign => {
                self.at += 1;
                Ok(Piece::new(*token))
            }
            _ => Err(self.unexpected(text, "a value")),
        }
    }

    fn take_if(&mut self, sign: &str) -> bool {
        let found =
            self.tokens.get(self.at).is_some_and(|token| token.kind == TokenKind::Sign && token.text == sign);
        self.at += usize::from(found);
        found
    }

    fn end(&mut self) -> Result<(), Reported> {
        match self.tokens.get(self.at).copied() {
            None => Ok(()),
            Some(token) => {
                let message = format!("\"{}\" stands after the action", token.text);
                self.problems.push(
                    Problem::error(self.scalar.span(token.start, self.whole.end), message)
                        .expected("one action")
                        .hint("several actions are a list: \"do: [first, second]\""),
                );
                Err(Reported)
            }
        }
    }

    fn unexpected(&mut self, text: &str, expected: &str) -> Reported {
        match self.tokens.get(self.at).copied() {
            None => self.wrong(self.whole.clone(), format!("\"{text}\" has no \")\" at its end")),
            Some(token) => {
                self.problems.push(
                    Problem::error(
                        self.scalar.span(token.start, token.end),
                        format!("\"{}\" cannot stand here", token.text),
                    )
                    .expected(expected),
                );
                Reported
            }
        }
    }

    fn wrong(&mut self, at: Range<usize>, message: String) -> Reported {
        self.problems.push(Problem::error(self.scalar.span(at.start, at.end), message).expected(self.form));
        Reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostic::{Diagnostic, Sources, diagnostics};
    use std::path::Path;
    use std::time::Duration;

    /// Reads `text` as an action of the word before its parenthesis.
    fn read<T>(
        text: &str,
        f: impl FnOnce(&mut Arguments<'_>) -> Result<T, Reported>,
    ) -> Result<T, Vec<String>> {
        let mut sources = Sources::new(&[]);
        let file = sources.add(Path::new("x"), text.to_owned());
        let span = Span { file, start: 0, end: text.len() as u32 };
        let scalar = Scalar::straight(text.to_owned(), span);
        let mut problems = Vec::new();
        let word = &text[..text.find(['(', ' ']).unwrap_or(text.len())];
        let whole = 0..text.len();
        let found = Arguments::parse(&scalar, whole, word, "FORM".to_owned(), &mut problems)
            .and_then(|mut arguments| f(&mut arguments).and_then(|value| arguments.finish().map(|()| value)));
        found.map_err(|Reported| diagnostics(problems, &sources).iter().map(Diagnostic::line).collect())
    }

    fn plain(text: &str) -> Read<String> {
        Ok(text.to_owned())
    }

    type Fallback = (Vec<String>, Option<Duration>, Option<Vec<String>>, bool);

    fn fallback(text: &str) -> Result<Fallback, Vec<String>> {
        read(text, |arguments| {
            let standby = arguments.flag("standby")?;
            let after = arguments.keyed("after", values::duration)?.map(|at| at.value);
            let on =
                arguments.keyed_list("on", plain)?.map(|list| list.into_iter().map(|at| at.value).collect());
            let rest = arguments.rest(label)?.into_iter().map(|at| at.value).collect();
            Ok((rest, after, on, standby))
        })
    }

    #[test]
    fn positions_keys_and_flags_are_given_out_once() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let after = Some(Duration::from_millis(300));
        assert_eq!(
            fallback("f(fast, root, after 300ms, on servfail|timeout, standby)"),
            Ok((names(&["fast", "root"]), after, Some(names(&["servfail", "timeout"])), true))
        );
        assert_eq!(
            fallback("f ( fast|root, on [\"a, b\", c] after 300ms )"),
            Ok((names(&["fast", "root"]), after, Some(names(&["a, b", "c"])), false))
        );
        let words = read("f(set one \"two|three\" 4)", |arguments| {
            let words = arguments.keyed_words("set")?.unwrap_or_default();
            Ok(words.iter().map(|piece| (piece.text.to_owned(), piece.is_quoted)).collect::<Vec<_>>())
        });
        let word = |text: &str, is_quoted| (text.to_owned(), is_quoted);
        assert_eq!(words, Ok(vec![word("one", false), word("two|three", true), word("4", false)]));
    }

    #[test]
    fn mistakes_point_into_the_text() {
        for (text, expect) in [
            ("f(a, b c)", "x:1:6: error: \"b\" cannot stand here: expected FORM"),
            ("f(a, after)", "x:1:6: error: \"after\" needs a value after it: expected FORM"),
            ("f(a, after 1s, after 2s)", "x:1:16: error: \"after\" is said twice: expected it once"),
            (
                "f(a, after 1s|2s)",
                "x:1:12: error: \"after\" takes one value here, not several: expected FORM",
            ),
            (
                "f(a, after 1)",
                "x:1:12: error: \"1\" has no unit: expected a duration such as 500ms, 10s, 1m30s, 2h or 1d",
            ),
            ("f(standby)", "x:1:1: error: something is missing in the parentheses of \"f\": expected FORM"),
            ("f()", "x:1:1: error: \"f\" needs something in parentheses: expected FORM"),
            ("f", "x:1:1: error: \"f\" needs something in parentheses: expected FORM"),
            ("f(a", "x:1:1: error: \"f(a\" has no \")\" at its end: expected FORM"),
            ("f(a|", "x:1:1: error: \"f(a|\" has no \")\" at its end: expected FORM"),
            ("f(a,, b)", "x:1:5: error: \",\" cannot stand here: expected a value"),
            ("f(,)", "x:1:3: error: \",\" cannot stand here: expected a value"),
            ("f([a)", "x:1:5: error: \")\" cannot stand here: expected \",\" or \"]\""),
            ("f(a) b", "x:1:6: error: \"b\" stands after the action: expected one action"),
            ("f a", "x:1:1: error: \"f a\" is not an action: expected FORM"),
            ("f(\"a)", "x:1:3: error: a quoted text is not closed: expected \" at its end"),
        ] {
            assert_eq!(fallback(text), Err(vec![expect.to_owned()]), "{text}");
        }
    }
}
