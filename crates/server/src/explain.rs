//! One query taken through the policy: how it reaches the engine, and in what words its way is
//! told.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::Plans;
use control::api;
use engine::explain::{Recorder, Trace};
use engine::{Client, Engine, ListenerId, Now, Reply, SnapshotCell, Transport, Verdict};
use wire::{Class, Flags, Message, NameBuf, Question, Rcode, Rtype, Section, Writer};

use crate::compile::Compiled;
use crate::operator::{OperatorError, What};

/// Octets of the largest reply over UDP that the query says it takes (DNS flag day 2020).
const UDP_OCTETS_MAX: u16 = 1232;

/// Follows a query through a configuration that no server runs on, without asking anybody.
///
/// # Errors
///
/// What of the query makes no sense.
pub fn follow(compiled: &Compiled, asked: &api::Explain) -> Result<api::Explained, OperatorError> {
    let Compiled { plans, zones } = compiled;
    let prepared = Prepared::new(asked, plans.listeners())?;
    let (reclaim, _) = std::sync::mpsc::channel();
    let cell = SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim).serving(zones.served().cloned());
    let mut engine = Engine::new(Arc::new(cell), Arc::default());
    engine.begin(Now::new(SystemTime::now(), Duration::ZERO));
    let mut recorder = Recorder::default();
    let mut buffer = vec![0; wire::MESSAGE_OCTETS_MAX];
    let mut reply = Reply::new(&mut buffer);
    let verdict = engine.explain(&prepared.query, &prepared.client, &mut reply, &mut recorder);
    let bytes = match verdict {
        Verdict::Answered => Some(reply.bytes().to_vec()),
        Verdict::Drop | Verdict::Defer(_) | Verdict::Stream(_) => None,
    };
    let mut explained = prepared.explained(plans, &recorder.take(), bytes.as_deref());
    explained.is_cut_short = matches!(verdict, Verdict::Defer(_));
    Ok(explained)
}

/// A query that is to be explained, as it reaches the engine.
pub(crate) struct Prepared {
    pub(crate) query: Vec<u8>,
    pub(crate) client: Client,
    question: api::Question,
}

impl Prepared {
    /// Reads what is asked; `listeners` are the names of those that there are.
    pub(crate) fn new(asked: &api::Explain, listeners: &[Option<String>]) -> Result<Self, OperatorError> {
        let wrong = OperatorError::Argument;
        let name: NameBuf = asked
            .name
            .parse()
            .map_err(|error| wrong(format!("\"{}\" is not a domain name: {error}", asked.name)))?;
        let rtype: Rtype =
            asked.rtype.parse().map_err(|_| wrong(format!("\"{}\" is not a record type", asked.rtype)))?;
        let address = match &asked.client {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(text) => text.parse().map_err(|_| wrong(format!("\"{text}\" is not an IP address")))?,
        };
        let listener = match &asked.listener {
            None => 0,
            Some(wanted) => listeners
                .iter()
                .position(|name| name.as_ref() == Some(wanted))
                .ok_or_else(|| OperatorError::not_found(What::Listener, wanted))?,
        };
        let mut query = vec![0; 512];
        let mut writer = Writer::new(&mut query, 512, 0, Flags::RD);
        let question = Question { qname: name.as_name(), qtype: rtype, qclass: Class::IN };
        writer.question(&question).map_err(|_| wrong("the name is too long".to_owned()))?;
        writer
            .opt(UDP_OCTETS_MAX, Rcode::NOERROR, asked.wants_dnssec, |_| Ok(()))
            .map_err(|_| wrong("the name is too long".to_owned()))?;
        let len = writer.finish();
        query.truncate(len);
        let transport = if asked.is_tcp { Transport::Tcp } else { Transport::Udp };
        let client = Client {
            address: address.to_canonical(),
            port: 0,
            transport,
            // The operator says who it is: nothing has to be proven.
            verified: true,
            reply_octets_max: u16::MAX,
            keepalive: None,
            listener: ListenerId(u16::try_from(listener).unwrap_or(u16::MAX)),
            connection: 0,
            certificate: None,
        };
        let question =
            api::Question { name: name.to_string(), rtype: rtype.to_string(), class: Class::IN.to_string() };
        Ok(Self { query, client, question })
    }

    /// Puts into words what happened.
    pub(crate) fn explained(&self, plans: &Plans, trace: &Trace, reply: Option<&[u8]>) -> api::Explained {
        let steps = plans.explain(&trace.events).into_iter().map(|step| {
            let (file, line) = step.place.unzip();
            api::ExplainedStep { file, line, text: step.text, held: step.held, outcome: step.outcome }
        });
        let reply = reply.and_then(|bytes| Message::parse(bytes).ok()).map(|message| api::ExplainedReply {
            status: message.rcode().to_string(),
            flags: api::flag_names(message.header.flags),
            answer: api::Record::section(&message, Section::Answer),
            authority: api::Record::section(&message, Section::Authority),
            extended_errors: api::ExtendedError::all(&message),
        });
        api::Explained {
            question: self.question.clone(),
            client: self.client.address.to_string(),
            steps: steps.collect(),
            reply,
            is_cut_short: false,
        }
    }
}
