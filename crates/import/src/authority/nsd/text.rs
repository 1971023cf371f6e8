//! How NSD's configuration is written: sections, settings, their values.

use diagnostic::{At, FileId, Span};

use super::super::Files;
use super::super::fields::Entry;

const SECTIONS: [&str; 9] =
    ["server", "remote-control", "key", "pattern", "zone", "tls-auth", "verify", "dnstap", "xdp"];

/// An item of a section.
pub(super) struct Item {
    pub(super) section: At<String>,
    pub(super) entries: Vec<Entry>,
}

/// A word of the text: quoted or not.
struct Token {
    word: At<String>,
    is_quoted: bool,
}

fn tokens(file: FileId, text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        let span = |end: usize| Span { file, start: start as u32, end: end as u32 };
        match c {
            c if c.is_whitespace() => {}
            '#' => while rest.next_if(|&(_, c)| c != '\n').is_some() {},
            '"' | '\'' => {
                let mut value = String::new();
                let mut end = text.len();
                for (at, inner) in rest.by_ref() {
                    if inner == c {
                        end = at + 1;
                        break;
                    }
                    value.push(inner);
                }
                found.push(Token { word: At { value, span: span(end) }, is_quoted: true });
            }
            c => {
                let mut value = String::from(c);
                while let Some((_, c)) = rest.next_if(|&(_, c)| !c.is_whitespace()) {
                    value.push(c);
                    // `name:"value"` needs no space.
                    if c == ':' && is_key(&value) && rest.peek().is_some_and(|&(_, next)| next == '"') {
                        break;
                    }
                }
                let end = start + value.len();
                found.push(Token { word: At { value, span: span(end) }, is_quoted: false });
            }
        }
    }
    found
}

/// Returns whether a word is one that says what follows.
fn is_key(word: &str) -> bool {
    let Some(key) = word.strip_suffix(':') else { return false };
    key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-')
}

pub(super) fn read(files: &mut Files<'_>, file: FileId, text: &str, depth: usize, items: &mut Vec<Item>) {
    let mut tokens = tokens(file, text).into_iter().peekable();
    while let Some(token) = tokens.next() {
        if token.is_quoted || !is_key(&token.word.value) {
            files.wrong(token.word.span, format!("\"{}\" belongs to no setting", token.word.value));
            continue;
        }
        let mut values = Vec::new();
        while let Some(value) = tokens.next_if(|next| next.is_quoted || !is_key(&next.word.value)) {
            values.push(value.word);
        }
        let mut key = token.word;
        key.value.pop();
        key.span.end -= 1;
        if key.value == "include" {
            for pattern in &values {
                let directory = files.directory.clone();
                for path in files.included(pattern, &directory, depth) {
                    let Some((file, text)) = files.open(&path, Some(pattern.span)) else { continue };
                    read(files, file, &text, depth + 1, items);
                }
            }
            continue;
        }
        let is_section = values.is_empty()
            && (SECTIONS.contains(&key.value.as_str())
                || (key.value == "remote-control" && values.is_empty()));
        if is_section {
            items.push(Item { section: key, entries: Vec::new() });
            continue;
        }
        match items.last_mut() {
            Some(item) => item.entries.push(Entry { key, values }),
            None => files.wrong(key.span, format!("\"{}\" is in no section", key.value)),
        }
    }
}
