//! Packets taken past the kernel's network stack.

use super::{Kind, Row, Value, row, section, unset, whole, whole_or, word};
use plan::devices::{Existing, Mode};

pub(super) const ROWS: &[Row] = &[
    section(
        "xdp",
        "Takes queries over UDP from network interfaces past the kernel's network stack (AF_XDP; see xdp.md). The addresses are \
         those of `listen`; what is not taken this way, the kernel's sockets serve as before.",
    ),
    row(
        "xdp.interfaces",
        Kind::List(Value::Text { word: None }),
        "[]",
        "needs rights and locked memory, and not every card is good at it",
        "Interfaces to take queries from. `gannet xdp check INTERFACE` reports the abilities of \
         one.",
    )
    .restart(),
    row(
        "xdp.mode",
        word(Mode::WORDS),
        "auto",
        "the best that works is found by trying",
        "In which way: `zerocopy` and `native` run in the card's driver, without and with a copy of each packet; `generic` works \
         with any driver and gains less. `auto` takes the best that works, and goes on without if none does. With one of the \
         others the server does not start unless it works. `off` leaves all to the kernel's sockets.",
    )
    .restart(),
    row(
        "xdp.existing",
        word(Existing::WORDS),
        "keep",
        "somebody put it there",
        "If another XDP program is on the interface: `keep` leaves it, which is an error, `replace` takes it off.",
    )
    .restart(),
    unset(
        "xdp.map",
        Kind::One(Value::Path),
        "The path at which another program that is on the interface has pinned its map of sockets (XSKMAP). It chooses the \
         packets then, and none is loaded.",
    )
    .restart(),
    row(
        "xdp.queues",
        whole_or(1, 1024, "all"),
        "all",
        "a card spreads queries over its queues",
        "Queues to take queries from, from the first; what comes to others goes to the kernel's sockets.",
    )
    .restart(),
    row(
        "xdp.ring",
        whole_or(64, 65536, "auto"),
        "auto",
        "what a card's own ring holds is not there for us",
        "Entries of the rings of each queue; rounded up to a power of two. Each takes four frames of 2 or 4 KB of locked memory. \
         `auto`: twice as many as the card's receive ring has, from 2048, which bridge 2 ms at a million queries a second, to \
         16384.",
    )
    .restart(),
    row(
        "xdp.check-routes",
        Kind::One(Value::Bool),
        "false",
        "replies usually leave the way that queries come",
        "Whether only those queries are taken whose replies the kernel would send by the same interface to the same station; \
         others go to the kernel's sockets. Needs `net.ipv4.conf.lo.forwarding` and `net.ipv6.conf.lo.forwarding`.",
    ),
    row(
        "xdp.huge-pages",
        Kind::One(Value::Bool),
        "false",
        "they must be set aside by the operator (vm.nr_hugepages)",
        "Whether frames are kept in huge pages, if there are enough.",
    )
    .restart(),
    row(
        "xdp.busy-poll",
        whole_or(1, 1000, "off"),
        "off",
        "takes processor time from other work of the machine",
        "Microseconds that a system call may spend on asking the card for packets instead of waiting for its interrupt.",
    )
    .restart(),
    row(
        "xdp.busy-poll-budget",
        whole(1, 1024),
        "64",
        "what drivers handle at a time",
        "Packets that such a call may handle.",
    )
    .restart(),
];
