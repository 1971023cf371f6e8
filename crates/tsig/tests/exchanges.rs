//! What two servers with a key say to each other, and what they do not believe.

use std::sync::Arc;

use tsig::{Algorithm, Broken, Key, Keys, Signer, TsigError, sign_request, split, verify};
use wire::{Class, Flags, Header, Message, NameBuf, Question, Rcode, Rtype, Section, Ttl, Writer};

const NOW: u64 = 1_795_176_000;

fn key(algorithm: Algorithm, secret: &[u8], bits: Option<u16>) -> Arc<Key> {
    let name = NameBuf::from_text("Key.example.org").expect("a name");
    Arc::new(Key::new(name.as_name(), algorithm, secret, bits).expect("a key"))
}

fn query() -> Vec<u8> {
    let name = NameBuf::from_text("example.org").expect("a name");
    let mut message = vec![0; 512];
    let mut writer = Writer::new(&mut message, 512, 4711, Flags(0));
    writer
        .question(&Question { qname: name.as_name(), qtype: Rtype::AXFR, qclass: Class::IN })
        .expect("room");
    let len = writer.finish();
    message.truncate(len);
    message
}

fn reply(text: &[u8]) -> Vec<u8> {
    let name = NameBuf::from_text("example.org").expect("a name");
    let mut message = vec![0; 512];
    let mut writer = Writer::new(&mut message, 512, 4711, Flags::QR);
    let ttl = Ttl::new(60);
    writer
        .record(Section::Answer, name.as_name(), Rtype::TXT, Class::IN, ttl, |writer| writer.bytes(text))
        .expect("room");
    let len = writer.finish();
    message.truncate(len);
    message
}

fn heard(request: &[u8], key: &Arc<Key>, now: u64) -> Result<Signer, (TsigError, Vec<u8>)> {
    let signed = split(request).expect("a message").expect("a signature");
    verify(&signed, &Keys::new([Arc::clone(key)]), now).map_err(|refusal| (refusal.error, refusal.reply))
}

#[test]
fn what_is_signed_is_believed_with_every_algorithm() {
    for algorithm in Algorithm::ALL {
        for bits in [None, Some((algorithm.octets_min() * 8) as u16)] {
            let key = key(algorithm, b"a secret", bits);
            let mut request = query();
            let mut verifier = sign_request(&key, &mut request, NOW);
            assert!(request.len() <= query().len() + key.record_octets());
            let mut signer =
                heard(&request, &key, NOW + 299).unwrap_or_else(|(error, _)| panic!("{error:?}"));
            assert_eq!(split(&request).expect("a message").expect("signed").message(), query());
            for (text, number) in [(&b"\x05first"[..], 1), (b"\x06second", 2), (b"\x05third", 3)] {
                let mut message = reply(text);
                signer.sign(&mut message, NOW + number);
                assert_eq!(verifier.take(&message, NOW).as_deref(), Ok(&reply(text)[..]), "{algorithm:?}");
            }
            assert!(verifier.is_complete());
        }
    }
}

#[test]
fn one_flipped_bit_anywhere_is_noticed() {
    let key = key(Algorithm::Sha256, b"a secret", None);
    let mut request = query();
    sign_request(&key, &mut request, NOW);
    for at in 0..request.len() * 8 {
        let mut other = request.clone();
        other[at / 8] ^= 1 << (at % 8);
        let Ok(Some(signed)) = split(&other) else { continue };
        // The ID may change on the way: a forwarder gives it another, and the record keeps the
        // first.
        let is_id = at < 16;
        // Letter case of names in the record is not digested.
        let key_at = query().len();
        let algorithm_at = key_at + signed.key.as_name().len() + 10;
        let is_name = (key_at..key_at + 17).contains(&(at / 8))
            || (algorithm_at..algorithm_at + 13).contains(&(at / 8));
        let is_case = is_name && other.eq_ignore_ascii_case(&request);
        assert_eq!(heard(&other, &key, NOW).is_ok(), is_id || is_case, "bit {at}");
    }
}

fn check(sent: &Arc<Key>, held: &Arc<Key>, now: u64, expect: TsigError) -> Vec<u8> {
    let mut request = query();
    sign_request(sent, &mut request, NOW);
    match heard(&request, held, now) {
        Ok(_) => panic!("believed, expected {expect:?}"),
        Err((error, reply)) => {
            assert_eq!(error, expect);
            let parsed = Message::parse(&reply).expect("a reply");
            assert_eq!((parsed.header.id, parsed.rcode()), (4711, Rcode::NOTAUTH));
            assert_eq!(split(&reply).expect("a message").expect("a record").error, expect);
            reply
        }
    }
}

#[test]
fn errors_are_those_of_rfc_8945() {
    let sha256 = key(Algorithm::Sha256, b"a secret", None);
    let unsigned = |reply: &[u8]| split(reply).expect("fine").expect("a record").mac.is_empty();
    // §5.2.1, §5.2.2: whoever does not have the key cannot be told anything that is signed.
    assert!(unsigned(&check(&key(Algorithm::Sha512, b"a secret", None), &sha256, NOW, TsigError::BADKEY)));
    assert!(unsigned(&check(&key(Algorithm::Sha256, b"another", None), &sha256, NOW, TsigError::BADSIG)));
    // §5.2.3: signed, with our time beside the client's.
    let late = check(&sha256, &sha256, NOW + 301, TsigError::BADTIME);
    let record = split(&late).expect("fine").expect("a record");
    assert_eq!((record.time, record.other), (NOW, &(NOW + 301).to_be_bytes()[2..]));
    assert_eq!(record.mac.len(), 32);
    check(&sha256, &sha256, NOW - 301, TsigError::BADTIME);
    // §5.2.2.1.
    let short = key(Algorithm::Sha256, b"a secret", Some(128));
    check(&short, &sha256, NOW, TsigError::BADTRUNC);
    let name = NameBuf::from_text("k").expect("a name");
    assert!(Key::new(name.as_name(), Algorithm::Sha256, b"x", Some(120)).is_err(), "less than half");
    assert!(Key::new(name.as_name(), Algorithm::Sha256, b"x", Some(129)).is_err(), "not whole octets");
    assert!(Key::new(name.as_name(), Algorithm::Sha256, b"", None).is_err(), "no secret");
    assert!(!format!("{sha256:?}").contains("a secret"));
}

#[test]
fn an_error_of_the_server_is_told() {
    let key = key(Algorithm::Sha256, b"a secret", None);
    for (now, expect) in [(NOW + 301, TsigError::BADTIME), (NOW - 400, TsigError::BADTIME)] {
        let mut request = query();
        let mut verifier = sign_request(&key, &mut request, NOW);
        let Err((_, reply)) = heard(&request, &key, now) else { panic!("believed") };
        assert_eq!(verifier.take(&reply, NOW), Err(Broken::Server(expect)));
    }
}

#[test]
fn ninety_nine_messages_in_a_row_need_no_signature() {
    let key = key(Algorithm::Sha1, b"a secret", None);
    let begin = || {
        let mut request = query();
        let mut verifier = sign_request(&key, &mut request, NOW);
        let mut signer = heard(&request, &key, NOW).unwrap_or_else(|(error, _)| panic!("{error:?}"));
        let mut first = reply(b"\x01a");
        signer.sign(&mut first, NOW);
        verifier.take(&first, NOW).expect("signed");
        (verifier, signer)
    };
    let (mut verifier, _) = begin();
    for _ in 0..99 {
        verifier.take(&reply(b"\x01b"), NOW).expect("not yet a hundred");
        assert!(!verifier.is_complete());
    }
    assert_eq!(verifier.take(&reply(b"\x01b"), NOW), Err(Broken::Unsigned));
    // The first must be.
    let mut request = query();
    let mut verifier = sign_request(&key, &mut request, NOW);
    assert_eq!(verifier.take(&reply(b"\x01a"), NOW), Err(Broken::Unsigned));
    // What was left out of a stream is missed at the next signature.
    let (mut verifier, mut signer) = begin();
    let mut second = reply(b"\x01b");
    signer.sign(&mut second, NOW);
    let mut third = reply(b"\x01c");
    signer.sign(&mut third, NOW);
    assert_eq!(verifier.take(&third, NOW), Err(Broken::Mac));
    let (mut verifier, mut signer) = begin();
    let mut second = reply(b"\x01b");
    signer.sign(&mut second, NOW + 1000);
    assert_eq!(verifier.take(&second, NOW), Err(Broken::Time));
}

#[test]
fn a_record_that_is_not_the_last_is_no_signature() {
    let key = key(Algorithm::Sha256, b"a secret", None);
    let mut request = query();
    sign_request(&key, &mut request, NOW);
    let mut twice = request.clone();
    let record = &request[query().len()..];
    twice.extend_from_slice(record);
    let header = Header::parse(&twice).expect("a header");
    let header = Header { additionals: 2, ..header };
    twice[..Header::LEN].copy_from_slice(&header.to_bytes());
    assert!(split(&twice).is_err());
    assert!(split(&query()).expect("a message").is_none());
    assert!(split(b"short").is_err());
}

#[test]
fn a_name_that_leads_into_the_signature_is_refused_without_the_question() {
    let key = key(Algorithm::Sha256, b"a secret", None);
    let other = self::key(Algorithm::Sha256, b"another secret", None);
    let mut request = vec![0x12, 0x67, 1, 0, 0, 1, 0, 0, 0, 0, 0, 2];
    request.extend_from_slice(&[0, 0, 6, 0, 1]);
    // A label in the data of this record goes on through the next one and ends with the key's name.
    request.extend_from_slice(&[0, 0, 16, 0, 1, 0, 0, 0, 0, 0, 1]);
    let label_at = request.len();
    request.push(28);
    request.extend_from_slice(&[0xc0, label_at as u8, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0]);
    sign_request(&key, &mut request, NOW);
    let Err((error, reply)) = heard(&request, &other, NOW) else { panic!("it is believed") };
    assert_eq!(error, TsigError::BADSIG);
    let reply = Message::parse(&reply).expect("a message");
    let Header { id, flags, questions, additionals, .. } = reply.header;
    assert_eq!((id, flags.rcode(), questions, additionals), (0x1267, Rcode::NOTAUTH, 0, 1));
    assert!(
        Message::parse(split(&request).expect("a message").expect("signed").message().as_slice()).is_err()
    );
}
