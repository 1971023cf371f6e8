//! The test programs, two side by side: those of whole servers mostly wait, the others compute.

use crate::run::{cargo, output};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// A test program that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its package and target, such as `tests/system`.
    pub(crate) name: String,
    path: PathBuf,
    /// The folder of its package, in which its tests expect to run.
    folder: PathBuf,
}

impl Program {
    /// Returns whether its tests mean little while something else runs: what a server does at the
    /// lowest priority under load would not end.
    fn needs_all_processors(&self) -> bool {
        self.name == "tests/reload_under_load"
    }

    /// Returns whether its tests start whole servers, and wait for them.
    fn waits(&self) -> bool {
        self.name.starts_with("tests/")
    }

    /// Returns the command that runs it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        command
    }
}

/// Has cargo build what it has not, and returns the test programs in the order in which they were
/// built.
pub(crate) fn built() -> Result<Vec<Program>, String> {
    let build = ["test", "--quiet", "--workspace", "--lib", "--bins", "--tests", "--no-run"];
    let messages = output(cargo(build).arg("--message-format=json"))?;
    let programs: Vec<_> = messages.lines().filter_map(program).collect();
    if programs.is_empty() { Err("cargo names no test program".to_string()) } else { Ok(programs) }
}

/// Returns the test program that a message of cargo names.
fn program(message: &str) -> Option<Program> {
    let profile = message.split_once("\"profile\":{")?.1.split_once('}')?.0;
    if !profile.contains("\"test\":true") {
        return None;
    }
    let path = PathBuf::from(string(message, "executable")?);
    let folder = Path::new(string(message, "manifest_path")?).parent()?;
    let package = folder.file_name()?.to_string_lossy();
    let target = string(message.split_once("\"target\":{")?.1, "name")?;
    Some(Program { name: format!("{package}/{target}"), path, folder: folder.to_path_buf() })
}

/// Returns the string behind a key, as long as nothing in it is escaped: paths of ours are not.
fn string<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let behind = json.split_once(&format!("\"{key}\":\""))?.1;
    behind.split_once('"').map(|(string, _)| string)
}

/// Programs that have not begun, by what they do most.
struct Queues {
    waiting: VecDeque<Program>,
    computing: VecDeque<Program>,
}

impl Queues {
    /// Returns the next program for whoever prefers one kind; of the other kind if there is no more
    /// of that.
    fn next(&mut self, waits: bool) -> Option<Program> {
        let (first, second) = if waits {
            (&mut self.waiting, &mut self.computing)
        } else {
            (&mut self.computing, &mut self.waiting)
        };
        first.pop_front().or_else(|| second.pop_back())
    }
}

/// Returns the programs that run beside others, and those that need all processors.
pub(crate) fn parted(programs: Vec<Program>) -> (Vec<Program>, Vec<Program>) {
    programs.into_iter().partition(|program| !program.needs_all_processors())
}

/// Runs the programs, prints what each has printed when it ends, and shows each line to `see`.
pub(crate) fn run(programs: Vec<Program>, mut see: impl FnMut(&str)) -> Result<(), String> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (waiting, computing) = programs.into_iter().partition(Program::waits);
    let queues = Mutex::new(Queues { waiting, computing });
    let (sender, ended) = mpsc::channel();
    let mut failed = Vec::new();
    thread::scope(|scope| {
        for waits in [true, false] {
            let (queues, sender) = (&queues, sender.clone());
            scope.spawn(move || run_lane(queues, waits, processors, &sender));
        }
        drop(sender);
        for (name, outcome) in ended {
            match outcome {
                Ok((text, passed)) => {
                    println!("     Running {name}\n{}", text.trim_end());
                    text.lines().for_each(&mut see);
                    if !passed {
                        failed.push(name);
                    }
                }
                Err(why) => {
                    println!("cannot run {name}: {why}");
                    failed.push(name);
                }
            }
        }
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// What a program has printed, and whether its tests have passed; or why it did not start.
type Outcome = Result<(String, bool), String>;

/// Runs one program after the other. More tests of servers run at once than there are processors,
/// since most wait for servers to start and for time to pass.
fn run_lane(queues: &Mutex<Queues>, waits: bool, processors: usize, sender: &Sender<(String, Outcome)>) {
    loop {
        let next = queues.lock().map(|mut queues| queues.next(waits));
        let Ok(Some(program)) = next else { return };
        let threads = if program.waits() { 2 * processors } else { processors };
        let ended = program.command().env("RUST_TEST_THREADS", threads.to_string()).output();
        let outcome = ended.map_err(|error| error.to_string()).map(|output| {
            let text = [output.stdout, output.stderr].concat();
            (String::from_utf8_lossy(&text).into_owned(), output.status.success())
        });
        if sender.send((program.name, outcome)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what cargo prints of a target.
    fn message(target: &str, executable: &str, is_test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"path+file:///g/tests#gannet-tests@0.3.0","manifest_path":"/g/tests/Cargo.toml","target":{{"kind":["test"],"crate_types":["bin"],"name":"{target}","src_path":"/g/tests/tests/{target}/main.rs","test":true}},"profile":{{"opt_level":"0","test":{is_test}}},"features":[],"filenames":["/t/x"],"executable":{executable},"fresh":true}}"#
        )
    }

    #[test]
    fn cargo_says_which_test_programs_there_are() {
        let program = program(&message("system", r#""/t/deps/system-0a""#, true));
        let folder = PathBuf::from("/g/tests");
        let expected =
            Program { name: "tests/system".to_string(), path: PathBuf::from("/t/deps/system-0a"), folder };
        assert_eq!(program, Some(expected));
    }

    #[test]
    fn what_holds_no_tests_is_not_run() {
        assert_eq!(program(&message("gannet", r#""/t/gannet""#, false)), None);
        assert_eq!(program(&message("system", "null", true)), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn who_has_no_program_of_its_kind_takes_one_of_the_other() {
        let program = |name: &str| Program {
            name: name.to_string(),
            path: PathBuf::from("/t"),
            folder: PathBuf::from("/g"),
        };
        let mut queues = Queues {
            waiting: [program("tests/system")].into(),
            computing: [program("wire/wire"), program("zone/zone"), program("zone/all")].into(),
        };
        let mut names = Vec::new();
        for waits in [true, false, true, false, true] {
            names.extend(queues.next(waits).map(|program| program.name));
        }
        assert_eq!(names, ["tests/system", "wire/wire", "zone/all", "zone/zone"]);
    }
}
