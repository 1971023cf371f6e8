//! What is forgotten.

use std::net::{IpAddr, SocketAddr};

use ::server::StoredOf;
use cache::Flush as Flushing;
use control::api::{CacheFlush, Flush, ResolverFlush};
use wire::Rtype;

use super::{Call, Failure, Outcome, name, split};

/// The port of DNS.
const PORT: u16 = 53;

/// Forgets answers and what resolvers have learned; returns how many of each.
fn forget(call: &Call<'_>, answers: Flush, learned: &ResolverFlush) -> Result<(u64, u64), Failure> {
    let operator = &call.context.operator;
    // What resolvers know first: an answer that is asked for meanwhile is not made of it again.
    let rrsets = operator.resolver_flush(None, learned)?.removed;
    let messages = operator.cache_flush(&CacheFlush { cache: None, what: answers })?.removed;
    Ok((rrsets, messages))
}

fn told(call: &mut Call<'_>, (rrsets, messages): (u64, u64)) -> Outcome {
    call.line(format_args!("ok removed {rrsets} rrsets, {messages} messages and 0 key entries"))
}

/// Returns whether the letter says that values in second-level caches (`cachedb`) are not to be
/// used any more, either.
fn options(call: &mut Call<'_>) -> Result<bool, Failure> {
    call.letters("c").map(|letters| !letters.is_empty())
}

fn forget_stored(call: &Call<'_>, is_wanted: bool, what: StoredOf) {
    // First of all: an answer that is asked for meanwhile is not made of it again.
    if is_wanted {
        call.context.operator.forget_stored(what);
    }
}

pub(super) fn flush(call: &mut Call<'_>) -> Outcome {
    let is_stored = options(call)?;
    let name = call.name()?;
    forget_stored(call, is_stored, StoredOf::Name(name));
    let name = name.to_string();
    forget(call, Flush::Name(name.clone()), &ResolverFlush::Name(name))?;
    call.ok()
}

pub(super) fn flush_type(call: &mut Call<'_>) -> Outcome {
    let is_stored = options(call)?;
    let (owner, rtype) = split(call.argument)?;
    let owner = name(owner)?;
    let Ok(rtype) = rtype.parse::<Rtype>() else {
        return Err(Failure::Error(format!("parsing RRset type: '{rtype}'")));
    };
    forget_stored(call, is_stored, StoredOf::Type(owner, rtype));
    let (owner, rtype) = (owner.to_string(), rtype.to_string());
    let learned = ResolverFlush::Type { name: owner.clone(), rtype: rtype.clone() };
    forget(call, Flush::Type { name: owner, rtype }, &learned)?;
    call.ok()
}

pub(super) fn flush_zone(call: &mut Call<'_>) -> Outcome {
    let is_stored = options(call)?;
    let name = call.name()?;
    forget_stored(call, is_stored, StoredOf::Suffix(name));
    let name = name.to_string();
    let removed = forget(call, Flush::Suffix(name.clone()), &ResolverFlush::Suffix(name))?;
    told(call, removed)
}

/// Nothing bogus is stored in second-level caches, and what is in them is validated each time.
pub(super) fn flush_bogus(call: &mut Call<'_>) -> Outcome {
    options(call)?;
    let operator = &call.context.operator;
    let rrsets = operator.resolver_flush(None, &ResolverFlush::Bogus)?.removed;
    let messages = operator.flush_answers(Flushing::Bogus);
    told(call, (rrsets, messages))
}

pub(super) fn flush_negative(call: &mut Call<'_>) -> Outcome {
    let is_stored = options(call)?;
    forget_stored(call, is_stored, StoredOf::Negative);
    let operator = &call.context.operator;
    let rrsets = operator.resolver_flush(None, &ResolverFlush::Negative)?.removed;
    let messages = operator.flush_answers(Flushing::Negative);
    told(call, (rrsets, messages))
}

/// Answers that have expired, which are kept for when nobody answers.
pub(super) fn flush_stale(call: &mut Call<'_>) -> Outcome {
    let operator = &call.context.operator;
    let messages = operator.flush_answers(Flushing::Stale(operator.cache_now()));
    told(call, (0, messages))
}

/// Ends queries that wait for other servers; their clients get SERVFAIL.
pub(super) fn flush_requestlist(call: &mut Call<'_>) -> Outcome {
    call.context.operator.end_waiting()?;
    call.ok()
}

pub(super) fn flush_infra(call: &mut Call<'_>) -> Outcome {
    let operator = &call.context.operator;
    if call.argument == "all" {
        operator.forget_servers();
        return call.ok();
    }
    let (host, port) = call.argument.split_once('@').unwrap_or((call.argument, ""));
    let wrong = || Failure::Error(format!("parsing ip addr: '{}'", call.argument));
    let address: IpAddr = host.parse().map_err(|_| wrong())?;
    let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| wrong())? };
    operator.forget_server(SocketAddr::new(address, port));
    call.ok()
}
