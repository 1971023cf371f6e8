//! A reply in presentation form.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::{EdeCode, Flags, Message, OptionCode, Rtype, Section, rdata};

/// What `gannet query --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Lookup {
    /// Who answered.
    pub server: String,
    /// What carried it: `udp`, `tcp`, `tls`, `https`, `h3`, `quic`, `dnscrypt` or `odoh`.
    pub transport: String,
    /// From the first packet sent to the reply.
    pub time_ms: f64,
    /// The reply's length.
    pub size_octets: usize,
    /// The response code's mnemonic, or `RCODE` and the number.
    pub status: String,
    /// The response code.
    pub rcode: u16,
    /// The header flags that are set, in header order.
    pub flags: Vec<String>,
    /// What was asked.
    pub question: Question,
    /// The answer section.
    pub answer: Vec<Record>,
    /// The authority section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authority: Vec<Record>,
    /// The additional section without OPT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<Record>,
    /// Extended errors (RFC 8914).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended_errors: Vec<ExtendedError>,
    /// The other EDNS options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<EdnsOption>,
    /// The key that signed the reply, which was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

/// What `gannet query NAME AXFR --json` prints, and for IXFR.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Transfer {
    /// Who answered.
    pub server: String,
    /// What carried it.
    pub transport: String,
    /// From the connection to the last message.
    pub time_ms: f64,
    /// The messages' length together.
    pub size_octets: u64,
    /// How many there were.
    pub messages: u64,
    /// `whole`, `differences` or `up-to-date`.
    pub kind: String,
    /// The serial of the version that it leads to.
    pub serial: u32,
    /// Records, the SOAs among them.
    pub records: u64,
    /// The key that signed the messages, which were verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// The records in the order in which they came.
    pub answer: Vec<Record>,
}

/// An EDNS option.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EdnsOption {
    /// The code.
    pub code: u16,
    /// Its name.
    pub name: String,
    /// The data, in words where they are understood and in hexadecimal digits elsewhere.
    pub value: String,
}

/// A question in presentation form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The name, with its final dot.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The class.
    pub class: String,
}

/// A record in presentation form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The owner, with its final dot.
    pub name: String,
    /// Seconds the record may be kept.
    pub ttl: u32,
    /// The class.
    pub class: String,
    /// The type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// The data.
    pub data: String,
}

/// An extended error (RFC 8914).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExtendedError {
    /// The code.
    pub code: u16,
    /// What the code means.
    pub name: String,
    /// What the server adds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl Record {
    /// Returns the records of one section but OPT.
    pub fn section(message: &Message<'_>, wanted: Section) -> Vec<Self> {
        let records =
            message.records().filter(|record| record.section == wanted && record.rtype != Rtype::OPT);
        records.map(|record| Self::from(&record)).collect()
    }
}

impl From<&wire::Record<'_>> for Record {
    fn from(record: &wire::Record<'_>) -> Self {
        let data = rdata::display(record.rtype, record.owner.message(), record.rdata_at..record.end());
        Self {
            name: record.owner.to_string(),
            ttl: record.ttl().seconds(),
            class: record.class.to_string(),
            rtype: record.rtype.to_string(),
            data: data.to_string(),
        }
    }
}

impl ExtendedError {
    /// Returns the errors of a reply.
    pub fn all(message: &Message<'_>) -> Vec<Self> {
        let options = message.edns.into_iter().flat_map(|edns| edns.options());
        options
            .filter(|option| option.code == OptionCode::EDE)
            .filter_map(|option| {
                let (&code, text) = option.data.split_first_chunk::<2>()?;
                let text = String::from_utf8_lossy(text);
                Some(Self::named(EdeCode(u16::from_be_bytes(code)), text.trim_end_matches('\0')))
            })
            .collect()
    }

    /// Returns an error with its name.
    pub fn named(code: EdeCode, text: &str) -> Self {
        Self { code: code.0, name: code.to_string(), text: text.to_owned() }
    }
}

/// Returns the names of the header flags that are set, in the order of the header.
pub fn flag_names(flags: Flags) -> Vec<String> {
    const NAMES: [(Flags, &str); 7] = [
        (Flags::QR, "qr"),
        (Flags::AA, "aa"),
        (Flags::TC, "tc"),
        (Flags::RD, "rd"),
        (Flags::RA, "ra"),
        (Flags::AD, "ad"),
        (Flags::CD, "cd"),
    ];
    NAMES.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, name)| (*name).to_owned()).collect()
}
