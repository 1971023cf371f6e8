//! Reads the section `xdp`.

use diagnostic::Problem;
use plan::devices::{Existing, Mode};

use super::notation::interface;
use super::{Lowering, Section};
use crate::groups::Xdp;

impl Lowering<'_> {
    /// Returns what is to be done with network interfaces.
    pub(super) fn xdp(&mut self, root: &Section<'_>) -> Xdp {
        let section = self.section(root, "xdp");
        let interfaces = self.list(&section, "interfaces", |_, _, scalar| interface(&scalar.text));
        for (index, at) in interfaces.iter().enumerate() {
            if interfaces.iter().take(index).any(|other| other.value == at.value) {
                let message = format!("the interface \"{}\" is listed twice", at.value);
                self.problems.push(Problem::error(at.span, message));
            }
        }
        let map = self.path(&section, "map");
        let existing = self.word(&section, "existing", Existing::parse);
        let check_routes = self.boolean(&section, "check-routes");
        if let Some(map) = &map {
            let in_vain =
                [("existing: replace", existing == Existing::Replace), ("check-routes", check_routes)];
            for (setting, _) in in_vain.iter().filter(|(_, is_set)| *is_set) {
                let message = format!("\"map\" joins another program, and \"{setting}\" needs ours");
                self.problems.push(Problem::error(map.span, message).expected("one of them"));
            }
        }
        Xdp {
            interfaces,
            mode: self.word(&section, "mode", Mode::parse),
            existing,
            map: map.map(|at| at.value),
            queues: self.whole_or(&section, "queues").map(|queues| queues as u32),
            ring: self.whole_or(&section, "ring").map(|entries| (entries as u32).next_power_of_two()),
            check_routes,
            huge_pages: self.boolean(&section, "huge-pages"),
            busy_poll: self.whole_or(&section, "busy-poll").map(|microseconds| microseconds as u32),
            busy_poll_budget: self.whole(&section, "busy-poll-budget") as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::load::load_text;
    use environment::Memory;
    use std::path::Path;

    fn check(text: &str, expect: &str) {
        let found = load_text(Path::new("x"), text, &Memory::default()).expect_err("a mistake");
        assert!(found.iter().any(|found| found.line().contains(expect)), "{found:?}");
    }

    #[test]
    fn settings_that_would_do_nothing_are_mistakes() {
        let map = "map: /sys/fs/bpf/sockets";
        check(
            &format!("xdp: {{interfaces: a, {map}, check-routes: true}}\n"),
            "\"map\" joins another program, and \"check-routes\" needs ours",
        );
        check(
            &format!("xdp: {{interfaces: a, {map}, existing: replace}}\n"),
            "\"existing: replace\" needs ours",
        );
        check("xdp: {interfaces: [a, b, a]}\n", "the interface \"a\" is listed twice");
    }
}
