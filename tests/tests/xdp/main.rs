//! The built program on a network interface, between two network namespaces: the same answers
//! through AF_XDP as through the kernel's sockets, whatever becomes of the program.
//!
//! Skipped, with the reason, where namespaces or AF_XDP are not to be had.
#![expect(clippy::print_stdout, reason = "says why it is skipped")]

mod clients;
mod rights;
mod servers;
mod topology;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use testkit::corpus::cases;

use crate::clients::{
    ask_for_much, ask_guarded, bystander, flows, is_banned, is_dropped, is_let_in, load, miss, offend, record,
};
use crate::rights::{RIGHTS, Unprivileged, unprivileged_configuration, without_rights};
use crate::servers::{
    counter, join, serve, serve_and_die, serve_guarded, serve_limited, serve_narrow, share,
};
use crate::topology::{SERVER, Topology, ip, tell};

/// The parts that run inside a namespace. Only other tests start them.
#[test]
#[ignore = "a part of the other tests"]
fn role() {
    let (Ok(role), Ok(folder)) = (std::env::var("GANNET_XDP_ROLE"), std::env::var("GANNET_XDP_FOLDER"))
    else {
        return;
    };
    let folder = Path::new(&folder);
    match role.as_str() {
        "serve" => serve(folder, "native"),
        "serve-generic" => serve(folder, "generic"),
        "serve-and-die" => serve_and_die(folder),
        "load" => load(folder),
        "record" => {
            for (family, server) in ["4", "6"].iter().zip(SERVER) {
                let replies = record(SocketAddr::new(server.parse().expect("an address"), 53));
                tell(folder, &format!("client-{family}"), &replies);
            }
        }
        "miss" => miss(),
        "bystander" => bystander(),
        "flows" => flows(),
        "is-dropped" => is_dropped(),
        "serve-narrow" => serve_narrow(folder),
        "ask-for-much" => ask_for_much(),
        "serve-limited" => serve_limited(folder),
        "offend" => offend(),
        "is-banned" => is_banned(),
        "is-let-in" => is_let_in(),
        "serve-guarded" => serve_guarded(folder),
        "ask-guarded" => ask_guarded(),
        "share" => share(folder),
        "join" => join(folder),
        other => panic!("no role {other}"),
    }
}

fn gives_the_same_bytes(role: &str, queues: u32) {
    let Some(topology) = Topology::new(queues) else { return };
    let mut server = topology.start(&topology.server, role);
    topology.wait_for("ready", &mut server);
    topology.client("record");
    topology.client("miss");
    topology.client("bystander");
    topology.tell("end");
    topology.wait_for("dropping", &mut server);
    topology.client("is-dropped");
    topology.tell("was-dropped");
    topology.wait_for("not-dropping", &mut server);
    topology.client("bystander");
    topology.tell("was-let-in");
    topology.wait_for("banning", &mut server);
    topology.client("is-dropped");
    topology.tell("was-banned");
    topology.wait_for("not-banning", &mut server);
    topology.client("bystander");
    topology.tell("was-welcome");
    topology.wait_for("checking", &mut server);
    topology.client("bystander");
    topology.tell("was-checked");
    topology.wait_for("trusting", &mut server);
    topology.client("bystander");
    topology.tell("was-trusted");
    topology.wait_for("stats", &mut server);
    Topology::end(role, server);
    let text = |note: &str| String::from_utf8(topology.read(note)).expect("text");
    let kernel = text("kernel");
    assert!(kernel.lines().count() > 50);
    for client in ["client-4", "client-6"] {
        for (expected, found) in kernel.lines().zip(text(client).lines()) {
            assert_eq!(expected, found, "{client}");
        }
        assert_eq!(kernel.len(), text(client).len());
    }
    // It was AF_XDP that answered, not the sockets behind it.
    let stats = text("stats");
    let metrics = text("metrics");
    let mode = role.strip_prefix("serve-").unwrap_or("native");
    for sample in [
        format!("gannet_xdp_mode_info{{interface=\"s0\",mode=\"{mode}\"}} 1\n"),
        "gannet_xdp_ring_entries{interface=\"s0\",queue=\"0\"} 2048\n".to_owned(),
        "gannet_xdp_program_frames_total{interface=\"s0\",verdict=\"dropped\"} 4\n".to_owned(),
        "gannet_xdp_lost_packets_total{interface=\"s0\",queue=\"0\",reason=\"ring_full\"} 0\n".to_owned(),
    ] {
        assert!(metrics.contains(&sample), "no {sample}in {metrics}");
    }
    let taken = counter(&stats, "listen", "xdp_datagrams");
    // Of the corpus some pass: a reply, and what is less than a header. Each case has a marker
    // behind it.
    let least = 2 * (2 * cases().len() as u64 - 5) + 100 + 2 * 200;
    assert!(taken >= least, "{taken} of {least}\n{stats}");
    assert!(counter(&stats, "xdp.s0", "taken") >= least, "{stats}");
    assert_eq!(counter(&stats, "xdp.s0", "dropped"), 4, "{stats}");
    assert_eq!(counter(&stats, "listen", "xdp_unsent"), 0, "{stats}");
    assert_eq!(counter(&stats, "listen", "xdp_lost"), 0, "{stats}");
}

#[test]
fn af_xdp_and_the_kernel_give_the_same_bytes() {
    gives_the_same_bytes("serve", 1);
}

#[test]
fn so_does_af_xdp_in_generic_mode_on_two_queues() {
    gives_the_same_bytes("serve-generic", 2);
}

#[test]
fn a_reply_is_no_longer_than_a_packet() {
    let Some(topology) = Topology::new(1) else { return };
    for (namespace, interface) in [(&topology.client, "c0"), (&topology.server, "s0")] {
        ip(&format!("-n {namespace} link set {interface} mtu 600")).expect("another MTU");
    }
    let mut server = topology.start(&topology.server, "serve-narrow");
    topology.wait_for("ready", &mut server);
    topology.client("ask-for-much");
    topology.tell("asked");
    Topology::end("serve-narrow", server);
}

#[test]
fn a_zone_is_answered_to_those_who_may_query_it() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "serve-guarded");
    topology.wait_for("ready", &mut server);
    topology.client("ask-guarded");
    topology.tell("asked");
    Topology::end("serve-guarded", server);
}

#[test]
fn whoever_keeps_on_being_over_the_limit_is_banned_for_a_time() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "serve-limited");
    topology.wait_for("ready", &mut server);
    topology.client("offend");
    topology.wait_for("banned", &mut server);
    topology.client("is-banned");
    topology.tell("was-banned");
    topology.wait_for("exempt", &mut server);
    topology.client("is-let-in");
    topology.tell("was-exempt");
    topology.wait_for("forgiving", &mut server);
    topology.client("offend");
    topology.client("is-let-in");
    topology.tell("was-let-in");
    Topology::end("serve-limited", server);
}

#[test]
fn another_program_is_kept_or_replaced_as_is_set() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "share");
    topology.wait_for("replaced", &mut server);
    topology.client("bystander");
    topology.tell("asked");
    Topology::end("share", server);
}

#[test]
fn a_program_of_somebody_else_is_joined_as_is_set() {
    let Some(topology) = Topology::new(1) else { return };
    let mut server = topology.start(&topology.server, "join");
    topology.wait_for("joined", &mut server);
    topology.client("bystander");
    topology.tell("asked");
    Topology::end("join", server);
}

#[test]
fn killed_under_load_it_comes_back() {
    let Some(topology) = Topology::new(1) else { return };
    let load = topology.start(&topology.client, "load");
    let mut server = topology.start(&topology.server, "serve-and-die");
    for life in 0..3 {
        topology.wait_for(&format!("up-{life}"), &mut server);
        topology.client("bystander");
        topology.tell(&format!("asked-{life}"));
    }
    Topology::end("serve-and-die", server);
    topology.tell("end");
    Topology::end("load", load);
}

#[test]
fn missing_rights_are_named() {
    let Some(topology) = Topology::new(1) else { return };
    let Some((is_fine, said)) = without_rights(&topology, &["xdp", "check", "s0"]) else { return };
    assert!(!is_fine, "{said}");
    assert!(said.contains("no   rights: missing: CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF"), "{said}");
    assert!(said.contains("no   sockets: cannot open an AF_XDP socket: CAP_NET_RAW is needed"), "{said}");
}

#[test]
fn three_rights_and_locked_memory_are_enough_and_given_up() {
    let Some(topology) = Topology::new(1) else { return };
    unprivileged_configuration(&topology, "mode: native", "");
    let Some(mut server) = Unprivileged::start(&topology, &RIGHTS, 16 << 20) else { return };
    server.hear("queries are taken past the kernel's network stack");
    server.hear("answers on");
    topology.client("bystander");
    let rights = server.rights();
    assert!(rights.len() >= 8 && rights.iter().all(|right| right.trim_matches('0').is_empty()), "{rights:?}");
    // Without any of them, the program still hears of bans.
    unprivileged_configuration(&topology, "mode: native", "deny: [10.77.0.0/28, \"fd77::1\"]\n");
    let told = Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status();
    assert!(told.expect("kill runs").success());
    server.hear("configuration in use");
    topology.client("is-dropped");
}

#[test]
fn small_rings_busy_polling_and_fewer_queues_serve_as_well() {
    let Some(topology) = Topology::new(2) else { return };
    let xdp = "mode: auto, ring: 64, busy-poll: 20, busy-poll-budget: 8, huge-pages: true, queues: 1";
    unprivileged_configuration(&topology, xdp, "");
    let Some(mut server) = Unprivileged::start(&topology, &RIGHTS, 16 << 20) else { return };
    let taken = server.hear("queries are taken past the kernel's network stack");
    assert!(taken.contains("native") && taken.contains('1'), "{taken}");
    server.hear("what comes to other queues goes to the kernel's sockets");
    server.hear("answers on");
    topology.client("bystander");
    topology.client("flows");
}

#[test]
fn each_right_that_is_missing_is_named() {
    let Some(topology) = Topology::new(1) else { return };
    unprivileged_configuration(&topology, "mode: native", "");
    let check = |rights: &[&str], memory_octets: u64, expect: &str| {
        let Some(mut server) = Unprivileged::start(&topology, rights, memory_octets) else { return };
        server.hear(expect);
        assert!(!server.child.wait().expect("an end").success());
    };
    let enough = 16 << 20;
    check(&["net_admin", "bpf"], enough, "CAP_NET_RAW is needed");
    check(&["net_raw", "bpf"], enough, "CAP_BPF and CAP_NET_ADMIN are needed");
    check(&["net_raw", "net_admin"], enough, "CAP_BPF and CAP_NET_ADMIN are needed");
    check(&RIGHTS, 1 << 20, "too much locked memory; raise LimitMEMLOCK or grant CAP_IPC_LOCK");
}

#[test]
fn a_mode_that_is_demanded_and_not_there_is_an_error() {
    let Some(topology) = Topology::new(1) else { return };
    let config = topology.folder.path().join("gannet.yaml");
    let folder = topology.folder.path().display();
    // Pairs of virtual interfaces have no zero-copy mode.
    let yaml = format!(
        "server: {{state-directory: \"{folder}\", user: root}}\nlisten: [\"{}:53\"]\nxdp: {{interfaces: s0, mode: zerocopy}}\n",
        SERVER[0]
    );
    std::fs::write(&config, yaml).expect("a writable directory");
    let output = Command::new("ip")
        .args(["netns", "exec", &topology.server])
        .arg(testkit::program::gannet())
        .args(["run", "--socket", &format!("{folder}/control.sock"), "-c"])
        .arg(config)
        .output()
        .expect("ip runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let expected = "the interface s0 cannot be used: queue 0: cannot bind to the queue: the driver does not support this mode";
    assert!(said.contains(expected), "{said}");
}
