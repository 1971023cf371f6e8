//! Connections and datagrams through a SOCKS5 proxy (RFC 1928, RFC 1929).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plan::upstreams::Login;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const UDP_ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Has the proxy at the other end of `stream` connect to `to`.
pub(super) async fn pass<S>(stream: &mut S, login: Option<&Login>, to: SocketAddr) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    greet(stream, login).await?;
    match request(stream, CONNECT, to).await? {
        Reply::Done(_) => Ok(()),
        Reply::Refused(code) => Err(refused(meaning(code))),
    }
}

/// Has the proxy relay datagrams for as long as `stream` is open; returns where to send them, or
/// `None` if it does not do that. An address that is not given is the proxy's own.
pub(super) async fn associate<S>(
    stream: &mut S,
    login: Option<&Login>,
    proxy: SocketAddr,
) -> io::Result<Option<SocketAddr>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    greet(stream, login).await?;
    // The source is not known yet: zeros say so (RFC 1928 §6).
    let from = match proxy {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    match request(stream, UDP_ASSOCIATE, from).await {
        Ok(Reply::Done(Some(at))) if at.ip().is_unspecified() => {
            Ok(Some(SocketAddr::new(proxy.ip(), at.port())))
        }
        Ok(Reply::Done(Some(at))) => Ok(Some(at)),
        Ok(Reply::Done(None)) => Err(refused("relays datagrams at a host name")),
        // There is a code for it, but proxies that only connect say all sorts of things, or
        // nothing.
        Ok(Reply::Refused(_)) => Ok(None),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns what stands in front of each datagram to `to` (RFC 1928 §7).
pub(super) fn header(to: SocketAddr) -> Vec<u8> {
    let mut header = vec![0, 0, 0];
    put_address(&mut header, to);
    header
}

/// Returns what a relayed datagram brought, and from where; `None` for what is no datagram or only
/// a part of one.
pub(super) fn unwrapped(datagram: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (&[0, 0, fragment, kind], rest) = datagram.split_first_chunk::<4>()? else { return None };
    let (ip, rest): (IpAddr, &[u8]) = match (fragment, kind) {
        (0, IPV4) => rest.split_first_chunk::<4>().map(|(&ip, rest)| (ip.into(), rest))?,
        (0, IPV6) => rest.split_first_chunk::<16>().map(|(&ip, rest)| (ip.into(), rest))?,
        _ => return None,
    };
    let (&port, payload) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(port)), payload))
}

/// Agrees with the proxy on who we are.
async fn greet<S>(stream: &mut S, login: Option<&Login>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let method = if login.is_some() { USER_AND_PASSWORD } else { NO_LOGIN };
    stream.write_all(&[VERSION, 1, method]).await?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await?;
    match (chosen, login) {
        ([VERSION, NO_LOGIN], _) => Ok(()),
        ([VERSION, USER_AND_PASSWORD], Some(login)) => log_in(stream, login).await,
        ([VERSION, _], Some(_)) => Err(refused("does not take a user and a password")),
        ([VERSION, _], None) => Err(refused("wants a user and a password")),
        _ => Err(refused("does not speak SOCKS5")),
    }
}

/// What a proxy says to a request.
enum Reply {
    /// It does so, at this address of its own; `None` if it gives a name instead.
    Done(Option<SocketAddr>),
    /// It does not, and this is why.
    Refused(u8),
}

async fn request<S>(stream: &mut S, command: u8, to: SocketAddr) -> io::Result<Reply>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = vec![VERSION, command, 0];
    put_address(&mut request, to);
    stream.write_all(&request).await?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await?;
    let [version, code, _, kind] = reply;
    if version != VERSION {
        return Err(refused("does not speak SOCKS5"));
    }
    if code != 0 {
        return Ok(Reply::Refused(code));
    }
    let ip: Option<IpAddr> = match kind {
        IPV4 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await?;
            Some(octets.into())
        }
        IPV6 => {
            let mut octets = [0; 16];
            stream.read_exact(&mut octets).await?;
            Some(octets.into())
        }
        NAME => {
            let mut name = [0; 255];
            let octets = usize::from(stream.read_u8().await?);
            stream.read_exact(name.get_mut(..octets).unwrap_or_default()).await?;
            None
        }
        _ => return Err(refused("does not speak SOCKS5")),
    };
    let port = stream.read_u16().await?;
    Ok(Reply::Done(ip.map(|ip| SocketAddr::new(ip, port))))
}

fn put_address(octets: &mut Vec<u8>, address: SocketAddr) {
    match address {
        SocketAddr::V4(address) => {
            octets.push(IPV4);
            octets.extend(address.ip().octets());
        }
        SocketAddr::V6(address) => {
            octets.push(IPV6);
            octets.extend(address.ip().octets());
        }
    }
    octets.extend(address.port().to_be_bytes());
}

/// Tells the proxy who we are (RFC 1929).
async fn log_in<S>(stream: &mut S, login: &Login) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = vec![1];
    for part in [login.user.as_bytes(), login.password.reveal()] {
        let octets = u8::try_from(part.len()).map_err(|_| refused("takes at most 255 octets of each"))?;
        request.push(octets);
        request.extend_from_slice(part);
    }
    stream.write_all(&request).await?;
    let mut reply = [0; 2];
    stream.read_exact(&mut reply).await?;
    let [_, code] = reply;
    if code == 0 { Ok(()) } else { Err(refused("refuses user and password")) }
}

fn refused(why: &str) -> io::Error {
    io::Error::other(format!("the SOCKS5 proxy {why}"))
}

/// Says what a reply's code means (RFC 1928 §6).
const fn meaning(code: u8) -> &'static str {
    match code {
        1 => "failed",
        2 => "does not allow this connection",
        3 => "cannot reach the server's network",
        4 => "cannot reach the server",
        5 => "was refused by the server",
        6 => "waited too long for the server",
        7 => "does not do this",
        8 => "does not know this kind of address",
        _ => "failed in a way of its own",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a proxy say `said`; checks what it was told, and the outcome.
    async fn check(login: Option<Login>, to: &str, said: &[u8], told: &[u8], expect: Result<(), &str>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(said).await.expect("room");
        let outcome = pass(&mut ours, login.as_ref(), to.parse().expect("an address")).await;
        drop(ours);
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).await.expect("an end");
        assert_eq!(heard, told);
        match (outcome, expect) {
            (Ok(()), Ok(())) => (),
            (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
            (outcome, expect) => panic!("{outcome:?}, not {expect:?}"),
        }
    }

    fn login() -> Option<Login> {
        Some(Login { user: "me".to_owned(), password: plan::Secret::new(b"pw".to_vec()) })
    }

    #[tokio::test]
    async fn a_proxy_connects_by_address() {
        let said = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        check(None, "192.0.2.1:853", &said, b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x03\x55", Ok(()))
            .await;
        let said = [5, 0, 5, 0, 0, 3, 1, b'x', 0, 0];
        let told = b"\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x03\x55";
        check(None, "[2001:db8::1]:853", &said, told, Ok(())).await;
    }

    #[tokio::test]
    async fn a_proxy_is_told_who_we_are() {
        let said = [5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let told = b"\x05\x01\x02\x01\x02me\x02pw\x05\x01\x00\x01\xc0\x00\x02\x01\x03\x55";
        check(login(), "192.0.2.1:853", &said, told, Ok(())).await;
        check(login(), "192.0.2.1:853", &[5, 2, 1, 1], b"\x05\x01\x02\x01\x02me\x02pw", Err("refuses user"))
            .await;
        check(None, "192.0.2.1:853", &[5, 255], b"\x05\x01\x00", Err("wants a user")).await;
    }

    /// Has a proxy at 192.0.2.9 say `said` when it is asked to relay datagrams.
    async fn check_associate(said: &[u8], expect: Result<Option<&str>, &str>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(said).await.expect("room");
        let proxy = "192.0.2.9:1080".parse().expect("an address");
        let outcome = associate(&mut ours, None, proxy).await;
        drop(ours);
        let mut heard = Vec::new();
        theirs.read_to_end(&mut heard).await.expect("an end");
        assert_eq!(heard, b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0");
        match (outcome, expect) {
            (Ok(at), Ok(expect)) => assert_eq!(at.map(|at| at.to_string()).as_deref(), expect),
            (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
            (outcome, expect) => panic!("{outcome:?}, not {expect:?}"),
        }
    }

    #[tokio::test]
    async fn a_proxy_relays_datagrams_where_it_says() {
        check_associate(&[5, 0, 5, 0, 0, 1, 192, 0, 2, 7, 4, 0], Ok(Some("192.0.2.7:1024"))).await;
        check_associate(&[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 4, 0], Ok(Some("192.0.2.9:1024"))).await;
        check_associate(&[5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0], Ok(None)).await;
        check_associate(&[5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0], Ok(None)).await;
        check_associate(b"\x05\0HTTP", Err("does not speak SOCKS5")).await;
        check_associate(&[5, 0, 5, 0, 0, 3, 1, b'x', 0, 0], Err("at a host name")).await;
    }

    #[test]
    fn relayed_datagrams_say_where_from() {
        let from: SocketAddr = "192.0.2.1:53".parse().expect("an address");
        let datagram = [header(from).as_slice(), b"reply"].concat();
        assert_eq!(unwrapped(&datagram), Some((from, &b"reply"[..])));
        let from: SocketAddr = "[2001:db8::1]:853".parse().expect("an address");
        let datagram = [header(from).as_slice(), b""].concat();
        assert_eq!(unwrapped(&datagram), Some((from, &b""[..])));
        assert_eq!(unwrapped(b"\0\0\x01\x01\xc0\0\x02\x01\0\x35x"), None, "a fragment");
        assert_eq!(unwrapped(b"\0\0\0\x01\xc0\0\x02"), None);
    }

    #[tokio::test]
    async fn what_a_proxy_refuses_is_said() {
        let told = b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x03\x55";
        let refused = [5, 0, 5, 5, 0, 1];
        check(None, "192.0.2.1:853", &refused, told, Err("was refused by the server")).await;
        check(None, "192.0.2.1:853", b"HT", b"\x05\x01\x00", Err("does not speak SOCKS5")).await;
    }
}
