//! Zones on their way to and from other servers: transfers, notifications, updates, with keys and
//! without.

mod added;
mod catalogs;
mod digests;
mod directories;
mod ds_push;
mod events;
mod expire;
mod imported;
mod keys;
mod libraries;
mod lying;
mod operators;
mod over_tls;
mod signed;
mod sources;
mod told;
mod transfers;
mod updates;

use std::net::SocketAddr;

use tempfile::TempDir;
use testkit::{Script, Server, Stub, forwarding, with_input};

const SECRET: &str = "c2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHkgZWxzZQ==";
const KEY: &str = "xfr.example.org";

const ORG: &str = "$TTL 3600\n\
    @ SOA ns admin 10 7200 600 86400 300\n\
    @ NS ns\n\
    @ MX 10 mail\n\
    ns A 192.0.2.1\n\
    mail A 192.0.2.2\n\
    mail AAAA 2001:db8::2\n\
    *.wild TXT \"anything\" \"at all\"\n\
    sub NS ns.sub\n\
    ns.sub A 192.0.2.3\n\
    svc SRV 1 2 53 ns\n\
    $GENERATE 1-250 host-$ A 10.1.$.1\n";

/// The key as BIND is told of it.
const BIND_KEY: &str = "key \"xfr.example.org\" { algorithm hmac-sha256; secret \"c2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHkgZWxzZQ==\"; };";
/// The key as Knot is told of it.
const KNOT_KEY: &str = "key:\n  - id: xfr.example.org\n    algorithm: hmac-sha256\n    secret: c2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHkgZWxzZQ==\n";
/// The key as NSD is told of it.
const NSD_KEY: &str = "key:\n  name: xfr.example.org\n  algorithm: hmac-sha256\n  secret: \"c2VjcmV0IG9mIHR3byBzZXJ2ZXJzIGFuZCBub2JvZHkgZWxzZQ==\"\n";

/// Returns a directory with the file `org`.
fn directory_with_org() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("org"), ORG).expect("a writable directory");
    directory
}

/// Starts a server with the zone and these settings; `more` are keys besides [`KEY`].
fn primary(zone: &str, more: &str) -> Server {
    let directory = directory_with_org();
    Server::start_in(directory, &config(&format!("{{name: example.org, file: org, {zone}}}"), more))
}

fn config(zones: &str, more: &str) -> String {
    let stub_that_is_not_asked = Stub::start(Script::silent());
    let keys = format!("{{name: {KEY}, secret: {SECRET}}}");
    forwarding(
        &[&stub_that_is_not_asked],
        &format!("keys: [{keys}{more}]\nzones:\n  - {zones}\npolicy: {{main: [{{do: reject(refused)}}]}}\n"),
    )
}

fn secondary(primaries: &str, zone: &str) -> Server {
    let zone = format!("{{name: example.org, primaries: [{primaries}], {zone}}}");
    Server::start(&config(&zone, ""))
}

/// Returns the records in a transfer that `dig` printed, sorted, one space between words.
fn records(printed: &str) -> Vec<String> {
    let mut lines: Vec<String> = printed
        .lines()
        .filter(|line| !line.starts_with(';') && !line.trim().is_empty() && !line.contains("TSIG"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Asks with `dig`, whatever it thinks of the answer.
fn dig_anyway(server: &Server, arguments: &[&str]) -> String {
    let port = server.address().port().to_string();
    let output = std::process::Command::new("dig")
        .args(["-r", "@127.0.0.1", "-p", &port, "+time=10", "+tries=1"])
        .args(arguments)
        .output()
        .expect("dig runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn key_option(algorithm: &str) -> String {
    format!("{algorithm}:{KEY}:{SECRET}")
}

/// Has `nsupdate` send an update of `example.org`, signed with [`KEY`].
fn nsupdate(server: &Server, commands: &str) -> (bool, String) {
    update_at(server.address(), "example.org", commands)
}

fn update_at(server: SocketAddr, zone: &str, commands: &str) -> (bool, String) {
    let input = format!(
        "server 127.0.0.1 {}\nkey hmac-sha256:{KEY} {SECRET}\nzone {zone}\n{commands}\nsend\n",
        server.port()
    );
    let output = with_input("nsupdate", &["-v"], &input);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

/// Returns the zone for servers that know no `$GENERATE`.
fn without_generate() -> String {
    ORG.split("$GENERATE").next().expect("text before it").to_owned()
}
