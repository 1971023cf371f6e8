//! Updates that are on their way to a primary, so that one that comes back is known.
//!
//! An update is passed on as it came: a signature that covers all of it leaves no room to count
//! hops. Two secondaries that are each other's primaries would pass it to and fro until the
//! patience of each is over. But the same octets that come from somebody else, while they are on
//! their way, can only have come round.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use engine::peers::Done;
use transfer::Patience;
use wire::NameBuf;

use crate::lock::lock;

/// How long a primary may take to answer an update that is passed on: a client waits.
pub(crate) const FORWARD_PATIENCE: Patience = Patience {
    connect: Duration::from_secs(3),
    read: Duration::from_secs(5),
    whole: Duration::from_secs(8),
    notify_tries: 1,
};

/// OnDone what came of an update.
type OnDone = Box<dyn FnOnce(Done) + Send>;

/// What is on its way; as many as may be at a time, so that looking through all of it is cheap.
#[derive(Default)]
pub(crate) struct Forwarded(Mutex<Vec<OnItsWay>>);

struct OnItsWay {
    apex: NameBuf,
    message: Vec<u8>,
    from: (IpAddr, u16),
    /// Those who sent the same once more meanwhile.
    others: Vec<OnDone>,
}

/// What is to become of an update.
pub(crate) enum Way {
    /// It is to be passed on.
    Onward(OnDone),
    /// Its client has sent it before, and is answered when the first is.
    Again,
    /// It has come round.
    Back,
}

impl Forwarded {
    /// Takes in an update.
    pub(crate) fn begin(&self, apex: &NameBuf, message: &[u8], from: (IpAddr, u16), done: OnDone) -> Way {
        let mut all = lock(&self.0);
        match all.iter_mut().find(|known| known.apex == *apex && known.message == message) {
            None => {
                let message = message.to_vec();
                all.push(OnItsWay { apex: *apex, message, from, others: Vec::new() });
                Way::Onward(done)
            }
            Some(known) if known.from == from => {
                known.others.push(done);
                Way::Again
            }
            Some(_) => Way::Back,
        }
    }

    /// Takes an update out; returns who else waits for its reply.
    pub(crate) fn end(&self, apex: &NameBuf, message: &[u8]) -> Vec<OnDone> {
        let mut all = lock(&self.0);
        let place = all.iter().position(|known| known.apex == *apex && known.message == message);
        place.map_or_else(Vec::new, |place| all.swap_remove(place).others)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_comes_from_somebody_else_meanwhile_has_come_round() {
        let apex: NameBuf = "example.org".parse().expect("a name");
        let forwarded = Forwarded::default();
        let (hears, heard) = channel();
        let begin = |message: &[u8], port: u16| {
            let hears = hears.clone();
            let done = Box::new(move |_| hears.send(port).expect("it is heard"));
            forwarded.begin(&apex, message, ([192, 0, 2, 1].into(), port), done)
        };
        let Way::Onward(first) = begin(b"update", 1) else { panic!("it is new") };
        assert!(matches!(begin(b"update", 2), Way::Back));
        assert!(matches!(begin(b"another", 2), Way::Onward(_)));
        assert!(matches!(begin(b"update", 1), Way::Again), "a client that lost patience");
        first(Done::Reply(Vec::new()));
        forwarded.end(&apex, b"update").into_iter().for_each(|other| other(Done::Reply(Vec::new())));
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [1, 1]);
        assert!(matches!(begin(b"update", 2), Way::Onward(_)), "once more, later");
    }
}
