//! One order at one authority (RFC 8555 §7), from the account to the certificate.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use plan::certificates::{AuthorityPlan, CertificatePlan, Challenge, ChallengeWord, Identifier, identity};
use serde_json::{Value, json};
use tracing::{debug, info, warn};
use wire::text::read_base64url;

use crate::Place;
use crate::caa::refusal as refusal_of;
use crate::client::{By, Client, Failure, Reply, checked, said, told};
use crate::jose::{AccountKey, base64url};
use crate::key::{self, Requested};
use crate::record::{folder_of, read_text, write_private};
use crate::web::Web;

/// How long one order may take.
pub(crate) const ORDER_PATIENCE: Duration = Duration::from_secs(5 * 60);
/// How long until an authority is asked again how an order stands, at first and at last.
const POLL_FIRST: Duration = Duration::from_millis(250);
const POLL_LAST: Duration = Duration::from_secs(10);
/// Seconds between accounts that are made in place of ones that are no more.
const REMADE_EVERY: u64 = 24 * 60 * 60;
/// Letters of a token: some dozen are usual.
const TOKEN_LETTERS_MAX: usize = 256;

/// A certificate as it came.
#[derive(Debug)]
pub(crate) struct Issued {
    /// The key and the chain in PEM form.
    pub(crate) pem: String,
}

/// What an order needs of what is around it.
pub(crate) struct Around<'a> {
    pub(crate) place: &'a dyn Place,
    pub(crate) web: &'a dyn Web,
}

/// Removes what was shown to an authority, however its order ends.
struct Shown<'a> {
    place: &'a dyn Place,
    plan: &'a CertificatePlan,
    challenges: Vec<Challenge>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.place.hide(self.plan, &self.challenges);
    }
}

/// Has an authority give a certificate. `replaces` names the one that it takes the place of (RFC
/// 9773 §5). Blocks, for at most about [`ORDER_PATIENCE`].
pub(crate) fn issue(
    plan: &CertificatePlan,
    authority: &AuthorityPlan,
    replaces: Option<&str>,
    around: &Around<'_>,
) -> Result<Issued, Failure> {
    let client = Client::new(authority, around.web, Instant::now() + ORDER_PATIENCE)?;
    if let Some(profile) = &authority.profile
        && !client.directory.profiles.contains(profile)
    {
        let known = client.directory.profiles.join(", ");
        return Err(format!("it has no profile \"{profile}\" (it has: {known})").into());
    }
    check_caa(plan, &client, around.place)?;
    let mut session = Session::begin(client, plan, authority)?;
    session.tell_contacts(authority);
    let order = match session.order(plan, authority, replaces) {
        Err(failure) if session.is_closed(&failure) => {
            session = session.anew(plan, authority)?;
            session.order(plan, authority, replaces)?
        }
        ordered => ordered?,
    };
    session.carry_out(plan, &order, around.place)
}

/// Tells an authority whom it can write to, if the account that there is says another.
pub(crate) fn tell_contacts(
    plan: &CertificatePlan,
    authority: &AuthorityPlan,
    client: Client,
) -> Result<Client, Failure> {
    let place = account_file(plan, authority);
    if !place.exists() || Account::read(&place)?.contact == authority.contact {
        return Ok(client);
    }
    let mut session = Session::begin(client, plan, authority)?;
    session.tell_contacts(authority);
    Ok(session.client)
}

/// Checks that the owners of the names let the authority give certificates for them, as far as that
/// is known.
fn check_caa(plan: &CertificatePlan, client: &Client, place: &dyn Place) -> Result<(), Failure> {
    let identities = &client.directory.identities;
    // An authority that does not say how it is called cannot be recognised.
    if identities.is_empty() {
        return Ok(());
    }
    for identifier in &plan.identifiers {
        let Identifier::Host(host) = identifier else { continue };
        let (is_wildcard, host) = host.strip_prefix("*.").map_or((false, host.as_str()), |rest| (true, rest));
        match place.caa(host) {
            Ok(records) => match refusal_of(&records, identities, is_wildcard) {
                Some(why) => return Err(format!("{identifier}: {why}").into()),
                None => client.time_left().map(drop)?,
            },
            // The authority looks itself.
            Err(why) => debug!(host, why, "CAA records are not known"),
        }
    }
    Ok(())
}

/// Returns where the account at an authority is kept.
fn account_file(plan: &CertificatePlan, authority: &AuthorityPlan) -> PathBuf {
    let bound = authority.binding.as_ref().map_or("", |(key_id, _)| key_id);
    let name = digest(&SHA256, format!("{}\n{bound}", authority.url).as_bytes());
    let name: String = name.as_ref().iter().take(8).map(|octet| format!("{octet:02x}")).collect();
    folder_of(plan).join("accounts").join(format!("{name}.json"))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    format!("\"{}\" cannot be changed: {error}", path.display()).into()
}

/// An order as the authority keeps it.
struct Order {
    url: String,
    authorizations: Vec<String>,
    finalize: String,
}

/// Something that an authority has to look at.
struct Pending {
    authorization: String,
    challenge: String,
    shown: Challenge,
}

/// What is kept of an account.
struct Account {
    file: PathBuf,
    /// The authority's directory.
    directory: String,
    /// The account's URL.
    url: String,
    key: AccountKey,
    /// Whom the authority can write to, as far as it was told.
    contact: Vec<String>,
    /// When it was made in place of one that is gone, in seconds since 1970; 0 of the first.
    remade_at: u64,
}

impl Account {
    fn read(file: &Path) -> Result<Self, Failure> {
        let text = read_text(file)
            .map_err(|error| Failure::from(format!("\"{}\" cannot be read: {error}", file.display())))?;
        let known: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut pkcs8 = Vec::new();
        let (url, key) = (known["account"].as_str(), known["key"].as_str());
        let (Some(url), Some(())) = (url, key.and_then(|key| read_base64url(key.as_bytes(), &mut pkcs8)))
        else {
            return Err(format!("\"{}\" holds no account", file.display()).into());
        };
        let contact = known["contact"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(Self {
            file: file.to_owned(),
            directory: known["directory"].as_str().unwrap_or_default().to_owned(),
            url: url.to_owned(),
            key: AccountKey::read(&pkcs8)?,
            contact: contact.map(str::to_owned).collect(),
            remade_at: known["remade-at"].as_u64().unwrap_or(0),
        })
    }

    fn write(&self) -> Result<(), Failure> {
        let kept = json!({
            "directory": self.directory,
            "account": self.url,
            "key": base64url(self.key.pkcs8()),
            "contact": self.contact,
            "remade-at": self.remade_at,
        });
        write_private(&self.file, kept.to_string().as_bytes()).map_err(|error| cannot(&self.file, &error))
    }
}

/// What is spoken with an authority as one of its accounts.
struct Session {
    client: Client,
    account: Account,
    /// Whether the account was there already.
    is_known: bool,
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Session {
    /// Takes up the account that there is, or makes one.
    fn begin(client: Client, plan: &CertificatePlan, authority: &AuthorityPlan) -> Result<Self, Failure> {
        let file = account_file(plan, authority);
        if file.exists() {
            return Ok(Self { client, account: Account::read(&file)?, is_known: true });
        }
        Self::made(client, authority, file, 0)
    }

    /// Makes an account (RFC 8555 §7.3).
    fn made(
        mut client: Client,
        authority: &AuthorityPlan,
        file: PathBuf,
        remade_at: u64,
    ) -> Result<Self, Failure> {
        let key = AccountKey::generate()?;
        let url = client.directory.new_account.clone();
        let mut payload = json!({"termsOfServiceAgreed": true});
        if !authority.contact.is_empty() {
            payload["contact"] = authority.contact.as_slice().into();
        }
        if let Some((key_id, secret)) = &authority.binding {
            payload["externalAccountBinding"] = key.bound(key_id, secret.reveal(), &url)?;
        }
        let reply = client.post((&key, By::Key), &url, Some(&payload))?;
        let url = reply.location.ok_or("it does not say where the account is")?;
        let url = checked(&url)?.to_owned();
        let (directory, contact) = (authority.url.clone(), authority.contact.clone());
        let account = Account { file, directory, url, key, contact, remade_at };
        account.write()?;
        info!(authority = authority.url, account = account.url, "an account was made");
        Ok(Self { client, account, is_known: false })
    }

    /// Returns whether a request failed because the account that was known is no more: the
    /// authority has forgotten or closed it, or somebody has deactivated it (RFC 8555 §7.3.6).
    fn is_closed(&mut self, failure: &Failure) -> bool {
        match failure.kind.as_str() {
            _ if !self.is_known => false,
            "accountDoesNotExist" => true,
            // Much else is unauthorized, too.
            "unauthorized" => {
                let url = self.account.url.clone();
                match self.post(&url, None) {
                    Ok(reply) => {
                        let state = reply.json().unwrap_or_default();
                        matches!(state["status"].as_str(), Some("deactivated" | "revoked"))
                    }
                    Err(failure) => {
                        matches!(failure.kind.as_str(), "unauthorized" | "accountDoesNotExist")
                    }
                }
            }
            _ => false,
        }
    }

    /// Makes another account in place of one that is no more. An authority that closes one after
    /// the other gets one a day.
    fn anew(self, plan: &CertificatePlan, authority: &AuthorityPlan) -> Result<Self, Failure> {
        let now = unix_seconds();
        if now < self.account.remade_at.saturating_add(REMADE_EVERY) {
            return Err("the account is gone, and was made anew less than a day ago".into());
        }
        warn!(
            authority = authority.url,
            account = self.account.url,
            "the account is gone at the authority; another one is made"
        );
        Self::made(self.client, authority, account_file(plan, authority), now)
    }

    /// Tells the authority whom it can write to, if that is not what it knows (RFC 8555 §7.3.2).
    /// Where that fails, nothing is missing but what it would write: it is tried again with the
    /// next order.
    fn tell_contacts(&mut self, authority: &AuthorityPlan) {
        if self.account.contact == authority.contact {
            return;
        }
        let url = self.account.url.clone();
        let told = self.post(&url, Some(&json!({"contact": authority.contact}))).and_then(|_| {
            self.account.contact.clone_from(&authority.contact);
            self.account.write()
        });
        match told {
            Ok(()) => info!(authority = authority.url, "the authority knows the contacts"),
            Err(failure) => {
                let why = &failure.why;
                warn!(authority = authority.url, why, "the authority was not told the contacts");
            }
        }
    }

    fn post(&mut self, url: &str, payload: Option<&Value>) -> Result<Reply, Failure> {
        self.client.post((&self.account.key, By::Account(&self.account.url)), url, payload)
    }

    /// Orders a certificate (RFC 8555 §7.4).
    fn order(
        &mut self,
        plan: &CertificatePlan,
        authority: &AuthorityPlan,
        replaces: Option<&str>,
    ) -> Result<Order, Failure> {
        let identifiers: Vec<Value> = plan.identifiers.iter().map(identifier_json).collect();
        let mut payload = json!({"identifiers": identifiers});
        if let Some(profile) = &authority.profile {
            payload["profile"] = profile.as_str().into();
        }
        let replaces = replaces.filter(|_| self.client.directory.renewal_info.is_some());
        if let Some(replaces) = replaces {
            payload["replaces"] = replaces.into();
        }
        let url = self.client.directory.new_order.clone();
        let reply = match self.post(&url, Some(&payload)) {
            // RFC 9773 §5: replaced by an order that came to nothing, or of another authority.
            Err(failure)
                if replaces.is_some() && matches!(failure.kind.as_str(), "alreadyReplaced" | "malformed") =>
            {
                payload.as_object_mut().map(|payload| payload.remove("replaces"));
                self.post(&url, Some(&payload))?
            }
            replied => replied?,
        };
        let url = reply.location.as_deref().ok_or("it does not say where the order is")?;
        let url = checked(url)?.to_owned();
        let order = reply.json()?;
        let finalize =
            checked(order["finalize"].as_str().ok_or("the order cannot be finalized")?)?.to_owned();
        let authorizations = order["authorizations"].as_array().ok_or("the order has no authorizations")?;
        if authorizations.len() > plan.identifiers.len() {
            return Err("the order has more authorizations than names".into());
        }
        let urls = authorizations.iter().map(|url| checked(url.as_str().unwrap_or("")).map(str::to_owned));
        Ok(Order { url, authorizations: urls.collect::<Result<_, _>>()?, finalize })
    }

    /// Shows what the authority wants to see, and fetches the certificate.
    fn carry_out(
        &mut self,
        plan: &CertificatePlan,
        order: &Order,
        place: &dyn Place,
    ) -> Result<Issued, Failure> {
        let mut pending = Vec::new();
        for url in &order.authorizations {
            pending.extend(self.pending(plan, url)?);
        }
        let challenges: Vec<Challenge> = pending.iter().map(|pending| pending.shown.clone()).collect();
        {
            let shown = Shown { place, plan, challenges };
            if !shown.challenges.is_empty() {
                place.show(plan, &shown.challenges)?;
            }
            for Pending { challenge, .. } in &pending {
                self.post(challenge, Some(&json!({})))?;
            }
            for Pending { authorization, .. } in &pending {
                self.authorized(authorization)?;
            }
        }
        self.until(&order.url, &["ready"])?;
        let Requested { key_pem, request } = key::request(plan.key, &plan.identifiers)?;
        self.post(&order.finalize, Some(&json!({"csr": base64url(&request)})))?;
        let done = self.until(&order.url, &["valid"])?;
        let url = checked(done["certificate"].as_str().ok_or("the order has no certificate")?)?.to_owned();
        let chain = self.post(&url, None)?.body;
        let chain = String::from_utf8(chain).map_err(|_| "the certificate is no text")?;
        let pem = format!("{key_pem}{chain}");
        check(plan, &pem)?;
        Ok(Issued { pem })
    }

    /// Returns what has to be shown for one name; `None` if the authority believes it already.
    fn pending(&mut self, plan: &CertificatePlan, url: &str) -> Result<Option<Pending>, Failure> {
        let authorization = self.post(url, None)?.json()?;
        let value = authorization["identifier"]["value"].as_str().unwrap_or("");
        let is_it = |identifier: &&Identifier| match identifier {
            Identifier::Host(host) => host.strip_prefix("*.").unwrap_or(host).eq_ignore_ascii_case(value),
            Identifier::Address(address) => value.parse() == Ok(*address),
        };
        let Some(identifier) = plan.identifiers.iter().find(is_it) else {
            return Err(format!("it asks about \"{}\", which was not ordered", said(value)).into());
        };
        match authorization["status"].as_str() {
            Some("valid") => return Ok(None),
            Some("pending") => {}
            _ => return Err(format!("{identifier}: {}", refusal(&authorization)).into()),
        }
        let offered = || authorization["challenges"].as_array().into_iter().flatten();
        let wanted = plan.challenge.word();
        let Some(challenge) = offered().find(|challenge| challenge["type"] == wanted) else {
            let kinds: Vec<String> =
                offered().filter_map(|challenge| challenge["type"].as_str()).map(said).collect();
            return Err(
                format!("{identifier}: it offers no {wanted} (it offers {})", kinds.join(", ")).into()
            );
        };
        let token = challenge["token"].as_str().unwrap_or("");
        // RFC 8555 §8.1. It becomes a part of a path.
        let is_letter = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        if token.is_empty() || token.len() > TOKEN_LETTERS_MAX || !token.bytes().all(is_letter) {
            return Err(format!("{identifier}: the token of its challenge is no base64url").into());
        }
        let text = format!("{token}.{}", self.account.key.thumbprint());
        let shown = match plan.challenge {
            ChallengeWord::Http => Challenge::File { token: token.to_owned(), text },
            ChallengeWord::TlsAlpn => key::handshake(identifier, &text)?,
            ChallengeWord::Dns => {
                let owner = format!("_acme-challenge.{}", value.to_ascii_lowercase());
                let owner =
                    owner.parse().map_err(|_| format!("{identifier}: no record can be at \"{owner}\""))?;
                Challenge::Record { owner, text: base64url(digest(&SHA256, text.as_bytes()).as_ref()) }
            }
        };
        let challenge = checked(challenge["url"].as_str().unwrap_or(""))?.to_owned();
        Ok(Some(Pending { authorization: url.to_owned(), challenge, shown }))
    }

    /// Waits until the authority has seen what it looked for.
    fn authorized(&mut self, url: &str) -> Result<(), Failure> {
        self.until(url, &["valid"]).map(drop)
    }

    /// Asks how something stands until it is in one of these states.
    fn until(&mut self, url: &str, states: &[&str]) -> Result<Value, Failure> {
        let mut pause = POLL_FIRST;
        loop {
            let reply = self.post(url, None)?;
            let found = reply.json()?;
            match found["status"].as_str() {
                Some(state) if states.contains(&state) => return Ok(found),
                Some("pending" | "processing" | "ready") => {}
                _ => return Err(refusal(&found).into()),
            }
            let left = self.client.time_left()?;
            std::thread::park_timeout(
                reply.retry_after.unwrap_or(pause).clamp(POLL_FIRST, POLL_LAST).min(left),
            );
            pause = (pause * 2).min(POLL_LAST);
        }
    }
}

fn identifier_json(identifier: &Identifier) -> Value {
    match identifier {
        Identifier::Host(host) => json!({"type": "dns", "value": host}),
        Identifier::Address(address) => json!({"type": "ip", "value": address.to_string()}),
    }
}

/// Returns why an order or an authorization came to nothing.
fn refusal(found: &Value) -> String {
    let challenges = found["challenges"].as_array();
    let of_challenge = challenges.into_iter().flatten().find_map(|challenge| told(&challenge["error"]));
    let name =
        found["identifier"]["value"].as_str().map(|name| format!("{}: ", said(name))).unwrap_or_default();
    let state = || format!("it is {}", said(found["status"].as_str().unwrap_or("in no state")));
    format!("{name}{}", told(&found["error"]).or(of_challenge).unwrap_or_else(state))
}

/// Checks that a certificate is the one that was ordered.
fn check(plan: &CertificatePlan, pem: &str) -> Result<(), Failure> {
    let (_, facts) =
        identity(pem.as_bytes()).map_err(|why| format!("its certificate cannot be used: {why}"))?;
    let names: Vec<String> = facts.names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let missing = plan.identifiers.iter().find(|identifier| !names.contains(&identifier.to_string()));
    if let Some(missing) = missing {
        return Err(format!("its certificate is not for {missing}").into());
    }
    // One for more would never count as what was ordered, and would be ordered for ever.
    let wanted: Vec<String> = plan.identifiers.iter().map(ToString::to_string).collect();
    if let Some(other) = names.iter().find(|name| !wanted.contains(name)) {
        return Err(format!("its certificate is for {} as well", said(other)).into());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if u64::try_from(facts.ends).unwrap_or(0) <= now {
        return Err("its certificate has expired already".into());
    }
    Ok(())
}
