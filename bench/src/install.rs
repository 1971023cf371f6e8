//! Fetches rivals, and only when asked to.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::rival::Rival;

/// Installs `rival`: a Debian package by apt-get, a Go module or a crate at its pinned version into `programs`.
pub fn install(rival: &Rival, programs: &Path) -> Result<(), String> {
    if let Some(package) = &rival.install.debian {
        return run(Command::new("apt-get").args(["install", "-y", "--no-install-recommends", package]));
    }
    fs::create_dir_all(programs).map_err(|error| format!("{}: {error}", programs.display()))?;
    if let Some(module) = &rival.install.go {
        return go(module, &programs.join(&rival.program));
    }
    if let Some(package) = &rival.install.cargo {
        let root = programs.parent().unwrap_or(programs);
        return run(Command::new("cargo").args(["install", "--locked", "--root"]).arg(root).arg(package));
    }
    Err("its file does not say where it comes from".to_owned())
}

/// Builds a module in Go's cache as it was released; `go install` would also ask for later versions.
fn go(module: &str, program: &Path) -> Result<(), String> {
    let output = Command::new("go").args(["mod", "download", "-json", module]).output();
    let output = output.map_err(|error| format!("cannot start go: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let source = text.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    let source = source.ok_or_else(|| format!("go mod download {module}: {}", text.trim()))?;
    let program = std::path::absolute(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let version = module.rsplit_once('@').map_or("", |(_, version)| version);
    let mut command = Command::new("go");
    command.current_dir(source).env("CGO_ENABLED", "0");
    command.args(["build", "-trimpath", "-ldflags", &format!("-s -w -X main.version={version}"), "-o"]);
    run(command.arg(program).arg("."))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{} {status}", command.get_program().display())) }
}
