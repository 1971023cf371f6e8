//! Pages for people, and the links that log them in.

use std::net::SocketAddr;

use testkit::{Server, contains, lacks};

use super::network::{curl, start, start_in, text};
use super::users::{PASSWORD, add, ask, log_in, logged_in};

const JSON: [&str; 2] = ["--header", "Content-Type: application/json"];

/// Returns the path of a link.
fn path(url: &str) -> String {
    let at = url.find("/login?code=gnl_").unwrap_or_else(|| panic!("{url}"));
    url[at..].split(['"', ' ']).next().unwrap_or_default().trim().to_owned()
}

fn code(url: &str) -> String {
    path(url).trim_start_matches("/login?code=").to_owned()
}

/// Has a command make a link.
fn link(server: &Server, arguments: &[&str]) -> String {
    let output = server.command(&[&["login"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

/// Sends a form as a browser does.
fn send(at: SocketAddr, path: &str, form: &str, more: &[&str]) -> (u16, String) {
    let origin = format!("Origin: http://{at}");
    let arguments = ["--include", "--header", &origin, "--data", form];
    curl(at, path, &[&arguments[..], more].concat())
}

fn cookie_of(said: &str) -> String {
    let mut cookies = said.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
    cookies.next().and_then(|line| line.split(';').next()).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn the_first_user_comes_by_the_link_of_the_first_start() {
    let (mut server, at, _stub) = start("");
    let url = server.wait_for_log("nobody can log in to the API yet");
    contains(&url, &format!("http://{at}/login?code=gnl_"));
    let (first, of_log) = (path(&url), code(&url));
    // A program that looks at a link does not use it up.
    for _ in 0..3 {
        let (status, page) = curl(at, &first, &["--include"]);
        assert_eq!(status, 200, "{page}");
        contains(&page, "Add the first user");
        lacks(&page, "set-cookie");
    }
    let (status, page) = send(at, "/login", &format!("link={of_log}&name=anna&password=short"), &[]);
    assert_eq!(status, 400, "{page}");
    contains(&page, "the password is too short");
    contains(&page, "Add the first user");
    let form = format!("link={of_log}&name=anna&password=correct+horse+battery+staple");
    let (status, said) = send(at, "/login", &form, &[]);
    assert_eq!(status, 303, "{said}");
    contains(&said, "location: /\r\n");
    let cookie = cookie_of(&said);
    contains(&ask(at, &cookie, "GET", "/session", &[]).1, "\"role\": \"admin\"");
    assert_eq!(send(at, "/login", &form, &[]).0, 410, "it is good once");
    assert_eq!(curl(at, &first, &[]).0, 410);
    logged_in(at, "anna", PASSWORD);
    assert_eq!(server.command(&["login"]).status.code(), Some(1), "there is a first user");
    let audit = text(&server.command(&["audit", "tail"]));
    contains(&audit, "change users anna by log-in link");
    lacks(&audit, &of_log);

    let (_, _, directory) = server.stop_by("TERM");
    let (mut server, _at, _stub) = start_in(directory, "");
    server.command(&["status"]);
    lacks(&server.log().join("\n"), "gnl_");
}

#[test]
fn a_link_is_for_the_first_user_only_while_there_is_none() {
    let (server, at, _stub) = start("");
    let first = code(&link(&server, &[]));
    add(&server, "anna", "viewer");
    let body = format!("{{\"link\": \"{first}\", \"name\": \"mallory\", \"password\": \"{PASSWORD}\"}}");
    let (status, said) = curl(at, "/api/v1/session", &[&JSON[..], &["--data", &body]].concat());
    assert_eq!(status, 410, "{said}");
    lacks(&text(&server.command(&["users", "list"])), "mallory");
}

#[test]
fn who_lost_a_password_gets_a_link_and_sets_another() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "operator");
    let before = logged_in(at, "anna", PASSWORD);
    let older = code(&link(&server, &["anna"]));
    let url = link(&server, &["anna"]);
    let of_anna = code(&url);
    assert_eq!(curl(at, &format!("/login?code={older}"), &[]).0, 410, "one link for each user");
    contains(&curl(at, &path(&url), &[]).1, "Log in as anna");
    let form = format!("link={of_anna}&password=another+password+entirely");
    let (status, said) = send(at, "/login", &form, &[]);
    assert_eq!(status, 303, "{said}");
    contains(&ask(at, &cookie_of(&said), "GET", "/session", &[]).1, "\"name\": \"user anna\"");
    assert_eq!(ask(at, &before, "GET", "/session", &[]).0, 401, "sessions of the old password are over");
    assert_eq!(log_in(at, "anna", PASSWORD, &[]).0, 401);
    logged_in(at, "anna", "another password entirely");
    // Without a new password the old one stays.
    let body = format!("{{\"link\": \"{}\"}}", code(&link(&server, &["anna"])));
    let again = [&JSON[..], &["--data", &body]].concat();
    assert_eq!(curl(at, "/api/v1/session", &again).0, 200);
    assert_eq!(curl(at, "/api/v1/session", &again).0, 410);
    logged_in(at, "anna", "another password entirely");
    // It ends with the user.
    let of_anna = code(&link(&server, &["anna"]));
    assert!(server.command(&["users", "remove", "anna"]).status.success());
    assert_eq!(send(at, "/login", &format!("link={of_anna}"), &[]).0, 410);
    assert_eq!(server.command(&["login", "anna"]).status.code(), Some(1));
    let audit = text(&server.command(&["audit", "tail"]));
    contains(&audit, "user-password anna by user anna: accepted, by a link");
    contains(&audit, "log-in-link");
}

#[test]
fn strangers_see_a_form_and_who_has_logged_in_sees_how_the_server_is() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "viewer");
    let (status, page) = curl(at, "/", &["--include"]);
    assert_eq!(status, 200);
    let head = page.to_lowercase();
    contains(&head, "content-security-policy: default-src 'none'; style-src 'self'; form-action 'self'");
    contains(&head, "referrer-policy: same-origin");
    contains(&page, "<form method=\"post\" action=\"/login\">");
    for what in ["Version", "<script", "style=", "http://", "https://", "openapi"] {
        lacks(&page, what);
    }
    let (status, said) = send(at, "/login", "name=anna&password=correct+horse+battery+staple", &[]);
    assert_eq!(status, 303, "{said}");
    let cookie = cookie_of(&said);
    let header = format!("Cookie: {cookie}");
    let (status, page) = curl(at, "/", &["--header", &header]);
    assert_eq!(status, 200);
    for what in
        ["<dt>Version</dt>", "<dt>Queries</dt>", "Nothing is wrong.", "/api/v1/openapi.json", "user anna"]
    {
        contains(&page, what);
    }
    assert_eq!(curl(at, "/style.css", &[]).0, 200);
    let (status, said) = send(at, "/logout", "", &["--header", &header]);
    assert_eq!(status, 303, "{said}");
    assert_eq!(ask(at, &cookie, "GET", "/session", &[]).0, 401);
    lacks(&curl(at, "/", &["--header", &header]).1, "Version");
}

#[test]
fn forms_of_other_pages_are_refused_and_what_was_typed_is_no_part_of_a_page() {
    let (server, at, _stub) = start("");
    add(&server, "anna", "viewer");
    let form = "name=anna&password=correct+horse+battery+staple";
    for origin in ["Origin: http://evil.example", "Origin: null", "X: no origin"] {
        assert_eq!(curl(at, "/login", &["--header", origin, "--data", form]).0, 403, "{origin}");
    }
    let cross = ["--header", "Sec-Fetch-Site: cross-site"];
    assert_eq!(send(at, "/login", form, &cross).0, 403);
    let header = format!("Cookie: {}", logged_in(at, "anna", PASSWORD));
    assert_eq!(curl(at, "/logout", &["--header", &header, "--data", ""]).0, 403);
    assert_eq!(send(at, "/login", form, &["--header", "Content-Type: text/plain"]).0, 415);
    assert_eq!(send(at, "/login", &"x".repeat(9_000), &[]).0, 413);
    let (status, page) = send(at, "/login", "name=%22%3E%3Cscript%3E&password=wrong+guess", &[]);
    assert_eq!(status, 401, "{page}");
    contains(&page, "role=\"alert\"");
    lacks(&page, "<script>");
    lacks(&page, "wrong guess");
    assert_eq!(curl(at, "/login", &["--request", "DELETE"]).0, 405);
    let unknown = curl(at, "/login?code=gnl_%3Cscript%3E", &[]);
    assert_eq!(unknown.0, 410);
    lacks(&unknown.1, "script>");
}
