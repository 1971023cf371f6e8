//! A message of DNSCrypt is opened only if its client sealed it; certificates are read or refused.

use std::sync::OnceLock;

use dnscrypt::{
    Certificate, QueryHead, RESPONSE_HEAD_OCTETS, ResolverKey, ResponseKey, Session, System, Travel,
    datagram_limit, generate,
};

/// A resolver and a client of it, for each system.
fn pairs() -> &'static [(ResolverKey, Session); 2] {
    static PAIRS: OnceLock<[(ResolverKey, Session); 2]> = OnceLock::new();
    PAIRS.get_or_init(|| {
        [System::XSalsa20, System::XChaCha20].map(|system| {
            let (secret, key) = generate().expect("a key");
            let certificate = Certificate { system, key, magic: *b"magic678", serial: 1, valid: (1, 9) };
            let session = Session::new(&certificate).expect("a key");
            (ResolverKey::new(certificate, &secret).expect("its key"), session)
        })
    })
}

/// Octets that come to a resolver, and that a client asks with.
pub fn dnscrypt(bytes: &[u8]) {
    drop(Certificate::parse_own(bytes));
    assert!(Certificate::parse(bytes, &[1; 32]).is_err());
    for (resolver, client) in pairs() {
        let mut packet = bytes.to_vec();
        if let Some((head, sealed)) = QueryHead::split(&mut packet)
            && let Ok(shared) = resolver.agree(&head.key)
        {
            assert!(head.open(&shared, sealed).is_err(), "nobody sealed it");
        }
        assert!(client.open(bytes).is_err(), "nobody sealed it");
        let Ok((mut query, nonce)) = client.seal(bytes, Travel::Datagram(256)) else { continue };
        let (head, sealed) = QueryHead::split(&mut query).expect("a query");
        let shared = resolver.agree(&head.key).expect("a key");
        assert_eq!(head.open(&shared, sealed), Ok(bytes));
        // The query itself is the longest answer that its length allows, or cut to it.
        let reply = bytes.get(..datagram_limit(query.len())).unwrap_or(bytes);
        let mut room = vec![0; query.len()];
        room[RESPONSE_HEAD_OCTETS..][..reply.len()].copy_from_slice(reply);
        let len = ResponseKey::new(shared, &head).seal(&mut room, reply.len()).expect("room");
        assert!(len <= query.len());
        assert_eq!(client.open(&room[..len]), Ok((nonce, reply.to_vec())));
    }
}
