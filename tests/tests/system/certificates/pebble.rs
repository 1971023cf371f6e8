//! Pebble, the test authority of Let's Encrypt, on this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::{Authority, eventually, free_address, tool};

/// The identifier and the key of an account that others can be bound to.
pub(super) const BINDING: (&str, &str) =
    ("kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W");

/// How it is called in CAA records.
pub(super) const IDENTITY: &str = "pebble.example";

/// What is different from one authority to the next.
#[derive(Default)]
pub(super) struct Conduct {
    /// Whether accounts have to be bound.
    pub(super) wants_binding: bool,
    /// How many of a hundred good nonces it refuses.
    pub(super) refuses_nonces: u8,
    /// The DNS server that it asks. With none, it believes all that it is told.
    pub(super) resolver: Option<SocketAddr>,
    /// Where it looks for files, and for certificates.
    pub(super) looks_at: Option<(SocketAddr, SocketAddr)>,
}

/// A running authority. Is killed when it is dropped.
pub(super) struct Pebble {
    child: Child,
    address: SocketAddr,
    management: SocketAddr,
    directory: TempDir,
}

impl Pebble {
    pub(super) fn start(conduct: &Conduct) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let authority = Authority::new();
        let (certificate, key) = authority.vouch(&["127.0.0.1"]).pem();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        for (name, text) in [("ca.pem", authority.pem()), ("cert.pem", certificate), ("key.pem", key)] {
            write(name, &text).expect("a writable directory");
        }
        let (address, management) = (free_address(), free_address());
        let (http, tls) = conduct.looks_at.map_or((80, 443), |(http, tls)| (http.port(), tls.port()));
        let (key_id, secret) = BINDING;
        let path = |name: &str| directory.path().join(name).display().to_string();
        let config = format!(
            "{{\"pebble\": {{\"listenAddress\": \"{address}\", \"managementListenAddress\": \"{management}\", \
             \"certificate\": \"{}\", \"privateKey\": \"{}\", \"httpPort\": {http}, \"tlsPort\": {tls}, \
             \"externalAccountBindingRequired\": {}, \"externalAccountMACKeys\": {{\"{key_id}\": \"{secret}\"}}, \
             \"caaIdentities\": [\"{IDENTITY}\"], \"retryAfter\": {{\"authz\": 1, \"order\": 1}}, \"keyAlgorithm\": \"ecdsa\", \"profiles\": {{\
             \"default\": {{\"description\": \"usual\", \"validityPeriod\": 7776000}}, \
             \"shortlived\": {{\"description\": \"short\", \"validityPeriod\": 518400}}}}}}}}",
            path("cert.pem"),
            path("key.pem"),
            conduct.wants_binding,
        );
        write("pebble.json", &config).expect("a writable directory");
        let mut command = Command::new(tool("bin/pebble"));
        command.arg("-config").arg(path("pebble.json")).current_dir(directory.path());
        match conduct.resolver {
            Some(resolver) => drop(command.arg("-dnsserver").arg(resolver.to_string())),
            None => drop(command.env("PEBBLE_VA_ALWAYS_VALID", "1")),
        }
        command.env("PEBBLE_VA_NOSLEEP", "1");
        command.env("PEBBLE_WFE_NONCEREJECT", conduct.refuses_nonces.to_string());
        // It asks again each time.
        command.env("PEBBLE_AUTHZREUSE", "0");
        let log = std::fs::File::create(directory.path().join("log")).expect("a writable directory");
        let errors = log.try_clone().expect("a second descriptor");
        let child = command.stdin(Stdio::null()).stdout(Stdio::from(log)).stderr(Stdio::from(errors)).spawn();
        let pebble = Self { child: child.expect("pebble starts"), address, management, directory };
        eventually("pebble answers", || pebble.get("/roots/0").is_some());
        pebble
    }

    /// Returns an item of `authorities` that names it, with `more` settings.
    pub(super) fn item(&self, more: &str) -> String {
        format!("{{url: \"https://{}/dir\", ca: \"{}\"{more}}}", self.address, self.ca().display())
    }

    /// Returns where its directory is (RFC 8555 §7.1.1).
    pub(super) fn url(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// Returns the file with what vouches for its web server.
    pub(super) fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Fetches something from where it is managed.
    fn get(&self, path: &str) -> Option<Vec<u8>> {
        let url = format!("https://{}{path}", self.management);
        let output = Command::new("curl").arg("-sf").arg("--cacert").arg(self.ca()).arg(url).output();
        let output = output.expect("curl starts");
        output.status.success().then_some(output.stdout)
    }

    /// Has it say from now on that a certificate (PEM) is to be renewed between these two moments
    /// (RFC 9773 §4.1).
    pub(super) fn move_window(&self, certificate: &str, [start, end]: [&str; 2]) {
        let said = serde_json::json!({"suggestedWindow": {"start": start, "end": end}}).to_string();
        let body = serde_json::json!({"Certificate": certificate, "ARIResponse": said}).to_string();
        let url = format!("https://{}/set-renewal-info/", self.management);
        let mut command = Command::new("curl");
        command.arg("-sf").arg("--cacert").arg(self.ca()).args(["--data-binary", &body]).arg(url);
        assert!(command.status().expect("curl starts").success(), "the window is moved");
    }

    /// Writes the root that its certificates lead to into a file of a directory.
    pub(super) fn root(&self, directory: &Path) -> PathBuf {
        let file = directory.join("root.pem");
        std::fs::write(&file, self.get("/roots/0").expect("it has a root")).expect("a writable directory");
        file
    }

    /// Returns what it has logged.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
