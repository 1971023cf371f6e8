//! The lines of the log on the service as a whole, which scripts wait for.

use std::sync::{Arc, Mutex};

use server::Operator;
use tracing::info;
use unbound::Facts;

use crate::audit::Flushes;
use crate::channel::{Channel, Context, Hooks, Zero};
use crate::commands;
use crate::lists::Lists;

/// Whence lines are that have the level `notice` in the form of the other program.
const NOTICES: &str = "gannet::notice";
/// The program, as its lines name it.
const PROGRAM: &str = concat!("gannet ", env!("CARGO_PKG_VERSION"));
/// The keyword with the names of modules.
const MODULES: &str = "module-config";

/// A server in the place of the other program, as its operator sees it.
pub struct Service(Arc<Context>);

impl Service {
    /// Returns the service of a server that runs.
    pub fn new(channel: &Channel, operator: Arc<Operator>, hooks: Hooks) -> Self {
        Self(Arc::new(Context {
            operator,
            hooks,
            word: channel.word(),
            lists: Lists::default(),
            flushes: Flushes::default(),
            zero: Mutex::new(Zero::default()),
            verbosity: Mutex::new(None),
        }))
    }

    pub(crate) const fn context(&self) -> &Arc<Context> {
        &self.0
    }

    /// Logs that clients are answered from now on.
    pub fn tell_start(&self) {
        if self.is_in_place() {
            tell_start(&self.0);
        }
    }

    /// Returns what logs that the configuration was read again. There that is an end and a start.
    pub fn on_reload(&self) -> Arc<dyn Fn() + Send + Sync> {
        let (context, is_in_place) = (Arc::clone(&self.0), self.is_in_place());
        Arc::new(move || {
            if is_in_place {
                tell_reload(&context);
            }
        })
    }

    /// Logs that clients are no longer answered, and what was counted.
    pub fn tell_end(&self) {
        if self.is_in_place() {
            tell_end(&self.0);
        }
    }

    /// Returns whether the configuration is an `unbound.conf`.
    fn is_in_place(&self) -> bool {
        self.0.operator.loaded().changes.is_some()
    }
}

fn tell_start(context: &Context) {
    for (place, module) in modules(context).split_whitespace().enumerate() {
        info!(target: NOTICES, "init module {place}: {module}");
    }
    (context.hooks.announce)(&format!("start of service ({PROGRAM})."));
}

fn tell_end(context: &Context) {
    (context.hooks.announce)(&format!("service stopped ({PROGRAM})."));
    commands::log_workers(context);
}

/// Logs what a reload is there: the end of the service, and its start.
pub(crate) fn tell_reload(context: &Context) {
    tell_end(context);
    info!(target: NOTICES, "Restart of {PROGRAM}.");
    tell_start(context);
}

/// Returns the names of modules, as the files have them.
fn modules(context: &Context) -> String {
    let loaded = context.operator.loaded();
    // Files that say nothing of it are not read again.
    let is_said = loaded.sources.files().any(|file| file.text().contains(MODULES));
    match &loaded.changes {
        Some(changes) if is_said => Facts::of(&loaded.sources, changes).value(MODULES),
        _ => {
            let row = unbound::keywords().find(|(_, name, ..)| *name == MODULES);
            row.map_or_else(String::new, |(_, _, default, _)| default.to_owned())
        }
    }
}
