//! Load over HTTP/2 (RFC 8484, GET): a lasting connection per client that carries many requests at
//! once.
//!
//! All in one future: whatever happens, everything in flight is looked at, which is dear for many
//! queries and fair to each.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Connection, ResponseFuture, SendRequest};
use http::{Request, StatusCode, Uri, header};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::window::Books;
use super::{Pace, Plan, Tally, tcp};
use crate::queries::Packets;

/// A client's connection.
struct Client {
    requests: SendRequest<Bytes>,
    connection: Connection<TlsStream<TcpStream>, Bytes>,
}

/// A request in flight.
struct Exchange {
    client: usize,
    id: u16,
    stage: Stage,
}

enum Stage {
    Head(ResponseFuture),
    Body(RecvStream, Vec<u8>),
}

/// Runs `plan` over `packets`.
pub(super) fn run(plan: &Plan, packets: &Packets) -> io::Result<Tally> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let clients = plan.clients.clamp(1, plan.outstanding.max(1));
        let mut open = Vec::with_capacity(clients);
        for client in 0..clients {
            open.push(connect(plan, client).await?);
        }
        let address = |at| {
            let text = format!("https://{}/dns-query?dns={}", plan.server, encode(packets.packet(at)));
            text.parse::<Uri>().map_err(io::Error::other)
        };
        let addresses = (0..packets.len()).map(address).collect::<io::Result<Vec<_>>>()?;
        let books = Books::new(plan, packets, clients);
        let mut run = Run { plan, addresses, clients: open, exchanges: Vec::new(), books };
        run.drive().await?;
        Ok(run.books.close())
    })
}

async fn connect(plan: &Plan, client: usize) -> io::Result<Client> {
    let Some(secure) = &plan.secure else { return Err(io::Error::other("HTTP/2 takes a certificate")) };
    let stream = TcpStream::from_std(tcp::connect(plan.local(client), plan.server)?)?;
    stream.writable().await?;
    let (config, name): (_, ServerName<'static>) = secure.for_protocol(b"h2");
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    let (requests, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
    Ok(Client { requests, connection })
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    addresses: Vec<Uri>,
    clients: Vec<Client>,
    exchanges: Vec<Exchange>,
    books: Books<'a>,
}

impl Run<'_> {
    async fn drive(&mut self) -> io::Result<()> {
        let mut pace = Pace::new(self.plan);
        loop {
            let now = self.books.now_ns();
            if pace.is_over(now, &mut self.books) {
                return Ok(());
            }
            let patience = pace.patience(now, &self.books);
            let is_sending = pace.is_sending;
            // Time is up when nothing comes: that is looked at above.
            if let Ok(failed) = timeout(patience, poll_fn(|context| self.poll(context, is_sending))).await {
                failed?;
            }
        }
    }

    /// Does what can be done; ready when something was.
    fn poll(&mut self, context: &mut Context<'_>, is_sending: bool) -> Poll<io::Result<()>> {
        let mut did_something = false;
        if is_sending {
            for client in 0..self.clients.len() {
                did_something |= self.send(client, context)?;
            }
        }
        for client in &mut self.clients {
            // It reads and writes for all its requests, and ends only when something is wrong.
            if let Poll::Ready(ended) = Pin::new(&mut client.connection).poll(context) {
                ended.map_err(io::Error::other)?;
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        let mut at = 0;
        while let Some(exchange) = self.exchanges.get_mut(at) {
            match exchange.poll(context) {
                Poll::Pending => at += 1,
                Poll::Ready(reply) => {
                    let exchange = self.exchanges.swap_remove(at);
                    let mut reply = reply.map_err(io::Error::other)?;
                    // RFC 8484 §4.1: the ID on the way is zero.
                    if let Some(id) = reply.first_chunk_mut::<2>() {
                        *id = exchange.id.to_be_bytes();
                    }
                    self.books.settle(exchange.client, &reply, self.books.now_ns());
                    did_something = true;
                }
            }
        }
        if did_something { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sends as much as the client's window, the rate and the server allow; returns whether that
    /// was anything.
    fn send(&mut self, client: usize, context: &mut Context<'_>) -> io::Result<bool> {
        let now = self.books.now_ns();
        let mut did_something = false;
        for _ in 0..self.books.room(client, now) {
            let requests = &mut self.clients[client].requests;
            match requests.poll_ready(context) {
                Poll::Ready(ready) => ready.map_err(io::Error::other)?,
                Poll::Pending => break,
            }
            let Some((id, query)) = self.books.next(client, now) else { break };
            let request = Request::get(self.addresses[query].clone())
                .header(header::ACCEPT, "application/dns-message")
                .body(())
                .map_err(io::Error::other)?;
            let (response, _) = requests.send_request(request, true).map_err(io::Error::other)?;
            self.exchanges.push(Exchange { client, id, stage: Stage::Head(response) });
            did_something = true;
        }
        Ok(did_something)
    }
}

impl Exchange {
    /// Returns the message in the response when it is there; nothing if the response has another
    /// status than 200.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, h2::Error>> {
        loop {
            match &mut self.stage {
                Stage::Head(response) => match Pin::new(response).poll(context)? {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(response) if response.status() != StatusCode::OK => {
                        return Poll::Ready(Ok(Vec::new()));
                    }
                    Poll::Ready(response) => self.stage = Stage::Body(response.into_body(), Vec::new()),
                },
                Stage::Body(body, octets) => match body.poll_data(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => return Poll::Ready(Ok(std::mem::take(octets))),
                    Poll::Ready(Some(data)) => {
                        let data = data?;
                        body.flow_control().release_capacity(data.len())?;
                        octets.extend_from_slice(&data);
                    }
                },
            }
        }
    }
}

/// Writes octets as base64url without padding (RFC 4648 §5).
fn encode(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for group in octets.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for place in 0..=group.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_written_as_base64url() {
        for (octets, expect) in
            [(&b""[..], ""), (b"f", "Zg"), (b"fo", "Zm8"), (b"foo", "Zm9v"), (b"\xfb\xff\xbf", "-_-_")]
        {
            assert_eq!(encode(octets), expect);
        }
    }
}
