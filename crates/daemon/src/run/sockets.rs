//! Opens the listening sockets: those of the configuration, or 127.0.0.1 and ::1 on the best port
//! there is.

use std::io;
use std::net::{SocketAddr, TcpListener};

use config::Listening;
use control::api::MissingListener;
use listen::{BindError, FileOwner, Kind, LocalFile, Sockets};
use plan::listeners::Plan;
use settings::{ApiListen, LocalSocket, Origin};

use crate::port_taken::{Obstacle, PortOwner};
use crate::sys;

/// The open sockets, and why they are not on port 53 if that was wanted.
pub(crate) struct Opened {
    pub(crate) sockets: Sockets,
    /// Set when the server had to go elsewhere.
    pub(crate) why_not_53: Option<String>,
}

/// Opens what `wanted` lists. If nobody has configured that, what the service manager opened comes
/// first, and then what is to be tried if port 53 may not be had.
pub(crate) fn open(wanted: &Listening, workers: usize) -> Result<Opened, Obstacle> {
    let activated = listen::activation();
    let Some(otherwise) = &wanted.otherwise else {
        let sockets = listen::bind(&wanted.plan, workers, activated).map_err(|error| obstacle(&error))?;
        return Ok(Opened { sockets, why_not_53: None });
    };
    if !activated.is_empty() {
        let plan = Plan { listeners: Vec::new(), ..wanted.plan.clone() };
        let sockets = listen::bind(&plan, workers, activated).map_err(|error| obstacle(&error))?;
        return Ok(Opened { sockets, why_not_53: None });
    }
    match open_here(&wanted.plan, workers) {
        Ok(sockets) => Ok(Opened { sockets, why_not_53: None }),
        Err(error) => {
            let why_not_53 = Some(obstacle(&error).reason());
            let sockets = open_here(otherwise, workers).map_err(|error| obstacle(&error))?;
            Ok(Opened { sockets, why_not_53 })
        }
    }
}

/// Opens loopback addresses; a machine without IPv6 is still served.
fn open_here(plan: &Plan, workers: usize) -> Result<Sockets, BindError> {
    match listen::bind(plan, workers, Vec::new()) {
        Err(error) if error.address.is_ipv6() && is_without_family(&error.source) => {
            let mut plan = plan.clone();
            plan.listeners.retain(|listener| listener.address.is_ipv4());
            listen::bind(&plan, workers, Vec::new())
        }
        opened => opened,
    }
}

/// Returns the number of the group that may use the control socket.
pub(crate) fn group(name: Option<&str>) -> Result<Option<u32>, String> {
    let Some(name) = name else { return Ok(None) };
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    let failed = |why: String| format!("{why} (setting control.socket-group)");
    let found = sys::find_group(name)
        .map_err(|error| failed(format!("the group \"{name}\" cannot be looked up: {error}")))?;
    found.map(Some).ok_or_else(|| failed(format!("there is no group \"{name}\"")))
}

/// Opens the sockets where operators come in: for what, and by which setting.
pub(crate) fn open_for_operators(
    wanted: &[SocketAddr],
    (what, setting): (&str, &str),
) -> Result<Vec<TcpListener>, String> {
    let open = |address: &SocketAddr| {
        TcpListener::bind(address)
            .map_err(|error| format!("cannot listen on {address} for {what} (setting {setting}): {error}"))
    };
    wanted.iter().map(open).collect()
}

/// Where the API is open, and where it could not be opened.
pub(crate) struct OpenedApi {
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) missing: Vec<MissingListener>,
}

/// Returns where the API is to be opened. In the place of Unbound nobody expects one more port.
pub(crate) fn api_addresses<'s>(origin: &Origin, wanted: &'s ApiListen) -> &'s [SocketAddr] {
    match (origin, wanted.is_said) {
        (Origin::Unbound(_), false) => &[],
        _ => &wanted.at,
    }
}

/// Opens the API. What the operator did not write is left out if it cannot be had: a server answers
/// its clients before it answers its operator.
pub(crate) fn open_for_api(wanted: &[SocketAddr], is_said: bool) -> Result<OpenedApi, String> {
    if is_said {
        let listeners = open_for_operators(wanted, ("the API", "control.listen"))?;
        return Ok(OpenedApi { listeners, missing: Vec::new() });
    }
    let mut opened = OpenedApi { listeners: Vec::new(), missing: Vec::new() };
    for address in wanted {
        match TcpListener::bind(address) {
            Ok(listener) => opened.listeners.push(listener),
            // A machine without IPv6 lacks nothing.
            Err(error) if address.is_ipv6() && is_without_family(&error) => {}
            Err(error) => {
                opened.missing.push(MissingListener { at: address.to_string(), why: error.to_string() });
            }
        }
    }
    Ok(opened)
}

/// Opens the Unix sockets of the configuration; their files last as long as what is returned.
pub(crate) fn open_local(wanted: &[LocalSocket], sockets: &mut Sockets) -> Result<Vec<LocalFile>, String> {
    let open = |(number, socket): (u16, &LocalSocket)| {
        let plan = &socket.plan;
        let at = plan.path.display().to_string();
        let failed = |why: String| format!("cannot listen on {at}: {why}");
        let number_of = |name: &str, find: fn(&str) -> io::Result<Option<u32>>, what: &str| {
            if let Ok(number) = name.parse() {
                return Ok(number);
            }
            let found = find(name).map_err(|error| failed(format!("{what} \"{name}\": {error}")))?;
            found.ok_or_else(|| failed(format!("there is no {what} \"{name}\"")))
        };
        let by_name = |name: &str| sys::find_user(name).map(|user| user.map(|user| user.uid));
        let user = plan.owner.as_deref().map(|name| number_of(name, by_name, "user")).transpose()?;
        let group =
            plan.group.as_deref().map(|name| number_of(name, sys::find_group, "group")).transpose()?;
        sockets.open_local(plan, FileOwner { user, group }, number).map_err(|error| failed(error.to_string()))
    };
    (0..).zip(wanted).map(open).collect()
}

fn is_without_family(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

fn obstacle(error: &BindError) -> Obstacle {
    Obstacle {
        at: error.address,
        transport: match error.kind {
            Kind::Datagrams => "udp",
            Kind::Connections => "tcp",
        },
        kind: error.source.kind(),
        lacks_family: error.source.raw_os_error() == Some(libc::EAFNOSUPPORT),
        message: error.source.to_string(),
        port_owner: error
            .port_owner
            .as_ref()
            .map(|port_owner| PortOwner { pid: port_owner.process, program: port_owner.program.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_ipv6_misses_no_address_of_the_default() {
        // What no machine has answers as ::1 does where there is no IPv6.
        let wanted =
            ["[2001:db8::1]:0", "192.0.2.1:0", "127.0.0.1:0"].map(|at| at.parse().expect("an address"));
        let opened = open_for_api(&wanted, false).expect("the default is never in the way");
        assert_eq!(opened.listeners.len(), 1);
        let missing: Vec<&str> = opened.missing.iter().map(|it| it.at.as_str()).collect();
        assert_eq!(missing, ["192.0.2.1:0"]);
        assert!(open_for_api(&wanted, true).is_err(), "what is written is demanded");
    }
}
