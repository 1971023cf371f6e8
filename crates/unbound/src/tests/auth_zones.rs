//! Zones with authority.

use super::{at, check, read_files, says};

#[test]
fn zones_with_authority_are_served_and_read() {
    let text = "server: access-control: 10.0.0.0/8 allow
                auth-zone: name: a.example. primary: 192.0.2.1 zonefile: /z/a fallback-enabled: yes zonemd-check: yes zonemd-reject-absence: yes
                auth-zone: name: b.example zonefile: /z/b for-downstream: no zonemd-check: yes
                auth-zone: name: c.example zonefile: /z/c for-upstream: no zonemd-reject-absence: yes";
    let (entries, found) = read_files(&[("u.conf", text)]);
    assert!(found.is_empty(), "{found:?}");
    let zones = at(&entries, "zones");
    for expected in [
        "primaries: [192.0.2.1], write-to: /z/a, keep: false, zonemd: require}",
        "{name: b.example, for-clients: false, file: /z/b, zonemd: verify}",
        ", file: /z/c}",
    ] {
        assert!(zones.contains(expected), "{expected} in {zones}");
    }
    let policy = at(&entries, "policy/main");
    assert!(
        policy.starts_with(
            "[call(local-zones), {if: qname in suffix:c.example, do: [zones(within, minimal, several, ra-with-rd)]}, \
             {if: qname in suffix:a.example, do: [zones(loaded, within, minimal, several, ra-with-rd)]}, "
        ),
        "{policy}"
    );
    let routes = at(&entries, "resolvers/default/zones");
    assert_eq!(routes, "{a.example: {own: true, first: true}, b.example: {own: true}}");
    assert_eq!(at(&entries, "resolvers/default/own-zones"), "false");
    check(
        "server: zonemd-permissive-mode: yes auth-zone: name: a.example zonefile: /a for-downstream: no zonemd-check: yes",
        "zones",
        "[{name: a.example, for-clients: false, file: /a, zonemd: log}]",
    );
    says(
        "stub-zone: name: a.example stub-addr: 192.0.2.1 auth-zone: name: a.example. zonefile: /a for-upstream: yes",
        &[
            "u.conf:1:104: warning: the zone \"a.example\" is a stub or forward zone, too: that counts for the resolver",
        ],
    );
    says(
        "auth-zone: name: a.example zonefile: /a for-upstream: no for-downstream: no",
        &["u.conf:1:74: warning: nobody is answered from this zone, and the resolver does not read it"],
    );
}

#[test]
fn of_nested_zones_with_authority_the_closest_one_decides() {
    let zone = |name: &str, more: &str| format!("auth-zone: name: {name} zonefile: /z/{name} {more}\n");
    let policy = |zones: &[String], expect: &str| {
        let expect = format!(
            "[call(local-zones), {expect}{{if: not rd, do: respond(refused, ede 20)}}, cache(main), recurse]"
        );
        check(&zones.concat(), "policy/main", &expect);
    };
    let (upper, lower) = (zone("az", ""), "down.az");
    let beside = zone("other", "for-downstream: no");
    policy(&[upper.clone(), beside], "zones(within, minimal, several, ra-with-rd), ");
    policy(
        &[zone("az", "for-downstream: no"), zone(lower, "")],
        "zones(within, minimal, several, ra-with-rd), ",
    );
    for hidden in ["for-downstream: no", "for-downstream: no fallback-enabled: yes"] {
        policy(
            &[upper.clone(), zone(lower, hidden), zone("in.down.az", "")],
            "{if: qname in suffix:az and not qname in suffix:down.az, do: [zones(within, minimal, several, ra-with-rd)]}, \
             {if: qname in suffix:in.down.az, do: [zones(within, minimal, several, ra-with-rd)]}, \
             {if: qtype == DS and qname in exact:down.az, do: [zones(within, minimal, several, ra-with-rd)]}, ",
        );
    }
    policy(
        &[upper, zone(lower, "fallback-enabled: yes")],
        "{if: qname in suffix:az and not qname in suffix:down.az, do: [zones(within, minimal, several, ra-with-rd)]}, \
         {if: qtype == DS and qname in exact:down.az, do: [zones(within, minimal, several, ra-with-rd)]}, \
         {if: qname in suffix:down.az, do: [zones(loaded, within, minimal, several, ra-with-rd)]}, ",
    );
    policy(&[zone("az", "fallback-enabled: yes")], "zones(loaded, within, minimal, several, ra-with-rd), ");
}
