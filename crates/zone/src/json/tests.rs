use super::*;

use dnssec::keys::ZoneKey;
use dnssec::{Algorithm, ENTRY_POINT, KeySize, SecretKey, ZONE_KEY};

const KEY: HashKey = HashKey::new([3, 5]);

fn zone(records: &str) -> String {
    format!("[{{\"name\": \"example.com\", \"sha\": \"v1\", \"records\": [\n{SOA},\n{records}\n]}}]")
}

const SOA: &str = r#"{"name": "example.com", "type": "SOA", "ttl": 3600, "data": {"mname": "ns1.example.com",
    "rname": "admin.example.com", "serial": 2013022001, "refresh": 86400, "retry": 7200, "expire": 604800, "minimum": 300}}"#;

/// Returns the records but the SOA, as lines without TTL and class.
fn lines(file: &JsonFile) -> Vec<String> {
    let mistakes: Vec<String> = file.mistakes.iter().map(|m| format!("{}: {m}", m.place.line)).collect();
    assert_eq!(mistakes, [""; 0]);
    let zone = file.zones[0].built.zone.as_ref().expect("a zone");
    let lines = zone.records().skip(1).map(|record| {
        let data = wire::rdata::display(record.rtype, record.rdata, 0..record.rdata.len());
        format!("{} {} {data}", record.owner(), record.rtype)
    });
    lines.collect()
}

/// Checks what one record's data become.
#[track_caller]
fn check(rtype: &str, data: &str, expect: &str) {
    let record = format!(r#"{{"name": "x.example.com", "type": "{rtype}", "ttl": 60, "data": {data}}}"#);
    let file = read(zone(&record).as_bytes(), KEY, None);
    assert_eq!(lines(&file), [format!("x.example.com. {expect}")]);
}

#[test]
fn every_type_of_erldns_is_read() {
    check("A", r#"{"ip": "192.0.2.1"}"#, "A 192.0.2.1");
    check("AAAA", r#"{"ip": "2001:db8::1"}"#, "AAAA 2001:db8::1");
    check("CNAME", r#"{"dname": "example.com"}"#, "CNAME example.com.");
    check("PTR", r#"{"dname": "example.com."}"#, "PTR example.com.");
    check("DNAME", r#"{"dname": "example.net"}"#, "DNAME example.net.");
    check("MX", r#"{"preference": 10, "exchange": "mail.example.net"}"#, "MX 10 mail.example.net.");
    check("KX", r#"{"preference": 10, "exchange": "mail.example.net"}"#, "KX 10 mail.example.net.");
    check(
        "TXT",
        r#"{"txts": ["\"Hi, this is some text\"", "b \\ c", "\u00e9;"]}"#,
        r#"TXT "\"Hi, this is some text\"" "b \\ c" "\195\169;""#,
    );
    check("SPF", r#"{"spf": ["v=spf1 -all"]}"#, r#"SPF "v=spf1 -all""#);
    check(
        "SRV",
        r#"{"priority": 0, "weight": 100, "port": 389, "target": "ldap.example.net"}"#,
        "SRV 0 100 389 ldap.example.net.",
    );
    check("CAA", r#"{"flags": 0, "tag": "issue", "value": "example.net"}"#, r#"CAA 0 issue "example.net""#);
    check(
        "NAPTR",
        r#"{"order": 1, "preference": 2, "flags": "u", "services": "E2U+sip", "regexp": "!^.*$!sip:a@example.net!", "replacement": ""}"#,
        r#"NAPTR 1 2 "u" "E2U+sip" "!^.*$!sip:a@example.net!" ."#,
    );
    check("HINFO", r#"{"cpu": "PC", "os": "a b"}"#, r#"HINFO "PC" "a b""#);
    check("RP", r#"{"mbox": "a.example.net", "txt": "b.example.net"}"#, "RP a.example.net. b.example.net.");
    check("AFSDB", r#"{"subtype": 1, "hostname": "a.example.net"}"#, "AFSDB 1 a.example.net.");
    check("RT", r#"{"preference": 1, "host": "a.example.net"}"#, "RT 1 a.example.net.");
    check("MB", r#"{"madname": "a.example.net"}"#, "MB a.example.net.");
    check("MG", r#"{"madname": "a.example.net"}"#, "MG a.example.net.");
    check("MR", r#"{"newname": "a.example.net"}"#, "MR a.example.net.");
    check(
        "MINFO",
        r#"{"rmailbx": "a.example.net", "emailbx": "b.example.net"}"#,
        "MINFO a.example.net. b.example.net.",
    );
    check(
        "LOC",
        r#"{"size": 18, "horiz": 22, "vert": 19, "lat": 2332895888, "lon": 2146974824, "alt": 10000000}"#,
        "LOC 51 30 12.240 N 0 8 28.824 W 0.00m 1.00m 10000.00m 10.00m",
    );
    check("SSHFP", r#"{"alg": 1, "fptype": 1, "fp": "00FF"}"#, "SSHFP 1 1 00FF");
    let cert = r#"{"usage": 3, "selector": 1, "matching_type": 1, "certificate": "00ff"}"#;
    check("TLSA", cert, "TLSA 3 1 1 00FF");
    check("SMIMEA", cert, "SMIMEA 3 1 1 00FF");
    let ds = r#"{"keytag": 1, "alg": 13, "digest_type": 2, "digest": "00FF"}"#;
    check("CDS", ds, "CDS 1 13 2 00FF");
    check("DLV", ds, "DLV 1 13 2 00FF");
    let dnskey = r#"{"flags": 257, "protocol": 3, "alg": 13, "public_key": "AAECAw==", "key_tag": 5}"#;
    check("DNSKEY", dnskey, "DNSKEY 257 3 13 AAECAw==");
    check("CDNSKEY", dnskey, "CDNSKEY 257 3 13 AAECAw==");
    check(
        "KEY",
        r#"{"type": 0, "xt": 0, "name_type": 2, "sig": 0, "protocol": 3, "alg": 8, "public_key": "AAECAw=="}"#,
        "KEY 512 3 8 AAECAw==",
    );
    check(
        "RRSIG",
        r#"{"type_covered": 1, "alg": 13, "labels": 3, "original_ttl": 60, "expiration": 1893456000, "inception": 1577836800, "keytag": 7, "signers_name": "example.com", "signature": "AAECAw=="}"#,
        "RRSIG A 13 3 60 20300101000000 20200101000000 7 example.com. AAECAw==",
    );
    check(
        "NSEC",
        r#"{"next_dname": "y.example.com", "types": [1, 46, 47]}"#,
        "NSEC y.example.com. A RRSIG NSEC",
    );
    check("NSEC3PARAM", r#"{"hash_alg": 1, "flags": 0, "iterations": 0, "salt": "-"}"#, "NSEC3PARAM 1 0 0 -");
    check("CSYNC", r#"{"soa_serial": 5, "flags": 3, "types": [1, "NS"]}"#, "CSYNC 5 3 A NS");
    check(
        "DSYNC",
        r#"{"rrtype": "CDS", "scheme": 1, "port": 5300, "target": "a.example.net"}"#,
        "DSYNC CDS NOTIFY 5300 a.example.net.",
    );
    check("CERT", r#"{"type": 1, "keytag": 2, "alg": 8, "cert": "AAECAw=="}"#, "CERT PKIX 2 8 AAECAw==");
    check("DHCID", r#"{"data": "AAECAw=="}"#, "DHCID AAECAw==");
    check("OPENPGPKEY", r#"{"data": "AAECAw=="}"#, "OPENPGPKEY AAECAw==");
    for (gateway, shown) in [
        ("192.0.2.1", "1 2 192.0.2.1"),
        ("2001:db8::1", "2 2 2001:db8::1"),
        ("a.example.net", "3 2 a.example.net."),
        (".", "0 2 ."),
    ] {
        let data =
            format!(r#"{{"precedence": 10, "alg": 2, "gateway": "{gateway}", "public_key": "AAECAw=="}}"#);
        check("IPSECKEY", &data, &format!("IPSECKEY 10 {shown} AAECAw=="));
    }
    check(
        "URI",
        r#"{"priority": 1, "weight": 2, "target": "https://example.net/"}"#,
        r#"URI 1 2 "https://example.net/""#,
    );
    check("EUI48", r#"{"address": "00005e00532a"}"#, "EUI48 00-00-5e-00-53-2a");
    check("EUI64", r#"{"address": "00005eef1000002a"}"#, "EUI64 00-00-5e-ef-10-00-00-2a");
    check("RESINFO", r#"{"data": ["qnamemin"]}"#, r#"RESINFO "qnamemin""#);
    check("WALLET", r#"{"data": ["a", "b"]}"#, r#"WALLET "a" "b""#);
    check("65534", r#"{"data": "AAECAw=="}"#, "TYPE65534 \\# 4 00010203");
}

#[test]
fn services_have_their_parameters() {
    check("HTTPS", r#"{"svc_priority": 0, "target_name": "a.example.net"}"#, "HTTPS 0 a.example.net.");
    check(
        "SVCB",
        r#"{"svc_priority": 1, "target_name": ".", "svc_params": {"mandatory": ["alpn"], "alpn": ["h2", "a,b"],
            "no-default-alpn": null, "port": 8443, "ipv4hint": ["192.0.2.1"], "ipv6hint": ["2001:db8::1"], "ech": "abc", "key667": "hello"}}"#,
        r"SVCB 1 . mandatory=alpn alpn=h2,a\\,b no-default-alpn port=8443 ipv4hint=192.0.2.1 ech=YWJj ipv6hint=2001:db8::1 key667=hello",
    );
    // Numbers of known parameters are their names.
    check(
        "SVCB",
        r#"{"svc_priority": 1, "target_name": ".", "svc_params": {"key3": "53"}}"#,
        "SVCB 1 . port=53",
    );
}

#[test]
fn contexts_filter_records() {
    let record = |name: &str, context: &str| {
        format!(
            r#"{{"name": "{name}.example.com", "type": "A", "ttl": 60, "data": {{"ip": "192.0.2.1"}}{context}}}"#
        )
    };
    let records = [
        record("always", ""),
        record("ams", r#", "context": ["ams", "fra"]"#),
        record("sjc", r#", "context": ["sjc"]"#),
        record("none", r#", "context": []"#),
    ];
    let names = |contexts: Option<Contexts>| {
        let file = read(zone(&records.join(",\n")).as_bytes(), KEY, contexts.as_ref());
        let names: Vec<String> =
            lines(&file).iter().map(|line| line.split('.').next().unwrap_or("").to_owned()).collect();
        (names.join(" "), file.zones[0].left_out)
    };
    assert_eq!(names(None), ("always ams none sjc".to_owned(), 0));
    let ams = |matches_empty| Some(Contexts { allow: vec!["ams".to_owned()], matches_empty });
    assert_eq!(names(ams(false)), ("always ams".to_owned(), 2));
    assert_eq!(names(ams(true)), ("always ams none".to_owned(), 1));
    assert_eq!(names(Some(Contexts::default())), ("always".to_owned(), 3));
}

#[test]
fn all_mistakes_come_with_their_places() {
    let text = zone(
        r#"{"name": "a.example.com", "type": "A", "ttl": 60, "data": {"ip": "192.0.2.300"}},
{"name": "b.example.com", "type": "MX", "ttl": 60, "data": {"preference": 70000, "exchange": "a"}},
{"name": "c.example.com", "type": "NOPE", "ttl": 60, "data": {"x": 1}},
{"name": "d.example.com", "type": "TXT", "ttl": -1, "data": {"txt": "x"}},
{"name": "e.example.com", "type": "A", "ttl": 60}"#,
    );
    let file = read(text.as_bytes(), KEY, None);
    let found: Vec<String> =
        file.mistakes.iter().map(|m| format!("{}:{}: {m}", m.place.line, m.column)).collect();
    assert_eq!(
        found,
        [
            "4:66: expected an IPv4 address, found \"192.0.2.300\"",
            "5:75: expected a number from 0 to 65535, found \"70000\"",
            "6:35: expected a type such as A or SVCB, or the number of one in quotes, found \"NOPE\"",
            "7:49: expected seconds, at most 2147483647, found \"-1\"",
            "7:61: expected \"txts\" in here, found \"{\"",
            "8:1: expected \"data\" in here, found \"{\"",
        ]
    );
    assert!(file.zones[0].built.zone.is_none());
}

#[test]
fn fields_that_only_others_read_are_told_and_left_out() {
    let text = zone(
        r#"{"name": "a.example.com", "type": "DS", "ttl": 60, "flavour": 1, "data":
 {"keytag": 1, "keytype": "KSK", "alg": 8, "digest_type": 2, "digest": "00000000000000000000000000000000000000000000000000000000000000AA"}}"#,
    );
    let file = read(text.as_bytes(), KEY, None);
    assert_eq!(file.mistakes, []);
    let said: Vec<String> =
        file.remarks.iter().map(|it| format!("{}:{}: {}", it.place.line, it.column, it.message)).collect();
    assert!(
        said[0].starts_with("4:52: \"flavour\" means nothing here and is left out; known are"),
        "{said:?}"
    );
    assert!(said[1].starts_with("5:16: \"keytype\" means nothing here"), "{said:?}");
    assert!(file.zones[0].built.zone.is_some());
}

#[test]
fn a_long_text_is_split_and_told() {
    let long = "x".repeat(600);
    let text = zone(&format!(
        r#"{{"name": "a.example.com", "type": "TXT", "ttl": 60, "data": {{"txts": ["{long}", "y"]}}}}"#
    ));
    let file = read(text.as_bytes(), KEY, None);
    let built = &file.zones[0].built;
    let found: Vec<String> = built.findings.iter().map(|it| it.problem.to_string()).collect();
    assert!(found.iter().any(|it| it.contains("more than 255 octets in TXT")), "{found:?}");
    assert!(built.zone.is_some());
}

#[test]
fn one_bad_zone_does_not_keep_the_others_of_its_file_back() {
    let good = zone(r#"{"name": "a.example.com", "type": "A", "ttl": 60, "data": {"ip": "192.0.2.1"}}"#);
    let bad = zone(r#"{"name": "a.example.com", "type": "A", "ttl": 60, "data": {"ip": "x"}}"#)
        .replace("example.com", "example.net");
    let text = format!("{},\n{}", &good[..good.len() - 1], &bad[1..]);
    let file = read(text.as_bytes(), KEY, None);
    let loaded: Vec<(String, bool)> =
        file.zones.iter().map(|zone| (zone.apex.to_string(), zone.built.zone.is_some())).collect();
    assert_eq!(loaded, [("example.com.".to_owned(), true), ("example.net.".to_owned(), false)]);
    assert_eq!(file.mistakes.len(), 1);
    assert_eq!(file.zones[0].version, "v1");
}

/// Returns a key set as it stands in a file, and its tags.
fn key_set(algorithm: Algorithm) -> (String, [u16; 2]) {
    let key = |flags| ZoneKey {
        owner: NameBuf::from_text("example.com").expect("a name"),
        flags,
        secret: SecretKey::generate(algorithm, KeySize::Bits2048).expect("a key").into(),
        times: dnssec::keys::Times::default(),
    };
    let (ksk, zsk) = (key(ZONE_KEY | ENTRY_POINT), key(ZONE_KEY));
    let tags = [ksk.tag(), zsk.tag()];
    let set = erldns::KeySet { ksk, zsk, inception: 1_479_123_418, until: 1_486_899_418 };
    let text = erldns::write(&[set]).expect("key sets");
    (text.trim().to_owned(), tags)
}

fn with_keys(keys: &str) -> JsonFile {
    let text = format!("[{{\"name\": \"example.com\", \"records\": [{SOA}],\n\"keys\": {keys}}}]");
    read(text.as_bytes(), KEY, None)
}

#[test]
fn keys_are_read() {
    for algorithm in [Algorithm::ECDSAP256SHA256, Algorithm::ED448, Algorithm::RSASHA256] {
        let (text, tags) = key_set(algorithm);
        let file = with_keys(&text);
        assert_eq!(file.mistakes, []);
        let [KeySet { keys, place }] = file.zones[0].keys.as_slice() else { panic!("one set") };
        assert_eq!([keys.ksk.tag(), keys.zsk.tag()], tags);
        assert!(keys.ksk.is_entry_point() && !keys.zsk.is_entry_point());
        assert_eq!((keys.inception, keys.until, place.line), (1_479_123_418, 1_486_899_418, 4));
    }
}

#[test]
fn what_is_wrong_with_a_key_is_told_at_its_place_and_shows_nothing_of_it() {
    let (text, [ksk, zsk]) = key_set(Algorithm::ED25519);
    let secret = text.split("\\n").nth(1).expect("a line of Base64").to_owned();
    let check = |wrong: &str, found: &str, expected: &str| {
        let file = with_keys(wrong);
        let [mistake, ..] = file.mistakes.as_slice() else { panic!("no mistake in {wrong}") };
        assert_eq!(mistake.found, found, "{mistake:?}");
        assert!(mistake.expected.contains(expected), "{mistake:?}");
        assert!(
            file.zones.iter().all(|zone| zone.built.zone.is_none()),
            "a zone is not served without its keys"
        );
        for mistake in &file.mistakes {
            let said = format!("{mistake:?} {mistake}");
            assert!(!said.contains(secret.get(..20).expect("a part")), "{said}");
        }
    };
    let said = |name: &str, value: u16| format!("\"{name}\": {value}");
    check(&text.replace(&said("zsk_keytag", zsk), "\"zsk_alg\": 15"), "{", "\"zsk_keytag\" in here");
    check(&text.replace(&said("zsk_alg", 15), &said("zsk_alg", 5)), "5", "8, 10, 13, 14, 15 or 16");
    check(&text.replace(&said("zsk_alg", 15), &said("zsk_alg", 13)), "zsk", "of another algorithm");
    check(&text.replacen(&secret, "!", 1), "ksk", "not in Base64");
    check(&text.replace("PRIVATE KEY", "PUBLIC KEY"), "ksk", "expected a private key");
    check(&text.replace("2016-11", "2018-11"), "2017-02-12T11:36:58Z", "after that of");
    check(&text.replace("2016-11-14T", "yesterday"), "yesterday11:36:58Z", "2026-01-31");
    check(&format!("[\"{secret}\"]"), &"*".repeat(secret.len().min(60)), "a key set");
    check(&format!("\"{secret}"), "", "a closing quote");
    let named = text.replacen("\"ksk\"", &format!("\"{secret}\""), 1);
    check(&named, "{", "\"ksk\" in here");
    let file = with_keys(&named);
    let [remark] = file.remarks.as_slice() else { panic!("{:?}", file.remarks) };
    assert!(remark.message.starts_with("\"****") && !remark.message.contains(&secret[..20]), "{remark:?}");
    // Another tag than it has is told, and the key is used.
    let file = with_keys(&text.replace(&said("ksk_keytag", ksk), &said("ksk_keytag", 1)));
    let [remark] = file.remarks.as_slice() else { panic!("{:?}", file.remarks) };
    assert!(
        remark.message.contains(&format!("\"ksk_keytag\" is 1, but the key's tag is {ksk}")),
        "{remark:?}"
    );
    assert_eq!((file.mistakes.len(), file.zones[0].keys.len()), (0, 1));
}

#[test]
fn pieces_of_keys_are_concealed() {
    let check = |text: &str, expect: &str| assert_eq!(concealed(text), expect);
    check(r#"{"ttl": 60, "ip": "192.0.2.1"}"#, r#"{"ttl": 60, "ip": "192.0.2.1"}"#);
    check(
        r#""-----BEGIN PRIVATE KEY-----\nMC4CAQ\nAwBQYDK2VwBCIE""#,
        r#""-----BEGIN PRIVATE KEY-----************************""#,
    );
    assert!(holds_keys(br#"[{"ksk": "x"}]"#) && holds_keys(br#"{"keys": ["x"]}"#));
    assert!(!holds_keys(br#"[{"ks": "PRIVATE"}]"#));
}
