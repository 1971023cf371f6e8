//! Values that nothing looks at in this file, and that could not be used: the other program refuses
//! them, here each is told.

use super::clients::tags;
use super::{Lowering, access};
use crate::keywords::{self, Section};
use crate::kind::kind_of;
use crate::read::{Block, Statement, Word};

/// Hexadecimal digits of a secret for cookies (RFC 9018 §4: a key of 128 bits).
const COOKIE_SECRET_DIGITS: usize = 32;
/// Lengths of prefixes that IPv4 addresses stand behind (RFC 6052 §2.2).
const EMBEDDING_BITS: [u8; 6] = [32, 40, 48, 56, 64, 96];

impl<'a> Lowering<'a> {
    pub(super) fn check_unused(&mut self) {
        self.check_cookie_secrets();
        self.check_prefixes();
        self.check_tags_of_clients();
        self.check_tags_of_zones();
        self.check_iterations();
        self.check_redis();
        self.check_address_data();
        self.check_names_of_servers();
    }

    /// Says that a value is none that could be used.
    fn useless(&mut self, word: &Word, keyword: &str, expected: &str) {
        let message = format!("\"{}\" is no value of \"{keyword}\", and is not used", word.text);
        self.problems.push(diagnostic::Problem::warning(word.span, message).expected(expected));
    }

    fn check_cookie_secrets(&mut self) {
        if self.flag("answer-cookie").0 {
            // Then it is an error.
            return;
        }
        for word in self.all("cookie-secret").map(|it| it.word(0)) {
            let is_hex = word.text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hex || word.text.len() != COOKIE_SECRET_DIGITS {
                self.warn(word.span, "this is no secret, and is not used: expected 32 hexadecimal digits");
            }
        }
    }

    fn check_prefixes(&mut self) {
        for (keyword, is_used) in
            [("nat64-prefix", self.flag("do-nat64").0), ("dns64-prefix", self.has_module("dns64"))]
        {
            let Some(word) = self.last(keyword).filter(|_| !is_used) else { continue };
            let bits = access::prefix(&word.text).map(wire::Prefix::bits);
            if !bits.is_some_and(|bits| EMBEDDING_BITS.contains(&bits)) {
                self.useless(word, keyword, "a prefix of 32, 40, 48, 56, 64 or 96 bits");
            }
        }
    }

    /// Tags of actions and data that no zone has.
    fn check_tags_of_clients(&mut self) {
        let of_zones: Vec<&'a str> = self
            .all("local-zone-tag")
            .chain(self.all("response-ip-tag"))
            .flat_map(|it| tags(it.word(1)))
            .collect();
        let statements = |name| self.all(name).collect::<Vec<&'a Statement>>();
        let actions = [statements("access-control-tag-action"), statements("interface-tag-action")].concat();
        let data = [statements("access-control-tag-data"), statements("interface-tag-data")].concat();
        for (statement, is_action) in
            actions.iter().map(|it| (it, true)).chain(data.iter().map(|it| (it, false)))
        {
            let (tag, value) = (statement.word(1), statement.word(2));
            if of_zones.contains(&&*tag.text) {
                continue;
            }
            let keyword = statement.row.name;
            if is_action && kind_of(&value.text).is_none() {
                self.useless(value, keyword, "a type of local zones");
            } else if !is_action && !is_data(&value.text) {
                self.useless(value, keyword, "a type and data, such as \"A 192.0.2.1\"");
            } else if !self.defines(&tag.text) {
                self.warn(tag.span, format!("there is no tag \"{}\" (\"define-tag\")", tag.text));
            }
        }
    }

    fn check_tags_of_zones(&mut self) {
        for word in self.blocks(Section::Rpz).filter_map(|block| block.last("tags")) {
            for tag in tags(word) {
                if !self.defines(tag) {
                    self.warn(word.span, format!("there is no tag \"{tag}\" (\"define-tag\")"));
                }
            }
        }
    }

    fn defines(&self, tag: &str) -> bool {
        self.all("define-tag").any(|it| tags(it.word(0)).any(|defined| defined == tag))
    }

    /// Sizes of keys and numbers of iterations, in turn: the sizes rise.
    fn check_iterations(&mut self) {
        let Some(word) = self.last("val-nsec3-keysize-iterations") else { return };
        let sizes: Vec<u64> =
            word.text.split_whitespace().step_by(2).filter_map(|text| text.parse().ok()).collect();
        if sizes.windows(2).any(|pair| matches!(pair, [a, b] if a >= b)) {
            self.warn(word.span, format!("the sizes of keys in \"{}\" do not rise", word.text));
        }
    }

    fn check_redis(&mut self) {
        for block in self.blocks(Section::Cachedb) {
            for keyword in ["redis-server-port", "redis-replica-server-port"] {
                let Some(word) = block.last(keyword) else { continue };
                if keywords::size(&word.text).is_none_or(|port| !(1..=65_535).contains(&port)) {
                    self.useless(word, keyword, "1 to 65535");
                }
            }
            if let Some(word) =
                block.last("redis-timeout").filter(|word| keywords::size(&word.text) == Some(0))
            {
                self.warn(word.span, "\"redis-timeout\" is zero: expected milliseconds");
            }
        }
    }

    /// Data for addresses without an action.
    fn check_address_data(&mut self) {
        let blocks: Vec<&'a Block> =
            [Section::Server, Section::View].into_iter().flat_map(|section| self.blocks(section)).collect();
        for block in blocks {
            let known: Vec<_> =
                block.all("response-ip").filter_map(|it| access::prefix(&it.word(0).text)).collect();
            for word in block.all("response-ip-data").map(|it| it.word(0)) {
                if access::prefix(&word.text).is_some_and(|prefix| !known.contains(&prefix)) {
                    self.warn(
                        word.span,
                        format!("no \"response-ip\" says what data for {} is for", word.text),
                    );
                }
            }
        }
    }

    /// A port behind the name of a server is a part of that name.
    fn check_names_of_servers(&mut self) {
        for (section, keyword) in [(Section::ForwardZone, "forward-addr"), (Section::StubZone, "stub-addr")] {
            for word in self.blocks(section).flat_map(|block| block.all(keyword)).map(|it| it.word(0)) {
                if word.text.split_once('#').is_some_and(|(_, name)| name.contains('@')) {
                    self.warn(
                        word.span,
                        format!(
                            "the port in \"{}\" is read as a part of the name: it stands before \"#\"",
                            word.text
                        ),
                    );
                }
            }
        }
    }
}

/// Returns whether a text is a type with data; of addresses, whether they are some.
fn is_data(text: &str) -> bool {
    let Some((rtype, data)) = text.trim().split_once([' ', '\t']) else { return false };
    match rtype.to_ascii_uppercase().as_str() {
        "A" => data.trim().parse::<std::net::Ipv4Addr>().is_ok(),
        "AAAA" => data.trim().parse::<std::net::Ipv6Addr>().is_ok(),
        _ => true,
    }
}
