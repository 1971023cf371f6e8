//! `gannet check`: what is wrong with a configuration.

use std::process::ExitCode;

use commands::cli::{CheckArgs, CheckFormat, GraphLanguage};
use commands::{configuration, out, progress, remote};
use policy::graph::{Language, graph};
use settings::Origin;

/// Runs `gannet check`.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    if args.running || args.server.is_given() || args.socket.socket.is_some() {
        return remote::check(args);
    }
    let origin = match &args.file {
        Some(file) if args.unbound => Origin::Unbound(file.clone()),
        Some(file) => Origin::File(file.clone()),
        None => configuration::find(&args.config),
    };
    let compiled = origin.load().and_then(|mut loaded| {
        devices::interfaces::look_up(&mut loaded)?;
        devices::interfaces::check_channel(&loaded)?;
        let plans = progress::shown(|machine| server::compile(&loaded, &[], None, machine))?.plans;
        let drawing = args.graph.map(|language| {
            let language = match language {
                GraphLanguage::Mermaid => Language::Mermaid,
                GraphLanguage::Dot => Language::Dot,
            };
            graph(loaded.settings.written(), &loaded.sources, language)
        });
        Ok(([loaded.warnings, plans.warnings.clone()].concat(), drawing))
    });
    let (found, drawing) = match compiled {
        Ok(compiled) => compiled,
        Err(mistakes) => (mistakes, None),
    };
    if let Some(drawing) = drawing {
        out::print(&drawing);
        return out::FINE;
    }
    let format = if args.json { CheckFormat::Json } else { args.format };
    configuration::report(&origin, &found, format)
}
