//! Local zones that are there although no file has them, below wide ones of the file.

use super::*;

#[test]
fn zones_that_are_built_in_are_closer_than_zones_above_them() {
    let of = |text: &str| {
        let (entries, found) = read_files(&[("u.conf", text)]);
        assert_eq!(found, [""; 0], "{text}");
        at(&entries, "policy/local-zones")
    };
    let before = |text: &str, first: &str, second: &str| {
        let (first_at, second_at) = (text.find(first), text.find(second));
        assert!(first_at.is_some() && first_at < second_at, "{first} before {second}: {text}");
    };
    let root = "{if: qname in suffix:., do: [respond(refused, authoritative)]}";
    let built_in = "{if: qname in suffix:localhost|suffix:home.arpa|";
    let local = "suffix:onion|";
    let all = of("server: local-zone: . refuse");
    before(&all, built_in, root);
    before(&all, local, "do: [local]}");
    // One that the file has takes the place of the one of its name; one below keeps its own.
    let all = of("server: local-zone: . refuse local-zone: localhost static local-zone: x.test deny");
    assert!(!all.contains("suffix:localhost|"), "{all}");
    before(&all, "suffix:x.test", "suffix:home.arpa|");
    before(&all, "suffix:home.arpa|", root);
    // Data in one that is built in is not that of the zone above.
    let text =
        "server: local-zone: . redirect local-data: '. A 192.0.2.1' local-data: 'nas.home.arpa A 192.0.2.2'";
    let all = of(text);
    before(&all, built_in, "do: [records(built-in-data), local]}");
    before(&all, built_in, "{if: qname in suffix:., do: [records(local-data-1)]}");
    // Who has the zones of private networks unblocked has none of these built in.
    let all = of("server: unblock-lan-zones: yes local-zone: in-addr.arpa static");
    before(&all, "{if: qname in suffix:127.in-addr.arpa, do: [local]}", "suffix:in-addr.arpa");
    // Where no zone lies above one of them, the policy does not name them.
    assert!(!of("server: local-zone: example static").contains("suffix:localhost"));
}

#[test]
fn data_in_a_zone_that_is_built_in_is_denied_with_the_soa_of_that_zone() {
    let text = "server:
 local-data: 'k.onion A 192.0.2.1'
 local-data: 'localhost A 192.0.2.2'
 local-data: 'x.localhost A 192.0.2.3'
 local-data: 'www.example A 192.0.2.4'
 local-data-ptr: '127.0.0.2 www.example'
 local-data: 'home.arpa NS ns.example'
 local-zone: inner.test static
 local-data: 'a.inner.test A 192.0.2.5'
";
    let (entries, found) = read_files(&[("u.conf", text)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("\"x.localhost A 192.0.2.3\" has no effect"), "{found:?}");
    let set = at(&entries, "records/built-in-data/text");
    for record in [
        "k.onion A 192.0.2.1",
        "onion. 10800 IN SOA onion. nobody.invalid. 1 3600 1200 604800 10800",
        "localhost. 10800 IN A 127.0.0.1",
        "*.localhost. 10800 IN NS localhost.",
        "*.localhost. 3600 IN A 192.0.2.2",
        "2.0.0.127.in-addr.arpa. 3600 IN PTR www.example.",
        "1.0.0.127.in-addr.arpa. 10800 IN PTR localhost.",
        "home.arpa NS ns.example",
    ] {
        assert!(set.contains(record), "{record}: {set}");
    }
    for record in ["home.arpa. 10800 IN NS", "www.example A", "a.inner.test", "test. 10800", "x.localhost"] {
        assert!(!set.contains(record), "{record}: {set}");
    }
    let of_all = at(&entries, "records/local-data/text");
    assert!(of_all.contains("www.example A") && of_all.contains("a.inner.test"), "{of_all}");
    let rules = at(&entries, "policy/local-zones");
    assert!(rules.ends_with("records(local-data), records(built-in-data), local]"), "{rules}");
}

#[test]
fn a_list_with_a_wide_zone_asks_for_those_that_are_built_in_before_it() {
    let list: String =
        (0..12_000).map(|number| format!(" local-zone: \"n{number}.test\" refuse\n")).collect();
    for text in [
        format!("server:\n{list} local-zone: \".\" refuse\n"),
        format!("server:\n local-zone: . refuse\n{list}"),
    ] {
        let (entries, found) = read_files(&[("u.conf", &text)]);
        assert_eq!(found, [""; 0]);
        let all = at(&entries, "policy/local-zones");
        let places =
            ["qname in local-refuse-0", "suffix:localhost|", "qname in suffix:.,"].map(|it| all.find(it));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {all}");
    }
}
