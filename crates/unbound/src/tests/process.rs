//! The process: modules, interfaces, user, state, and what has an effect in part.

use super::*;

#[test]
fn module_config_names_modules_that_there_are_in_an_order_that_works() {
    let with =
        |modules: &str, expect: &[&str]| says(&format!("server: module-config: \"{modules}\""), expect);
    for works in [
        "iterator",
        "validator iterator",
        "respip iterator",
        "respip dns64 validator iterator",
        "dns64 subnetcache respip validator iterator",
        "subnetcache validator iterator",
        "dns64 validator cachedb iterator",
        "ipset validator iterator",
    ] {
        with(works, &[]);
    }
    for wrong in [
        "",
        "validator",
        "iterator validator",
        "validator respip iterator",
        "iterator iterator",
        "dns64 respip iterator",
    ] {
        let (_, found) = read_files(&[("u.conf", &format!("server:\n module-config: \"{wrong}\""))]);
        let line = format!(
            "u.conf:2:18: warning: the modules \"{wrong}\" are not known to work in this order; here the order is \
             always the same"
        );
        assert_eq!(found, [line]);
    }
    with(
        "nosuch iterator",
        &[
            "u.conf:1:25: error: there is no module \"nosuch\": expected some of respip, dns64, subnetcache, validator, \
           cachedb, iterator",
        ],
    );
    with(
        "python validator iterator",
        &[
            "u.conf:1:25: warning: the module \"python\" has no effect: there is no Python in the server; policies say \
           what scripts are for",
        ],
    );
}

#[test]
fn rpz_and_response_ip_need_the_module_respip() {
    let expected = "expected \"respip\" in \"module-config\", such as \"respip validator iterator\"";
    let rpz = "rpz: name: a.example zonefile: /a";
    says(rpz, &[&*format!("u.conf:1:1: error: \"rpz\" needs the module \"respip\": {expected}")]);
    says(
        "server: module-config: \"validator iterator\"\n response-ip: 192.0.2.0/24 deny",
        &[&*format!("u.conf:2:2: error: \"response-ip\" needs the module \"respip\": {expected}")],
    );
    says(
        "view: name: a response-ip: 192.0.2.0/24 deny",
        &[&*format!("u.conf:1:15: error: \"response-ip\" needs the module \"respip\": {expected}")],
    );
}

#[test]
fn an_interface_can_be_a_device() {
    check("server: interface: eth0 interface: eth0@853", "listen", "[eth0@53, eth0@853]");
    check(
        "server: interface: br-lan do-ip6: no",
        "listen",
        "[{at: br-lan@53, transport: [udp, tcp], family: ipv4}]",
    );
    let text = "server: interface: eth0 interface-action: eth0 allow";
    check(text, "listen", "[{at: eth0@53, transport: [udp, tcp], name: interface-eth0-53}]");
    let text = "server: interface: eth0.1 interface: eth0-1 interface-action: eth0.1 allow \
                interface-action: eth0-1 allow";
    check(
        text,
        "listen",
        "[{at: eth0.1@53, transport: [udp, tcp], name: interface-eth0_-1-53}, \
         {at: eth0-1@53, transport: [udp, tcp], name: interface-eth0-1-53}]",
    );
    says(
        "server: interface: 192.0.2.300",
        &["u.conf:1:20: error: \"192.0.2.300\" is no interface: expected an address \
        or a device, such as 192.0.2.1, 192.0.2.1@53, ::1 or eth0"],
    );
    let text =
        "remote-control: control-enable: yes control-use-cert: no control-interface: lo control-port: 953";
    check(text, "control/unbound/listen", "[lo@953]");
}

#[test]
fn without_username_the_server_is_the_user_unbound_with_a_directory_of_its_own() {
    check("", "server/user", "unbound");
    check("server: username: \"\"", "server/user", "root");
    check("server: username: dns", "server/user", "dns");
    check("", "server/state-directory", "/var/lib/unbound/gannet");
    check("server: directory: /var/unbound", "server/state-directory", "/var/unbound/gannet");
    let (entries, _) = read_files(&[("u.conf", "server: chroot: /jail directory: /etc")]);
    assert_eq!(at(&entries, "server/state-directory"), "/jail/etc/gannet");
}

#[test]
fn do_daemonize_is_a_setting() {
    check("", "server/daemonize", "");
    check("server: do-daemonize: no", "server/daemonize", "false");
    check("server: do-daemonize: yes", "server/daemonize", "true");
}

#[test]
fn harden_large_queries_bounds_queries() {
    check("server: harden-large-queries: yes", "limits/query-size", "512");
    check("server: harden-large-queries: no", "limits/query-size", "");
}

#[test]
fn what_a_keyword_does_only_in_part_is_said() {
    let (_, found) = read_files(&[("u.conf", "server:\n chroot: /jail\n harden-glue: no\n")]);
    assert_eq!(
        found,
        [
            "u.conf:2:2: warning: \"chroot\" is different here: files are those inside of it, but the process sees the \
             whole file system: systemd can confine it",
            "u.conf:3:2: warning: \"harden-glue\" has no effect: glue serves the delegation that it came with, and nothing else",
        ]
    );
    says("server: chroot: \"\" harden-glue: yes", &[]);
}
