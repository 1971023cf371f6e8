//! Hosts files and names of one's own: the tree to settings.

use std::collections::HashMap;
use std::sync::Arc;

use diagnostic::{At, Problem, Span};

use super::notation::path;
use super::read::Values as _;
use super::{Lowering, Section};
use crate::groups::{Hosts, LocalName};

impl Lowering<'_> {
    pub(super) fn hosts(&mut self, root: &Section<'_>) -> Hosts {
        let hosts = self.section(root, "hosts");
        let files = self.list(&hosts, "files", |_, _, scalar| path(&scalar.text));
        let files =
            files.into_iter().map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span });
        Hosts {
            files: files.collect(),
            system: self.boolean(&hosts, "system"),
            ttl: self.duration(&hosts, "ttl"),
        }
    }

    pub(super) fn local(&mut self, root: &Section<'_>) -> Arc<Vec<LocalName>> {
        let section = self.section(root, "local");
        let mut names: Vec<LocalName> = Vec::with_capacity(section.entries.len());
        let mut seen: HashMap<Vec<u8>, Span> = HashMap::with_capacity(section.entries.len());
        let row = self.row(&section, "*");
        for entry in section.entries.iter() {
            let addresses =
                self.list_of(row, &entry.node, |_, _, scalar| values::address(&scalar.text)).values();
            match values::name(&entry.key) {
                Ok(name) => {
                    let folded = name.as_name().to_folded().as_bytes().to_vec();
                    match seen.get(&folded) {
                        Some(&first) => self.problems.push(
                            Problem::error(entry.key_span, format!("\"{}\" is set twice", entry.key))
                                .hint_at(
                                    "the first time is on ",
                                    first,
                                    "; letter case and a final dot do not count",
                                ),
                        ),
                        None => {
                            seen.insert(folded, entry.key_span);
                            names.push(LocalName {
                                name: At { value: name, span: entry.key_span },
                                addresses,
                            });
                        }
                    }
                }
                Err(misread) => self.problems.push(misread.into_problem(entry.key_span)),
            }
        }
        Arc::new(names)
    }
}
