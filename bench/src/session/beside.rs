//! What is known, asked for while others ask for what has to be found, or attack.

use std::thread;

use super::internet::Served;
use crate::load::{self, Plan, Tally};
use crate::process::{Server, Usage};
use crate::queries::Packets;

/// Two loads at once.
pub(super) struct Beside<'b> {
    /// Asks for what is known.
    pub(super) known: &'b dyn Fn() -> Result<Tally, String>,
    /// How that is done.
    pub(super) plan: &'b Plan,
    /// What the others ask for.
    pub(super) unknown: &'b Packets,
    pub(super) internet: &'b Served,
}

impl Beside<'_> {
    /// Lets others ask for so many names a second that have to be found; what is told is of those
    /// that are known.
    pub(super) fn found(&self, misses: u32) -> Result<Tally, String> {
        let (known, found) = self.both(misses, misses)?;
        self.internet.judge(&found, true)?;
        let unanswered = found.sent.saturating_sub(found.answered);
        let remark =
            format!("beside {} answers that had to be found and {unanswered} without one", found.answered);
        Ok(Tally { remark: Some(remark), ..known })
    }

    /// Asks for what is known, first alone and then while an attacker asks so many names a second;
    /// what is told is of the latter, with what each hostile question cost the server.
    pub(super) fn attacked(&self, server: &Server, hostile: u32) -> Result<Tally, String> {
        let cpu_us = |since: &Usage| server.usage().cpu_since(since).as_secs_f64() * 1e6;
        let before = server.usage();
        let alone = (self.known)()?;
        let alone_us = cpu_us(&before) / alone.answered.max(1) as f64;
        let (before, asked) = (server.usage(), self.internet.count()?);
        // Each may wait for as long as a resolver tries.
        let (known, attack) = self.both(hostile, 20 * hostile)?;
        let each = |all: f64| all / attack.sent.max(1) as f64;
        let cost_us = each(cpu_us(&before) - alone_us * known.answered as f64);
        let packets = each(self.internet.count()?.saturating_sub(asked) as f64);
        let remark = format!(
            "beside {} hostile questions, each of which cost {:.2} ms of CPU and {packets:.1} queries upstream",
            attack.sent,
            cost_us / 1e3
        );
        Ok(Tally { remark: Some(remark), ..known })
    }

    fn both(&self, rate: u32, outstanding: u32) -> Result<(Tally, Tally), String> {
        let plan =
            Plan { rate: Some(f64::from(rate)), outstanding: outstanding as usize, ..self.plan.clone() };
        let (known, others) = thread::scope(|scope| {
            let others = scope.spawn(|| load::run(&plan, self.unknown));
            ((self.known)(), others.join())
        });
        let others = others.map_err(|_| "the load generator panicked".to_owned())?;
        Ok((known?, others.map_err(|error| format!("load: {error}"))?))
    }
}
