//! Runs programs and says what it is doing.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

/// Steps run one after the other; a failed one is remembered and the others still run.
pub(crate) struct Steps {
    begun: Instant,
    failed: Vec<String>,
}

impl Steps {
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now(), failed: Vec::new() }
    }

    /// Runs one step under a headline that shows the time since the start.
    pub(crate) fn step(&mut self, name: &str, step: impl FnOnce() -> Result<(), String>) {
        println!("==> [{}] {name}", elapsed(self.begun));
        if let Err(why) = step() {
            println!("==> {name}: {why}");
            self.failed.push(name.to_string());
        }
    }

    /// Returns whether no step failed so far.
    pub(crate) fn all_passed(&self) -> bool {
        self.all_passed_but(&[])
    }

    /// Returns whether no step failed so far, other than these.
    pub(crate) fn all_passed_but(&self, harmless: &[&str]) -> bool {
        self.failed.iter().all(|name| harmless.contains(&name.as_str()))
    }

    /// Says how it went.
    pub(crate) fn finish(self) -> Result<(), String> {
        let elapsed = elapsed(self.begun);
        if self.failed.is_empty() {
            println!("==> [{elapsed}] all steps passed");
            Ok(())
        } else {
            Err(format!("[{elapsed}] failed: {}", self.failed.join(", ")))
        }
    }
}

fn elapsed(since: Instant) -> String {
    let seconds = since.elapsed().as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// Returns a command that starts the cargo that started us, in the repository's root.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Returns a command that starts this program for another task.
pub(crate) fn xtask(task: &str) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| "xtask".into());
    let mut command = Command::new(program);
    command.current_dir(root()).arg(task);
    command
}

/// A command that runs beside others.
pub(crate) struct Beside {
    command: String,
    output: JoinHandle<std::io::Result<Output>>,
}

impl Beside {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> Self {
        Self { command: shown(&command), output: std::thread::spawn(move || command.output()) }
    }

    /// Waits for its end, and prints what it has printed.
    pub(crate) fn finish(self) -> Result<(), String> {
        let Self { command, output } = self;
        let output = output.join().map_err(|_| format!("nobody waited for `{command}`"))?;
        let output = output.map_err(|error| format!("cannot start `{command}`: {error}"))?;
        print!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("`{command}` ended with {}", output.status))
        }
    }
}

/// Returns whether a program can be found.
pub(crate) fn is_installed(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Runs a command to its end; an error says which one failed and how.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", shown(command))),
        Err(error) => Err(format!("cannot start `{}`: {error}", shown(command))),
    }
}

/// Runs a command and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start `{}`: {error}", shown(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("`{}` ended with {}", shown(command), output.status))
    }
}

/// Runs a command, passes its standard output on line by line, and shows each line to `see`.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> Result<(), String> {
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("cannot start `{}`: {error}", shown(command)))?;
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            see(text.trim_end());
            line.clear();
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", shown(command))),
        Err(error) => Err(format!("cannot wait for `{}`: {error}", shown(command))),
    }
}

fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = name.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
