//! Echoes queries through `listen`: what its sockets cost beyond a bare echo, without any DNS.
//!
//! `echo ADDRESS [gro] [plain] [ACCEPTED-ADDRESS…]` listens with one worker until it is killed;
//! `gro` receives coalesced datagrams, `plain` sends each reply apart.
#![expect(clippy::print_stdout, reason = "it is a program to be looked at")]

use std::cell::{RefCell, RefMut};
use std::env;
use std::error::Error;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use engine::{Client, Clock, Now, ReplyTo};
use listen::{Answer, Answered, Counters, Service};
use plan::listeners::{Grouping, ListenerPlan, Plan};
use tokio::runtime::{Builder, LocalOptions};

struct Echo;

impl Answer for Echo {
    type Deferred = ();

    fn begin(&mut self, _now: Now) {}

    fn answer(&mut self, query: &[u8], _client: &Client, room: &mut [u8]) -> Answered<()> {
        let Some(reply) = room.get_mut(..query.len()) else { return Answered::Nothing };
        reply.copy_from_slice(query);
        if let Some(flags) = reply.get_mut(2) {
            *flags |= 0x80;
        }
        Answered::Reply(query.len())
    }

    fn next_prefetch(&mut self) -> Option<()> {
        None
    }
}

/// Returns the time since it was first asked for.
fn since_first() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

struct Echoes {
    echo: RefCell<Echo>,
    clock: Clock,
}

impl Service for Echoes {
    type Engine = Echo;

    fn engine(&self) -> RefMut<'_, Echo> {
        self.echo.borrow_mut()
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn take(&self, _deferred: (), _to: ReplyTo) {}

    fn prefetch(&self, _prefetch: ()) {}

    fn flush(&self) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut plan = Plan::default();
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "gro" => plan.udp.receiving = Grouping::Together,
            "plain" => plan.udp.sending = Grouping::Apart,
            address => plan.listeners.push(ListenerPlan::new(address.parse()?)),
        }
    }
    let sockets = listen::bind(&plan, 1, Vec::new())?;
    for bound in sockets.addresses() {
        println!("{}", bound.address);
    }
    let Some(worker) = sockets.into_workers().pop() else { return Ok(()) };
    let service =
        Rc::new(Echoes { echo: RefCell::new(Echo), clock: Clock::start(since_first, SystemTime::now) });
    let (_stopper, stop) = listen::stop();
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let counters = Arc::new(Counters::default());
    runtime.block_on(listen::serve(service, worker, counters, stop))?;
    Ok(())
}
