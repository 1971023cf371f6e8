//! Connections through a SOCKS5 proxy (RFC 1928, RFC 1929).

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::plan::Login;

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Has the proxy at the other end of `stream` connect to `to`.
pub(super) async fn pass<S>(stream: &mut S, login: Option<&Login>, to: SocketAddr) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let method = if login.is_some() { USER_AND_PASSWORD } else { NO_LOGIN };
    stream.write_all(&[VERSION, 1, method]).await?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await?;
    match (chosen, login) {
        ([VERSION, NO_LOGIN], _) => (),
        ([VERSION, USER_AND_PASSWORD], Some(login)) => log_in(stream, login).await?,
        ([VERSION, _], Some(_)) => return Err(refused("does not take a user and a password")),
        ([VERSION, _], None) => return Err(refused("wants a user and a password")),
        _ => return Err(refused("does not speak SOCKS5")),
    }
    let mut request = vec![VERSION, CONNECT, 0];
    match to {
        SocketAddr::V4(to) => {
            request.push(IPV4);
            request.extend(to.ip().octets());
        }
        SocketAddr::V6(to) => {
            request.push(IPV6);
            request.extend(to.ip().octets());
        }
    }
    request.extend(to.port().to_be_bytes());
    stream.write_all(&request).await?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await?;
    let [version, code, _, kind] = reply;
    if version != VERSION {
        return Err(refused("does not speak SOCKS5"));
    }
    if code != 0 {
        return Err(refused(meaning(code)));
    }
    // Where it connects from, which is of no interest, and a port.
    let octets = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(stream.read_u8().await?),
        _ => return Err(refused("does not speak SOCKS5")),
    };
    let mut address = [0; 2 + 255];
    let address = address.get_mut(..octets + 2).unwrap_or_default();
    stream.read_exact(address).await?;
    Ok(())
}

/// Tells the proxy who we are (RFC 1929).
async fn log_in<S>(stream: &mut S, login: &Login) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = vec![1];
    for part in [login.user.as_bytes(), login.password.as_slice()] {
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
        7 => "does not make connections",
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
        Some(Login { user: "me".to_owned(), password: b"pw".to_vec() })
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

    #[tokio::test]
    async fn what_a_proxy_refuses_is_said() {
        let told = b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x03\x55";
        let refused = [5, 0, 5, 5, 0, 1];
        check(None, "192.0.2.1:853", &refused, told, Err("was refused by the server")).await;
        check(None, "192.0.2.1:853", b"HT", b"\x05\x01\x00", Err("does not speak SOCKS5")).await;
    }
}
