//! Error reports: a zone's servers may name an agent that wants to hear which of its names have no
//! answer (RFC 9567). The report is the name of a question.

use std::collections::{HashMap, VecDeque};

use wire::{EdeCode, Message, Name, NameBuf, OptionCode, Rtype};

use super::{Node, Resolver, TaskKey};
use crate::budget::{Budget, Limits};
use crate::failure::Failure;
use crate::heap_name::{HeapName, HeapQuestion};
use crate::moment::Moment;

/// The label that a report begins with, and that stands before its agent.
const MARK: &[u8] = b"_er";
/// Queries that one report may cost, of those that its question has left.
const SENDS_MAX: u8 = 16;
/// Reports of one worker in a row, and how many microseconds bring another one: an agent may be
/// somebody who never asked for it.
const BURST: u8 = 5;
const EACH_US: u64 = 1_000_000;
/// Reports that are remembered, and microseconds for which none is made twice (RFC 9567 §6.1: for
/// as long as its answer could be kept).
const REMEMBERED: usize = 1024;
const AGAIN_US: u64 = 3_600_000_000;

/// What one worker has reported.
#[derive(Default)]
pub(super) struct Reports {
    sent: HashMap<HeapName, Moment>,
    order: VecDeque<HeapName>,
    /// Reports of the present burst, and when the last one was taken off.
    burst: u8,
    drained_at: Moment,
}

impl Reports {
    /// Returns whether a report is to be sent now.
    fn admit(&mut self, name: &HeapName, now: Moment) -> bool {
        if self.sent.get(name).is_some_and(|&at| now.since_us(at) < AGAIN_US) {
            return false;
        }
        let drained = now.since_us(self.drained_at) / EACH_US;
        if drained > 0 {
            self.burst = self.burst.saturating_sub(u8::try_from(drained).unwrap_or(u8::MAX));
            self.drained_at = now;
        }
        if self.burst >= BURST {
            return false;
        }
        self.burst += 1;
        if self.sent.insert(name.clone(), now).is_none() {
            self.order.push_back(name.clone());
        }
        while self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.sent.remove(&oldest);
        }
        true
    }
}

/// Returns the agent that a reply names. The root is none (RFC 9567 §5).
pub(super) fn agent_of(reply: &Message<'_>) -> Option<HeapName> {
    let option = reply.edns?.option(OptionCode::REPORT_CHANNEL)?;
    let (agent, rest) = Name::parse(option).ok()?;
    (rest.is_empty() && !agent.is_root()).then(|| HeapName::new(agent))
}

/// Returns the name that says that a question failed: `_er.TYPE.NAME.CODE._er.AGENT` (RFC 9567
/// §6.1.1); `None` if it is too long, or if the question is such a report itself.
fn report_name(question: &HeapQuestion, EdeCode(code): EdeCode, agent: &HeapName) -> Option<HeapName> {
    let name = question.name.as_name();
    if name.labels().next() == Some(MARK) {
        return None;
    }
    let mut labels = Vec::new();
    let mut push = |label: &[u8]| {
        labels.push(label.len() as u8);
        labels.extend_from_slice(label);
    };
    push(MARK);
    push(question.rtype.0.to_string().as_bytes());
    name.labels().for_each(&mut push);
    push(code.to_string().as_bytes());
    push(MARK);
    let name = NameBuf::below(&labels, agent.as_name()).ok()?;
    Some(HeapName::new(name.as_name()))
}

impl Resolver {
    /// Reports that a question which a client asked, or an alias led to, has failed. What it costs
    /// is taken from what that client's question has left.
    pub(super) fn report(&mut self, key: TaskKey, failure: &Failure, now: Moment) {
        let Some(agent) = failure.agent.as_ref().filter(|_| self.settings.error_reports) else { return };
        let Some(task) = self.task(key).filter(|task| task.follows_aliases()) else { return };
        let Some(name) = report_name(&task.question, failure.ede(), agent) else { return };
        let payer = self.payer_of_sends(Node::Task(key));
        let left = payer.and_then(|payer| self.task(payer)?.budget).map_or(0, |budget| budget.sends_left());
        if left == 0 || !self.reports.admit(&name, now) {
            return;
        }
        self.counts.reports += 1;
        let limits = Limits { sends: left.min(SENDS_MAX), ..self.settings.limits };
        let question = HeapQuestion { name, rtype: Rtype::TXT, unchecked: false, subnet: None };
        let report = self.task_for(question, 0);
        if let Some(report) = self.task_mut(report) {
            report.budget.get_or_insert_with(|| Budget::new(&limits, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HeapName {
        HeapName::new(NameBuf::from_text(text).expect("a name").as_name())
    }

    #[test]
    fn a_report_says_what_failed_and_how() {
        let check = |text: &str, agent: &str, expected: Option<&str>| {
            let question = HeapQuestion { name: name(text), rtype: Rtype::A, unchecked: false, subnet: None };
            let found = report_name(&question, EdeCode(7), &name(agent));
            assert_eq!(found, expected.map(name), "{text}");
        };
        check("broken.test", "a01.agent.example", Some("_er.1.broken.test.7._er.a01.agent.example"));
        check(".", "agent.example", Some("_er.1.7._er.agent.example"));
        check("_er.1.broken.test.7._er.agent.example", "agent.example", None);
        check("_ER.x.test", "agent.example", None);
        check(&["label."; 39].concat(), "agent.example", None);
    }

    #[test]
    fn the_same_is_not_reported_twice_and_nobody_is_flooded() {
        let (mut reports, now) = (Reports::default(), Moment(1_000_000_000));
        let mut admitted = |number: u32, ms: u32| {
            reports.admit(&name(&format!("_er.1.n{number}.test.7._er.agent.example")), now.after_ms(ms))
        };
        assert!(admitted(0, 0) && !admitted(0, 3_599_000) && admitted(0, 3_600_000));
        let burst = (1..100).filter(|&number| admitted(number, 3_600_000)).count();
        assert_eq!(burst, 4);
        let later = (100..200).filter(|&number| admitted(number, 3_602_000)).count();
        assert_eq!(later, 2);
    }
}
