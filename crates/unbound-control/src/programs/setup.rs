//! `unbound-control-setup`: makes the keys and certificates of the control channel.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

use super::arguments::Arguments;
use super::{DIRECTORY, log, say};

const NAME: &str = "unbound-control-setup";
/// How long certificates last.
const LIFE: Duration = Duration::from_secs(7200 * 86_400);
/// A clock that is behind ours should not make them invalid.
const EARLIER: Duration = Duration::from_secs(3600);

pub(super) fn run(arguments: Vec<String>) -> ExitCode {
    let arguments = match Arguments::read(arguments, "d", "rh") {
        Ok(arguments) if !arguments.has('h') && arguments.rest.is_empty() => arguments,
        _ => return usage(),
    };
    let directory = Path::new(arguments.value('d').unwrap_or(DIRECTORY));
    say(format_args!("setup in directory {}", directory.display()));
    match make(directory, arguments.has('r')) {
        Ok(()) => {
            say("Setup success. Certificates created. Enable in unbound.conf file to use");
            ExitCode::SUCCESS
        }
        Err(why) => {
            log(NAME, "fatal error", why);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    say("usage: unbound-control-setup OPTIONS");
    say("Makes the keys and certificates with which server and unbound-control know each other.");
    say("  -d DIR\twhere they are (default /etc/unbound)");
    say("  -r\t\tmake the certificates anew; keys that are there stay");
    say("  -h\t\tprint this");
    ExitCode::FAILURE
}

fn make(directory: &Path, makes_anew: bool) -> Result<(), String> {
    let server_key = key(directory, "unbound_server.key")?;
    let control_key = key(directory, "unbound_control.key")?;
    let [server, control] = ["unbound_server.pem", "unbound_control.pem"].map(|name| directory.join(name));
    if server.exists() && control.exists() && !makes_anew {
        return Ok(());
    }
    let mut own = parameters("unbound")?;
    own.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let mut of_client = parameters("unbound-control")?;
    of_client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let failed = |error: rcgen::Error| error.to_string();
    let certificate = own.self_signed(&server_key).map_err(failed)?;
    let issuer = Issuer::from_params(&own, &server_key);
    let client = of_client.signed_by(&control_key, &issuer).map_err(failed)?;
    write(&server, &certificate.pem())?;
    write(&control, &client.pem())
}

fn parameters(name: &str) -> Result<CertificateParams, String> {
    let mut parameters = CertificateParams::new(vec![name.to_owned()]).map_err(|error| error.to_string())?;
    parameters.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + now.saturating_sub(EARLIER);
    parameters.not_after = epoch + now + LIFE;
    Ok(parameters)
}

/// Returns the key in a file, which is made if it is not there.
fn key(directory: &Path, name: &str) -> Result<KeyPair, String> {
    let path = directory.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => KeyPair::from_pem(&text).map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            say(format_args!("generating {name}"));
            let key = KeyPair::generate().map_err(|error| error.to_string())?;
            write(&path, &key.serialize_pem())?;
            Ok(key)
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Writes a file that its owner and group may read.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let open = || {
        let _ = std::fs::remove_file(path);
        OpenOptions::new().write(true).create_new(true).mode(0o640).open(path)?.write_all(text.as_bytes())
    };
    open().map_err(|error: io::Error| format!("{}: {error}", path.display()))
}
