//! `gannet explain`: the way of one query through the policy.

use std::process::ExitCode;

use commands::cli::ExplainArgs;
use commands::query::Words;
use commands::{configuration, out, progress, remote};
use control::api::{self, Response};
use settings::Origin;

/// Runs `gannet explain`.
pub(crate) fn run(args: &ExplainArgs) -> ExitCode {
    let foreign = args.words.iter().find(|word| word.starts_with(['@', '+']));
    let words = match foreign {
        Some(word) => Err(format!("\"{word}\" cannot stand here: expected NAME [TYPE]")),
        None => Words::parse(&args.words),
    };
    let words = match words {
        Ok(words) => words,
        Err(why) => return out::wrong(&why, args.remote.output),
    };
    let asked = api::Explain {
        name: words.name.to_string(),
        rtype: words.rtype.to_string(),
        client: args.client.map(|client| client.to_string()),
        listener: args.listener.clone(),
        is_tcp: args.tcp,
        wants_dnssec: args.dnssec,
    };
    let Some(file) = &args.config else {
        return remote::explain(&args.remote, asked);
    };
    let response = match follow(&Origin::File(file.clone()), &asked) {
        Ok(explained) => Response::Explained(explained),
        Err(why) => Response::error(why),
    };
    remote::show(&response, args.remote.output)
}

/// Follows a query through a configuration that no server runs on.
fn follow(origin: &Origin, asked: &api::Explain) -> Result<api::Explained, String> {
    let mistakes =
        |found: Vec<diagnostic::Diagnostic>| configuration::human(origin, &found).trim_end().to_owned();
    let loaded = origin.load().map_err(mistakes)?;
    let compiled =
        progress::shown(|machine| server::compile(&loaded, &[], None, machine)).map_err(mistakes)?;
    server::explain::follow(&compiled, asked).map_err(|why| why.to_string())
}
