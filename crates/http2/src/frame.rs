//! Frames: their heads, their kinds, and the codes of errors (RFC 9113 §4, §6, §7).

/// What a client begins with (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Octets of a frame's head.
pub(crate) const HEAD_OCTETS: usize = 9;
/// Octets of the largest frame that we take: what everybody has to (RFC 9113 §4.2).
pub(crate) const FRAME_OCTETS_MAX: usize = 1 << 14;
/// Octets of the largest frame there can be.
pub(crate) const FRAME_OCTETS_LIMIT: u32 = (1 << 24) - 1;
/// The largest window (RFC 9113 §6.9.1).
pub(crate) const WINDOW_MAX: i64 = (1 << 31) - 1;
/// The window that everything begins with (RFC 9113 §6.9.2).
pub(crate) const WINDOW_AT_FIRST: i64 = 65_535;

/// The kind of a frame. Open: what we do not know is ignored (RFC 9113 §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) u8);

impl Kind {
    pub(crate) const DATA: Self = Self(0);
    pub(crate) const HEADERS: Self = Self(1);
    pub(crate) const PRIORITY: Self = Self(2);
    pub(crate) const RST_STREAM: Self = Self(3);
    pub(crate) const SETTINGS: Self = Self(4);
    pub(crate) const PUSH_PROMISE: Self = Self(5);
    pub(crate) const PING: Self = Self(6);
    pub(crate) const GOAWAY: Self = Self(7);
    pub(crate) const WINDOW_UPDATE: Self = Self(8);
    pub(crate) const CONTINUATION: Self = Self(9);
}

/// A frame's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ACK: Self = Self(1);
    pub(crate) const END_STREAM: Self = Self(1);
    pub(crate) const END_HEADERS: Self = Self(4);
    pub(crate) const PADDED: Self = Self(8);
    pub(crate) const PRIORITY: Self = Self(0x20);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Why a stream or a connection ends (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const NO_ERROR: Self = Self(0);
    pub(crate) const PROTOCOL_ERROR: Self = Self(1);
    pub(crate) const FLOW_CONTROL_ERROR: Self = Self(3);
    pub(crate) const STREAM_CLOSED: Self = Self(5);
    pub(crate) const FRAME_SIZE_ERROR: Self = Self(6);
    pub(crate) const REFUSED_STREAM: Self = Self(7);
    pub(crate) const COMPRESSION_ERROR: Self = Self(9);
    pub(crate) const ENHANCE_YOUR_CALM: Self = Self(11);
}

/// Names of settings (RFC 9113 §6.5.2).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// A frame as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) stream: u32,
    pub(crate) payload: &'a [u8],
}

/// Why no frame could be split off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsplit {
    /// Part of it is still to come.
    Incomplete,
    /// It is larger than we take.
    TooLarge,
}

/// Splits off the first frame.
pub(crate) fn split(bytes: &[u8]) -> Result<(Frame<'_>, &[u8]), Unsplit> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_OCTETS>().ok_or(Unsplit::Incomplete)?;
    let &[high, middle, low, kind, flags, a, b, c, d] = head;
    let len = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    if len > FRAME_OCTETS_MAX {
        return Err(Unsplit::TooLarge);
    }
    let (payload, rest) = rest.split_at_checked(len).ok_or(Unsplit::Incomplete)?;
    // The first bit is reserved and means nothing.
    let stream = u32::from_be_bytes([a, b, c, d]) & (u32::MAX >> 1);
    Ok((Frame { kind: Kind(kind), flags: Flags(flags), stream, payload }, rest))
}

/// Writes the head of a frame.
pub(crate) fn write_head(out: &mut Vec<u8>, len: usize, kind: Kind, flags: Flags, stream: u32) {
    let [_, high, middle, low] = u32::try_from(len).unwrap_or(FRAME_OCTETS_LIMIT).to_be_bytes();
    let [a, b, c, d] = stream.to_be_bytes();
    out.extend_from_slice(&[high, middle, low, kind.0, flags.0, a, b, c, d]);
}

/// Writes a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
pub(crate) fn write_number(out: &mut Vec<u8>, kind: Kind, stream: u32, number: u32) {
    write_head(out, 4, kind, Flags::NONE, stream);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Takes the padding off (RFC 9113 §6.1); `None` if there is more of it than payload.
pub(crate) fn unpadded<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    if !frame.flags.has(Flags::PADDED) {
        return Some(frame.payload);
    }
    let (&padding, rest) = frame.payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(padding))?)
}
