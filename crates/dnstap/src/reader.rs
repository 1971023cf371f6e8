//! Messages as they are read from a ring. Not on a worker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::message::{Kind, Peer, Protocol, from_bits};
use crate::ring::{FIXED_WORDS, Ring, bits};

/// The reader's end of a ring.
pub struct TapReader {
    ring: Arc<Ring>,
    head: u64,
}

/// A ring as those see it that neither write nor read it.
#[derive(Clone)]
pub struct TapView(Arc<Ring>);

impl TapView {
    /// Gives the ring its memory, if it has none yet: before messages are wanted.
    pub fn fill_in(&self) {
        self.0.words.get_or_init(|| (0..self.0.capacity).map(|_| AtomicU64::new(0)).collect());
    }

    /// Returns how many messages found no room.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

/// A message that was read.
#[derive(Clone, Debug)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// The other end.
    pub peer: Peer,
    /// Which of our listeners it came to, if there is a client.
    pub listener: u16,
    /// When it was read or written, on the writer's clock.
    pub at_us: u64,
    /// When the query was, if that is known.
    pub query_at_us: Option<u64>,
    /// The message.
    pub octets: Vec<u8>,
}

impl Default for Message {
    fn default() -> Self {
        Self {
            kind: Kind::ClientQuery,
            peer: Peer { address: None, protocol: Protocol::Udp },
            listener: 0,
            at_us: 0,
            query_at_us: None,
            octets: Vec::new(),
        }
    }
}

impl TapReader {
    pub(crate) fn new(ring: Arc<Ring>) -> Self {
        Self { ring, head: 0 }
    }

    /// Returns whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.ring.tail.0.load(Ordering::Acquire) == self.head
    }

    /// Replaces `message` with the next one; false when there is none.
    pub fn read(&mut self, message: &mut Message) -> bool {
        let Some(words) = self.ring.words.get().filter(|_| !self.is_empty()) else { return false };
        let at = self.head as usize & (self.ring.capacity - 1);
        let (begin, end) = words.split_at_checked(at).unwrap_or_default();
        let mut places = end.iter().chain(begin).map(|word| word.load(Ordering::Relaxed));
        let mut next = || places.next().unwrap_or(0);
        let [first, high, low, at_us, query_at_us] = std::array::from_fn(|_| next());
        let has = |bit: u32| first >> bit & 1 == 1;
        let address = from_bits(u128::from(high) << 64 | u128::from(low), has(bits::IS_V4));
        let port = (first >> bits::PORT) as u16;
        message.kind = Kind::of_index((first >> bits::KIND) as u8 & 0xf);
        message.peer = Peer {
            address: has(bits::HAS_ADDRESS).then_some(SocketAddr::new(address, port)),
            protocol: Protocol::of_number((first >> bits::PROTOCOL) as u8),
        };
        message.listener = (first >> bits::LISTENER) as u16;
        message.at_us = at_us;
        message.query_at_us = has(bits::HAS_QUERY_TIME).then_some(query_at_us);
        let octets = usize::from((first >> bits::OCTETS) as u16);
        message.octets.clear();
        for _ in 0..octets.div_ceil(8) {
            message.octets.extend_from_slice(&next().to_ne_bytes());
        }
        message.octets.truncate(octets);
        self.head = self.head.wrapping_add((FIXED_WORDS + octets.div_ceil(8)) as u64);
        self.ring.head.0.store(self.head, Ordering::Release);
        true
    }

    /// Returns a view of the ring.
    pub fn view(&self) -> TapView {
        TapView(Arc::clone(&self.ring))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kinds, Tapped};
    use crate::ring::{OCTETS_MAX, Sampling, Tap, ring};

    fn open(one_of: u32) -> Arc<Tap> {
        let tap = Arc::<Tap>::default();
        tap.open(Kinds::of(Kind::ALL), Sampling { one_of, seed: 7 });
        tap
    }

    fn message<'m>(kind: Kind, number: u64, octets: &'m [u8]) -> Tapped<'m> {
        let address = if number.is_multiple_of(3) { "192.0.2.1:5353" } else { "[2001:db8::1]:53" };
        let address = (!number.is_multiple_of(5)).then(|| address.parse().expect("an address"));
        Tapped {
            kind,
            peer: Peer { address, protocol: Protocol::Quic },
            listener: number as u16,
            at_us: number,
            query_at_us: kind.is_response().then_some(number / 2),
            octets,
        }
    }

    #[test]
    fn what_is_written_is_read_in_order_and_whole() {
        let (mut writer, mut reader) = ring(0, open(0));
        reader.view().fill_in();
        let mut read = Message::default();
        // Many times around the ring, at every alignment.
        for number in 0..3000_u64 {
            let octets: Vec<u8> = (0..number * 7 % 3001).map(|at| (at + number) as u8).collect();
            let kind = Kind::ALL[number as usize % 6];
            let written = message(kind, number, &octets);
            writer.write(&written);
            assert!(reader.read(&mut read));
            assert_eq!((read.kind, read.peer, read.listener), (kind, written.peer, number as u16));
            assert_eq!((read.at_us, read.query_at_us), (number, written.query_at_us));
            assert_eq!(read.octets, octets);
            assert!(!reader.read(&mut read));
        }
        writer.write(&message(Kind::ClientQuery, 1, &[7; OCTETS_MAX]));
        assert!(reader.read(&mut read) && read.octets == [7; OCTETS_MAX], "the longest has room");
        assert_eq!(reader.view().dropped(), 0);
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_counts_them() {
        let (mut writer, mut reader) = ring(0, open(0));
        reader.view().fill_in();
        for number in 0..40_u64 {
            writer.write(&message(Kind::ClientQuery, number, &[0; 4000]));
        }
        let dropped = reader.view().dropped();
        assert!(dropped > 5 && dropped < 35, "{dropped}");
        let mut read = Message::default();
        for number in 0..40 - dropped {
            assert!(reader.read(&mut read) && read.at_us == number);
        }
        assert!(!reader.read(&mut read));
        writer.write(&message(Kind::ClientQuery, 1, &[0; 4000]));
        assert!(reader.read(&mut read), "there is room again");
    }

    #[test]
    fn what_nobody_wants_is_not_written() {
        let tap = Arc::<Tap>::default();
        let (mut writer, mut reader) = ring(0, Arc::clone(&tap));
        writer.write(&message(Kind::ClientQuery, 1, &[]));
        assert!(reader.is_empty() && !writer.wants(Kind::ClientQuery), "the tap is closed");
        reader.view().fill_in();
        tap.open(Kinds::of([Kind::ClientQuery]), Sampling { one_of: 0, seed: 0 });
        writer.write(&message(Kind::ClientResponse, 1, &[]));
        writer.write(&message(Kind::ClientQuery, 2, &[]));
        let mut read = Message::default();
        assert!(reader.read(&mut read) && read.at_us == 2 && !reader.read(&mut read));
        tap.close();
        writer.write(&message(Kind::ClientQuery, 3, &[]));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_sample_has_queries_with_their_replies_and_the_share_that_was_asked_for() {
        let (mut writer, mut reader) = ring(0, open(10));
        reader.view().fill_in();
        let mut read = Message::default();
        let mut chosen = 0;
        for id in 0..10_000_u16 {
            let mut octets = [0; 40];
            octets[..2].copy_from_slice(&id.to_be_bytes());
            octets[12..17].copy_from_slice(b"\x03Www\0");
            writer.write(&message(Kind::ClientQuery, 1, &octets));
            let is_chosen = reader.read(&mut read);
            chosen += usize::from(is_chosen);
            octets[13] = b'w';
            octets[30] = 7;
            writer.write(&message(Kind::ClientResponse, 1, &octets));
            assert_eq!(reader.read(&mut read), is_chosen, "the reply to {id}");
        }
        assert!((800..1200).contains(&chosen), "{chosen} of 10000");
    }

    #[test]
    fn the_two_ends_may_be_threads() {
        const MESSAGES: u64 = 20_000;
        let (mut writer, mut reader) = ring(0, open(0));
        reader.view().fill_in();
        let writing = std::thread::spawn(move || {
            for number in 0..MESSAGES {
                writer.write(&message(Kind::ClientQuery, number, &[number as u8; 333]));
            }
        });
        let (mut read, mut last, mut count) = (Message::default(), None, 0);
        loop {
            let is_over = writing.is_finished();
            while reader.read(&mut read) {
                assert!(last.is_none_or(|last| read.at_us > last));
                assert_eq!(read.octets, [read.at_us as u8; 333]);
                last = Some(read.at_us);
                count += 1;
            }
            if is_over && reader.is_empty() {
                break;
            }
        }
        assert_eq!(count + reader.view().dropped(), MESSAGES);
    }

    #[test]
    fn the_bell_wakes_only_who_sleeps() {
        let tap = open(0);
        tap.bell().belongs_to(std::thread::current());
        let (mut writer, reader) = ring(0, Arc::clone(&tap));
        reader.view().fill_in();
        tap.bell().sleep();
        writer.write(&message(Kind::ClientQuery, 1, &[]));
        assert!(!tap.bell.is_asleep.load(Ordering::Relaxed), "it was woken");
        // The token is there: this does not wait.
        std::thread::park();
        tap.bell().nap();
        writer.write(&message(Kind::ClientQuery, 1, &[]));
        assert!(tap.bell.is_napping.load(Ordering::Relaxed), "it naps on");
        for number in 0..20 {
            writer.write(&message(Kind::ClientQuery, number, &[0; 4000]));
        }
        assert!(!tap.bell.is_napping.load(Ordering::Relaxed), "it was woken before messages are lost");
        std::thread::park();
    }
}
