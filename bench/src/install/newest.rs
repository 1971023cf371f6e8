//! The newest release that Debian has of a package, run from a directory of its own.
//!
//! Never touches what the system has installed: apt-get is given its own lists, state and cache,
//! and what it fetches is unpacked, not installed. No root is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::run;

/// The suite that has the newest releases.
const SUITE: &str = "sid";
/// Where it is, and the key that its index is signed with, which every Debian has.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The first octets of a program (ELF).
const MAGIC: &[u8] = b"\x7fELF";

/// Fetches `package` and what it needs, unpacks all of it beside `programs`, and puts a script for
/// each program of the package into `programs`.
pub(super) fn install(package: &str, programs: &Path) -> Result<(), String> {
    let place = Place::new(&programs.parent().unwrap_or(programs).join("debian"))?;
    place.apt_get(&["update"])?;
    let want = ["--yes", "--download-only", "--no-install-recommends", "install", package];
    place.apt_get(&want)?;
    let root = place.directory.join("root");
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let archives = archives(&place.archives())?;
    for archive in &archives {
        run(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(&root))?;
    }
    // Epochs are not part of a file's name as far as the underscore goes:
    // "bind9_1%3a9.20_amd64.deb".
    let is_it = |path: &&PathBuf| name_of(path).split('_').next() == Some(package);
    let own = archives.iter().find(is_it).ok_or_else(|| format!("apt-get has not fetched {package}"))?;
    let start = Starter::new(&root)?;
    let version = name_of(own).split('_').nth(1).unwrap_or("").replace("%3a", ":");
    let remark = format!("{package} {version} of Debian {SUITE}, with that release's own libraries");
    let contents = contents(own)?;
    let found = executables(&contents);
    if found.is_empty() {
        return Err(format!("{package} {version} has no programs"));
    }
    for path in found {
        let program = root.join(path);
        if fs::read(&program).is_ok_and(|octets| octets.starts_with(MAGIC)) {
            start.write(&program, &remark, &programs.join(name_of(&program)))?;
        }
    }
    // What is unpacked is what counts.
    for archive in &archives {
        let _ = fs::remove_file(archive);
    }
    Ok(())
}

/// Where apt-get keeps what it knows.
struct Place {
    directory: PathBuf,
}

impl Place {
    fn new(directory: &Path) -> Result<Self, String> {
        let place = Self { directory: directory.to_owned() };
        for name in ["state/lists/partial", "cache/archives/partial"] {
            let path = directory.join(name);
            fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let sources = format!("deb [signed-by={KEYRING}] {ARCHIVE} {SUITE} main\n");
        // Nothing counts as installed, so that all libraries are fetched.
        for (name, text) in [("sources.list", sources.as_str()), ("state/status", "")] {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(place)
    }

    fn archives(&self) -> PathBuf {
        self.directory.join("cache/archives")
    }

    fn apt_get(&self, arguments: &[&str]) -> Result<(), String> {
        let at = |name: &str| self.directory.join(name).display().to_string();
        let options = [
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
            ("Dir::State", at("state")),
            ("Dir::State::status", at("state/status")),
            ("Dir::Cache", at("cache")),
            // Owned by whoever runs this, which the user that apt-get fetches as need not be.
            ("APT::Sandbox::User", "root".to_owned()),
            ("Acquire::Retries", "3".to_owned()),
            ("Acquire::Languages", "none".to_owned()),
        ];
        let mut command = Command::new("apt-get");
        command.arg("-q");
        for (name, value) in options {
            command.arg("-o").arg(format!("{name}={value}"));
        }
        // What it says goes where progress goes; the result of a session is alone on standard
        // output.
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        run(&mut command)
    }
}

/// Starts programs with the libraries of their own release.
struct Starter {
    /// The dynamic linker.
    linker: PathBuf,
    /// The directory of libraries.
    libraries: PathBuf,
}

impl Starter {
    fn new(root: &Path) -> Result<Self, String> {
        // "usr/lib64/ld-linux-x86-64.so.2" here, "usr/lib/ld-linux-aarch64.so.1" there.
        let linker = ["usr/lib64", "usr/lib"]
            .iter()
            .flat_map(|directory| entries(&root.join(directory)))
            .find(|path| name_of(path).starts_with("ld-linux"))
            .ok_or_else(|| format!("{}: no dynamic linker", root.display()))?;
        let libraries = entries(&root.join("usr/lib"))
            .into_iter()
            .find(|path| path.join("libc.so.6").exists())
            .ok_or_else(|| format!("{}: no C library", root.display()))?;
        Ok(Self { linker, libraries })
    }

    /// Writes a script at `to` that becomes `program`.
    fn write(&self, program: &Path, remark: &str, to: &Path) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("{}: {error}", to.display());
        fs::write(to, self.script(program, remark)).map_err(wrong)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o755)).map_err(wrong)
    }

    fn script(&self, program: &Path, remark: &str) -> String {
        format!(
            "#!/bin/sh\n# Written by gannet-bench: {remark}.\nexec {} --library-path {} --argv0 \"$0\" {} \"$@\"\n",
            quoted(&self.linker),
            quoted(&self.libraries),
            quoted(program)
        )
    }
}

/// Puts a path into quotes for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("")
}

/// Returns what is in a directory, sorted; nothing if there is none.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn archives(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = entries(directory);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    if paths.is_empty() {
        Err(format!("{}: apt-get fetched nothing", directory.display()))
    } else {
        Ok(paths)
    }
}

/// Lists what is in an archive.
fn contents(archive: &Path) -> Result<String, String> {
    let output = Command::new("dpkg-deb").arg("--contents").arg(archive).output();
    let output = output.map_err(|error| format!("cannot start dpkg-deb: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("dpkg-deb --contents {}: {}", archive.display(), output.status)),
    }
}

/// Returns the files in `contents` that are where programs are, without the leading dot.
fn executables(contents: &str) -> Vec<&str> {
    contents.lines().filter_map(executable).collect()
}

/// Returns the program in a line such as "-rwxr-xr-x root/root 1234 2026-10-01 12:00
/// ./usr/sbin/unbound".
fn executable(line: &str) -> Option<&str> {
    let path = line.split_whitespace().nth(5).filter(|_| line.starts_with("-rwx"))?.strip_prefix("./")?;
    let (directory, _) = path.rsplit_once('/')?;
    matches!(directory, "usr/bin" | "usr/sbin" | "bin" | "sbin").then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_what_else_a_package_has() {
        let contents = "drwxr-xr-x root/root         0 2026-10-01 12:00 ./usr/sbin/\n\
                        -rwxr-xr-x root/root   1234567 2026-10-01 12:00 ./usr/sbin/unbound\n\
                        lrwxrwxrwx root/root         0 2026-10-01 12:00 ./usr/sbin/unbound-alias -> unbound\n\
                        -rw-r--r-- root/root       123 2026-10-01 12:00 ./usr/share/doc/unbound/README\n\
                        -rwxr-xr-x root/root       123 2026-10-01 12:00 ./usr/lib/unbound/package-helper\n";
        assert_eq!(executables(contents), ["usr/sbin/unbound"]);
    }

    #[test]
    fn a_script_becomes_the_program_with_its_own_libraries() {
        let directory = std::env::temp_dir().join(format!("gannet-bench it's {}", std::process::id()));
        fs::create_dir_all(&directory).expect("a writable directory");
        // In place of a dynamic linker: something that shows its arguments.
        let start = Starter { linker: "/bin/echo".into(), libraries: "/own/lib".into() };
        let script = directory.join("named");
        let program = directory.join("root/usr/sbin/named");
        start.write(&program, "bind9 9.20", &script).expect("writes");
        let output = Command::new(&script).args(["-c", "a b"]).output().expect("a script");
        fs::remove_dir_all(&directory).expect("was made");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            format!("--library-path /own/lib --argv0 {} {} -c a b", script.display(), program.display())
        );
    }
}
