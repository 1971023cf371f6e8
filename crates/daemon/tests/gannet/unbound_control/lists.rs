//! Lists for commands that nobody ends.

use testkit::eventually;

use super::*;

/// Sends lines to a command until nobody takes more; returns what is said then.
fn send_until_refused(mut stream: UnixStream, command: &str, line: impl Fn(usize) -> String) -> String {
    let mut sent = stream.write_all(format!("UBCT1 {command}\n").as_bytes());
    for begin in (0..).step_by(1000) {
        if sent.is_err() {
            break;
        }
        let lines: String = (begin..begin + 1000).map(&line).collect();
        sent = stream.write_all(lines.as_bytes());
    }
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

/// Returns what a line of the status of a process says in KiB.
fn memory_kib(running: &Running, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn endless_lists_take_no_more_memory_than_there_is_for_lists_and_hold_up_nobody() {
    /// What is kept of all lists, what waits between a socket and its command, and what the
    /// allocator does not give back.
    const MEMORY_KIB_MAX: u64 = (256 + 64) << 10;
    let running = Running::start(&Control::Unix, "", "");
    let socket = running.server.place.path("u.sock");
    let connect = || {
        let stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    // Ten of the twelve lists that there may be, with a line each.
    let mut begun: Vec<UnixStream> = (0..10)
        .map(|number| {
            let mut stream = connect();
            write!(stream, "UBCT1 local_datas\nheld{number}.example A 192.0.2.3\n").unwrap();
            stream
        })
        .collect();
    let before = memory_kib(&running, "VmRSS:");
    // Records of which none is like another.
    let owner = format!("{0}.{0}.{0}.example", "a".repeat(63));
    let endless = ["load_cache\nSTART_RRSET_CACHE", "local_datas"].map(|command| {
        let (stream, owner) = (connect(), owner.clone());
        std::thread::spawn(move || {
            send_until_refused(stream, command, |number| {
                format!("n{number}.{owner}. 60 IN A 192.0.2.{}\n", number % 256)
            })
        })
    });
    while endless.iter().any(|thread| !thread.is_finished()) {
        assert!(running.is_well());
        assert_eq!(running.ours("local_data b.example A 192.0.2.4", ""), (0, "ok\n".to_owned()));
        // Whoever is silent for long is cut off.
        begun.iter_mut().for_each(|stream| stream.write_all(b"\n").unwrap());
    }
    for thread in endless {
        let said = thread.join().unwrap();
        let others = "error other lists have the memory for lists: try again when they are done\n";
        assert!(["error the list is too long\n", others].contains(&&*said), "{said}");
    }
    let most = memory_kib(&running, "VmHWM:") - before;
    assert!(most < MEMORY_KIB_MAX, "{most} KiB");
    // Whoever was there all the time is heard to the end.
    for mut stream in begun {
        stream.write_all(b"\x04\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, "added 1 datas\n");
    }
    let (_, data) = running.ours("list_local_data", "");
    assert!(data.contains("held0.example.") && !data.contains(&owner), "{data}");
}

#[test]
fn an_answer_with_endless_sets_of_records_and_more_lists_than_there_may_be_are_refused() {
    let running = Running::start(&Control::Unix, "", "");
    let connect = || running.connect();
    let command = "load_cache\nSTART_RRSET_CACHE\nEND_RRSET_CACHE\nSTART_MSG_CACHE\n\
                   msg a.example. IN A 33152 1 60 0 1 0 0 -1";
    let said = send_until_refused(connect(), command, |_| format!("{}.example. IN A 0\n", "a".repeat(2000)));
    assert_eq!(said, "error the list is too long\n");
    let begun: Vec<UnixStream> = (0..12)
        .map(|_| {
            let mut stream = connect();
            stream.write_all(b"UBCT1 local_datas\n").unwrap();
            stream
        })
        .collect();
    let heard = |mut stream: UnixStream| {
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    // Of a thirteenth and those after it, none is read. The server may not have seen the twelfth
    // yet.
    eventually("too many lists", || {
        let mut more = connect();
        more.write_all(b"UBCT1 local_datas\n\x04\n").unwrap();
        heard(more).starts_with("error others send lists")
    });
    drop(begun);
    // Others may send theirs again.
    eventually("room for a list", || {
        let said = running.ours("local_datas", "a.example A 192.0.2.3\n");
        said == (0, "added 1 datas\n".to_owned())
    });
}
