//! What became of a query that `gannet explain` followed.

use std::fmt::Write as _;

use control::api;

use crate::out;

/// Lays out what happened for a person.
pub(super) fn text(explained: &api::Explained) -> String {
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
