//! The command line of it.

use std::path::PathBuf;
use std::{env, fs, path};

use clap::{Args, ValueEnum};

use super::{Arguments, Figure, check, policy_zone, start};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// `unbound-checkconf`, on a file of local zones: time, CPU time, memory.
    Check,
    /// From the start to the first validated answer, with the files of Debian's package, on a
    /// simulated internet. Needs root, for a network namespace.
    Start,
    /// From the NOTIFY to the effect of 100 records that an IXFR changes in a policy zone.
    PolicyZone,
}

/// What to measure, of which programs.
#[derive(Clone, Debug, Args)]
pub struct Command {
    /// What is measured.
    #[arg(value_enum)]
    what: What,
    /// The `gannet` program; the one beside this tool without it.
    #[arg(long)]
    gannet: Option<PathBuf>,
    /// The `unbound` program; `unbound-checkconf` is beside it.
    #[arg(long, default_value = "/usr/sbin/unbound")]
    unbound: PathBuf,
    /// Local zones of the file that is checked, or names of the policy zone.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    names: u32,
    /// How often each does it.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// The servers' core.
    #[arg(long, default_value_t = 1)]
    server_core: usize,
}

impl Command {
    /// Measures; returns lines of text.
    ///
    /// # Errors
    ///
    /// What did not work, or came out wrong.
    pub fn measure(&self) -> Result<Vec<String>, String> {
        let beside = || env::current_exe().ok().map(|tool| tool.with_file_name("gannet"));
        let gannet = self.gannet.clone().or_else(beside).ok_or("which gannet? --gannet says so")?;
        let absolute =
            |place: &PathBuf| path::absolute(place).map_err(|error| format!("{}: {error}", place.display()));
        let arguments = Arguments {
            gannet: absolute(&gannet)?,
            unbound: absolute(&self.unbound)?,
            names: self.names as usize,
            rounds: usize::from(self.rounds),
            cores: vec![self.server_core],
        };
        let directory = env::temp_dir().join(format!("gannet-bench-in-place-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let measured = match self.what {
            What::Check => check::measure(&arguments, &directory),
            What::Start => start::measure(&arguments, &directory),
            What::PolicyZone => policy_zone::measure(&arguments, &directory),
        };
        let _ = fs::remove_dir_all(&directory);
        Ok(measured?.iter().map(Figure::line).collect())
    }
}
