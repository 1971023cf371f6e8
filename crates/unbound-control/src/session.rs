//! One connection: a command, perhaps lines behind it, and what comes of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::channel::Context;
use crate::commands;
use crate::lines::{END, Input, Output};
use crate::lists::{List, NoRoom};

/// How long a client may be silent in the middle of something, or refuse to take what we say.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// What a request begins with: the program and the version of what it speaks.
const MAGIC: &[u8] = b"UBCT1 ";
/// Octets of a command, and of a line that follows it.
const LINE_OCTETS_MAX: usize = 64 * 1024;
/// Octets of all lines that follow a command.
const INPUT_OCTETS_MAX: usize = 256 << 20;
/// How long all lines that follow a command may take.
const INPUT_TIME_MAX: Duration = Duration::from_secs(600);
/// How long what is left of a list is read that nobody needs any more.
const LINGER: Duration = Duration::from_secs(2);
/// Lines, and pieces of output, that wait for the other side.
const PENDING_MAX: usize = 64;

/// Has the command of a client carried out.
pub(crate) async fn converse<S>(stream: &mut S, context: Arc<Context>, begins: &AtomicBool) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::new(reader);
    let mut magic = [0; MAGIC.len()];
    timeout(PATIENCE, reader.read_exact(&mut magic)).await??;
    if magic != MAGIC {
        // Whatever that was, it was not meant for us.
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it speaks another protocol"));
    }
    let mut line = Vec::new();
    let Some(command) = next_line(&mut reader, &mut line).await? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    begins.store(true, Ordering::Relaxed);
    let (to_output, mut output) = mpsc::channel::<Vec<u8>>(PENDING_MAX);
    let (to_input, input) = mpsc::channel(PENDING_MAX);
    let wants_input = commands::end_of_input(&command);
    let lists = Arc::clone(&context);
    let mut list = match wants_input.map(|_| lists.lists.begin()) {
        Some(None) => {
            // Who comes may have this place at once.
            begins.store(false, Ordering::Relaxed);
            refuse(&mut writer, "others send lists: try again when they are done").await?;
            return linger(&mut reader, &mut writer).await;
        }
        list => list.flatten(),
    };
    let worker = tokio::task::spawn_blocking(move || {
        let mut output = Output::new(to_output);
        if commands::carry_out(&command, &context, &mut Input::new(input), &mut output).is_ok() {
            let _ = output.send();
        }
    });
    let said = {
        let feeding = async {
            match (wants_input, &mut list) {
                (Some(ends), Some(list)) => {
                    timeout(INPUT_TIME_MAX, feed(&mut reader, ends, (list, to_input))).await?
                }
                _ => {
                    drop(to_input);
                    Ok(())
                }
            }
        };
        let saying = async {
            while let Some(chunk) = output.recv().await {
                timeout(PATIENCE, writer.write_all(&chunk)).await??;
            }
            timeout(PATIENCE, writer.flush()).await?
        };
        tokio::pin!(feeding);
        tokio::pin!(saying);
        let mut is_fed = false;
        loop {
            tokio::select! {
                fed = &mut feeding, if !is_fed => {
                    is_fed = true;
                    // A list that breaks off is none: the command hears no end of it.
                    if fed.is_err() {
                        break fed;
                    }
                }
                said = &mut saying => break said,
            }
        }
    };
    // Dropped, so that the command ends at its next word.
    drop(output);
    worker.await.map_err(io::Error::other)?;
    drop(list);
    said?;
    begins.store(false, Ordering::Relaxed);
    match wants_input {
        Some(_) => linger(&mut reader, &mut writer).await,
        None => Ok(()),
    }
}

/// Says why a list is not taken.
async fn refuse<W: AsyncWrite + Unpin>(writer: &mut W, why: &str) -> io::Result<()> {
    timeout(PATIENCE, writer.write_all(format!("error {why}\n").as_bytes())).await?
}

/// Ends a connection of which it is not known whether its list has ended: a command may know enough
/// before that. A client that still writes would lose what was said, if nobody read on.
async fn linger<R, W>(reader: &mut R, writer: &mut W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    timeout(PATIENCE, writer.shutdown()).await??;
    let _ = timeout(LINGER, tokio::io::copy(reader, &mut tokio::io::sink())).await;
    Ok(())
}

/// Reads a line without its end; none at the end of the stream.
async fn next_line<R: AsyncRead + Unpin>(
    reader: &mut BufReader<R>,
    line: &mut Vec<u8>,
) -> io::Result<Option<String>> {
    line.clear();
    let mut bounded = reader.take(LINE_OCTETS_MAX as u64 + 1);
    if timeout(PATIENCE, bounded.read_until(b'\n', line)).await?? == 0 {
        return Ok(None);
    }
    if line.len() > LINE_OCTETS_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
    }
    let text = String::from_utf8_lossy(line);
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Hands lines on until the one that ends them, or says that there is no room for more.
async fn feed<R: AsyncRead + Unpin>(
    reader: &mut BufReader<R>,
    ends: commands::InputEnd,
    (list, to): (&mut List<'_>, mpsc::Sender<Result<String, NoRoom>>),
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut octets = 0;
    loop {
        let Some(text) = next_line(reader, &mut line).await? else {
            return match ends {
                // Whoever speaks by hand closes in place of sending the mark.
                commands::InputEnd::Mark => {
                    drop(to.send(Ok(END.to_owned())).await);
                    Ok(())
                }
                commands::InputEnd::Word => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        };
        octets += line.len();
        let is_short = (octets <= INPUT_OCTETS_MAX).then_some(()).ok_or(NoRoom::TooLong);
        if let Err(why) = is_short.and_then(|()| list.take(line.len())) {
            drop(to.send(Err(why)).await);
            return Ok(());
        }
        let is_end = match ends {
            commands::InputEnd::Mark => text == END,
            commands::InputEnd::Word => text == "EOF",
        };
        // The command may have seen enough.
        if to.send(Ok(text)).await.is_err() || is_end {
            return Ok(());
        }
    }
}
