//! Actions that change the query that is sent to upstreams.

use diagnostic::At;
use values::{Misread, Read};
use wire::{OptionCode, Prefix};

use super::{Action, Meaning, Reference, Row};
use crate::arguments::{Arguments, Reported, word};

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {
    /// What upstreams are told about where the client is.
    Subnet(Subnet),
    /// Which EDNS options they are sent besides.
    Options(Vec<EdnsOption>),
    /// Flags of the query, and the letter case of its name.
    Flags(Flags),
}

/// What becomes of the EDNS client subnet.
#[derive(Clone, Debug, PartialEq)]
pub enum Subnet {
    /// None is sent.
    Strip,
    /// The client's own goes on.
    Forward,
    /// That of the client's address.
    Client {
        /// Bits of an IPv4 address.
        ipv4: u8,
        /// Bits of an IPv6 address.
        ipv6: u8,
        /// Whether the client's own goes first.
        keeps: bool,
        /// Whether private addresses are told, too.
        sends_private: bool,
    },
    /// A fixed one.
    Fixed {
        /// For every type, or every type but AAAA.
        first: Prefix,
        /// For AAAA.
        second: Option<Prefix>,
        /// Whether the client's own goes first.
        keeps: bool,
    },
}

/// One EDNS option.
#[derive(Clone, Debug, PartialEq)]
pub enum EdnsOption {
    /// With this data.
    Set(OptionCode, Vec<u8>),
    /// As the client sent it.
    Forward(OptionCode),
}

/// Flags; `None`: as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// DO.
    pub dnssec: Option<bool>,
    /// CD.
    pub checking_disabled: Option<bool>,
    /// RD.
    pub recursion: Option<bool>,
    /// Whether the name goes out in lower case.
    pub lower_case: Option<bool>,
}

/// Its rows of the table.
pub(super) const ROWS: &[Row] = &[
    Row {
        word: "ecs",
        arguments: "client | forward | strip | PREFIX, [PREFIX for AAAA] [, ipv4 BITS, ipv6 BITS, keep, private]",
        text: "Says what the next `forward` tells upstreams about where the client is (EDNS client subnet, RFC 7871), and `recurse` the servers of \
               `resolvers.*.client-subnet`: \
               nothing (`strip`), what the client itself sent (`forward`), a prefix of its address (`client`, 24 bits of an \
               IPv4 and 56 of an IPv6 address unless `ipv4` or `ipv6` say otherwise; nothing of a private one; one of \
               `trusted-peers` may have asked for another client), or always the same prefix. With `keep`, what the client sent goes first, cut to as many bits; with `private`, private addresses are told, too; a client that asks for nothing to be told \
               (prefix 0) is obeyed. Put it before `cache`, which then keeps the answers for each prefix apart. For trusted \
               peers only: `if: client in 10.0.0.53, do: ecs(forward)`.",
        read: |arguments| ecs(arguments).map(|subnet| Action::Outgoing(Outgoing::Subnet(subnet))),
    },
    Row {
        word: "options",
        arguments: "CODE HEX | CODE \"TEXT\" | CODE forward, … | none",
        text: "Says which EDNS options the next `forward` sends: with data of their own, or as the client sent them: \
               `options(65001 0a0b, 65002 forward)`. Those that are forwarded come back too: the client gets the upstream's \
               options of those codes with the fetched reply. Replaces what an earlier `options` said; nothing else of a \
               client's options ever goes on.",
        read: options,
    },
    Row {
        word: "outgoing",
        arguments: "dnssec on|off, checking-disabled on|off, recursion on|off, case lower|keep",
        text: "Changes the query that the next `forward` sends: the flags DO and CD, which otherwise are the client's, RD, \
               which otherwise is set, and the letter case of the name. With `recursion on`, caches, `forward` and `recurse` take a \
               query without RD for one that has it.",
        read: |arguments| flags(arguments).map(|flags| Action::Outgoing(Outgoing::Flags(flags))),
    },
];

impl Outgoing {
    pub(super) fn meaning(&self) -> Meaning<'_> {
        match self {
            Self::Subnet(_) => Meaning::Sends("ecs"),
            Self::Options(_) => Meaning::Sends("options"),
            Self::Flags(_) => Meaning::Sends("outgoing"),
        }
    }

    pub(super) fn references(&self) -> Vec<Reference<'_>> {
        match self {
            Self::Subnet(_) | Self::Options(_) | Self::Flags(_) => Vec::new(),
        }
    }
}

/// RFC 7871 §11.1 recommends these.
const IPV4_BITS: u8 = 24;
const IPV6_BITS: u8 = 56;

fn bits(most: u8) -> impl Fn(&str) -> Read<u8> {
    move |text| {
        let number = text.parse().ok().filter(|bits| (1..=most).contains(bits));
        number.ok_or_else(|| {
            misread(text, format!("\"{text}\" is not a prefix length"), format!("1 to {most}"))
        })
    }
}

fn misread(text: &str, message: String, expected: impl Into<String>) -> Misread {
    Misread { at: 0..text.len(), message, expected: Some(expected.into()), hint: None }
}

fn ecs(arguments: &mut Arguments<'_>) -> Result<Subnet, Reported> {
    let (keeps, sends_private) = (arguments.flag("keep")?, arguments.flag("private")?);
    let ipv4 = arguments.keyed("ipv4", bits(32))?;
    let ipv6 = arguments.keyed("ipv6", bits(128))?;
    let (is_client, forwards, strips) =
        (arguments.flag("client")?, arguments.flag("forward")?, arguments.flag("strip")?);
    let prefixes = arguments.rest_or_none(values::prefix)?;
    let place = arguments.place();
    if !is_client && let Some(stray) = ipv4.as_ref().or(ipv6.as_ref()) {
        return Err(arguments.wrong(stray.span, "a prefix length belongs to \"client\"", "ecs(client, …)"));
    }
    match (is_client, forwards, strips, prefixes.as_slice()) {
        (true, false, false, []) => Ok(Subnet::Client {
            ipv4: ipv4.map_or(IPV4_BITS, |at| at.value),
            ipv6: ipv6.map_or(IPV6_BITS, |at| at.value),
            keeps,
            sends_private,
        }),
        _ if sends_private => {
            Err(arguments.wrong(place, "\"private\" belongs to \"client\"", "ecs(client, …)"))
        }
        (false, true, false, []) if !keeps => Ok(Subnet::Forward),
        (false, false, true, []) if !keeps => Ok(Subnet::Strip),
        (false, false, false, [first]) => Ok(Subnet::Fixed { first: first.value, second: None, keeps }),
        (false, false, false, [first, second]) => {
            Ok(Subnet::Fixed { first: first.value, second: Some(second.value), keeps })
        }
        (false, false, false, []) => Err(arguments.missing()),
        (false, false, false, [_, _, more, ..]) => {
            Err(arguments.wrong(more.span, "there are two prefixes already", "one, or one for AAAA besides"))
        }
        _ => Err(arguments.wrong(
            place,
            "these do not go together",
            "one of \"client\", \"forward\", \"strip\" and prefixes; \"keep\" with the first or the last",
        )),
    }
}

fn options(arguments: &mut Arguments<'_>) -> Result<Action, Reported> {
    let pairs = arguments.pairs();
    let is_none = arguments.flag("none")?;
    if pairs.is_empty() != is_none {
        return Err(arguments.missing());
    }
    let mut list = Vec::new();
    let mut octets = 0;
    for (code, data) in pairs {
        let code: At<OptionCode> = arguments.read(code, option_code)?;
        let option = if data.is_quoted {
            EdnsOption::Set(code.value, data.text.as_bytes().to_vec())
        } else if data.text == "forward" {
            EdnsOption::Forward(code.value)
        } else {
            EdnsOption::Set(code.value, arguments.read(data, hexadecimal)?.value)
        };
        if let EdnsOption::Set(_, data) = &option {
            octets += 4 + data.len();
        }
        list.push(option);
        if octets > engine::ops::outgoing::OPTIONS_OCTETS_MAX {
            let most = engine::ops::outgoing::OPTIONS_OCTETS_MAX;
            return Err(arguments.wrong(
                code.span,
                "the options are too long",
                &format!("at most {most} octets in all"),
            ));
        }
    }
    Ok(Action::Outgoing(Outgoing::Options(list)))
}

fn option_code(text: &str) -> Read<OptionCode> {
    const EXPECTED: &str = "a number from 1 to 65535 other than 8 (ecs), 10 (cookie), 11 and 12";
    let code = text.parse().ok().filter(|&code: &u16| code > 0).map(OptionCode);
    match code {
        // These belong to one hop, or have an action of their own.
        Some(
            OptionCode::CLIENT_SUBNET | OptionCode::COOKIE | OptionCode::TCP_KEEPALIVE | OptionCode::PADDING,
        )
        | None => Err(misread(text, format!("\"{text}\" is not an option that can be sent"), EXPECTED)),
        Some(code) => Ok(code),
    }
}

fn hexadecimal(text: &str) -> Read<Vec<u8>> {
    values::hex(text).ok_or_else(|| {
        misread(
            text,
            format!("\"{text}\" is not the data of an option"),
            "hexadecimal, text in quotes, or forward",
        )
    })
}

fn flags(arguments: &mut Arguments<'_>) -> Result<Flags, Reported> {
    const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];
    let value = |at: Option<At<bool>>| at.map(|at| at.value);
    let flags = Flags {
        dnssec: value(arguments.keyed("dnssec", word(SWITCH))?),
        checking_disabled: value(arguments.keyed("checking-disabled", word(SWITCH))?),
        recursion: value(arguments.keyed("recursion", word(SWITCH))?),
        lower_case: value(arguments.keyed("case", word(&[("lower", true), ("keep", false)]))?),
    };
    if flags == Flags::default() { Err(arguments.missing()) } else { Ok(flags) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, check_wrong};
    use super::*;

    #[test]
    fn subnets_options_and_flags_are_read() {
        let subnet = |subnet| Action::Outgoing(Outgoing::Subnet(subnet));
        check("ecs(strip)", subnet(Subnet::Strip));
        check("ecs(forward)", subnet(Subnet::Forward));
        check(
            "ecs(client, ipv4 20, keep)",
            subnet(Subnet::Client { ipv4: 20, ipv6: 56, keeps: true, sends_private: false }),
        );
        let prefix = |text| values::prefix(text).expect("a prefix");
        check(
            "ecs(192.0.2.0/24, \"2001:db8::/32\")",
            subnet(Subnet::Fixed {
                first: prefix("192.0.2.0/24"),
                second: Some(prefix("2001:db8::/32")),
                keeps: false,
            }),
        );
        check(
            "options(65001 0a0B, 65002 forward, 65003 \"hi, you\")",
            Action::Outgoing(Outgoing::Options(vec![
                EdnsOption::Set(OptionCode(65_001), vec![10, 11]),
                EdnsOption::Forward(OptionCode(65_002)),
                EdnsOption::Set(OptionCode(65_003), b"hi, you".to_vec()),
            ])),
        );
        check("options(none)", Action::Outgoing(Outgoing::Options(vec![])));
        check(
            "outgoing(recursion on)",
            Action::Outgoing(Outgoing::Flags(Flags { recursion: Some(true), ..Flags::default() })),
        );
        check(
            "outgoing(dnssec on, case lower)",
            Action::Outgoing(Outgoing::Flags(Flags {
                dnssec: Some(true),
                lower_case: Some(true),
                ..Flags::default()
            })),
        );
    }

    #[test]
    fn mistakes_point_into_the_text() {
        check_wrong(
            "ecs(client, forward)",
            "x:1:1: error: these do not go together: expected one of \"client\", \"forward\", \"strip\" and prefixes; \"keep\" with the first or the last",
        );
        check_wrong("ecs(client, ipv4 33)", "x:1:18: error: \"33\" is not a prefix length: expected 1 to 32");
        check_wrong(
            "options(8 0102)",
            "x:1:9: error: \"8\" is not an option that can be sent: expected a number from 1 to 65535 other than 8 (ecs), 10 (cookie), 11 and 12",
        );
        check_wrong(
            "options(65001 0a0)",
            "x:1:15: error: \"0a0\" is not the data of an option: expected hexadecimal, text in quotes, or forward",
        );
    }
}
