//! Network devices in the place of addresses: what they have when the server starts.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use diagnostic::{Diagnostic, FileId, Problem, diagnostics};

use settings::{ControlPlace, DeviceFamilyWord, ListenDevice, Listener, Loaded, UnboundChannel};

/// Puts the addresses of network devices in the place of their names; how devices are known is
/// asked of the system.
///
/// # Errors
///
/// A device is not there, has no address, or has one that is listened on anyway.
pub fn look_up(loaded: &mut Loaded) -> Result<(), Vec<Diagnostic>> {
    let mut problems = Vec::new();
    if let Some(listeners) = &mut loaded.settings.startup.listen {
        *listeners = found(listeners, &addresses_of, &mut problems);
    }
    if problems.is_empty() { Ok(()) } else { Err(diagnostics(problems, &loaded.sources)) }
}

/// Returns the channel of `unbound-control` with the addresses of devices in the place of their
/// names.
///
/// # Errors
///
/// A device is not there or has no address, or clients would need no certificate and the address
/// can be reached from other machines.
pub fn channel(channel: &UnboundChannel) -> Result<UnboundChannel, String> {
    let mut places = Vec::new();
    for place in &channel.places {
        let ControlPlace::Device(name, port) = place else {
            places.push(place.clone());
            continue;
        };
        for mut address in addresses_of(name)? {
            address.set_port(*port);
            if channel.identity.is_none() && !address.ip().to_canonical().is_loopback() {
                return Err(format!(
                    "without certificates everybody who reaches {address} could give orders"
                ));
            }
            places.push(ControlPlace::Address(address));
        }
    }
    Ok(UnboundChannel { places, identity: channel.identity.clone() })
}

/// Looks for mistakes that [`channel`] would find at the start.
///
/// # Errors
///
/// Those of [`channel`].
pub fn check_channel(loaded: &Loaded) -> Result<(), Vec<Diagnostic>> {
    let found = channel(&loaded.settings.startup.unbound_channel);
    found.map(drop).map_err(|why| {
        let message = format!("{why} (setting control.unbound.listen)");
        diagnostics(vec![Problem::of_file(FileId(0), message)], &loaded.sources)
    })
}

/// Returns an address of a device of this machine.
///
/// # Errors
///
/// There is no such device, or it has no address.
pub fn first_address(name: &str) -> Result<IpAddr, String> {
    let found = addresses_of(name)?;
    found.first().map(SocketAddr::ip).ok_or_else(|| format!("the device \"{name}\" has no address"))
}

/// Returns the listeners that `written` stand for.
fn found(
    written: &[Listener],
    addresses_of: &dyn Fn(&str) -> Result<Vec<SocketAddr>, String>,
    problems: &mut Vec<Problem>,
) -> Vec<Listener> {
    let mut found: Vec<Listener> = Vec::new();
    for listener in written {
        let all = match &listener.device {
            Some(device) if !device.is_found => match of_device(listener, device, addresses_of) {
                Ok(all) => all,
                Err(why) => {
                    problems.push(
                        Problem::error(listener.at.span, why)
                            .expected("an address, or a device that has one"),
                    );
                    continue;
                }
            },
            _ => vec![listener.clone()],
        };
        for one in all {
            match found.iter().find(|other| one.clashes(other)) {
                Some(first) => {
                    let message = format!("\"{}\" is listened on twice", one.at.value);
                    let problem = Problem::error(one.at.span, message);
                    problems.push(problem.hint_at("the first time is on ", first.at.span, ""));
                }
                None => found.push(one),
            }
        }
    }
    found
}

/// Returns a listener for each address of a device.
fn of_device(
    listener: &Listener,
    device: &ListenDevice,
    addresses_of: &dyn Fn(&str) -> Result<Vec<SocketAddr>, String>,
) -> Result<Vec<Listener>, String> {
    let mut addresses = addresses_of(&device.name)?;
    addresses.retain(|address| match device.family {
        DeviceFamilyWord::Any => true,
        DeviceFamilyWord::Ipv4 => address.is_ipv4(),
        DeviceFamilyWord::Ipv6 => address.is_ipv6(),
    });
    if addresses.is_empty() {
        return Err(format!("the device \"{}\" has no address of {}", device.name, device.family.word()));
    }
    let at_address = |mut address: SocketAddr| {
        let mut one = listener.clone();
        address.set_port(listener.at.value.port());
        one.at.value = address;
        one.device = Some(ListenDevice { is_found: true, ..device.clone() });
        one
    };
    Ok(addresses.into_iter().map(at_address).collect())
}

/// Returns the addresses of this machine.
///
/// # Errors
///
/// The system does not say which they are.
pub fn own_addresses() -> std::io::Result<Vec<IpAddr>> {
    Ok(xdp::addresses()?.into_iter().map(|(address, _)| address).collect())
}

/// Returns the addresses of a device of this machine, with port 0.
fn addresses_of(name: &str) -> Result<Vec<SocketAddr>, String> {
    let Some(index) = listen::interface_index(name) else {
        return Err(format!("there is no device \"{name}\" on this machine"));
    };
    let all = xdp::addresses().map_err(|error| format!("addresses of \"{name}\" cannot be read: {error}"))?;
    let own = all.into_iter().filter(|(_, at)| *at == index);
    let found: Vec<SocketAddr> = own.map(|(address, _)| scoped(address, index)).collect();
    if found.is_empty() { Err(format!("the device \"{name}\" has no address")) } else { Ok(found) }
}

/// Returns an address; one that is known on its link alone with the device.
fn scoped(address: IpAddr, index: u32) -> SocketAddr {
    match address {
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            SocketAddrV6::new(address, 0, 0, index).into()
        }
        address => SocketAddr::new(address, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use environment::Memory;
    use settings::load::load_text;

    /// A device with these addresses, and one without any.
    fn machine(name: &str) -> Result<Vec<SocketAddr>, String> {
        match name {
            "lan0" => {
                Ok(["192.0.2.1", "2001:db8::1"].map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).into())
            }
            other => Err(format!("there is no device \"{other}\" on this machine")),
        }
    }

    fn check(listen: &str, expect: &[&str], mistakes: &[&str]) {
        let text = format!("listen: {listen}\n");
        let loaded = load_text("x".as_ref(), &text, &Memory::default()).expect("right");
        let mut problems = Vec::new();
        let listeners = loaded.settings.startup.listen.clone().unwrap_or_default();
        let all = found(&listeners, &machine, &mut problems);
        let places: Vec<String> = all.iter().map(|listener| listener.at.value.to_string()).collect();
        assert_eq!(places, expect, "{listen}");
        let found: Vec<String> =
            diagnostics(problems, &loaded.sources).iter().map(Diagnostic::line).collect();
        assert_eq!(found.len(), mistakes.len(), "{found:?}");
        for (found, part) in found.iter().zip(mistakes) {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn a_device_of_the_control_channel_that_is_not_there_is_a_mistake() {
        let check = |place: &str| {
            let text = format!("control: {{unbound: {{listen: [\"{place}\"], certificates: false}}}}\n");
            let loaded = load_text("x".as_ref(), &text, &Memory::default()).expect("right");
            check_channel(&loaded).map_err(|found| found.iter().map(Diagnostic::line).collect::<String>())
        };
        assert_eq!(check("/run/x.sock"), Ok(()));
        assert_eq!(check("lo@8953"), Ok(()));
        let why = check("none0@8953").expect_err("there is no such device");
        assert!(why.contains("\"none0\"") && why.contains("control.unbound.listen"), "{why}");
    }

    #[test]
    fn a_device_is_all_its_addresses() {
        check("lan0", &["192.0.2.1:53", "[2001:db8::1]:53"], &[]);
        check("[lan0@853, 127.0.0.1]", &["192.0.2.1:853", "[2001:db8::1]:853", "127.0.0.1:53"], &[]);
        check("[{at: lan0, family: ipv6}]", &["[2001:db8::1]:53"], &[]);
        check("[lan0, 192.0.2.1@853]", &["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.1:853"], &[]);
    }

    #[test]
    fn a_device_that_is_not_there_or_listened_on_twice_is_a_mistake_with_its_line() {
        check("[nodev0]", &[], &["x:1:10: error: there is no device \"nodev0\""]);
        check(
            "[lan0, 192.0.2.1]",
            &["192.0.2.1:53", "[2001:db8::1]:53"],
            &["x:1:16: error: \"192.0.2.1:53\" is listened on twice"],
        );
    }

    #[test]
    fn other_addresses_of_a_device_take_no_restart_to_be_the_same_configuration() {
        let loaded = load_text("x".as_ref(), "listen: [lan0]\n", &Memory::default()).expect("right");
        let mut running = loaded.settings.startup.clone();
        running.listen = running.listen.map(|listeners| found(&listeners, &machine, &mut Vec::new()));
        assert_eq!(running.listen.as_ref().map(Vec::len), Some(2));
        assert_eq!(settings::diff(&running, &loaded.settings.startup), []);
    }
}
