//! What is done to queries, and in which order: `module-config`.
//!
//! Our order is always the one that works there, so that of the words only those count that turn
//! something on.

use diagnostic::Problem;

use super::Lowering;
use crate::keywords::Section;
use crate::read::Block;

/// Modules that turn something on, in their order; the last is needed.
const ORDER: [&str; 6] = ["respip", "dns64", "subnetcache", "validator", "cachedb", "iterator"];
/// This order works, too, and is the only one of its three first.
const OTHER_ORDER: [&str; 6] = ["dns64", "subnetcache", "respip", "validator", "cachedb", "iterator"];
/// Modules that hooks of operators run in, or that are not needed for what they do, with the reason
/// why they have no effect.
const WITHOUT_EFFECT: [(&str, &str); 4] = [
    ("python", "there is no Python in the server; policies say what scripts are for"),
    ("dynlib", "libraries are not loaded into the server"),
    ("ipsecmod", "no program is run while a client waits"),
    // Its section counts.
    ("ipset", ""),
];

/// Returns what the checker of the other program says of the order of modules, if it refuses that:
/// the server itself starts, and does something else than was meant.
pub fn module_order_mistake(modules: &str) -> Option<String> {
    let known: Vec<&str> = modules.split_whitespace().filter(|name| ORDER.contains(name)).collect();
    order_mistake(&known)
}

/// Returns why these modules do not work in this order.
fn order_mistake(known: &[&str]) -> Option<String> {
    let all_three = ["respip", "dns64", "subnetcache"].iter().all(|name| known.contains(name));
    let order = if all_three { OTHER_ORDER } else { ORDER };
    let mut places = known.iter().map(|name| order.iter().position(|other| other == name));
    let is_in_order = places.by_ref().is_sorted_by(|one, two| one < two);
    (known.last() != Some(&"iterator") || !is_in_order)
        .then(|| format!("the modules \"{}\" are not known to work in this order", known.join(" ")))
}

impl<'a> Lowering<'a> {
    /// Returns the names of `module-config`; those of the other program if it is not written.
    pub(super) fn modules(&self) -> Vec<&str> {
        let text = self.last("module-config").map_or(super::default("module-config"), |word| &*word.text);
        text.split_whitespace().collect()
    }

    /// Returns whether a module is there.
    pub(super) fn has_module(&self, name: &str) -> bool {
        self.modules().contains(&name)
    }

    pub(super) fn check_modules(&mut self) {
        self.check_needed();
        let Some(word) = self.last("module-config") else { return };
        let mut known = Vec::new();
        for name in word.text.split_whitespace() {
            match WITHOUT_EFFECT.iter().find(|(other, _)| *other == name) {
                Some((_, "")) => {}
                Some((_, reason)) => {
                    self.warn(word.span, format!("the module \"{name}\" has no effect: {reason}"));
                }
                None if ORDER.contains(&name) => known.push(name),
                None => {
                    let problem = Problem::error(word.span, format!("there is no module \"{name}\""));
                    self.problems.push(problem.expected(format!("some of {}", ORDER.join(", "))));
                    return;
                }
            }
        }
        if let Some(wrong) = order_mistake(&known) {
            let problem = Problem::warning(word.span, format!("{wrong}; here the order is always the same"));
            self.problems.push(problem);
        }
    }

    /// Says what is written for modules that are not there, as far as clients would miss it.
    fn check_needed(&mut self) {
        if !self.has_module("respip") {
            const EXPECTED: &str = "\"respip\" in \"module-config\", such as \"respip validator iterator\"";
            for block in self.blocks(Section::Rpz) {
                let problem = Problem::error(block.at, "\"rpz\" needs the module \"respip\"");
                self.problems.push(problem.expected(EXPECTED));
            }
            let of_view = |block: &'a Block| block.all("response-ip").next();
            let first =
                self.all("response-ip").next().or_else(|| self.blocks(Section::View).find_map(of_view));
            if let Some(first) = first {
                let message = format!("\"{}\" needs the module \"respip\"", first.row.name);
                self.problems.push(Problem::error(first.at, message).expected(EXPECTED));
            }
        }
    }
}
