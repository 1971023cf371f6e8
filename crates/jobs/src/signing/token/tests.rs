//! What can be tested without a token; the tests of the whole program use one.

use super::*;

use std::fs::{self, Permissions};

#[test]
fn points_are_taken_in_every_form_that_tokens_have() {
    let check = |algorithm, point: &[u8], expect: Option<&[u8]>| {
        assert_eq!(plain_point(algorithm, point).as_deref(), expect, "{algorithm}: {point:02x?}");
    };
    for (algorithm, octets) in [(Algorithm::ECDSAP256SHA256, 64), (Algorithm::ECDSAP384SHA384, 96)] {
        let key = vec![7; octets];
        let bare = [&[4], key.as_slice()].concat();
        check(algorithm, &bare, Some(&key));
        check(algorithm, &[&[4, octets as u8 + 1], bare.as_slice()].concat(), Some(&key));
        // Compressed, cut off, with more behind it.
        check(algorithm, &[&[2], key.as_slice()].concat(), None);
        check(algorithm, &bare[1..], None);
        check(algorithm, &[&[4, octets as u8 + 1], bare.as_slice(), &[0]].concat(), None);
    }
    for (algorithm, octets) in [(Algorithm::ED25519, 32), (Algorithm::ED448, 57)] {
        let key = vec![7; octets];
        check(algorithm, &key, Some(&key));
        check(algorithm, &[&[4, octets as u8], key.as_slice()].concat(), Some(&key));
        check(algorithm, &[&[3, octets as u8 + 1, 0], key.as_slice()].concat(), Some(&key));
        check(algorithm, &key[1..], None);
    }
    check(Algorithm::RSASHA256, &[4; 65], None);
}

#[test]
fn a_pin_is_the_first_line_of_a_file_that_not_everybody_may_read() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("pin");
    let check = |text: &str, mode: u32, expect: Result<&[u8], &str>| {
        fs::write(&path, text).expect("a writable directory");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("our file");
        match (read_pin(&path), expect) {
            (Ok(pin), Ok(expect)) => assert_eq!(pin.as_slice(), expect),
            (Err(why), Err(expect)) => assert!(why.contains(expect) && !why.contains("12345"), "{why}"),
            (found, expect) => panic!("{:?} instead of {expect:?}", found.map(|pin| pin.to_vec())),
        }
    };
    check("12345\n", 0o600, Ok(b"12345"));
    check("12345\r\nmore", 0o400, Ok(b"12345"));
    check("1 23 ", 0o640, Ok(b"1 23 "));
    check("12345", 0o644, Err("everybody may read the PIN"));
    check("\n12345", 0o600, Err("has no PIN in its first line"));
    check(&"12345".repeat(100), 0o600, Err("is too long for a PIN"));
    fs::remove_file(&path).expect("our file");
    assert!(read_pin(&path).expect_err("it is gone").starts_with("cannot read the PIN in "));
}

#[test]
fn what_cannot_be_reached_is_said_with_its_place() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("module.so");
    fs::write(&path, "this is no program").expect("a writable directory");
    let tokens = Arc::new(Tokens::new());
    let generate = |uri: &str| {
        let uri = TokenUri::parse(uri).expect("a URI");
        let outcome = tokens.generate(&uri, "example.org-ksk", Algorithm::ED25519, KeySize::Bits2048);
        outcome.expect_err("there is no token")
    };
    let why = generate(&format!("pkcs11:token=one?module-path={}", path.display()));
    assert!(why.starts_with("cannot make a key: the module cannot be loaded: "), "{why}");
    assert!(why.contains("pkcs11:token=one;object=example.org-ksk-") && why.contains("module.so"), "{why}");
    let why = generate("pkcs11:token=one");
    assert!(why.contains("the URI does not say which module"), "{why}");
    // Nothing is removed that is not named by both.
    for place in ["pkcs11:token=one;object=a", "pkcs11:token=one;id=%01", "pkcs11:token=one"] {
        let why = tokens.destroy(place).expect_err("it does not say which");
        assert!(why.starts_with("only a key with a name and an identifier is removed"), "{why}");
    }
}
