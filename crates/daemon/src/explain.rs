//! `gannet explain`: the way of one query through the policy.

use std::fmt::Write as _;
use std::process::ExitCode;

use control::api::{self, Request, Response};
use server::Origin;

use crate::cli::ExplainArgs;
use crate::inspect;
use crate::lookup::Words;
use crate::{out, progress, remote};

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
        return remote::ask(&args.remote, &Request::Explain(asked), remote::WORK_PATIENCE);
    };
    let response = match follow(&Origin::File(file.clone()), &asked) {
        Ok(explained) => Response::Explained(explained),
        Err(why) => Response::error(why),
    };
    remote::show(&response, args.remote.output)
}

/// Follows a query through a configuration that no server runs on.
fn follow(origin: &Origin, asked: &api::Explain) -> Result<api::Explained, String> {
    let mistakes = |found: Vec<diagnostic::Diagnostic>| inspect::human(origin, &found).trim_end().to_owned();
    let loaded = origin.load().map_err(mistakes)?;
    let compiled =
        progress::shown(|machine| server::compile(&loaded, &[], None, machine)).map_err(mistakes)?;
    server::explain::follow(&compiled, asked).map_err(|why| why.to_string())
}

/// Lays out what happened for a person.
pub(crate) fn text(explained: &api::Explained) -> String {
    let question = &explained.question;
    let mut text = format!("{} {} asked by {}\n", question.name, question.rtype, explained.client);
    let place = |step: &api::ExplainedStep| match (&step.file, step.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => String::new(),
    };
    let width = explained.steps.iter().map(|step| place(step).chars().count()).max().unwrap_or(0);
    for step in &explained.steps {
        let _ = write!(text, "  {:<width$}  ", out::escaped(&place(step)));
        let _ = match step.text.as_str() {
            "" => writeln!(text, "{}", out::escaped(&step.outcome)),
            written => writeln!(text, "{}  ->  {}", out::escaped(written), out::escaped(&step.outcome)),
        };
    }
    let Some(reply) = &explained.reply else {
        text.push_str(if explained.is_cut_short {
            "nobody was asked: the way ends here\n"
        } else {
            "the client gets no reply\n"
        });
        return text;
    };
    let _ = writeln!(text, "{}  flags: {}", reply.status, reply.flags.join(" "));
    for record in reply.answer.iter().chain(&reply.authority) {
        let _ = writeln!(text, "  {} {} {} {}", record.name, record.ttl, record.rtype, record.data);
    }
    for error in &reply.extended_errors {
        let _ = writeln!(text, "  error {} {} {}", error.code, error.name, out::escaped(&error.text));
    }
    text
}
