//! Templates filled in with what a query brought.

use plan::jobs::{Field, Part, Template};

use super::Occurrence;

/// How a value is written so that it stays one value where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// As it is: arguments, variables.
    None,
    /// As part of a URL (RFC 3986 §2.1).
    Url,
    /// Inside the quotation marks of JSON.
    Json,
    /// Without what would end a line of a header.
    Header,
}

/// Fills in a template.
pub(crate) fn fill(template: &Template, effect: &str, occurrence: &Occurrence, escape: Escape) -> String {
    let mut text = String::new();
    for part in &template.0 {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Field(field) => escaped(&value(*field, effect, occurrence), escape, &mut text),
        }
    }
    text
}

fn value(field: Field, effect: &str, occurrence: &Occurrence) -> String {
    let first = |is_wanted: fn(&std::net::IpAddr) -> bool| {
        let mut addresses = occurrence.addresses.iter();
        addresses.find(|address| is_wanted(address)).map(ToString::to_string).unwrap_or_default()
    };
    match field {
        Field::Name => occurrence.qname.clone(),
        Field::Type => occurrence.qtype.to_string(),
        Field::Class => occurrence.qclass.to_string(),
        Field::Client => occurrence.client.to_string(),
        Field::Port => occurrence.port.to_string(),
        Field::Transport => occurrence.transport.word().to_owned(),
        Field::Rcode => occurrence.rcode.map(|rcode| rcode.to_string()).unwrap_or_default(),
        Field::Answers => occurrence.answers.to_string(),
        Field::Addresses => {
            occurrence.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        }
        Field::Address => first(|_| true),
        Field::Address4 => first(std::net::IpAddr::is_ipv4),
        Field::Address6 => first(std::net::IpAddr::is_ipv6),
        Field::Ttl => {
            if occurrence.addresses.is_empty() {
                "0".to_owned()
            } else {
                occurrence.ttl.to_string()
            }
        }
        Field::Waited => occurrence.waited_ms.to_string(),
        Field::Time => occurrence.unix_ms.to_string(),
        Field::Effect => effect.to_owned(),
    }
}

fn escaped(value: &str, escape: Escape, out: &mut String) {
    match escape {
        Escape::None => out.push_str(value),
        Escape::Header => out.extend(value.chars().filter(|c| !c.is_control())),
        Escape::Url => {
            for &octet in value.as_bytes() {
                if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~') {
                    out.push(octet.into());
                } else {
                    out.push_str(&format!("%{octet:02X}"));
                }
            }
        }
        Escape::Json => {
            for c in value.chars() {
                match c {
                    '"' | '\\' => out.extend(['\\', c]),
                    c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                    c => out.push(c),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Rtype;

    #[test]
    fn values_stay_one_value_where_they_stand() {
        let occurrence = Occurrence {
            qname: "a\\\"b&c.example.org".to_owned(),
            qtype: Rtype::AAAA,
            addresses: ["192.0.2.1", "2001:db8::1"].iter().map(|text| text.parse().expect("it is")).collect(),
            ..Occurrence::default()
        };
        let check = |text: &str, escape, expect: &str| {
            let template = Template::parse(text).expect("a template");
            assert_eq!(fill(&template, "hook", &occurrence, escape), expect);
        };
        check("{name}", Escape::None, "a\\\"b&c.example.org");
        check("?n={name}&t={type}", Escape::Url, "?n=a%5C%22b%26c.example.org&t=AAAA");
        check("{\"n\":\"{name}\"}", Escape::Json, "{\"n\":\"a\\\\\\\"b&c.example.org\"}");
        check("{addresses} {address6} {effect}", Escape::None, "192.0.2.1,2001:db8::1 2001:db8::1 hook");
    }
}
