//! The control socket's requests, carried out by the operator interface; its errors become text.

use std::sync::Arc;

use control::Answer;
use control::api::{self, Request, ResolverOrder, ResolverWhat, Response, ZoneOrder, ZoneWhat};

use crate::operator::{Operator, OperatorError};

/// Returns what carries requests out.
pub(crate) fn handler(operator: Arc<Operator>) -> control::Handler {
    Arc::new(move |request| answer(&operator, request))
}

/// Returns the response to a request that may have been refused.
fn response<T>(outcome: Result<T, OperatorError>, to: impl FnOnce(T) -> Response) -> Response {
    match outcome {
        Ok(done) => to(done),
        // What was wrong with a configuration is shown like what was adopted.
        Err(OperatorError::Invalid(rejected)) => Response::Reload(api::Reload {
            diagnostics: rejected.diagnostics.iter().map(api::Diagnostic::from).collect(),
            ..rejected.stays
        }),
        Err(other) => Response::error(other.to_string()),
    }
}

// A table: a row for each request.
fn answer(operator: &Arc<Operator>, request: Request) -> Answer {
    let response = match request {
        Request::Reload => response(operator.reload(), Response::Reload),
        Request::Status => Response::Status(operator.status()),
        Request::Stats => Response::Stats(operator.stats()),
        Request::Metrics => Response::Metrics(operator.metrics()),
        Request::CacheFlush(flush) => response(operator.cache_flush(&flush), Response::CacheFlush),
        Request::CacheDump => Response::CacheDump(operator.cache_dump()),
        Request::CacheStats => Response::CacheStats(operator.cache_stats()),
        Request::CacheLookup(asked) => response(operator.cache_lookup(&asked), Response::CacheEntries),
        Request::Resolver(order) => resolver(operator, &order),
        Request::Lists(asked) => response(operator.lists(asked.set.as_deref()), Response::Lists),
        Request::ListsFetch(asked) => {
            response(operator.lists_fetch(asked.set.as_deref()), Response::ListsFetched)
        }
        Request::LogLevel(wanted) => {
            response(operator.log_level(wanted.level.as_deref()), Response::LogLevel)
        }
        Request::Jobs => Response::Jobs(operator.jobs()),
        Request::JobRun(job) => response(operator.job_run(&job.name), Response::Jobs),
        Request::Zone(order) if order.what == ZoneWhat::Print => return print(operator, &order),
        Request::Zone(order) => zone(operator, &order),
        Request::ZoneAdd(add) => response(operator.zone_add(&add), Response::ZonesChanged),
        Request::ZoneRemove(names) => Response::ZonesChanged(operator.zone_remove(&names.zones)),
        Request::ZoneLoad(load) => response(operator.zone_load(&load), done),
        Request::SetReload(set) => response(operator.set_reload(&set.name), Response::Reload),
        Request::SetList(set) => response(operator.set_list(&set.name), Response::SetList),
        Request::SetAdd(change) => response(operator.set_add(&change), Response::SetChanged),
        Request::SetRemove(change) => response(operator.set_remove(&change), Response::SetChanged),
        Request::ZoneKeys(asked) => response(operator.zone_keys(&asked.zone), Response::ZoneKeys),
        Request::ZoneDsSeen(seen) => response(operator.zone_ds_seen(&seen), Response::ZoneKeys),
        Request::ZoneRoll(roll) => response(operator.zone_roll(&roll), Response::ZoneKeys),
        Request::ConfigChange(change) => response(operator.config_change(&change), Response::ConfigChanged),
        Request::ConfigShow => response(operator.config_show(), Response::ConfigShown),
        Request::ConfigExport(asked) => Response::ConfigShown(operator.config_export(asked.with_secrets)),
        Request::ConfigDiff(asked) => response(operator.config_diff(&asked), Response::ConfigDifferences),
        Request::ConfigHistory(asked) => response(operator.config_history(&asked), Response::ConfigSteps),
        Request::Explain(asked) => response(operator.explain(&asked), Response::Explained),
    };
    response.into()
}

fn resolver(operator: &Operator, order: &ResolverOrder) -> Response {
    let only = order.resolver.as_deref();
    match &order.what {
        ResolverWhat::Stats => response(operator.resolver_stats(only), Response::ResolverStats),
        ResolverWhat::Servers => Response::ResolverServers(operator.resolver_servers()),
        ResolverWhat::Zone(name) => response(operator.resolver_zone(only, name), Response::ResolverZones),
        ResolverWhat::Anchors => response(operator.resolver_anchors(only), Response::ResolverAnchors),
        ResolverWhat::Negative(order) => {
            response(operator.resolver_negative(only, order), Response::ResolverNegative)
        }
        ResolverWhat::Flush(what) => response(operator.resolver_flush(only, what), Response::CacheFlush),
    }
}

fn done(message: String) -> Response {
    Response::ZoneDone(api::ZoneDone { message })
}

fn zone(operator: &Operator, order: &ZoneOrder) -> Response {
    let name = order.name.as_deref();
    let of_one = |outcome: fn(&Operator, &str) -> Result<(), OperatorError>, message: &str| {
        let named = name.ok_or_else(|| OperatorError::Argument("which zone?".to_owned()));
        response(named.and_then(|name| outcome(operator, name)), |()| done(message.to_owned()))
    };
    match order.what {
        ZoneWhat::Status => response(operator.zone_status(name), Response::Zones),
        ZoneWhat::Reload => response(operator.zone_refresh(name, order.file_change), Response::Reload),
        ZoneWhat::Retransfer => of_one(Operator::zone_retransfer, "the whole zone is asked for"),
        ZoneWhat::Freeze => of_one(Operator::zone_freeze, "the zone does not change any more"),
        ZoneWhat::Thaw => of_one(Operator::zone_thaw, "the zone may change"),
        ZoneWhat::Diff => {
            let named = name.ok_or_else(|| OperatorError::Argument("which zone?".to_owned()));
            response(named.and_then(|name| operator.zone_difference(name)), Response::ZoneDiff)
        }
        ZoneWhat::Print => Response::error("a zone is printed in parts"),
    }
}

/// Begins to print the version of a zone that is served.
fn print(operator: &Operator, order: &ZoneOrder) -> Answer {
    let named = order.name.as_deref().ok_or_else(|| OperatorError::Argument("which zone?".to_owned()));
    match named.and_then(|name| operator.zone_records(name)) {
        Ok(records) => Answer::Parts(Box::new(records.map(Response::ZoneRecords))),
        Err(why) => Response::error(why.to_string()).into(),
    }
}
