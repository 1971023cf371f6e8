//! Sockets that the service manager opened.

use std::env;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use listen::{Bound, Kind};
use plan::listeners::{ListenerPlan, Plan, Transports};

/// Tells the child which address its sockets should have.
const EXPECTED: &str = "GANNET_TEST_ADDRESS";

#[test]
fn sockets_of_the_service_manager_are_used() {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = udp.local_addr().expect("bound");
    let Ok(tcp) = TcpListener::bind(address) else {
        // Somebody else has the port for TCP: nothing to learn here.
        return;
    };
    // What systemd does, with a shell: the sockets are descriptors 3 and 4, and the process that is
    // told so keeps its number when it becomes ours.
    let output = Command::new("sh")
        .args(["-c", r#"LISTEN_PID=$$ exec "$0" "$@" 3<&0 4<&1 0</dev/null 1>&2"#])
        .arg(env::current_exe().expect("this program has a path"))
        .args(["--exact", "activation::the_child_of_the_service_manager", "--ignored", "--nocapture"])
        .env("LISTEN_FDS", "2")
        .env("LISTEN_FDNAMES", "queries:connections")
        .env(EXPECTED, address.to_string())
        .stdin(Stdio::from(OwnedFd::from(udp)))
        .stdout(Stdio::from(OwnedFd::from(tcp)))
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("there is a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "runs only as the child of the test above"]
fn the_child_of_the_service_manager() {
    let Ok(expected) = env::var(EXPECTED) else { return };
    let expected: SocketAddr = expected.parse().expect("an address");
    let activated = listen::activation();
    let found: Vec<_> =
        activated.iter().map(|socket| (socket.name.as_str(), socket.address, socket.kind)).collect();
    assert_eq!(found, [("queries", expected, Kind::Datagrams), ("connections", expected, Kind::Connections)]);

    // Without listeners of our own they are the listeners.
    let sockets = listen::bind(&Plan::default(), 2, activated).expect("they are open already");
    let both = [Bound { address: expected, transports: Transports::UDP_AND_TCP }];
    assert_eq!(sockets.addresses(), both);
    assert_eq!(sockets.into_workers().len(), 2);

    // A listener of the same address takes them instead of failing because they are there.
    let plan = Plan { listeners: vec![ListenerPlan::new(expected)], ..Plan::default() };
    let sockets = listen::bind(&plan, 2, listen::activation()).expect("they stand in");
    assert_eq!(sockets.addresses(), both);
    assert!(sockets.unused().is_empty());

    // Another address has no use for them.
    let other = ListenerPlan::new("127.0.0.2:0".parse().expect("an address"));
    let plan = Plan { listeners: vec![other], ..Plan::default() };
    let sockets = listen::bind(&plan, 1, listen::activation()).expect("loopback has free ports");
    assert_eq!(sockets.unused().len(), 2);
}

#[test]
fn variables_meant_for_another_process_are_ignored() {
    // The test program itself was not started by a service manager.
    assert!(listen::activation().is_empty());
}
