//! The table: a row for each resource and method.

use control::api::{self, Request};
use server::Role;

use crate::resources as of;
use crate::route::{Parameter, Route, Wanted, get, parameter, post, route};
use crate::rrsets;
use crate::shapes::{many, map, metrics, nothing, one, records, yaml};

const DRY_RUN: Parameter = parameter("dry-run", "boolean", "Only checks it, and says what it would change.");
const WHY: Parameter = parameter("why", "string", "Why, for the history.");
const FOR: Parameter = parameter("for-s", "integer", "Takes it back after so many seconds.");
const COUNT: Parameter = parameter("count", "integer", "At most so many; 1,000 when absent.");
const AFTER: Parameter =
    parameter("after", "string", "Those after this one. The header `Link` has the URL of the next part.");
const CACHE: Parameter = parameter("cache", "string", "Of this cache alone.");
const RESOLVER: Parameter = parameter("resolver", "string", "Of this resolver alone.");
const SET: Parameter = parameter("set", "string", "Of this set alone.");

const IF_MATCH: Parameter = parameter(
    "If-Match",
    "string",
    "The ETag of what the change is made for, or `*`. Needed for what is there already.",
);
const ZONE_MATCH: Parameter =
    parameter("If-Match", "string", "The ETag of the zone, or `*`. Needed for a zone that is there.");
const KNOWN: Parameter =
    parameter("If-None-Match", "string", "The ETag that the client knows: 304 if it is that.");
const IF_NONE_MATCH: Parameter = parameter("If-None-Match", "string", "`*`: only if nothing is there.");

/// Returns all rows.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    let others = [
        crate::accounts::ROUTES,
        crate::backup::ROUTES,
        crate::bans::ROUTES,
        crate::clients::ROUTES,
        crate::members::ROUTES,
        crate::own_lists::ROUTES,
        crate::powerdns::ROUTES,
    ];
    ROUTES.iter().chain(others.into_iter().flatten())
}

/// The rows of our own resources.
const ROUTES: &[Route] = &[
    get("/status", "How the server is.", one::<api::Status>, |_| Ok(Request::Status)),
    get("/statistics", "All counters, by group.", of::stats_shape, |_| Ok(Request::Stats)),
    get("/metrics", "All numbers as Prometheus reads them.", metrics, |_| Ok(Request::Metrics)),
    get("/settings", "What files and changes say, setting by setting.", many::<api::Setting>, |_| {
        Ok(Request::ConfigGet(api::ConfigGet::default()))
    }),
    get(
        "/settings/{path}",
        "What a setting says, from where, and who changed it.",
        one::<api::Setting>,
        |call| Ok(Request::ConfigGet(api::ConfigGet { path: Some(call.part(0)) })),
    )
    .headers(&[KNOWN])
    .statuses(&[200, 304])
    .gives(&["ETag"])
    .replies(of::setting),
    route("PUT", "/settings/{path}", "Changes a setting.", one::<api::ConfigChanged>, of::put_setting)
        .role(Role::Operator)
        .query(&[DRY_RUN, WHY, FOR])
        .headers(&[IF_MATCH, IF_NONE_MATCH])
        .body(Wanted::Setting)
        .gives(&["ETag"])
        .replies(of::changed),
    route(
        "DELETE",
        "/settings/{path}",
        "Takes a change back, so that the file counts again, or has nothing there.",
        one::<api::ConfigChanged>,
        of::delete_setting,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN, WHY, parameter("nothing", "boolean", "Has nothing there, whatever the file says.")])
    .headers(&[IF_MATCH])
    .gives(&["ETag"])
    .replies(of::changed),
    get("/configuration", "The settings in use as YAML, with where each is from.", yaml, |_| {
        Ok(Request::ConfigShow)
    }),
    get("/changes", "The changed settings as YAML for the file.", yaml, |call| {
        Ok(Request::ConfigExport(api::ConfigExport { with_secrets: call.flag("secrets")? }))
    })
    .query(&[parameter("secrets", "boolean", "With secrets, for admins.")]),
    post(
        ("/changes", Role::Operator),
        "Changes settings: all of it, or nothing.",
        one::<api::ConfigChanged>,
        of::change_settings,
    )
    .query(&[DRY_RUN])
    .body(Wanted::Json(one::<api::ConfigChange>)),
    get("/history", "Who changed what, the newest first.", many::<api::ConfigStep>, of::history)
        .query(&[
            parameter("count", "integer", "At most so many; 20 when absent."),
            parameter("before", "integer", "Those before this revision."),
        ])
        .gives(&["Link"])
        .replies(of::history_part),
    get("/diff", "What two revisions say differently.", many::<api::ConfigDifference>, of::diff).query(&[
        parameter("from", "string", "A revision, `file` (when absent) or `now`."),
        parameter("to", "string", "A revision, `file` or `now` (when absent)."),
    ]),
    post(
        ("/rollback", Role::Admin),
        "Makes all settings what they were at a revision of the changes.",
        one::<api::ConfigChanged>,
        of::roll_back,
    )
    .query(&[DRY_RUN, WHY])
    .body(Wanted::Json(one::<of::RollBack>)),
    post(
        ("/reload", Role::Operator),
        "Reads the configuration's files again, and replaces what is in use if they are right.",
        one::<api::Reload>,
        |_| Ok(Request::Reload),
    ),
    get("/sets", "Sets and their lists.", many::<api::Set>, |_| Ok(Request::Lists(api::ListsOf::default()))),
    get("/sets/{set}", "A set and its lists.", one::<api::Set>, |call| {
        Ok(Request::Lists(api::ListsOf { set: Some(call.part(0)) }))
    })
    .replies(of::one_set),
    post(
        ("/sets/{set}/reload", Role::Operator),
        "Reads the lists of a set again.",
        one::<api::Reload>,
        |call| Ok(Request::SetReload(api::SetName { name: call.part(0) })),
    ),
    post(("/lists/fetch", Role::Operator), "Fetches lists now.", one::<api::ListsFetched>, |call| {
        Ok(Request::ListsFetch(api::ListsOf { set: call.asked("set").map(str::to_owned) }))
    })
    .query(&[SET]),
    get("/caches", "How full the caches are.", map::<api::CacheStats>, |_| Ok(Request::CacheStats)),
    get("/caches/answers", "What the caches hold for a name.", one::<api::CacheEntries>, of::answers).query(
        &[
            parameter("name", "string", "The name. Needed."),
            parameter("type", "string", "The type; every type when absent."),
            parameter("below", "boolean", "Names below it, too."),
            CACHE,
        ],
    ),
    post(("/caches/flush", Role::Helper), "Forgets answers.", one::<api::Flushed>, |call| {
        Ok(Request::CacheFlush(crate::json::parse(&call.body)?))
    })
    .body(Wanted::Json(one::<api::CacheFlush>)),
    post(("/caches/dump", Role::Operator), "Writes the caches to their files.", many::<api::Dumped>, |_| {
        Ok(Request::CacheDump)
    }),
    get("/upstreams", "The upstream servers by group, as the workers see them.", of::upstreams_shape, |_| {
        Ok(Request::Status)
    })
    .replies(of::upstreams),
    get("/resolvers", "How full the tables of resolvers are.", map::<api::CacheStats>, |call| {
        of::resolver(call, api::ResolverWhat::Stats)
    })
    .query(&[RESOLVER]),
    get(
        "/resolvers/servers",
        "What is known of the servers that were asked.",
        one::<api::ResolverServers>,
        |call| of::resolver(call, api::ResolverWhat::Servers),
    ),
    get(
        "/resolvers/delegations/{name}",
        "The closest zone that is known to enclose a name.",
        many::<api::ResolverZone>,
        |call| of::resolver(call, api::ResolverWhat::Zone(call.part(0))),
    )
    .query(&[RESOLVER]),
    get("/resolvers/anchors", "The trust anchors.", many::<api::ResolverAnchor>, |call| {
        of::resolver(call, api::ResolverWhat::Anchors)
    })
    .query(&[RESOLVER]),
    get(
        "/resolvers/negative-anchors",
        "The negative trust anchors.",
        many::<api::ResolverNegative>,
        |call| of::resolver(call, api::ResolverWhat::Negative(api::NegativeOrder::List)),
    )
    .query(&[RESOLVER]),
    post(
        ("/resolvers/flush", Role::Helper),
        "Forgets what resolvers have learned.",
        one::<api::Flushed>,
        |call| of::resolver(call, api::ResolverWhat::Flush(crate::json::parse(&call.body)?)),
    )
    .query(&[RESOLVER])
    .body(Wanted::Json(one::<api::ResolverFlush>)),
    get("/zones", "The zones.", many::<api::Zone>, |_| of::zone(api::ZoneWhat::Status, None))
        .query(&[COUNT, AFTER])
        .gives(&["Link"])
        .replies(of::zones),
    get("/zones/{zone}", "How a zone is.", one::<api::Zone>, |call| {
        of::zone(api::ZoneWhat::Status, Some(call.part(0)))
    })
    .headers(&[KNOWN])
    .statuses(&[200, 304])
    .gives(&["ETag"])
    .replies(of::one_zone),
    route(
        "PUT",
        "/zones/{zone}",
        "Serves one more zone, from now on and after a restart.",
        one::<api::ZonesChanged>,
        of::add_zone,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[ZONE_MATCH, IF_NONE_MATCH])
    .body(Wanted::Setting)
    .replies(of::zones_changed),
    route(
        "DELETE",
        "/zones/{zone}",
        "Takes out a zone that was added.",
        one::<api::ZonesChanged>,
        of::remove_zone,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[ZONE_MATCH])
    .replies(of::zones_changed),
    get("/zones/{zone}/records", "The zone as a master file.", records, |call| {
        of::zone(api::ZoneWhat::Print, Some(call.part(0)))
    }),
    get(
        "/zones/{zone}/rrsets",
        "RRsets of a zone, without signatures that the server makes.",
        one::<api::Rrsets>,
        rrsets::list,
    )
    .query(&[
        parameter("name", "string", "Of this owner alone."),
        parameter("type", "string", "Of this type alone."),
        COUNT,
        parameter("after", "integer", "Those after so many. The header `Link` has the URL of the next part."),
    ])
    .gives(&["Link"])
    .replies(rrsets::listed),
    route(
        "PATCH",
        "/zones/{zone}/rrsets",
        "Changes RRsets: all of it, or nothing.",
        one::<api::RrsetsChanged>,
        rrsets::patch,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .body(Wanted::Json(one::<rrsets::Edits>)),
    get("/zones/{zone}/rrsets/{name}/{type}", "An RRset.", one::<api::Rrset>, rrsets::get)
        .headers(&[KNOWN])
        .statuses(&[200, 304])
        .gives(&["ETag"])
        .replies(rrsets::got),
    route(
        "PUT",
        "/zones/{zone}/rrsets/{name}/{type}",
        "Replaces an RRset.",
        one::<api::RrsetsChanged>,
        rrsets::put,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[IF_MATCH, IF_NONE_MATCH])
    .body(Wanted::Json(one::<rrsets::Contents>)),
    route(
        "DELETE",
        "/zones/{zone}/rrsets/{name}/{type}",
        "Takes an RRset away.",
        one::<api::RrsetsChanged>,
        rrsets::delete,
    )
    .role(Role::Operator)
    .query(&[DRY_RUN])
    .headers(&[IF_MATCH]),
    post(
        ("/zones/{zone}/notify", Role::Operator),
        "Notifies the secondaries of a zone.",
        one::<api::ZoneDone>,
        |call| of::zone(api::ZoneWhat::Notify, Some(call.part(0))),
    ),
    get(
        "/zones/{zone}/difference",
        "How a zone differs from its file: a line for each record.",
        many::<String>,
        |call| of::zone(api::ZoneWhat::Diff, Some(call.part(0))),
    ),
    post(
        ("/zones/{zone}/reload", Role::Operator),
        "Reads a zone's file again, or asks its primary.",
        one::<api::Reload>,
        |call| of::zone(api::ZoneWhat::Reload, Some(call.part(0))),
    ),
    post(
        ("/zones/{zone}/retransfer", Role::Operator),
        "Asks for the whole zone.",
        one::<api::ZoneDone>,
        |call| of::zone(api::ZoneWhat::Retransfer, Some(call.part(0))),
    ),
    post(
        ("/zones/{zone}/freeze", Role::Operator),
        "Has a zone take no updates.",
        one::<api::ZoneDone>,
        |call| of::zone(api::ZoneWhat::Freeze, Some(call.part(0))),
    ),
    post(
        ("/zones/{zone}/thaw", Role::Operator),
        "Has a zone take updates again.",
        one::<api::ZoneDone>,
        |call| of::zone(api::ZoneWhat::Thaw, Some(call.part(0))),
    ),
    get("/zones/{zone}/keys", "How the keys of a zone stand.", one::<api::ZoneKeys>, |call| {
        Ok(Request::ZoneKeys(api::ZoneName { zone: call.part(0) }))
    }),
    post(
        ("/explain", Role::Viewer),
        "Takes a query through the policy, and says what happens to it.",
        one::<api::Explained>,
        |call| Ok(Request::Explain(crate::json::parse(&call.body)?)),
    )
    .body(Wanted::Json(one::<api::Explain>)),
    crate::tools::CHECK,
    crate::tools::PROBE,
    get("/jobs", "What is done at certain times.", many::<api::Job>, |_| Ok(Request::Jobs)),
    post(("/jobs/{job}/run", Role::Operator), "Begins it now.", many::<api::Job>, |call| {
        Ok(Request::JobRun(api::JobRun { name: call.part(0) }))
    }),
    get("/certificates", "How certificates stand that are ordered.", many::<api::OrderedCertificate>, |_| {
        Ok(Request::Certificates(api::CertificatesOf::default()))
    }),
    get(
        "/certificates/{certificate}",
        "How one of them stands, in a list of one.",
        many::<api::OrderedCertificate>,
        |call| Ok(Request::Certificates(api::CertificatesOf { name: Some(call.part(0)) })),
    ),
    post(
        ("/certificates/{certificate}/renew", Role::Operator),
        "Orders it now.",
        many::<api::OrderedCertificate>,
        |call| Ok(Request::CertificateRenew(api::CertificateName { name: call.part(0) })),
    ),
    get("/log-level", "What is logged.", one::<api::LogLevelIs>, |_| {
        Ok(Request::LogLevel(api::LogLevel::default()))
    }),
    route(
        "PUT",
        "/log-level",
        "Changes what is logged until the next reload.",
        one::<api::LogLevelIs>,
        |call| Ok(Request::LogLevel(crate::json::parse(&call.body)?)),
    )
    .role(Role::Operator)
    .body(Wanted::Json(one::<api::LogLevel>)),
    get("/audit", "The audit log.", many::<api::AuditRow>, |call| {
        Ok(Request::Audit(api::AuditRows { after: call.number("after")?, count: call.number("count")? }))
    })
    .role(Role::Admin)
    .query(&[
        parameter("after", "integer", "Rows after this one; the newest when absent."),
        parameter("count", "integer", "At most so many; 20 when absent."),
    ]),
    crate::events::LIVE,
    crate::queries::SEARCH,
    crate::queries::LIVE,
    crate::queries::FORGET,
    crate::queries::TOP,
    crate::queries::OVER_TIME,
    get("/sessions", "One's own sessions; of admins, all.", many::<api::Session>, |_| {
        Ok(Request::SessionList)
    }),
    route("DELETE", "/sessions/{session}", "Ends a session.", many::<api::Session>, |call| {
        Ok(Request::SessionRevoke(api::SessionId { id: call.part(0) }))
    }),
    get("/session", "Who asks, and with which session.", one::<api::WhoAsks>, of::elsewhere),
    post(
        ("/session", Role::Viewer),
        "Logs in. The reply sets a cookie, which shows the session.",
        one::<api::WhoAsks>,
        of::elsewhere,
    )
    .body(Wanted::Json(one::<api::LogIn>))
    .with_secrets()
    .gives(&["Set-Cookie"])
    .for_strangers(),
    route(
        "PUT",
        "/session/password",
        "Changes one's own password, and ends all one's sessions but a new one, whose cookie the reply sets.",
        one::<api::WhoAsks>,
        of::elsewhere,
    )
    .body(Wanted::Json(one::<api::OwnPassword>))
    .with_secrets()
    .gives(&["Set-Cookie"]),
    route("DELETE", "/session", "Logs out.", one::<api::WhoAsks>, of::elsewhere)
        .with_secrets()
        .gives(&["Set-Cookie"]),
    post(
        ("/requests", Role::Viewer),
        "A request of the control socket, as commands make them.",
        nothing,
        |call| crate::json::parse(&call.body),
    )
    .body(Wanted::Json(one::<Request>)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_mean_the_same() {
        for (at, route) in all().enumerate() {
            let same = |other: &&Route| (other.method, other.path) == (route.method, route.path);
            assert_eq!(all().position(|other| same(&other)), Some(at), "{}", route.path);
            assert!(route.path.starts_with('/') && !route.path.ends_with('/'), "{}", route.path);
            assert!(route.method != "GET" || matches!(route.body, Wanted::Nothing), "{}", route.path);
        }
    }

    #[test]
    fn a_path_is_matched_part_by_part() {
        let route = all().find(|route| route.path == "/sets/{set}/members").expect("it is there");
        let parts =
            |path: &[&str]| route.parts(&path.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(parts(&["sets", "a/b", "members"]), Some(vec!["a/b".to_owned()]));
        assert_eq!(parts(&["sets", "", "members"]), None);
        assert_eq!(parts(&["sets", "a", "members", ""]), None);
        assert_eq!(parts(&["sets", "a"]), None);
    }
}
