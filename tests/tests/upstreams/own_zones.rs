//! Zones of the server that its resolvers read.

use tempfile::TempDir;
use testkit::{Server, eventually};

const HEAD: &str = "$TTL 300\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\n";

/// Starts a server whose policy has names of its zones resolved. No other server can be asked.
fn start(zones: &str, resolver: &str, files: &[(&str, &str)]) -> Server {
    let directory = TempDir::new().expect("a temporary directory");
    for (name, records) in files {
        std::fs::write(directory.path().join(name), format!("{HEAD}{records}"))
            .expect("a writable directory");
    }
    Server::start_in(directory, &settings(zones, resolver))
}

fn settings(zones: &str, resolver: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
         listen: [\"@ADDRESS@\"]\n\
         zones: [{zones}]\n\
         resolvers: {{default: {{validation: \"off\", zones: {{\".\": {{stub: \"192.0.2.99\"}}{resolver}}}, limits: {{time: 1s}}}}}}\n\
         policy:\n  main:\n    - {{if: qname == in.test, do: redirect(www.example.org)}}\n    - recurse\n"
    )
}

fn address(server: &Server, qname: &str) -> String {
    server.dig_short(&[qname, "A"]).last().cloned().unwrap_or_default()
}

#[test]
fn a_resolver_reads_what_the_server_serves_and_sees_its_changes() {
    let zones = "{name: example.org, file: org}";
    let server = start(zones, "", &[("org", "www A 192.0.2.7\n")]);
    assert_eq!(address(&server, "in.test"), "192.0.2.7");
    let text = format!("{}www A 192.0.2.8\n", HEAD.replace(" 1 7200", " 2 7200"));
    std::fs::write(server.directory().join("org"), text).expect("a writable directory");
    assert!(server.command(&["reload"]).status.success());
    eventually("the new version is read", || address(&server, "in.test") == "192.0.2.8");
}

#[test]
fn what_not_everybody_may_query_is_read_where_settings_name_it() {
    let zones = "{name: example.org, file: org, allow-query: 192.0.2.0/24}";
    let files = [("org", "www A 192.0.2.7\n")];
    let server = start(zones, "", &files);
    assert!(server.dig(&["in.test", "A"]).contains("status: SERVFAIL"), "nobody can be asked");
    assert!(server.dig(&["www.example.org", "A"]).contains("status: REFUSED"));
    let server = start(zones, ", example.org: {own: true}", &files);
    assert_eq!(address(&server, "in.test"), "192.0.2.7");
    assert!(server.dig(&["www.example.org", "A"]).contains("status: REFUSED"));
}
