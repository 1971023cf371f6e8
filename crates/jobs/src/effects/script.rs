//! A program for each query. No shell is involved: arguments arrive as they are.
//!
//! The program sees its own environment variables and `PATH`, nothing to read, and what it writes
//! to its standard error is logged when it fails. Programs that it starts itself are not killed
//! with it.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plan::jobs as settings;

use super::template::{Escape, fill};
use super::{Counts, Effect, EffectError, Occurrence, many};

/// Octets of what a program says that are kept.
const SAID_OCTETS_MAX: u64 = 4096;
/// How often we look whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs the programs of one effect.
pub(crate) struct Script {
    settings: settings::Script,
    name: String,
}

impl Script {
    /// Prepares the effect.
    pub(crate) fn new(settings: &settings::Script, name: &str) -> Self {
        Self { settings: settings.clone(), name: name.to_owned() }
    }

    fn run(&self, occurrence: &Occurrence) -> Result<(), EffectError> {
        let settings = &self.settings;
        let filled = |template| fill(template, &self.name, occurrence, Escape::None);
        let mut command = Command::new(&settings.command);
        command.args(settings.arguments.iter().map(filled)).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(settings.environment.iter().map(|(name, value)| (name, filled(value))));
        if let Some(directory) = &settings.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            EffectError::refused(format!("cannot start {}: {error}", settings.command.display()))
        })?;
        // Read on a thread of its own: a program that says much must not wait for us to listen.
        let stderr = child.stderr.take();
        let listener = std::thread::spawn(move || {
            let mut said = Vec::new();
            if let Some(mut stderr) = stderr {
                drop(stderr.by_ref().take(SAID_OCTETS_MAX).read_to_end(&mut said));
                drop(std::io::copy(&mut stderr, &mut std::io::sink()));
            }
            said
        });
        let status = wait(&mut child, settings.patience)?;
        if status.success() {
            return Ok(());
        }
        let said = listener.join().unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.trim().lines().last().unwrap_or("").trim();
        let said = if last.is_empty() { String::new() } else { format!(": {last}") };
        Err(EffectError::refused(format!("{} ended with {status}{said}", settings.command.display())))
    }
}

/// Waits for the end of a program, and kills it when that takes too long.
fn wait(child: &mut Child, patience: Duration) -> Result<ExitStatus, EffectError> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() >= deadline => {
                drop(child.kill());
                drop(child.wait());
                return Err(EffectError::refused(format!("killed after {} ms", patience.as_millis())));
            }
            Ok(None) => std::thread::park_timeout(LOOK_EVERY),
            Err(error) => return Err(EffectError::io(&error)),
        }
    }
}

impl Effect for Script {
    fn carry_out(&mut self, batch: &[Arc<Occurrence>], counts: &Counts) {
        many::each(batch, self.settings.concurrency, |occurrence| match self.run(occurrence) {
            Ok(()) => counts.done.add(1),
            Err(trouble) => counts.fail(&trouble),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::jobs::Template;

    fn run(arguments: &[&str], patience: Duration) -> Result<(), EffectError> {
        let template = |text: &&str| Template::parse(text).expect("a template");
        let script = Script::new(
            &settings::Script {
                command: "sh".into(),
                arguments: arguments.iter().map(template).collect(),
                environment: vec![("NAME".to_owned(), template(&"{name}"))],
                directory: None,
                patience,
                concurrency: 1,
            },
            "test",
        );
        let occurrence = Occurrence { qname: "$(exit 9).example.org".to_owned(), ..Occurrence::default() };
        script.run(&occurrence)
    }

    #[test]
    fn arguments_arrive_as_they_are() {
        let patience = Duration::from_secs(30);
        let test = "test \"$1\" = '$(exit 9).example.org' && test \"$NAME\" = \"$1\" && test -z \"$HOME\"";
        assert_eq!(run(&["-c", test, "sh", "{name}"], patience), Ok(()));
    }

    #[test]
    fn what_fails_says_why() {
        let patience = Duration::from_secs(30);
        let outcome = run(&["-c", "echo first >&2; echo last words >&2; exit 3"], patience);
        assert_eq!(outcome, Err(EffectError::refused("sh ended with exit status: 3: last words")));
        let outcome = run(&["-c", "exec sleep 600"], Duration::from_millis(50));
        assert_eq!(outcome, Err(EffectError::refused("killed after 50 ms")));
    }
}
