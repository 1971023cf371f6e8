//! The recorder's thread: writes records into the file of their day, and removes old ones.

use std::fmt::Write as _;
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use events::{EventView, Mark};
use plan::jobs as settings;
use rusqlite::{Connection, Statement, Transaction, TransactionBehavior, params};
use tracing::{error, info, warn};

use crate::StepNames;
use crate::block::Block;
use crate::clock::{Clock, unix_ms_now};
use crate::database::{self, block_of, last_id, open};
use crate::days::{DAY_MS, Day, DayFile, Files};
use crate::known::Known;
use crate::name_text;
use crate::outcome::{Holds, Outcome, action_of};
use crate::pseudonyms::Recording;
use crate::sample::Sample;
use crate::sums::{self, Counted, Ends, Sums};
use crate::{Shared, Steps, WAITING_OCTETS_MAX, Waiting};

const INSERT: &str = "
INSERT INTO queries (id, at_ms, waited_ms, client, port, transport, name, type, class, rcode, answers, addresses, path, waited_us, one_of, outcome, decision, ede)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

/// How long a record may wait.
const WRITE_EVERY: Duration = Duration::from_millis(200);
/// How often old records are removed.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// Names and paths whose numbers are remembered, in each of two generations.
const REMEMBERED_MAX: usize = 50_000;
/// How long the database is left alone after it failed.
const PAUSE: Duration = Duration::from_secs(5);

/// What the recorder's thread works with.
pub(super) struct Writer {
    settings: settings::Recorder,
    files: Files,
    shared: Arc<Shared>,
    clock: Clock,
    steps: Steps,
    open: Option<Open>,
    /// The numbers of names, by their wire form in lower case.
    names: Known<Box<[u8]>>,
    /// Paths, by the snapshot and the steps as events have them.
    ways: Known<Box<[u32]>, Way>,
    /// The numbers of decisions, by what they follow from.
    decisions: Known<Decided>,
    /// The block of rows that is being written.
    block: Block,
    /// When old records were removed last; soon after the start for the first time.
    cleaned: Option<Instant>,
    paused_until: Option<Instant>,
    is_well: bool,
    /// Room for the order of records.
    order: Vec<Place>,
    sums: Sums,
    are_sums_well: bool,
    clients: Recording,
}

/// The file that is being written.
struct Open {
    file: DayFile,
    database: Connection,
    /// What tells the file from others that might be there now.
    identity: Option<(u64, u64)>,
}

/// Where a record is among others, and when it was.
#[derive(Clone, Copy)]
struct Place {
    at_ms: i64,
    at: usize,
}

/// A way through the policy.
#[derive(Clone, Copy)]
struct Way {
    /// Its number, if it is recorded.
    path: Option<i64>,
    outcome: Outcome,
}

/// What a decision follows from: the snapshot and its step, a line of a list, and who answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Decided {
    snapshot: u32,
    step: u16,
    listed: Option<(u16, u32, u32)>,
    upstream: Option<SocketAddr>,
}

/// Memory that rows are made in, one after the other.
#[derive(Default)]
struct Scratch {
    text: String,
    path: Vec<u32>,
}

impl Writer {
    pub(super) fn new(settings: settings::Recorder, shared: Arc<Shared>, clock: Clock, steps: Steps) -> Self {
        let files = Files::new(&settings.file);
        let except = settings.except_clients.clone();
        Self {
            clients: Recording::new(settings.clients, except, files.key()),
            files,
            settings,
            shared,
            clock,
            steps,
            open: None,
            names: Known::new(REMEMBERED_MAX),
            ways: Known::new(REMEMBERED_MAX),
            decisions: Known::new(REMEMBERED_MAX),
            block: Block::none(),
            cleaned: None,
            paused_until: None,
            is_well: true,
            order: Vec::new(),
            sums: Sums::new(unix_ms_now()),
            are_sums_well: true,
        }
    }

    /// Writes what comes until the recorder is closed.
    pub(super) fn work(&mut self) {
        let mut words = Vec::new();
        self.forget_key();
        loop {
            let (sample, is_closed) = self.wait(mem::take(&mut words));
            if sample.records() > 0 {
                self.write(&sample);
            }
            let one_of = sample.one_of();
            words = sample.into_words();
            if is_closed {
                break;
            }
            self.shared.report(one_of);
            if self.sums_due().is_some_and(|at| at <= Instant::now()) {
                self.write_sums(Ends::No);
            }
            let is_time = self.cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY);
            if is_time {
                self.cleaned = Some(Instant::now());
                self.clean();
            }
        }
        self.close();
        if self.shared.forgets_key.load(Ordering::Acquire)
            && let Err(problem) = self.clients.forget_all()
        {
            let file = self.files.key();
            warn!(file = %file.display(), error = %problem, "the key of pseudonyms is not overwritten");
        }
    }

    /// Closes the file that is being written, so that the next reader finds one file.
    fn close(&mut self) {
        self.write_sums(Ends::Yes);
        if let Some(open) = self.open.take() {
            let _ = open.database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);");
        }
        self.forget();
    }

    /// Waits for records, then for more of them as long as one may wait, and takes them. Comes back
    /// without any when there is something else to do.
    fn wait(&self, room: Vec<u64>) -> (Sample, bool) {
        let mut waiting = self.shared.lock();
        let is_idle = |waiting: &mut Waiting| !waiting.is_closed && waiting.sample.records() == 0;
        if is_idle(&mut waiting) {
            let changed = &self.shared.changed;
            waiting = match self.idle_until() {
                None => changed.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let result = changed.wait_timeout_while(waiting, left, is_idle);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        if !waiting.is_closed && waiting.sample.records() > 0 {
            let gathers = |waiting: &mut Waiting| {
                !waiting.is_closed && waiting.sample.octets() < WAITING_OCTETS_MAX / 2
            };
            let result = self.shared.changed.wait_timeout_while(waiting, WRITE_EVERY, gathers);
            waiting = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        (waiting.sample.take(room, WAITING_OCTETS_MAX), waiting.is_closed)
    }

    /// Returns when something is to be done although no record comes.
    fn idle_until(&self) -> Option<Instant> {
        let clean = Some(self.cleaned.map_or_else(Instant::now, |at| at + CLEAN_EVERY));
        let dropped = self.shared.counts.dropped.read();
        let report = self.shared.notice.lock().unwrap_or_else(PoisonError::into_inner).at(dropped);
        [clean, report, self.sums_due()].into_iter().flatten().min()
    }

    /// Returns when sums are to be written, if there are any that are not.
    fn sums_due(&self) -> Option<Instant> {
        let due = self.sums.written.map_or_else(Instant::now, |written| written + sums::WRITE_EVERY);
        self.sums.has_new().then_some(due)
    }

    /// Writes the sums of the rows that were written.
    pub(super) fn write_sums(&mut self, ends: Ends) {
        self.drop_forgotten();
        let Some(open) = &self.open else { return };
        let file = self.files.sums();
        let outcome = last_id(&open.database)
            .and_then(|last| self.sums.write(&file, (open.file.day, last, &open.database), ends));
        self.said_of_sums(outcome);
    }

    /// Drops what was counted and remembered of rows if some of them were removed. They are counted
    /// again without these.
    fn drop_forgotten(&mut self) {
        if self.shared.has_forgotten.swap(false, Ordering::AcqRel) {
            self.forget();
        }
    }

    /// Says once that sums cannot be written. Rows without sums are counted the next time.
    fn said_of_sums(&mut self, outcome: rusqlite::Result<()>) {
        match outcome {
            Ok(()) => self.are_sums_well = true,
            Err(problem) => {
                self.sums.give_up();
                if mem::replace(&mut self.are_sums_well, false) {
                    let file = self.files.sums();
                    warn!(file = %file.display(), error = %problem, "sums of queries are not written");
                }
            }
        }
    }

    pub(super) fn write(&mut self, sample: &Sample) {
        let records = sample.records();
        if self.paused_until.is_some_and(|until| until > Instant::now()) {
            // The log has the database's failure.
            self.shared.notice.lock().unwrap_or_else(PoisonError::into_inner).leave_out(records);
            self.shared.counts.dropped.add(records);
            return;
        }
        let mut written = 0;
        let mut outcome = self.try_write(sample, &mut written);
        if let Err((file, problem)) = &outcome
            && database::is_broken(problem)
        {
            database::put_aside_broken(file, problem);
            self.open = None;
            self.forget();
            if written == 0 {
                outcome = self.try_write(sample, &mut written);
            }
        }
        self.shared.counts.written.add(written);
        match outcome {
            Ok(()) => {
                if !mem::replace(&mut self.is_well, true) {
                    info!(file = %self.settings.file.display(), "queries are recorded again");
                }
            }
            Err((file, problem)) => {
                self.shared.counts.failed.add(records.saturating_sub(written));
                self.open = None;
                self.forget();
                self.paused_until = Some(Instant::now() + PAUSE);
                if mem::replace(&mut self.is_well, false) {
                    error!(file = %file.path.display(), error = %problem, "queries are not recorded");
                }
            }
        }
    }

    /// Forgets what is known of the database's content.
    fn forget(&mut self) {
        self.sums.give_up();
        self.names.clear();
        self.ways.clear();
        self.decisions.clear();
        self.block = Block::none();
    }

    /// Writes records by their time, each into the file of its day; counts those that were
    /// written.
    fn try_write(&mut self, sample: &Sample, written: &mut u64) -> Result<(), (DayFile, rusqlite::Error)> {
        let mut order = mem::take(&mut self.order);
        order.clear();
        // One look at the clocks for all.
        let epoch_ms = self.clock.unix_ms(0);
        let words = sample.words();
        let mut rest = words;
        while let Some((event, after)) = EventView::split(rest) {
            let at = words.len() - rest.len();
            if self.clients.leaves_out(event.client()) {
                rest = after;
                continue;
            }
            order.push(Place { at_ms: epoch_ms.saturating_add_unsigned(event.monotonic_ms()), at });
            rest = after;
        }
        // Workers hand over theirs in batches, each in order.
        order.sort_by_key(|place| place.at_ms);
        let mut outcome = Ok(());
        // An hour's sums are whole before the next one's begin.
        for of_an_hour in order.chunk_by(|one, other| hour_of(one.at_ms) == hour_of(other.at_ms)) {
            let Some(first) = of_an_hour.first() else { continue };
            let file = self.files.of(Day::of(first.at_ms));
            if let Err(problem) = self.write_day(&file, of_an_hour, sample) {
                outcome = Err((file, problem));
                break;
            }
            *written += of_an_hour.len() as u64;
        }
        self.order = order;
        outcome
    }

    /// Has the file of a day open.
    fn open_day(&mut self, file: &DayFile) -> rusqlite::Result<Connection> {
        match self.open.take() {
            Some(open) if open.file == *file && open.identity == file.identity() => Ok(open.database),
            open => {
                // Another day, or somebody removed the file.
                self.open = open;
                self.close();
                let database = database::open(file)?;
                // What was written before a crash.
                let outcome = self.sums.catch_up(&self.files.sums(), file.day, &database);
                self.said_of_sums(outcome);
                Ok(database)
            }
        }
    }

    fn write_day(&mut self, file: &DayFile, places: &[Place], sample: &Sample) -> rusqlite::Result<()> {
        let mut database = self.open_day(file)?;
        self.drop_forgotten();
        if places.first().is_some_and(|first| self.sums.is_other_hour(first.at_ms)) {
            let last = last_id(&database)?;
            let outcome = self.sums.write(&self.files.sums(), (file.day, last, &database), Ends::Yes);
            self.said_of_sums(outcome);
        }
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // From here on nobody else removes any.
        self.drop_forgotten();
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            let mut scratch = Scratch::default();
            let mut id = last_id(&transaction)?;
            for place in places {
                let event = EventView::split(sample.words().get(place.at..).unwrap_or(&[]));
                let Some((event, _)) = event else { continue };
                id += 1;
                if block_of(id) != self.block.number {
                    self.block.finish(&transaction)?;
                    self.block.begin(block_of(id), id);
                }
                let one_of = sample.one_of().saturating_mul(event.refused().max(1));
                let row = Row { id, at_ms: place.at_ms, one_of };
                self.insert(&transaction, &mut insert, &mut scratch, event, row)?;
            }
            self.block.write(&transaction)?;
        }
        transaction.commit()?;
        self.open = Some(Open { identity: file.identity(), file: file.clone(), database });
        Ok(())
    }

    fn insert(
        &mut self,
        transaction: &Transaction<'_>,
        insert: &mut Statement<'_>,
        scratch: &mut Scratch,
        event: EventView<'_>,
        row: Row,
    ) -> rusqlite::Result<()> {
        let name = self.name(transaction, event)?;
        let way = self.way(transaction, scratch, event)?;
        let decision = self.decision(transaction, event, way.outcome)?;
        let addresses = &mut scratch.text;
        addresses.clear();
        for address in event.addresses() {
            if !addresses.is_empty() {
                addresses.push(' ');
            }
            // Text takes whatever it is given.
            let _ = write!(addresses, "{address}");
        }
        let client = self.clients.client(event.client(), Day::of(row.at_ms)).map_err(not_kept)?;
        let rcode = event.rcode().map(|rcode| rcode.0);
        let mut holds = Holds::outcome(way.outcome);
        holds.add(Holds::rcode(rcode));
        self.block.add(row.id, client, name, row.at_ms, holds);
        let (room, len) = client.octets();
        insert.execute(params![
            row.id,
            row.at_ms,
            event.waited_ms(),
            room.get(..len),
            event.port(),
            event.transport().word(),
            name,
            event.qtype().0,
            event.qclass().0,
            rcode,
            event.answers(),
            (!addresses.is_empty()).then_some(addresses.as_str()),
            way.path,
            (event.waited_us() % 1000) as u16,
            row.one_of,
            way.outcome as u8,
            decision,
            event.cause().map(|cause| cause.0),
        ])?;
        self.sums.add(&Counted {
            at_ms: row.at_ms,
            name,
            client,
            qtype: event.qtype().0,
            transport: event.transport().word(),
            outcome: way.outcome,
            decision,
            one_of: row.one_of,
        });
        Ok(())
    }

    /// Returns the number of the name asked for.
    fn name(&mut self, transaction: &Transaction<'_>, event: EventView<'_>) -> rusqlite::Result<i64> {
        let mut room = [0; 256];
        let name = event.qname(&mut room);
        // No length of a label is a capital letter.
        let mut folded = [0; 256];
        let folded = folded.get_mut(..name.len()).unwrap_or(&mut []);
        folded.copy_from_slice(name.as_bytes());
        folded.make_ascii_lowercase();
        if let Some(number) = self.names.find(&*folded) {
            return Ok(number);
        }
        let number = number(transaction, &name_text(name), FIND_NAME, ADD_NAME)?;
        self.names.remember((&*folded).into(), number);
        Ok(number)
    }

    /// Returns the way through the policy and what became of the query.
    fn way(
        &mut self,
        transaction: &Transaction<'_>,
        scratch: &mut Scratch,
        event: EventView<'_>,
    ) -> rusqlite::Result<Way> {
        // What an outcome follows from beside the way: in the words behind it.
        scratch.path.clear();
        scratch.path.push(event.snapshot());
        scratch.path.extend(event.path().map(|(step, mark)| u32::from(step) << 8 | mark as u32));
        scratch
            .path
            .push(event.decided().map_or(u32::MAX, |(step, mark)| u32::from(step) << 8 | mark as u32));
        scratch.path.push(event.rcode().map_or(u32::MAX, |rcode| u32::from(rcode.0)));
        let cause = event.cause().map_or(u32::from(u16::MAX), |cause| u32::from(cause.0));
        scratch
            .path
            .push(cause << 2 | u32::from(event.refused() > 0) << 1 | u32::from(event.waited_us() > 0));
        if let Some(way) = self.ways.find(scratch.path.as_slice()) {
            return Ok(way);
        }
        let names = self.steps_of(event.snapshot());
        let names = names.as_ref().map(|steps| &*steps.names);
        let path = match self.settings.keeps_path {
            true => Some(number(transaction, &path_text(event, names), FIND_PATH, ADD_PATH)?),
            false => None,
        };
        let text = |step: u16| {
            let name = names.and_then(|names| names.get(usize::from(step)));
            name.map_or("", |name| action_of(name))
        };
        let decided = event.decided().map(|(step, mark)| (text(step), mark));
        let outcome = match event.refused() {
            0 => Outcome::of(decided, event.rcode(), event.cause(), event.waited_us() > 0),
            _ if event.rcode().is_some() => Outcome::Refused,
            _ => Outcome::Dropped,
        };
        let way = Way { path, outcome };
        self.ways.remember(scratch.path.as_slice().into(), way);
        Ok(way)
    }

    /// Returns the number of what decided about a query and who answered it, if anything is known
    /// of that.
    fn decision(
        &mut self,
        transaction: &Transaction<'_>,
        event: EventView<'_>,
        outcome: Outcome,
    ) -> rusqlite::Result<Option<i64>> {
        let Some((step, _)) = event.decided() else { return Ok(None) };
        // Who was asked in vain before a stale answer is no answer.
        let upstream = event.upstream().filter(|_| outcome == Outcome::Resolved);
        let listed = event.listed().map(|listed| (listed.step, listed.list, listed.line));
        let decided = Decided { snapshot: event.snapshot(), step, listed, upstream };
        if let Some(number) = self.decisions.find(&decided) {
            return Ok(Some(number));
        }
        let Some(steps) = self.steps_of(event.snapshot()) else { return Ok(None) };
        let (rule, list, line) = rule_of(&steps, &decided);
        let group = steps.names.get(usize::from(step)).map_or("", |name| group_of(action_of(name)));
        let group = if outcome == Outcome::Resolved { group } else { "" };
        let upstream = match upstream {
            Some(server) => format!("{group} {server}"),
            None => group.to_owned(),
        };
        let what = params![rule, list, line, upstream.trim_start()];
        let added = transaction.prepare_cached(ADD_DECISION)?.execute(what)? > 0;
        let number = match added {
            true => transaction.last_insert_rowid(),
            false => transaction.prepare_cached(FIND_DECISION)?.query_row(what, |row| row.get(0))?,
        };
        self.decisions.remember(decided, number);
        Ok(Some(number))
    }

    /// Returns what the steps of a snapshot are called.
    fn steps_of(&self, snapshot: u32) -> Option<StepNames> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().find(|steps| steps.snapshot == snapshot).cloned()
    }

    /// Removes what is too old, and the oldest of what is too much.
    fn clean(&mut self) {
        self.forget_key();
        let outcome = sums::clean(&self.files.sums(), unix_ms_now(), self.settings.keep);
        if let Err(problem) = outcome {
            warn!(error = %problem, "old sums of queries were not removed");
        }
        match self.try_clean(unix_ms_now()) {
            Ok(removed) => self.shared.counts.removed.add(removed),
            Err(problem) => warn!(error = %problem, "old records of queries were not removed"),
        }
    }

    /// Forgets the key of pseudonyms of another day.
    fn forget_key(&mut self) {
        if let Err(problem) = self.clients.forget_old(Day::of(unix_ms_now())) {
            let file = self.files.key();
            warn!(file = %file.display(), error = %problem, "the key of pseudonyms is not overwritten");
        }
    }

    /// Removes whole days, and of the current one what whole days do not suffice for; returns how
    /// many rows.
    pub(super) fn try_clean(&mut self, now_ms: i64) -> Result<u64, String> {
        let keep_ms = i64::try_from(self.settings.keep.as_millis()).unwrap_or(i64::MAX);
        let oldest_ms = now_ms.saturating_sub(keep_ms);
        if self.open.as_ref().is_some_and(|open| open.file.day.end_ms() <= oldest_ms) {
            // Nothing came since that day.
            self.close();
        }
        // The file of a day that goes on is not removed as a whole, whether it is open yet or not.
        let current = self.open.as_ref().map_or_else(|| Day::of(now_ms), |open| open.file.day);
        let mut removed = 0;
        let mut files = self.files.all();
        let is_old = |file: &DayFile| match file.day {
            // Nothing was written to it after that.
            Day::UNDIVIDED => file.written_ms().is_some_and(|at_ms| at_ms < oldest_ms),
            day => day.end_ms() <= oldest_ms,
        };
        let is_others = |file: &DayFile| current != file.day;
        let remove = |file: &DayFile| {
            let rows = database::rows_of(file);
            file.remove().map(|()| rows).map_err(|error| format!("{}: {error}", file.path.display()))
        };
        let mut kept = Vec::new();
        for file in files.drain(..) {
            match is_others(&file) && is_old(&file) {
                true => removed += remove(&file)?,
                false => kept.push(file),
            }
        }
        if keep_ms < DAY_MS {
            // A day is too coarse.
            let partly = |file: &&DayFile| file.day != Day::UNDIVIDED && file.day.begin_ms() < oldest_ms;
            for file in kept.iter().filter(partly) {
                removed += self.clean_rows(file, |database| database::clean_by_age(database, oldest_ms))?;
            }
        }
        let mut octets: u64 = kept.iter().map(DayFile::octets).sum();
        for file in kept.iter().filter(|file| is_others(file)) {
            if octets <= self.settings.octets_max {
                break;
            }
            octets = octets.saturating_sub(file.octets());
            removed += remove(file)?;
        }
        if octets > self.settings.octets_max
            && let Some(file) = kept.into_iter().find(|file| !is_others(file))
        {
            let octets_max = self.settings.octets_max;
            removed += self.clean_rows(&file, |database| database::clean_by_size(database, octets_max))?;
        }
        Ok(removed)
    }

    /// Removes rows of one file; returns how many.
    fn clean_rows(
        &mut self,
        file: &DayFile,
        clean: impl FnOnce(&mut Connection) -> rusqlite::Result<u64>,
    ) -> Result<u64, String> {
        if self.open.as_ref().is_some_and(|open| open.file == *file) {
            // Names that are removed were counted.
            self.write_sums(Ends::Yes);
        }
        let outcome = match &mut self.open {
            Some(open) if open.file == *file => clean(&mut open.database),
            _ => open(file).and_then(|mut database| clean(&mut database)),
        };
        let removed = outcome.map_err(|error| format!("{}: {error}", file.path.display()))?;
        if removed > 0 && self.open.as_ref().is_some_and(|open| open.file == *file) {
            // Numbers of names that are gone must not be used again.
            self.forget();
        }
        Ok(removed)
    }
}

/// Writes the way through the policy: one step after the other, each with what came of it.
fn path_text(event: EventView<'_>, names: Option<&[String]>) -> String {
    let mut text = String::new();
    for (step, mark) in event.path() {
        if !text.is_empty() {
            text.push_str("; ");
        }
        match names.and_then(|names| names.get(usize::from(step))) {
            Some(name) => text.push_str(name),
            None => text.push_str(&format!("step {step}")),
        }
        text.push_str(match mark {
            Mark::Done => "",
            Mark::Held => ": yes",
            Mark::Failed => ": no",
            Mark::Hit => ": hit",
            Mark::Stale => ": stale",
            Mark::Missed => ": miss",
            Mark::Answered => ": answers",
            Mark::Ended => ": ends",
            Mark::Waited => ": waits",
        });
    }
    text
}

/// Returns the rule that decided, as file, line and action, and the list and line of it if that was
/// what its conditions looked at.
fn rule_of(steps: &StepNames, decided: &Decided) -> (String, String, u32) {
    let place = |step: u16| steps.facts.places.get(usize::from(step));
    let action = steps.names.get(usize::from(decided.step)).map_or("", |name| action_of(name));
    let Some((at, rule)) = place(decided.step).filter(|(at, _)| !at.is_empty()) else {
        return (String::new(), String::new(), 0);
    };
    let of_list = |(step, list, line): (u16, u32, u32)| {
        let is_same = place(step).is_some_and(|(_, other)| other == rule);
        steps.facts.list(list).filter(|_| is_same).map(|label| (label.to_owned(), line))
    };
    let (list, line) = decided.listed.and_then(of_list).unwrap_or_default();
    (format!("{at} {action}"), list, line)
}

/// Returns the group of servers or the resolver that a step asks: `forward(home, …)`.
fn group_of(action: &str) -> &str {
    let Some((_, rest)) = action.split_once('(') else { return "" };
    rest.split([',', ')']).next().unwrap_or_default().trim()
}

/// Says that the key of pseudonyms cannot be kept, as a database says that it cannot be written.
fn not_kept(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Returns the hour of a moment, from 1970.
const fn hour_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(3_600_000)
}

/// What a row has beside what the event says.
#[derive(Clone, Copy)]
struct Row {
    id: i64,
    /// When the reply was complete, in milliseconds since 1970.
    at_ms: i64,
    one_of: u32,
}

const ADD_DECISION: &str =
    "INSERT INTO decisions (rule, list, line, upstream) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const FIND_DECISION: &str =
    "SELECT id FROM decisions WHERE rule = ?1 AND list = ?2 AND line = ?3 AND upstream = ?4";
const FIND_NAME: &str = "SELECT id FROM names WHERE name = ?1";
const ADD_NAME: &str = "INSERT INTO names (name) VALUES (?1) ON CONFLICT DO NOTHING";
const FIND_PATH: &str = "SELECT id FROM paths WHERE path = ?1";
const ADD_PATH: &str = "INSERT INTO paths (path) VALUES (?1) ON CONFLICT DO NOTHING";

/// Returns the number of a text in one of the tables that hold each text once. Most that are not
/// remembered are new.
fn number(transaction: &Transaction<'_>, text: &str, find: &str, add: &str) -> rusqlite::Result<i64> {
    if transaction.prepare_cached(add)?.execute([text])? > 0 {
        return Ok(transaction.last_insert_rowid());
    }
    transaction.prepare_cached(find)?.query_row([text], |row| row.get(0))
}
