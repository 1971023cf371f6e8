//! A MikroTik router, as far as its API's address lists and routes go; plain, or inside of TLS.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An entry of a router's table: where it is, and what it says.
pub type Row = (String, HashMap<String, String>);

/// The user that may do everything, and the password.
pub const USER: &str = "gannet";
/// See [`USER`].
pub const PASSWORD: &str = "secret";

#[derive(Default)]
struct Shared {
    tables: Mutex<Vec<Row>>,
    heard: Mutex<Vec<Vec<String>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running router: keeps what the API tells it. Its threads end with the test's process.
pub struct Router {
    address: SocketAddr,
    shared: Arc<Shared>,
    certificate: Option<String>,
}

impl Router {
    /// Starts a router whose API is not encrypted.
    pub fn start() -> Self {
        Self::run(None, None)
    }

    /// Starts a router whose API is encrypted, with a certificate of its own for `name`.
    ///
    /// # Panics
    ///
    /// When no certificate can be made.
    pub fn start_tls(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions that the provider has")
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(made.cert.der().to_vec())], key.into())
            .expect("a key that fits");
        Self::run(Some(Arc::new(config)), Some(made.cert.pem()))
    }

    fn run(tls: Option<Arc<ServerConfig>>, certificate: Option<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let router = Self { address, shared: Arc::default(), certificate };
        let shared = Arc::clone(&router.shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                std::thread::spawn(move || match tls {
                    None => shared.serve(stream),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).expect("a configuration that is right");
                        shared.serve(StreamOwned::new(connection, stream));
                    }
                });
            }
        });
        router
    }

    /// Returns where its API listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its certificate in PEM.
    ///
    /// # Panics
    ///
    /// When its API is not encrypted.
    pub fn certificate(&self) -> &str {
        self.certificate.as_deref().expect("a router with TLS")
    }

    /// Puts entries into its tables, as somebody else would have.
    pub fn put(&self, rows: impl IntoIterator<Item = Row>) {
        locked(&self.shared.tables).extend(rows);
    }

    /// Returns the sentences that it heard, in order.
    pub fn heard(&self) -> Vec<Vec<String>> {
        locked(&self.shared.heard).clone()
    }

    /// Returns the value of an attribute of the entry for an address.
    pub fn entry(&self, menu: &str, address: &str, attribute: &str) -> Option<String> {
        let tables = locked(&self.shared.tables);
        let is_it = |entry: &HashMap<String, String>| {
            entry.get("address").or(entry.get("dst-address")).map(String::as_str) == Some(address)
        };
        tables.iter().find(|(known, entry)| known == menu && is_it(entry))?.1.get(attribute).cloned()
    }
}

impl Shared {
    fn serve(&self, mut stream: impl Read + Write) {
        let mut is_in = false;
        while let Some(sentence) = hear(&mut stream) {
            locked(&self.heard).push(sentence.clone());
            let attributes = |mark: char| -> HashMap<String, String> {
                let words = sentence.iter().filter_map(|word| word.strip_prefix(mark)?.split_once('='));
                words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            };
            let (set, wanted) = (attributes('='), attributes('?'));
            let Some((menu, command)) = sentence.first().and_then(|word| word.rsplit_once('/')) else {
                return;
            };
            let mut said: Vec<Vec<String>> = Vec::new();
            let mut trap = |why: &str| said.push(vec!["!trap".to_owned(), format!("=message={why}")]);
            let mut tables = locked(&self.tables);
            let is_known = set.get("name").is_some_and(|name| name == USER)
                && set.get("password").is_some_and(|password| password == PASSWORD);
            match (menu, command) {
                ("", "login") if is_known => is_in = true,
                ("", "login") => trap("invalid user name or password (6)"),
                _ if !is_in => trap("not logged in"),
                (_, "add") => {
                    let key = |entry: &HashMap<String, String>| {
                        let address = entry.get("address").or(entry.get("dst-address")).cloned();
                        (entry.get("list").cloned(), address)
                    };
                    if tables.iter().any(|(known, entry)| known == menu && key(entry) == key(&set)) {
                        trap("failure: already have such entry");
                    } else {
                        let mut entry = set;
                        entry.insert(".id".to_owned(), format!("*{}", tables.len() + 1));
                        tables.push((menu.to_owned(), entry));
                    }
                }
                (_, "print") => {
                    let fits = |entry: &HashMap<String, String>| {
                        wanted.iter().all(|(name, value)| entry.get(name) == Some(value))
                    };
                    for (_, entry) in tables.iter().filter(|(known, entry)| known == menu && fits(entry)) {
                        let mut words = vec!["!re".to_owned()];
                        words.extend(entry.iter().map(|(name, value)| format!("={name}={value}")));
                        said.push(words);
                    }
                }
                (_, "set") => {
                    for (_, entry) in tables.iter_mut().filter(|(_, entry)| entry[".id"] == set[".id"]) {
                        entry.extend(set.clone());
                        entry.insert("was-set".to_owned(), "yes".to_owned());
                    }
                }
                (_, "remove") => tables.retain(|(_, entry)| entry[".id"] != set[".id"]),
                _ => trap("no such command"),
            }
            drop(tables);
            said.push(vec!["!done".to_owned()]);
            if said.iter().any(|words| say(&mut stream, words).is_err()) {
                return;
            }
        }
    }
}

fn say(stream: &mut impl Write, words: &[String]) -> std::io::Result<()> {
    let mut octets = Vec::new();
    for word in words {
        assert!(word.len() < 0x80, "this router speaks short words");
        octets.push(word.len() as u8);
        octets.extend(word.as_bytes());
    }
    octets.push(0);
    stream.write_all(&octets)?;
    stream.flush()
}

fn hear(stream: &mut impl Read) -> Option<Vec<String>> {
    let mut words = Vec::new();
    loop {
        let mut len = [0];
        stream.read_exact(&mut len).ok()?;
        if len[0] == 0 {
            return Some(words);
        }
        assert!(len[0] < 0x80, "this router hears short words");
        let mut word = vec![0; len[0].into()];
        stream.read_exact(&mut word).ok()?;
        words.push(String::from_utf8(word).expect("text"));
    }
}
