//! What is asked over AF_XDP, between two namespaces.

use std::time::Duration;

use crate::load::frames::{Asked, Asker, Stretch};
use crate::load::{Expect, SLICE, Slice, Tally};
use crate::pair::Pair;
use crate::queries::Packets;

/// How long is asked at the usual rate before a flood and after it.
const CALM: Duration = Duration::from_secs(2);
/// A server has recovered from a flood when it loses nothing, and replies take at most so many
/// times as long as before.
const RECOVERED: f64 = 2.0;

/// Says what was lost, and where as far as that is known.
fn lost_text(asked: &Asked) -> String {
    let Asked { tally, lost_there, lost_here, .. } = asked;
    match (tally.lost, *lost_there, *lost_here) {
        (0, ..) => "none lost".to_owned(),
        (lost, 0, 0) => format!("{lost} lost"),
        (lost, there, here) => {
            format!("{lost} lost, {there} before the server's interface and {here} behind it")
        }
    }
}

/// Whom to ask what, and how fast.
#[derive(Clone, Copy)]
pub(super) struct OverFrames<'a> {
    pub(super) pair: &'a Pair,
    pub(super) packets: &'a Packets,
    pub(super) expect: Expect,
    /// Queries a second.
    pub(super) rate: Option<f64>,
    pub(super) time: Duration,
}

impl<'a> OverFrames<'a> {
    /// Returns a generator. Must be called at the client's end.
    fn asker(self) -> Result<Asker<'a>, String> {
        let (is_echo, codes) = match self.expect {
            Expect::Echo => (true, [0; 16]),
            Expect::AsAsked(codes) => (false, codes),
        };
        Asker::new(self.pair, self.packets, is_echo, codes)
    }

    /// Asks over AF_XDP at the scenario's rate.
    pub(super) fn steady(self) -> Result<Tally, String> {
        let stretch = Stretch { rate: self.rate, time: self.time };
        let asked = self.pair.at_client(|| self.asker()?.ask(stretch))??;
        let remark = lost_text(&asked);
        Ok(Tally { remark: Some(remark), ..asked.tally })
    }

    /// Asks over AF_XDP at the scenario's rate, then as fast as the interface takes it, then at the
    /// rate again.
    pub(super) fn overload(self) -> Result<Tally, String> {
        let calm = Stretch { rate: self.rate, time: CALM };
        let flood = Stretch { rate: None, time: self.time };
        let [before, flood, after] = self.pair.at_client(|| {
            let mut asker = self.asker()?;
            Ok::<_, String>([asker.ask(calm)?, asker.ask(flood)?, asker.ask(calm)?])
        })??;
        let usual_us = before.tally.latency.mean_us();
        let is_usual = |(slice, mean_us): (&Slice, &Option<f64>)| {
            slice.lost == 0 && mean_us.is_some_and(|mean_us| mean_us <= RECOVERED * usual_us)
        };
        let recovered = after.tally.slices.iter().zip(&after.means_us).position(is_usual);
        let a_second = |asked: &Asked| asked.tally.answered as f64 / asked.tally.elapsed.as_secs_f64();
        let remark = format!(
            "before: {usual_us:.0} µs in the mean, {}; flooded with {:.0} queries a second: {:.0} answered; after: {:.0} µs, {}, {}",
            lost_text(&before),
            flood.tally.sent as f64 / flood.tally.elapsed.as_secs_f64(),
            a_second(&flood),
            after.tally.latency.mean_us(),
            lost_text(&after),
            recovered.map_or_else(
                || format!("not as before within {} s", CALM.as_secs()),
                |slice| format!("as before within {} ms", (slice + 1) * SLICE.as_millis() as usize)
            ),
        );
        let all = [&before.tally, &flood.tally, &after.tally];
        let sum = |of: fn(&Tally) -> u64| all.iter().map(|tally| of(tally)).sum();
        Ok(Tally {
            sent: sum(|it| it.sent),
            answered: sum(|it| it.answered),
            lost: sum(|it| it.lost),
            wrong_content: sum(|it| it.wrong_content),
            elapsed: all.iter().map(|tally| tally.elapsed).sum(),
            remark: Some(remark),
            ..after.tally
        })
    }
}
