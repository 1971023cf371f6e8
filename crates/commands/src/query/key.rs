//! Keys to sign queries with (TSIG), as they stand on the command line and in files.

use std::path::Path;
use std::sync::Arc;

use tsig::{Algorithm, Key};
use wire::NameBuf;
use wire::text::read_base64;

use crate::cli::QueryArgs;

/// What is expected on the command line.
const FORM: &str = "[ALGORITHM:]NAME:SECRET, such as hmac-sha256:xfr.example.org:Base64==";

/// Returns the key that the arguments of `query` name, if they name one.
///
/// # Errors
///
/// Why it is no key, or cannot be read; the secret is not shown.
pub fn key_of(args: &QueryArgs) -> Result<Option<Arc<Key>>, String> {
    match (&args.key, &args.key_file) {
        (Some(text), _) => parse(text).map(Some),
        (None, Some(file)) => read(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads `[alg:]name:secret`. Messages never show the secret.
fn parse(text: &str) -> Result<Arc<Key>, String> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [name, secret] => make(Algorithm::Sha256.word(), name, secret),
        [algorithm, name, secret] => make(algorithm, name, secret),
        _ => Err(format!("a key is written {FORM}")),
    }
}

/// Reads the first key of a file as `tsig-keygen` writes it.
fn read(file: &Path) -> Result<Arc<Key>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("the key in \"{}\" cannot be read: {error}", file.display()))?;
    of_statement(&text).map_err(|why| format!("\"{}\": {why}", file.display()))
}

fn of_statement(text: &str) -> Result<Arc<Key>, String> {
    let tokens = tokens(text);
    let mut rest = tokens.iter().skip_while(|token| *token != "key").skip(1);
    let name = rest.next().ok_or("there is no statement key \"NAME\" { … }")?;
    let (mut algorithm, mut secret) = (None, None);
    let mut key = None;
    for token in rest.take_while(|token| *token != "}") {
        match key.take() {
            Some("algorithm") => algorithm = Some(token.as_str()),
            Some("secret") => secret = Some(token.as_str()),
            _ => key = Some(token.as_str()).filter(|word| matches!(*word, "algorithm" | "secret")),
        }
    }
    make(algorithm.unwrap_or(Algorithm::Sha256.word()), name, secret.ok_or("the key has no secret")?)
}

/// Splits a file at blanks, semicolons and braces, without lines of comment and quotation marks;
/// braces are tokens.
fn tokens(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', '/']));
    let spread =
        |line: &str| line.replace('{', " { ").replace('}', " } ").replace([';', '"'], " ").to_owned() + "\n";
    lines.map(spread).collect::<String>().split_ascii_whitespace().map(str::to_owned).collect()
}

fn make(algorithm: &str, name: &str, secret: &str) -> Result<Arc<Key>, String> {
    let word = algorithm.to_ascii_lowercase();
    let word = word.strip_suffix(".sig-alg.reg.int").unwrap_or(&word).trim_end_matches('.');
    let known = Algorithm::ALL.into_iter().find(|known| known.word() == word);
    let algorithm = known.ok_or_else(|| {
        let all: Vec<&str> = Algorithm::ALL.into_iter().map(Algorithm::word).collect();
        format!("\"{algorithm}\" is not an algorithm of TSIG: expected {}", all.join(", "))
    })?;
    let key: NameBuf =
        name.parse().map_err(|_| format!("\"{name}\" is not the name of a key; a key is written {FORM}"))?;
    let octets = read_base64(secret.as_bytes()).filter(|octets| !octets.is_empty());
    let octets = octets.ok_or("the secret of the key is not Base64")?;
    Key::new(key.as_name(), algorithm, &octets, None)
        .map(Arc::new)
        .map_err(|_| "the key has no secret".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: Result<Arc<Key>, String>, name: &str, algorithm: Algorithm) {
        let key = key.unwrap();
        assert_eq!((key.name().to_string().as_str(), key.algorithm()), (name, algorithm));
    }

    #[test]
    fn keys_are_read_from_the_command_line_and_from_files() {
        check(parse("hmac-sha512:k.example:c2VjcmV0"), "k.example.", Algorithm::Sha512);
        check(parse("k.example:c2VjcmV0"), "k.example.", Algorithm::Sha256);
        let file =
            "# by hand\nkey \"K.example.\" {\n  algorithm HMAC-SHA384;\n  secret \"c2Vj//cmV0c2\";\n};\n";
        check(of_statement(file), "k.example.", Algorithm::Sha384);
        check(
            of_statement("key k { algorithm hmac-md5.sig-alg.reg.int; secret c2VjcmV0; };"),
            "k.",
            Algorithm::Md5,
        );
    }

    #[test]
    fn a_wrong_key_is_refused_and_its_secret_not_shown() {
        for text in
            ["c2VjcmV0", "k:!c2VjcmV0", "hmac-foo:k:c2VjcmV0", "a:b:c:c2VjcmV0", "hmac-sha1:a..b:c2VjcmV0"]
        {
            let why = parse(text).unwrap_err();
            assert!(!why.contains("c2VjcmV0"), "{why}");
        }
        assert_eq!(of_statement("zone x {};").unwrap_err(), "there is no statement key \"NAME\" { … }");
        assert_eq!(of_statement("key k { algorithm hmac-sha1; };").unwrap_err(), "the key has no secret");
    }
}
