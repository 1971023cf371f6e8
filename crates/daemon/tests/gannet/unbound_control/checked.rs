//! `unbound-checkconf`: what is wrong with a file, and the values of its keywords.

use std::process::Command;

use crate::harness::{Place, text};

#[test]
fn configurations_are_checked_as_debian_s_program_does() {
    let place = Place::new();
    let good = place.write(
        "good.conf",
        "server:\n username: \"\"\n pidfile: /run/x.pid\n interface: 127.0.0.1\n interface: ::1\n",
    );
    let bad = place.write("bad.conf", "server:\n prot: 53\n do-ip6: nein\n");
    let check = |arguments: &[&str]| {
        let ours = text(&place.run(&[&["unbound", "checkconf"], arguments].concat()));
        let theirs = text(&Command::new("unbound-checkconf").args(arguments).output().unwrap());
        (ours, theirs)
    };
    let good = good.display().to_string();
    for arguments in [
        vec![&*good],
        vec!["-o", "pidfile", &good],
        vec!["-o", "interface", &good],
        vec!["-o", "auto-trust-anchor-file", &good],
        vec!["-o", "do-ip6", &good],
        vec!["-o", "num-threads", &good],
        vec![&good, "-o", "interface"],
        vec!["-o", "interface", &good, "-f"],
    ] {
        let (ours, theirs) = check(&arguments);
        assert_eq!((ours.0, &ours.1), (theirs.0, &theirs.1), "{arguments:?}: {}", ours.2);
    }
    assert_eq!(check(&["-q", &good]).0, (0, String::new(), String::new()));
    // What the log says at a start with it.
    let warned = "server:\n username: \"\"\n pidfile: \"\"\n msg-cache-slabs: 2\n module-config: \"respip iterator\"\n\
                  rpz:\n name: r.example\n zonefile: /nonexistent/r\n\
                  stub-zone:\n name: s.example\n stub-addr: fe80::1%nosuchdevice@5353\n\
                  forward-zone:\n name: f.example\n forward-addr: fe80::1%lo\n";
    let warned = place.write("warned.conf", warned).display().to_string();
    let (ours, _) = check(&[&warned]);
    assert_eq!((ours.0, ours.1), (0, format!("unbound-checkconf: no errors in {warned}\n")));
    for line in [
        ":4: warning: \"msg-cache-slabs\" has no effect",
        ":8: warning: cannot read \"/nonexistent/r\": no such file or directory\n",
        ":11: warning: there is no network device \"nosuchdevice\" now: \"fe80::1%nosuchdevice\" is not reached\n",
    ] {
        assert!(ours.2.contains(line), "{line}: {}", ours.2);
    }
    assert_eq!(check(&["-q", &warned]).0, (0, String::new(), String::new()));
    // Octets are numbers, and lists are printed from the last to the first.
    let lists = "server:\n msg-cache-size: 8m\n private-address: 192.0.2.0/24\n private-address: 10.0.0.0/8\n \
                 define-tag: \"a b\"\n username: \"\"\n";
    let lists = place.write("lists.conf", lists).display().to_string();
    for (option, code, expect) in [
        ("msg-cache-size", 0, "8388608\n"),
        ("neg-cache-size", 0, "1048576\n"),
        ("private-address", 0, "10.0.0.0/8\n192.0.2.0/24\n"),
        ("define-tag", 0, "a\nb\n"),
        ("redis-server-host", 0, "127.0.0.1\n"),
        ("username", 0, "\n"),
        ("local-zone", 1, ""),
        ("caps-exempt", 1, ""),
    ] {
        let (ours, _) = check(&["-o", option, &lists]);
        assert_eq!((ours.0, &*ours.1), (code, expect), "{option}: {}", ours.2);
    }
    // Where files are to be, and none of them is there yet.
    let new = "server:\n directory: \"/nonexistent\"\n username: nobody-of-ours\n pidfile: p.pid\n \
               auto-trust-anchor-file: root.key\nremote-control:\n control-enable: yes\n";
    let new = place.write("new.conf", new).display().to_string();
    for option in ["auto-trust-anchor-file", "pidfile", "directory", "control-enable"] {
        let (ours, theirs) = check(&["-o", option, &new]);
        assert_eq!((ours.0, &ours.1), (theirs.0, &theirs.1), "{option}: {}", ours.2);
    }
    assert_eq!(check(&[&new]).0.0, 1);
    let (ours, theirs) = check(&["-o", "nosuch", &good]);
    assert_eq!((ours.0, theirs.0), (1, 1));
    assert!(ours.2.contains("fatal error: cannot print option 'nosuch'"), "{}", ours.2);
    let bad = bad.display().to_string();
    let (ours, theirs) = check(&[&bad]);
    assert_eq!((ours.0, theirs.0), (1, 1));
    for line in [":2: error: ", ":3: error: ", "failed: 2 errors in configuration file"] {
        assert!(ours.2.contains(line), "{}", ours.2);
    }
    assert!(theirs.2.contains(":3: error: "), "{}", theirs.2);
    let (ours, theirs) = check(&["/nonexistent"]);
    assert_eq!((ours.0, theirs.0), (1, 1));
    assert!(ours.2.to_lowercase().contains("error: could not open /nonexistent: no such file"), "{}", ours.2);
}
