//! Clients that speak TLS, and certificates for the server they speak with.

use crate::DEADLINE;
use crate::ask::{Ask, Heard};
use crate::client::{framed, read_reply};
use crate::identity::Identity;
use crate::program::program;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// The name that certificates of tests are for.
pub const NAME: &str = "dns.example.org";

/// Makes `certificate.pem` and `key.pem` in `directory`, as an operator would.
///
/// # Panics
///
/// When the program does not.
pub fn certificate(directory: &Path, names: &[&str]) {
    let mut command = program(directory);
    let output = command.args(["certificate", "--force"]).args(names).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns how a client speaks `protocol` that believes the certificate in a file and no other.
pub(crate) fn client_config(trusted: &Path, protocol: &str) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(trusted).map_err(io::Error::other)?;
    roots.add(certificate).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Ok(config)
}

/// Makes a client show a certificate of its own.
fn show(config: &mut ClientConfig, own: &Identity) {
    let (chain, key) = own.for_client();
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key");
    let own = rustls::sign::CertifiedKey::new(chain, key);
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(own));
}

/// A connection with TLS to one server.
pub struct TlsClient(StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Opens a connection to the server called [`NAME`] that shows the certificate in a file.
    ///
    /// # Errors
    ///
    /// When nobody listens, or it is another certificate.
    pub fn try_connect(server: SocketAddr, trusted: &Path, protocol: &str) -> io::Result<Self> {
        Self::open(server, client_config(trusted, protocol)?)
    }

    /// Opens a connection that speaks DNS, by a client with a certificate of its own.
    ///
    /// # Errors
    ///
    /// When nobody listens, or one of the two does not believe the other.
    pub fn try_connect_as(server: SocketAddr, trusted: &Path, own: &Identity) -> io::Result<Self> {
        let mut config = client_config(trusted, "dot")?;
        show(&mut config, own);
        Self::open(server, config)
    }

    fn open(server: SocketAddr, config: ClientConfig) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&server, DEADLINE)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self(stream))
    }

    /// Opens a connection that speaks DNS, as [`TlsClient::try_connect`] does.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn connect(server: SocketAddr, trusted: &Path) -> Self {
        Self::try_connect(server, trusted, "dot").expect("a connection")
    }

    /// Returns the server's certificate.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        self.0.conn.peer_certificates().and_then(|all| all.first()).map(|first| first.to_vec())
    }

    /// Sends queries in one write, each with its length in front.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn send<'a>(&mut self, queries: impl IntoIterator<Item = &'a [u8]>) {
        self.0.write_all(&framed(queries)).expect("an open connection");
    }

    /// Receives the next reply; `None` when the server closed the connection.
    pub fn receive(&mut self) -> Option<Heard> {
        read_reply(&mut self.0)
    }

    /// Asks and waits for the reply.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn ask(&mut self, ask: &Ask) -> Heard {
        self.send([ask.bytes().as_slice()]);
        self.receive().expect("a reply")
    }

    /// Sends a request of HTTP/1.1 and reads its response, whose length is said; returns the status
    /// and the body. The connection stays open.
    ///
    /// # Errors
    ///
    /// When the connection ends before.
    pub fn request(&mut self, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        self.0.write_all(request)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut octet = [0];
            self.0.read_exact(&mut octet)?;
            head.extend(octet);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let octets = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let (Some(status), Some(octets)) = (status, octets) else {
            return Err(io::Error::other(format!("a head without status or length: {head}")));
        };
        let mut body = vec![0; octets];
        self.0.read_exact(&mut body)?;
        Ok((status, body))
    }

    /// Asks; an error if the server ends the connection instead, as it does with clients that it
    /// does not know.
    pub fn try_ask(&mut self, ask: &Ask) -> io::Result<Heard> {
        self.0.write_all(&framed([ask.bytes().as_slice()]))?;
        let mut length = [0; 2];
        self.0.read_exact(&mut length)?;
        let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
        self.0.read_exact(&mut bytes)?;
        Ok(Heard::new(bytes))
    }
}

/// Sends a message to `/dns-query` in a request of HTTP/1.1; returns the status and the body.
///
/// # Panics
///
/// When the server cannot be reached or its response cannot be read.
pub fn post(server: SocketAddr, trusted: &Path, message: &[u8]) -> (u16, Vec<u8>) {
    let TlsClient(mut stream) = TlsClient::try_connect(server, trusted, "http/1.1").expect("a connection");
    let head = format!(
        "POST /dns-query HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/dns-message\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        message.len()
    );
    stream.write_all(&[head.as_bytes(), message].concat()).expect("an open connection");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a whole response");
    let end = response.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let status =
        String::from_utf8_lossy(&response[..end]).split(' ').nth(1).and_then(|text| text.parse().ok());
    (status.expect("a status"), response.split_off(end + 4))
}

/// Sends a message to `/dns-query` over HTTP/2 in so many requests at once; returns how many
/// responses end in each TLS record, of those in which any does.
///
/// # Panics
///
/// When the connection ends before all are answered.
pub fn responses_in_records(
    server: SocketAddr,
    trusted: &Path,
    requests: usize,
    message: &[u8],
) -> Vec<usize> {
    /// Octets of the head of a record, and of a frame.
    const RECORD_HEAD: usize = 5;
    const FRAME_HEAD: usize = 9;
    let TlsClient(stream) = TlsClient::try_connect(server, trusted, "h2").expect("a connection");
    let (mut session, mut socket) = (stream.conn, stream.sock);
    let asked = crate::streams::http2_requests(requests, message);
    session.writer().write_all(&asked).expect("room");
    while session.wants_write() {
        session.write_tls(&mut socket).expect("an open connection");
    }
    let (mut raw, mut plain, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    while ended.iter().sum::<usize>() < requests {
        let mut octets = [0; 16 << 10];
        let came = socket.read(&mut octets).expect("an answer in time");
        assert_ne!(came, 0, "the server ended the connection");
        raw.extend_from_slice(octets.get(..came).unwrap_or(&[]));
        while let Some(&[_, _, _, high, low]) = raw.first_chunk::<RECORD_HEAD>() {
            let len = RECORD_HEAD + usize::from(u16::from_be_bytes([high, low]));
            if raw.len() < len {
                break;
            }
            let record: Vec<u8> = raw.drain(..len).collect();
            session.read_tls(&mut record.as_slice()).expect("a record");
            session.process_new_packets().expect("a record");
            // There may be nothing for us in it.
            let _ = session.reader().read_to_end(&mut plain);
            let mut count = 0;
            while let Some(&[high, middle, low, kind, flags, ..]) = plain.first_chunk::<FRAME_HEAD>() {
                let len = FRAME_HEAD + u32::from_be_bytes([0, high, middle, low]) as usize;
                if plain.len() < len {
                    break;
                }
                plain.drain(..len);
                // The end of a stream, with data.
                count += usize::from(kind == 0 && flags & 1 != 0);
            }
            if count > 0 {
                ended.push(count);
            }
        }
    }
    ended
}
