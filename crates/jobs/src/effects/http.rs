//! An HTTP request for each query. Success is a status of 2xx; what comes back is not read.

use std::sync::Arc;

use plan::jobs::{self as settings, Method};
use ureq::Agent;
use ureq::http::{Request, StatusCode};

use super::template::{Escape, fill};
use super::{Counts, Effect, EffectError, Occurrence, many};
use crate::http::{Trust, agent};
use crate::resolver::Resolvers;

/// Sends the requests of one effect.
pub(crate) struct Http {
    settings: settings::Http,
    name: String,
    /// How fields are escaped in the body.
    escape: Escape,
    resolvers: Resolvers,
    agent: Option<Agent>,
}

impl Http {
    /// Prepares the effect.
    pub(crate) fn new(settings: &settings::Http, name: &str, resolvers: &Resolvers) -> Self {
        let content_type =
            settings.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let is_json = content_type.is_none_or(|(_, value)| value.to_string().contains("json"));
        Self {
            settings: settings.clone(),
            name: name.to_owned(),
            escape: if is_json { Escape::Json } else { Escape::None },
            resolvers: resolvers.clone(),
            agent: None,
        }
    }

    fn agent(&mut self) -> std::io::Result<Agent> {
        if let Some(agent) = &self.agent {
            return Ok(agent.clone());
        }
        let trust = match (&self.settings.ca, self.settings.verifies) {
            (_, false) => Trust::Everybody,
            (Some(file), true) => Trust::File(file.clone()),
            (None, true) => Trust::Usual,
        };
        let agent = agent(self.settings.patience, &trust, self.resolvers.clone())?;
        self.agent = Some(agent.clone());
        Ok(agent)
    }

    fn send(&self, agent: &Agent, occurrence: &Occurrence) -> Result<StatusCode, ureq::Error> {
        let settings = &self.settings;
        let filled = |template, escape| fill(template, &self.name, occurrence, escape);
        let method = match settings.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        };
        let mut request = Request::builder().method(method).uri(filled(&settings.url, Escape::Url));
        for (name, value) in &settings.headers {
            request = request.header(name, filled(value, Escape::Header));
        }
        let has_type = settings.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if settings.body.is_some() && !has_type {
            request = request.header("Content-Type", "application/json");
        }
        let response = match &settings.body {
            Some(body) => agent.run(request.body(filled(body, self.escape))?)?,
            // A method that usually has a body has an empty one then.
            None if matches!(settings.method, Method::Get | Method::Delete) => {
                agent.run(request.body(())?)?
            }
            None => agent.run(request.body(String::new())?)?,
        };
        Ok(response.status())
    }
}

impl Effect for Http {
    fn carry_out(&mut self, batch: &[Arc<Occurrence>], counts: &Counts) {
        let agent = match self.agent() {
            Ok(agent) => agent,
            Err(error) => return batch.iter().for_each(|_| counts.fail(&EffectError::io(&error))),
        };
        many::each(batch, self.settings.concurrency, |occurrence| match self.send(&agent, occurrence) {
            Ok(status) if status.is_success() => counts.done.add(1),
            Ok(status) => counts.fail(&EffectError::refused(format!("the server answers {status}"))),
            Err(error) => counts.fail(&EffectError::refused(error)),
        });
    }
}
