//! Commands to Redis servers and their replies, as octets (RESP, version 2).
//!
//! A client may write many commands before the first reply has come; replies come in the order of
//! the commands. [`command`] writes one, and a [`Reader`] takes octets as they are received and
//! gives out whole replies.
//!
//! Never does I/O, never holds more than its limit allows, whatever a server sends.

#![forbid(unsafe_code)]

use std::fmt;

/// Octets of the longest line: a status, an error, a number or a length.
const LINE_OCTETS_MAX: usize = 1024;
/// What ends a line, and the octets of a value.
const END: &[u8; 2] = b"\r\n";

/// One reply to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'b> {
    /// There is no such value.
    Nil,
    /// A value.
    Octets(&'b [u8]),
    /// That the command was carried out, in a word such as `OK`.
    Status(&'b [u8]),
    /// That it was not, and why.
    Error(&'b [u8]),
    /// A number.
    Number(i64),
}

/// Why nothing more of a connection can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The octets are no reply, or a list, which no command of ours asks for.
    Malformed,
    /// A reply is longer than the limit.
    TooLong,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it does not speak the protocol of Redis",
            Self::TooLong => "its reply is too long",
        })
    }
}

/// Writes a command, a list of its words, behind what is in `out`.
pub fn command(words: &[&[u8]], out: &mut Vec<u8>) {
    line(b'*', words.len(), out);
    for word in words {
        line(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(END);
    }
}

/// Returns how many octets [`command`] writes at most.
pub fn command_octets_max(words: &[&[u8]]) -> usize {
    // A kind, as many digits as a length has at most, and the end of the line.
    const LENGTH: usize = 1 + 20 + 2;
    LENGTH + words.iter().map(|word| LENGTH + word.len() + END.len()).sum::<usize>()
}

fn line(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(length.to_string().as_bytes());
    out.extend_from_slice(END);
}

/// Reads replies out of octets as they come, however they are cut.
#[derive(Debug)]
pub struct Reader {
    /// What was received and not given out yet.
    octets: Vec<u8>,
    /// Where in it the next reply begins.
    at: usize,
    octets_max: usize,
}

impl Reader {
    /// Returns a reader that takes values of up to `octets_max` octets.
    pub const fn new(octets_max: usize) -> Self {
        Self { octets: Vec::new(), at: 0, octets_max }
    }

    /// Takes what was received. Nothing is refused here: call [`Reader::next_reply`] until it has
    /// no more, so that no more than one reply and what was last received is held.
    pub fn push(&mut self, octets: &[u8]) {
        if self.at > 0 {
            self.octets.drain(..self.at);
            self.at = 0;
        }
        self.octets.extend_from_slice(octets);
    }

    /// Returns how many octets are held.
    pub const fn held(&self) -> usize {
        self.octets.len()
    }

    /// Returns the next whole reply; `None` if more has to come first. After an error the
    /// connection is of no use: where the next reply begins is not known.
    pub fn next_reply(&mut self) -> Result<Option<Reply<'_>>, Broken> {
        let rest = self.octets.get(self.at..).unwrap_or(&[]);
        let Some((&kind, rest)) = rest.split_first() else { return Ok(None) };
        if !matches!(kind, b'$' | b'+' | b'-' | b':') {
            return Err(Broken::Malformed);
        }
        let within = rest.get(..LINE_OCTETS_MAX).unwrap_or(rest);
        let Some(end) = within.windows(END.len()).position(|two| two == END) else {
            return if rest.len() < LINE_OCTETS_MAX { Ok(None) } else { Err(Broken::TooLong) };
        };
        let (text, rest) = (within.get(..end).unwrap_or(&[]), rest.get(end + END.len()..).unwrap_or(&[]));
        let line_octets = 1 + end + END.len();
        let (reply, octets) = match kind {
            b'+' => (Reply::Status(text), line_octets),
            b'-' => (Reply::Error(text), line_octets),
            b':' => (Reply::Number(number(text)?), line_octets),
            _ if text == b"-1" => (Reply::Nil, line_octets),
            _ => {
                let length = usize::try_from(number(text)?).map_err(|_| Broken::Malformed)?;
                if length > self.octets_max {
                    return Err(Broken::TooLong);
                }
                let Some(value) = rest.get(..length) else { return Ok(None) };
                match rest.get(length..length + END.len()) {
                    None => return Ok(None),
                    Some(end) if end == END => (Reply::Octets(value), line_octets + length + END.len()),
                    Some(_) => return Err(Broken::Malformed),
                }
            }
        };
        self.at += octets;
        Ok(Some(reply))
    }
}

/// Reads a decimal number.
fn number(text: &[u8]) -> Result<i64, Broken> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
    number.ok_or(Broken::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reply that outlives its reader.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Kept {
        Nil,
        Octets(Vec<u8>),
        Status(Vec<u8>),
        Error(Vec<u8>),
        Number(i64),
    }

    impl From<Reply<'_>> for Kept {
        fn from(reply: Reply<'_>) -> Self {
            match reply {
                Reply::Nil => Self::Nil,
                Reply::Octets(octets) => Self::Octets(octets.to_vec()),
                Reply::Status(text) => Self::Status(text.to_vec()),
                Reply::Error(text) => Self::Error(text.to_vec()),
                Reply::Number(number) => Self::Number(number),
            }
        }
    }

    impl Kept {
        fn write(&self, out: &mut Vec<u8>) {
            match self {
                Self::Nil => out.extend_from_slice(b"$-1\r\n"),
                Self::Octets(octets) => {
                    line(b'$', octets.len(), out);
                    out.extend_from_slice(octets);
                    out.extend_from_slice(END);
                }
                Self::Status(text) => out.extend([b"+", &text[..], END].concat()),
                Self::Error(text) => out.extend([b"-", &text[..], END].concat()),
                Self::Number(number) => out.extend(format!(":{number}\r\n").into_bytes()),
            }
        }
    }

    const OCTETS_MAX: usize = 4096;

    /// Reads pieces; returns the replies, how it ended, and the most octets that were held.
    fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<Kept>, Result<(), Broken>, usize) {
        let mut reader = Reader::new(OCTETS_MAX);
        let (mut replies, mut held) = (Vec::new(), 0);
        for piece in pieces {
            reader.push(piece);
            held = held.max(reader.held());
            loop {
                match reader.next_reply() {
                    Ok(Some(reply)) => replies.push(reply.into()),
                    Ok(None) => break,
                    Err(broken) => return (replies, Err(broken), held),
                }
            }
        }
        (replies, Ok(()), held)
    }

    #[test]
    fn commands_are_lists_of_their_words() {
        let mut out = Vec::new();
        let words: [&[u8]; 3] = [b"SET", b"key", b"a\r\nb"];
        command(&words, &mut out);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4\r\na\r\nb\r\n");
        assert!(out.len() <= command_octets_max(&words));
    }

    #[test]
    fn what_is_no_reply_ends_the_connection() {
        let check = |octets: &[u8], expected: Broken| {
            let (replies, end, _) = read([octets]);
            assert_eq!((replies, end), (Vec::new(), Err(expected)), "{}", octets.escape_ascii());
        };
        check(b"HTTP/1.1 400 Bad Request\r\n", Broken::Malformed);
        check(b"*1\r\n*1\r\n*1\r\n", Broken::Malformed);
        check(b"$-2\r\n", Broken::Malformed);
        check(b"$+5\r\nhello\r\n", Broken::Malformed);
        check(b"$\r\n\r\n", Broken::Malformed);
        check(b":\r\n", Broken::Malformed);
        check(b":12a\r\n", Broken::Malformed);
        check(b":99999999999999999999\r\n", Broken::Malformed);
        check(b"$5\r\nhelloXY", Broken::Malformed);
        check(b"$99999999999999999999999999\r\n", Broken::Malformed);
        check(b"$9223372036854775807\r\n", Broken::TooLong);
        check(b"$4097\r\n", Broken::TooLong);
        check(&[b"-", &[b'x'; LINE_OCTETS_MAX][..]].concat(), Broken::TooLong);
        check(&[b"$", &[b'1'; 2 * LINE_OCTETS_MAX][..]].concat(), Broken::TooLong);
    }

    #[test]
    fn a_line_that_does_not_end_is_not_kept_for_ever() {
        let piece = [b'x'; 100];
        let pieces = std::iter::once(&b"+"[..]).chain(std::iter::repeat(&piece[..]));
        let (_, end, held) = read(pieces);
        assert_eq!(end, Err(Broken::TooLong));
        assert!(held <= 1 + LINE_OCTETS_MAX + piece.len(), "{held}");
    }

    fn replies() -> impl Strategy<Value = Vec<Kept>> {
        let text = || proptest::collection::vec(b' '..=b'~', 0..60);
        let one = prop_oneof![
            Just(Kept::Nil),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Kept::Octets),
            text().prop_map(Kept::Status),
            text().prop_map(Kept::Error),
            any::<i64>().prop_map(Kept::Number),
        ];
        proptest::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn replies_are_the_same_however_they_are_cut(replies in replies(), size in 1_usize..40) {
            let mut octets = Vec::new();
            replies.iter().for_each(|reply| reply.write(&mut octets));
            let (found, end, _) = read(octets.chunks(size));
            prop_assert_eq!((found, end), (replies, Ok(())));
        }

        #[test]
        fn no_octets_panic_or_take_more_memory_than_the_limit(
            pieces in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..64),
                    proptest::collection::vec(
                        prop_oneof![Just(b'$'), Just(b'*'), Just(b'-'), Just(b':'), Just(b'\r'), Just(b'\n'), b'0'..=b'9'],
                        0..64,
                    ),
                    Just(b"$4096\r\n".to_vec()),
                    Just(b"$2147483647\r\n".to_vec()),
                    Just(b"*2147483647\r\n".to_vec()),
                ],
                0..400,
            ),
        ) {
            let (_, _, held) = read(pieces.iter().map(Vec::as_slice));
            prop_assert!(held <= OCTETS_MAX + 2 * LINE_OCTETS_MAX);
        }
    }
}
