//! Another ACME client, which puts its records into zones of the program over PowerDNS's API: lego.

use std::process::Command;

use tempfile::TempDir;
use testkit::{Server, contains, free_address, tool};

use super::pebble::{Conduct, Pebble};

#[test]
fn lego_orders_a_certificate_with_records_that_it_puts_into_a_zone_and_takes_out_again() {
    let (dns, api) = (free_address(), free_address());
    let pebble = Pebble::start(&Conduct { resolver: Some(dns), ..Conduct::default() });
    let directory = TempDir::new().expect("a temporary directory");
    let zone = "@ 3600 SOA ns admin 1 3600 600 86400 60\n@ 3600 NS ns\nns 3600 A 127.77.77.53\n";
    std::fs::write(directory.path().join("org"), zone).expect("a writable directory");
    let yaml = format!(
        "server: {{workers: 2, state-directory: \"{}\"}}\nlisten: [\"@ADDRESS@\"]\n\
         upstreams: {{default: {{servers: [\"127.0.0.1:9\"]}}}}\n\
         zones: [{{name: example.org, file: org}}]\ncontrol: {{listen: [\"{api}\"]}}\n",
        directory.path().display()
    );
    let server = Server::start_at(dns, directory, &yaml);
    let token = |name: &str, zone: &str| {
        let made = server.command(&["token", "add", name, "--role", "operator", "--zone", zone]);
        assert!(made.status.success(), "{made:?}");
        String::from_utf8_lossy(&made.stdout).trim().to_owned()
    };
    let order = |token: &str| {
        let output = Command::new(tool("bin/acme"))
            .env("LEGO_CA_CERTIFICATES", pebble.ca())
            .args([&pebble.url(), &dns.to_string(), &format!("http://{api}"), token])
            // Both have their record at the same name.
            .args(["*.example.org", "example.org", "www.example.org"])
            .output()
            .expect("the client starts");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said)
    };
    let (is_done, said) = order(&token("acme", "example.org"));
    assert!(is_done, "{said}\n{}", pebble.log());
    let names = said.lines().find(|line| line.contains("example.org") && !line.contains(':'));
    let mut names: Vec<&str> = names.unwrap_or_default().split(' ').collect();
    names.sort_unstable();
    assert_eq!(names, ["*.example.org", "example.org", "www.example.org"], "{said}");
    for name in ["_acme-challenge.example.org", "_acme-challenge.www.example.org"] {
        assert!(server.dig_short(&[name, "TXT"]).is_empty(), "{name} is gone again");
    }
    let serial = server.dig_short(&["example.org", "SOA"]).join("");
    assert!(!serial.contains(" 1 "), "it was changed: {serial}");
    let (is_done, said) = order(&token("other", "example.net"));
    assert!(!is_done, "the zone is none of this token's");
    contains(&said, "403");
}
