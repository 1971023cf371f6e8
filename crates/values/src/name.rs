//! Domain names, also internationalised ones.

use std::ops::Range;

use wire::NameBuf;

use crate::{Misread, Read};

/// Reads a domain name in presentation form; a final dot may be left out (RFC 1035 §5.1).
pub fn name(text: &str) -> Read<NameBuf> {
    let bad =
        |at: Range<usize>, why: &str| Misread::part(at, format!("\"{text}\" is not a domain name: {why}"));
    if text.is_empty() {
        return Err(bad(0..0, "it is empty"));
    }
    if text == "." {
        return Ok(NameBuf::root());
    }
    if !text.is_ascii() {
        // Places in the A-labels are none in what was written: all of it is marked.
        let ascii = wire::idn::to_ascii(text).map_err(|error| bad(0..text.len(), &error.to_string()))?;
        return name(&ascii).map_err(|misread| Misread { at: 0..text.len(), ..misread });
    }
    let mut name = NameBuf::root();
    let mut label: Vec<u8> = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => {
                let digits = bytes.get(at + 1..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_digit));
                if let Some(digits) = digits {
                    let value =
                        digits.iter().fold(0, |value: u16, digit| value * 10 + u16::from(digit - b'0'));
                    label.push(
                        u8::try_from(value).map_err(|_| bad(at..at + 4, "an escape is at most \\255"))?,
                    );
                    at += 4;
                } else {
                    let &byte =
                        bytes.get(at + 1).ok_or_else(|| bad(at..at + 1, "it ends with a backslash"))?;
                    label.push(byte);
                    at += 2;
                }
                continue;
            }
            b'.' => {
                if label.is_empty() {
                    return Err(bad(start..at + 1, "a label is empty"));
                }
                push_label(&mut name, &label, text, start..at)?;
                label.clear();
                start = at + 1;
            }
            byte if byte.is_ascii_graphic() => label.push(byte),
            _ => return Err(bad(at..at + 1, "it has a space or control character")),
        }
        at += 1;
    }
    if !label.is_empty() {
        push_label(&mut name, &label, text, start..text.len())?;
    }
    Ok(name)
}

fn push_label(name: &mut NameBuf, label: &[u8], text: &str, at: Range<usize>) -> Read<()> {
    name.push_label(label).map_err(|_| {
        let why =
            if label.len() > 63 { "a label is at most 63 octets" } else { "a name is at most 255 octets" };
        Misread::part(at, format!("\"{text}\" is not a domain name: {why}"))
    })
}
