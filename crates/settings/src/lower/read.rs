//! One setting by its row: what it takes, its range, its default.

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use diagnostic::suggest::{nearest, one_of};
use diagnostic::{At, FileId, Problem, Scalar, Span, io_text};
use plan::Secret;
use plan::upstreams::Hedge;
use values::{Misread, Read};
use wire::Prefix;

use super::notation::{path, prefixes};
use super::{Lowering, Section};
use crate::print::flow;
use schema::{Kind, Row, Value, default_node};
use yaml::{Entry, Node};

/// An address and port; or the name of a device, with a port and no address.
pub(super) type Place = (SocketAddr, Option<String>);

impl Lowering<'_> {
    /// Returns the entry of `key` if it says something else than the default.
    pub(super) fn said<'s>(&self, section: &'s Section<'_>, key: &str) -> Option<&'s Entry> {
        let default = self.row(section, key).default.map(|default| flow(&default_node(default)));
        section.entry(key).filter(|entry| Some(flow(&entry.node)) != default)
    }

    /// Returns the row of `key` in `section`.
    pub(super) fn row(&self, section: &Section<'_>, key: &str) -> &'static Row {
        let row = schema::find_in(&section.path, key)
            .unwrap_or_else(|| unreachable!("the table of settings has a row {}", section.child(key)));
        #[cfg(test)]
        self.touched.borrow_mut().insert(row.path);
        row
    }

    /// Reports keys that no row describes.
    pub(super) fn check_keys(&mut self, section: &Section<'_>, noun: &str) {
        let known: Vec<&str> = schema::children(&section.path).map(Row::key).collect();
        for entry in section.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let mut problem = Problem::error(entry.key_span, format!("unknown {noun} \"{}\"", entry.key));
            let of_others =
                OTHER_WORDS.iter().find(|(word, _)| section.path.is_empty() && *word == entry.key);
            if let Some((_, ours)) = of_others {
                problem = problem.hint(format!("here it is \"{ours}\""));
            } else if let Some(key) = nearest(&entry.key, known.iter().copied()) {
                problem = match section.entry(key) {
                    Some(other) if other.key_span != Span::BUILT_IN => problem.hint_at(
                        format!("did you mean \"{key}\", which is set on "),
                        other.key_span,
                        "?",
                    ),
                    _ => problem.hint(format!("did you mean \"{key}\"?")),
                };
            } else if let Some(place) = elsewhere(&entry.key, &section.path) {
                problem = problem.hint(if place.contains('.') {
                    format!("did you mean \"{place}\"?")
                } else {
                    format!("\"{place}\" stands at the left margin, in no other setting")
                });
            } else if entry.key == "<<" {
                problem = problem
                    .hint("merging mappings is not supported; write the settings out, or use \"include\"");
            } else {
                problem = problem.expected(one_of(&known));
            }
            self.problems.push(problem);
        }
    }

    /// Returns the mapping below `key`; empty if there is none.
    pub(super) fn section<'n>(&mut self, parent: &'n Section<'_>, key: &str) -> Section<'n> {
        let row = self.row(parent, key);
        let path = parent.child(key);
        match parent.entry(key) {
            Some(entry) => {
                let section = self.section_of(path, &entry.node, entry.key_span);
                if matches!(row.kind, Kind::Section) {
                    self.check_keys(&section, "setting");
                }
                section
            }
            None => Section { path, entries: Cow::Borrowed(&[]), defaults: &[], span: parent.span },
        }
    }

    pub(super) fn section_of<'n>(&mut self, path: String, node: &'n Node, key_span: Span) -> Section<'n> {
        let entries =
            match &node.value {
                yaml::Value::Map(entries) => entries.as_slice(),
                // `cache:` with everything below it commented out.
                yaml::Value::Null => &[],
                yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => {
                    const LINES: &str = "a mapping (\"key: value\" lines, indented)";
                    match schema::find(&path).map(|row| row.kind) {
                        Some(Kind::Named(noun)) => {
                            let name = usual_name(&path);
                            let problem = Problem::error(node.head(), format!("this {noun} has no name"))
                                .expected(LINES);
                            self.problems.push(problem.hint(format!(
                                "write \"{name}:\" before it, as in \"{path}: {{{name}: …}}\""
                            )));
                        }
                        _ => self.wrong_shape(node, LINES),
                    }
                    &[]
                }
            };
        Section { path, entries: Cow::Borrowed(entries), defaults: &[], span: key_span }
    }

    /// Returns the mapping below `key`, whose keys the user chose.
    pub(super) fn names<'n>(&mut self, parent: &'n Section<'_>, key: &str) -> Section<'n> {
        self.section(parent, key)
    }

    /// Checks a name that the user chose.
    pub(super) fn label(&mut self, entry: &Entry) -> Option<At<String>> {
        match values::identifier(&entry.key) {
            Ok(name) => Some(At { value: name.to_owned(), span: entry.key_span }),
            Err(misread) => {
                self.problems.push(misread.into_problem(entry.key_span));
                None
            }
        }
    }

    /// Returns the mappings below the names that the user chose below `key`.
    pub(super) fn named_sections<'n>(
        &mut self,
        parent: &'n Section<'n>,
        key: &str,
    ) -> Vec<(At<String>, Section<'n>)> {
        let row = self.row(parent, key);
        let Some(entry) = parent.entry(key) else { return Vec::new() };
        let all = self.section_of(parent.child(key), &entry.node, entry.key_span);
        let Cow::Borrowed(entries) = all.entries else { return Vec::new() };
        let mut sections = Vec::new();
        for entry in entries {
            let Some(name) = self.label(entry) else { continue };
            let path = format!("{}.*", row.path);
            let is_mapping = matches!(entry.node.value, yaml::Value::Map(_) | yaml::Value::Null);
            if let (false, Kind::Named(noun), true) =
                (is_mapping, row.kind, schema::find_in(&path, &entry.key).is_some())
            {
                let (path, name) = (row.path, usual_name(row.path));
                let message = format!("\"{}\" is a setting of a {noun}, and no {noun} is named", entry.key);
                let hint = format!("write \"{path}: {{{name}: {{{}: …}}}}\"", entry.key);
                self.problems.push(Problem::error(entry.key_span, message).hint(hint));
                continue;
            }
            let section = self.section_of(format!("{}.*", row.path), &entry.node, entry.key_span);
            self.check_keys(&section, "setting");
            sections.push((name, section));
        }
        sections
    }

    /// Returns the items below `key`, each as a mapping.
    pub(super) fn items<'n>(&mut self, parent: &'n Section<'_>, key: &str) -> Vec<Section<'n>> {
        let row = self.row(parent, key);
        match parent.entry(key) {
            Some(entry) => self.items_of(row, &entry.node),
            None => Vec::new(),
        }
    }

    pub(super) fn items_of<'n>(&mut self, row: &'static Row, node: &'n Node) -> Vec<Section<'n>> {
        let nodes = match &node.value {
            yaml::Value::List(nodes) => nodes.as_slice(),
            yaml::Value::Null => {
                self.wrong_shape(node, "a list");
                &[]
            }
            yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::Map(_) => std::slice::from_ref(node),
        };
        let path = format!("{}[]", row.path);
        let mut sections = Vec::new();
        for node in nodes {
            let entries = match &node.value {
                yaml::Value::Map(entries) => self.without_torn(entries),
                yaml::Value::Null => {
                    self.wrong_shape(node, "something after \"-\"");
                    continue;
                }
                yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::List(_) => {
                    let first = schema::children(&path).next();
                    let key = first.map_or("", Row::key).to_owned();
                    Cow::Owned(vec![Entry { key, key_span: node.span, node: node.clone() }])
                }
            };
            let section = Section { path: path.clone(), entries, defaults: &[], span: node.head() };
            self.check_keys(&section, "setting");
            sections.push(section);
        }
        sections
    }

    /// Returns a mapping without the pieces of a value that YAML tore apart at its commas, which
    /// are reported.
    fn without_torn<'n>(&mut self, entries: &'n [Entry]) -> Cow<'n, [Entry]> {
        let open = |text: &str| text.matches('(').count() > text.matches(')').count();
        let mut kept: Vec<Entry> = Vec::new();
        let mut rest = entries;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            let mut entry = first.clone();
            if let yaml::Value::Scalar(scalar) = &mut entry.node.value
                && open(&scalar.text)
            {
                // A colon in a quoted text makes a value of what is behind it.
                let is_piece = |next: &&Entry| {
                    matches!(
                        next.node.value,
                        yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Long(_)
                    )
                };
                let pieces: Vec<&Entry> = after.iter().take_while(is_piece).collect();
                let mut whole = scalar.text.clone();
                let count = 1 + pieces
                    .iter()
                    .take_while(|piece| {
                        whole.push_str(&format!(", {}", piece.key));
                        if let yaml::Value::Scalar(value) = &piece.node.value {
                            whole.push_str(&format!(": {}", value.text));
                        }
                        open(&whole)
                    })
                    .count();
                if count <= pieces.len() && !open(&whole) {
                    let last = pieces[count - 1];
                    let end = if matches!(last.node.value, yaml::Value::Null) {
                        last.key_span
                    } else {
                        last.node.span
                    };
                    let span = first.node.span.to(end);
                    let message = format!(
                        "inside \"{{ }}\" the comma ends an entry, so this was split into {} parts",
                        count + 1
                    );
                    let quote = if whole.contains('"') { '\'' } else { '"' };
                    self.problems
                        .push(Problem::error(span, message).hint(format!("quote it: {quote}{whole}{quote}")));
                    scalar.is_refused = true;
                    rest = &after[count..];
                }
            }
            kept.push(entry);
        }
        if kept.len() == entries.len() { Cow::Borrowed(entries) } else { Cow::Owned(kept) }
    }

    /// Reads a setting that may be absent.
    pub(super) fn optional<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&mut Self, &'static Row, &Node) -> Option<At<T>>,
    ) -> Option<At<T>> {
        let row = self.row(section, key);
        if let Some(entry) = section.entry(key) {
            match entry.node.value {
                yaml::Value::Null => self.problems.push(
                    Problem::error(entry.key_span, format!("\"{key}\" has no value"))
                        .expected(row.kind.expected()),
                ),
                _ => {
                    if let Some(value) = read(self, row, &entry.node) {
                        return Some(value);
                    }
                }
            }
        }
        read(self, row, &default_node(row.default?))
    }

    /// Reads a setting that has a default.
    pub(super) fn required<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&mut Self, &'static Row, &Node) -> Option<At<T>>,
    ) -> At<T> {
        self.optional(section, key, read)
            .unwrap_or_else(|| unreachable!("the default of {} is within its range", section.child(key)))
    }

    pub(super) fn wrong_shape(&mut self, node: &Node, expected: &str) {
        let found = match node.value {
            yaml::Value::Null => "nothing",
            yaml::Value::Scalar(_) | yaml::Value::Long(_) => "a single value",
            yaml::Value::List(_) => "a list",
            yaml::Value::Map(_) => "a mapping",
        };
        self.problems
            .push(Problem::error(node.head(), format!("{found} cannot stand here")).expected(expected));
    }

    pub(super) fn scalar<'n>(&mut self, node: &'n Node, expected: &str) -> Option<&'n Scalar> {
        match &node.value {
            yaml::Value::Scalar(scalar) => (!scalar.is_refused).then_some(scalar),
            yaml::Value::Null | yaml::Value::Long(_) | yaml::Value::List(_) | yaml::Value::Map(_) => {
                self.wrong_shape(node, expected);
                None
            }
        }
    }

    /// Reads a single value.
    pub(super) fn read<T>(
        &mut self,
        node: &Node,
        expected: &str,
        read: impl Fn(&str) -> Read<T>,
    ) -> Option<At<T>> {
        let scalar = self.scalar(node, expected)?;
        match read(&scalar.text) {
            Ok(value) => Some(At { value, span: node.span }),
            Err(misread) => {
                let span = place(scalar, node, &misread);
                self.problems.push(misread.into_problem(span));
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, section: &Section<'_>, key: &str) -> bool {
        self.required(section, key, |lowering, _, node| lowering.read(node, "true or false", values::boolean))
            .value
    }

    pub(super) fn whole_or(&mut self, section: &Section<'_>, key: &str) -> Option<u64> {
        self.required(section, key, Self::read_whole).value
    }

    pub(super) fn read_whole(&mut self, row: &'static Row, node: &Node) -> Option<At<Option<u64>>> {
        let expected = row.kind.expected();
        self.read(node, &expected, |text| match row.kind {
            Kind::One(Value::Whole { word, .. }) if word == Some(text) => Ok(None),
            Kind::One(Value::Whole { min, max, word }) => {
                let number = values::whole(text).map_err(|misread| or_word(misread, word, &expected))?;
                in_range(text, number, min, max, &expected).map(Some)
            }
            other => unreachable_kind(&other),
        })
    }

    pub(super) fn whole(&mut self, section: &Section<'_>, key: &str) -> u64 {
        self.whole_or(section, key).unwrap_or_default()
    }

    pub(super) fn duration_or(&mut self, section: &Section<'_>, key: &str) -> Option<Duration> {
        self.required(section, key, |lowering, row, node| {
            let expected = row.kind.expected();
            lowering.read(node, &expected, |text| match row.kind {
                Kind::One(Value::Duration { word, .. }) if word == Some(text) => Ok(None),
                Kind::One(Value::Duration { min, max, word }) => {
                    let duration =
                        values::duration(text).map_err(|misread| or_word(misread, word, &expected))?;
                    in_range(text, duration.as_millis() as u64, min, max, &expected)?;
                    Ok(Some(duration))
                }
                other => unreachable_kind(&other),
            })
        })
        .value
    }

    pub(super) fn duration(&mut self, section: &Section<'_>, key: &str) -> Duration {
        self.duration_or(section, key).unwrap_or_default()
    }

    pub(super) fn hedge(&mut self, section: &Section<'_>, key: &str) -> Hedge {
        self.required(section, key, |lowering, row, node| {
            let expected = row.kind.expected();
            lowering.read(node, &expected, |text| match (row.kind, text) {
                (_, "auto") => Ok(Hedge::Auto),
                (_, "off") => Ok(Hedge::Off),
                (Kind::One(Value::Hedge { min, max }), text) => {
                    let duration =
                        values::duration(text).map_err(|misread| or_word(misread, Some("off"), &expected))?;
                    in_range(text, duration.as_millis() as u64, min, max, &expected)?;
                    Ok(Hedge::AfterMs(duration.as_millis() as u32))
                }
                (other, _) => unreachable_kind(&other),
            })
        })
        .value
    }

    pub(super) fn size(&mut self, section: &Section<'_>, key: &str) -> u64 {
        self.required(section, key, Self::read_size).value
    }

    pub(super) fn read_size(&mut self, row: &'static Row, node: &Node) -> Option<At<u64>> {
        let expected = row.kind.expected();
        self.read(node, &expected, |text| match row.kind {
            Kind::One(Value::Size { min, max }) => in_range(text, values::size(text)?, min, max, &expected),
            other => unreachable_kind(&other),
        })
    }

    pub(super) fn percent_or(&mut self, section: &Section<'_>, key: &str) -> Option<u8> {
        self.required(section, key, |lowering, row, node| {
            let expected = row.kind.expected();
            lowering.read(node, &expected, |text| match row.kind {
                Kind::One(Value::Percent { word, .. }) if word == Some(text) => Ok(None),
                Kind::One(Value::Percent { min, max, word }) => {
                    let percent =
                        values::percent(text).map_err(|misread| or_word(misread, word, &expected))?;
                    in_range(text, percent.into(), min.into(), max.into(), &expected)?;
                    Ok(Some(percent))
                }
                other => unreachable_kind(&other),
            })
        })
        .value
    }

    pub(super) fn one_word<T>(words: &[&str], text: &str, parse: impl Fn(&str) -> Option<T>) -> Read<T> {
        parse(text).ok_or_else(|| {
            let misread = values::unknown_word(text, "word", words);
            Misread { message: format!("\"{text}\" cannot stand here"), ..misread }
        })
    }

    pub(super) fn word<T>(&mut self, section: &Section<'_>, key: &str, parse: fn(&str) -> Option<T>) -> T {
        self.required(section, key, |lowering, row, node| {
            let Kind::One(Value::Word(words)) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &one_of(words), |text| Self::one_word(words, text, parse))
        })
        .value
    }

    pub(super) fn text_or(&mut self, section: &Section<'_>, key: &str) -> Option<String> {
        self.required(section, key, |lowering, row, node| {
            let Kind::One(Value::Text { word }) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &row.kind.expected(), |text| match word {
                Some(word) if word == text => Ok(None),
                _ if text.len() > TEXT_OCTETS_MAX || text.is_empty() => Err(Misread {
                    at: 0..text.len(),
                    message: if text.is_empty() {
                        "the text is empty".to_owned()
                    } else {
                        "the text is too long".to_owned()
                    },
                    expected: Some(format!("1 to {TEXT_OCTETS_MAX} octets")),
                    hint: None,
                }),
                _ => Ok(Some(text.to_owned())),
            })
        })
        .value
    }

    pub(super) fn path(&mut self, section: &Section<'_>, key: &str) -> Option<At<PathBuf>> {
        self.optional(section, key, |lowering, _, node| lowering.read(node, "a path", path))
    }

    /// Returns a path relative to the directory of the file that says it.
    pub(super) fn beside(&self, file: FileId, path: &Path) -> PathBuf {
        match self.sources.file(file).and_then(diagnostic::Source::directory) {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        }
    }

    /// Reads an address or the name of a device, and the port, which is `port` if none is written.
    pub(super) fn place_or(
        &mut self,
        section: &Section<'_>,
        key: &str,
        port: u16,
    ) -> Option<At<Option<Place>>> {
        let row = self.row(section, key);
        if section.entry(key).is_none() {
            self.problems.push(
                Problem::error(section.span, format!("\"{key}\" is missing")).expected(row.kind.expected()),
            );
        }
        self.optional(section, key, |lowering, row, node| {
            let Kind::One(Value::Socket { word, .. }) = row.kind else { unreachable_kind(&row.kind) };
            lowering.read(node, &row.kind.expected(), |text| match word {
                Some(word) if word == text => Ok(None),
                _ => values::socket_address(text, port).map(|address| Some((address, None))).or_else(
                    |misread| {
                        let (name, port) = values::device(text, port).ok_or(misread)?;
                        Ok(Some(((Ipv4Addr::UNSPECIFIED, port).into(), Some(name.to_owned()))))
                    },
                ),
            })
        })
    }

    pub(super) fn secret(&mut self, section: &Section<'_>, key: &str) -> Option<Secret> {
        let row = self.row(section, key);
        let Kind::One(Value::Secret { word }) = row.kind else { unreachable_kind(&row.kind) };
        let entry = section.entry(key)?;
        let expected = "32 hexadecimal digits, or \"file:\" and a path";
        if matches!(entry.node.value, yaml::Value::Null) {
            self.problems.push(
                Problem::error(entry.key_span, format!("\"{key}\" has no value"))
                    .expected(row.kind.expected()),
            );
            return None;
        }
        let scalar = self.scalar(&entry.node, expected)?;
        if word == Some(scalar.text.as_str()) {
            return None;
        }
        let span = entry.node.span;
        let text = match scalar.text.strip_prefix("file:") {
            None => scalar.text.clone(),
            Some(path) => {
                let path = self.beside(span.file, Path::new(path));
                match (self.read_file)(&path) {
                    Ok(octets) => {
                        self.warn_of_open_file(&path, span);
                        String::from_utf8_lossy(&octets).trim().to_owned()
                    }
                    Err(error) => {
                        let message = format!("cannot read \"{}\": {}", path.display(), io_text(&error));
                        self.problems.push(Problem::error(span, message));
                        return None;
                    }
                }
            }
        };
        // The text itself is not quoted: it may be most of a secret.
        match values::hex(&text).filter(|octets| octets.len() == SECRET_OCTETS) {
            Some(octets) => Some(Secret::new(octets)),
            None => {
                self.problems.push(
                    Problem::error(span, "this is not a key")
                        .expected(expected)
                        .hint("\"openssl rand -hex 16\" prints one"),
                );
                None
            }
        }
    }

    /// Reads a list of values, of which one may stand alone.
    pub(super) fn list<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl Fn(&mut Self, &Value, &Scalar) -> Read<T>,
    ) -> Vec<At<T>> {
        let row = self.row(section, key);
        match section.entry(key) {
            Some(entry) if matches!(entry.node.value, yaml::Value::Null) => {
                self.problems.push(
                    Problem::error(entry.key_span, format!("\"{key}\" has no value"))
                        .expected(row.kind.expected())
                        .hint("an empty list is written \"[]\""),
                );
                Vec::new()
            }
            Some(entry) => self.list_of(row, &entry.node, read),
            None => row.default.map_or_else(Vec::new, |text| self.list_of(row, &default_node(text), read)),
        }
    }

    pub(super) fn list_of<T>(
        &mut self,
        row: &'static Row,
        node: &Node,
        read: impl Fn(&mut Self, &Value, &Scalar) -> Read<T>,
    ) -> Vec<At<T>> {
        let Kind::List(value) = row.kind else { unreachable_kind(&row.kind) };
        let nodes = match &node.value {
            yaml::Value::List(nodes) => nodes.as_slice(),
            yaml::Value::Null | yaml::Value::Scalar(_) | yaml::Value::Long(_) | yaml::Value::Map(_) => {
                std::slice::from_ref(node)
            }
        };
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            let scalar = match &node.value {
                yaml::Value::Scalar(scalar) if !scalar.is_refused => scalar,
                _ => match self.scalar(node, &value.expected()) {
                    Some(scalar) => scalar,
                    None => continue,
                },
            };
            match read(self, &value, scalar) {
                Ok(value) => all.push(At { value, span: node.span }),
                Err(misread) => {
                    let span = place(scalar, node, &misread);
                    self.problems.push(misread.into_problem(span));
                }
            }
        }
        all
    }

    pub(super) fn prefixes(&mut self, section: &Section<'_>, key: &str) -> Vec<Prefix> {
        let lists = self.list(section, key, |_, _, scalar| prefixes(&scalar.text));
        lists.into_iter().flat_map(|at| at.value).collect()
    }
}

/// Octets of a text, so that it fits a TXT string (RFC 1035 §3.3).
const TEXT_OCTETS_MAX: usize = 255;
/// Octets of a cookie key (RFC 9018 §4.4: SipHash-2-4).
const SECRET_OCTETS: usize = 16;

/// Drops the places.
pub(super) trait Values<T> {
    fn values(self) -> Vec<T>;
}

impl<T> Values<T> for Vec<At<T>> {
    fn values(self) -> Vec<T> {
        self.into_iter().map(|at| at.value).collect()
    }
}

/// A row's kind and the way it is read do not belong together: found by the first test that lowers
/// anything.
pub(super) fn unreachable_kind(found: &dyn std::fmt::Debug) -> ! {
    unreachable!("the row is read in the way of another kind than {found:?}")
}

/// Returns the place of what is wrong: the part of the text, or the whole value with its quotation
/// marks.
fn place(scalar: &Scalar, node: &Node, misread: &Misread) -> Span {
    if misread.at == (0..scalar.text.len()) {
        node.span
    } else {
        scalar.span(misread.at.start, misread.at.end)
    }
}

fn in_range(text: &str, value: u64, min: u64, max: u64, expected: &str) -> Read<u64> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let message = format!("\"{text}\" is too {}", if value < min { "small" } else { "large" });
    Err(Misread { at: 0..text.len(), message, expected: Some(expected.to_owned()), hint: None })
}

/// Names the word that could have stood in place of the value, and suggests it when it was nearly
/// written.
fn or_word(misread: Misread, word: Option<&str>, expected: &str) -> Misread {
    let Some(word) = word else { return misread };
    let near = misread.message.split('"').nth(1).and_then(|found| nearest(found, [word])).is_some();
    let hint = if near { Some(format!("did you mean \"{word}\"?")) } else { misread.hint };
    let expected = if misread.at.start == 0 { Some(expected.to_owned()) } else { misread.expected };
    Misread { expected, hint, ..misread }
}

/// Finds a setting of the same name somewhere else; none if it is the section itself or one around
/// it.
fn elsewhere(key: &str, section: &str) -> Option<&'static str> {
    let is_around =
        |path: &str| section == path || section.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    let mut namesakes = schema::rows().filter(|row| row.key() == key).map(|row| row.path);
    let first = namesakes.next()?;
    (!is_around(first) && !namesakes.any(is_around)).then_some(first)
}

/// What other programs call settings of ours at the top of a file.
const OTHER_WORDS: [(&str, &str); 8] = [
    ("port", "listen"),
    ("bind", "listen"),
    ("interface", "listen"),
    ("listen-on", "listen"),
    ("forwarders", "upstreams"),
    ("forward-zone", "split"),
    ("nameservers", "upstreams"),
    ("logging", "log"),
];

/// Returns the name that one thing of a kind mostly has.
fn usual_name(path: &str) -> &'static str {
    match path {
        "policy" | "cache" => "main",
        "upstreams" | "resolvers" => "default",
        _ => "NAME",
    }
}
