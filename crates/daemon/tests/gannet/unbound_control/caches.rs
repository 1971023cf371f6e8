//! A cache goes from Debian's Unbound to ours and back, as text.

use std::process::{Child, Command, Stdio};

use testkit::eventually;

use super::{Control, Running, THEIRS, with_input};
use crate::harness::{Place, ask, free_port};

/// Debian's server, which asks another for everything.
struct Unbound {
    place: Place,
    port: u16,
    child: Child,
}

impl Unbound {
    fn start(upstream: u16) -> Self {
        let (place, port) = (Place::new(), free_port());
        let conf = place.write(
            "unbound.conf",
            &format!(
                "server:\n interface: 127.0.0.1@{port}\n username: \"\"\n chroot: \"\"\n directory: \"{0}\"\n \
                 pidfile: \"{0}/pid\"\n use-syslog: no\n num-threads: 1\n module-config: \"iterator\"\n \
                 do-not-query-localhost: no\n outbound-msg-retry: 1\n\
                 remote-control:\n control-enable: yes\n control-interface: {0}/u.sock\n\
                 forward-zone:\n name: .\n forward-addr: 127.0.0.1@{upstream}\n",
                place.path("").display()
            ),
        );
        let mut command = Command::new("/usr/sbin/unbound");
        command.args(["-d", "-p", "-c"]).arg(&conf).stderr(Stdio::null());
        let unbound = Self { child: command.spawn().unwrap(), place, port };
        eventually("it starts", || unbound.control("status", "").0 == 0);
        unbound
    }

    fn control(&self, command: &str, input: &str) -> (i32, String) {
        let (conf, socket) = (self.place.path("unbound.conf"), self.place.path("u.sock"));
        with_input(Command::new(THEIRS).arg("-c").arg(conf).arg("-s").arg(socket).arg(command), input)
    }
}

impl Drop for Unbound {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the code and the last four octets of a reply.
fn answer(port: u16, name: &str) -> (u8, [u8; 4]) {
    let (reply, _) = ask(port, name);
    (reply[3] & 15, reply[reply.len() - 4..].try_into().unwrap())
}

#[test]
fn what_unbound_has_dumped_is_loaded_here_and_what_is_dumped_here_unbound_loads() {
    const FAILED: u8 = 2;
    let answers = " local-zone: other.example static\n local-data: \"www.other.example A 192.0.2.7\"\n \
                   local-data: \"mail.other.example A 192.0.2.8\"\n";
    let upstream = Running::start(&Control::Unix, answers, "");
    let first = Unbound::start(upstream.port);
    assert_eq!(answer(first.port, "www.other.example"), (0, [192, 0, 2, 7]));
    assert_eq!(answer(first.port, "mail.other.example"), (0, [192, 0, 2, 8]));
    let (code, dumped) = first.control("dump_cache", "");
    assert!(code == 0 && dumped.contains("www.other.example."), "{dumped}");

    let nobody = format!("forward-zone:\n name: .\n forward-addr: 127.0.0.1@{}\n", free_port());
    let here = Running::start(&Control::Unix, " do-not-query-localhost: no\n", &nobody);
    assert_eq!(here.theirs("load_cache", &dumped), (0, "ok\n".to_owned()));
    for (name, expect) in [("www.other.example", [192, 0, 2, 7]), ("mail.other.example", [192, 0, 2, 8])] {
        assert_eq!(here.ask(name), (0, expect), "{name}: {dumped}");
    }
    assert_eq!(here.ask("none.other.example").0, FAILED, "nobody is there to ask");

    let (code, dumped) = here.theirs("dump_cache", "");
    assert_eq!(code, 0);
    let last = Unbound::start(free_port());
    let (code, said) = last.control("load_cache", &dumped);
    assert!(code == 0 && said == "ok\n", "{said}{dumped}");
    for (name, expect) in [("www.other.example", [192, 0, 2, 7]), ("mail.other.example", [192, 0, 2, 8])] {
        assert_eq!(answer(last.port, name), (0, expect), "{name}: {dumped}");
    }
}
