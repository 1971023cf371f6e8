//! Logging in at a provider of OpenID Connect that others wrote: oidc-provider, under node.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use testkit::{Script, Server, Stub, contains, forwarding, free_address, lacks, tool};

use super::network::{curl, text};
use super::oidc::session_of;
use super::users::ask;

const SECRET: &str = "a-secret-with-+-and-/-and-%";
const BACK: &str = "https://dns.example.org/login/oidc";

/// The provider. Is killed when it is dropped.
struct Provider {
    child: Child,
    at: SocketAddr,
    /// What it says; it ends when nobody listens.
    _said: BufReader<ChildStdout>,
}

impl Provider {
    fn start() -> Self {
        let library = tool("node/node_modules/oidc-provider/lib/index.js");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/provider.mjs");
        let at = free_address();
        let port = at.port().to_string();
        // What the machine has may be too old: then there is one of PyPI.
        let newer = library.ancestors().nth(5).map(|tools| tools.join("python/bin/node"));
        let node = newer.filter(|node| node.is_file()).unwrap_or_else(|| PathBuf::from("node"));
        let mut command = Command::new(node);
        command.arg(script).arg(library).args([&port, SECRET, BACK]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("`cargo xtask test` installs node");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it speaks");
        assert_eq!(line, "ready\n");
        Self { child, at, _said: said }
    }

    /// Does as a browser does there: asks, with the cookies that it has.
    fn browse(&self, jar: &Path, url: &str, form: &[&str]) -> (String, String) {
        let url = if url.starts_with('/') { format!("http://{}{url}", self.at) } else { url.to_owned() };
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{redirect_url}"]);
        command.arg("--cookie").arg(jar).arg("--cookie-jar").arg(jar);
        for field in form {
            command.args(["--data-urlencode", field]);
        }
        let output = command.arg(&url).output().expect("`cargo xtask test` installs curl");
        let said = text(&output);
        assert!(output.status.success(), "{url}: {said}");
        let (page, next) = said.rsplit_once('\n').expect("a line");
        (page.to_owned(), next.to_owned())
    }

    /// Proves to the provider to be somebody; returns where it sends the browser back to.
    fn log_in(&self, jar: &Path, begin: &str, name: &str) -> String {
        let (mut page, mut next) = self.browse(jar, begin, &[]);
        // A form for the name, and one for the consent: some redirects each.
        for _ in 0..12 {
            if next.starts_with(BACK) {
                return next;
            }
            let name = format!("login={name}");
            (page, next) = if !next.is_empty() {
                self.browse(jar, &next, &[])
            } else {
                let (_, rest) = page.split_once("action=\"").unwrap_or_else(|| panic!("no form: {page}"));
                let action = rest.split('"').next().unwrap_or("").to_owned();
                let is_login = page.contains("name=\"login\"");
                let of_login = ["prompt=login", name.as_str(), "password=x"];
                self.browse(jar, &action, if is_login { &of_login } else { &["prompt=consent"] })
            };
        }
        panic!("it does not send back: {next} {page}");
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Begins a log-in at the server; returns where the browser is sent, and its cookie.
fn begin(at: SocketAddr) -> (String, String) {
    let (status, said) = curl(at, "/login/oidc", &["--include"]);
    assert_eq!(status, 303, "{said}");
    let line = |name: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name}: {said}")).to_owned()
    };
    let cookie = line("set-cookie: ");
    (line("location: "), cookie.split(';').next().unwrap_or("").to_owned())
}

#[test]
fn people_log_in_at_a_provider_that_others_wrote_with_the_role_of_their_group() {
    let (stub, provider) = (Stub::start(Script::default()), Provider::start());
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("secret"), format!("{SECRET}\n")).expect("written");
    let oidc = format!(
        "{{issuer: \"http://{}\", client-id: gannet, client-secret-file: secret, url: \"https://dns.example.org\", \
          groups: {{dns-admins: operator}}}}",
        provider.at
    );
    let yaml = forwarding(&[&stub], &format!("control: {{listen: [\"127.0.0.1:0\"], oidc: {oidc}}}\n"));
    let mut server = Server::start_in(directory, &yaml);
    let line = server.wait_for_log("the API can be reached");
    let (_, port) = line.rsplit_once("127.0.0.1:").expect("an address");
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let at = SocketAddr::new([127, 0, 0, 1].into(), port.parse().expect("a port"));
    let back = |url: &str, cookie: &str| {
        let path = url.strip_prefix("https://dns.example.org").expect("it was said so");
        let cookie = format!("Cookie: {cookie}");
        curl(at, path, &["--include", "--header", &cookie, "--header", "Sec-Fetch-Site: cross-site"])
    };

    let (location, cookie) = begin(at);
    contains(&location, "code_challenge_method=S256");
    let url = provider.log_in(&server.directory().join("anna"), &location, "anna");
    let (status, said) = back(&url, &cookie);
    assert_eq!(status, 200, "{said}");
    let who = ask(at, &session_of(&said), "GET", "/session", &[]).1;
    contains(&who, "\"name\": \"oidc anna\"");
    contains(&who, "\"role\": \"operator\"");
    // The provider takes a code once, and for the browser that it was for.
    assert_eq!(back(&url, &cookie).0, 403);
    let (_, another) = begin(at);
    assert_eq!(back(&url, &another).0, 403);

    // Who is in no group with a role is nobody here.
    let (location, cookie) = begin(at);
    let url = provider.log_in(&server.directory().join("otto"), &location, "otto");
    let (status, said) = back(&url, &cookie);
    assert_eq!(status, 403, "{said}");
    lacks(&said, "set-cookie: gannet=");

    // Without proof that it is the same client, a code is good for nothing.
    let (location, cookie) = begin(at);
    let url = provider.log_in(&server.directory().join("anna"), &location, "anna");
    std::fs::write(server.directory().join("secret"), "another\n").expect("written");
    assert_eq!(back(&url, &cookie).0, 409);
    lacks(&server.log().join("\n"), SECRET);
}
