//! The JSON interface that Google and Cloudflare made usual: questions as parameters, answers as
//! text.

use std::fmt::Write as _;

use wire::message::Section;
use wire::{Class, Edns, Flags, Message, NameBuf, OptionCode, Question, Rtype, Writer, idn, rdata};

use super::request::{parameter, unescape};

/// Octets of the largest query: a name, and an EDNS client subnet.
const QUERY_OCTETS_MAX: usize = 512;
/// The UDP payload size of our queries; it decides nothing here.
const UDP_OCTETS: u16 = 1232;

/// Turns parameters into a query; an error says what is wrong with them.
pub(super) fn query(parameters: &str) -> Result<Vec<u8>, &'static str> {
    let get = |name: &str| parameter(parameters, name).and_then(unescape);
    let name = get("name").ok_or("\"name\" is missing\n")?;
    // As people write it: what is outside ASCII becomes A-labels.
    let name = idn::to_ascii(&name).map_err(|_| "\"name\" is not a domain name\n")?;
    let name: NameBuf = name.parse().map_err(|_| "\"name\" is not a domain name\n")?;
    let qtype = match get("type") {
        None => Rtype::A,
        Some(text) => rtype(&text).ok_or("\"type\" is not a record type\n")?,
    };
    let is_set = |name: &str| get(name).is_some_and(|value| matches!(value.as_str(), "1" | "true" | ""));
    let mut flags = Flags::RD.with(Flags::AD);
    if is_set("cd") {
        flags = flags.with(Flags::CD);
    }
    let subnet =
        get("edns_client_subnet").map(|text| subnet(&text).ok_or("\"edns_client_subnet\" is not a prefix\n"));
    let subnet = subnet.transpose()?;
    let mut buffer = [0; QUERY_OCTETS_MAX];
    let mut writer = Writer::new(&mut buffer, QUERY_OCTETS_MAX, 0, flags);
    let question = Question { qname: name.as_name(), qtype, qclass: Class::IN };
    let written = writer.question(&question).and_then(|()| {
        writer.opt(UDP_OCTETS, wire::Rcode::NOERROR, is_set("do"), |writer| match &subnet {
            Some(subnet) => writer.option(OptionCode::CLIENT_SUBNET, subnet),
            None => Ok(()),
        })
    });
    written.map_err(|_| "the question is too long\n")?;
    let len = writer.finish();
    Ok(buffer.get(..len).unwrap_or(&[]).to_vec())
}

/// Reads a type by its name or number.
fn rtype(text: &str) -> Option<Rtype> {
    match text.parse::<u16>() {
        Ok(number) => Some(Rtype(number)),
        Err(_) => text.to_ascii_uppercase().parse().ok(),
    }
}

/// Returns a prefix as the option has it (RFC 7871 §6).
fn subnet(text: &str) -> Option<Vec<u8>> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let (family, octets, most) = match address {
        std::net::IpAddr::V4(address) => (1, address.octets().to_vec(), 32),
        std::net::IpAddr::V6(address) => (2, address.octets().to_vec(), 128),
    };
    // Without a length it is a network as resolvers send it, not one host.
    let bits = bits.unwrap_or(if family == 1 { 24 } else { 56 });
    if bits > most {
        return None;
    }
    let mut kept: Vec<u8> = octets.into_iter().take(usize::from(bits.div_ceil(8))).collect();
    if let (Some(last), rest @ 1..) = (kept.last_mut(), bits % 8) {
        *last &= 0xff << (8 - rest);
    }
    Some([vec![0, family, bits, 0], kept].concat())
}

/// Writes a reply as JSON; `None` if it is not a message.
pub(super) fn reply(bytes: &[u8]) -> Option<String> {
    let message = Message::parse(bytes).ok()?;
    let flags = message.header.flags;
    let mut out = String::with_capacity(512);
    write!(out, "{{\"Status\":{}", message.rcode().0).ok()?;
    for (name, flag) in
        [("TC", Flags::TC), ("RD", Flags::RD), ("RA", Flags::RA), ("AD", Flags::AD), ("CD", Flags::CD)]
    {
        write!(out, ",\"{name}\":{}", flags.has(flag)).ok()?;
    }
    out.push_str(",\"Question\":[");
    if let Some(question) = &message.question {
        out.push_str("{\"name\":");
        string(&mut out, &question.qname.to_string());
        write!(out, ",\"type\":{}}}", question.qtype.0).ok()?;
    }
    out.push(']');
    for (name, section) in
        [("Answer", Section::Answer), ("Authority", Section::Authority), ("Additional", Section::Additional)]
    {
        let records =
            message.records().filter(|record| record.section == section && record.rtype != Rtype::OPT);
        let mut is_first = true;
        for record in records {
            if is_first {
                write!(out, ",\"{name}\":[").ok()?;
            } else {
                out.push(',');
            }
            is_first = false;
            out.push_str("{\"name\":");
            string(&mut out, &record.owner.to_string());
            write!(out, ",\"type\":{},\"TTL\":{},\"data\":", record.rtype.0, record.ttl().seconds()).ok()?;
            let data = rdata::display(record.rtype, bytes, record.rdata_at..record.end());
            string(&mut out, &data.to_string());
            out.push('}');
        }
        if !is_first {
            out.push(']');
        }
    }
    if let Some(text) = message.edns.and_then(|edns| error_text(&edns)) {
        out.push_str(",\"Comment\":");
        string(&mut out, &text);
    }
    out.push('}');
    Some(out)
}

/// Returns what an Extended DNS Error says (RFC 8914).
fn error_text(edns: &Edns<'_>) -> Option<String> {
    let (code, text) = edns.option(OptionCode::EDE)?.split_first_chunk::<2>()?;
    Some(format!("EDE {}: {}", u16::from_be_bytes(*code), String::from_utf8_lossy(text)))
}

/// Writes text as a JSON string (RFC 8259 §7).
fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_a_query() {
        let bytes = query("name=www.example.org&type=aaaa&do=1&cd=true").expect("a query");
        let message = Message::parse(&bytes).expect("a message");
        let question = message.question.expect("a question");
        assert_eq!((question.qname.to_string().as_str(), question.qtype), ("www.example.org.", Rtype::AAAA));
        assert!(message.edns.expect("EDNS").wants_dnssec() && message.header.flags.has(Flags::CD));
        let bytes = query("name=example.org&type=28&edns_client_subnet=192.0.2.77/20").expect("a query");
        let edns = Message::parse(&bytes).expect("a message").edns.expect("EDNS");
        assert_eq!(edns.option(OptionCode::CLIENT_SUBNET), Some(&[0, 1, 20, 0, 192, 0, 0][..]));
        for (name, label) in
            [("b%C3%BCcher.example", "xn--bcher-kva"), ("B%C3%9CCHER.example", "xn--bcher-kva")]
        {
            let bytes = query(&format!("name={name}")).expect("a query");
            let at = bytes.windows(label.len()).position(|window| window == label.as_bytes());
            assert_eq!(at, Some(13), "{name}");
        }
        for wrong in ["type=A", "name=a..b", "name=example.org&type=NONSENSE", "name=%zz"] {
            assert!(query(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn replies_become_json() {
        let mut buffer = [0; 512];
        let mut writer = Writer::new(&mut buffer, 512, 0, Flags::QR.with(Flags::RD).with(Flags::RA));
        let name: NameBuf = "a\"b.example.org".parse().expect("a name");
        let question = Question { qname: name.as_name(), qtype: Rtype::A, qclass: Class::IN };
        writer.question(&question).expect("room");
        let ttl = wire::Ttl::new(60);
        let address = [192, 0, 2, 1];
        writer
            .record(Section::Answer, name.as_name(), Rtype::A, Class::IN, ttl, |out| out.bytes(&address))
            .expect("room");
        let len = writer.finish();
        let found = reply(&buffer[..len]).expect("a message");
        let shown = name.to_string().replace('\\', "\\\\").replace('"', "\\\"");
        assert_eq!(
            found,
            format!(
                "{{\"Status\":0,\"TC\":false,\"RD\":true,\"RA\":true,\"AD\":false,\"CD\":false,\
                 \"Question\":[{{\"name\":\"{shown}\",\"type\":1}}],\
                 \"Answer\":[{{\"name\":\"{shown}\",\"type\":1,\"TTL\":60,\"data\":\"192.0.2.1\"}}]}}"
            )
        );
        assert_eq!(reply(b"no message"), None);
    }
}
