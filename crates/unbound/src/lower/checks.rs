//! Values that do not go together, or that name what is not there: what the other program refuses,
//! too.

use diagnostic::Problem;

use super::Lowering;
use super::clients::tags;
use crate::keywords::{self, Section};
use crate::read::Word;

/// Keywords with servers, by the sections that they are in.
const SERVERS: [(Section, &str, &str); 2] =
    [(Section::ForwardZone, "forward-addr", "forward-host"), (Section::StubZone, "stub-addr", "stub-host")];

impl Lowering<'_> {
    pub(super) fn check_together(&mut self) {
        self.check_sizes();
        self.check_proxies();
        self.check_tags();
        self.check_servers();
        self.check_views();
        let twice = twice(self.all("outgoing-interface").map(|it| it.word(0)));
        for word in twice {
            self.error(word.span, format!("\"outgoing-interface: {}\" is there twice", word.text));
        }
        for word in self.all("private-domain").map(|it| it.word(0)) {
            if values::name(&word.text).is_err() {
                self.error(word.span, format!("\"{}\" is not a name", word.text));
            }
        }
    }

    fn check_sizes(&mut self) {
        if let ((false, _), (false, at)) = (self.flag("do-udp"), self.flag("do-tcp")) {
            self.error(at, "\"do-udp\" and \"do-tcp\" are both off: nobody can ask");
        }
        let written = self.server().iter().rfind(|statement| statement.row.name == "msg-buffer-size");
        let buffer = written.map_or(super::default("msg-buffer-size"), |statement| &statement.word(0).text);
        let buffer = keywords::size(buffer).unwrap_or(u64::MAX);
        let (announced, at) = self.number("edns-buffer-size");
        if announced > buffer {
            let message = format!("\"edns-buffer-size\" is {announced}, and \"msg-buffer-size\" {buffer}");
            self.problems.push(Problem::error(at, message).expected(format!("at most {buffer}")));
        }
    }

    /// HTTP has headers of its own for what a proxy says.
    fn check_proxies(&mut self) {
        let https = self.number("https-port").0;
        for word in self.all("proxy-protocol-port").map(|it| it.word(0)) {
            let is_https = word.text.parse() == Ok(https);
            let usual = self.number("port").0 as u16;
            let ports = self.server().iter().filter(|it| matches!(it.row.name, "interface" | "ip-address"));
            let mut ports = ports
                .filter_map(|it| super::listening::Interface::read(&it.word(0).text, usual))
                .map(|it| it.port());
            if is_https && ports.any(|port| u64::from(port) == https) {
                self.error(word.span, "no PROXY header comes before DNS over HTTPS");
            }
        }
    }

    fn check_tags(&mut self) {
        let defined: Vec<&str> =
            self.all("define-tag").flat_map(|it| it.word(0).text.split_whitespace()).collect();
        let of_clients = self.all("access-control-tag").chain(self.all("interface-tag")).map(|it| it.word(1));
        let of_zones = self.all("local-zone-tag").chain(self.all("response-ip-tag")).map(|it| it.word(1));
        for word in of_clients.chain(of_zones) {
            for tag in tags(word).filter(|tag| !defined.contains(tag)) {
                self.error(word.span, format!("there is no tag \"{tag}\" (\"define-tag\")"));
            }
        }
    }

    fn check_servers(&mut self) {
        for (section, addresses, names) in SERVERS {
            for word in self.blocks(section).flat_map(|block| block.all(addresses)).map(|it| it.word(0)) {
                if !crate::is_address(&word.text) {
                    let problem = Problem::error(word.span, format!("\"{}\" is not an address", word.text));
                    self.problems.push(problem.expected(format!("an address, or \"{names}\"")));
                }
            }
        }
    }

    fn check_views(&mut self) {
        let names = self.blocks(Section::View).filter_map(|block| block.last("name"));
        for word in twice(names) {
            self.error(word.span, format!("there are two views \"{}\"", word.text));
        }
    }
}

/// Returns the words that are like one before them.
fn twice<'w>(words: impl Iterator<Item = &'w Word>) -> Vec<&'w Word> {
    let mut seen: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for word in words {
        if seen.contains(&&*word.text) {
            found.push(word);
        }
        seen.push(&word.text);
    }
    found
}
