//! Who receives messages as dnstap: settings to a plan.

use std::path::Path;

use diagnostic::Problem;
use dnstap::Envelope;
use environment::Environment;
use plan::dnstap::{Dnstap, Receiver};
use plan::tls::{ClientTls, Proof, tls_name};
use settings::{DnstapSettings, ReceiverPlace, Settings};

use super::tls;
use super::upstreams::roots;

/// Where Linux says what the machine is called.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// The word for that name.
const OF_HOST: &str = "hostname";
/// The word for the program's own name and version.
const OF_PROGRAM: &str = "gannet";

/// Returns the plan; `None` if nothing is sent, or there is a mistake.
pub(super) fn plan(
    settings: &Settings,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<Dnstap> {
    let settings = settings.dnstap.as_ref()?;
    let to = match &settings.to.value {
        ReceiverPlace::Unix(path) => Receiver::Unix(path.clone()),
        ReceiverPlace::Tcp(address) => Receiver::Tcp(*address),
        ReceiverPlace::Tls(address) => {
            let name =
                settings.tls_name.as_ref().map_or_else(|| address.ip().to_string(), |at| at.value.clone());
            Receiver::Tls(*address, Box::new(client_tls(settings, &name, environment, problems)?))
        }
    };
    let version = settings.version.as_deref().map(|text| match text {
        OF_PROGRAM => concat!("gannet ", env!("CARGO_PKG_VERSION")),
        text => text,
    });
    let envelope = Envelope {
        identity: identity(settings, environment, problems),
        version: version.unwrap_or("").into(),
    };
    let (is_bidirectional, kinds, one_of) = (settings.is_bidirectional, settings.kinds, settings.one_of);
    Some(Dnstap { to, is_bidirectional, envelope, kinds, one_of })
}

/// Returns who messages say that they are from.
fn identity(
    settings: &DnstapSettings,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Vec<u8> {
    let Some(identity) = &settings.identity else { return Vec::new() };
    if identity.value != OF_HOST {
        return identity.value.clone().into_bytes();
    }
    let name = environment.read(Path::new(HOST_NAME)).unwrap_or_default().trim_ascii().to_vec();
    if name.is_empty() {
        let problem = Problem::warning(identity.span, "this machine does not say its name");
        problems.push(problem.hint("write it in place of \"hostname\""));
    }
    name
}

fn client_tls(
    settings: &DnstapSettings,
    name: &str,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Option<ClientTls> {
    let identity = match &settings.certificate {
        Some(certificate) => Some(tls::client_identity(certificate, environment, problems)?),
        None => None,
    };
    let proof = if settings.verify {
        Proof::Authorities(roots(&settings.roots, environment, problems)?)
    } else {
        Proof::None
    };
    // Settings have nothing else.
    let name = tls_name(name)?;
    let (certificates, protocols) = (Vec::new(), Vec::new());
    Some(ClientTls { name, proof, certificates, identity, protocols, early_data: false, sends_name: true })
}
