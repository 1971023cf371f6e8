//! A server that is reached over the network: the requests of the control socket, over its HTTP
//! API.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use control::More;
use control::api::{Request, Response, to_json_line};
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::typestate::AgentScope;
use ureq::{Agent, AsSendBody};

use crate::cli::ServerArgs;

/// Where requests of the control socket go.
const PATH: &str = "/api/v1/requests";
/// The variable with the token.
const TOKEN: &str = "GANNET_TOKEN";
/// Octets of all responses to one request.
const RESPONSES_OCTETS_MAX: u64 = 256 << 20;
/// Octets of the response to a body.
const TEXT_OCTETS_MAX: u64 = 1 << 20;
/// Octets of an error that are read.
const ERROR_OCTETS_MAX: u64 = 64 << 10;

/// Sends `request` to a server and hands each response to `take`, which says whether there is
/// another one.
pub(super) fn ask_for_all(
    (url, args): (&str, &ServerArgs),
    request: &Request,
    patience: Duration,
    mut take: impl FnMut(Response) -> More,
) -> Result<(), String> {
    let broke = |error: &dyn std::fmt::Display| format!("the server at {url} cannot be asked: {error}");
    let token = token(args)?;
    let agent = agent(args.ca.as_deref(), patience)?;
    let mut response = agent
        .post(format!("{}{PATH}", url.trim_end_matches('/')))
        .header("Authorization", format!("Bearer {token}"))
        .header("Content-Type", "application/json")
        .send(to_json_line(request))
        .map_err(|error| broke(&error))?;
    let status = response.status();
    if !status.is_success() {
        let mut text = String::new();
        // What cannot be read is told by the status alone.
        let _ = response.body_mut().as_reader().take(ERROR_OCTETS_MAX).read_to_string(&mut text);
        return Err(match control::client::detail(&text) {
            Some(detail) => format!("the server at {url} refuses: {detail}"),
            None => format!("the server at {url} answers {status}; is it the API of a gannet?"),
        });
    }
    let mut reader = BufReader::new(response.body_mut().as_reader().take(RESPONSES_OCTETS_MAX));
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).map_err(|error| broke(&error))? == 0 {
            return Err(format!("the server at {url} broke off"));
        }
        let response = control::client::read(&line).map_err(|error| error.to_string())?;
        if take(response) == More::No {
            return Ok(());
        }
    }
}

/// Sends a body to a path of a server's API; returns the status and the text of the response.
pub(super) fn send(
    server: (&str, &ServerArgs),
    asked: (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
    patience: Duration,
) -> Result<(u16, String), String> {
    let agent = agent(server.1.ca.as_deref(), patience)?;
    send_by(&agent, server, asked, headers, body)
}

/// Like [`send`], with a file that is read while it is sent. `patience` is for each part of it, and
/// for the response.
pub(super) fn send_file(
    server: (&str, &ServerArgs),
    asked: (&str, &str),
    headers: &[(&str, &str)],
    file: &File,
    patience: Duration,
) -> Result<(u16, String), String> {
    let agent = patient_agent(server.1.ca.as_deref(), patience)?;
    send_by(&agent, server, asked, headers, file)
}

fn send_by(
    agent: &Agent,
    (url, args): (&str, &ServerArgs),
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    body: impl AsSendBody,
) -> Result<(u16, String), String> {
    let broke = |error: &dyn std::fmt::Display| format!("the server at {url} cannot be asked: {error}");
    let token = token(args)?;
    let to = format!("{}{target}", url.trim_end_matches('/'));
    let request = match method {
        "PUT" => agent.put(to),
        "POST" => agent.post(to),
        _ => agent.patch(to),
    };
    let request = request.header("Authorization", format!("Bearer {token}"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut response = request.send(body).map_err(|error| broke(&error))?;
    let status = response.status().as_u16();
    let mut text = String::new();
    let mut reader = response.body_mut().as_reader().take(TEXT_OCTETS_MAX);
    reader.read_to_string(&mut text).map_err(|error| broke(&error))?;
    Ok((status, text))
}

/// Asks for something of a server's API, and writes it to `to`; returns the status, and the text of
/// a response that is another than 200. `patience` is for the response, and for each part of it.
pub(super) fn fetch(
    (url, args): (&str, &ServerArgs),
    target: &str,
    to: &mut dyn Write,
    patience: Duration,
) -> Result<(u16, String), String> {
    let broke = |error: &dyn std::fmt::Display| format!("the server at {url} cannot be asked: {error}");
    let token = token(args)?;
    let agent = patient_agent(args.ca.as_deref(), patience)?;
    let request = agent.get(format!("{}{target}", url.trim_end_matches('/')));
    let request = request.header("Authorization", format!("Bearer {token}"));
    let mut response = request.call().map_err(|error| broke(&error))?;
    let status = response.status().as_u16();
    let mut reader = response.body_mut().as_reader();
    let mut text = String::new();
    match status {
        200 => io::copy(&mut reader, to).map(drop).map_err(|error| broke(&error))?,
        _ => {
            reader.take(TEXT_OCTETS_MAX).read_to_string(&mut text).map_err(|error| broke(&error))?;
        }
    }
    Ok((status, text))
}

/// Returns the token that is shown.
fn token(args: &ServerArgs) -> Result<String, String> {
    let text = match &args.token_file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read the token in {}: {error}", file.display()))?,
        None => std::env::var(TOKEN)
            .map_err(|_| format!("this needs a token: set {TOKEN}, or name a file with --token-file"))?,
    };
    let token = text.trim();
    // It goes into a header.
    let is_token = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    is_token.then(|| token.to_owned()).ok_or_else(|| "what should be a token is none".to_owned())
}

/// Returns what asks and is done within a time.
fn agent(ca: Option<&Path>, patience: Duration) -> Result<Agent, String> {
    agent_with(ca, |config| config.timeout_global(Some(patience)))
}

/// Returns what asks and takes as long as it takes, while no step of it does.
fn patient_agent(ca: Option<&Path>, patience: Duration) -> Result<Agent, String> {
    let patience = Some(patience);
    agent_with(ca, |config| {
        let config = config.timeout_connect(patience).timeout_recv_response(patience);
        config.timeout_per_read(patience).timeout_per_write(patience)
    })
}

type Config = ConfigBuilder<AgentScope>;

fn agent_with(ca: Option<&Path>, with: impl FnOnce(Config) -> Config) -> Result<Agent, String> {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let tls = match ca {
        None => tls.root_certs(RootCerts::WebPki),
        Some(file) => tls.root_certs(RootCerts::Specific(Arc::new(certificates(file)?))),
    };
    let config = Agent::config_builder()
        .tls_config(tls.build())
        .http_status_as_error(false)
        // A token is shown to nobody else.
        .max_redirects(0)
        .user_agent(concat!("gannet/", env!("CARGO_PKG_VERSION")));
    Ok(with(config).build().new_agent())
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let text = std::fs::read(file).map_err(|error| wrong(&error))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(&error))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(wrong(&"it holds no certificate"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word() {
        let folder = std::env::temp_dir().join(format!("gannet-token-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&folder, text).expect("written");
            let token = token(&ServerArgs { token_file: Some(folder.clone()), ..ServerArgs::default() });
            std::fs::remove_file(&folder).expect("removed");
            token
        };
        assert_eq!(read("gnt_1\n"), Ok("gnt_1".to_owned()));
        assert!(read("gnt_1\r\nX: y").is_err() && read("\n").is_err());
    }
}
