//! Clients that ask all the time, while the server reads its file again, is changed, and is killed.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};

use testkit::eventually;

use super::*;
use crate::harness::{Upstream, send};

/// Clients that ask at the same time.
const CLIENTS: u32 = 3;
/// What both upstream servers and the local data say.
const ADDRESS: [u8; 4] = [192, 0, 2, 1];

/// Says that it is over when it is dropped: also when a test fails, so that nobody goes on for
/// ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Gives a command without a program in between; returns what is said.
fn says(running: &Running, command: &str) -> String {
    exchange(running, command).expect("the channel")
}

/// As [`says`], of a server that may be gone.
fn try_says(running: &Running, command: &str) -> Option<String> {
    exchange(running, command).ok().filter(|said| !said.is_empty())
}

fn exchange(running: &Running, command: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(running.server.place.path("u.sock"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("UBCT1 {command}\n").as_bytes())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// Asks for a name of the server's own and for new names of the forwarder, in turn; returns how
/// often.
fn ask_all_the_time(port: u16, client: u32, is_over: &AtomicBool) -> u32 {
    let mut asked = 0;
    while !is_over.load(Ordering::Relaxed) {
        for name in ["www.static.example".to_owned(), format!("n{client}-{asked}.fwd.example")] {
            // There is one try: a query without a reply panics.
            let (reply, _) = ask(port, &name);
            assert_eq!((reply[3] & 15, &reply[reply.len() - 4..]), (0, &ADDRESS[..]), "{name}");
            asked += 1;
        }
    }
    asked
}

/// Starts a server with a forwarder, over a Unix socket.
fn started(upstream: &Upstream, server: &str) -> Running {
    Running::start(
        &Control::Unix,
        &format!(" do-not-query-localhost: no\n{server}"),
        &format!("forward-zone:\n name: fwd.example\n forward-addr: 127.0.0.1@{}\n", upstream.address.port()),
    )
}

#[test]
fn no_query_is_lost_and_no_change_forgotten_while_it_is_changed_and_read_again_under_load() {
    let upstream = Upstream::start();
    let running = started(&upstream, "");
    let (is_over, port) = (AtomicBool::new(false), running.port);
    let asked: u32 = thread::scope(|scope| {
        let is_over = &is_over;
        let over = Over(is_over);
        let clients: Vec<ScopedJoinHandle<'_, u32>> =
            (0..CLIENTS).map(|client| scope.spawn(move || ask_all_the_time(port, client, is_over))).collect();
        // Each of these forgets what was changed, as there.
        for (round, again) in ["reload", "fast_reload", "reload_keep_cache", "reload"].into_iter().enumerate()
        {
            change_by_three(&running, &upstream, round);
            assert_eq!(says(&running, again).lines().last(), Some("ok"), "{again}");
            assert_eq!(says(&running, "list_changes"), "", "{again}");
            assert_eq!(running.ask(&format!("a{round}-0.static.example")).0, NXDOMAIN, "{again}");
        }
        // SIGHUP answers nobody.
        change_by_three(&running, &upstream, 9);
        running.server.signal(libc::SIGHUP);
        eventually("it reads its file again", || says(&running, "list_changes").is_empty());
        drop(over);
        clients.into_iter().map(|client| client.join().expect("every query was answered")).sum()
    });
    assert!(asked > 100, "{asked} queries");
}

/// Three at once make changes; each holds from its acknowledgement on, and all of them hold in the
/// end.
fn change_by_three(running: &Running, upstream: &Upstream, round: usize) {
    let forwarder = upstream.address.port();
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..8_u8 {
                let name = format!("a{round}-{n}.static.example");
                assert_eq!(says(running, &format!("local_data {name} A 192.0.2.{n}")), "ok\n");
                assert_eq!(running.ask(&name), (0, [192, 0, 2, n]), "{name}");
            }
        });
        scope.spawn(move || {
            for n in 0..8 {
                let zone = format!("z{round}-{n}.example");
                assert_eq!(says(running, &format!("local_zone {zone} always_nxdomain")), "ok\n");
                assert_eq!(running.ask(&format!("www.{zone}")).0, NXDOMAIN, "{zone}");
            }
        });
        scope.spawn(move || {
            for n in 0..8 {
                let zone = format!("f{round}-{n}.example");
                assert_eq!(says(running, &format!("forward_add {zone} 127.0.0.1@{forwarder}")), "ok\n");
                assert_eq!(running.ask(&format!("www.{zone}")), (0, ADDRESS), "{zone}");
            }
        });
    });
    for n in 0..8_u8 {
        assert_eq!(running.ask(&format!("a{round}-{n}.static.example")), (0, [192, 0, 2, n]));
        assert_eq!(running.ask(&format!("x.z{round}-{n}.example")).0, NXDOMAIN);
        assert_eq!(running.ask(&format!("x.f{round}-{n}.example")), (0, ADDRESS));
    }
    let changes = says(running, "list_changes");
    assert_eq!(changes.lines().count(), 24, "{changes}");
}

/// What is written to a file is there after a kill; what is laid over the files is not, as with
/// Unbound, and the server starts as its files say.
#[test]
fn after_a_kill_under_load_it_starts_with_what_was_acknowledged_on_disk() {
    let upstream = Upstream::start();
    let mut running = started(&upstream, " answer-cookie: yes\n cookie-secret-file: cookies\n");
    for round in 0..3_u32 {
        let (is_over, made, port) = (AtomicBool::new(false), AtomicU32::new(0), running.port);
        let acknowledged: BTreeSet<String> = thread::scope(|scope| {
            let (running, is_over, made) = (&running, &is_over, &made);
            let over = Over(is_over);
            // Whoever waits for a reply when the server is killed waits in vain.
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let client = send(port, "www.static.example");
                    client.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
                    let _ = client.recv(&mut [0; 512]);
                }
            });
            let changes = scope.spawn(move || {
                let mut last = BTreeSet::new();
                for number in 0..u32::MAX {
                    let secret = format!("{:032x}", (u128::from(round) << 64) + u128::from(number) + 1);
                    let said = try_says(running, &format!("local_data k{number}.static.example A 192.0.2.9"))
                        .and_then(|_| try_says(running, &format!("add_cookie_secret {secret}")));
                    // Killed in between.
                    let Some(said) = said else { return last };
                    assert_eq!(said, "ok\n");
                    last = BTreeSet::from([secret]);
                    made.fetch_add(1, Ordering::Relaxed);
                }
                last
            });
            eventually("changes are made", || made.load(Ordering::Relaxed) >= 5);
            running.server.signal(libc::SIGKILL);
            drop(over);
            changes.join().expect("no panic")
        });
        let Running { server, port, control_port } = running;
        let place = server.end_in_place();
        let file = std::fs::read_to_string(place.path("cookies")).unwrap();
        // One more may have got there before its acknowledgement.
        let staged: Vec<u128> = file.lines().map(|line| u128::from_str_radix(line, 16).unwrap()).collect();
        for secret in acknowledged {
            let secret = u128::from_str_radix(&secret, 16).unwrap();
            assert!(staged.iter().any(|it| (secret..=secret + 1).contains(it)), "{secret:x}: {file}");
        }
        let conf = place.path("unbound.conf");
        let server = Server::start_with(place, |command| {
            command.args(["unbound", "-d", "-c"]).arg(&conf);
        });
        running = Running { server, port, control_port };
        let shown = says(&running, "print_cookie_secrets");
        for secret in &staged {
            assert!(shown.contains(&format!("{secret:032x}")), "{shown}: {file}");
        }
        assert_eq!(running.ask("www.static.example"), (0, ADDRESS));
        assert_eq!(running.ask("www.fwd.example"), (0, ADDRESS));
        assert_eq!(running.ask("k0.static.example").0, NXDOMAIN);
        assert_eq!(says(&running, "list_changes"), "");
    }
}
