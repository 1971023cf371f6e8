//! One connection to a Redis server: commands written as they come, replies in their order, and
//! what happens when there are none.
//!
//! A connection counts as open when the server has answered a first command, and not before. If a
//! reply does not come in time, the connection ends, and the next attempts wait longer and longer:
//! meanwhile nothing is asked.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plan::resolvers::{RedisPlace, RedisPlan};
use resp::{Broken, Reader, Reply};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::entry::{Key, VALUE_OCTETS_MAX};
use super::{Replies, Surroundings};
use crate::recursion::Counters;

/// Commands that wait for their replies at once.
const COMMANDS_MAX: usize = 1024;
/// Octets of commands that are not sent yet.
const UNSENT_OCTETS_MAX: usize = 1 << 20;
/// Octets that are read at once.
const READ_OCTETS: usize = 16 << 10;
/// The first pause after a connection that failed, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// A connection that was open for this long is made again at once when the server ends it.
const LASTING: Duration = Duration::from_secs(1);

/// Whether commands are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A connection is made, for the first time or since the server has ended one that was good.
    Connecting,
    Open,
    /// The last attempt has failed.
    Down,
}

/// What a reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    LookUp(u32),
    Store,
}

/// A command whose reply has not come.
struct Command {
    purpose: Purpose,
    deadline: Instant,
}

/// What the connection's task and its owner share.
struct Pipeline {
    plan: RedisPlan,
    state: Cell<State>,
    /// Commands that the task has not taken.
    unsent: RefCell<Vec<u8>>,
    /// Octets that are not sent, those that the task has taken included.
    unsent_octets: Cell<usize>,
    commands: RefCell<VecDeque<Command>>,
    has_more: Notify,
    /// Whether the connection that is open has brought a reply to one of them.
    has_replied: Cell<bool>,
    counters: Arc<Counters>,
    health: Arc<Health>,
    replies: Weak<dyn Replies>,
}

/// A connection to a server, which is made again for as long as this is there.
pub(super) struct Connection {
    pipeline: Rc<Pipeline>,
    task: AbortHandle,
}

/// What workers know of one server together, so that its state is in the log once.
#[derive(Debug, Default)]
pub(crate) struct Health {
    is_down: AtomicBool,
}

impl Health {
    fn down(&self, place: &RedisPlace, why: &str) {
        if !self.is_down.swap(true, Ordering::Relaxed) {
            warn!("second-level cache {place} is down: {why}");
        }
    }

    fn up(&self, place: &RedisPlace) {
        if self.is_down.swap(false, Ordering::Relaxed) {
            info!("second-level cache {place} answers again");
        }
    }
}

impl Connection {
    pub(super) fn begin(plan: RedisPlan, surroundings: &Surroundings<'_>) -> Self {
        let pipeline = Rc::new(Pipeline {
            health: (surroundings.health)(&plan.place),
            plan,
            state: Cell::new(State::Connecting),
            unsent: RefCell::default(),
            unsent_octets: Cell::new(0),
            commands: RefCell::default(),
            has_more: Notify::new(),
            has_replied: Cell::new(false),
            counters: Arc::clone(surroundings.counters),
            replies: Weak::clone(&surroundings.replies),
        });
        let task = tokio::task::spawn_local(run(Rc::clone(&pipeline))).abort_handle();
        Self { pipeline, task }
    }

    pub(super) fn look_up(&self, key: &Key, tag: u32) -> bool {
        self.pipeline.enqueue(Purpose::LookUp(tag), &[b"GET", key])
    }

    pub(super) fn store(&self, key: &Key, value: &[u8], seconds: Option<u32>) -> bool {
        match seconds.map(|seconds| seconds.to_string()) {
            Some(seconds) => {
                self.pipeline.enqueue(Purpose::Store, &[b"SET", key, value, b"EX", seconds.as_bytes()])
            }
            None => self.pipeline.enqueue(Purpose::Store, &[b"SET", key, value]),
        }
    }

    /// Returns the look-ups that will have no reply: the connection is about to end.
    pub(super) fn give_up(&self) -> Vec<u32> {
        self.pipeline.drop_commands()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pipeline {
    fn enqueue(&self, purpose: Purpose, words: &[&[u8]]) -> bool {
        let mut commands = self.commands.borrow_mut();
        let octets = resp::command_octets_max(words);
        if self.state.get() == State::Down
            || commands.len() >= COMMANDS_MAX
            || self.unsent_octets.get() + octets > UNSENT_OCTETS_MAX
        {
            return false;
        }
        let mut unsent = self.unsent.borrow_mut();
        let before = unsent.len();
        resp::command(words, &mut unsent);
        self.unsent_octets.set(self.unsent_octets.get() + unsent.len() - before);
        commands.push_back(Command { purpose, deadline: Instant::now() + self.plan.command_timeout });
        self.has_more.notify_one();
        true
    }

    /// Forgets all commands; returns the look-ups among them.
    fn drop_commands(&self) -> Vec<u32> {
        self.unsent.borrow_mut().clear();
        self.unsent_octets.set(0);
        let look_up = |command: Command| match command.purpose {
            Purpose::LookUp(tag) => Some(tag),
            Purpose::Store => None,
        };
        self.commands.borrow_mut().drain(..).filter_map(look_up).collect()
    }

    /// Takes no commands until the server answers again, and has nobody wait for those that it has.
    fn fail(&self) {
        self.state.set(State::Down);
        self.end_commands();
    }

    fn end_commands(&self) {
        let tags = self.drop_commands();
        self.counters.second_level_failed.add(tags.len() as u64);
        self.tell(tags.into_iter().map(|tag| (tag, None)).collect());
    }

    fn tell(&self, values: Vec<(u32, Option<Vec<u8>>)>) {
        if let (false, Some(replies)) = (values.is_empty(), self.replies.upgrade()) {
            replies.found(values);
        }
    }

    /// Returns when the reply must have come that is waited for longest.
    fn deadline(&self) -> Option<Instant> {
        self.commands.borrow().front().map(|command| command.deadline)
    }

    /// Returns when it has not.
    async fn overdue(&self) {
        loop {
            match self.deadline() {
                Some(deadline) => return sleep_until(deadline).await,
                None => self.has_more.notified().await,
            }
        }
    }

    /// Takes all whole replies out of what was read.
    fn take_replies(&self, reader: &mut Reader) -> Result<(), String> {
        let mut values = Vec::new();
        let taken = loop {
            let reply = match reader.next_reply() {
                Ok(Some(reply)) => reply,
                Ok(None) => break Ok(()),
                Err(broken) => break Err(broken.to_string()),
            };
            let Some(command) = self.commands.borrow_mut().pop_front() else {
                break Err("it answers what was not asked".to_owned());
            };
            self.has_replied.set(true);
            match (command.purpose, reply) {
                (Purpose::LookUp(tag), Reply::Octets(value)) => values.push((tag, Some(value.to_vec()))),
                (Purpose::LookUp(tag), Reply::Nil) => values.push((tag, None)),
                (Purpose::Store, Reply::Status(_)) => self.counters.second_level_stored.bump(),
                (Purpose::LookUp(tag), _) => {
                    self.counters.second_level_failed.bump();
                    values.push((tag, None));
                }
                (Purpose::Store, _) => self.counters.second_level_not_stored.bump(),
            }
        };
        self.tell(values);
        taken
    }
}

/// Connects again and again, and carries commands and replies meanwhile.
async fn run(pipeline: Rc<Pipeline>) {
    let mut pause = PAUSE.0;
    loop {
        let connecting = async {
            match &pipeline.plan.place {
                RedisPlace::Unix(path) => converse(&pipeline, UnixStream::connect(path)).await,
                RedisPlace::Address(address) => converse(&pipeline, tcp(*address)).await,
                RedisPlace::Host(host, port) => converse(&pipeline, tcp((host.as_str(), *port))).await,
            }
        };
        match connecting.await {
            // The server has ended a connection that nobody waited for: most do so with idle ones.
            Ended::Idle => {
                pause = PAUSE.0;
                pipeline.state.set(State::Connecting);
            }
            Ended::Failed(why) => {
                pipeline.health.down(&pipeline.plan.place, &why);
                pipeline.fail();
                if pipeline.has_replied.take() {
                    pause = PAUSE.0;
                }
                sleep(pause).await;
                pause = (2 * pause).min(PAUSE.1);
            }
        }
    }
}

async fn tcp(to: impl tokio::net::ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// How a connection has ended.
enum Ended {
    Idle,
    Failed(String),
}

/// Makes a connection, and uses it until it ends.
async fn converse<S>(pipeline: &Pipeline, connecting: impl Future<Output = io::Result<S>>) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limit = pipeline.plan.connect_timeout;
    let opening = timeout(limit, open(&pipeline.plan, connecting));
    tokio::pin!(opening);
    let opened = loop {
        tokio::select! {
            opened = &mut opening => break opened,
            // Whoever asks in the first moments waits for the connection, but not for long.
            () = pipeline.overdue() => pipeline.fail(),
        }
    };
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(why)) => return Ended::Failed(why),
        Err(_) => return Ended::Failed(format!("no connection within {} ms", limit.as_millis())),
    };
    pipeline.state.set(State::Open);
    pipeline.health.up(&pipeline.plan.place);
    let opened_at = Instant::now();
    let why = match carry(pipeline, stream).await {
        Ok(()) if pipeline.commands.borrow().is_empty() && opened_at.elapsed() >= LASTING => {
            return Ended::Idle;
        }
        Ok(()) => "it has ended the connection".to_owned(),
        Err(why) => why,
    };
    Ended::Failed(why)
}

/// Connects, says what the server wants to hear first, and waits until it has answered that.
async fn open<S>(plan: &RedisPlan, connecting: impl Future<Output = io::Result<S>>) -> Result<S, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = connecting.await.map_err(|error| error.to_string())?;
    let database = plan.database.to_string();
    let mut commands = Vec::new();
    let mut names = Vec::new();
    let mut say = |name: &'static str, words: &[&[u8]]| {
        names.push(name);
        resp::command(words, &mut commands);
    };
    if let Some(password) = &plan.password {
        say("AUTH", &[b"AUTH", password.reveal()]);
    }
    if plan.database > 0 {
        say("SELECT", &[b"SELECT", database.as_bytes()]);
    }
    say("PING", &[b"PING"]);
    stream.write_all(&commands).await.map_err(|error| error.to_string())?;
    let mut reader = Reader::new(READ_OCTETS);
    let mut names = names.into_iter().peekable();
    let mut chunk = [0; 512];
    while let Some(name) = names.peek() {
        match reader.next_reply().map_err(|broken: Broken| broken.to_string())? {
            Some(Reply::Status(_)) => {
                names.next();
            }
            Some(Reply::Error(why)) => return Err(format!("{name}: {}", shown(why))),
            Some(_) => return Err(format!("{name}: {}", Broken::Malformed)),
            None => match stream.read(&mut chunk).await.map_err(|error| error.to_string())? {
                0 => return Err("it ends the connection".to_owned()),
                octets => reader.push(chunk.get(..octets).unwrap_or(&[])),
            },
        }
    }
    Ok(stream)
}

/// Returns a text of the server's as it may stand in the log.
fn shown(text: &[u8]) -> String {
    const OCTETS_MAX: usize = 100;
    let text = text.get(..OCTETS_MAX).unwrap_or(text);
    text.escape_ascii().to_string()
}

/// Carries commands and replies until the connection ends: `Ok` if the server has ended it.
async fn carry(pipeline: &Pipeline, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), String> {
    let (mut from, mut to) = tokio::io::split(stream);
    let mut reader = Reader::new(VALUE_OCTETS_MAX);
    let mut chunk = vec![0; READ_OCTETS];
    let mut sending: Vec<u8> = Vec::new();
    let mut sent = 0;
    loop {
        if sent == sending.len() {
            sending.clear();
            sent = 0;
        }
        sending.append(&mut pipeline.unsent.borrow_mut());
        let deadline = pipeline.deadline();
        tokio::select! {
            read = from.read(&mut chunk) => match read.map_err(|error| error.to_string())? {
                0 => return Ok(()),
                octets => {
                    reader.push(chunk.get(..octets).unwrap_or(&[]));
                    pipeline.take_replies(&mut reader)?;
                }
            },
            written = to.write(sending.get(sent..).unwrap_or(&[])), if sent < sending.len() => {
                let octets = written.map_err(|error| error.to_string())?;
                sent += octets;
                pipeline.unsent_octets.set(pipeline.unsent_octets.get().saturating_sub(octets));
            }
            () = pipeline.has_more.notified() => {}
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                pipeline.counters.second_level_timeouts.bump();
                return Err(format!("no reply within {} ms", pipeline.plan.command_timeout.as_millis()));
            }
        }
    }
}
