//! Response policy zones.

use super::check;

#[test]
fn response_policy_zones_for_everybody_are_one_list() {
    let text = "server: define-tag: a access-control-tag: 192.0.2.0/24 a\nrpz: name: one zonefile: /1\nrpz: name: two zonefile: /2\n\
                rpz: name: three zonefile: /3 tags: a\nrpz: name: four zonefile: /4 rpz-action-override: nxdomain";
    check(text, "sets/rpz-1/lists", "[{list: rpz:/1, optional: true}, {list: rpz:/2, optional: true}]");
    check(
        text,
        "policy/main",
        "[call(local-zones), call(response-policy-question), {if: not rd, do: respond(refused, ede 20)}, ask(find), \
         call(response-policy-answer)]",
    );
    let zones = "[blocklist(rpz-1, authoritative, without-soa), {if: listed in rpz-1, do: [return]}, \
         {if: client in 192.0.2.0/24, do: [blocklist(rpz-2, authoritative, without-soa)]}, \
         {if: client in 192.0.2.0/24 and listed in rpz-2, do: [return]}, \
         blocklist(rpz-3, nxdomain, override, authoritative, without-soa)]";
    check(text, "policy/response-policy-question", zones);
    check(text, "policy/response-policy-answer", zones);
}

#[test]
fn sets_have_the_names_of_response_policy_zones_where_clients_are_told_which_one_it_was() {
    let text = "server: ede: yes\nrpz: name: one.example. zonefile: /1\nrpz: name: Two zonefile: /2\n\
                rpz: name: two zonefile: /3";
    check(
        text,
        "policy/response-policy-answer",
        "[blocklist(rpz-one.example, authoritative, without-soa), {if: listed in rpz-one.example, do: [return]}, \
         blocklist(rpz-two, authoritative, without-soa), {if: listed in rpz-two, do: [return]}, \
         blocklist(rpz-3, authoritative, without-soa)]",
    );
    check(text, "sets/rpz-two/lists", "[{list: rpz:/2, optional: true}]");
}

#[test]
fn what_a_response_policy_zone_passes_is_left_alone_by_those_after_it() {
    let text = "rpz: name: one zonefile: /1 rpz-action-override: passthru\nrpz: name: two zonefile: /2";
    check(
        text,
        "policy/response-policy-question",
        "[{if: listed in rpz-1, do: [return]}, blocklist(rpz-2, authoritative, without-soa)]",
    );
}

#[test]
fn what_response_policy_zones_do_is_counted_with_extended_statistics() {
    let text = "server: extended-statistics: yes\nrpz: name: one zonefile: /1 rpz-action-override: disabled\n\
                rpz: name: two zonefile: /2\nrpz: name: three zonefile: /3 rpz-action-override: nodata\n\
                rpz: name: four zonefile: /4 rpz-action-override: cname rpz-cname-override: walled.example.";
    check(
        text,
        "policy/response-policy-question",
        "[{if: listed in rpz-1, do: [mark(33), label(rpz-disabled)]}, \
         blocklist(rpz-2, authoritative, without-soa, count rpz), \
         {if: listed in rpz-2, do: [mark(34), label(rpz-passthru)]}, {if: listed in rpz-2, do: [return]}, \
         blocklist(rpz-3, nodata, override, authoritative, without-soa, count rpz), \
         {if: listed in rpz-4, do: [label(rpz-cname-override), redirect(walled.example, authoritative)]}]",
    );
    check(
        text,
        "policy/response-policy-answer",
        "[{if: not mark(33) and listed in rpz-1, do: [label(rpz-disabled)]}, \
         blocklist(rpz-2, authoritative, without-soa, count rpz), \
         {if: not mark(34) and listed in rpz-2, do: [label(rpz-passthru)]}, {if: listed in rpz-2, do: [return]}, \
         blocklist(rpz-3, nodata, override, authoritative, without-soa, count rpz), \
         {if: listed in rpz-4, do: [label(rpz-cname-override), forget, redirect(walled.example), \
         ask(find), accept]}]",
    );
}

#[test]
fn a_response_policy_zone_that_is_disabled_does_nothing_but_has_lines() {
    let text = "rpz: name: one zonefile: /1 rpz-action-override: disabled rpz-log: yes";
    check(
        text,
        "policy/main",
        "[call(local-zones), {if: listed in rpz-1, do: [mark(1), query-lines(zone \"rpz: applied [one]\")]}, \
         {if: not rd, do: respond(refused, ede 20)}, ask(find), \
         {if: not mark(1) and listed in rpz-1, do: [query-lines(zone \"rpz: applied [one]\")]}]",
    );
    let text = "rpz: name: one zonefile: /1 rpz-action-override: disabled";
    check(
        text,
        "policy/main",
        "[call(local-zones), {if: not rd, do: respond(refused, ede 20)}, cache(main), recurse]",
    );
}

#[test]
fn an_alias_in_place_of_what_a_response_policy_zone_says_of_a_question_has_authority() {
    let text = "rpz: name: one zonefile: /1 rpz-action-override: cname rpz-cname-override: walled.example.";
    check(
        text,
        "policy/main",
        "[call(local-zones), {if: listed in rpz-1, do: [redirect(walled.example, authoritative)]}, \
         {if: not rd, do: respond(refused, ede 20)}, ask(find), \
         {if: listed in rpz-1, do: [forget, redirect(walled.example), ask(find), accept]}]",
    );
}
