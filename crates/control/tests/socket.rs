//! The control socket as a client meets it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use control::api::{CacheFlush, Flush, Flushed, Request, Response};
use control::{Answer, Handlers, Peer, Socket, ask};

fn count(request: Request, _: Peer) -> Answer {
    let response = match request {
        Request::CacheFlush(CacheFlush { what: Flush::All, .. }) => {
            Response::CacheFlush(Flushed { removed: 7 })
        }
        other => Response::error(format!("{other:?}")),
    };
    response.into()
}

/// Serves on `path` while `f` talks to it; the peer's user is taken for `own_user`'s.
fn with_server(path: &Path, own_user: u32, f: impl FnOnce() + Send + 'static) {
    let socket = Socket::bind(path, None, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let http: control::Http = Arc::new(|mut stream, peer| {
        Box::pin(async move {
            let mut line = String::new();
            tokio::io::AsyncBufReadExt::read_line(&mut stream, &mut line).await.unwrap();
            let said = format!("user {} says {line}", peer.user);
            tokio::io::AsyncWriteExt::write_all(&mut stream, said.as_bytes()).await.unwrap();
        })
    });
    let admits: control::Admits = Arc::new(move |peer: Peer| match peer.user == own_user {
        true => Ok(()),
        false => Err(format!("user {} may not", peer.user)),
    });
    let handlers = Handlers { lines: Arc::new(count), http: Some(http), admits };
    runtime.block_on(async {
        let talk = tokio::task::spawn_blocking(f);
        tokio::select! {
            served = control::serve(&socket, handlers) => served.unwrap(),
            talked = talk => talked.unwrap(),
        }
    });
}

fn line(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

fn own_user(path: &Path) -> u32 {
    path.metadata().unwrap().uid()
}

#[test]
fn a_request_is_carried_out_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/control.sock");
    let paths = [folder.path().join("nobody.sock"), path.clone()];
    with_server(&path, own_user(folder.path()), move || {
        let request = Request::CacheFlush(CacheFlush { cache: None, what: Flush::All });
        let response = ask(&paths, &request, Duration::from_secs(10)).unwrap();
        assert_eq!(response, Response::CacheFlush(Flushed { removed: 7 }));
    });
    assert!(!folder.path().join("run/control.sock").exists(), "the socket is removed");
}

#[test]
fn an_unknown_request_is_named_and_the_connection_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let there = path.clone();
    with_server(&path, own_user(folder.path()), move || {
        let mut stream = UnixStream::connect(there).unwrap();
        stream.write_all(b"{\"request\":\"fly\"}\n").unwrap();
        let said = line(&stream);
        assert!(said.contains("unknown variant `fly`") && said.contains("`cache-stats`"), "{said}");
        stream.write_all(b"{\"request\":\"stats\"}\n").unwrap();
        assert!(line(&stream).contains("Stats"));
    });
}

#[test]
fn a_connection_that_begins_with_a_method_is_one_of_http() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let there = path.clone();
    let user = own_user(folder.path());
    with_server(&path, user, move || {
        let mut stream = UnixStream::connect(there).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert_eq!(line(&stream), format!("user {user} says GET / HTTP/1.1\r\n"));
    });
}

#[test]
fn an_endless_line_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let there = path.clone();
    with_server(&path, own_user(folder.path()), move || {
        let mut stream = UnixStream::connect(there).unwrap();
        stream.write_all(&vec![b' '; (2 << 20) + 1]).unwrap();
        assert!(line(&stream).contains("at most 2097152 octets"));
    });
}

#[test]
fn who_is_not_admitted_hears_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let there = path.clone();
    let user = own_user(folder.path());
    with_server(&path, user + 1, move || {
        let stream = UnixStream::connect(there).unwrap();
        assert!(line(&stream).contains(&format!("user {user} may not")));
    });
}

#[test]
fn a_peer_is_a_member_of_its_own_groups() {
    let (one, _other) = UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let credentials = tokio::net::UnixStream::from_std(one).unwrap().peer_cred().unwrap();
    let peer = Peer { user: credentials.uid(), group: credentials.gid(), process: credentials.pid() };
    assert!(peer.is_in(credentials.gid()));
    assert!(!peer.is_in(u32::MAX - 7));
}

#[test]
fn a_socket_that_is_shared_with_a_group_is_open_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let group = folder.path().metadata().unwrap().gid();
    let _socket = Socket::bind(&path, None, Some(group)).unwrap();
    let found = path.metadata().unwrap();
    assert_eq!((found.permissions().mode() & 0o777, found.gid()), (0o660, group));
}

#[test]
fn the_socket_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let socket = Socket::bind(&path, None, None).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Socket::bind(&path, None, None).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    drop(socket);
}

#[test]
fn a_socket_left_behind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    Socket::bind(&path, None, None).unwrap();
}

#[test]
fn where_nobody_listens_every_path_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["a.sock", "b.sock"].iter().map(|name| folder.path().join(name)).collect();
    let error = ask(&paths, &Request::Status, Duration::from_secs(1)).unwrap_err().to_string();
    assert!(error.contains("a.sock (not there), ") && error.contains("b.sock (not there)"), "{error}");
}
