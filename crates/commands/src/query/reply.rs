//! What `gannet query` prints.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Duration;

use control::api;
use wire::text::write_hex;
use wire::{Message, OptionCode, Rcode, Section};

use super::transfer::Kind;
use super::words::Wishes;
use crate::cli::QueryArgs;
use crate::out;

/// A reply, and how it came.
pub struct Reply {
    /// Who sent it.
    pub server: String,
    /// What carried it.
    pub transport: &'static str,
    /// How long it took.
    pub time: Duration,
    /// The message, without its signature.
    pub message: Vec<u8>,
    /// Octets as they came.
    pub octets: usize,
    /// The key that signed it.
    pub signed_by: Option<String>,
}

/// Says what a transfer was, as a comment of a master file.
pub fn summary(taken: &api::Transfer, kind: Kind) -> String {
    let what = match kind {
        Kind::Whole => format!("{} records", taken.records),
        Kind::Differences => format!("differences in {} records", taken.records),
        Kind::UpToDate => "nothing newer".to_owned(),
    };
    let messages = if taken.messages == 1 { "message" } else { "messages" };
    let signed = taken.signed_by.as_ref().map_or_else(String::new, |key| format!(", signed by {key}"));
    format!(
        "; {what}, serial {}, in {} {messages}, {} octets, {:.0} ms, from {} over {}{signed}\n",
        taken.serial,
        taken.messages,
        taken.size_octets,
        taken.time_ms,
        taken.server,
        taken.transport.to_uppercase(),
    )
}

/// How names are shown: as A-labels, or in Unicode.
pub struct Names {
    as_unicode: bool,
}

impl Names {
    /// Returns how the options and the terminal want them; JSON has A-labels.
    pub fn of(wishes: &Wishes, is_json: bool) -> Self {
        Self { as_unicode: !is_json && wishes.idn_out.unwrap_or_else(shows_unicode) }
    }

    /// Returns a name as it is shown.
    fn name(&self, name: &str) -> String {
        if self.as_unicode { wire::idn::to_unicode(name).into_owned() } else { name.to_owned() }
    }

    /// Returns the data of a record with its names as they are shown; texts in quotation marks
    /// stay.
    fn data(&self, data: &str) -> String {
        if !self.as_unicode || !data.contains("xn--") || data.contains('"') {
            return data.to_owned();
        }
        data.split(' ').map(|word| self.name(word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns a record as a line of a master file.
    pub fn line(&self, record: &api::Record) -> String {
        let api::Record { name, ttl, class, rtype, data } = record;
        format!("{} {ttl} {class} {rtype} {}\n", self.name(name), self.data(data))
    }
}

/// Returns whether standard output is a terminal that shows more than ASCII (POSIX: the first that
/// is set counts).
fn shows_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_ascii_lowercase();
    std::io::stdout().is_terminal() && (locale.contains("utf-8") || locale.contains("utf8"))
}

/// Prints a reply; the code is negative if it cannot be read, or has another code than NOERROR.
pub fn show(reply: &Reply, wishes: &Wishes, args: &QueryArgs) -> ExitCode {
    let Ok(message) = Message::parse(&reply.message) else {
        let why = format!("the reply of {} cannot be read ({} octets)", reply.server, reply.octets);
        return out::failed(&why, args.remote.output);
    };
    let lookup = describe(reply, &message);
    out::print(&if args.remote.output.json {
        api::to_json(&lookup)
    } else if wishes.short {
        lookup.answer.iter().map(|record| format!("{}\n", record.data)).collect()
    } else {
        text(&lookup, &Names::of(wishes, false))
    });
    if message.rcode() == Rcode::NOERROR { out::FINE } else { out::negative() }
}

/// Turns a reply into text, piece by piece.
fn describe(reply: &Reply, message: &Message<'_>) -> api::Lookup {
    let question = message.question.map(|question| api::Question {
        name: question.qname.to_string(),
        rtype: question.qtype.to_string(),
        class: question.qclass.to_string(),
    });
    api::Lookup {
        server: reply.server.to_string(),
        transport: reply.transport.to_owned(),
        time_ms: out::milliseconds(reply.time),
        size_octets: reply.octets,
        status: message.rcode().to_string(),
        rcode: message.rcode().0,
        flags: api::flag_names(message.header.flags),
        question: question.unwrap_or_default(),
        answer: api::Record::section(message, Section::Answer),
        authority: api::Record::section(message, Section::Authority),
        additional: api::Record::section(message, Section::Additional),
        extended_errors: api::ExtendedError::all(message),
        options: options(message),
        signed_by: reply.signed_by.clone(),
    }
}

/// Lays a reply out in columns.
fn text(lookup: &api::Lookup, names: &Names) -> String {
    let mut text = format!("status     {}  flags: {}\n", lookup.status, lookup.flags.join(" "));
    let question = &lookup.question;
    let _ = writeln!(text, "question   {} {} {}", names.name(&question.name), question.class, question.rtype);
    let sections =
        [("answer", &lookup.answer), ("authority", &lookup.authority), ("additional", &lookup.additional)];
    let records = || sections.iter().flat_map(|(_, records)| records.iter());
    let name_width = records().map(|record| names.name(&record.name).chars().count()).max().unwrap_or(0);
    let ttl_width = records().map(|record| record.ttl.to_string().len()).max().unwrap_or(0);
    let type_width = records().map(|record| record.rtype.len()).max().unwrap_or(0);
    for (title, records) in sections {
        for (index, record) in records.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let class = if record.class == "IN" { String::new() } else { format!("{} ", record.class) };
            let _ = writeln!(
                text,
                "{title:<10} {:<name_width$}  {:>ttl_width$}  {class}{:<type_width$}  {}",
                names.name(&record.name),
                record.ttl,
                record.rtype,
                names.data(&record.data)
            );
        }
    }
    for error in &lookup.extended_errors {
        let _ = write!(text, "error      {} {}", error.code, error.name);
        let _ = match error.text.as_str() {
            "" => writeln!(text),
            more => writeln!(text, ": {}", out::escaped(more)),
        };
    }
    for option in &lookup.options {
        let _ = writeln!(text, "option     {} {}", option.name, out::escaped(&option.value));
    }
    if let Some(key) = &lookup.signed_by {
        let _ = writeln!(text, "signed     by {key}, verified");
    }
    let _ = writeln!(
        text,
        "server     {} over {}, {} ms, {} octets",
        lookup.server,
        lookup.transport.to_uppercase(),
        if lookup.time_ms < 10.0 {
            format!("{:.2}", lookup.time_ms)
        } else {
            format!("{:.0}", lookup.time_ms)
        },
        lookup.size_octets
    );
    text
}

/// Turns the EDNS options of a reply into text, without Extended DNS Errors.
fn options(message: &Message<'_>) -> Vec<api::EdnsOption> {
    let options = message.edns.into_iter().flat_map(|edns| edns.options());
    let shown = options.filter(|option| option.code != OptionCode::EDE).map(|option| api::EdnsOption {
        code: option.code.0,
        name: option.code.to_string(),
        value: option_text(option.code, option.data),
    });
    shown.collect()
}

/// Puts an option's data into words; what is not understood is shown in hexadecimal digits.
fn option_text(code: OptionCode, data: &[u8]) -> String {
    let mut digits = String::new();
    let _ = write_hex(&mut digits, data);
    match (code, data) {
        (OptionCode::NSID, data) => match std::str::from_utf8(data) {
            Ok(text) if !text.is_empty() && !text.contains(char::is_control) => {
                format!("{digits} (\"{text}\")")
            }
            _ => digits,
        },
        (OptionCode::CLIENT_SUBNET, &[0, family @ 1..=2, bits, scope, ref address @ ..]) => {
            let mut octets = [0; 16];
            octets.iter_mut().zip(address).for_each(|(to, from)| *to = *from);
            match octets.first_chunk::<4>() {
                Some(octets) if family == 1 => format!("{}/{bits}, scope {scope}", Ipv4Addr::from(*octets)),
                _ => format!("{}/{bits}, scope {scope}", Ipv6Addr::from(octets)),
            }
        }
        (OptionCode::EXPIRE, &[a, b, c, d]) => format!("{} s", u32::from_be_bytes([a, b, c, d])),
        (OptionCode::TCP_KEEPALIVE, &[a, b]) => {
            format!("{:.1} s", f64::from(u16::from_be_bytes([a, b])) / 10.0)
        }
        (OptionCode::PADDING, data) => format!("{} octets", data.len()),
        _ => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_put_into_words() {
        let check = |code, data: &[u8], expect: &str| assert_eq!(option_text(code, data), expect);
        check(OptionCode::NSID, b"ns1", "6E7331 (\"ns1\")");
        check(OptionCode::NSID, &[0xff], "FF");
        check(OptionCode::CLIENT_SUBNET, &[0, 1, 24, 20, 192, 0, 2], "192.0.2.0/24, scope 20");
        check(OptionCode::CLIENT_SUBNET, &[0, 2, 32, 0, 0x20, 1, 0xd, 0xb8], "2001:db8::/32, scope 0");
        check(OptionCode::EXPIRE, &[0, 0, 1, 0], "256 s");
        check(OptionCode::TCP_KEEPALIVE, &[0, 100], "10.0 s");
        check(OptionCode(65001), &[1, 2], "0102");
    }

    #[test]
    fn names_are_shown_as_people_write_them_where_that_can_be_seen() {
        let names = Names { as_unicode: true };
        assert_eq!(names.name("xn--bcher-kva.example."), "bücher.example.");
        assert_eq!(names.data("10 mail.xn--bcher-kva.example."), "10 mail.bücher.example.");
        assert_eq!(names.data("\"xn--bcher-kva\""), "\"xn--bcher-kva\"");
        assert_eq!(Names { as_unicode: false }.name("xn--bcher-kva.example."), "xn--bcher-kva.example.");
    }
}
