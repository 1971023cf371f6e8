//! Certificates that are ordered: where authorities look, and how new ones come into use.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acme::web::{RESPONSE_OCTETS_MAX, Request, Response, SIGNED, Session, Web};
use acme::{Caa, Certificates, News, Place, wall_clock};
use control::api::{CertificateEvent, EventOf};
use jobs::web;
use listen::TlsCell;
use plan::certificates::{CertificatePlan, Challenge};
use plan::upstreams::Bind;
use tracing::{debug, info, warn};
use transfer::{Patience, TxtChange, push_txt};
use wire::{Message, NameBuf, Rcode, Record, Rtype, Section};

use crate::anchors::Prober;
use crate::feed::bounded;
use crate::for_jobs::Orders;
use crate::lock;

/// The resolver that names are looked up with, if it runs.
const RESOLVER: &str = "default";
/// How long an authority may take for one request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
/// How long one server is waited for.
const SERVER_PATIENCE: Duration = Duration::from_secs(3);
/// How long one server may take for an update.
const UPDATE_PATIENCE: Duration = Duration::from_secs(30);
/// How long all name servers of a zone may take until they have a record.
const SHOWN_PATIENCE: Duration = Duration::from_secs(120);
/// How long until they are asked again.
const SHOWN_PAUSE: Duration = Duration::from_secs(2);
/// How often a name server may be silent before it is left out: an authority cannot ask it either.
const SILENCES_MAX: u32 = 2;
/// Aliases that are followed.
const ALIASES_MAX: usize = 8;
/// Addresses of name servers of one zone that are asked.
const NAME_SERVERS_MAX: usize = 32;

/// The listeners and zones of this server.
pub(crate) struct Listeners {
    tls: Arc<TlsCell>,
    orders: Arc<Orders>,
    prober: Arc<Prober>,
    transfers: transfer::Client,
    /// Records that are there for an authority.
    records: Mutex<Vec<Shown>>,
}

/// A record that is there for an authority.
struct Shown {
    change: TxtChange,
    /// The zone that it is in.
    zone: NameBuf,
}

impl Place for Listeners {
    fn show(&self, plan: &CertificatePlan, challenges: &[Challenge]) -> Result<(), String> {
        let mut records = Vec::new();
        for challenge in challenges {
            if let Challenge::Record { owner, text } = challenge {
                records.push((*owner, text.clone()));
            }
        }
        if records.is_empty() {
            return self.tls.answer_challenges(challenges).map_err(|error| error.to_string());
        }
        for (owner, text) in records {
            let owner = self.alias_end(owner);
            let change = TxtChange { owner, text, is_wanted: true };
            let zone = self.change(plan, &change)?;
            lock(&self.records).push(Shown { change, zone });
        }
        self.until_shown()
    }

    fn hide(&self, plan: &CertificatePlan, _: &[Challenge]) {
        // One certificate is ordered at a time. There is nothing to refuse in nothing.
        let _ = self.tls.answer_challenges(&[]);
        for Shown { change, .. } in std::mem::take(&mut *lock(&self.records)) {
            let change = TxtChange { is_wanted: false, ..change };
            if let Err(why) = self.change(plan, &change) {
                warn!(name = %change.owner, why, "a record for an authority is still there");
            }
        }
    }

    fn adopt(&self, certificate: &str) -> Result<(), String> {
        self.orders.use_certificates(certificate)
    }

    fn hear(&self, plan: &CertificatePlan, news: &News<'_>) {
        let (name, names) = (plan.name.clone(), plan.identifiers.iter().map(ToString::to_string).collect());
        let event = CertificateEvent { name, names, ..CertificateEvent::default() };
        self.orders.feed().tell(EventOf::Certificate(match *news {
            News::Issued { is_renewal, authority, ends } => CertificateEvent {
                what: if is_renewal { "renewed" } else { "ordered" }.to_owned(),
                authority: Some(authority.to_owned()),
                ends_s: Some(ends),
                ..event
            },
            News::Failed { why, again_at } => CertificateEvent {
                what: "failed".to_owned(),
                why: Some(bounded(why)),
                again_at_s: Some(again_at),
                ..event
            },
        }));
    }

    fn caa(&self, host: &str) -> Result<Vec<Caa>, String> {
        let name: NameBuf = host.parse().map_err(|_| format!("\"{host}\" is no name"))?;
        let mut at = Some(name.as_name());
        // RFC 8659 §3: the closest name at or above that has any.
        while let Some(owner) = at.filter(|owner| !owner.is_root()) {
            let text = owner.to_buf().to_string().trim_end_matches('.').to_owned();
            let read = |record: &Record<'_>| Caa::read(text.clone(), record.rdata);
            let found = self.look_up(owner.to_buf(), Rtype::CAA, &read)?;
            if !found.is_empty() {
                return Ok(found);
            }
            at = owner.parent();
        }
        Ok(Vec::new())
    }
}

impl Listeners {
    pub(crate) fn new(orders: &Arc<Orders>, prober: &Arc<Prober>, transfers: transfer::Client) -> Self {
        let (orders, prober) = (Arc::clone(orders), Arc::clone(prober));
        Self { tls: Arc::default(), orders, prober, transfers, records: Mutex::default() }
    }

    /// Returns how listeners speak TLS.
    pub(crate) fn tls(&self) -> Arc<TlsCell> {
        Arc::clone(&self.tls)
    }

    /// Returns what orders certificates that authorities look for here.
    pub(crate) fn certificates(self) -> Certificates {
        let web = Authorities(Arc::new(OwnHosts(Arc::clone(&self.orders))));
        Certificates::new(Arc::new(self), Arc::new(web), wall_clock())
    }

    /// Changes a record in a zone of this server, or has another server change it. Returns the
    /// zone.
    fn change(&self, plan: &CertificatePlan, change: &TxtChange) -> Result<NameBuf, String> {
        if plan.update.is_empty() {
            let changed = self.orders.change_record(change);
            return match changed.ok_or("the server does not run yet")? {
                Some(changed) => changed,
                None => Err(format!(
                    "{} is in no zone of this server, and \"update\" names no other server",
                    change.owner
                )),
            };
        }
        let patience = Patience { whole: UPDATE_PATIENCE, ..Patience::default() };
        let mut refused = Vec::with_capacity(plan.update.len());
        for server in &plan.update {
            match run(push_txt(&self.transfers, server, change, patience))? {
                Ok(zone) => return Ok(zone),
                Err(trouble) => refused.push(format!("{server}: {trouble}")),
            }
        }
        Err(format!("no server takes the record {}: {}", change.owner, refused.join("; ")))
    }

    /// Follows aliases from a name to where its records are; as far as they are known.
    fn alias_end(&self, name: NameBuf) -> NameBuf {
        let mut end = name;
        for _ in 0..ALIASES_MAX {
            let target = |record: &Record<'_>| record.name_in_rdata(0).expand().ok();
            match self.look_up(end, Rtype::CNAME, &target) {
                Ok(found) => match found.first() {
                    Some(target) => end = *target,
                    None => break,
                },
                Err(why) => {
                    debug!(name = %end, why, "whether it is an alias is not known");
                    break;
                }
            }
        }
        end
    }

    /// Asks for the records of a name: the own resolver, or the servers that the operator has named
    /// for the server itself.
    fn look_up<T>(
        &self,
        name: NameBuf,
        rtype: Rtype,
        read: &dyn Fn(&Record<'_>) -> Option<T>,
    ) -> Result<Vec<T>, String> {
        let is_it = |record: &Record<'_>| record.section == Section::Answer && record.rtype == rtype;
        if let Some(resolver) = self.prober.tables.plan_of(RESOLVER) {
            let resolution = self.prober.ask(&resolver, (name, rtype), driver::Probing::Checked)?;
            let records = resolution.records().filter(is_it);
            return Ok(records.filter_map(|record| read(&record)).collect());
        }
        let mut trouble = "nobody is known who could be asked (setting server.resolvers)".to_owned();
        for server in self.orders.resolvers() {
            match asked(server, (name, rtype), true) {
                Ok(reply) => {
                    let message = Message::parse(&reply).map_err(|_| "the reply is malformed".to_owned())?;
                    match message.rcode() {
                        Rcode::NOERROR | Rcode::NXDOMAIN => {
                            let records = message.records().filter(is_it);
                            return Ok(records.filter_map(|record| read(&record)).collect());
                        }
                        rcode => trouble = format!("{server} answers {rcode}"),
                    }
                }
                Err(why) => trouble = why,
            }
        }
        Err(trouble)
    }

    /// Waits until all name servers of the zones have the records that are there for an authority.
    fn until_shown(&self) -> Result<(), String> {
        let deadline = Instant::now() + SHOWN_PATIENCE;
        let records: Vec<(NameBuf, NameBuf, String)> = lock(&self.records)
            .iter()
            .map(|shown| (shown.zone, shown.change.owner, shown.change.text.clone()))
            .collect();
        let zones: BTreeSet<String> = records.iter().map(|(zone, ..)| zone.to_string()).collect();
        for zone in zones {
            let Ok(apex) = zone.parse::<NameBuf>() else { continue };
            let mut waiting: Vec<(SocketAddr, u32)> = self
                .name_servers(apex)
                .into_iter()
                .map(|address| (SocketAddr::new(address, 53), 0))
                .collect();
            if waiting.is_empty() {
                info!(zone, "no name server of the zone is known; the authority is told at once");
            }
            let of_zone = || records.iter().filter(|(other, ..)| *other == apex);
            while !waiting.is_empty() {
                waiting.retain_mut(|(server, silences)| {
                    let mut shows =
                        |owner: NameBuf, text: &str| match asked(*server, (owner, Rtype::TXT), false) {
                            Ok(reply) => has_text(&reply, text),
                            Err(why) => {
                                *silences += 1;
                                debug!(%server, why, "a name server does not answer");
                                false
                            }
                        };
                    let is_done = of_zone().all(|(_, owner, text)| shows(*owner, text));
                    if *silences >= SILENCES_MAX {
                        info!(%server, zone, "a name server does not answer and is not waited for");
                    }
                    !is_done && *silences < SILENCES_MAX
                });
                let Some((first, _)) = waiting.first() else { break };
                if Instant::now() >= deadline {
                    return Err(format!("{first} does not have the record that the authority looks for"));
                }
                std::thread::park_timeout(SHOWN_PAUSE);
            }
        }
        Ok(())
    }

    /// Returns the addresses of the name servers of a zone: those that its parent names, or else
    /// those that it names itself.
    fn name_servers(&self, zone: NameBuf) -> Vec<IpAddr> {
        let target = |record: &Record<'_>| record.name_in_rdata(0).expand().ok();
        let mut hosts = self.delegated_to(zone);
        if hosts.is_empty() {
            hosts = self.look_up(zone, Rtype::NS, &target).unwrap_or_default();
        }
        let mut found: Vec<IpAddr> = Vec::new();
        for host in hosts {
            for address in self.addresses(host) {
                if found.len() < NAME_SERVERS_MAX && !found.contains(&address) {
                    found.push(address);
                }
            }
        }
        found
    }

    /// Asks servers of the parent of a zone where it is delegated to.
    fn delegated_to(&self, zone: NameBuf) -> Vec<NameBuf> {
        let target = |record: &Record<'_>| record.name_in_rdata(0).expand().ok();
        let mut above = zone.as_name().parent();
        while let Some(name) = above {
            let servers = self.look_up(name.to_buf(), Rtype::NS, &target).unwrap_or_default();
            for address in servers.into_iter().take(4).flat_map(|host| self.addresses(host)) {
                let Ok(reply) = asked(SocketAddr::new(address, 53), (zone, Rtype::NS), false) else {
                    continue;
                };
                let Ok(message) = Message::parse(&reply) else { continue };
                let is_it = |record: &Record<'_>| {
                    record.rtype == Rtype::NS
                        && record.section != Section::Additional
                        && record.owner.expand().is_ok_and(|owner| owner == zone)
                };
                let hosts: Vec<NameBuf> =
                    message.records().filter(is_it).filter_map(|it| target(&it)).collect();
                if !hosts.is_empty() {
                    return hosts;
                }
            }
            above = if name.is_root() { None } else { name.parent() };
        }
        Vec::new()
    }

    fn addresses(&self, host: NameBuf) -> Vec<IpAddr> {
        let address = |record: &Record<'_>| match record.rtype {
            Rtype::A => <[u8; 4]>::try_from(record.rdata).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(record.rdata).ok().map(IpAddr::from),
        };
        let of = |rtype| self.look_up(host, rtype, &address).unwrap_or_default();
        [of(Rtype::A), of(Rtype::AAAA)].concat()
    }
}

/// Speaks with authorities as the jobs speak with web servers.
struct Authorities(Arc<dyn web::Hosts>);

/// Finds hosts as those of lists are found.
struct OwnHosts(Arc<Orders>);

impl fmt::Debug for OwnHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnHosts")
    }
}

impl web::Hosts for OwnHosts {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let name: NameBuf = host.parse().map_err(|_| "this is not a name".to_owned())?;
        self.0.addresses(&name)
    }
}

impl Web for Authorities {
    fn session(&self, roots: Option<&Path>) -> Result<Box<dyn Session>, String> {
        let client = web::Client::new(roots, &self.0, REQUEST_PATIENCE);
        Ok(Box::new(Authority(client.map_err(|error| error.to_string())?)))
    }
}

/// Speaks with one authority.
struct Authority(web::Client);

impl Session for Authority {
    fn send(&self, request: Request<'_>) -> Result<Response, String> {
        let Request { method, url, body } = request;
        let body = body.as_deref().map(|body| (SIGNED, body));
        let received = self.0.send(&web::Sent { method, url, body, octets_max: RESPONSE_OCTETS_MAX })?;
        let field = |name| received.field(name).map(str::to_owned);
        let (nonce, location) = (field("replay-nonce"), field("location"));
        let (status, retry_after) = (received.status, field("retry-after"));
        Ok(Response { status, nonce, location, retry_after, body: received.body })
    }
}

/// Returns whether a reply has a TXT record with this text.
fn has_text(reply: &[u8], text: &str) -> bool {
    let Ok(message) = Message::parse(reply) else { return false };
    message.records().any(|record| {
        record.section == Section::Answer
            && record.rtype == Rtype::TXT
            && record.rdata.split_first().is_some_and(|(_, rest)| rest == text.as_bytes())
    })
}

/// Asks one server, which is waited for a moment.
fn asked(server: SocketAddr, question: (NameBuf, Rtype), recursion_desired: bool) -> Result<Vec<u8>, String> {
    let bind = Bind::default();
    let reply = async {
        let asked = exchange::resolve::reply(&bind, server, question, recursion_desired);
        tokio::time::timeout(SERVER_PATIENCE, asked).await
    };
    match run(reply)? {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) => Err(format!("{server}: {error}")),
        Err(_) => Err(format!("{server} does not answer")),
    }
}

/// Runs something that waits on this thread, which has no runtime of its own.
fn run<T>(task: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| format!("no runtime: {error}"))?.block_on(task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Class, Flags, Question, Ttl, Writer};

    #[test]
    fn a_reply_shows_a_text_that_is_all_of_a_record() {
        let owner: NameBuf = "_acme-challenge.example.org".parse().expect("a name");
        let reply = |section, rtype, data: &[u8]| {
            let mut octets = vec![0; 512];
            let mut writer = Writer::new(&mut octets, 512, 1, Flags::QR);
            let question = Question { qname: owner.as_name(), qtype: Rtype::TXT, qclass: Class::IN };
            writer.question(&question).expect("room");
            let put = |writer: &mut Writer<'_>| writer.bytes(data);
            writer.record(section, owner.as_name(), rtype, Class::IN, Ttl::new(60), put).expect("room");
            let len = writer.finish();
            octets.truncate(len);
            octets
        };
        assert!(has_text(&reply(Section::Answer, Rtype::TXT, b"\x03abc"), "abc"));
        assert!(!has_text(&reply(Section::Answer, Rtype::TXT, b"\x04abcd"), "abc"));
        assert!(!has_text(&reply(Section::Authority, Rtype::TXT, b"\x03abc"), "abc"));
        assert!(!has_text(&reply(Section::Answer, Rtype::NULL, b"\x03abc"), "abc"));
        assert!(!has_text(b"", "abc"));
    }
}
