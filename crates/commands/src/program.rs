//! What the program says about itself: completions, manual pages, its version.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::{self, CompletionsArgs, ManArgs, ManPage, OutputArgs};
use crate::out;

/// Runs `gannet completions`.
pub fn completions(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli::definition(), "gannet", &mut text);
    out::print(&String::from_utf8_lossy(&text));
    out::FINE
}

/// Runs `gannet man`.
pub fn manual(args: &ManArgs) -> ExitCode {
    let written = match &args.to {
        Some(folder) => write_manuals(folder),
        None => print_manual(args.page),
    };
    match written {
        Ok(()) => out::FINE,
        Err(error) => {
            out::complain(&format!("the manual could not be written: {error}"));
            out::negative()
        }
    }
}

fn print_manual(page: ManPage) -> io::Result<()> {
    match page {
        ManPage::Gannet => {
            let mut text = Vec::new();
            clap_mangen::Man::new(cli::definition()).render(&mut text)?;
            out::print(&String::from_utf8_lossy(&text));
        }
        ManPage::GannetYaml => out::print(&settings::print::man_page()),
    }
    Ok(())
}

fn write_manuals(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(cli::definition(), folder)
}

/// Runs `gannet version`.
pub fn version(args: OutputArgs) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    out::print(&if args.json {
        format!("{{\"version\":\"{version}\"}}\n")
    } else {
        format!("gannet {version}\n")
    });
    out::FINE
}
