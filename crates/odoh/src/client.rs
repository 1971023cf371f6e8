//! The side that asks.

use crate::Wrong;
use crate::hpke::{self, Context, HASH_OCTETS, Public};
use crate::message::{self, Kind, Message};
use crate::target::{PURPOSE, ResponseContext};

/// Queries are filled up to a multiple of this (RFC 8467 §4.1).
const QUERY_BLOCK_OCTETS: usize = 128;

/// What is known of a target: its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    public: Public,
    key_id: [u8; HASH_OCTETS],
}

impl Client {
    /// Reads a target's configurations and takes the first that it can use.
    pub fn from_configs(octets: &[u8]) -> Result<Self, Wrong> {
        let (contents, public) = message::read_configs(octets)?;
        Ok(Self { public, key_id: message::key_id(&contents) })
    }

    /// Encrypts a DNS message for the target; returns also what decrypts the response.
    pub fn seal(&self, query: &[u8]) -> Result<(Vec<u8>, QueryContext), Wrong> {
        let plain = message::pad(query, QUERY_BLOCK_OCTETS)?;
        let (encapsulated, context) = Context::to(&self.public, &hpke::random_key()?, PURPOSE)?;
        let sealed = context.seal(&message::associated(Kind::Query, &self.key_id)?, plain.clone())?;
        let octets = Message::write(Kind::Query, &self.key_id, &[&encapsulated[..], &sealed].concat())?;
        Ok((octets, QueryContext(ResponseContext::new(&context, plain))))
    }
}

/// What decrypts the response to one query.
pub struct QueryContext(ResponseContext);

impl QueryContext {
    /// Decrypts the response; returns the DNS message.
    pub fn open(&self, response: &[u8]) -> Result<Vec<u8>, Wrong> {
        self.0.open(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use proptest::prelude::*;

    fn pair() -> (Target, Client) {
        let target = Target::generate().expect("a key");
        let client = Client::from_configs(&target.configs()).expect("a configuration");
        (target, client)
    }

    #[test]
    fn only_the_target_reads_the_query_and_only_the_client_the_response() {
        let (target, client) = pair();
        let (sealed, context) = client.seal(b"a question").expect("room");
        assert!(!sealed.windows(10).any(|window| window == b"a question"));
        let (query, answer_with) = target.open(&sealed).expect("a query");
        assert_eq!(query, b"a question");
        let response = answer_with.seal(b"an answer").expect("room");
        assert_eq!(context.open(&response), Ok(b"an answer".to_vec()));
        let (_, other) = client.seal(b"a question").expect("room");
        assert_eq!(other.open(&response), Err(Wrong::Sealed));
        assert!(matches!(pair().0.open(&sealed), Err(Wrong::Key)));
    }

    #[test]
    fn equal_queries_look_different_and_have_the_same_length() {
        let (_, client) = pair();
        let [(one, _), (two, _)] = [client.seal(b"aa"), client.seal(b"aaaaaaaa")].map(|it| it.expect("room"));
        assert_eq!(one.len(), two.len());
        assert_ne!(one, client.seal(b"aa").expect("room").0);
    }

    #[test]
    fn when_keys_change_the_old_one_still_opens() {
        let (old, new) = (pair(), pair());
        let configs = Target::configs_of([&new.0, &old.0]);
        let client = Client::from_configs(&configs).expect("configurations");
        assert_eq!(client, new.1);
        let (sealed, _) = old.1.seal(b"q").expect("room");
        let opened = [&new.0, &old.0].into_iter().find_map(|target| target.open(&sealed).ok());
        assert_eq!(opened.map(|(query, _)| query), Some(b"q".to_vec()));
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (target, client) = pair();
            prop_assert!(target.open(&octets).is_err());
            let (_, context) = client.seal(b"q").expect("room");
            prop_assert!(context.open(&octets).is_err());
            drop(Client::from_configs(&octets));
        }

        #[test]
        fn what_is_sealed_can_be_opened(query in proptest::collection::vec(any::<u8>(), 1..2000)) {
            let (target, client) = pair();
            let (sealed, context) = client.seal(&query).expect("room");
            let (opened, answer_with) = target.open(&sealed).expect("a query");
            prop_assert_eq!(&opened, &query);
            let response = answer_with.seal(&opened).expect("room");
            prop_assert_eq!(context.open(&response), Ok(query));
        }
    }
}
