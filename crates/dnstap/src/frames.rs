//! Frame Streams: messages on a stream of octets, each after its length.
//!
//! A data frame is a length of four octets and so many octets. A length of zero stands before a
//! control frame: another length, a type, and fields. The sender of a bidirectional stream says
//! READY and hears ACCEPT before it says START, and hears FINISH after it has said STOP; that of a
//! unidirectional one says START and STOP alone.

/// What the frames of a stream hold, as its control frames say.
pub const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";
/// Octets of the longest control frame, its type and fields.
pub const CONTROL_OCTETS_MAX: usize = 512;
/// The field of a control frame that has the type of content.
const CONTENT_TYPE_FIELD: u32 = 1;

/// The type of a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The receiver takes the content that was offered.
    Accept = 1,
    /// Data follows.
    Start = 2,
    /// No more data follows.
    Stop = 3,
    /// The sender offers this content.
    Ready = 4,
    /// The receiver has read everything.
    Finish = 5,
}

impl Control {
    const ALL: [Self; 5] = [Self::Accept, Self::Start, Self::Stop, Self::Ready, Self::Finish];

    /// Returns its frame as a sender of dnstap writes it, whole.
    pub fn frame(self) -> Vec<u8> {
        let mut body = (self as u32).to_be_bytes().to_vec();
        if matches!(self, Self::Accept | Self::Start | Self::Ready) {
            body.extend(CONTENT_TYPE_FIELD.to_be_bytes());
            body.extend((CONTENT_TYPE.len() as u32).to_be_bytes());
            body.extend(CONTENT_TYPE);
        }
        [&[0; 4], &(body.len() as u32).to_be_bytes()[..], &body].concat()
    }

    /// Reads what a control frame has after its length: the type, and whether our content is among
    /// those that it names, if it names any.
    pub fn parse(body: &[u8]) -> Option<(Self, bool)> {
        let (&kind, mut rest) = body.split_first_chunk::<4>()?;
        let kind = u32::from_be_bytes(kind);
        let control = Self::ALL.into_iter().find(|control| *control as u32 == kind)?;
        let (mut names_any, mut names_ours) = (false, false);
        while !rest.is_empty() {
            let (&field, after) = rest.split_first_chunk::<4>()?;
            let (&length, after) = after.split_first_chunk::<4>()?;
            let (value, after) = after.split_at_checked(u32::from_be_bytes(length) as usize)?;
            if u32::from_be_bytes(field) == CONTENT_TYPE_FIELD {
                names_any = true;
                names_ours |= value == CONTENT_TYPE;
            }
            rest = after;
        }
        Some((control, names_ours || !names_any))
    }
}

/// Begins a data frame behind `out`; [`end`] writes its length.
pub fn begin(out: &mut Vec<u8>) -> usize {
    out.extend([0; 4]);
    out.len()
}

/// Ends the data frame whose content begins at `start`.
pub fn end(out: &mut [u8], start: usize) {
    let length = (out.len().saturating_sub(start) as u32).to_be_bytes();
    if let Some(room) = start.checked_sub(4).and_then(|at| out.get_mut(at..start)) {
        room.copy_from_slice(&length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_frames_are_those_of_fstrm() {
        let ready = Control::Ready.frame();
        assert_eq!(ready[..16], *b"\0\0\0\0\0\0\0\x22\0\0\0\x04\0\0\0\x01");
        assert_eq!(ready[16..], *b"\0\0\0\x16protobuf:dnstap.Dnstap");
        assert_eq!(Control::Stop.frame(), *b"\0\0\0\0\0\0\0\x04\0\0\0\x03");
        for control in Control::ALL {
            assert_eq!(Control::parse(&control.frame()[8..]), Some((control, true)));
        }
    }

    #[test]
    fn a_control_frame_of_other_content_is_not_ours() {
        let body = b"\0\0\0\x01\0\0\0\x01\0\0\0\x03abc";
        assert_eq!(Control::parse(body), Some((Control::Accept, false)));
        let both = [&body[..], b"\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap"].concat();
        assert_eq!(Control::parse(&both), Some((Control::Accept, true)));
        for cut in [&body[..3], &body[..9], &body[..14], b"\0\0\0\x09"] {
            assert_eq!(Control::parse(cut), None);
        }
    }

    #[test]
    fn data_frames_have_their_length_in_front() {
        let mut out = b"x".to_vec();
        let start = begin(&mut out);
        out.extend(b"abc");
        end(&mut out, start);
        assert_eq!(out, b"x\0\0\0\x03abc");
    }
}
