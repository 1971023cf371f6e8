//! The built program with a second-level cache, in a real Redis.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use tempfile::TempDir;
use testkit::redis::{MuteRedis, Redis};
use testkit::{Answer, Ask, Script, Server, Stub, UdpClient, contains, eventually, is_installed};
use wire::{Rcode, Rtype};

/// Starts a server of `example.org`.
fn authority() -> Stub {
    Stub::start(Script::always(Answer::a(300, Ipv4Addr::new(192, 0, 2, 7)).authoritative()))
}

/// Starts a resolver that asks `authority`, with more settings of its second-level cache.
fn resolver(authority: &Stub, second_level: &str) -> Server {
    Server::start(&yaml(authority, second_level))
}

fn yaml(authority: &Stub, second_level: &str) -> String {
    format!(
        "server: {{workers: 1, state-directory: \"@DIRECTORY@\"}}\nlisten: [\"@ADDRESS@\"]\n\
         resolvers: {{default: {{zones: {{example.org: {{stub: \"{}\"}}}}, ask-loopback: true, priming: false, \
                      validation: \"off\", second-level-cache: {{{second_level}}}}}}}\n\
         policy: {{main: [recurse]}}\n",
        authority.address()
    )
}

/// Returns what the program counts by this name.
fn count(server: &Server, name: &str) -> u64 {
    let stats = server.command(&["stats", "--prometheus"]);
    let text = String::from_utf8(stats.stdout).expect("text");
    let line = format!("gannet_resolver_second_level_{name}_total ");
    text.lines().filter_map(|shown| shown.strip_prefix(&line)?.parse::<u64>().ok()).sum()
}

/// Returns how often the server of the zone was asked for a name.
fn times_asked(authority: &Stub, qname: &str) -> usize {
    authority.count(&format!("{qname}."))
}

fn has_logged(server: &mut Server, part: &str) -> bool {
    server.log().iter().any(|line| line.contains(part))
}

fn ask(server: &Server, qname: &str) -> Vec<String> {
    let heard = UdpClient::connect(server.address()).ask(&Ask::new(qname, Rtype::A));
    assert_eq!(heard.rcode(), Rcode::NOERROR, "{heard:?}");
    heard.answers()
}

#[test]
fn what_one_server_has_found_another_one_has_from_redis() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start());
    let settings = format!("server: \"{}\"", redis.place());
    let first = resolver(&authority, &settings);
    assert_eq!(ask(&first, "www.example.org"), ["www.example.org. 300 A 192.0.2.7"]);
    eventually("the answer is stored", || redis.keys() == 1);
    assert_eq!(times_asked(&authority, "www.example.org"), 1);
    let second = resolver(&authority, &settings);
    let answers = ask(&second, "www.example.org");
    contains(&answers[0], "192.0.2.7");
    assert_eq!(times_asked(&authority, "www.example.org"), 1, "nobody was asked again");
    assert_eq!(count(&second, "hits"), 1);
    assert_eq!(count(&first, "hits"), 0);
    assert_eq!(count(&first, "stored"), 1);
}

#[test]
fn a_password_a_database_and_a_socket_are_used() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start_with_password("open sesame"));
    let settings = format!("server: \"{}\", password: open sesame, database: 5", redis.socket());
    let server = resolver(&authority, &settings);
    ask(&server, "www.example.org");
    eventually("the answer is stored", || count(&server, "stored") == 1);
    assert_eq!(redis.keys(), 0, "the first database has nothing");
    let mut wrong = resolver(&authority, &format!("server: \"{}\", password: wrong", redis.socket()));
    ask(&wrong, "www.example.org");
    assert_eq!(times_asked(&authority, "www.example.org"), 2, "without it Redis says nothing");
    eventually("the log says why", || has_logged(&mut wrong, "is down: AUTH: WRONGPASS"));
}

#[test]
fn entries_expire_if_that_is_wanted() {
    if !is_installed("redis-server") {
        return;
    }
    let key = key_of("www.example.org", "default");
    for (setting, expires) in [("expire: true", true), ("expire: false", false)] {
        let (authority, redis) = (authority(), Redis::start());
        let server = resolver(&authority, &format!("server: \"{}\", {setting}", redis.place()));
        ask(&server, "www.example.org");
        eventually("the answer is stored", || redis.keys() == 1);
        let seconds: i64 = String::from_utf8(redis.command(&[b"TTL", key.as_bytes()]))
            .expect("text")
            .parse()
            .expect("a number");
        assert_eq!((1..=300).contains(&seconds), expires, "{seconds}");
    }
}

#[test]
fn keys_and_values_are_those_of_unbound() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start());
    let server = resolver(&authority, &format!("server: \"{}\", secret: seed", redis.place()));
    ask(&server, "WWW.example.org");
    eventually("the answer is stored", || redis.keys() == 1);
    let value = redis.command(&[b"GET", key_of("www.example.org", "seed").as_bytes()]);
    let (message, times) = value.split_at(value.len() - 16);
    let message = wire::Message::parse(message).expect("a message");
    assert_eq!(message.records().count(), 1);
    let [written, ends] =
        [&times[..8], &times[8..]].map(|octets| u64::from_be_bytes(octets.try_into().expect("8")));
    assert_eq!(ends - written, 300);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    assert!(now.abs_diff(written) < 60, "{now} {written}");
}

#[test]
fn a_replica_is_asked_and_is_not_written_to() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis, replica) = (authority(), Redis::start(), Redis::start());
    let settings = format!("server: \"{}\", replica: {{server: \"{}\"}}", redis.place(), replica.place());
    let server = resolver(&authority, &settings);
    ask(&server, "www.example.org");
    eventually("the answer is stored", || redis.keys() == 1);
    assert_eq!(replica.keys(), 0);
    let other = resolver(&authority, &settings);
    ask(&other, "www.example.org");
    assert_eq!(times_asked(&authority, "www.example.org"), 2, "the replica does not have it");
    // The replica learns it.
    let key = key_of("www.example.org", "default");
    let value = redis.command(&[b"GET", key.as_bytes()]);
    replica.command(&[b"SET", key.as_bytes(), &value]);
    let third = resolver(&authority, &settings);
    ask(&third, "www.example.org");
    assert_eq!((times_asked(&authority, "www.example.org"), count(&third, "hits")), (2, 1));
}

#[test]
fn what_is_only_read_is_not_written() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start());
    let server = resolver(&authority, &format!("server: \"{}\", store: false", redis.place()));
    ask(&server, "www.example.org");
    assert!(count(&server, "queries") >= 1);
    assert_eq!((count(&server, "stored"), redis.keys()), (0, 0));
}

#[test]
fn while_redis_is_gone_answers_come_without_it_and_with_it_when_it_is_back() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start());
    let (place, address) = (redis.place(), redis.address());
    let mut server = resolver(&authority, &format!("server: \"{place}\""));
    ask(&server, "a.example.org");
    eventually("the answer is stored", || redis.keys() == 1);
    drop(redis);
    for number in 0..50 {
        ask(&server, &format!("n{number}.example.org"));
    }
    eventually("the log says so", || has_logged(&mut server, "is down"));
    assert_eq!(times_asked(&authority, "n49.example.org"), 1);
    let redis = Redis::start_at(address, None);
    let mut number = 0;
    eventually("answers are stored again", || {
        number += 1;
        ask(&server, &format!("m{number}.example.org"));
        redis.keys() > 0
    });
    eventually("the log says so", || has_logged(&mut server, "answers again"));
}

#[test]
fn a_redis_that_stops_in_the_middle_holds_up_nobody_for_long() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start());
    let server = resolver(&authority, &format!("server: \"{}\", command-timeout: 300ms", redis.place()));
    ask(&server, "a.example.org");
    eventually("the answer is stored", || redis.keys() == 1);
    redis.signal("-STOP");
    for number in 0..50 {
        ask(&server, &format!("n{number}.example.org"));
    }
    assert!(count(&server, "timeouts") >= 1);
    assert!(count(&server, "skipped") >= 1, "most questions do not wait");
    redis.signal("-CONT");
    let mut number = 0;
    let stored = count(&server, "stored");
    eventually("answers are stored again", || {
        number += 1;
        ask(&server, &format!("m{number}.example.org"));
        count(&server, "stored") > stored
    });
}

#[test]
fn a_redis_that_takes_connections_and_never_answers_holds_up_nobody() {
    let (authority, redis) = (authority(), MuteRedis::start());
    let server = resolver(&authority, &format!("server: \"{}\", connect-timeout: 10s", redis.place()));
    eventually("it is connected to", || redis.connections() > 0);
    for number in 0..20 {
        ask(&server, &format!("n{number}.example.org"));
    }
    // At most one of them waited, and no longer than a command may take.
    assert!(count(&server, "skipped") >= 19);
    assert_eq!(count(&server, "hits"), 0);
}

#[test]
fn values_that_are_none_are_not_believed() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis) = (authority(), Redis::start());
    let server = resolver(&authority, &format!("server: \"{}\"", redis.place()));
    let huge = vec![b'x'; 1 << 20];
    for (number, value) in [&b""[..], b"short", &[0; 40], &[255; 300], &huge].into_iter().enumerate() {
        let qname = format!("n{number}.example.org");
        redis.command(&[b"SET", key_of(&qname, "default").as_bytes(), value]);
        assert_eq!(ask(&server, &qname).len(), 1);
        assert_eq!(times_asked(&authority, &qname), 1);
    }
    assert_eq!(count(&server, "hits"), 0);
}

#[test]
fn a_reload_that_changes_the_cache_loses_no_question() {
    if !is_installed("redis-server") {
        return;
    }
    let (authority, redis, mute) = (authority(), Redis::start(), MuteRedis::start());
    let directory = TempDir::new().expect("a temporary directory");
    let slow = format!("server: \"{}\", connect-timeout: 60s, command-timeout: 60s", mute.place());
    let server = Server::start_in(directory, &yaml(&authority, &format!("server: \"{}\"", redis.place())));
    server.write_config(&yaml(&authority, &slow));
    assert!(server.command(&["reload"]).status.success());
    let asked = count(&server, "queries");
    let client = UdpClient::connect(server.address());
    client.send(&Ask::new("www.example.org", Rtype::A).bytes());
    eventually("it is connected to", || mute.connections() > 0);
    eventually("a question waits for it", || count(&server, "queries") > asked);
    server.write_config(&yaml(&authority, &format!("server: \"{}\"", redis.place())));
    assert!(server.command(&["reload"]).status.success());
    assert_eq!(client.receive().rcode(), Rcode::NOERROR);
    ask(&server, "b.example.org");
    eventually("the new one is used", || redis.keys() >= 1);
}

/// Returns the key of a name's addresses.
fn key_of(qname: &str, secret: &str) -> String {
    let mut octets = testkit::name(qname).as_name().as_bytes().to_vec();
    octets.extend([0, 1, 0, 1]);
    octets.extend(secret.as_bytes());
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &octets);
    hash.as_ref().iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02X}");
        text
    })
}
