//! `gannet query`: a small, readable dig.
//!
//! A stub resolver: it asks one server at a time, over UDP with TCP when the reply is truncated, or
//! over what is wished for.

mod exchange;
mod target;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use commands::cli::QueryArgs;
use commands::out;
use commands::query::{self, Names, Transfer, Words};
use control::api;
use wire::{Message, Section};

use exchange::{Packet, Patience, Stream, ask, write_query};
use target::{Line, Nobody, Target, targets};

/// How long an attempt waits for its reply.
const REPLY_PATIENCE: Duration = Duration::from_secs(2);
/// How long a transfer waits for its next message, and how long it may take altogether.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(10);
const TRANSFER_PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// Runs `gannet query`.
pub(crate) fn run(args: &QueryArgs) -> ExitCode {
    match try_run(args) {
        Ok(code) => code,
        Err(Nobody::Usage(why)) => out::wrong(&why, args.remote.output),
        Err(Nobody::Unknown(why)) => out::failed(&why, args.remote.output),
    }
}

fn try_run(args: &QueryArgs) -> Result<ExitCode, Nobody> {
    let words = Words::of(args).map_err(Nobody::Usage)?;
    let key = query::key_of(args).map_err(Nobody::Usage)?;
    let targets = targets(&words, args)?;
    let is_encrypted = targets.iter().any(|target| matches!(target.line, Line::Secure(_)));
    let packet = || write_query(&words, is_encrypted, key.clone()).map_err(Nobody::Usage);
    if words.is_transfer() {
        return Ok(transfer_from(&targets, &packet()?, &words, args));
    }
    let packet = packet()?;
    let patience = Patience {
        reply: words.wishes.timeout.or(args.timeout).unwrap_or(REPLY_PATIENCE),
        tries: words.wishes.tries,
    };
    let mut tried = Vec::new();
    for target in &targets {
        match ask(target, &packet, (words.wishes.keeps_truncated, args.bind), patience) {
            Ok(reply) => return Ok(query::show(&reply, &words.wishes, args)),
            Err(silence) => tried.push(format!("{target} ({silence})")),
        }
    }
    Ok(no_answer(&tried, words.server.is_none(), args))
}

fn no_answer(tried: &[String], is_here: bool, args: &QueryArgs) -> ExitCode {
    let hint = if is_here { "; start a server with: gannet run" } else { "" };
    out::failed(&format!("no answer; tried {}{hint}", tried.join(", ")), args.remote.output)
}

/// Takes a zone, or what changed in it, from the first server that answers.
fn transfer_from(targets: &[Target], packet: &Packet, words: &Words, args: &QueryArgs) -> ExitCode {
    let patience = words.wishes.timeout.or(args.timeout).unwrap_or(MESSAGE_PATIENCE);
    let begin = Instant::now();
    let whole = begin + TRANSFER_PATIENCE;
    let mut tried = Vec::new();
    for target in targets {
        // A zone does not fit into a datagram.
        let line = if matches!(target.line, Line::Udp) { Line::Tcp } else { target.line.clone() };
        let target = Target { line, ..target.clone() };
        match Stream::open(&target, packet.clone(), args.bind, patience, whole) {
            Ok(stream) => return take(stream, &target, begin, words, args),
            Err(why) => tried.push(format!("{target} ({why})")),
        }
    }
    no_answer(&tried, words.server.is_none(), args)
}

/// Takes a transfer to its end, and prints it as it comes.
fn take(mut stream: Stream, target: &Target, begin: Instant, words: &Words, args: &QueryArgs) -> ExitCode {
    let mut transfer = Transfer::new(words.rtype, words.serial);
    let is_json = args.remote.output.json;
    let names = Names::of(&words.wishes, is_json);
    let mut taken = api::Transfer {
        server: target.address.to_string(),
        transport: exchange::word(&target.line).to_owned(),
        ..api::Transfer::default()
    };
    let outcome = loop {
        let (bytes, octets) = match stream.next() {
            Ok(message) => message,
            Err(why) => break Err(why),
        };
        taken.messages += 1;
        taken.size_octets += octets as u64;
        let Ok(message) = Message::parse(&bytes) else { break Err("a message cannot be read".to_owned()) };
        let ended = transfer.take(&message);
        let records = api::Record::section(&message, Section::Answer);
        if is_json {
            taken.answer.extend(records);
        } else if words.wishes.short {
            out::print(&records.iter().map(|record| format!("{}\n", record.data)).collect::<String>());
        } else {
            out::print(&records.iter().map(|record| names.line(record)).collect::<String>());
        }
        match ended {
            Ok(None) => {}
            Ok(Some(kind)) if stream.is_believed() => break Ok(kind),
            Ok(Some(_)) => break Err("it is not believed: the last message is not signed".to_owned()),
            Err(fault) => break Err(fault.to_string()),
        }
    };
    taken.records = transfer.records;
    taken.serial = transfer.serial;
    taken.time_ms = out::milliseconds(begin.elapsed());
    taken.signed_by = stream.signed_by();
    match outcome {
        Ok(kind) => {
            kind.word().clone_into(&mut taken.kind);
            if is_json {
                out::print(&api::to_json(&taken));
            } else if !words.wishes.short {
                out::print(&query::summary(&taken, kind));
            }
            out::FINE
        }
        Err(why) if transfer.records == 0 => {
            out::failed(&format!("no transfer from {target}: {why}"), args.remote.output)
        }
        Err(why) => {
            let records = transfer.records;
            let why = format!("the transfer from {target} broke off after {records} records: {why}");
            out::failed(&why, args.remote.output)
        }
    }
}
