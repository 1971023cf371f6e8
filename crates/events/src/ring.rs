//! Hot path: no allocation, no locks, no waiting, no panics.
//!
//! The ring that a worker's records go through: one writer, one reader, no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crate::Counter;
use crate::record::{Event, EventRecord, Slots, words_of};
use crate::{LABELS_MAX, LabelId};

/// The smallest ring has room for a few of the longest records.
const RING_WORDS_MIN: usize = 1024;

/// What both ends of a ring share. A word is written by the writer before `tail` passes it and read
/// by the reader before `head` does.
struct Ring {
    words: Box<[AtomicU64]>,
    /// Words written since the beginning.
    tail: Line,
    /// Words read since the beginning.
    head: Line,
    told: Counter,
    dropped: Counter,
    labels: Box<[Counter]>,
    doorbell: Arc<Doorbell>,
}

/// A counter on cache lines of its own: the two ends do not slow each other.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Wakes the reader of some rings.
#[derive(Debug, Default)]
pub struct Doorbell {
    is_armed: AtomicBool,
    /// Whether the reader wants to be woken for the first record, whatever it is.
    wants_any: AtomicBool,
    sleeper: OnceLock<Thread>,
}

impl Doorbell {
    /// Says who is to be woken; only the first to say so is.
    pub fn belongs_to(&self, thread: Thread) {
        drop(self.sleeper.set(thread));
    }

    /// The reader is about to sleep; it must look into its rings once more after this.
    pub fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The reader is awake.
    pub fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
    }

    /// The reader has had nothing to do and wants to sleep until there is a record. It must look
    /// into its rings once more, some milliseconds after this and not at once: a writer that has
    /// not seen this yet has its record visible by then. (A fence in the writer would do it at
    /// once, and cost every record.)
    pub fn want_any(&self) {
        self.wants_any.store(true, Ordering::SeqCst);
    }

    /// The reader reads again.
    pub fn want_many(&self) {
        self.wants_any.store(false, Ordering::Relaxed);
    }

    /// Wakes a reader that wants to know of any record.
    fn ring_for_any(&self) {
        if self.wants_any.load(Ordering::Relaxed)
            && self.wants_any.swap(false, Ordering::Relaxed)
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// Wakes the reader if it sleeps: a system call then, and otherwise one load.
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_armed.load(Ordering::Relaxed)
            && self.is_armed.swap(false, Ordering::Relaxed)
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }
}

/// Makes a ring of about `octets` octets.
// Once per worker.
pub fn ring(octets: usize, doorbell: Arc<Doorbell>) -> (EventWriter, EventReader) {
    let words = (octets / size_of::<u64>()).max(RING_WORDS_MIN).next_power_of_two();
    let ring = Arc::new(Ring {
        words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        tail: Line::default(),
        head: Line::default(),
        told: Counter::default(),
        dropped: Counter::default(),
        labels: (0..LABELS_MAX).map(|_| Counter::default()).collect(),
        doorbell,
    });
    (EventWriter { ring: Arc::clone(&ring), tail: 0, head: 0 }, EventReader { ring, head: 0 })
}

/// The worker's end of a ring.
pub struct EventWriter {
    ring: Arc<Ring>,
    tail: u64,
    /// Where the reader was when we last looked.
    head: u64,
}

impl EventWriter {
    /// Writes a record, or drops it and counts that.
    pub fn tell(&mut self, event: &Event<'_>) {
        let words = event.words();
        let capacity = self.ring.words.len();
        if self.used() + words > capacity {
            self.head = self.ring.head.0.load(Ordering::Acquire);
            if self.used() + words > capacity {
                self.ring.dropped.bump();
                self.ring.doorbell.ring();
                return;
            }
        }
        let at = self.tail as usize & capacity.wrapping_sub(1);
        let Some((begin, end)) = self.ring.words.split_at_checked(at) else { return };
        event.write(words, Slots(end.iter().chain(begin)));
        self.tail = self.tail.wrapping_add(words as u64);
        self.ring.tail.0.store(self.tail, Ordering::Release);
        self.ring.told.bump();
        if self.used() > capacity / 2 {
            // Half full by what we last knew; a reader that keeps up is not to be woken for it.
            self.head = self.ring.head.0.load(Ordering::Acquire);
        }
        if event.event_set.is_urgent || self.used() > capacity / 2 {
            self.ring.doorbell.ring();
        }
        self.ring.doorbell.ring_for_any();
    }

    /// Counts a query under a label.
    #[inline]
    pub fn count(&self, label: LabelId) {
        if let Some(counter) = self.ring.labels.get(usize::from(label.0)) {
            counter.bump();
        }
    }

    /// Counts something that was to be told and cannot be.
    #[inline]
    pub fn lose(&self) {
        self.ring.dropped.bump();
    }

    fn used(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }
}

/// The jobs' end of a ring.
pub struct EventReader {
    ring: Arc<Ring>,
    head: u64,
}

impl EventReader {
    /// Returns whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.ring.tail.0.load(Ordering::Acquire) == self.head
    }

    /// Replaces the content of `record` with the next one; false when there is none.
    pub fn read(&mut self, record: &mut EventRecord) -> bool {
        record.0.clear();
        self.read_behind(&mut record.0)
    }

    /// Appends the words of the next record to `words`, as [`EventView::new`] reads them; false
    /// when there is none.
    ///
    /// Gives the room back at once: it may be called as long as records come.
    pub fn read_behind(&mut self, words: &mut Vec<u64>) -> bool {
        if self.is_empty() {
            return false;
        }
        let len = words_of(self.word(self.head));
        let at = self.head as usize & self.ring.words.len().wrapping_sub(1);
        let (begin, end) = self.ring.words.split_at_checked(at).unwrap_or_default();
        words.extend(end.iter().chain(begin).take(len as usize).map(|word| word.load(Ordering::Relaxed)));
        self.head = self.head.wrapping_add(len);
        self.ring.head.0.store(self.head, Ordering::Release);
        true
    }

    /// Returns how many records were written.
    pub fn told(&self) -> u64 {
        self.ring.told.read()
    }

    /// Returns how many found no room.
    pub fn dropped(&self) -> u64 {
        self.ring.dropped.read()
    }

    /// Returns a view of the ring's counts that outlives the reader's turn.
    pub fn counts(&self) -> EventCounts {
        EventCounts(Arc::clone(&self.ring))
    }

    fn word(&self, at: u64) -> u64 {
        let at = at as usize & self.ring.words.len().wrapping_sub(1);
        self.ring.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// What a ring counts, for whoever asks.
#[derive(Clone)]
pub struct EventCounts(Arc<Ring>);

impl EventCounts {
    /// Returns how many records were written.
    pub fn told(&self) -> u64 {
        self.0.told.read()
    }

    /// Returns how many found no room.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.read()
    }

    /// Returns how many queries were counted under a label.
    pub fn label(&self, label: LabelId) -> u64 {
        self.0.labels.get(usize::from(label.0)).map_or(0, Counter::read)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::record::tests::body;
    use crate::tests::event_set;
    use crate::{Addresses, EventId, EventSet, Listed, Mark, PATH_MAX, Path};
    use clients::client::{ListenerId, Transport};
    use wire::{Class, EdeCode, NameBuf, Rcode, Rtype};

    const UPSTREAM: std::net::SocketAddr =
        std::net::SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 53)), 5353);

    /// Whether a server answered; records of a multiple of 40 are of one length.
    const fn has_upstream(number: u64) -> bool {
        number.is_multiple_of(3) && !number.is_multiple_of(40)
    }

    /// How many refused queries a record stands for: mostly none.
    const fn refused(number: u64) -> u32 {
        if number % 5 == 4 { number as u32 } else { 0 }
    }

    fn name(text: &str) -> NameBuf {
        text.parse().expect("a name")
    }

    fn tell(writer: &mut EventWriter, qname: &str, addresses: &[IpAddr], number: u64) {
        tell_with(writer, &event_set(&[number as u16, 7]), qname, addresses, number);
    }

    fn tell_with(
        writer: &mut EventWriter,
        event_set: &EventSet,
        qname: &str,
        addresses: &[IpAddr],
        number: u64,
    ) {
        let (qname, addresses) = (name(qname), addresses.to_vec());
        let mut path = Path::default();
        (0..number as u16 % 40).for_each(|step| path.push(step, Mark::Hit));
        if number % 40 % 2 == 1 {
            path.note_listed(Listed { step: number as u16, list: 7 + number as u32, line: u32::MAX });
        }
        writer.tell(&Event {
            event_set,
            monotonic_ms: number,
            waited_us: number * 2000 + 7,
            octets: number as u16,
            client: "192.0.2.1".parse().expect("an address"),
            port: 5353,
            transport: Transport::Tcp,
            listener: ListenerId(number as u16 / 2),
            cause: number.is_multiple_of(2).then_some(EdeCode(number as u16 % 31)),
            qname: qname.as_name(),
            qtype: Rtype::AAAA,
            qclass: Class::IN,
            rcode: Some(Rcode::NXDOMAIN),
            answers: addresses.len() as u16,
            addresses: &Addresses::read(&body(&addresses, 60), addresses.len() as u16),
            snapshot: 3,
            path: &path,
            upstream: has_upstream(number).then_some(UPSTREAM),
            refused: refused(number),
        });
    }

    fn check(record: &EventRecord, qname: &str, addresses: &[IpAddr], number: u64) {
        let view = record.view();
        let mut room = [0; 256];
        assert!(view.qname(&mut room) == name(qname).as_name());
        assert_eq!(view.addresses().collect::<Vec<_>>(), addresses);
        let mut ids = vec![EventId(number as u16), EventId(7)];
        ids.dedup();
        assert_eq!(view.event_set().collect::<Vec<_>>(), ids);
        let waited_us = if refused(number) > 0 { 0 } else { number * 2000 + 7 };
        assert_eq!((view.monotonic_ms(), u64::from(view.waited_ms())), (number, waited_us / 1000));
        assert_eq!(view.refused(), refused(number));
        assert_eq!(view.listener(), ListenerId(number as u16 / 2));
        assert_eq!(view.cause(), number.is_multiple_of(2).then_some(EdeCode(number as u16 % 31)));
        assert_eq!(view.waited_us(), waited_us);
        assert_eq!((view.client().to_string(), view.port()), ("192.0.2.1".to_owned(), 5353));
        assert_eq!((view.transport(), view.qtype(), view.qclass()), (Transport::Tcp, Rtype::AAAA, Class::IN));
        assert_eq!((view.rcode(), view.snapshot()), (Some(Rcode::NXDOMAIN), 3));
        assert_eq!(view.ttl(), if addresses.is_empty() { u32::MAX } else { 60 });
        assert_eq!(view.path().count(), (number as usize % 40).min(PATH_MAX));
        assert!(view.path().enumerate().all(|(index, step)| step == (index as u16, Mark::Hit)));
        // The last step counts, also if there was no room for it.
        assert_eq!(view.decided(), (number as u16 % 40).checked_sub(1).map(|step| (step, Mark::Hit)));
        let listed = Listed { step: number as u16, list: 7 + number as u32, line: u32::MAX };
        assert_eq!(view.listed(), (number % 40 % 2 == 1).then_some(listed));
        assert_eq!(view.upstream(), has_upstream(number).then_some(UPSTREAM));
    }

    #[test]
    fn what_is_told_is_read_in_order_and_whole() {
        let (mut writer, mut reader) = ring(0, Arc::default());
        let both: [IpAddr; 2] = ["192.0.2.7".parse().expect("v4"), "2001:db8::7".parse().expect("v6")];
        let long = format!("{0}.{0}.{0}.example.org", "x".repeat(63));
        let mut record = EventRecord::default();
        // Many times around the ring, at every alignment.
        for number in 0..2000 {
            let qname = ["example.org", ".", &long][number as usize % 3];
            let addresses = &both[..number as usize % 3];
            tell(&mut writer, qname, addresses, number);
            assert!(reader.read(&mut record));
            check(&record, qname, addresses, number);
            assert!(!reader.read(&mut record));
        }
        assert_eq!((reader.told(), reader.dropped()), (2000, 0));
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_counts_them() {
        let (mut writer, mut reader) = ring(0, Arc::default());
        // All of the same length: a short one may find room where a longer one before it did not.
        for number in 0..500 {
            tell(&mut writer, "example.org", &[], number * 40);
        }
        let (told, dropped) = (reader.told(), reader.dropped());
        assert!(told > 50 && dropped > 50 && told + dropped == 500, "{told} {dropped}");
        let mut record = EventRecord::default();
        for number in 0..told {
            assert!(reader.read(&mut record));
            check(&record, "example.org", &[], number * 40);
        }
        assert!(!reader.read(&mut record));
        tell(&mut writer, "example.org", &[], 1);
        assert!(reader.read(&mut record), "there is room again");
    }

    #[test]
    fn the_two_ends_may_be_threads() {
        let (mut writer, mut reader) = ring(0, Arc::default());
        const EVENTS: u64 = 20_000;
        let writing = std::thread::spawn(move || {
            for number in 0..EVENTS {
                tell(&mut writer, "www.example.org", &[], number);
            }
        });
        let mut record = EventRecord::default();
        let mut last = None;
        let mut read = 0;
        loop {
            let is_over = writing.is_finished();
            while reader.read(&mut record) {
                let number = record.view().monotonic_ms();
                assert!(last.is_none_or(|last| number > last));
                check(&record, "www.example.org", &[], number);
                last = Some(number);
                read += 1;
            }
            if is_over && reader.is_empty() {
                break;
            }
        }
        assert_eq!(read, reader.told());
        assert_eq!(read + reader.dropped(), EVENTS);
    }

    #[test]
    fn the_doorbell_wakes_only_who_sleeps() {
        let doorbell = Doorbell::default();
        doorbell.belongs_to(std::thread::current());
        doorbell.ring();
        doorbell.arm();
        doorbell.ring();
        assert!(!doorbell.is_armed.load(Ordering::Relaxed), "it was woken");
        // The token is there: this does not wait.
        std::thread::park();
    }

    #[test]
    fn a_reader_that_has_had_nothing_to_do_is_woken_for_the_first_record() {
        let doorbell = Arc::new(Doorbell::default());
        doorbell.belongs_to(std::thread::current());
        let (mut writer, mut reader) = ring(0, Arc::clone(&doorbell));
        doorbell.want_any();
        tell(&mut writer, "example.org", &[], 1);
        assert!(!doorbell.wants_any.load(Ordering::Relaxed), "it was woken");
        // The token is there: this does not wait.
        std::thread::park();
        assert!(reader.read(&mut EventRecord::default()));
        tell(&mut writer, "example.org", &[], 2);
        assert!(!doorbell.wants_any.load(Ordering::Relaxed), "once");
    }

    #[test]
    fn a_reader_that_keeps_up_is_woken_for_what_is_urgent_only() {
        let doorbell = Arc::new(Doorbell::default());
        doorbell.belongs_to(std::thread::current());
        let (mut writer, mut reader) = ring(0, Arc::clone(&doorbell));
        let mut record = EventRecord::default();
        doorbell.arm();
        // Several times around the ring.
        for number in 0..500 {
            tell(&mut writer, "example.org", &[], number);
            assert!(reader.read(&mut record) && !record.view().is_urgent());
            assert!(doorbell.is_armed.load(Ordering::Relaxed), "woken for record {number}");
        }
        let mut urgent = event_set(&[1]);
        urgent.is_urgent = true;
        tell_with(&mut writer, &urgent, "example.org", &[], 1);
        assert!(reader.read(&mut record) && record.view().is_urgent());
        assert!(!doorbell.is_armed.load(Ordering::Relaxed), "it was woken");
        doorbell.arm();
        for number in 0..500 {
            tell(&mut writer, "example.org", &[], number);
        }
        assert!(!doorbell.is_armed.load(Ordering::Relaxed), "it was woken before records are lost");
    }
}
