//! Secrets of a configuration are in nothing that the program says: no command, no message about a
//! mistake beside them, no log.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;
use testkit::program::program;
use testkit::{Script, Server, Stub, certificate, eventually};

use super::ask;

/// What is in every secret that is a text, and in those that are hexadecimal.
const MARKS: [&str; 2] = ["MARK", "feedface"];

/// A configuration with a secret wherever there can be one. `UPSTREAM` stands for the address of an
/// upstream.
const MARKED: &str = r#"server: {workers: 1, state-directory: "@DIRECTORY@"}
listen: ["@ADDRESS@", {at: "127.0.0.1:0", transport: tls}]
log: {level: trace}
metrics: {listen: "127.0.0.1:0"}
tls: {certificates: [{certificate: certificate.pem, key: key.pem}]}
keys:
  - {name: one.example, secret: MARKtsigMARKtsigMARKtsig}
  - {name: two.example, secret: "file:two.secret"}
cookies: {secret: feedfacefeedfacefeedfacefeedface, other-secret: feedfacefeedfacefeedfacefeed0000}
upstreams:
  default: {servers: ["UPSTREAM"]}
  far:
    servers:
      - {address: 127.0.0.1:9, proxy: "127.0.0.1:9", proxy-user: someone, proxy-password: MARKproxy}
sets:
  ads: {lists: ["names:http://someone:MARKurl@127.0.0.1:9/list.txt?token=MARKquery"]}
effects:
  hook: {type: http, url: "http://someone:MARKhook@127.0.0.1:9/seen?access_token=MARKhookquery", headers: ["Authorization: Bearer MARKbearer"]}
  tool: {type: script, command: "false", environment: ["TOKEN=MARKenvironment"]}
  router: {type: mikrotik-list, address: 127.0.0.1, user: someone, password: MARKrouter, list4: seen}
recorder: {file: queries.db}
zones:
  - {name: mine.example, file: mine, transfer: [key one.example], update: [key two.example]}
  - {name: far.example, primaries: ["127.0.0.1:9 key one.example"]}
policy:
  main:
    - {if: qname in ads, do: reject(nxdomain)}
    - {if: qname in suffix:effects.example, do: [effect(hook), effect(tool), effect(router)]}
    - {if: qname in suffix:proxied.example, do: [forward(far), accept]}
    - forward(default)
"#;

/// Mistakes in the lines of secrets and beside them: what is written, and what is written instead.
const MISTAKES: [(&str, &str); 30] = [
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret: MARKtsig!!}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "sise: 1, secret: MARKtsigMARKtsigMARKtsig}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secrt: MARKtsigMARKtsigMARKtsig}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret: MARKtsigMARKtsigMARKtsig"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret: \"MARKtsigMARKtsigMARKtsig}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret: MARKtsig, secret: MARKtsigMARKtsigMARKtsog}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret: [MARKtsigMARKtsigMARKtsig]}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret: {value: MARKtsigMARKtsigMARKtsig}}"),
    ("secret: MARKtsigMARKtsigMARKtsig}", "secret MARKtsigMARKtsigMARKtsig}"),
    ("{name: one.example, secret: MARK", "{nam: one.example, secret: MARK"),
    ("secret: feedfacefeedfacefeedfacefeedface", "secret: feedface"),
    ("secret: feedfacefeedfacefeedfacefeedface", "sekret: feedfacefeedfacefeedfacefeedface"),
    ("proxy-password: MARKproxy", "proxy-pasword: MARKproxy"),
    ("proxy-password: MARKproxy", "proxy-password: MARKproxy, sise: 1"),
    ("proxy-password: MARKproxy", "proxy-password: [MARKproxy]"),
    ("proxy: \"127.0.0.1:9\"", "proxy: \"socks5://someone:MARKinproxy@127.0.0.1:9\""),
    ("names:http://someone", "nams:http://someone"),
    ("names:http://someone", "names:ftp://someone"),
    ("?token=MARKquery\"]", "?token=MARKquery\", {list: 5}]"),
    ("type: http, url", "type: http, uri"),
    ("\"http://someone:MARKhook", "\"htp://someone:MARKhook"),
    ("MARKhookquery\"", "MARKhookquery{nam}\""),
    ("Authorization: Bearer", "Authorization Bearer"),
    ("[\"Authorization: Bearer MARKbearer\"]", "{Authorization: Bearer MARKbearer}"),
    ("[\"TOKEN=MARKenvironment\"]", "[\"TOKEN MARKenvironment\"]"),
    ("environment: [\"TOKEN", "enviroment: [\"TOKEN"),
    ("password: MARKrouter", "password: MARKrouter, sise: 1"),
    ("password: MARKrouter", "pasword: MARKrouter"),
    ("password: MARKrouter", "password MARKrouter"),
    ("zones:\n", "signing: {p: {token: \"pkcs11:token=t?module-path=/x.so&pin-value=MARKpin\"}}\nzones:\n"),
];

/// Fails if a secret is in what was said.
#[track_caller]
fn check(what: &str, said: &str, key: &str) {
    let found = said.lines().find(|line| MARKS.iter().any(|mark| line.contains(mark)) || line.contains(key));
    assert_eq!(found, None, "{what}");
}

fn said(output: Output) -> String {
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Returns part of the private key, as it stands in its file.
fn part_of_key(directory: &Path) -> String {
    let key = std::fs::read_to_string(directory.join("key.pem")).expect("a private key");
    let line = key.lines().find(|line| !line.starts_with('-')).expect("a line of Base64");
    line.get(20..60).expect("a long line").to_owned()
}

#[test]
fn no_output_has_a_secret_of_the_configuration() {
    let directory = TempDir::new().expect("a temporary directory");
    certificate(directory.path(), &["dns.example"]);
    let key = part_of_key(directory.path());
    std::fs::write(directory.path().join("two.secret"), "MARKfileMARKfileMARKfile\n").expect("writable");
    let zone = "$TTL 60\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\n";
    std::fs::write(directory.path().join("mine"), zone).expect("a writable directory");
    let stub = Stub::start(Script::default());
    let config = MARKED.replace("UPSTREAM", &stub.address().to_string());
    let mut server = Server::start_in(directory, &config);
    // Whatever has a secret is used, and most of it fails.
    let metrics = server.wait_for_log("metrics can be fetched");
    for name in ["www.effects.example", "www.proxied.example", "www.example"] {
        server.ask(&ask(name));
    }
    for effect in ["hook", "tool", "router"] {
        eventually("the effect has failed", || server.stat(&format!("effect.{effect}"), "failed") > 0);
    }
    let mut all = String::new();
    let commands: [&[&str]; 24] = [
        &["check", "-c", "gannet.yaml"],
        &["check", "-c", "gannet.yaml", "--format", "line"],
        &["check", "-c", "gannet.yaml", "--json"],
        &["config", "show", "-c", "gannet.yaml"],
        &["config", "show", "-c", "gannet.yaml", "--json"],
        &["status"],
        &["status", "--json"],
        &["stats"],
        &["stats", "--json"],
        &["stats", "--prometheus"],
        &["lists"],
        &["lists", "--json"],
        &["lists", "update"],
        &["zone", "status"],
        &["zone", "status", "--json"],
        &["zone", "reload"],
        &["zone", "print", "mine.example"],
        &["cache", "stats"],
        &["jobs"],
        &["log", "-c", "gannet.yaml"],
        &["log", "-c", "gannet.yaml", "--json"],
        &["explain", "www.effects.example", "-c", "gannet.yaml"],
        &["explain", "www.proxied.example"],
        &["reload"],
    ];
    for command in commands {
        let said = said(server.command(command));
        check(&command.join(" "), &said, &key);
        assert!(!said.contains("unexpected argument"), "{command:?}: {said}");
        all += &said;
    }
    // They did say something of what has the secrets.
    for part in ["proxy-user: someone", "127.0.0.1:9/list.txt", "one.example", "(not shown)"] {
        assert!(all.contains(part), "nothing says {part:?}:\n{all}");
    }
    let at = metrics.split(|c: char| c.is_whitespace() || c == '/' || c == '=');
    let at = at.filter_map(|word| word.parse::<std::net::SocketAddr>().ok()).next().expect("an address");
    let mut stream = TcpStream::connect(at).expect("a connection");
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").expect("an open connection");
    let mut exposition = String::new();
    stream.read_to_string(&mut exposition).expect("a whole response");
    assert!(exposition.contains("gannet_"), "{exposition}");
    check("metrics", &exposition, &key);
    // A running server that is told of mistakes, and the checker.
    let right = std::fs::read_to_string(server.directory().join("gannet.yaml")).expect("the configuration");
    for (from, to) in MISTAKES {
        assert!(right.contains(from), "{from}");
        let wrong = right.replacen(from, to, 1);
        std::fs::write(server.directory().join("gannet.yaml"), wrong).expect("a writable directory");
        let output = server.command(&["reload"]);
        let (code, said_of_it) = (output.status.code(), said(output));
        assert_eq!(code, Some(1), "{to}: {said_of_it}");
        check(&format!("reload with {to}"), &said_of_it, &key);
        for format in ["human", "line", "json"] {
            let output = server.command(&["check", "-c", "gannet.yaml", "--format", format]);
            check(&format!("check of {to}"), &said(output), &key);
        }
    }
    // So is a server that does not start.
    let output = program(server.directory()).args(["run", "-c", "gannet.yaml", "--socket", "other"]).output();
    check("run", &said(output.expect("the program starts")), &key);
    let (status, log, _directory) = server.stop();
    let mut lines = String::new();
    for line in &log {
        writeln!(lines, "{line}").expect("a string");
    }
    assert!(status.success() && log.len() > 20, "{lines}");
    check("log", &lines, &key);
}
