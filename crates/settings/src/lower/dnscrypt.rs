//! Who the server is over DNSCrypt: the tree to settings.

use std::path::PathBuf;

use diagnostic::{At, Problem};
use plan::listeners::TransportWord;
use values::Misread;
use wire::NameBuf;

use super::notation::path;
use super::{Lowering, Section};
use crate::groups::{Dnscrypt, Listener};

impl Lowering<'_> {
    pub(super) fn dnscrypt(&mut self, root: &Section<'_>, listeners: Option<&[Listener]>) -> Dnscrypt {
        let section = self.section(root, "dnscrypt");
        let provider = self.optional(&section, "provider", |lowering, _, node| {
            lowering.read(node, "a name such as 2.dnscrypt-cert.example.org", |text| {
                text.parse::<NameBuf>().map_err(|error| Misread::whole(text, error.to_string()))
            })
        });
        let mut files = |key| -> Vec<At<PathBuf>> {
            let files = self.list(&section, key, |_, _, scalar| path(&scalar.text));
            let place = |at: At<PathBuf>| At { value: self.beside(at.span.file, &at.value), span: at.span };
            files.into_iter().map(place).collect()
        };
        let (keys, certificates) = (files("keys"), files("certificates"));
        let rotated = files("rotated-certificates");
        let dnscrypt = Dnscrypt {
            provider,
            keys,
            certificates,
            rotated,
            agreed_octets: self.size(&section, "client-keys"),
            replay_octets: self.size(&section, "replay-memory"),
        };
        self.check_dnscrypt(&dnscrypt, listeners);
        dnscrypt
    }

    /// Checks that listeners for DNSCrypt have what they need, and that somebody needs it.
    fn check_dnscrypt(&mut self, dnscrypt: &Dnscrypt, listeners: Option<&[Listener]>) {
        let speaks = |it: &&Listener| it.speaks.contains(&TransportWord::Dnscrypt);
        let listener = listeners.into_iter().flatten().find(speaks);
        let Dnscrypt { provider, keys, certificates, rotated, .. } = dnscrypt;
        match (listener, provider) {
            (Some(listener), None) => self.problems.push(
                Problem::error(listener.at.span, "the provider of this listener has no name")
                    .expected("one under \"dnscrypt: provider:\", such as 2.dnscrypt-cert.example.org"),
            ),
            (Some(listener), Some(_)) if certificates.is_empty() && rotated.is_empty() => self.problems.push(
                Problem::error(listener.at.span, "there is no certificate for this listener")
                    .expected("one under \"dnscrypt: certificates:\"")
                    .hint("\"gannet dnscrypt certificate\" makes one"),
            ),
            (Some(_), Some(_)) => {}
            (None, _) => {
                let provider = provider.as_ref().map(|at| at.span);
                let first = provider
                    .or_else(|| [keys, certificates, rotated].into_iter().flatten().map(|at| at.span).next());
                if let Some(span) = first {
                    let message = "\"dnscrypt\" is not used: no listener speaks it";
                    let hint = "see \"transport\" under \"listen\"";
                    self.problems.push(Problem::warning(span, message).hint(hint));
                }
            }
        }
    }
}
