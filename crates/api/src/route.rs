//! What a row of the table is.

use control::api::{Request, Response};
use server::Role;

use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::shapes::Shape;

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// Below `/api/v1`; a part in braces is the client's.
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    /// The least that somebody needs; a request may need more.
    pub(crate) role: Role,
    pub(crate) query: &'static [Parameter],
    pub(crate) headers: &'static [Parameter],
    pub(crate) body: Wanted,
    /// Whether what comes or goes is to be kept nowhere, not even as a digest.
    pub(crate) has_secrets: bool,
    /// Whether nobody has to have proved who they are.
    pub(crate) is_for_strangers: bool,
    /// What comes back.
    pub(crate) shape: Shape,
    /// The statuses of what is done.
    pub(crate) statuses: &'static [u16],
    /// Headers that come with it.
    pub(crate) gives: &'static [&'static str],
    pub(crate) request: fn(&Call) -> Result<Request, Problem>,
    pub(crate) reply: fn(&Call, Response) -> Result<Reply, Problem>,
}

/// The header that says what a change is made for.
pub(crate) const IF_MATCH_NAME: &str = "If-Match";

/// The row that answers whatever became of a request, as the control socket does.
pub(crate) const TUNNEL: &str = "/requests";

/// A header that methods other than GET take.
pub(crate) const IDEMPOTENCY_KEY: Parameter = parameter(
    "Idempotency-Key",
    "string",
    "What the client calls the request. Sent again within 24 hours, it is answered as before and not carried out again.",
);

/// Something in the query of a URL, or a header.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// Its type in JSON Schema.
    pub(crate) kind: &'static str,
    pub(crate) about: &'static str,
}

/// What a request has to bring.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// Nothing.
    Nothing,
    /// JSON of this shape.
    Json(Shape),
    /// A setting, in YAML or JSON.
    Setting,
    /// Lines of JSON, many of them.
    Lines,
    /// Members of a set, in JSON or as lines of it.
    Members,
    /// A long text, which goes to a file as it comes.
    Upload,
    /// A backup, which does, too.
    Archive,
}

pub(crate) const fn parameter(name: &'static str, kind: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind, about }
}

type Asks = fn(&Call) -> Result<Request, Problem>;

pub(crate) const fn route(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    shape: Shape,
    request: Asks,
) -> Route {
    Route {
        method,
        path,
        summary,
        role: Role::Viewer,
        query: &[],
        headers: &[],
        body: Wanted::Nothing,
        has_secrets: false,
        is_for_strangers: false,
        shape,
        statuses: &[200],
        gives: &[],
        request,
        reply: whole,
    }
}

pub(crate) const fn get(path: &'static str, summary: &'static str, shape: Shape, request: Asks) -> Route {
    route("GET", path, summary, shape, request)
}

pub(crate) const fn post(
    (path, role): (&'static str, Role),
    summary: &'static str,
    shape: Shape,
    request: Asks,
) -> Route {
    route("POST", path, summary, shape, request).role(role)
}

impl Route {
    pub(crate) const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    pub(crate) const fn query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    pub(crate) const fn headers(mut self, headers: &'static [Parameter]) -> Self {
        self.headers = headers;
        self
    }

    pub(crate) const fn body(mut self, body: Wanted) -> Self {
        self.body = body;
        self
    }

    /// Says which statuses what is done has, when it is not 200 alone.
    pub(crate) const fn statuses(mut self, statuses: &'static [u16]) -> Self {
        self.statuses = statuses;
        self
    }

    /// Says which headers come with what is done.
    pub(crate) const fn gives(mut self, headers: &'static [&'static str]) -> Self {
        self.gives = headers;
        self
    }

    pub(crate) const fn with_secrets(mut self) -> Self {
        self.has_secrets = true;
        self
    }

    pub(crate) const fn for_strangers(mut self) -> Self {
        self.is_for_strangers = true;
        self
    }

    pub(crate) const fn replies(mut self, reply: fn(&Call, Response) -> Result<Reply, Problem>) -> Self {
        self.reply = reply;
        self
    }

    /// Returns whether a request can be sent again with a key, so that it is carried out once.
    pub(crate) fn takes_key(&self) -> bool {
        self.method != "GET" && self.path != TUNNEL && !self.has_secrets
    }

    /// Returns the parts of a path that the client chose; `None` if the path is another.
    pub(crate) fn parts(&self, path: &[String]) -> Option<Vec<String>> {
        let own = self.path.split('/').skip(1);
        if own.clone().count() != path.len() {
            return None;
        }
        let mut parts = Vec::new();
        for (own, part) in own.zip(path) {
            match own.starts_with('{') {
                true if part.is_empty() => return None,
                true => parts.push(part.clone()),
                false if own == part => {}
                false => return None,
            }
        }
        Some(parts)
    }
}

/// Answers with what a response holds.
pub(crate) fn whole(_: &Call, response: Response) -> Result<Reply, Problem> {
    Ok(match response {
        Response::Metrics(text) => Reply::text("text/plain; version=0.0.4; charset=utf-8", text),
        Response::ConfigShown(shown) => Reply::text("application/yaml", shown.text),
        other => Reply::json(other.to_json()),
    })
}
