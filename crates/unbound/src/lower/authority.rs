//! Zones that are here: response policy zones, and zones with authority.

use diagnostic::Problem;
use yaml::Node;

use super::{Lowering, bare};
use crate::keywords::Section;
use crate::read::Block;
use crate::tree;

impl Lowering<'_> {
    pub(super) fn authority(&mut self) {
        for (at, block) in self.blocks(Section::Rpz).enumerate() {
            self.response_policy(at, block);
        }
        for block in self.blocks(Section::AuthZone) {
            self.zone(block);
        }
    }

    fn response_policy(&mut self, number: usize, block: &Block) {
        let Some(file) = block.last("zonefile") else {
            let problem = Problem::error(block.at, "this response policy zone has no file");
            self.problems.push(problem.expected("\"zonefile:\"; transfers are not supported yet"));
            return;
        };
        let Some(name) = block.last("name") else {
            self.problems.push(Problem::error(block.at, "this zone has no name").expected("\"name:\""));
            return;
        };
        let set = format!("rpz-{}", number + 1);
        let Node { value: yaml::Value::Scalar(path), .. } = self.file(file) else { return };
        let list = tree::text(format!("rpz:{}", path.text), file.span);
        let item = tree::map(vec![("list", list)], file.span);
        self.tree.push(&["sets", &set, "lists"], item);
        let action = match block.last("rpz-action-override") {
            None => None,
            Some(word) => match word.text.as_str() {
                "nxdomain" => Some("block(nxdomain)".to_owned()),
                "nodata" => Some("block(nodata)".to_owned()),
                "drop" => Some("drop".to_owned()),
                "passthru" | "disabled" => return,
                "cname" => match block.last("rpz-cname-override") {
                    Some(target) => Some(format!("redirect({})", bare(&target.text))),
                    None => {
                        self.error(word.span, "\"cname\" needs \"rpz-cname-override:\"");
                        return;
                    }
                },
                other => {
                    let problem = Problem::error(word.span, format!("\"{other}\" is no action"));
                    self.problems
                        .push(problem.expected("nxdomain, nodata, passthru, drop, disabled or cname"));
                    return;
                }
            },
        };
        let step = |condition: &str| match &action {
            None => tree::text(format!("blocklist({set})"), block.at),
            Some(action) => {
                let condition = tree::text(format!("{condition} in {set}"), block.at);
                tree::map(vec![("if", condition), ("do", tree::text(action.clone(), block.at))], block.at)
            }
        };
        let _ = name;
        let step = match block.last("tags").filter(|_| block.all("tags").next().is_some()) {
            None => step("qname"),
            Some(tags) => {
                let clients = self.clients_with_tags(&tags.text);
                let condition = tree::text(format!("client in {}", clients.join("|")), tags.span);
                if clients.is_empty() {
                    return;
                }
                tree::map(vec![("if", condition), ("do", step("qname"))], tags.span)
            }
        };
        self.steps.triggers.push(step.clone());
        self.steps.rewrites.push(step);
    }

    /// Returns the prefixes of clients that have one of these tags.
    fn clients_with_tags(&self, tags: &str) -> Vec<String> {
        let wanted: Vec<&str> = tags.split_whitespace().collect();
        let has = |text: &str| text.split_whitespace().any(|tag| wanted.contains(&tag));
        self.all("access-control-tag")
            .filter(|it| has(&it.word(1).text))
            .map(|it| it.word(0).text.clone())
            .collect()
    }

    fn zone(&mut self, block: &Block) {
        let Some(name) = block.last("name") else {
            self.problems.push(Problem::error(block.at, "this zone has no name").expected("\"name:\""));
            return;
        };
        let (is_downstream, _) = block.flag("for-downstream");
        let (is_upstream, at) = block.flag("for-upstream");
        if is_upstream && block.last("for-upstream").is_some() {
            self.warn(at, "\"for-upstream\" has no effect yet: what the resolver needs of this zone it asks servers for");
        }
        if !is_downstream {
            return;
        }
        let mut entries = vec![("name", tree::as_written(name))];
        let allowed = tree::list(self.allowed());
        entries.push(("allow-query", allowed));
        let primaries: Vec<Node> = block
            .statements
            .iter()
            .filter(|it| matches!(it.row.name, "primary" | "master"))
            .map(|it| tree::as_written(it.word(0)))
            .collect();
        if !primaries.is_empty() {
            entries.push(("primaries", tree::list(primaries)));
        } else if let Some(file) = block.last("zonefile") {
            entries.push(("file", self.file(file)));
        }
        let notified: Vec<Node> = block.all("allow-notify").map(|it| tree::as_written(it.word(0))).collect();
        if !notified.is_empty() {
            entries.push(("notify-from", tree::list(notified)));
        }
        if let (true, at) = block.flag("fallback-enabled") {
            self.warn(
                at,
                "\"fallback-enabled\" has no effect yet: a zone that cannot be served gets SERVFAIL",
            );
        }
        let item = tree::map(entries, name.span);
        self.tree.push(&["zones"], item);
    }

    /// Returns who may ask: zones have a list of their own.
    fn allowed(&self) -> Vec<Node> {
        self.tree.items(&["allow"])
    }
}
