//! Oblivious DNS over HTTPS (RFC 9230): sealed messages in POSTs over HTTP/2, through a relay if
//! there is one.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, Request, StatusCode, Uri, header};
use identity::{Odoh, Transport};
use odoh::{CONFIGS_PATH, Client, MEDIA_TYPE};
use plan::upstreams::{HttpPlan, Target, Way};
use tokio::sync::Semaphore;

use super::carrier::Carrier;
use super::connect::{self, Secured};
use super::exchange::{self, Outcome};
use super::https::{self, Got, Web};
use crate::network::Remote;
use crate::resolve::Resolver;

/// How long one resolver is waited for that is asked where the target is.
const RESOLVE_PATIENCE: Duration = Duration::from_millis(800);

/// What the queries of one connection share.
struct ObliviousLink {
    remote: Remote,
    target: Arc<Odoh>,
    uri: Uri,
    /// Who asks for the target's key, while others wait.
    turn: Semaphore,
}

/// Begins to speak HTTP/2; `opened` is called when queries can be sent. Returns when the connection
/// has ended; an error says why there was none.
pub(super) async fn carry(
    carrier: &Carrier,
    (target, http, remote): (&Arc<Odoh>, &HttpPlan, &Remote),
    stream: Secured,
    opened: impl FnOnce(),
) -> Result<(), String> {
    let link = Rc::new(ObliviousLink {
        remote: remote.clone(),
        target: Arc::clone(target),
        uri: https::uri(http)?,
        turn: Semaphore::new(1),
    });
    // Without the target's key no query can be sealed.
    key(&link.remote, target).await?;
    let (web, connection) = https::begin(stream).await?;
    let web = Rc::new(web);
    opened();
    let ended = async { drop(connection.await) };
    exchange::carry(carrier, ended, |query| ask(Rc::clone(&link), Rc::clone(&web), query)).await;
    Ok(())
}

/// Asks one question; `None` if the connection failed under it.
async fn ask(link: Rc<ObliviousLink>, web: Rc<Web>, query: Vec<u8>) -> Option<Outcome> {
    // Once more if the target has another key by now (RFC 9230 §4.3).
    for _ in 0..2 {
        let key = {
            let _turn = link.turn.acquire().await.ok()?;
            key(&link.remote, &link.target).await
        };
        let Ok(key) = key else { return Some(Outcome::Refusal) };
        let Ok((octets, context)) = key.seal(&query) else { return Some(Outcome::Refusal) };
        let request = Request::builder()
            .method(Method::POST)
            .uri(link.uri.clone())
            .header(header::ACCEPT, MEDIA_TYPE)
            .header(header::CACHE_CONTROL, "no-cache, no-store")
            .header(header::CONTENT_TYPE, MEDIA_TYPE)
            .header(header::CONTENT_LENGTH, octets.len())
            .body(())
            .ok()?;
        let got = web.exchange(request, Some(octets.into())).await?;
        if got.status == StatusCode::UNAUTHORIZED {
            link.target.forget(&key);
            continue;
        }
        return Some(match got.body(MEDIA_TYPE).and_then(|body| context.open(body).ok()) {
            Some(reply) => Outcome::Message(reply),
            None => Outcome::Refusal,
        });
    }
    Some(Outcome::Refusal)
}

/// Returns the target's key, which is asked for if it is not known; an error says why there is
/// none.
async fn key(remote: &Remote, target: &Odoh) -> Result<Client, String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if let Some(known) = target.known(now) {
        return Ok(known);
    }
    let found = fetch(remote, target).await;
    let key = found.map_err(|why| format!("no key of the target {}: {why}", target.plan.authority))?;
    target.remember(key.clone(), now);
    Ok(key)
}

/// Asks the target itself for its key.
async fn fetch(remote: &Remote, target: &Odoh) -> Result<Client, String> {
    let plan = &target.plan;
    let bind = &remote.way().bind;
    let addresses: Vec<SocketAddr> = match &plan.target {
        Target::Address(address) => vec![*address],
        Target::Name { name, port } => {
            let resolver =
                Resolver { servers: &plan.bootstrap, bind, patience: RESOLVE_PATIENCE, deadline: None };
            let found = resolver.host(*name).await.map_err(|why| why.to_string())?;
            found.into_iter().map(|address| SocketAddr::new(address, *port)).collect()
        }
    };
    let mut trouble = "it has no address".to_owned();
    for address in addresses {
        let way = Way { bind: bind.clone(), proxy: remote.way().proxy.clone(), ..Way::default() };
        let remote = Remote { address, transport: Arc::new(Transport::plain(way)) };
        match fetch_at(&remote, target).await {
            Ok(key) => return Ok(key),
            Err(why) => trouble = why,
        }
    }
    Err(trouble)
}

async fn fetch_at(remote: &Remote, target: &Odoh) -> Result<Client, String> {
    let stream = connect::in_time(remote).await?;
    let stream = connect::secured(target.tls(), remote, stream).await?;
    let (web, connection) = https::begin(stream).await?;
    let uri: Uri = format!("https://{}{CONFIGS_PATH}", target.plan.authority)
        .parse()
        .map_err(|_| format!("\"{}\" is not a host", target.plan.authority))?;
    let request = Request::builder().uri(uri).body(()).map_err(|error| error.to_string())?;
    let exchange = tokio::time::timeout(connect::HANDSHAKE_TIMEOUT, web.exchange(request, None));
    let got: Option<Got> = tokio::select! {
        got = exchange => got.ok().flatten(),
        _ = connection => None,
    };
    let got = got.ok_or("it does not answer")?;
    if got.status != StatusCode::OK {
        return Err(format!("it says {} to {CONFIGS_PATH}", got.status));
    }
    Client::from_configs(&got.octets).map_err(|wrong| format!("its configuration: {wrong}"))
}
