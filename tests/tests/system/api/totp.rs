//! One-time codes, beside those of pyotp.

use std::process::Command;

use testkit::{Server, contains, lacks, tool};

use super::network::{curl, start, start_in, text};
use super::users::{PASSWORD, add, ask, log_in, logged_in};

/// Has pyotp make the code of a URI, so many steps from now.
fn code(uri: &str, steps: i32) -> String {
    let script = "import pyotp, sys, time; \
                  print(pyotp.parse_uri(sys.argv[1]).at(int(time.time()) + 30 * int(sys.argv[2])))";
    let python = tool("python/bin/python");
    let output = Command::new(python).args(["-c", script, uri, &steps.to_string()]).output().expect("Python");
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Tries to log in with a code.
fn with_code(at: std::net::SocketAddr, code: &str) -> (u16, String) {
    let body = format!("{{\"name\": \"anna\", \"password\": \"{PASSWORD}\", \"code\": \"{code}\"}}");
    curl(at, "/api/v1/session", &["--header", "Content-Type: application/json", "--data", &body])
}

/// Sets codes up by command; returns the URI and the recovery codes.
fn set_up(server: &Server) -> (String, Vec<String>) {
    let begun = server.command(&["users", "totp", "anna"]);
    assert!(begun.status.success(), "{}", text(&begun));
    let uri = String::from_utf8_lossy(&begun.stdout).trim().to_owned();
    contains(&uri, "otpauth://totp/Gannet%20dns.example.org:anna?secret=");
    let confirmed = server.command(&["users", "totp", "anna", "--code", &code(&uri, 0)]);
    assert!(confirmed.status.success(), "{}", text(&confirmed));
    let said = String::from_utf8_lossy(&confirmed.stdout).into_owned();
    let codes: Vec<String> = said.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(codes.len(), 10, "{said}");
    (uri, codes)
}

#[test]
fn a_user_with_codes_needs_one_and_none_is_good_twice() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "admin");
    let cookie = logged_in(at, "anna", PASSWORD);
    assert_eq!(server.command(&["users", "totp", "anna", "--code", "123456"]).status.code(), Some(1));
    let (uri, recovery) = set_up(&server);
    assert_eq!(ask(at, &cookie, "GET", "/session", &[]).0, 200, "a session goes on");
    let (status, _, said) = log_in(at, "anna", PASSWORD, &[]);
    assert_eq!(status, 401, "{said}");
    contains(&said, "this user needs a one-time code, too");
    contains(&log_in(at, "anna", "another password entirely", &[]).2, "or the code is wrong");
    assert_eq!(with_code(at, "000000").0, 401);
    // The next step, which is good for a clock before ours, however long this test takes.
    let now = code(&uri, 1);
    let (status, said) = with_code(at, &now);
    assert_eq!(status, 200, "{said}");
    assert_eq!(with_code(at, &now).0, 401, "once");
    assert_eq!(with_code(at, &recovery[0]).0, 200);
    assert_eq!(with_code(at, &recovery[0]).0, 401, "once");
    contains(&text(&server.command(&["users", "list"])), "one-time codes, 9 recovery codes");

    let (_, _, directory) = server.stop_by("KILL");
    let (server, at, _stub) = start_in(directory, "");
    assert_eq!(with_code(at, &now).0, 401, "not after a restart either");
    assert_eq!(with_code(at, &recovery[0]).0, 401);
    assert_eq!(with_code(at, &recovery[1].to_uppercase()).0, 200);
    let audit = text(&server.command(&["audit", "export"]));
    contains(&audit, "totp-confirm");
    let secret = uri.split("secret=").nth(1).and_then(|rest| rest.split('&').next()).expect("a secret");
    for secret in [secret, &recovery[1]] {
        lacks(&audit, secret);
    }
    assert!(server.command(&["users", "totp", "anna", "--remove"]).status.success());
    logged_in(at, "anna", PASSWORD);
}

#[test]
fn a_role_can_need_codes_and_a_link_gets_in_without() {
    let (server, at, _stub) = start_with_roles();
    add(&server, "anna", "admin");
    add(&server, "bob", "viewer");
    let (status, _, said) = log_in(at, "anna", PASSWORD, &[]);
    assert_eq!(status, 403, "{said}");
    contains(&said, "the role admin needs one-time codes (control.totp-roles)");
    assert_eq!(log_in(at, "anna", "another password entirely", &[]).0, 401, "who guesses learns nothing");
    logged_in(at, "bob", PASSWORD);
    let (uri, _) = set_up(&server);
    assert_eq!(with_code(at, &code(&uri, 1)).0, 200);
    let link = text(&server.command(&["login", "anna"]));
    let link = link.trim().rsplit("code=").next().expect("a code").to_owned();
    let body = format!("{{\"link\": \"{link}\"}}");
    let json = ["--header", "Content-Type: application/json", "--data", &body];
    assert_eq!(curl(at, "/api/v1/session", &json).0, 200);
}

fn start_with_roles() -> (Server, std::net::SocketAddr, testkit::Stub) {
    let (server, at, stub) = start("");
    let set = server.command(&["config", "set", "control.totp-roles", "[admin]"]);
    assert!(set.status.success(), "{}", text(&set));
    (server, at, stub)
}

#[test]
fn codes_of_others_are_for_admins_and_a_stolen_session_gets_no_others() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "viewer");
    add(&server, "bob", "viewer");
    let [anna, bob] = ["anna", "bob"].map(|name| logged_in(at, name, PASSWORD));
    assert_eq!(ask(at, &bob, "POST", "/users/anna/totp", &[]).0, 403);
    let (status, begun) = ask(at, &anna, "POST", "/users/anna/totp", &[]);
    assert_eq!(status, 200, "{begun}");
    let uri = begun.split("\"uri\": \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a URI");
    let json = |code: &str| format!("{{\"code\": \"{code}\"}}");
    let put = |code: &str| {
        let body = json(code);
        ask(
            at,
            &anna,
            "PUT",
            "/users/anna/totp",
            &["--header", "Content-Type: application/json", "--data", &body],
        )
    };
    assert_eq!(put("000").0, 400);
    let (status, said) = put(&code(uri, 0));
    assert_eq!(status, 200, "{said}");
    assert_eq!(said.matches('-').count() - 1, 10, "ten codes: {said}");
    assert_eq!(ask(at, &anna, "POST", "/users/anna/totp", &[]).0, 403, "there are some");
    assert_eq!(ask(at, &anna, "DELETE", "/users/anna/totp", &[]).0, 403);
    contains(&text(&server.command(&["users", "list"])), "anna: viewer; one-time codes, 10 recovery codes");
}

#[test]
fn a_user_changes_the_own_password_with_the_old_one() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "viewer");
    let [cookie, other] = [(); 2].map(|()| logged_in(at, "anna", PASSWORD));
    let change = |cookie: &str, old: &str, new: &str| {
        let body = format!("{{\"password\": \"{old}\", \"new-password\": \"{new}\"}}");
        let json = ["--include", "--header", "Content-Type: application/json", "--data", &body];
        ask(at, cookie, "PUT", "/session/password", &json)
    };
    let new = "another password entirely";
    assert_eq!(change(&cookie, new, new).0, 401, "the old one is wrong");
    assert_eq!(change(&cookie, PASSWORD, "short").0, 400);
    assert_eq!(ask(at, &cookie, "GET", "/session", &[]).0, 200);
    let (status, said) = change(&cookie, PASSWORD, new);
    assert_eq!(status, 200, "{said}");
    contains(&said, "set-cookie: gannet=gns_");
    for cookie in [&cookie, &other] {
        assert_eq!(ask(at, cookie, "GET", "/session", &[]).0, 401);
    }
    assert_eq!(log_in(at, "anna", PASSWORD, &[]).0, 401);
    logged_in(at, "anna", new);
    contains(&text(&server.command(&["audit", "tail"])), "user-password anna by user anna: accepted");
}
