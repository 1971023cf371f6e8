//! Private keys in PKCS#11 tokens: hardware modules, and programs that behave like them.
//!
//! A module is loaded once, a token is logged in to once, and sessions with it are shared by the
//! threads that sign. Nothing is asked of a token before something is signed in it: what was signed
//! before is served without it. When a session is lost, all is begun anew, once; a PIN that was
//! refused is not tried again until its file has another one, so that trying does not lock the
//! token.
//!
//! # Limitations
//!
//! A module that does not return from a call holds up the thread that signs.

mod said;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::RawAuthPin;
use dnssec::{Algorithm, Holder, KeySize, SecretKey, Unusable};
use values::{TokenFact, TokenUri};
use zeroize::Zeroizing;

use said::said;

use crate::lock;

/// Sessions with one token: more threads wait for each other. Tokens have bounds of their own,
/// often small ones.
const SESSIONS_MAX: usize = 16;
/// Octets that a file with a PIN may have.
const PIN_OCTETS_MAX: u64 = 256;
/// Octets of the identifier of a key that is made here.
const ID_OCTETS: usize = 16;

/// The tokens of this process.
#[derive(Default)]
pub struct Tokens {
    modules: Mutex<BTreeMap<PathBuf, Arc<Module>>>,
    /// How many times a token was logged in to: handles of objects are good for one of them.
    logins: AtomicU64,
}

/// A module and the tokens that it has been asked for.
#[derive(Default)]
struct Module(Mutex<Opened>);

#[derive(Default)]
struct Opened {
    library: Option<Pkcs11>,
    /// By their URIs.
    tokens: BTreeMap<String, Arc<Token>>,
    /// Those that were lost, as long as some thread may still be in one of their sessions.
    lost: Vec<Weak<Token>>,
    /// PINs that were refused, by the URIs of their tokens.
    refused: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Sessions first.
        self.tokens.clear();
        if let Some(library) = self.library.take() {
            let _ = library.finalize();
        }
    }
}

/// A token that was logged in to.
struct Token {
    library: Pkcs11,
    slot: Slot,
    login: u64,
    sessions: Mutex<Sessions>,
    freed: Condvar,
}

#[derive(Default)]
struct Sessions {
    idle: Vec<Session>,
    /// How many there are, with those in use.
    open: usize,
}

/// Why something could not be done with a token.
enum TokenError {
    /// The module says so.
    Module(Error),
    /// In words.
    Words(String),
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        Self::Module(error)
    }
}

impl From<String> for TokenError {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl TokenError {
    /// Returns whether it may go if the token is logged in to anew.
    fn is_loss(&self) -> bool {
        let Self::Module(Error::Pkcs11(code, _)) = self else { return false };
        matches!(
            code,
            RvError::SessionHandleInvalid
                | RvError::SessionClosed
                | RvError::UserNotLoggedIn
                | RvError::TokenNotPresent
                | RvError::TokenNotRecognized
                | RvError::SlotIdInvalid
                | RvError::DeviceRemoved
                | RvError::DeviceError
                | RvError::CryptokiNotInitialized
                | RvError::GeneralError
                | RvError::FunctionFailed
                | RvError::ObjectHandleInvalid
                | RvError::KeyHandleInvalid
        )
    }

    fn words(self) -> String {
        match self {
            Self::Module(error) => said(&error),
            Self::Words(words) => words,
        }
    }
}

/// Returns a URI as messages show it, with what was being done.
fn at(uri: &TokenUri, doing: &str, trouble: TokenError) -> String {
    format!("cannot {doing}: {}: {}", trouble.words(), uri)
}

impl Tokens {
    /// Knows no token yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns who holds the key of a label, as files of keys say it. The token is not asked.
    ///
    /// If it is the token that `reached` names, module and PIN are those that `reached` says: they
    /// may have moved.
    pub fn holder(
        self: &Arc<Self>,
        algorithm: Algorithm,
        label: &str,
        reached: Option<&TokenUri>,
    ) -> Result<Arc<dyn Holder>, String> {
        let mut uri = TokenUri::parse(label).map_err(|misread| {
            let hint = misread.hint.map_or_else(String::new, |hint| format!("; {hint}"));
            format!("the label of the key is no PKCS#11 URI that can be used: {}{hint}", misread.message)
        })?;
        if let Some(reached) = reached.filter(|reached| reached.facts == uri.facts) {
            uri.module.clone_from(&reached.module);
            uri.pin_source.clone_from(&reached.pin_source);
        }
        Ok(Arc::new(self.key(algorithm, uri)))
    }

    fn key(self: &Arc<Self>, algorithm: Algorithm, uri: TokenUri) -> TokenKey {
        TokenKey { tokens: Arc::clone(self), place: uri.to_string(), uri, algorithm, known: Mutex::default() }
    }

    /// Makes a key in a token; nobody else will ever see its private part. `name` becomes part of
    /// its label.
    pub fn generate(
        self: &Arc<Self>,
        token: &TokenUri,
        name: &str,
        algorithm: Algorithm,
        size: KeySize,
    ) -> Result<SecretKey, String> {
        let mut id = vec![0; ID_OCTETS];
        getrandom::fill(&mut id).map_err(|error| format!("no randomness: {error}"))?;
        let number: String = id.iter().take(4).map(|octet| format!("{octet:02x}")).collect();
        let uri = token.token().with_key(format!("{name}-{number}"), id);
        let public = self
            .with_token(&uri, |token| generate(&token.own_session()?, &uri, algorithm, size))
            .map_err(|trouble| at(&uri, "make a key", trouble))?;
        self.held(algorithm, &public, uri)
    }

    /// Finds a key that is in its token already. Its algorithm is found out, but for RSA keys, of
    /// which `algorithm` says it.
    pub fn find(self: &Arc<Self>, uri: &TokenUri, algorithm: Option<Algorithm>) -> Result<SecretKey, String> {
        let (algorithm, public) = self
            .with_token(uri, |token| token.in_session(|session| public_part(session, uri, algorithm)))
            .map_err(|trouble| at(uri, "take the key over", trouble))?;
        self.held(algorithm, &public, uri.clone())
    }

    fn held(
        self: &Arc<Self>,
        algorithm: Algorithm,
        public: &[u8],
        uri: TokenUri,
    ) -> Result<SecretKey, String> {
        let key = self.key(algorithm, uri);
        let place = key.place.clone();
        SecretKey::held(algorithm, public, Arc::new(key)).map_err(|why| format!("{why}: {place}"))
    }

    /// Removes a key from its token, for good. One that is not there is no mistake.
    pub fn destroy(&self, place: &str) -> Result<(), String> {
        let uri = TokenUri::parse(place).map_err(|misread| misread.message)?;
        if uri.object.is_none() || uri.id.is_none() {
            return Err(format!("only a key with a name and an identifier is removed: {uri}"));
        }
        let destroy = |token: &Token| {
            let session = token.own_session()?;
            for class in [ObjectClass::PRIVATE_KEY, ObjectClass::PUBLIC_KEY] {
                for object in session.find_objects(&wanted(&uri, class)?)? {
                    session.destroy_object(object)?;
                }
            }
            Ok(())
        };
        self.with_token(&uri, destroy).map_err(|trouble| at(&uri, "remove the key", trouble))
    }

    /// Does something with a token, twice if it was lost.
    fn with_token<T>(
        &self,
        uri: &TokenUri,
        act: impl Fn(&Token) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let path = uri.module.as_deref().ok_or_else(|| {
            "the URI does not say which module speaks with the token (?module-path=)".to_owned()
        })?;
        let module = Arc::clone(lock(&self.modules).entry(path.to_owned()).or_default());
        let name = uri.token().to_string();
        let token = module.token(path, uri, &name, &self.logins)?;
        match act(&token) {
            Err(trouble) if trouble.is_loss() => {
                module.forget(&name, &token);
                drop(token);
                act(&*module.token(path, uri, &name, &self.logins)?)
            }
            outcome => outcome,
        }
    }
}

impl Module {
    /// Returns a token, logged in to.
    fn token(
        &self,
        path: &Path,
        uri: &TokenUri,
        name: &str,
        logins: &AtomicU64,
    ) -> Result<Arc<Token>, TokenError> {
        let mut opened = lock(&self.0);
        if let Some(token) = opened.tokens.get(name) {
            return Ok(Arc::clone(token));
        }
        let library = match &opened.library {
            Some(library) => library.clone(),
            None => {
                let library = load(path)?;
                opened.library.insert(library).clone()
            }
        };
        let mut slots = matching(&library, uri);
        // Some modules look for tokens only when they begin. Nobody may be in a session then.
        opened.lost.retain(|token| token.strong_count() > 0);
        if !matches!(&slots, Ok(slots) if !slots.is_empty())
            && opened.tokens.is_empty()
            && opened.lost.is_empty()
        {
            let _ = library.clone().finalize();
            initialise(&library)?;
            slots = matching(&library, uri);
        }
        let slot = match slots?.as_slice() {
            [slot] => *slot,
            [] => return Err("the module has no such token".to_owned().into()),
            several => {
                let count = several.len();
                return Err(format!("{count} tokens are like this; say more of the one that is meant").into());
            }
        };
        let session = library.open_ro_session(slot)?;
        self.log_in(&mut opened, &library, slot, &session, uri, name)?;
        let token = Arc::new(Token {
            library,
            slot,
            login: logins.fetch_add(1, Ordering::Relaxed),
            sessions: Mutex::new(Sessions { idle: vec![session], open: 1 }),
            freed: Condvar::new(),
        });
        opened.tokens.insert(name.to_owned(), Arc::clone(&token));
        Ok(token)
    }

    fn log_in(
        &self,
        opened: &mut Opened,
        library: &Pkcs11,
        slot: Slot,
        session: &Session,
        uri: &TokenUri,
        name: &str,
    ) -> Result<(), TokenError> {
        let about = library.get_token_info(slot)?;
        let outcome = match &uri.pin_source {
            Some(path) => {
                let pin = read_pin(path)?;
                if opened.refused.get(name) == Some(&pin) {
                    let shown = path.display();
                    return Err(format!(
                        "the PIN in \"{shown}\" was refused before; it is tried again when another one is in the file"
                    )
                    .into());
                }
                let secret = RawAuthPin::new(Box::new(pin.to_vec()));
                let outcome = session.login_with_raw(UserType::User, &secret);
                opened.refused.remove(name);
                if let Err(Error::Pkcs11(
                    RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange | RvError::PinLocked,
                    _,
                )) = outcome
                {
                    opened.refused.insert(name.to_owned(), pin);
                }
                outcome
            }
            None if !about.login_required() => Ok(()),
            // It has a keyboard of its own, or the like.
            None if about.protected_authentication_path() => session.login(UserType::User, None),
            None => {
                return Err("the token wants a PIN; name a file that has it: pin-source=file:"
                    .to_owned()
                    .into());
            }
        };
        match outcome {
            // Another URI of the same token came first.
            Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    /// Has a token logged in to anew when it is needed next, unless that has been done.
    fn forget(&self, name: &str, token: &Arc<Token>) {
        let mut opened = lock(&self.0);
        if opened.tokens.get(name).is_some_and(|known| Arc::ptr_eq(known, token)) {
            opened.tokens.remove(name);
            opened.lost.push(Arc::downgrade(token));
        }
    }
}

fn load(path: &Path) -> Result<Pkcs11, TokenError> {
    let library = Pkcs11::new(path).map_err(|error| match error {
        Error::LibraryLoading(why) => TokenError::Words(format!("the module cannot be loaded: {why}")),
        Error::MissingSymbol(_) => TokenError::Words("this is no PKCS#11 module".to_owned()),
        error => error.into(),
    })?;
    initialise(&library)?;
    Ok(library)
}

fn initialise(library: &Pkcs11) -> Result<(), TokenError> {
    match library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a PIN: the first line of a file that not everybody may read.
fn read_pin(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let shown = path.display();
    let cannot = |error: std::io::Error| format!("cannot read the PIN in \"{shown}\": {error}");
    let about = std::fs::metadata(path).map_err(cannot)?;
    if about.permissions().mode() & 0o007 != 0 {
        return Err(format!("everybody may read the PIN in \"{shown}\"; chmod 600 it"));
    }
    if about.len() > PIN_OCTETS_MAX {
        return Err(format!("\"{shown}\" is too long for a PIN: more than {PIN_OCTETS_MAX} octets"));
    }
    let text = std::fs::read(path).map(Zeroizing::new).map_err(cannot)?;
    let line = text.split(|&octet| matches!(octet, b'\n' | b'\r')).next().unwrap_or(&[]);
    match line {
        [] => Err(format!("\"{shown}\" has no PIN in its first line")),
        line => Ok(Zeroizing::new(line.to_vec())),
    }
}

/// Returns the slots whose tokens a URI means.
fn matching(library: &Pkcs11, uri: &TokenUri) -> Result<Vec<Slot>, Error> {
    let mut found = Vec::new();
    for slot in library.get_slots_with_initialized_token()? {
        let mut is_meant = true;
        for (fact, wanted) in &uri.facts {
            is_meant &= holds(library, slot, *fact, wanted)?;
        }
        if is_meant {
            found.push(slot);
        }
    }
    Ok(found)
}

fn holds(library: &Pkcs11, slot: Slot, fact: TokenFact, wanted: &str) -> Result<bool, Error> {
    let token = || library.get_token_info(slot);
    Ok(match fact {
        TokenFact::Token => token()?.label() == wanted,
        TokenFact::Manufacturer => token()?.manufacturer_id() == wanted,
        TokenFact::Serial => token()?.serial_number() == wanted,
        TokenFact::Model => token()?.model() == wanted,
        TokenFact::SlotId => wanted.parse() == Ok(slot.id()),
        TokenFact::SlotManufacturer => library.get_slot_info(slot)?.manufacturer_id() == wanted,
        TokenFact::SlotDescription => library.get_slot_info(slot)?.slot_description() == wanted,
        TokenFact::LibraryManufacturer => library.get_library_info()?.manufacturer_id() == wanted,
        TokenFact::LibraryDescription => library.get_library_info()?.library_description() == wanted,
        TokenFact::LibraryVersion => {
            let version = library.get_library_info()?.library_version();
            let (major, minor) = (version.major().to_string(), version.minor().to_string());
            // Without a minor number, any will do.
            wanted == major || *wanted == format!("{major}.{minor}")
        }
    })
}

impl Token {
    /// Does something in one of the sessions, and keeps that for others if it is sound.
    fn in_session<T>(&self, act: impl FnOnce(&Session) -> Result<T, TokenError>) -> Result<T, TokenError> {
        let session = self.take()?;
        let outcome = act(&session);
        let mut sessions = lock(&self.sessions);
        match &outcome {
            // Something may be half done in it.
            Err(TokenError::Module(_)) => sessions.open -= 1,
            _ => sessions.idle.push(session),
        }
        drop(sessions);
        self.freed.notify_one();
        outcome
    }

    fn take(&self) -> Result<Session, TokenError> {
        let mut sessions = lock(&self.sessions);
        loop {
            if let Some(session) = sessions.idle.pop() {
                return Ok(session);
            }
            if sessions.open < SESSIONS_MAX {
                match self.library.open_ro_session(self.slot) {
                    Ok(session) => {
                        sessions.open += 1;
                        return Ok(session);
                    }
                    // The token has no more; one of ours comes back.
                    Err(Error::Pkcs11(RvError::SessionCount, _)) if sessions.open > 0 => {}
                    Err(error) => return Err(error.into()),
                }
            }
            sessions = self.freed.wait(sessions).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Opens a session in which objects may be made and removed.
    fn own_session(&self) -> Result<Session, TokenError> {
        Ok(self.library.open_rw_session(self.slot)?)
    }
}

/// A key in a token.
struct TokenKey {
    tokens: Arc<Tokens>,
    uri: TokenUri,
    place: String,
    algorithm: Algorithm,
    /// Where it was found, and at which login.
    known: Mutex<Option<(u64, ObjectHandle)>>,
}

impl TokenKey {
    fn find(&self, token: &Token, session: &Session) -> Result<ObjectHandle, TokenError> {
        let known = *lock(&self.known);
        if let Some((_, object)) = known.filter(|(login, _)| *login == token.login) {
            return Ok(object);
        }
        let mut template = wanted(&self.uri, ObjectClass::PRIVATE_KEY)?;
        template.push(Attribute::KeyType(key_type(self.algorithm)?));
        let object = match session.find_objects(&template)?.as_slice() {
            [object] => *object,
            [] => {
                return Err(format!(
                    "the token has no private key of algorithm {} of this name",
                    self.algorithm
                )
                .into());
            }
            several => {
                return Err(format!("the token has {} private keys of this name", several.len()).into());
            }
        };
        *lock(&self.known) = Some((token.login, object));
        Ok(object)
    }
}

impl Holder for TokenKey {
    fn sign(&self, input: &[u8]) -> Result<Vec<u8>, Unusable> {
        let sign = |token: &Token| {
            token.in_session(|session| {
                let object = self.find(token, session)?;
                Ok(session.sign(&mechanism(self.algorithm)?, object, input)?)
            })
        };
        self.tokens
            .with_token(&self.uri, sign)
            .map_err(|trouble| Unusable::Holder(at(&self.uri, "sign", trouble).into()))
    }

    fn place(&self) -> &str {
        &self.place
    }
}

fn unsupported(algorithm: Algorithm) -> TokenError {
    TokenError::Words(Unusable::Algorithm(algorithm).to_string())
}

fn key_type(algorithm: Algorithm) -> Result<KeyType, TokenError> {
    Ok(match algorithm {
        Algorithm::RSASHA256 | Algorithm::RSASHA512 => KeyType::RSA,
        Algorithm::ECDSAP256SHA256 | Algorithm::ECDSAP384SHA384 => KeyType::EC,
        Algorithm::ED25519 | Algorithm::ED448 => KeyType::EC_EDWARDS,
        other => return Err(unsupported(other)),
    })
}

fn mechanism(algorithm: Algorithm) -> Result<Mechanism<'static>, TokenError> {
    Ok(match algorithm {
        Algorithm::RSASHA256 | Algorithm::RSASHA512 => Mechanism::RsaPkcs,
        Algorithm::ECDSAP256SHA256 | Algorithm::ECDSAP384SHA384 => Mechanism::Ecdsa,
        Algorithm::ED25519 => Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Ed25519)),
        Algorithm::ED448 => Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Ed448(&[]))),
        other => return Err(unsupported(other)),
    })
}

/// Returns what a key's object must be like.
fn wanted(uri: &TokenUri, class: ObjectClass) -> Result<Vec<Attribute>, TokenError> {
    let mut template = vec![Attribute::Class(class)];
    if let Some(object) = &uri.object {
        template.push(Attribute::Label(object.clone().into_bytes()));
    }
    if let Some(id) = &uri.id {
        template.push(Attribute::Id(id.clone()));
    }
    if template.len() == 1 {
        return Err("the URI does not say which key of the token (object= or id=)".to_owned().into());
    }
    Ok(template)
}

/// How the curves of algorithms are called in tokens (`CKA_EC_PARAMS`): an object identifier in
/// DER, and for Edwards curves a name, which is older; tokens know one of them or both.
const CURVES: [(Algorithm, &[u8]); 6] = [
    (Algorithm::ECDSAP256SHA256, &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]),
    (Algorithm::ECDSAP384SHA384, &[0x06, 5, 0x2b, 0x81, 0x04, 0, 0x22]),
    (Algorithm::ED25519, &[0x06, 3, 0x2b, 0x65, 0x70]),
    (Algorithm::ED25519, b"\x13\x0cedwards25519"),
    (Algorithm::ED448, &[0x06, 3, 0x2b, 0x65, 0x71]),
    (Algorithm::ED448, b"\x13\x0aedwards448"),
];

/// Makes a pair of keys; returns the key field of the DNSKEY.
fn generate(
    session: &Session,
    uri: &TokenUri,
    algorithm: Algorithm,
    size: KeySize,
) -> Result<Vec<u8>, TokenError> {
    let kinds: Vec<(Mechanism<'_>, Vec<Attribute>)> = match algorithm {
        Algorithm::RSASHA256 | Algorithm::RSASHA512 => {
            let bits: u64 = match size {
                KeySize::Bits2048 => 2048,
                KeySize::Bits3072 => 3072,
                KeySize::Bits4096 => 4096,
            };
            let bits = Attribute::ModulusBits(bits.into());
            vec![(Mechanism::RsaPkcsKeyPairGen, vec![bits, Attribute::PublicExponent(vec![1, 0, 1])])]
        }
        _ => CURVES
            .iter()
            .filter(|(known, _)| *known == algorithm)
            .map(|(_, curve)| {
                let mechanism = match key_type(algorithm) {
                    Ok(KeyType::EC_EDWARDS) => Mechanism::EccEdwardsKeyPairGen,
                    _ => Mechanism::EccKeyPairGen,
                };
                (mechanism, vec![Attribute::EcParams(curve.to_vec())])
            })
            .collect(),
    };
    let names = [
        Attribute::Token(true),
        Attribute::Label(uri.object.clone().unwrap_or_default().into_bytes()),
        Attribute::Id(uri.id.clone().unwrap_or_default()),
    ];
    let private = [
        &names[..],
        &[
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
            Attribute::Sign(true),
        ],
    ]
    .concat();
    let mut outcome = Err(unsupported(algorithm));
    for (mechanism, kind) in kinds {
        let public = [&names[..], &[Attribute::Private(false), Attribute::Verify(true)], &kind].concat();
        outcome = session.generate_key_pair(&mechanism, &public, &private).map_err(TokenError::from);
        if outcome.is_ok() {
            break;
        }
    }
    let (public, private) = outcome?;
    match public_of(session, public, Some(algorithm)) {
        Ok((_, key)) => Ok(key),
        Err(trouble) => {
            // Nobody would ever know of it.
            for object in [private, public] {
                let _ = session.destroy_object(object);
            }
            Err(trouble)
        }
    }
}

/// Reads the public part of a key that a URI names.
fn public_part(
    session: &Session,
    uri: &TokenUri,
    algorithm: Option<Algorithm>,
) -> Result<(Algorithm, Vec<u8>), TokenError> {
    if session.find_objects(&wanted(uri, ObjectClass::PRIVATE_KEY)?)?.is_empty() {
        return Err("the token has no private key of this name".to_owned().into());
    }
    match session.find_objects(&wanted(uri, ObjectClass::PUBLIC_KEY)?)?.as_slice() {
        [object] => public_of(session, *object, algorithm),
        [] => Err("the token has no public key of this name beside the private one".to_owned().into()),
        several => Err(format!("the token has {} public keys of this name", several.len()).into()),
    }
}

/// Reads a public key: its algorithm and the key field of its DNSKEY.
fn public_of(
    session: &Session,
    object: ObjectHandle,
    algorithm: Option<Algorithm>,
) -> Result<(Algorithm, Vec<u8>), TokenError> {
    let unknown = || TokenError::Words("the token has the public key in a form that is not known".to_owned());
    let kind = session.get_attributes(object, &[AttributeType::KeyType])?;
    if kind.first() == Some(&Attribute::KeyType(KeyType::RSA)) {
        let algorithm = match algorithm {
            Some(algorithm) if algorithm.is_rsa() => algorithm,
            Some(other) => return Err(format!("the key is of RSA and not of algorithm {other}").into()),
            None => return Err("this is an RSA key; say its algorithm, 8 or 10".to_owned().into()),
        };
        let numbers = [AttributeType::Modulus, AttributeType::PublicExponent];
        return match session.get_attributes(object, &numbers)?.as_slice() {
            [Attribute::Modulus(modulus), Attribute::PublicExponent(exponent)] => {
                Ok((algorithm, dnssec::write_rsa(exponent, modulus)))
            }
            _ => Err(unknown()),
        };
    }
    let parts = session.get_attributes(object, &[AttributeType::EcParams, AttributeType::EcPoint])?;
    let [Attribute::EcParams(curve), Attribute::EcPoint(point)] = parts.as_slice() else {
        return Err(unknown());
    };
    let found = CURVES.iter().find(|(_, known)| *known == curve.as_slice()).map(|(found, _)| *found);
    let found = found.ok_or_else(|| "the key is on a curve that zones are not signed with".to_owned())?;
    if let Some(said) = algorithm.filter(|said| *said != found) {
        return Err(format!("the key is of algorithm {found} and not of {said}").into());
    }
    plain_point(found, point).map(|key| (found, key)).ok_or_else(unknown)
}

/// Returns the key field of a DNSKEY from a point (`CKA_EC_POINT`), which stands in DER or, in some
/// tokens, does not.
fn plain_point(algorithm: Algorithm, point: &[u8]) -> Option<Vec<u8>> {
    const OCTET_STRING: u8 = 0x04;
    const BIT_STRING: u8 = 0x03;
    const UNCOMPRESSED: u8 = 0x04;
    let (octets, is_edwards) = match algorithm {
        Algorithm::ECDSAP256SHA256 => (65, false),
        Algorithm::ECDSAP384SHA384 => (97, false),
        Algorithm::ED25519 => (32, true),
        Algorithm::ED448 => (57, true),
        _ => return None,
    };
    let bare = match point {
        bare if bare.len() == octets => bare,
        [OCTET_STRING, len, bare @ ..] if usize::from(*len) == octets => bare,
        // With the number of unused bits.
        [BIT_STRING, len, 0, bare @ ..] if usize::from(*len) == octets + 1 => bare,
        _ => return None,
    };
    let key = match bare {
        bare if is_edwards => bare,
        // RFC 6605 §4: without the octet that says how the point is written.
        [UNCOMPRESSED, key @ ..] => key,
        _ => return None,
    };
    (bare.len() == octets).then(|| key.to_vec())
}

#[cfg(test)]
mod tests;
