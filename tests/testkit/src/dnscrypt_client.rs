//! A client of DNSCrypt, and what an operator makes for a server of it.

use crate::DEADLINE;
use crate::ask::Heard;
use crate::client::{framed, read_reply};
use crate::program::program;
use dnscrypt::{Certificate, Session, Travel};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};

/// The name of providers of tests.
pub const PROVIDER: &str = "2.dnscrypt-cert.example.org";

/// Octets of the largest message.
const MESSAGE_OCTETS_MAX: usize = 65_535;

/// A key of a resolver and its certificate, in files.
pub struct ResolverFiles {
    /// The file with the secret key.
    pub key: PathBuf,
    /// The file with the certificate.
    pub certificate: PathBuf,
}

fn run(directory: &Path, arguments: &[&str]) -> String {
    let output = program(directory).arg("dnscrypt").args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Makes a provider's keys in `directory`, as an operator would.
///
/// # Panics
///
/// When the program does not.
pub fn make_provider(directory: &Path) {
    run(directory, &["provider"]);
}

/// Makes a resolver's key and its certificate there; `more` is for the program.
///
/// # Panics
///
/// When the program does not.
pub fn make_certificate(directory: &Path, more: &[&str]) -> ResolverFiles {
    let printed = run(directory, &[&["certificate"], more].concat());
    let file = |setting: &str| {
        let (_, rest) = printed.split_once(&format!("{setting}: [\"")).expect("the setting");
        directory.join(rest.split_once('"').expect("its end").0)
    };
    ResolverFiles { key: file("keys"), certificate: file("certificates") }
}

/// Returns the stamp of a server whose provider's keys are in `directory`.
///
/// # Panics
///
/// When the program prints none.
pub fn stamp(directory: &Path, server: SocketAddr) -> String {
    run(directory, &["stamp", PROVIDER, &server.to_string()]).trim().to_owned()
}

/// A client with a key of its own.
pub struct DnscryptClient {
    session: Session,
    server: SocketAddr,
    socket: UdpSocket,
}

impl DnscryptClient {
    /// Prepares to ask a server by a certificate of a provider whose keys are in `directory`.
    ///
    /// # Panics
    ///
    /// When it is not one.
    pub fn new(server: SocketAddr, directory: &Path, files: &ResolverFiles) -> Self {
        let certificate = std::fs::read(&files.certificate).expect("a certificate");
        Self::by(server, directory, &certificate)
    }

    /// Prepares to ask a server by a certificate that it has shown.
    ///
    /// # Panics
    ///
    /// When the provider did not sign it.
    pub fn by(server: SocketAddr, directory: &Path, certificate: &[u8]) -> Self {
        let provider = std::fs::read(directory.join("public.key")).expect("a key");
        let provider = provider.try_into().expect("32 octets");
        let certificate = Certificate::parse(certificate, &provider).expect("a good certificate");
        let session = Session::new(&certificate).expect("a key");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback socket");
        socket.connect(server).expect("a loopback address");
        socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        Self { session, server, socket }
    }

    /// Seals a message for a datagram of at least so many octets.
    ///
    /// # Panics
    ///
    /// When it is too large.
    pub fn seal(&self, message: &[u8], octets: usize) -> Vec<u8> {
        self.session.seal(message, Travel::Datagram(octets)).expect("room").0
    }

    /// Sends octets as they are.
    ///
    /// # Panics
    ///
    /// When they are too many for a datagram.
    pub fn send(&self, octets: &[u8]) {
        self.socket.send(octets).expect("sent");
    }

    /// Receives what is sealed for this client; returns also how many octets it had.
    ///
    /// # Panics
    ///
    /// When nothing comes, or something else.
    pub fn receive(&self) -> (Heard, usize) {
        let mut response = vec![0; MESSAGE_OCTETS_MAX];
        let octets = self.socket.recv(&mut response).expect("a response");
        let (_, reply) = self.session.open(&response[..octets]).expect("a response for this client");
        (Heard::new(reply), octets)
    }

    /// Asks over UDP, in a datagram of at least so many octets.
    ///
    /// # Panics
    ///
    /// When no reply comes.
    pub fn ask(&self, message: &[u8], octets: usize) -> Heard {
        self.send(&self.seal(message, octets));
        self.receive().0
    }

    /// Sends messages over one connection and reads as many replies; fewer if it is closed.
    ///
    /// # Panics
    ///
    /// When a reply is not for this client.
    pub fn ask_stream(&self, messages: &[&[u8]]) -> Vec<Heard> {
        let mut stream = TcpStream::connect(self.server).expect("a listener");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let sealed =
            messages.iter().map(|message| self.session.seal(message, Travel::Connection).expect("room").0);
        let sealed: Vec<Vec<u8>> = sealed.collect();
        stream.write_all(&framed(sealed.iter().map(Vec::as_slice))).expect("an open connection");
        let read = std::iter::repeat_with(|| read_reply(&mut stream)).map_while(|reply| reply);
        let replies = read.take(messages.len()).map(|sealed| {
            let (_, reply) = self.session.open(sealed.bytes()).expect("a response for this client");
            Heard::new(reply)
        });
        replies.collect()
    }
}
