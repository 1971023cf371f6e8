//! The TSIG record in a message (RFC 8945 §4.2).

use wire::{Class, Header, Message, Name, NameBuf, Rcode, Rtype, Section};

/// What a TSIG record says about the message before it, or before the one it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsigError(pub u16);

impl TsigError {
    /// All is well.
    pub const NONE: Self = Self(0);
    /// The MAC is not right (RFC 8945 §5.2.2).
    pub const BADSIG: Self = Self(16);
    /// The key or its algorithm is not known (RFC 8945 §5.2.1).
    pub const BADKEY: Self = Self(17);
    /// The clocks are too far apart, or the message is old (RFC 8945 §5.2.3).
    pub const BADTIME: Self = Self(18);
    /// Too little of the MAC was sent (RFC 8945 §5.2.2.1).
    pub const BADTRUNC: Self = Self(22);

    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NONE => "no error",
            Self::BADSIG => "BADSIG: the signature is wrong; do both sides have the same secret?",
            Self::BADKEY => "BADKEY: the key is not known, or not with this algorithm",
            Self::BADTIME => "BADTIME: the clocks are too far apart",
            Self::BADTRUNC => "BADTRUNC: too little of the signature was sent",
            Self(_) => "an error of TSIG",
        }
    }
}

/// A message with a TSIG record at its end.
pub struct Signed<'m> {
    /// The message up to the record; its header still counts it.
    pub(crate) octets: &'m [u8],
    /// The name of the key.
    pub key: NameBuf,
    /// The name of the algorithm.
    pub algorithm: NameBuf,
    /// When it was signed: seconds since 1970, 48 bits.
    pub time: u64,
    /// Seconds that the clocks may be apart.
    pub fudge: u16,
    /// The MAC, or part of it.
    pub mac: &'m [u8],
    /// The ID that the message had when it was signed.
    pub original_id: u16,
    /// What the signer has to say about the request.
    pub error: TsigError,
    /// With BADTIME, the signer's clock.
    pub other: &'m [u8],
}

/// The message cannot be read, or its TSIG record is not the last (RFC 8945 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Returns whether a TSIG record is anywhere in a message that can be read.
pub fn is_signed(message: &[u8]) -> bool {
    Message::parse(message).is_ok_and(|parsed| parsed.records().any(|record| record.rtype == Rtype::TSIG))
}

/// Finds the TSIG record of a message.
pub fn split(message: &[u8]) -> Result<Option<Signed<'_>>, Malformed> {
    let parsed = Message::parse(message).map_err(|_| Malformed)?;
    let Some(record) = parsed.records().find(|record| record.rtype == Rtype::TSIG) else { return Ok(None) };
    let is_last = record.section == Section::Additional && record.end() == message.len();
    if !is_last || record.class != Class::ANY || record.ttl_raw != 0 {
        return Err(Malformed);
    }
    let key = record.owner.expand().map_err(|_| Malformed)?;
    let (algorithm, rest) = Name::parse(record.rdata).map_err(|_| Malformed)?;
    let (&[t0, t1, t2, t3, t4, t5, f0, f1, l0, l1], rest) =
        rest.split_first_chunk::<10>().ok_or(Malformed)?;
    let (mac, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([l0, l1]))).ok_or(Malformed)?;
    let (&[i0, i1, e0, e1, o0, o1], other) = rest.split_first_chunk::<6>().ok_or(Malformed)?;
    if other.len() != usize::from(u16::from_be_bytes([o0, o1])) {
        return Err(Malformed);
    }
    Ok(Some(Signed {
        octets: message.get(..record.at).ok_or(Malformed)?,
        key,
        algorithm: algorithm.to_buf(),
        time: u64::from_be_bytes([0, 0, t0, t1, t2, t3, t4, t5]),
        fudge: u16::from_be_bytes([f0, f1]),
        mac,
        original_id: u16::from_be_bytes([i0, i1]),
        error: TsigError(u16::from_be_bytes([e0, e1])),
        other,
    }))
}

impl Signed<'_> {
    /// Returns the message without the record.
    pub fn message(&self) -> Vec<u8> {
        let mut message = self.octets.to_vec();
        if let Some(header) = Header::parse(&message) {
            let without = Header { additionals: header.additionals.saturating_sub(1), ..header };
            message[..Header::LEN].copy_from_slice(&without.to_bytes());
        }
        message
    }

    /// Returns the message as it was digested: without the record, and with the ID it had then.
    pub(crate) fn digested(&self) -> Vec<u8> {
        let mut message = self.message();
        if let Some(id) = message.get_mut(..2) {
            id.copy_from_slice(&self.original_id.to_be_bytes());
        }
        message
    }
}

/// What stands in a TSIG record.
pub(crate) struct Parts<'a> {
    pub(crate) key: Name<'a>,
    pub(crate) algorithm: &'a [u8],
    pub(crate) time: u64,
    pub(crate) fudge: u16,
    pub(crate) mac: &'a [u8],
    pub(crate) original_id: u16,
    pub(crate) error: TsigError,
    pub(crate) other: &'a [u8],
}

/// Appends a TSIG record to a message and counts it.
pub(crate) fn append(message: &mut Vec<u8>, parts: &Parts<'_>) {
    let Some(header) = Header::parse(message) else { return };
    let header = Header { additionals: header.additionals.saturating_add(1), ..header };
    message[..Header::LEN].copy_from_slice(&header.to_bytes());
    message.extend_from_slice(parts.key.as_bytes());
    message.extend_from_slice(&Rtype::TSIG.0.to_be_bytes());
    message.extend_from_slice(&Class::ANY.0.to_be_bytes());
    message.extend_from_slice(&[0; 4]);
    let len = parts.algorithm.len() + 16 + parts.mac.len() + parts.other.len();
    message.extend_from_slice(&(len as u16).to_be_bytes());
    message.extend_from_slice(parts.algorithm);
    message.extend_from_slice(&parts.time.to_be_bytes()[2..]);
    message.extend_from_slice(&parts.fudge.to_be_bytes());
    message.extend_from_slice(&(parts.mac.len() as u16).to_be_bytes());
    message.extend_from_slice(parts.mac);
    message.extend_from_slice(&parts.original_id.to_be_bytes());
    message.extend_from_slice(&parts.error.0.to_be_bytes());
    message.extend_from_slice(&(parts.other.len() as u16).to_be_bytes());
    message.extend_from_slice(parts.other);
}

/// Makes a reply without data to a message that cannot be believed: its header and question, and a
/// response code.
pub(crate) fn bare_reply(request: &[u8], rcode: Rcode) -> Vec<u8> {
    use wire::Flags;
    let Some(asked) = Header::parse(request) else { return Vec::new() };
    // Names may lead into the signature that was taken off; then there is no question that could be
    // repeated.
    let question =
        Message::parse(request).ok().and_then(|parsed| request.get(Header::LEN..parsed.records_at()));
    let flags = Flags::QR.with_opcode(asked.flags.opcode()).with(asked.flags.only(Flags::RD));
    let header = Header {
        id: asked.id,
        flags: flags.with_rcode(rcode),
        questions: question.map_or(0, |_| asked.questions),
        ..Header::default()
    };
    let mut reply = header.to_bytes().to_vec();
    reply.extend_from_slice(question.unwrap_or(&[]));
    reply
}
