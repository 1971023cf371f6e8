//! Lists from web servers: fetched when they are due, checked, and put in place of the last good
//! copy.
//!
//! A list is read up to its size limit, within its time limit, and handed to whoever knows its
//! format before it replaces anything: what is empty of sense is thrown away, and the last good
//! copy stays. Servers are asked for what changed only (ETag, If-Modified-Since). After a failure
//! the next try comes after a minute, or after five seconds while there is no copy yet, then after
//! twice as long, up to an hour, each a little earlier or later, so that a thousand machines do not
//! come back at once.
//!
//! Names of web servers are resolved on the downloads' own thread, by the machine or by servers
//! that the operator names. If the machine asks this very server, that is a query like any other:
//! workers never wait for a download, so nothing waits for itself. A set whose first list has not
//! come yet is empty meanwhile.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::lock;
use crate::resolver::Resolvers;
use crate::server::Server;
use crate::web::{Validators, WebFile, WebReply, fetch_by};
use events::Count;
use recorder::unix_ms_now;

/// The pause after the first failure where there is a copy, where there is none, and the longest.
const RETRY_FIRST: Duration = Duration::from_secs(60);
const RETRY_EMPTY: Duration = Duration::from_secs(5);
const RETRY_LAST: Duration = Duration::from_secs(3600);
/// How long we sleep at most: the clock on the wall may be set.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// A download that takes longer than this is logged, and again each time as much has gone by.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// A list to be kept up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The set it is for.
    pub set: String,
    /// Where it is.
    pub url: String,
    /// Where the last good copy is kept; what is known about it is beside it, with `.meta` at the
    /// end.
    pub file: PathBuf,
    /// How often a newer one is asked for; `None`: never again once it is there.
    pub refresh: Option<Duration>,
    /// How long fetching it may take.
    pub timeout: Duration,
    /// Octets it may have.
    pub octets_max: u64,
}

/// A list as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListState {
    /// The set it is for.
    pub set: String,
    /// Where it is.
    pub url: String,
    /// When it was last known to be the newest, in milliseconds since 1970.
    pub fetched_ms: Option<i64>,
    /// Octets of the last good copy.
    pub octets: u64,
    /// What went wrong last, if it did.
    pub trouble: Option<String>,
    /// When that was.
    pub failed_ms: Option<i64>,
    /// When it is asked for next; never if there is none.
    pub next_ms: Option<i64>,
    /// Downloads that failed since the start.
    pub failures: u64,
}

/// What is known about a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meta {
    url: String,
    etag: String,
    last_modified: String,
    fetched_at: i64,
    octets: u64,
}

impl Meta {
    /// Writes it as JSON.
    fn to_json(&self) -> String {
        let mut text = String::from("{");
        for (key, value) in [("url", &self.url), ("etag", &self.etag), ("last_modified", &self.last_modified)]
        {
            let _ = write!(text, "\"{key}\": \"{}\", ", escaped(value));
        }
        let _ = writeln!(text, "\"fetched_at\": {}, \"octets\": {}}}", self.fetched_at, self.octets);
        text
    }

    /// Reads what [`Meta::to_json`] wrote; what cannot be read is as if it were not there.
    fn parse(text: &str) -> Option<Self> {
        let mut meta = Self::default();
        let mut rest = text.trim().strip_prefix('{')?;
        while let Some(from) = rest.trim_start().strip_prefix('"') {
            let (key, after) = string(from)?;
            let after = after.trim_start().strip_prefix(':')?.trim_start();
            let (value, after) = match after.strip_prefix('"') {
                Some(from) => string(from)?,
                None => {
                    let end = after.find([',', '}'])?;
                    (after[..end].trim().to_owned(), &after[end..])
                }
            };
            match key.as_str() {
                "url" => meta.url = value,
                "etag" => meta.etag = value,
                "last_modified" => meta.last_modified = value,
                "fetched_at" => meta.fetched_at = value.parse().ok()?,
                "octets" => meta.octets = value.parse().ok()?,
                _ => {}
            }
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        rest.trim_start().starts_with('}').then_some(meta)
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Reads a string of JSON whose first quotation mark was read; returns it and what comes after it.
fn string(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'u' => {
                    let digits: String =
                        (0..4).filter_map(|_| chars.next().map(|(_, digit)| digit)).collect();
                    value.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                c => value.push(c),
            },
            c => value.push(c),
        }
    }
    None
}

/// Returns the file beside a copy that says what is known about it.
fn meta_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".meta");
    name.into()
}

struct Entry {
    download: Download,
    meta: Option<Meta>,
    due: Option<Instant>,
    /// In a row.
    failures: u32,
    /// Since the start.
    failures_all: u64,
    trouble: Option<String>,
    failed_ms: Option<i64>,
    /// Who waits for the outcome of the next download.
    waiting: Vec<Sender<bool>>,
}

impl Entry {
    fn new(download: &Download) -> Self {
        let text = fs::read_to_string(meta_file(&download.file)).ok();
        let meta = text.and_then(|text| Meta::parse(&text));
        // Another URL, or no copy: nothing is known.
        let meta = meta.filter(|meta| meta.url == download.url && download.file.is_file());
        let mut entry = Self {
            download: download.clone(),
            meta,
            due: None,
            failures: 0,
            failures_all: 0,
            trouble: None,
            failed_ms: None,
            waiting: Vec::new(),
        };
        entry.due = entry.next_due();
        entry
    }

    /// Returns when a newer list is due, by the age of the copy.
    fn next_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let Some(meta) = &self.meta else { return Some(now) };
        let refresh = jittered(self.download.refresh?);
        let age_ms = u64::try_from(unix_ms_now().saturating_sub(meta.fetched_at)).unwrap_or(0);
        Some(now + refresh.saturating_sub(Duration::from_millis(age_ms)))
    }
}

/// Returns a time up to a tenth shorter or longer.
pub(crate) fn jittered(time: Duration) -> Duration {
    let mut octets = [0; 4];
    // Without chance, everybody at once: no harm for one machine.
    let _ = getrandom::fill(&mut octets);
    let chance = f64::from(u32::from_ne_bytes(octets)) / f64::from(u32::MAX);
    time.mul_f64(0.9 + 0.2 * chance)
}

/// What downloads count.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) fetched: Count,
    pub(crate) unchanged: Count,
    pub(crate) failed: Count,
    pub(crate) octets: Count,
}

/// All downloads, and the thread that makes them.
pub(crate) struct Downloads {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    entries: Mutex<Vec<Entry>>,
    changed: Condvar,
    stops: AtomicBool,
    server: Arc<dyn Server>,
    resolvers: Resolvers,
    counts: Counts,
}

impl Downloads {
    /// Starts the thread; nothing is fetched yet.
    pub(crate) fn start(server: Arc<dyn Server>, resolvers: Resolvers) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            entries: Mutex::new(Vec::new()),
            changed: Condvar::new(),
            stops: AtomicBool::new(false),
            server,
            resolvers,
            counts: Counts::default(),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("downloads".to_owned()).spawn(move || own.watch())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Keeps these lists up to date from now on; those that stay keep their turn.
    pub(crate) fn adopt(&self, downloads: &[Download]) {
        let mut entries = lock(&self.shared.entries);
        let mut old = std::mem::take(&mut *entries);
        for download in downloads {
            let kept = old.iter().position(|entry| entry.download == *download);
            entries.push(kept.map_or_else(|| Entry::new(download), |at| old.swap_remove(at)));
        }
        drop(entries);
        self.shared.changed.notify_all();
    }

    /// Makes the lists of a set, or all, due now; each tells whether that succeeded, when what is
    /// new is in use. The copies stay in use meanwhile.
    pub(crate) fn refresh(&self, set: Option<&str>) -> Vec<Receiver<bool>> {
        let mut ends = Vec::new();
        for entry in lock(&self.shared.entries).iter_mut() {
            if set.is_none_or(|set| entry.download.set == set) {
                let (sender, receiver) = channel();
                entry.due = Some(Instant::now());
                entry.waiting.push(sender);
                ends.push(receiver);
            }
        }
        self.shared.changed.notify_all();
        ends
    }

    /// Returns all lists.
    pub(crate) fn states(&self) -> Vec<ListState> {
        let entries = lock(&self.shared.entries);
        let states = entries.iter().map(|entry| ListState {
            set: entry.download.set.clone(),
            url: entry.download.url.clone(),
            fetched_ms: entry.meta.as_ref().map(|meta| meta.fetched_at),
            octets: entry.meta.as_ref().map_or(0, |meta| meta.octets),
            trouble: entry.trouble.clone(),
            failed_ms: entry.failed_ms,
            next_ms: entry.due.map(|due| {
                let left = due.saturating_duration_since(Instant::now());
                unix_ms_now().saturating_add(i64::try_from(left.as_millis()).unwrap_or(i64::MAX))
            }),
            failures: entry.failures_all,
        });
        states.collect()
    }

    /// Returns what is counted.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Ends; a download under way is not waited for.
    pub(crate) fn stop(&self) {
        self.shared.stops.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        // It may be in the middle of a slow download, which leaves nothing behind but a temporary
        // file.
        if let Some(thread) = lock(&self.thread).take()
            && thread.is_finished()
        {
            drop(thread.join());
        }
    }
}

/// What a server said.
enum Fetched {
    New(Vec<u8>, Meta),
    Unchanged,
}

impl Shared {
    fn watch(&self) {
        let mut news: BTreeSet<String> = BTreeSet::new();
        // Who waits, and whether what they wait for succeeded.
        let mut waiting: Vec<(Sender<bool>, bool)> = Vec::new();
        loop {
            let due = {
                let entries = lock(&self.entries);
                if self.stops.load(Ordering::Acquire) {
                    return;
                }
                let now = Instant::now();
                let due = entries.iter().find(|entry| entry.due.is_some_and(|due| due <= now));
                match due {
                    Some(entry) => Some((entry.download.clone(), entry.meta.clone())),
                    None if news.is_empty() && waiting.is_empty() => {
                        let next = entries.iter().filter_map(|entry| entry.due).min();
                        let sleep =
                            next.map_or(SLEEP_MAX, |next| next.saturating_duration_since(now).min(SLEEP_MAX));
                        drop(self.changed.wait_timeout(entries, sleep));
                        continue;
                    }
                    None => None,
                }
            };
            match due {
                Some((download, meta)) => {
                    if self.carry_out(&download, meta.as_ref(), &mut waiting) {
                        news.insert(download.set);
                    }
                }
                // All that was due is done: one change for all of it.
                None => {
                    let sets: Vec<String> = std::mem::take(&mut news).into_iter().collect();
                    if !sets.is_empty() {
                        self.server.adopt_lists(&sets);
                    }
                    for (sender, is_fine) in waiting.drain(..) {
                        // Nobody may wait any more.
                        let _ = sender.send(is_fine);
                    }
                }
            }
        }
    }

    /// Fetches one list; returns whether there is a new one. Adds who waits for it to `waiting`.
    fn carry_out(
        &self,
        download: &Download,
        meta: Option<&Meta>,
        waiting: &mut Vec<(Sender<bool>, bool)>,
    ) -> bool {
        let begin = Instant::now();
        let (set, url) = (&download.set, diagnostic::without_secrets(&download.url));
        let outcome = self.fetch(download, meta).and_then(|fetched| match fetched {
            Fetched::Unchanged => Ok(None),
            Fetched::New(octets, meta) => {
                self.server.check_list(download, &octets)?;
                keep(&download.file, &octets, &meta).map_err(|error| format!("cannot be kept: {error}"))?;
                Ok(Some(meta))
            }
        });
        let took_ms = begin.elapsed().as_millis() as u64;
        let mut entries = lock(&self.entries);
        let Some(entry) = entries.iter_mut().find(|entry| entry.download == *download) else { return false };
        waiting
            .extend(std::mem::take(&mut entry.waiting).into_iter().map(|sender| (sender, outcome.is_ok())));
        match outcome {
            Ok(new) => {
                let is_new = new.is_some();
                match new {
                    Some(meta) => {
                        info!(%set, %url, octets = meta.octets, took_ms, "a new list");
                        self.counts.fetched.add(1);
                        self.counts.octets.add(meta.octets);
                        self.server.list_fetched(download, Ok(meta.octets));
                        entry.meta = Some(meta);
                    }
                    None => {
                        info!(%set, %url, took_ms, "the list is unchanged");
                        self.counts.unchanged.add(1);
                        if let Some(meta) = &mut entry.meta {
                            meta.fetched_at = unix_ms_now();
                            // Asking once more after a restart does no harm.
                            let _ = fs::write(meta_file(&download.file), meta.to_json());
                        }
                    }
                }
                entry.failures = 0;
                entry.trouble = None;
                entry.failed_ms = None;
                entry.due = entry.next_due();
                is_new
            }
            Err(why) => {
                // Without any copy the set is empty: that is worth asking sooner.
                let first = if entry.meta.is_some() { RETRY_FIRST } else { RETRY_EMPTY };
                let pause = jittered(first.saturating_mul(1 << entry.failures.min(16)).min(RETRY_LAST));
                entry.failures = entry.failures.saturating_add(1);
                entry.failures_all += 1;
                entry.failed_ms = Some(unix_ms_now());
                entry.due = Some(Instant::now() + pause);
                let stays = if entry.meta.is_some() {
                    "the last good copy stays in use"
                } else {
                    "there is no copy yet"
                };
                warn!(%set, %url, again_in_s = pause.as_secs(), "the list was not fetched: {why}; {stays}");
                self.counts.failed.add(1);
                self.server.list_fetched(download, Err(&why));
                entry.trouble = Some(why);
                false
            }
        }
    }

    fn fetch(&self, download: &Download, meta: Option<&Meta>) -> Result<Fetched, String> {
        let known = meta
            .map(|meta| Validators { etag: meta.etag.clone(), last_modified: meta.last_modified.clone() });
        let file = WebFile {
            url: &download.url,
            known: known.as_ref(),
            timeout: download.timeout,
            octets_max: download.octets_max,
            proves_itself: false,
        };
        let mut told = Instant::now();
        let mut hear = |octets: usize| {
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                info!(set = %download.set, url = %diagnostic::without_secrets(&download.url), octets, "fetching the list");
            }
            if self.stops.load(Ordering::Acquire) { Err("the server is stopping".to_owned()) } else { Ok(()) }
        };
        match fetch_by(&file, self.resolvers.clone(), &mut hear)? {
            WebReply::Unchanged => Ok(Fetched::Unchanged),
            WebReply::Whole(octets, Validators { etag, last_modified }) => {
                let meta = Meta {
                    url: download.url.clone(),
                    etag,
                    last_modified,
                    fetched_at: unix_ms_now(),
                    octets: octets.len() as u64,
                };
                Ok(Fetched::New(octets, meta))
            }
        }
    }
}

/// Puts a new copy in place of the old one: a reader sees one or the other.
fn keep(file: &Path, octets: &[u8], meta: &Meta) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut out = File::create(&new)?;
    out.write_all(octets)?;
    out.sync_all()?;
    drop(out);
    // The copy first: what is known about an older one only makes the server send it again.
    fs::rename(&new, file)?;
    fs::write(meta_file(file), meta.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Occurrence;
    use crate::resolver::Nobody as AsksNobody;
    use crate::server::Nobody;
    use plan::jobs::Learn;
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use zone::Zone;

    #[test]
    fn what_is_known_about_a_copy_comes_back() {
        let meta = Meta {
            url: "https://example.org/a?b=\"c\\d\"".to_owned(),
            etag: "W/\"x\u{1}y\"".to_owned(),
            last_modified: String::new(),
            fetched_at: 1_700_000_000_123,
            octets: 77,
        };
        assert_eq!(Meta::parse(&meta.to_json()), Some(meta.clone()));
        let text = meta.to_json();
        (0..text.trim_end().len()).for_each(|len| assert_eq!(Meta::parse(&text[..len]), None));
        assert_eq!(Meta::parse("{}"), Some(Meta::default()));
    }

    /// Believes lists that begin with "good"; says which sets are new.
    struct Careful(Mutex<Sender<Vec<String>>>);

    impl Server for Careful {
        fn dump(&self, cache: Option<&str>) -> Result<String, String> {
            Nobody.dump(cache)
        }

        fn check_list(&self, _: &Download, octets: &[u8]) -> Result<(), String> {
            if octets.starts_with(b"good") { Ok(()) } else { Err("it makes no sense".to_owned()) }
        }

        fn list_fetched(&self, _: &Download, _: Result<u64, &str>) {}

        fn learn(&self, _: &Learn, _: &Occurrence) {}

        fn serve_signed(&self, _: Vec<Arc<Zone>>) {}

        fn adopt_lists(&self, sets: &[String]) {
            let _ = lock(&self.0).send(sets.to_vec());
        }
    }

    /// Serves one reply after the other; returns its address and the requests.
    fn serve(replies: Vec<Vec<u8>>) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/list", listener.local_addr().expect("a bound socket"));
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for reply in replies {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|len| len > 0) {}
                let _ = sender.send(head.to_ascii_lowercase());
                let _ = stream.write_all(&reply);
            }
        });
        (url, requests)
    }

    fn reply(head: &str, body: &[u8]) -> Vec<u8> {
        let mut octets =
            format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len())
                .into_bytes();
        octets.extend(body);
        octets
    }

    fn packed(octets: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(octets).expect("memory");
        encoder.finish().expect("memory")
    }

    /// A list that is fetched once a day.
    fn daily(url: String, file: PathBuf) -> Download {
        Download {
            set: "ads".to_owned(),
            url,
            file,
            refresh: Some(Duration::from_secs(86_400)),
            timeout: Duration::from_secs(30),
            octets_max: 4096,
        }
    }

    #[test]
    fn while_there_is_no_copy_the_next_try_comes_soon() {
        let (url, requests) =
            serve(vec![reply("503 Not now", b""), reply("200 OK", b"good one"), reply("503 Not now", b"")]);
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let download = daily(url, folder.path().join("ads-0123"));
        let (sender, news) = channel();
        let downloads =
            Downloads::start(Arc::new(Careful(Mutex::new(sender))), Resolvers::new(Arc::new(AsksNobody)))
                .expect("a thread");
        downloads.adopt(std::slice::from_ref(&download));
        requests.recv().expect("a request");
        let failed = |count| {
            while downloads.counts().failed.read() < count {
                std::thread::yield_now();
            }
            let state = downloads.states().swap_remove(0);
            assert_eq!(state.failures, count);
            assert!(state.trouble.is_some_and(|why| why.contains("503")) && state.failed_ms.is_some());
            state.next_ms.expect("a next try") - unix_ms_now()
        };
        let pause_ms = failed(1);
        assert!(pause_ms <= 5_500, "{pause_ms}");
        for end in downloads.refresh(Some("ads")) {
            assert_eq!(end.recv(), Ok(true));
        }
        // Who waited is answered when it is in use.
        assert_eq!(news.try_recv().expect("taken into use"), ["ads"]);
        let state = downloads.states().swap_remove(0);
        assert_eq!((state.trouble, state.failed_ms, state.failures), (None, None, 1));
        for end in downloads.refresh(None) {
            assert_eq!(end.recv(), Ok(false));
        }
        let pause_ms = failed(2);
        assert!(pause_ms > 30_000, "{pause_ms}");
        downloads.stop();
    }

    #[test]
    fn the_last_good_copy_stays_whatever_the_server_says() {
        let (url, requests) = serve(vec![
            reply("200 OK\r\nETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT", b"good one"),
            reply("304 Not Modified", b""),
            reply("200 OK", b"bad"),
            reply("200 OK", &[b"good ".as_slice(), &[b'x'; 5000]].concat()),
            reply("500 Oops", b"good"),
            reply("200 OK", &packed(&[b'g'; 100_000])),
            reply("200 OK", &packed(b"good two")),
        ]);
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let download = daily(url, folder.path().join("sets/ads-0123"));
        let (sender, news) = channel();
        let downloads =
            Downloads::start(Arc::new(Careful(Mutex::new(sender))), Resolvers::new(Arc::new(AsksNobody)))
                .expect("a thread");
        downloads.adopt(std::slice::from_ref(&download));
        let copy = || fs::read(&download.file).expect("a copy");
        assert_eq!(news.recv().expect("a new list"), ["ads"]);
        assert_eq!(copy(), b"good one");
        assert!(!requests.recv().expect("a request").contains("if-none-match"));
        let failed = |count| downloads.counts().failed.read() == count;
        let settle = |holds: &dyn Fn() -> bool| {
            while !holds() {
                std::thread::yield_now();
            }
        };
        downloads.refresh(Some("ads"));
        settle(&|| downloads.counts().unchanged.read() == 1);
        let request = requests.recv().expect("a request");
        assert!(
            request.contains("if-none-match: \"1\"") && request.contains("if-modified-since: thu, 01"),
            "{request}"
        );
        for (number, why) in [
            (1, "it makes no sense"),
            (2, "it has more than 4096 octets"),
            (3, "the server answers 500"),
            (4, "unpacked it has more than 4096 octets"),
        ] {
            downloads.refresh(None);
            settle(&|| failed(number));
            assert_eq!(copy(), b"good one");
            let trouble = downloads.states()[0].trouble.clone().expect("trouble");
            assert!(trouble.starts_with(why), "{trouble}");
        }
        downloads.refresh(None);
        assert_eq!(news.recv().expect("a new list"), ["ads"]);
        assert_eq!(copy(), b"good two");
        assert_eq!(downloads.states()[0].trouble, None);
        // Known over restarts: not due, with the time it was fetched.
        let entry = Entry::new(&download);
        assert_eq!(entry.meta.as_ref().map(|meta| meta.octets), Some(8));
        assert!(entry.due.is_some_and(|due| due > Instant::now() + Duration::from_secs(3600)));
        let moved = Entry::new(&Download { url: "http://192.0.2.1/other".to_owned(), ..download });
        assert!(moved.meta.is_none() && moved.due.is_some_and(|due| due <= Instant::now()));
        downloads.stop();
    }
}
