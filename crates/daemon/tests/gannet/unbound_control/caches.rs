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

    let (code, shown) = here.ours("cache_lookup www.other.example none.other.example", "");
    let lines: Vec<&str> = shown.split('\n').collect();
    let &[record, "", message, again, "", ""] = lines.as_slice() else { panic!("{shown}") };
    let is_record =
        |line: &str| line.starts_with("www.other.example.\t") && line.ends_with("\tIN\tA\t192.0.2.7");
    assert!(code == 0 && is_record(record) && is_record(again), "{shown}");
    let parts = ("msg www.other.example. IN A QR RD RA NOERROR 33152 1 ", " 0 1 0 0 -1");
    assert!(message.starts_with(parts.0) && message.ends_with(parts.1), "{shown}");

    let (code, dumped) = here.theirs("dump_cache", "");
    assert_eq!(code, 0);
    let last = Unbound::start(free_port());
    let (code, said) = last.control("load_cache", &dumped);
    assert!(code == 0 && said == "ok\n", "{said}{dumped}");
    for (name, expect) in [("www.other.example", [192, 0, 2, 7]), ("mail.other.example", [192, 0, 2, 8])] {
        assert_eq!(answer(last.port, name), (0, expect), "{name}: {dumped}");
    }
}

#[test]
fn a_server_that_validates_loads_no_answer_that_is_bogus_or_that_nobody_validated() {
    const FAILED: u8 = 2;
    // What a file says of each answer, and whether clients get it: unchecked, bogus, indeterminate,
    // insecure, and secure.
    let answers = [(0, false), (1, false), (2, true), (3, true), (5, true)];
    let line = |&(security, _): &(u8, bool)| {
        format!(
            "msg s{security}.example. IN A 33152 1 600 {security} 1 0 0 -1\ns{security}.example. IN A 0\n"
        )
    };
    let records: String = answers
        .iter()
        .map(|(security, _)| {
            format!(";rrset 600 1 0 8 0\ns{security}.example.\t600\tIN\tA\t192.0.2.{security}\n")
        })
        .collect();
    let messages: String = answers.iter().map(line).collect();
    let dump = format!(
        "START_RRSET_CACHE\n{records}END_RRSET_CACHE\nSTART_MSG_CACHE\n{messages}END_MSG_CACHE\nEOF\n"
    );
    let nobody = format!("forward-zone:\n name: .\n forward-addr: 127.0.0.1@{}\n", free_port());
    let anchor = format!(
        " do-not-query-localhost: no\n module-config: \"respip validator iterator\"\n \
         trust-anchor: \"example. DS 1 8 2 {}\"\n",
        "00".repeat(32)
    );
    for (server, validates) in [(anchor.as_str(), true), (" do-not-query-localhost: no\n", false)] {
        let here = Running::start(&Control::Unix, server, &nobody);
        assert_eq!(here.theirs("load_cache", &dump), (0, "ok\n".to_owned()));
        for (security, is_given) in answers {
            let code = here.ask(&format!("s{security}.example")).0;
            let is_given = is_given || !validates && security == 0;
            assert_eq!(code == FAILED, !is_given, "{security}, {validates}: {code}");
        }
    }
}
