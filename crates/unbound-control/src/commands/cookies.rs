//! Secrets of DNS cookies, in their file: the one in use, and one that is accepted besides (RFC
//! 9018 §5).

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{Call, Failure, Outcome};

/// What the file has.
struct CookieFile {
    path: PathBuf,
    /// The secret in use and the one beside it, in hexadecimal.
    secrets: Vec<String>,
}

impl CookieFile {
    fn open(call: &Call<'_>) -> Result<Self, Failure> {
        let loaded = call.context.operator.loaded();
        let cookies = &loaded.settings.cookies;
        let Some(path) = cookies.file.clone() else {
            return Err(Failure::Said("error: no cookie secret file configured".to_owned()));
        };
        if !cookies.enabled {
            return Err(Failure::Error("\"answer-cookie\" is off".to_owned()));
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::Error(format!("cannot read \"{}\": {error}", path.display()))),
        };
        let secrets = text.split_whitespace().map(str::to_owned).collect();
        Ok(Self { path, secrets })
    }

    /// Writes the file anew, and has the server use it.
    fn keep(self, call: &mut Call<'_>) -> Outcome {
        let lines: String = self.secrets.iter().map(|secret| format!("{secret}\n")).collect();
        write(&self.path, &lines)
            .map_err(|error| Failure::Error(format!("cannot write \"{}\": {error}", self.path.display())))?;
        call.context.operator.read_secrets_again()?;
        call.ok()
    }
}

/// Writes a file that nobody else may read, whole or not at all where the directory lets us.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let open =
        |path: &Path| fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    match open(Path::new(&beside)) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, path)?;
            // What is acknowledged must be found by its name after a power cut, too.
            path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => open(path)?.write_all(text.as_bytes()),
        Err(error) => Err(error),
    }
}

/// Adds a secret: the first is used, a further one is accepted, in place of the one that was.
pub(super) fn add(call: &mut Call<'_>) -> Outcome {
    let mut file = CookieFile::open(call)?;
    let secret = call.argument.to_owned();
    if secret.is_empty() {
        return Err(Failure::Said("error: missing argument (cookie_secret)".to_owned()));
    }
    if secret.len() != 32 || !secret.bytes().all(|octet| octet.is_ascii_hexdigit()) {
        return Err(Failure::Error("invalid cookie secret: expected 32 hexadecimal digits".to_owned()));
    }
    file.secrets.truncate(1);
    file.secrets.push(secret);
    file.keep(call)
}

/// Uses the secret that was accepted besides, and accepts the other one.
pub(super) fn activate(call: &mut Call<'_>) -> Outcome {
    let mut file = CookieFile::open(call)?;
    if file.secrets.len() < 2 {
        return Err(Failure::Said("error: no staging cookie secret to activate".to_owned()));
    }
    file.secrets.swap(0, 1);
    file.keep(call)
}

/// Accepts the secret in use alone.
pub(super) fn drop_staging(call: &mut Call<'_>) -> Outcome {
    let mut file = CookieFile::open(call)?;
    if file.secrets.len() < 2 {
        return Err(Failure::Said("error: can not drop the currently active cookie secret".to_owned()));
    }
    file.secrets.truncate(1);
    file.keep(call)
}

/// Prints the secrets; nothing where no file is configured, or it has none.
pub(super) fn print(call: &mut Call<'_>) -> Outcome {
    if call.context.operator.loaded().settings.cookies.file.is_none() {
        return Ok(());
    }
    let file = CookieFile::open(call)?;
    for (secret, word) in file.secrets.iter().zip(["active ", "staging"]) {
        call.line(format_args!("{word}: {secret}"))?;
    }
    Ok(())
}
