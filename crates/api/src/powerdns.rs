//! A part of the zone API of PowerDNS, for programs that speak it: octoDNS, external-dns, ACME
//! clients, Terraform.
//!
//! What such a program may leave out, and what it may send without effect, stands in the manual.

use control::api::{self, Request, Response, RrsetAction, ZoneWhat};
use serde::{Deserialize, Serialize};
use server::Role;
use utoipa::ToSchema;
use wire::{NameBuf, Rtype};
use zone::update::read_data;

use crate::body::Body;
use crate::call::Call;
use crate::json;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::resources::{self as of, as_json, unexpected};
use crate::route::{Parameter, Route, Wanted, get, parameter, post, route};
use crate::shapes::{many, nothing, one, records};

/// Below which all of it is.
pub(crate) const BASE: &str = "/api/v1/servers";
/// Where zones are.
const ZONES: &str = "/api/v1/servers/localhost/zones";
/// The version of PowerDNS whose API this is a part of: programs ask for it to know what they may
/// use.
const LIKE_VERSION: &str = concat!("4.9.0-gannet-", env!("CARGO_PKG_VERSION"));
/// Types that signers make.
const SIGNERS: [&str; 4] = ["RRSIG", "NSEC", "NSEC3", "NSEC3PARAM"];
/// Octets of a zone that are sent at once.
const PART_OCTETS: usize = 64 << 10;

/// A server.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PdnsServer {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'static str,
    daemon_type: &'static str,
    /// The version of PowerDNS whose API this is a part of, and ours.
    version: &'static str,
    url: &'static str,
    zones_url: &'static str,
}

/// A setting of PowerDNS.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PdnsSetting {
    name: String,
    value: String,
}

/// A zone.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PdnsZone {
    id: String,
    name: String,
    #[serde(rename = "type")]
    of_type: &'static str,
    url: String,
    /// `Master`, or `Slave` if it comes from other servers.
    kind: &'static str,
    serial: u32,
    edited_serial: u32,
    masters: Vec<String>,
    /// Whether this server signs it is not said here: always false.
    dnssec: bool,
    account: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rrsets: Option<Vec<PdnsRrset>>,
}

/// An RRset, and what becomes of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PdnsRrset {
    /// The owner, with a dot at the end.
    name: String,
    #[serde(rename = "type")]
    rtype: String,
    /// `REPLACE`, `DELETE`, `EXTEND` or `PRUNE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changetype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
    #[serde(default)]
    records: Vec<PdnsRecord>,
    /// Comments are not kept: only an empty list may be sent.
    #[serde(default)]
    comments: Vec<serde_json::Value>,
}

/// A record.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PdnsRecord {
    content: String,
    /// Disabled records are not kept: only `false` may be sent.
    #[serde(default)]
    disabled: bool,
}

/// RRsets to change: all of them, or none.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub(crate) struct PdnsPatch {
    rrsets: Vec<PdnsRrset>,
}

/// A zone to serve.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub(crate) struct PdnsNewZone {
    name: String,
    /// `Native`, `Master` or `Primary`; `Slave` or `Secondary` with `masters`.
    kind: Option<String>,
    /// The primaries of a secondary zone.
    #[serde(default)]
    masters: Vec<String>,
    /// The name servers, if `rrsets` has no NS RRset for the zone.
    #[serde(default)]
    nameservers: Vec<String>,
    #[serde(default)]
    rrsets: Vec<PdnsRrset>,
}

const NAME: Parameter = parameter("zone", "string", "The zone of this name alone.");
const DNSSEC: Parameter = parameter("dnssec", "boolean", "Without effect.");

/// The rows.
pub(crate) const ROUTES: &[Route] = &[
    get("/servers", "PowerDNS: the servers, which is this one.", many::<PdnsServer>, |_| Ok(Request::Status))
        .replies(|_, _| Ok(as_json(&[&SERVER]))),
    get("/servers/localhost", "PowerDNS: this server.", one::<PdnsServer>, |_| Ok(Request::Status))
        .replies(|_, _| Ok(as_json(&SERVER))),
    get(
        "/servers/localhost/config",
        "PowerDNS: its settings, of which this server has none.",
        many::<PdnsSetting>,
        |_| Ok(Request::Status),
    )
    .replies(|_, _| Ok(as_json(&[(); 0]))),
    get("/servers/localhost/zones", "PowerDNS: the zones.", many::<PdnsZone>, |_| {
        of::zone(ZoneWhat::Status, None)
    })
    .query(&[NAME, DNSSEC])
    .replies(zones),
    post(
        ("/servers/localhost/zones", Role::Operator),
        "PowerDNS: serves one more zone.",
        one::<PdnsZone>,
        create,
    )
    .query(&[parameter("rrsets", "boolean", "Whether the reply has the RRsets; true when absent.")])
    .body(Wanted::Json(one::<PdnsNewZone>))
    .statuses(&[201])
    .replies(created),
    get("/servers/localhost/zones/{zone}", "PowerDNS: a zone with its RRsets.", one::<PdnsZone>, whole)
        .query(&[
            parameter("rrsets", "boolean", "Whether the reply has the RRsets; true when absent."),
            parameter("rrset_name", "string", "RRsets of this owner alone."),
            parameter("rrset_type", "string", "RRsets of this type alone."),
        ])
        .replies(shown),
    route("PATCH", "/servers/localhost/zones/{zone}", "PowerDNS: changes RRsets.", nothing, patch)
        .role(Role::Operator)
        .body(Wanted::Json(one::<PdnsPatch>))
        .statuses(&[204])
        .replies(|_, _| Ok(Reply::nothing(204))),
    route(
        "DELETE",
        "/servers/localhost/zones/{zone}",
        "PowerDNS: takes out a zone that was added.",
        nothing,
        |call| Ok(Request::ZoneRemove(api::ZoneNames { zones: vec![call.part(0)], tag: None })),
    )
    .role(Role::Operator)
    .statuses(&[204])
    .replies(removed),
    get("/servers/localhost/zones/{zone}/export", "PowerDNS: the zone as a master file.", records, |call| {
        of::zone(ZoneWhat::Print, Some(call.part(0)))
    }),
    route(
        "PUT",
        "/servers/localhost/zones/{zone}/notify",
        "PowerDNS: notifies the secondaries.",
        nothing,
        |call| of::zone(ZoneWhat::Notify, Some(call.part(0))),
    )
    .role(Role::Operator)
    .replies(|_, _| Ok(done("Notification queued"))),
    route(
        "PUT",
        "/servers/localhost/zones/{zone}/axfr-retrieve",
        "PowerDNS: transfers the zone from its primaries.",
        nothing,
        |call| of::zone(ZoneWhat::Retransfer, Some(call.part(0))),
    )
    .role(Role::Operator)
    .replies(|_, _| Ok(done("Added retrieval request"))),
];

const SERVER: PdnsServer = PdnsServer {
    kind: "Server",
    id: "localhost",
    daemon_type: "authoritative",
    version: LIKE_VERSION,
    url: "/api/v1/servers/localhost",
    zones_url: "/api/v1/servers/localhost/zones{/zone}",
};

fn done(result: &str) -> Reply {
    as_json(&serde_json::json!({ "result": result }))
}

/// Returns a name as PowerDNS writes it: in lower case, with a dot at the end.
fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    if name.ends_with('.') { name } else { name + "." }
}

/// Returns whether two texts are the same name.
fn is_same(a: &str, b: &str) -> bool {
    canonical(a) == canonical(b)
}

fn zone_of(zone: &api::Zone, rrsets: Option<Vec<PdnsRrset>>) -> PdnsZone {
    let name = canonical(&zone.name);
    let serial = zone.serial.unwrap_or(0);
    PdnsZone {
        id: name.clone(),
        url: format!("{ZONES}/{name}"),
        name,
        of_type: "Zone",
        kind: if zone.role == "primary" { "Master" } else { "Slave" },
        serial,
        edited_serial: serial,
        masters: Vec::new(),
        dnssec: false,
        account: "",
        rrsets,
    }
}

fn rrset_of(rrset: api::Rrset) -> PdnsRrset {
    let record = |content| PdnsRecord { content, disabled: false };
    PdnsRrset {
        name: canonical(&rrset.name),
        rtype: rrset.rtype,
        changetype: None,
        ttl: Some(rrset.ttl),
        records: rrset.records.into_iter().map(record).collect(),
        comments: Vec::new(),
    }
}

/// Answers with all zones, without their RRsets.
fn zones(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::Zones(all) = response else { return unexpected(&response) };
    let wanted = call.asked("zone");
    let all = all.iter().filter(|zone| wanted.is_none_or(|wanted| is_same(wanted, &zone.name)));
    Ok(as_json(&all.map(|zone| zone_of(zone, None)).collect::<Vec<_>>()))
}

/// Asks for a zone.
fn whole(call: &Call) -> Result<Request, Problem> {
    if call.asked("rrsets") == Some("false") {
        return of::zone(ZoneWhat::Status, Some(call.part(0)));
    }
    let (name, rtype) = (call.asked("rrset_name"), call.asked("rrset_type"));
    Ok(Request::Rrsets(api::RrsetsOf {
        zone: call.part(0),
        name: name.map(str::to_owned),
        rtype: rtype.map(str::to_owned),
        // All of them are read while the client takes them.
        count: wants_all(call).then_some(1),
        ..api::RrsetsOf::default()
    }))
}

/// Returns whether all RRsets of a zone are wanted.
fn wants_all(call: &Call) -> bool {
    call.asked("rrset_name").is_none() && call.asked("rrset_type").is_none()
}

/// Answers with a zone.
fn shown(call: &Call, response: Response) -> Result<Reply, Problem> {
    match response {
        Response::Zones(zones) => {
            let zone = zones.first().ok_or_else(|| Problem::new(404, "there is no such zone"))?;
            Ok(as_json(&zone_of(zone, None)))
        }
        Response::Rrsets(found) if wants_all(call) => streamed(call, &found.zone),
        Response::Rrsets(found) => Ok(as_json(&with_rrsets(call, found)?)),
        other => unexpected(&other),
    }
}

/// Answers with a zone and all of its RRsets, however many there are.
fn streamed(call: &Call, name: &str) -> Result<Reply, Problem> {
    let (zone, serial, rrsets) = call.operator.rrsets_all(name)?;
    let found = api::Rrsets { zone, serial, ..api::Rrsets::default() };
    let head = api::to_json(&with_rrsets(call, found)?);
    // The RRsets are the last of it, and it has none yet.
    let (before, after) = head.rsplit_once("[]").unwrap_or((&head, ""));
    let (before, after) = (format!("{before}["), format!("]{after}"));
    let mut rrsets = rrsets.filter(is_of_no_signer).map(rrset_of).peekable();
    let mut is_first = true;
    let parts = std::iter::from_fn(move || {
        rrsets.peek()?;
        let mut part = String::new();
        while part.len() < PART_OCTETS
            && let Some(rrset) = rrsets.next()
        {
            part += if std::mem::take(&mut is_first) { "" } else { "," };
            part += api::to_json(&rrset).trim_end();
        }
        Some(part)
    });
    let parts = std::iter::once(before).chain(parts).chain(std::iter::once(after));
    Ok(Reply::stream("application/json", Body::in_parts(parts)))
}

fn is_of_no_signer(rrset: &api::Rrset) -> bool {
    !SIGNERS.contains(&rrset.rtype.as_str())
}

fn with_rrsets(call: &Call, found: api::Rrsets) -> Result<PdnsZone, Problem> {
    let zones = call.operator.zone_status(Some(&found.zone)).unwrap_or_default();
    // A zone of a directory has no status of its own.
    let plain = || api::Zone { name: found.zone.clone(), role: "primary".to_owned(), ..api::Zone::default() };
    let zone = api::Zone { serial: Some(found.serial), ..zones.into_iter().next().unwrap_or_else(plain) };
    let rrsets = found.rrsets.into_iter().filter(is_of_no_signer);
    Ok(zone_of(&zone, Some(rrsets.map(rrset_of).collect())))
}

/// Returns the data of the records of an RRset.
fn data_of(rrset: &PdnsRrset) -> Result<Vec<String>, Problem> {
    let about = format!("{} {}", rrset.name, rrset.rtype);
    if !rrset.comments.is_empty() {
        return Err(Problem::new(422, format!("{about}: comments are not kept")));
    }
    let data = rrset.records.iter().map(|record| match record.disabled {
        true => Err(Problem::new(422, format!("{about}: a disabled record is not kept"))),
        false => Ok(record.content.clone()),
    });
    data.collect()
}

/// Asks to change RRsets.
fn patch(call: &Call) -> Result<Request, Problem> {
    let PdnsPatch { rrsets } = json::parse(&call.body)?;
    let edit = |rrset: PdnsRrset| {
        let word = rrset.changetype.as_deref().unwrap_or("REPLACE");
        let mut records = data_of(&rrset)?;
        let action = match word.to_ascii_uppercase().as_str() {
            "REPLACE" => RrsetAction::Replace,
            "DELETE" => {
                records.clear();
                RrsetAction::Replace
            }
            "EXTEND" => RrsetAction::Extend,
            "PRUNE" => RrsetAction::Prune,
            _ => {
                let expected = "expected REPLACE, DELETE, EXTEND or PRUNE";
                return Err(Problem::new(422, format!("unknown changetype \"{word}\" ({expected})")));
            }
        };
        let PdnsRrset { name, rtype, ttl, .. } = rrset;
        Ok(api::RrsetEdit { name, rtype, action, ttl, records, tag: None })
    };
    let changes = rrsets.into_iter().map(edit).collect::<Result<_, _>>()?;
    Ok(Request::RrsetsChange(api::RrsetsChange { zone: call.part(0), changes }))
}

/// Asks to serve a zone.
fn create(call: &Call) -> Result<Request, Problem> {
    let new: PdnsNewZone = json::parse(&call.body)?;
    let kind = new.kind.as_deref().unwrap_or("Native").to_ascii_lowercase();
    match (kind.as_str(), new.masters.as_slice()) {
        ("slave" | "secondary", []) => Err(Problem::new(422, "a secondary zone needs masters")),
        ("slave" | "secondary", masters) => {
            // In quotation marks of YAML it is a text, whatever is in it.
            let quoted: Vec<String> = masters.iter().map(|text| format!("{text:?}")).collect();
            let options = format!("primaries: [{}]", quoted.join(", "));
            Ok(Request::ZoneAdd(api::ZoneAdd { zones: vec![new.name], options, records: None, tag: None }))
        }
        ("native" | "master" | "primary", []) => {
            let records = Some(first_records(&new)?);
            let options = String::new();
            Ok(Request::ZoneAdd(api::ZoneAdd { zones: vec![new.name], options, records, tag: None }))
        }
        ("native" | "master" | "primary", _) => {
            Err(Problem::new(422, format!("a zone of kind {kind} has no masters")))
        }
        _ => Err(Problem::new(422, format!("unknown kind \"{kind}\" (expected Native, Master or Slave)"))),
    }
}

/// Writes the first records of a zone as a master file: with a SOA if it brings none.
fn first_records(new: &PdnsNewZone) -> Result<String, Problem> {
    let apex = canonical(&new.name);
    let has = |rtype: &str| {
        new.rrsets.iter().any(|rrset| rrset.rtype.eq_ignore_ascii_case(rtype) && is_same(&rrset.name, &apex))
    };
    let mut text = String::new();
    if !has("SOA") {
        let of_rrsets = || {
            let ns = new.rrsets.iter().find(|rrset| rrset.rtype == "NS" && is_same(&rrset.name, &apex));
            ns.and_then(|ns| ns.records.first()).map(|record| record.content.as_str())
        };
        let primary = new.nameservers.first().map(String::as_str).or_else(of_rrsets).unwrap_or(&apex);
        let soa = format!("{} hostmaster.{apex} 1 10800 3600 604800 3600", canonical(primary));
        text += &line(&apex, &apex, (3600, "SOA"), &soa)?;
    }
    if !has("NS") {
        for server in &new.nameservers {
            text += &line(&apex, &apex, (3600, "NS"), server)?;
        }
    }
    for rrset in &new.rrsets {
        for content in data_of(rrset)? {
            text += &line(&apex, &rrset.name, (rrset.ttl.unwrap_or(3600), &rrset.rtype), &content)?;
        }
    }
    Ok(text)
}

/// Writes one record as a master file has it. Nothing of the client's stands there unread: what
/// means something else in a file is a name, or data.
fn line(apex: &str, name: &str, (ttl, rtype): (u32, &str), content: &str) -> Result<String, Problem> {
    let wrong = |why: String| Problem::new(422, format!("{name} {rtype}: {why}"));
    let read = |name| NameBuf::from_text(name).map_err(|error| wrong(format!("this is no name: {error}")));
    let owner = read(name)?;
    if !owner.as_name().is_at_or_below(read(apex)?.as_name()) {
        return Err(wrong("the name is not in the zone; names are in full".to_owned()));
    }
    let known: Rtype = rtype.parse().map_err(|_| wrong("there is no such type".to_owned()))?;
    let data = read_data(known, content).map_err(|(_, why)| wrong(format!("\"{content}\": {why}")))?;
    let data = wire::rdata::display(known, &data, 0..data.len());
    Ok(format!("{owner} {ttl} IN {known} {data}\n"))
}

/// Answers with a new zone.
fn created(call: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ZonesChanged(changed) = response else { return unexpected(&response) };
    if let Some(refused) = changed.refused.first() {
        return Err(Problem::new(409, refused.text.clone()));
    }
    let new: PdnsNewZone = json::parse(&call.body)?;
    let asked = api::RrsetsOf { zone: new.name.clone(), ..api::RrsetsOf::default() };
    let zone = match call.operator.rrsets(&asked) {
        Ok(found) if call.asked("rrsets") != Some("false") => with_rrsets(call, found)?,
        // A secondary has none before its first transfer.
        Ok(_) | Err(_) => {
            let zones = call.operator.zone_status(Some(&new.name))?;
            zone_of(zones.first().ok_or_else(|| Problem::new(404, "the zone is gone"))?, None)
        }
    };
    Ok(as_json(&zone).with_status(201))
}

/// Answers that a zone is gone.
fn removed(_: &Call, response: Response) -> Result<Reply, Problem> {
    let Response::ZonesChanged(changed) = response else { return unexpected(&response) };
    match changed.refused.first() {
        Some(refused) => Err(Problem::new(422, refused.text.clone())),
        None => Ok(Reply::nothing(204)),
    }
}
