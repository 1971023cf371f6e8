//! The servers of the root, to begin with (RFC 9609 §2.1).

use std::net::IpAddr;

use wire::NameBuf;

use crate::heap_name::HeapName;
use crate::settings::Hint;

/// Letters of the servers' names and their addresses. Source: IANA's root hints, 2026-08.
const ROOT: [(&str, [u16; 8], [u8; 4]); 13] = [
    ("a", [0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30], [198, 41, 0, 4]),
    ("b", [0x2801, 0x1b8, 0x10, 0, 0, 0, 0, 0xb], [170, 247, 170, 2]),
    ("c", [0x2001, 0x500, 2, 0, 0, 0, 0, 0xc], [192, 33, 4, 12]),
    ("d", [0x2001, 0x500, 0x2d, 0, 0, 0, 0, 0xd], [199, 7, 91, 13]),
    ("e", [0x2001, 0x500, 0xa8, 0, 0, 0, 0, 0xe], [192, 203, 230, 10]),
    ("f", [0x2001, 0x500, 0x2f, 0, 0, 0, 0, 0xf], [192, 5, 5, 241]),
    ("g", [0x2001, 0x500, 0x12, 0, 0, 0, 0, 0xd0d], [192, 112, 36, 4]),
    ("h", [0x2001, 0x500, 1, 0, 0, 0, 0, 0x53], [198, 97, 190, 53]),
    ("i", [0x2001, 0x7fe, 0, 0, 0, 0, 0, 0x53], [192, 36, 148, 17]),
    ("j", [0x2001, 0x503, 0xc27, 0, 0, 0, 2, 0x30], [192, 58, 128, 30]),
    ("k", [0x2001, 0x7fd, 0, 0, 0, 0, 0, 1], [193, 0, 14, 129]),
    ("l", [0x2001, 0x500, 0x9f, 0, 0, 0, 0, 0x42], [199, 7, 83, 42]),
    ("m", [0x2001, 0xdc3, 0, 0, 0, 0, 0, 0x35], [202, 12, 27, 33]),
];

/// Returns the servers of the root that the program comes with.
pub(crate) fn root() -> Vec<Hint> {
    let hints = ROOT.iter().filter_map(|(letter, v6, v4)| {
        let name = NameBuf::from_text(&format!("{letter}.root-servers.net")).ok()?;
        Some(Hint {
            name: HeapName::new(name.as_name()),
            addresses: vec![IpAddr::from(*v4), IpAddr::from(*v6)],
        })
    });
    hints.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_thirteen_servers_of_both_families() {
        let hints = root();
        assert_eq!(hints.len(), 13);
        assert!(hints.iter().all(|hint| hint.addresses.len() == 2));
        assert_eq!(hints[6].name.to_string(), "g.root-servers.net.");
        assert_eq!(hints[6].addresses[1].to_string(), "2001:500:12::d0d");
    }
}
