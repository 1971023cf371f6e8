//! What strangers try, and what is left of it: no line of the log for each.

use testkit::{Script, Server, Stub, contains, forwarding};

use super::network::{api_address, curl, text};
use super::users::{PASSWORD, add, log_in};

/// How often each is tried.
const ATTEMPTS: usize = 8;

#[test]
fn no_attempt_to_get_in_has_a_line_of_the_log_of_its_own() {
    let stub = Stub::start(Script::default());
    // Nobody is there who proves who anybody is.
    let oidc = "{issuer: \"https://127.0.0.1:1\", client-id: gannet, url: \"https://dns.example.org\", groups: {a: admin}}";
    let yaml = forwarding(&[&stub], &format!("control: {{listen: [\"127.0.0.1:0\"], oidc: {oidc}}}\n"));
    let mut server = Server::start(&yaml);
    let at = api_address(&mut server);
    add(&server, "anna", "admin");
    server.wait_for_log("a user of the API was added");
    let before = server.log().len();
    let api = |head: &str| curl(at, "/api/v1/status", &["--header", head]).0;
    let form = |field: &str| {
        let own = format!("Origin: http://{at}");
        curl(at, "/login", &["--header", &own, "--data", field]).0
    };
    for number in 0..ATTEMPTS {
        let name = format!("n{number}");
        for (what, status, expected) in [
            ("password", log_in(at, "anna", &format!("{PASSWORD}{number}"), &[]).0, [401, 429]),
            ("name", log_in(at, &name, PASSWORD, &[]).0, [401, 429]),
            ("token", api(&format!("Authorization: Bearer gnt_{number}")), [401, 429]),
            ("key", api(&format!("X-API-Key: gnt_{number}")), [401, 429]),
            ("cookie", api(&format!("Cookie: gannet=gns_{number}")), [401, 429]),
            ("link", form(&format!("link=gnl_{number}&name=a&password={PASSWORD}")), [410, 429]),
            ("link", curl(at, &format!("/login?code=gnl_{number}"), &[]).0, [410, 429]),
            ("form", form(&format!("name=anna&password=x&code={number}")), [401, 429]),
            ("host", api("Host: evil.example"), [421, 429]),
            ("oidc", curl(at, "/login/oidc", &[]).0, [409, 429]),
            ("state", curl(at, &format!("/login/oidc?code=a&state={number}"), &[]).0, [403, 429]),
        ] {
            assert!(expected.contains(&status), "{what}: {status}");
        }
    }
    // Whoever looks at the audit log has what is counted told.
    let audit = text(&server.command(&["audit", "tail", "-n", "100"]));
    contains(&audit, "log-in 127.0.0.0/24 by nobody: refused: ");
    assert!(server.command(&["log-level", "debug"]).status.success());
    server.wait_for_log("log level changed");
    let lines: Vec<String> = server.log().iter().skip(before).cloned().collect();
    let told = lines.iter().filter(|line| line.contains("came to nothing")).count();
    assert!(told >= 1 && lines.len() <= ATTEMPTS / 2, "{}", lines.join("\n"));
}
