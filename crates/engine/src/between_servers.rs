//! The engine's part in what servers say to each other: who sent it, and whether it is signed.

use std::sync::Arc;

use tsig::{Keys, Signer, TsigError};
use wire::{EdeCode, Flags, Header, Opcode, Query, Rcode};

use crate::answer::finish::{To, header_only, reply_limit};
use crate::answer::reply::Reply;
use crate::peers::is_between_servers;
use crate::peers::messages::{Outcome, Sent, forward, notify, short_reply, sign, transfer, update};
use crate::{Engine, Verdict};
use clients::client::Client;
use clients::gate::cookie::Proof;

impl Engine {
    /// Answers what another server, or somebody with a key, asks; nothing if that is a question
    /// like any other.
    #[cold]
    #[inline(never)]
    pub(crate) fn of_another_server(
        &mut self,
        query: &Query<'_>,
        client: &Client,
        reply: &mut Reply<'_>,
    ) -> Option<Verdict> {
        if query.is_signed {
            return Some(self.signed(query.as_bytes(), client, reply));
        }
        // Zones say themselves who may take them over.
        let bytes = query.as_bytes();
        self.state.authority.is_some().then(|| self.between_servers((bytes, bytes), client, None, reply))
    }

    /// Verifies a signed message and goes on with what it says; the reply is signed, too.
    #[cold]
    #[inline(never)]
    pub(crate) fn signed(&mut self, bytes: &[u8], client: &Client, reply: &mut Reply<'_>) -> Verdict {
        if self.snapshot.gate.bans(client) {
            return self.stay_silent();
        }
        let none = Keys::default();
        let authority = self.state.authority.clone();
        let keys = authority.as_ref().map_or(&none, |authority| &authority.keys);
        let signed = match tsig::split(bytes) {
            Ok(Some(signed)) => signed,
            // RFC 8945 §5.1.
            Ok(None) | Err(tsig::Malformed) => {
                let Some(header) = Header::parse(bytes) else { return self.stay_silent() };
                header_only(header, Rcode::FORMERR, reply);
                return Verdict::Answered;
            }
        };
        match tsig::verify(&signed, keys, u64::from(self.state.now.unix_seconds)) {
            Ok(signer) => {
                let message = signed.message();
                if is_between_servers(&message) {
                    return self.between_servers((&message, bytes), client, Some(signer), reply);
                }
                self.answer_and_sign(&message, client, signer, reply)
            }
            Err(refusal) => {
                if !self.snapshot.gate.admits_server(client, self.state.now) {
                    return self.stay_silent();
                }
                // RFC 2136 §6: whoever decides on an update may know the key.
                if refusal.error == TsigError::BADKEY
                    && let Some(pending) = authority
                        .and_then(|authority| forward(&authority, (&signed.message(), bytes), client))
                {
                    self.state.counters.count(Rcode::NOERROR, false);
                    return Verdict::Stream(pending);
                }
                self.state.counters.count(Rcode::NOTAUTH, false);
                put(reply, &refusal.reply)
            }
        }
    }

    /// Answers an ordinary query that was signed.
    fn answer_and_sign(
        &mut self,
        message: &[u8],
        client: &Client,
        mut signer: Signer,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let Ok(query) = Query::parse(message) else { return self.stay_silent() };
        let to = To { query: &query, client, proof: Proof::None, options: &[] };
        let limit = reply_limit(&self.state.context(&self.snapshot), &to).min(reply.buffer().len());
        let limit = limit.saturating_sub(signer.record_octets());
        let within = Client { reply_octets_max: limit as u16, ..client.clone() };
        let mut room = vec![0; limit];
        let mut unsigned = Reply::new(&mut room);
        // It is counted once more there.
        self.state.counters.queries_over(client.transport).take_back();
        let mut message = match self.answer(message, &within, &mut unsigned) {
            Verdict::Answered => unsigned.bytes().to_vec(),
            Verdict::Drop => return Verdict::Drop,
            // Replies that come later are not signed; who signs asks for what is served here.
            Verdict::Defer(_) | Verdict::Stream(_) => short_reply(
                message,
                Rcode::REFUSED,
                Flags(0),
                Some((EdeCode::NOT_AUTHORITATIVE, "not served here")),
            ),
        };
        signer.sign(&mut message, u64::from(self.state.now.unix_seconds));
        put(reply, &message)
    }

    /// Handles a transfer, a notification or an update: a message without its signature, and as it
    /// came.
    #[cold]
    #[inline(never)]
    pub(crate) fn between_servers(
        &mut self,
        (message, whole): (&[u8], &[u8]),
        client: &Client,
        signer: Option<Signer>,
        reply: &mut Reply<'_>,
    ) -> Verdict {
        let Some(authority) = self.state.authority.clone() else { return self.stay_silent() };
        // Who signs has a key, and is not somebody else.
        if signer.is_none() && !self.snapshot.gate.admits_server(client, self.state.now) {
            return self.stay_silent();
        }
        let counters = Arc::clone(&self.state.counters);
        let now_s = self.state.now.unix_seconds;
        let mut sent = Sent { message, whole, client, signer, counters: &counters, now_s };
        let opcode = Header::parse(message).map_or(Opcode::QUERY, |header| header.flags.opcode());
        let outcome = match opcode {
            Opcode::NOTIFY => notify(&authority, &sent),
            Opcode::UPDATE => update(&authority, &mut sent),
            _ => transfer(&authority, &mut sent, usize::from(self.snapshot.udp_octets_max)),
        };
        match outcome {
            Outcome::Reply(message) => {
                let message = sign(sent.signer.as_mut(), message, self.state.now.unix_seconds);
                if let Some(header) = Header::parse(&message) {
                    self.state.counters.count(header.flags.rcode(), false);
                }
                put(reply, &message)
            }
            Outcome::Stream(handed) => {
                self.state.counters.count(Rcode::NOERROR, false);
                Verdict::Stream(handed)
            }
        }
    }
}

fn put(reply: &mut Reply<'_>, message: &[u8]) -> Verdict {
    match reply.buffer().get_mut(..message.len()) {
        Some(room) if !message.is_empty() => {
            room.copy_from_slice(message);
            reply.set_len(message.len());
            Verdict::Answered
        }
        _ => Verdict::Drop,
    }
}
