//! Configurations shaped like those that people run: imported, checked, served and asked.
//!
//! Each directory of `corpus/PROGRAM` is one, as it would lie on the machine, with a file `expect`
//! beside it:
//!
//! - `import FILE`: what is imported. Without a `refused`, the import succeeds, and the checker
//!   finds nothing in what it prints.
//! - `upstream ADDRESS A [AAAA]`: a server that stands in for this one, and says this to every
//!   question.
//! - `ask NAME TYPE RCODE [DATA…]`: what a client gets, `_` for spaces in data; `ask6` over `::1`,
//!   `asktcp` over TCP, `askdnssec` with DO, `askfrom ADDRESS` from another address of this
//!   machine.
//! - `made TEXT`: what stands in the new file. `warn TEXT`: what the import says. `check TEXT`:
//!   what the checker may say.
//! - `refused TEXT`: the import fails and says this.
//!
//! Files have the ports that people use; those of the new file are replaced by free ones of the
//! loopback interface. `@DIRECTORY@` stands for the directory that everything is in.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use tempfile::TempDir;
use testkit::{Answer, Script, Server, Stub, eventually, free_address};
use wire::{Rcode, Rtype};

/// What is expected of one configuration.
#[derive(Default)]
struct Expect {
    import: String,
    upstreams: BTreeMap<String, Stub>,
    questions: Vec<String>,
    made: Vec<String>,
    warned: Vec<String>,
    checked: Vec<String>,
    refused: Vec<String>,
}

impl Expect {
    fn read(text: &str) -> Self {
        let mut expect = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.to_owned();
            match word {
                "import" => expect.import = rest,
                "upstream" => {
                    let (address, says) = rest.split_once(' ').expect("an address and what it says");
                    let says: Vec<IpAddr> =
                        says.split(' ').map(|word| word.parse().expect("an address")).collect();
                    expect.upstreams.insert(address.to_owned(), Stub::start(saying(says)));
                }
                "ask" | "ask6" | "asktcp" | "askdnssec" | "askfrom" => expect.questions.push(line.to_owned()),
                "made" => expect.made.push(rest),
                "warn" => expect.warned.push(rest),
                "check" => expect.checked.push(rest),
                "refused" => expect.refused.push(rest),
                other => panic!("{other:?} is nothing that can be expected"),
            }
        }
        let shows = !expect.questions.is_empty() || !expect.refused.is_empty();
        assert!(!expect.import.is_empty() && shows, "it shows nothing:\n{text}");
        expect
    }
}

/// A server that says the same of every name.
fn saying(addresses: Vec<IpAddr>) -> Script {
    Script::answering(move |asked| {
        let v4 = addresses.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        let v6 = addresses.iter().find_map(|address| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        });
        match (asked.qtype, v4, v6) {
            (Rtype::A, Some(address), _) => Answer::a(60, address),
            (Rtype::AAAA, _, Some(address)) => Answer::aaaa(60, address),
            _ => Answer::negative(Rcode::NOERROR, 60, 60),
        }
    })
}

/// Runs a command of the program in a directory; returns whether it succeeded, and all that it
/// said.
fn run(directory: &Path, arguments: &[&str]) -> (bool, String) {
    let output = testkit::program(directory).args(arguments).output().expect("the program starts");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Returns the new file with listeners at free addresses, upstreams that are there, and state in
/// the test's directory; and the port that it listens at over IPv6.
fn placed(made: &str, expect: &Expect) -> (String, u16) {
    let port6 = free_address().port();
    let mut section = "";
    let mut lines: Vec<String> = Vec::new();
    for line in made.lines() {
        if let Some((key, _)) =
            line.split_once(':').filter(|_| line.starts_with(|c: char| c.is_ascii_lowercase()))
        {
            section = key;
        }
        let mut line = line.to_owned();
        if section == "listen" {
            for own in ["0.0.0.0", "127.0.0.1"] {
                line = with_place(&line, own, "\"@ADDRESS@\"");
            }
            line = with_place(&line, "'[::]", &format!("'[::1]:{port6}'"));
        } else {
            for (address, stub) in &expect.upstreams {
                line = with_place(&line, address, &stub.address().to_string());
            }
        }
        // There need not be such a user here.
        if !(section == "server" && line.trim_start().starts_with("user:")) {
            lines.push(line);
        }
    }
    let made = lines.join("\n") + "\n";
    let state = "server:\n  state-directory: \"@DIRECTORY@\"\n";
    let made = match made.split_once("server:\n") {
        Some((before, after)) => format!("{before}{state}{after}"),
        None => format!("{state}\n{made}"),
    };
    (made, port6)
}

/// Replaces an address, with its port and the quotation mark behind it if there are any.
fn with_place(line: &str, address: &str, by: &str) -> String {
    let Some((before, after)) = line.split_once(address) else { return line.to_owned() };
    let after = match after.strip_prefix(':') {
        Some(port) => port.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => after,
    };
    let after = if address.starts_with('\'') { after.trim_start_matches('\'') } else { after };
    format!("{before}{by}{after}")
}

/// Returns the response code and the data of the answers, sorted.
fn answer(server: &Server, port6: u16, question: &str) -> (String, Vec<String>, Vec<String>) {
    let mut words = question.split(' ');
    let how = words.next().unwrap_or("");
    let from = if how == "askfrom" { words.next() } else { None };
    let words: Vec<&str> = words.collect();
    let [name, rtype, rcode, data @ ..] = words.as_slice() else { panic!("{question:?} is no question") };
    let at = match how {
        "ask6" => SocketAddr::from((Ipv6Addr::LOCALHOST, port6)),
        _ => server.address(),
    };
    let mut arguments = vec![*name, *rtype];
    arguments.extend(match how {
        "asktcp" => Some("+tcp"),
        "askdnssec" => Some("+dnssec"),
        _ => None,
    });
    if let Some(from) = from {
        arguments.extend(["-b", from]);
    }
    let printed = testkit::client::dig(at, &arguments);
    let found = printed.lines().find_map(|line| line.split("status: ").nth(1)?.split(',').next());
    let mut got: Vec<String> = printed
        .lines()
        .skip_while(|line| !line.starts_with(";; ANSWER SECTION"))
        .skip(1)
        .take_while(|line| !line.is_empty() && !line.starts_with(';'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.get(3) == Some(&"RRSIG") { "RRSIG".to_owned() } else { words[4..].join("_") }
        })
        .collect();
    got.sort();
    let mut wanted: Vec<String> = data.iter().map(|&word| word.to_owned()).collect();
    wanted.sort();
    wanted.insert(0, (*rcode).to_owned());
    (found.unwrap_or("").to_owned(), got, wanted)
}

fn check_one(program: &str, case: &Path) {
    let name = case.file_name().expect("a name").to_string_lossy().into_owned();
    let directory = TempDir::new().expect("a temporary directory");
    super::copy(case, directory.path(), &[("@DIRECTORY@", directory.path().display().to_string())]);
    let text = std::fs::read_to_string(directory.path().join("expect")).expect("what is expected");
    let expect = Expect::read(&text);
    let (is_imported, said) =
        run(directory.path(), &["import", program, &expect.import, "--to", "made.yaml"]);
    for warned in expect.warned.iter().chain(&expect.refused) {
        assert!(said.contains(warned.as_str()), "{program} {name}: it does not say {warned:?}:\n{said}");
    }
    assert_eq!(is_imported, expect.refused.is_empty(), "{program} {name}:\n{said}");
    if !is_imported {
        assert!(!directory.path().join("made.yaml").exists(), "{program} {name}: a file is there");
        return;
    }
    let made = std::fs::read_to_string(directory.path().join("made.yaml")).expect("the file that it wrote");
    for part in &expect.made {
        assert!(made.contains(part.as_str()), "{program} {name}: {part:?} is not in\n{made}");
    }
    let (is_right, said) = run(directory.path(), &["check", "-c", "made.yaml", "--format", "line"]);
    let unexpected = said.lines().find(|line| {
        let is_finding = line.contains(": warning: ") || line.contains(": error: ");
        is_finding && !expect.checked.iter().any(|known| line.contains(known.as_str()))
    });
    assert!(is_right && unexpected.is_none(), "{program} {name}:\n{said}\n{made}");
    let (made, port6) = placed(&made, &expect);
    let server = Server::start_in(directory, &made);
    for question in &expect.questions {
        // Signing takes its time.
        if question.starts_with("askdnssec ") {
            eventually("the zone is signed", || {
                let (rcode, got, wanted) = answer(&server, port6, question);
                [vec![rcode], got].concat() == wanted
            });
        }
        let (rcode, got, wanted) = answer(&server, port6, question);
        assert_eq!([vec![rcode], got].concat(), wanted, "{program} {name}: {question:?}\n{made}");
    }
}

fn check(program: &str) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/import/corpus").join(program);
    let cases = std::fs::read_dir(&corpus).expect("a directory of configurations");
    let mut cases: Vec<_> = cases.map(|case| case.expect("a readable directory").path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        check_one(program, &case);
    }
}

#[test]
fn what_people_run_with_mosdns_is_imported_and_served() {
    check("mosdns");
}

#[test]
fn what_people_run_with_oxidns_is_imported_and_served() {
    check("oxidns");
}

#[test]
fn what_people_run_with_knot_is_imported_and_served() {
    check("knot");
}

#[test]
fn what_people_run_with_nsd_is_imported_and_served() {
    check("nsd");
}

#[test]
fn what_people_run_with_bind_is_imported_and_served() {
    check("bind");
}

#[test]
fn what_people_run_with_erldns_is_imported_and_served() {
    check("erldns");
}

#[test]
fn places_in_a_new_file_are_replaced_with_their_ports() {
    assert_eq!(with_place("  - at: 0.0.0.0:53", "0.0.0.0", "X"), "  - at: X");
    assert_eq!(with_place("  - '[::]:5335'", "'[::]", "X"), "  - X");
    assert_eq!(
        with_place("servers: [udp://192.0.2.1, 192.0.2.2:5]", "192.0.2.2", "X"),
        "servers: [udp://192.0.2.1, X]"
    );
}
