//! A small internet whose zones other programs sign and serve: Knot, NSD, BIND and PowerDNS below a
//! root that Gannet serves, and a Gannet that resolves in it.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testkit::{Heard, Other, Server, ds_of_keys, eventually, free_address, said, write_anchor};

/// Where the root is served; the others follow.
const ROOT: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 1);
const KNOT: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 2);
/// BIND listens only where an interface has the address.
const BIND: Ipv4Addr = Ipv4Addr::LOCALHOST;
const NSD: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 4);
const POWERDNS: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 5);

/// Zones that are signed and have their DS in the root.
pub(super) const SECURE: [&str; 5] = ["knot", "bind", "nsd", "pdns", "gannet"];
/// Zones that have no DS: one that is not signed, and one that is.
pub(super) const INSECURE: [&str; 2] = ["unsigned", "island"];
/// Zones whose signatures have expired, and whose DS belongs to another key.
pub(super) const BOGUS: [&str; 2] = ["expired", "swapped"];

/// Returns the text of a zone; all have the same names.
fn zone_text(address: Ipv4Addr) -> String {
    format!(
        "$TTL 300\n@ SOA ns hostmaster 1 7200 600 864000 60\n@ NS ns\n@ MX 10 www\nns A {address}\n\
         www A 192.0.2.1\nwww AAAA 2001:db8::1\nalias CNAME www\nfar CNAME www.unsigned.\nlost CNAME nothing\n\
         *.wild TXT \"any\"\nbelow.empty A 192.0.2.2\ntree DNAME other\nx.other A 192.0.2.3\n\
         sub NS ns.sub\nns.sub A {address}\n"
    )
}

/// Knot signs by itself, with one key, so that a new one can be followed.
fn knot_configuration(address: Ipv4Addr) -> String {
    format!(
        "server:\n    rundir: @DIRECTORY@\n    listen: {address}@@PORT@\ndatabase:\n    storage: @DIRECTORY@\n\
         log:\n  - target: stderr\n    any: info\nremote:\n  - id: root\n    address: {ROOT}@@PORT@\n\
         submission:\n  - id: root\n    parent: root\n    check-interval: 1\n\
         policy:\n  - id: quick\n    algorithm: ecdsap256sha256\n    ksk-submission: root\n    dnskey-ttl: 1\n    zone-max-ttl: 1\n\
         \x20   propagation-delay: 0\n    cds-cdnskey-publish: rollover\n\
         \x20 - id: slow\n    algorithm: ed25519\n    single-type-signing: on\n    nsec3: on\n\
         template:\n  - id: default\n    storage: @DIRECTORY@\n    zonefile-sync: -1\n    zonefile-load: difference\n    journal-content: all\n\
         zone:\n  - domain: knot\n    file: knot.zone\n    dnssec-signing: on\n    dnssec-policy: quick\n\
         \x20 - domain: island\n    file: island.zone\n    dnssec-signing: on\n    dnssec-policy: slow\n"
    )
}

fn knot(port: u16) -> Other {
    // Nothing outlives what a new key waits for.
    let quick = zone_text(KNOT).replace("$TTL 300", "$TTL 1").replace("864000 60", "864000 1");
    let files = [("conf", knot_configuration(KNOT)), ("knot.zone", quick), ("island.zone", zone_text(KNOT))];
    start("knotd", &["-c", "@DIRECTORY@/conf"], &files, (KNOT, port))
}

fn bind(port: u16) -> Other {
    let conf = format!(
        "options {{ directory \"@DIRECTORY@\"; listen-on port @PORT@ {{ {BIND}; }}; listen-on-v6 {{ none; }};\n\
         pid-file none; lock-file none; session-keyfile \"@DIRECTORY@/session.key\"; recursion no; notify no;\n\
         dnssec-validation no; }};\ncontrols {{ }};\n\
         dnssec-policy hashed {{ keys {{ csk lifetime unlimited algorithm ecdsap384sha384; }};\n\
         nsec3param iterations 0 optout no salt-length 0; }};\n\
         zone bind {{ type primary; file \"bind.zone\"; dnssec-policy hashed; inline-signing yes; }};\n"
    );
    let files = [("conf", conf), ("bind.zone", zone_text(BIND))];
    start("named", &["-g", "-n", "1", "-c", "@DIRECTORY@/conf"], &files, (BIND, port))
}

/// PowerDNS makes its proofs when they are asked for (RFC 4470, with NSEC3).
fn powerdns(port: u16) -> Other {
    let conf = format!(
        "launch=bind\nbind-config=@DIRECTORY@/named.conf\nbind-dnssec-db=@DIRECTORY@/keys.db\n\
         local-address={POWERDNS}\nlocal-port=@PORT@\nsocket-dir=@DIRECTORY@\ndname-processing=yes\nexpand-alias=no\n"
    );
    let files = [
        ("pdns.conf", conf),
        ("named.conf", "zone \"pdns\" { type master; file \"@DIRECTORY@/pdns.zone\"; };\n".to_owned()),
        ("pdns.zone", zone_text(POWERDNS).replace("$TTL", "$ORIGIN pdns.\n$TTL")),
    ];
    let script = "u='pdnsutil --config-dir=@DIRECTORY@'; $u create-bind-db @DIRECTORY@/keys.db && $u secure-zone pdns \
                  && $u set-nsec3 pdns '1 0 0 -' narrow && exec pdns_server --config-dir=@DIRECTORY@";
    start("sh", &["-c", script], &files, (POWERDNS, port))
}

/// NSD serves what ldns has signed, and what nobody has.
fn nsd(port: u16, signed: &[(&str, String)]) -> Other {
    let mut conf = format!(
        "server:\n  ip-address: {NSD}@@PORT@\n  username: \"\"\n  zonesdir: \"@DIRECTORY@\"\n  database: \"\"\n\
         \x20 pidfile: \"@DIRECTORY@/pid\"\n  xfrdfile: \"@DIRECTORY@/xfrd\"\n  xfrdir: \"@DIRECTORY@\"\n\
         \x20 zonelistfile: \"@DIRECTORY@/list\"\n  server-count: 1\n  verbosity: 2\n\
         remote-control:\n  control-enable: no\n"
    );
    let mut files = vec![("unsigned", zone_text(NSD))];
    files.extend_from_slice(signed);
    for (zone, _) in &files {
        let _ = write!(conf, "zone:\n  name: {zone}\n  zonefile: {zone}\n");
    }
    files.push(("conf", conf));
    start("nsd", &["-d", "-c", "@DIRECTORY@/conf"], &files, (NSD, port))
}

fn start(program: &str, arguments: &[&str], files: &[(&str, String)], address: (Ipv4Addr, u16)) -> Other {
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Other::start(program, arguments, &files, SocketAddr::from(address))
}

fn run(program: &str, arguments: &[&str], directory: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    let output = output.unwrap_or_else(|why| panic!("cannot run {program}: {why}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Has ldns make a key and sign a zone with it; `options` go to the signer. Returns the signed
/// zone.
pub(super) fn signed_by_ldns(zone: &str, algorithm: &str, options: &[&str]) -> String {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path();
    std::fs::write(path.join("zone"), zone_text(NSD)).expect("a writable directory");
    let key = run("ldns-keygen", &["-a", algorithm, "-b", "2048", "-k", zone], path);
    let arguments = [options, &["-o", zone, "-f", "signed", "zone", key.trim()]].concat();
    run("ldns-signzone", &arguments, path);
    std::fs::read_to_string(path.join("signed")).expect("a signed zone")
}

/// The servers of an internet, and the one under test.
pub(super) struct Internet {
    port: u16,
    pub(super) knot: Other,
    /// They end with this.
    _others: [Other; 3],
    root: Server,
    pub(super) resolver: Server,
}

impl Internet {
    /// Starts all servers, and waits until each of their zones is signed.
    pub(super) fn start(signed: &[(&str, String)]) -> Self {
        let port = free_address().port();
        let (knot, bind, powerdns, nsd) = (knot(port), bind(port), powerdns(port), nsd(port, signed));
        let directory = TempDir::new().expect("a temporary directory");
        std::fs::write(directory.path().join("gannet.zone"), zone_text(ROOT)).expect("writable");
        std::fs::write(directory.path().join("root.zone"), root_text("")).expect("writable");
        let root = Server::start_in(
            directory,
            &format!(
                "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\n\
                 listen: [\"@ADDRESS@\", \"{ROOT}:{port}\"]\n\
                 signing: {{quick: {{dnskey-ttl: 1s}}, compact: {{denial: compact, algorithm: ed25519}}}}\n\
                 zones:\n  - {{name: ., file: root.zone, sign: quick}}\n  - {{name: gannet, file: gannet.zone, sign: compact}}\n\
                 policy: {{main: [{{do: reject(refused)}}]}}\n"
            ),
        );
        let resolver = start_resolver(&root, port);
        let internet = Self { port, knot, _others: [bind, powerdns, nsd], root, resolver };
        internet.delegate(
            &SECURE.iter().chain(&BOGUS).map(|zone| (*zone, internet.ds(zone))).collect::<Vec<_>>(),
        );
        internet
    }

    /// Returns the address of a zone's server.
    fn server_of(zone: &str) -> Ipv4Addr {
        match zone {
            "knot" | "island" => KNOT,
            "bind" => BIND,
            "pdns" => POWERDNS,
            "gannet" | "." => ROOT,
            _ => NSD,
        }
    }

    /// Returns the DS records of a zone's keys, once it has some.
    pub(super) fn ds(&self, zone: &str) -> String {
        let mut keys = String::new();
        eventually(zone, || {
            keys = self.dig(Self::server_of(zone), &["+noall", "+answer", "+dnssec", zone, "DNSKEY"]);
            keys.contains("RRSIG")
        });
        let secure_entry_points = |line: &&str| line.contains("DNSKEY\t257") || line.contains("DNSKEY 257");
        let keys: Vec<&str> = keys.lines().filter(secure_entry_points).collect();
        let ds = ds_of_keys(self.root.directory(), zone, &keys.join("\n")).expect("DS records");
        if zone != "swapped" {
            return ds;
        }
        // A DS of the same key that has another digest.
        let (head, digest) = ds.trim_end().rsplit_once(' ').expect("a digest");
        format!("{head} {}\n", digest.chars().rev().collect::<String>())
    }

    pub(super) fn dig(&self, server: Ipv4Addr, arguments: &[&str]) -> String {
        testkit::dig(SocketAddr::from((server, self.port)), arguments)
    }

    /// Has the root delegate to all zones, with these DS records, and waits until it does.
    pub(super) fn delegate(&self, ds: &[(&str, String)]) {
        let text: Vec<&str> = ds.iter().map(|(_, ds)| ds.as_str()).collect();
        std::fs::write(self.root.directory().join("root.zone"), root_text(&text.concat())).expect("writable");
        let output = self.root.command(&["zone", "reload", "."]);
        assert!(output.status.success(), "{}", said(&output));
        for zone in SECURE.iter().chain(&INSECURE).chain(&BOGUS) {
            let wanted = ds.iter().find(|(other, _)| other == zone).map_or(0, |(_, ds)| ds.lines().count());
            eventually("the root has the new DS records", || {
                self.dig(ROOT, &["+short", zone, "DS"]).lines().count() == wanted
            });
        }
    }

    /// Asks the server under test with DO, over TCP: signatures of RSA and proofs are long.
    pub(super) fn ask(&self, name: &str, rtype: wire::Rtype) -> Heard {
        self.resolver.ask_tcp(&testkit::Ask::new(name, rtype).dnssec())
    }
}

/// Returns the text of the root zone.
fn root_text(ds: &str) -> String {
    let mut text = format!(
        "$TTL 1\n. SOA ns.root. hostmaster.root. 1 7200 600 864000 1\n. NS ns.root.\nns.root. A {ROOT}\n"
    );
    for zone in SECURE.iter().chain(&INSECURE).chain(&BOGUS) {
        let address = Internet::server_of(zone);
        let _ = write!(text, "{zone}. NS ns.{zone}.\nns.{zone}. A {address}\n");
    }
    text + ds
}

fn start_resolver(root: &Server, port: u16) -> Server {
    let mut keys = String::new();
    eventually("the root is signed", || {
        keys = root.dig(&["+noall", "+answer", "+dnssec", ".", "DNSKEY"]);
        keys.contains("RRSIG")
    });
    let keys: Vec<&str> = keys.lines().filter(|line| line.contains("DNSKEY\t257")).collect();
    let ds = ds_of_keys(root.directory(), ".", &keys.join("\n")).expect("DS records");
    let directory = TempDir::new().expect("a temporary directory");
    write_anchor(directory.path(), "", &ds);
    std::fs::write(directory.path().join("root.ds"), &ds).expect("writable");
    std::fs::write(directory.path().join("root.hints"), format!(". NS ns.root.\nns.root. A {ROOT}\n"))
        .expect("writable");
    Server::start_in(
        directory,
        &format!(
            "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
             resolvers: {{default: {{root-hints: \"@DIRECTORY@/root.hints\", port: {port}, ask-loopback: true, ipv6: false, \
             trust-anchors: \"@DIRECTORY@/root.ds\"}}}}\npolicy: {{main: [recurse]}}\n"
        ),
    )
}
