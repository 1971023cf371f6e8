//! Clients that ask all the time, while the server reads its file again, is changed, and is killed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// How often the server is killed.
const KILLS: u64 = 8;
/// Queries between the start and a kill, at most; a change takes as long as hundreds of them.
const QUERIES_MAX: u64 = 12_000;

/// Kills the server when it is dropped: also when a test fails, so that nobody goes on for ever.
struct Kill<'a>(&'a Running);

impl Drop for Kill<'_> {
    fn drop(&mut self) {
        self.0.server.signal(libc::SIGKILL);
    }
}

/// Draws the next number below a bound from a seed (SplitMix64).
fn draw(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % bound
}

/// Returns a change of the file of secrets, and what the file has after it: the secret in use, and
/// one that is accepted besides.
fn change(secrets: &[String], number: u64, choice: u64) -> (String, Vec<String>) {
    let mut after = secrets.to_vec();
    let command = match (choice, secrets.len()) {
        (0, 2) => {
            after.swap(0, 1);
            "activate_cookie_secret".to_owned()
        }
        (1, 2) => {
            after.truncate(1);
            "drop_cookie_secret".to_owned()
        }
        _ => {
            after.truncate(1);
            after.push(format!("{number:032x}"));
            format!("add_cookie_secret {number:032x}")
        }
    };
    (command, after)
}

/// Changes secrets until the server is gone; returns how many changes were acknowledged, and what
/// the file had after the last one of them, and has if the one that came next was made.
fn change_until_killed(running: &Running, secrets: &[String], seed: u64) -> (u64, [Vec<String>; 2]) {
    let (mut secrets, mut dice) = (secrets.to_vec(), seed);
    for made in 0.. {
        let (command, after) = change(&secrets, seed + made, draw(&mut dice, 4));
        let said = try_says(running, &format!("local_data k{made}.static.example A 192.0.2.9"))
            .and_then(|_| try_says(running, &command));
        let Some(said) = said else { return (made, [secrets, after]) };
        assert_eq!(said, "ok\n", "{command}");
        secrets = after;
    }
    unreachable!("there are enough numbers")
}

/// Whenever it is killed, what was acknowledged is in the file; what is laid over the files is not
/// there any more, as with Unbound, and the server starts as its files say.
#[test]
fn whenever_it_is_killed_under_load_every_acknowledged_change_on_disk_is_there() {
    let upstream = Upstream::start();
    let mut running = started(&upstream, " answer-cookie: yes\n cookie-secret-file: cookies\n");
    let (mut dice, mut secrets, mut made) = (1, Vec::new(), 0);
    for kill in 1..=KILLS {
        let (queries, port) = (draw(&mut dice, QUERIES_MAX), running.port);
        let (acknowledged, expect) = thread::scope(|scope| {
            let running = &running;
            let secrets = &secrets;
            let killing = Kill(running);
            let changes = scope.spawn(move || change_until_killed(running, secrets, kill << 32));
            for _ in 0..queries {
                assert_eq!(running.ask("www.static.example"), (0, ADDRESS));
            }
            // Whoever waits for a reply when it is killed waits in vain.
            let _client = send(port, "www.static.example");
            drop(killing);
            changes.join().expect("no panic")
        });
        made += acknowledged;
        let Running { server, port, control_port } = running;
        let place = server.end_in_place();
        let file = std::fs::read_to_string(place.path("cookies")).unwrap_or_default();
        secrets = file.lines().map(str::to_owned).collect();
        assert!(
            expect.contains(&secrets),
            "kill {kill} after {queries} queries: {secrets:?}, not {expect:?}"
        );
        let conf = place.path("unbound.conf");
        let server = Server::start_with(place, |command| {
            command.args(["unbound", "-d", "-c"]).arg(&conf);
        });
        running = Running { server, port, control_port };
        let shown = says(&running, "print_cookie_secrets");
        assert!(secrets.iter().all(|secret| shown.contains(secret)), "{shown}: {file}");
        assert_eq!(running.ask("www.static.example"), (0, ADDRESS));
        assert_eq!(running.ask("www.fwd.example"), (0, ADDRESS));
        assert_eq!(running.ask("k0.static.example").0, NXDOMAIN);
        assert_eq!(says(&running, "list_changes"), "");
    }
    assert!(made > 0, "no change was acknowledged");
}
