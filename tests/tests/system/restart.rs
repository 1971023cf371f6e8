//! The built program stops, starts again, and knows what it knew.

use testkit::{Ask, Script, Server, Stub, forwarding};
use wire::{Rcode, Rtype};

fn ask(name: &str) -> Ask {
    Ask::new(name, Rtype::A).edns(1232)
}

#[test]
fn the_cache_survives_a_restart() {
    let mut stub = Stub::start(Script::default());
    let config = forwarding(&[&stub], "cache: {main: {dump: {file: \"@DIRECTORY@/cache.dump\"}}}");
    let server = Server::start(&config);
    for number in 0..100 {
        server.ask(&ask(&format!("n{number}.example.org")));
    }
    let (status, log, directory) = server.stop();
    assert!(status.success(), "{}", log.join("\n"));
    assert!(directory.path().join("cache.dump").is_file(), "{}", log.join("\n"));
    stub.die();
    let server = Server::start_in(directory, &config);
    for number in 0..100 {
        let heard = server.ask(&ask(&format!("n{number}.example.org")));
        assert_eq!((heard.rcode(), heard.answers().len()), (Rcode::NOERROR, 1), "n{number}: {heard:?}");
    }
}

#[test]
fn a_damaged_dump_is_put_aside_and_the_server_starts() {
    let stub = Stub::start(Script::default());
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("cache.dump"), b"this is no dump").expect("a writable directory");
    let config = forwarding(&[&stub], "cache: {main: {dump: {file: \"@DIRECTORY@/cache.dump\"}}}");
    let server = Server::start_in(directory, &config);
    assert_eq!(server.ask(&ask("example.org")).rcode(), Rcode::NOERROR);
}
