//! The program in the place of Unbound.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use crate::harness::{PATIENCE, Place, text};

/// A configuration as Unbound has it: it listens on a port, and knows one name.
fn config(port: u16) -> String {
    format!(
        "server:\n\tinterface: 127.0.0.1@{port}\n\tusername: \"\" # stay\n\tmodule-config: 'iterator'\n\
         \tlocal-data: \"www.example.org. 60 IN A 192.0.2.7\"\n"
    )
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn called_by_its_name_it_runs_with_its_configuration() {
    let place = Place::new();
    let port = free_port();
    let file = place.write("unbound.conf", &config(port));
    let link = place.path("unbound");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gannet"), &link).unwrap();
    let usual = place.gannet();
    let mut command = Command::new(&link);
    command.current_dir(place.path("")).args(["-d", "-c"]).arg(&file).stderr(Stdio::piped());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("start of service")));
    let said = said.expect("it starts").unwrap();
    assert!(said.starts_with('[') && said.contains(&format!("unbound[{}:0] info: ", child.id())), "{said}");

    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
    client.send(question).unwrap();
    let mut reply = [0; 512];
    let len = client.recv(&mut reply).unwrap();
    assert!(reply[..len].ends_with(&[192, 0, 2, 7]), "{:?}", &reply[..len]);

    let ended = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn its_configuration_is_checked_and_imported() {
    let place = Place::new();
    place.write("unbound.conf", &config(5353));
    let (code, stdout, _) = text(&place.run(&["check", "--unbound", "unbound.conf"]));
    assert_eq!((code, &*stdout), (0, "unbound.conf: no mistakes found\n"));
    let (code, stdout, stderr) =
        text(&place.run(&["import", "unbound", "unbound.conf", "--to", "gannet.yaml"]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (code, stdout, _) = text(&place.run(&["check", "gannet.yaml"]));
    assert_eq!((code, &*stdout), (0, "gannet.yaml: no mistakes found\n"));
    place.write("wrong.conf", "server:\n  prot: 53\n  do-ip6: nein\n");
    let (code, stdout, _) = text(&place.run(&["check", "--unbound", "wrong.conf", "--format", "line"]));
    assert_eq!(code, 1);
    assert_eq!(
        stdout,
        "wrong.conf:2:3: error: unknown keyword \"prot\"\n\
         wrong.conf:3:11: error: \"nein\" is no value of \"do-ip6\": expected \"yes\" or \"no\"\n"
    );
    let (code, stdout, _) = text(&place.run(&["unbound", "-V"]));
    assert!(code == 0 && stdout.starts_with("Version ") && stdout.contains("validator iterator"), "{stdout}");
}
