//! The command line of it.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, path, process};

use clap::Args;

use super::{Order, run};

/// What to measure, of which program.
#[derive(Clone, Debug, Args)]
pub struct Command {
    /// The `gannet` program; the one beside this tool when absent.
    #[arg(long)]
    gannet: Option<PathBuf>,
    /// Names in the set that small changes are made beside.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    names: u32,
    /// How often each time is taken.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// Length of each load, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// The server's core.
    #[arg(long, default_value_t = 1)]
    server_core: usize,
    /// The core of the load.
    #[arg(long, default_value_t = 0)]
    load_core: usize,
}

impl Command {
    /// Measures; `found` gets a line for each figure, `progress` one for each step.
    ///
    /// # Errors
    ///
    /// What did not work, or came out wrong.
    pub fn measure(&self, found: &mut dyn FnMut(&str), progress: &mut dyn FnMut(&str)) -> Result<(), String> {
        let beside = || env::current_exe().ok().map(|tool| tool.with_file_name("gannet"));
        let gannet = self.gannet.clone().or_else(beside).ok_or("which gannet? --gannet says so")?;
        let order = Order {
            gannet: path::absolute(&gannet).map_err(|error| format!("{}: {error}", gannet.display()))?,
            names: self.names as usize,
            runs: usize::from(self.runs),
            time: Duration::try_from_secs_f64(self.seconds).map_err(|error| format!("--seconds: {error}"))?,
            cores: (self.server_core, self.load_core),
            folder: env::temp_dir().join(format!("gannet-bench-changes-{}", process::id())),
        };
        found(&format!("{:65} {:>11} {:>11} {:>8} {:>7}", "", "this", "that", "ratio", "wanted"));
        let measured = run(&order, &mut |row| found(&row.to_string()), progress);
        match &measured {
            Ok(()) => drop(fs::remove_dir_all(&order.folder)),
            Err(_) => progress(&format!("configurations and logs are in {}", order.folder.display())),
        }
        measured
    }
}
