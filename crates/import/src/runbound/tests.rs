use super::*;
use environment::Memory;

fn imported(files: &[(&str, &str)]) -> Result<Imported, Vec<String>> {
    let found = runbound(Path::new("/r/runbound.conf"), &Memory::new(files));
    found.map_err(|found| found.iter().map(Diagnostic::line).collect())
}

fn text(files: &[(&str, &str)]) -> String {
    imported(files).unwrap_or_else(|found| panic!("{found:?}")).text
}

/// Says whether the text has all these lines, wherever they stand and however they are quoted.
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        let is_it = |other: &str| other.trim().replace('\'', "") == *line;
        assert!(text.lines().any(is_it), "{line}\n{text}");
    }
}

#[test]
fn nothing_said_is_what_runbound_does_without_being_told() {
    let text = text(&[("/r/runbound.conf", "server:\n")]);
    has(
        &text,
        &[
            "- at: 0.0.0.0:53",
            "allow: [0.0.0.0/0, ::/0]",
            "per-second: 200",
            "burst: 400",
            "- tls://1.1.1.1:853#cloudflare-dns.com",
            "pick: race(2)",
            "- cache(main)",
            "- forward(default)",
        ],
    );
    assert!(!text.contains("certificates"), "{text}");
}

#[test]
fn each_keyword_is_taken_at_what_runbound_does_with_it() {
    let conf = "server:\n  interface: 192.0.2.1\n  port: 5300 # not 53\n  tls-service-pem: \"cert.pem\"\n\
                \x20 access-control: 10.0.0.1/32 refuse\n  access-control: 10.0.0.0/31 allow\n\
                \x20 access-control: 10.9.0.0/16 deny\n  local-zone: \"ads.example\" transparent\n\
                \x20 local-zone: gone.example always_nxdomain\n  local-data: \"nas.example. 60 A 192.0.2.9\"\n\
                \x20 rate-limit: 0\n  private-address: 10.0.0.0/8\n  msg-cache-size: 4m\n\
                forward-zone:\n  name: \"corp.example\"\n  forward-addr: 192.0.2.53@5353\n\
                split-horizon:\n  name: lan\n  subnet: 10.0.0.0/8\n  local-data: \"www.example. A 10.0.0.7\"\n";
    let made = imported(&[("/r/runbound.conf", conf)]).unwrap_or_else(|found| panic!("{found:?}"));
    has(
        &made.text,
        &[
            "- at: 192.0.2.1:5300",
            "- at: 192.0.2.1:853",
            "- certificate: /r/cert.pem",
            "allow: [10.0.0.0]",
            "deny: [10.9.0.0/16]",
            "local-refused:",
            "names: [suffix:ads.example]",
            "names: [suffix:nas.example, suffix:gone.example]",
            "- records(local)",
            "- 192.0.2.53:5353",
            "- if: client in 10.0.0.0/8",
            "do: records(split-1)",
            "- rebind(servfail, address 10.0.0.0/8)",
        ],
    );
    assert!(!made.text.contains("per-second"), "{}", made.text);
    let warnings: Vec<String> = made.warnings.iter().map(Diagnostic::line).collect();
    for expected in [
        "\"msg-cache-size\" is left out: Runbound reads it without an effect",
        "\"transparent\" is refused, as Runbound does",
        "servers of all zones are one group there",
    ] {
        assert!(warnings.iter().any(|line| line.contains(expected)), "{expected}: {warnings:?}");
    }
}

#[test]
fn what_the_api_changed_comes_from_its_stores() {
    let dns = r#"{"entries": [{"id": "1", "name": "mail.example", "type": "MX", "ttl": 60, "priority": 10, "value": "mx.example"},
                 {"id": "2", "name": "t.example", "type": "TXT", "ttl": 60, "value": "a ${b}"}]}"#;
    let blacklist = r#"{"entries": [{"id": "1", "domain": "Bad.example.", "action": "nxdomain"},
                       {"id": "2", "domain": "play.example", "action": "refuse", "schedule": {"days": ["Mon", "tue"], "start": "08:00", "end": "15:00"}}]}"#;
    let feeds = r#"{"feeds": [{"id": "1", "name": "Ads", "url": "https://lists.example/hosts", "format": "hosts", "action": "refuse", "enabled": true},
                   {"id": "2", "name": "Off", "url": "https://lists.example/off", "enabled": false}]}"#;
    let upstreams = r#"{"upstreams": [{"id": "1", "addr": "9.9.9.9", "port": 853, "protocol": "dot", "name": null, "zone": ".", "tls_hostname": "dns.quad9.net"}]}"#;
    let policies =
        r#"[{"name": "kids", "subnet": "192.168.10.0/24", "blacklist_extra": ["social.example"]}]"#;
    let made = imported(&[
        ("/r/runbound.conf", "server:\n  port: 53\n"),
        ("/r/dns_entries.json", dns),
        ("/r/blacklist.json", blacklist),
        ("/r/feeds.json", feeds),
        ("/r/upstreams.json", upstreams),
        ("/r/subnet-policies.json", policies),
        ("/r/users.json", "[]"),
    ]);
    let made = made.unwrap_or_else(|found| panic!("{found:?}"));
    has(
        &made.text,
        &[
            "mail.example. 60 MX 10 mx.example.",
            "t.example. 60 TXT \"a $${b}\"",
            "names: [suffix:bad.example]",
            "- if: qname in suffix:play.example and now in hours(\"mon,tue 08:00-15:00\", \"UTC\")",
            "- list: hosts:https://lists.example/hosts",
            "- tls://9.9.9.9:853#dns.quad9.net",
            "- if: client in 192.168.10.0/24 and qname in suffix:social.example",
        ],
    );
    assert!(!made.text.contains("/off") && !made.text.contains("1.1.1.1"), "{}", made.text);
    let warnings: Vec<String> = made.warnings.iter().map(Diagnostic::line).collect();
    assert!(warnings.iter().any(|line| line.contains("\"users.json\" is left out")), "{warnings:?}");
}

#[test]
fn what_cannot_be_read_is_an_error_at_its_line() {
    let conf = "server:\n  access-control: nowhere allow\n  rate-limit: many\nno colon\n";
    let found = imported(&[("/r/runbound.conf", conf)]).expect_err("mistakes");
    assert_eq!(
        found,
        [
            "/r/runbound.conf:2:19: error: \"nowhere\" is not a network",
            "/r/runbound.conf:3:15: error: \"many\" is not a number",
            "/r/runbound.conf:4:1: error: \"no colon\" is no \"key: value\"",
        ]
    );
    let found = imported(&[("/r/runbound.conf", "server:\n"), ("/r/feeds.json", "{\"feeds\": [{}]}")]);
    assert!(found.expect_err("a mistake")[0].contains("this feed has no \"url\""));
}
