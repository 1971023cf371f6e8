//! Packages: the program with what a distribution puts beside it.
//!
//! `packaging/debian/NAME/` has what one Debian package consists of besides files that are
//! elsewhere: `control`, in which `@WORD@` stands for what is known only here, and the maintainer
//! scripts.

mod archive;
mod bill;

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
/// Shells whose completions are packed, and where below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/gannet"),
    ("zsh", "zsh/vendor-completions/_gannet"),
    ("fish", "fish/vendor_completions.d/gannet.fish"),
];
/// Scripts that dpkg runs.
const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// Carries out `cargo xtask package …`.
pub(crate) fn package(arguments: &[String]) -> Result<(), String> {
    const EXPECTED: &str = "`package` takes `deb` or `archive`, perhaps with `--program FILE`; `archive` \
                            also `--target TRIPLE`";
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let packages = match words.as_slice() {
        ["deb", rest @ ..] => {
            let program = match rest {
                [] => build(None)?,
                ["--program", program] => canonical(program)?,
                _ => return Err(EXPECTED.to_owned()),
            };
            vec![gannet(&program, &[])?, gannet_unbound(&[])?]
        }
        ["archive"] => {
            let program = build(None)?;
            archive::make(&program, &program, archive::HERE)?
        }
        ["archive", "--program", program] => {
            let program = canonical(program)?;
            archive::make(&program, &program, archive::HERE)?
        }
        // A program for another machine prints no manual pages here: one of this machine does.
        ["archive", "--target", triple] => {
            archive::machine(triple)?;
            archive::make(&build(Some(triple))?, &build(None)?, triple)?
        }
        _ => return Err(EXPECTED.to_owned()),
    };
    for package in packages {
        println!("{}", package.display());
    }
    Ok(())
}

/// Builds the program as packages hold it.
fn build(triple: Option<&str>) -> Result<PathBuf, String> {
    let mut command = cargo(["build", "--profile", "dist", "--locked", "--package", "gannet-daemon"]);
    if let Some(triple) = triple {
        command.args(["--target", triple]);
    }
    run(&mut command)?;
    Ok(triple.map_or_else(target, |triple| target().join(triple)).join("dist/gannet"))
}

fn canonical(program: &str) -> Result<PathBuf, String> {
    fs::canonicalize(program).map_err(|error| format!("{program}: {error}"))
}

/// Makes packages of the program that tests use, and tries them out in copies of this machine:
/// Debian's are installed, upgraded and purged, the archive is unpacked and verified, the
/// container's recipe is carried out and its program run.
pub(crate) fn try_out() -> Result<(), String> {
    let program = target().join("debug/gannet");
    let folder = target().join("package");
    archive::make(&program, &program, archive::HERE)?;
    run(Command::new("sh").arg(root().join("packaging/archive/try.sh")).arg(&folder))?;
    if !may_mount() {
        println!("the rest is skipped: nothing may be mounted here");
        return Ok(());
    }
    let room = folder.join("room");
    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    let alone = ["--mount", "--propagation", "private", "--net", "--pid", "--fork", "sh"];
    let recipe = root().join("packaging/container/try.sh");
    run(Command::new("unshare").args(alone).arg(recipe).arg(root()).arg(&program).arg(&room))?;
    if !is_installed("dpkg-deb") {
        println!("Debian's are skipped: this is not Debian");
        return Ok(());
    }
    // They are large, and read once.
    let compression = [("DPKG_DEB_COMPRESSOR_TYPE", "none")];
    for made in [gannet(&program, &compression)?, gannet_unbound(&compression)?] {
        println!("{}", made.display());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh"]);
    run(command.arg(root().join("packaging/debian/try.sh")).arg(&folder).arg(&room))
}

fn may_mount() -> bool {
    let attempt = "mount -t tmpfs tmpfs /mnt";
    let tried =
        Command::new("unshare").args(["--mount", "--propagation", "private", "sh", "-c", attempt]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Makes the package of the program.
fn gannet(program: &Path, environment: &[(&str, &str)]) -> Result<PathBuf, String> {
    let tree = Tree::begin("gannet", "usr/share/doc/gannet")?;
    tree.copy(program, "usr/bin/gannet", 0o755)?;
    tree.add_what_it_prints(program, "usr/share")?;
    tree.compress_pages()?;
    tree.add_units("usr/lib")?;
    tree.finish(architecture()?, environment)
}

/// Makes the package that puts the program in the place of Unbound.
fn gannet_unbound(environment: &[(&str, &str)]) -> Result<PathBuf, String> {
    let tree = Tree::begin("gannet-unbound", "usr/share/doc/gannet-unbound")?;
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
    name: String,
    root: PathBuf,
}

impl Tree {
    /// Begins with nothing but the licence and the changelog, in this folder.
    fn begin(name: &str, documents: &str) -> Result<Self, String> {
        let tree = Self { name: name.to_owned(), root: target().join("package").join(name) };
        if tree.root.exists() {
            fs::remove_dir_all(&tree.root).map_err(|error| format!("{}: {error}", tree.root.display()))?;
        }
        let text =
            |file: &str| fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"));
        let licence = [text("LICENSE")?, text("LICENSE-MIT")?].join("\n");
        tree.write(&format!("{documents}/copyright"), &licence, 0o644)?;
        let changes = format!("{documents}/changelog");
        tree.write(&changes, &text("CHANGELOG.md")?, 0o644)?;
        tree.compress(&changes)?;
        Ok(tree)
    }

    /// Adds the manual pages and completions that the program prints.
    fn add_what_it_prints(&self, program: &Path, share: &str) -> Result<(), String> {
        let said = |arguments: &[&str]| output(Command::new(program).args(arguments));
        let commands = self.path(&format!("{share}/man/man1"));
        fs::create_dir_all(&commands).map_err(|error| error.to_string())?;
        run(Command::new(program).args(["man", "--to"]).arg(&commands))?;
        let settings = said(&["man", "gannet.yaml"])?;
        self.write(&format!("{share}/man/man5/gannet.yaml.5"), &settings, 0o644)?;
        for (shell, path) in COMPLETIONS {
            self.write(&format!("{share}/{path}"), &said(&["completions", shell])?, 0o644)?;
        }
        Ok(())
    }

    /// Adds what systemd wants to know of the service.
    fn add_units(&self, library: &str) -> Result<(), String> {
        let packaging = root().join("packaging");
        for unit in ["gannet.service", "gannet.socket"] {
            let path = format!("{library}/systemd/system/{unit}");
            self.copy(&packaging.join("systemd").join(unit), &path, 0o644)?;
        }
        let user = packaging.join("sysusers/gannet.conf");
        self.copy(&user, &format!("{library}/sysusers.d/gannet.conf"), 0o644)
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
        let folder = root().join("packaging/debian").join(&self.name);
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
