//! Packages: the program with what a distribution puts beside it.
//!
//! `packaging/debian/NAME/` has what one Debian package consists of besides files that are
//! elsewhere: `control`, in which `@WORD@` stands for what is known only here, and the maintainer
//! scripts.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, is_installed, output, root, run, target};

/// Programs of Unbound that Gannet stands for, and where they are.
const UNBOUND_PROGRAMS: [(&str, &str); 6] = [
    ("unbound", "usr/sbin"),
    ("unbound-checkconf", "usr/sbin"),
    ("unbound-control", "usr/sbin"),
    ("unbound-control-setup", "usr/sbin"),
    ("unbound-anchor", "usr/sbin"),
    ("unbound-host", "usr/bin"),
];
/// Shells whose completions are packed, and where.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/gannet"),
    ("zsh", "usr/share/zsh/vendor-completions/_gannet"),
    ("fish", "usr/share/fish/vendor_completions.d/gannet.fish"),
];
/// Scripts that dpkg runs.
const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// Carries out `cargo xtask package …`.
pub(crate) fn package(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = match words.as_slice() {
        ["deb"] => {
            run(&mut cargo(["build", "--profile", "dist", "--package", "gannet-daemon"]))?;
            target().join("dist/gannet")
        }
        ["deb", "--program", program] => {
            fs::canonicalize(program).map_err(|error| format!("{program}: {error}"))?
        }
        _ => return Err("`package` takes `deb`, perhaps with `--program FILE`".to_owned()),
    };
    for package in [gannet(&program, &[])?, gannet_unbound(&[])?] {
        println!("{}", package.display());
    }
    Ok(())
}

/// Makes packages of the program that tests use, and installs, upgrades and purges them in a copy
/// of this machine.
pub(crate) fn try_out() -> Result<(), String> {
    if !is_installed("dpkg-deb") || !may_mount() {
        println!("skipped: this is not Debian, or nothing may be mounted here");
        return Ok(());
    }
    let program = target().join("debug/gannet");
    // They are large, and read once.
    let compression = [("DPKG_DEB_COMPRESSOR_TYPE", "none")];
    for make in [gannet(&program, &compression)?, gannet_unbound(&compression)?] {
        println!("{}", make.display());
    }
    let room = target().join("package/room");
    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh"]);
    command.arg(root().join("packaging/debian/try.sh")).arg(target().join("package")).arg(room);
    run(&mut command)
}

fn may_mount() -> bool {
    let attempt = "mount -t tmpfs tmpfs /mnt";
    let tried =
        Command::new("unshare").args(["--mount", "--propagation", "private", "sh", "-c", attempt]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Makes the package of the program.
fn gannet(program: &Path, environment: &[(&str, &str)]) -> Result<PathBuf, String> {
    let tree = Tree::begin("gannet")?;
    tree.copy(program, "usr/bin/gannet", 0o755)?;
    let said = |arguments: &[&str]| output(Command::new(program).args(arguments));
    fs::create_dir_all(tree.path("usr/share/man/man1")).map_err(|error| error.to_string())?;
    run(Command::new(program).args(["man", "--to"]).arg(tree.path("usr/share/man/man1")))?;
    tree.write("usr/share/man/man5/gannet.yaml.5", &said(&["man", "gannet.yaml"])?, 0o644)?;
    tree.compress_pages()?;
    for (shell, path) in COMPLETIONS {
        tree.write(path, &said(&["completions", shell])?, 0o644)?;
    }
    let packaging = root().join("packaging");
    for unit in ["gannet.service", "gannet.socket"] {
        let path = format!("usr/lib/systemd/system/{unit}");
        tree.copy(&packaging.join("systemd").join(unit), &path, 0o644)?;
    }
    tree.copy(&packaging.join("sysusers/gannet.conf"), "usr/lib/sysusers.d/gannet.conf", 0o644)?;
    tree.finish(architecture()?, environment)
}

/// Makes the package that puts the program in the place of Unbound.
fn gannet_unbound(environment: &[(&str, &str)]) -> Result<PathBuf, String> {
    let tree = Tree::begin("gannet-unbound")?;
    for (program, folder) in UNBOUND_PROGRAMS {
        let link = tree.path(&format!("{folder}/{program}"));
        make_folder_of(&link)?;
        let to = if folder == "usr/bin" { "gannet" } else { "../bin/gannet" };
        symlink(to, &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    let unit = root().join("packaging/debian/gannet-unbound/gannet-unbound.service");
    tree.copy(&unit, "usr/lib/systemd/system/gannet-unbound.service", 0o644)?;
    tree.finish("all", environment)
}

/// The files of one package.
struct Tree {
    name: &'static str,
    root: PathBuf,
}

impl Tree {
    /// Begins with nothing but the licence and the changelog.
    fn begin(name: &'static str) -> Result<Self, String> {
        let tree = Self { name, root: target().join("package").join(name) };
        if tree.root.exists() {
            fs::remove_dir_all(&tree.root).map_err(|error| format!("{}: {error}", tree.root.display()))?;
        }
        let documents = format!("usr/share/doc/{name}");
        let text =
            |file: &str| fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"));
        let licence = [text("LICENSE")?, text("LICENSE-MIT")?].join("\n");
        tree.write(&format!("{documents}/copyright"), &licence, 0o644)?;
        let changes = format!("{documents}/changelog");
        tree.write(&changes, &text("CHANGELOG.md")?, 0o644)?;
        tree.compress(&changes)?;
        Ok(tree)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn write(&self, path: &str, text: &str, mode: u32) -> Result<(), String> {
        let path = self.path(path);
        make_folder_of(&path)?;
        let written = fs::write(&path, text).and_then(|()| set_mode(&path, mode));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn copy(&self, from: &Path, path: &str, mode: u32) -> Result<(), String> {
        let path = self.path(path);
        make_folder_of(&path)?;
        let copied = fs::copy(from, &path).and_then(|_| set_mode(&path, mode));
        copied.map_err(|error| format!("{}: {error}", from.display()))
    }

    /// Compresses a file as Debian has it, the same each time.
    fn compress(&self, path: &str) -> Result<(), String> {
        run(Command::new("gzip").args(["-9", "-n"]).arg(self.path(path)))
    }

    fn compress_pages(&self) -> Result<(), String> {
        for folder in ["usr/share/man/man1", "usr/share/man/man5"] {
            let pages = fs::read_dir(self.path(folder)).map_err(|error| format!("{folder}: {error}"))?;
            for page in pages {
                let page = page.map_err(|error| format!("{folder}: {error}"))?;
                self.compress(&format!("{folder}/{}", page.file_name().to_string_lossy()))?;
            }
        }
        Ok(())
    }

    /// Adds what dpkg wants to know, and makes the package, with dpkg in this environment.
    fn finish(self, architecture: &str, environment: &[(&str, &str)]) -> Result<PathBuf, String> {
        let folder = root().join("packaging/debian").join(self.name);
        let version = version()?;
        let octets = octets_below(&self.root).map_err(|error| error.to_string())?;
        let control = fs::read_to_string(folder.join("control")).map_err(|error| error.to_string())?;
        let control = control
            .replace("@VERSION@", &version)
            .replace("@ARCHITECTURE@", architecture)
            .replace("@LIBC@", &libc_version()?)
            .replace("@SIZE@", &octets.div_ceil(1024).to_string());
        self.write("DEBIAN/control", &control, 0o644)?;
        for script in SCRIPTS {
            let from = folder.join(script);
            if from.exists() {
                self.copy(&from, &format!("DEBIAN/{script}"), 0o755)?;
            }
        }
        let package = target().join("package").join(format!("{}_{version}_{architecture}.deb", self.name));
        let mut command = Command::new("dpkg-deb");
        command.envs(environment.iter().copied());
        output(command.args(["--root-owner-group", "--build"]).arg(&self.root).arg(&package))?;
        Ok(package)
    }
}

fn make_folder_of(path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn octets_below(folder: &Path) -> std::io::Result<u64> {
    let mut octets = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        octets += if facts.is_dir() { octets_below(&entry.path())? } else { facts.len() };
    }
    Ok(octets)
}

/// Returns the version of the workspace.
fn version() -> Result<String, String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(|error| error.to_string())?;
    let package = manifest.split("[workspace.package]").nth(1).unwrap_or("");
    let line = package.lines().find_map(|line| line.strip_prefix("version = "));
    line.map(|version| version.trim_matches('"').to_owned())
        .ok_or_else(|| "the workspace has no version".into())
}

/// Returns what Debian calls this machine's kind.
fn architecture() -> Result<&'static str, String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("no package is made for {other}")),
    }
}

/// Returns the version of the C library that the program was built with: it needs no older one.
fn libc_version() -> Result<String, String> {
    let said = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let version = said.split_whitespace().nth(1);
    version.map(str::to_owned).ok_or_else(|| format!("getconf says {said:?} of the C library"))
}
