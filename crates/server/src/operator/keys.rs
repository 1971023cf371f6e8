//! Keys of zones that the server signs, as their operator sees and changes them.

use control::api;
use wire::NameBuf;

use super::zones::parse;
use super::{Operator, OperatorError};

impl Operator {
    /// Says how the keys of a zone stand.
    ///
    /// # Errors
    ///
    /// It is not signed here.
    pub fn zone_keys(&self, zone: &str) -> Result<api::ZoneKeys, OperatorError> {
        self.keys_of(&parse(zone)?)
    }

    /// Takes it that the parent has a DS; says how the keys stand then.
    ///
    /// # Errors
    ///
    /// The zone is not signed here, is at work, or no key waits for that.
    pub fn zone_ds_seen(&self, seen: &api::DsSeen) -> Result<api::ZoneKeys, OperatorError> {
        let apex = parse(&seen.zone)?;
        self.components.signing.ds_seen(apex.as_name(), seen.tag)?;
        self.keys_of(&apex)
    }

    /// Has keys replaced; says how they stand then.
    ///
    /// # Errors
    ///
    /// The zone is not signed here, is at work, or has no such key.
    pub fn zone_roll(&self, roll: &api::ZoneRoll) -> Result<api::ZoneKeys, OperatorError> {
        let apex = parse(&roll.zone)?;
        let role = roll.role.parse().map_err(|_| {
            let why = format!("\"{}\" is no kind of key: expected ksk, zsk or csk", roll.role);
            OperatorError::Argument(why)
        })?;
        self.components.signing.roll(apex.as_name(), role)?;
        self.keys_of(&apex)
    }

    fn keys_of(&self, apex: &NameBuf) -> Result<api::ZoneKeys, OperatorError> {
        let Some(state) = self.components.signing.state(apex.as_name()) else {
            return Err(OperatorError::Refused(format!("{apex} is not signed here")));
        };
        let keys = state.keys.into_iter().map(|key| api::ZoneKey {
            tag: key.life.tag,
            algorithm: key.life.algorithm.to_string(),
            role: key.life.role.to_string(),
            state: key.life.state.to_string(),
            since: dnssec::write_compact(key.life.since),
            ds: Some(key.ds).filter(|ds| !ds.is_empty()),
        });
        Ok(api::ZoneKeys {
            zone: apex.to_string(),
            keys: keys.collect(),
            next: (state.again_at > 0 && state.again_at < u64::MAX)
                .then(|| dnssec::write_compact(state.again_at)),
            trouble: state.trouble,
            push: state.push,
        })
    }
}
