//! `gannet certificate`: a certificate to try things with.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use crate::cli::CertificateArgs;
use crate::out;

/// A clock that is behind ours should not make it invalid.
const EARLIER: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Runs `gannet certificate`: makes a key and a certificate that it signed itself.
pub fn run(args: &CertificateArgs) -> ExitCode {
    out::told(make(args))
}

fn make(args: &CertificateArgs) -> Result<String, String> {
    let names = if args.names.is_empty() {
        ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec()
    } else {
        args.names.clone()
    };
    let (certificate, key) = self_signed(&names, args.days)
        .map_err(|error| format!("no certificate for {}: {error}", names.join(", ")))?;
    let (certificate_file, key_file) = (args.to.join("certificate.pem"), args.to.join("key.pem"));
    let write = |path: &Path, text: &str, mode: u32| write_new(path, text.as_bytes(), mode, args.force);
    make_folder(&args.to)?;
    // The key first: a key without a certificate is no use to anybody, the other way round it looks
    // complete.
    write(&key_file, &key, 0o600)?;
    write(&certificate_file, &certificate, 0o644)?;
    Ok(format!(
        "# A certificate for {}, which nobody but you will trust. To use it:\n\
         tls:\n  certificates:\n    - {{certificate: \"{}\", key: \"{}\"}}\n",
        names.join(", "),
        certificate_file.display(),
        key_file.display()
    ))
}

/// Makes a folder, unless it is there.
pub(crate) fn make_folder(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))
}

/// Writes a file that is not there yet, or that may be replaced.
pub(crate) fn write_new(path: &Path, octets: &[u8], mode: u32, replaces: bool) -> Result<(), String> {
    write(path, octets, mode, replaces).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{} exists already; --force replaces it", path.display()),
        _ => format!("cannot write {}: {error}", path.display()),
    })
}

/// Returns a certificate for some names and its key, both in PEM form.
fn self_signed(names: &[String], days: u32) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    if let Some(first) = names.first() {
        params.distinguished_name.push(DnType::CommonName, first.as_str());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(EARLIER);
    params.not_after = epoch + now + DAY * days;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn write(path: &Path, octets: &[u8], mode: u32, replaces: bool) -> io::Result<()> {
    if replaces {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(octets)
}
