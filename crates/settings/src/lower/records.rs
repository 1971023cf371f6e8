//! Sets of records that actions answer from: the tree to settings.

use std::cell::Cell;
use std::path::Path;

use diagnostic::{At, Problem};
use policy::records::{Includes, Record, parse_all};
use values::Misread;

use super::notation::path;
use super::{Lowering, Section};
use crate::groups::{IncludingText, RecordSet};

impl Lowering<'_> {
    pub(super) fn records(&mut self, root: &Section<'_>) -> Vec<RecordSet> {
        let mut sets = Vec::new();
        for (name, section) in self.named_sections(root, "records") {
            let origin = self.required(&section, "origin", |lowering, _, node| {
                lowering.read(node, "a name", values::name)
            });
            let origin = origin.value;
            let texts = self.list(&section, "text", |lowering, _, scalar| {
                let directory = lowering.beside(scalar.span(0, 0).file, Path::new(""));
                let includes_any = Cell::new(false);
                let read = |path: &Path| {
                    includes_any.set(true);
                    (lowering.read_file)(path)
                };
                let includes = Includes { directory: directory.clone(), read: &read };
                let (records, mistakes) = parse_all(&scalar.text, origin.as_name(), &includes);
                for mistake in mistakes {
                    let misread = Misread::from(mistake);
                    let span = scalar.span(misread.at.start, misread.at.end);
                    lowering.problems.push(misread.into_problem(span));
                }
                // What is in files is read when the records are compiled, again whenever one of
                // them changes.
                let text = || At { value: scalar.text.clone(), span: scalar.span(0, scalar.text.len()) };
                Ok(match includes_any.get() {
                    true => (Vec::new(), Some(IncludingText { text: text(), directory })),
                    false => (records, None),
                })
            });
            let (records, including): (Vec<Vec<Record>>, Vec<Option<IncludingText>>) =
                texts.into_iter().map(|at| at.value).unzip();
            let records = records.concat();
            let including = including.into_iter().flatten().collect();
            let mut paths = |key| -> Vec<_> {
                let files = self.list(&section, key, |_, _, scalar| path(&scalar.text));
                files
                    .into_iter()
                    .map(|at| At { value: self.beside(at.span.file, &at.value), span: at.span })
                    .collect()
            };
            let (files, hosts) = (paths("files"), paths("hosts"));
            let synthesized_soa = self.boolean(&section, "synthesized-soa");
            if section.entries.is_empty() {
                self.problems.push(
                    Problem::error(name.span, format!("set of records \"{}\" is empty", name.value))
                        .expected("\"text:\", \"files:\" or \"hosts:\""),
                );
            }
            sets.push(RecordSet { name, records, including, files, hosts, origin, synthesized_soa });
        }
        sets
    }
}
