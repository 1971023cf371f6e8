//! The Unbound that answers are compared with: `GANNET_UNBOUND`, or the one that is installed; and
//! what it knows.

use std::process::Command;

use testkit::is_installed;

/// An Unbound.
pub(super) struct Theirs {
    pub(super) program: String,
    /// What it says of itself: version, modules, and how it was built.
    about: String,
    version: (u32, u32),
}

impl Theirs {
    /// Looks for it; says so and returns nothing where there is none.
    pub(super) fn find() -> Option<Self> {
        let program = match std::env::var("GANNET_UNBOUND") {
            Ok(program) => program,
            Err(_) if is_installed("unbound") => "unbound".to_owned(),
            Err(_) => return None,
        };
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let said = Command::new(&program).arg("-V").env("PATH", path).output().expect("it starts");
        let about = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = about.strip_prefix("Version ").expect("its version comes first");
        let mut numbers = version.split(['.', '\n']).map_while(|number| number.trim().parse().ok());
        let version = numbers.next().zip(numbers.next()).expect("two numbers at least");
        Some(Self { program, about, version })
    }

    /// Returns whether it is this version or a later one.
    pub(super) fn is_since(&self, major: u32, minor: u32) -> bool {
        self.version >= (major, minor)
    }

    /// Returns whether it can be asked to put addresses into sets of the kernel.
    pub(super) fn has_ipset(&self) -> bool {
        self.about.contains("ipset")
    }
}
