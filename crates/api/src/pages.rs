//! Pages for people: how the server is, and where one logs in. They have no scripts, and nothing
//! of them comes from anywhere else.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use control::api::{self, LogIn};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use server::{ComesBack, LinkFor, LogInRefusal};

use crate::call::query_parts;
use crate::problem::Problem;
use crate::reply::{Reply, not_allowed, read};
use crate::serve::{Api, Who};
use crate::session::{Visitor, check_page, cookie, cookie_value, in_thread};

/// What a page may load and do.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("pages/style.css");
/// Octets of a form.
const FORM_OCTETS_MAX: u64 = 8 << 10;

/// Writes text so that it is nothing but text.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn page(title: &str, body: &str) -> Reply {
    page_with("", title, body)
}

fn page_with(head: &str, title: &str, body: &str) -> Reply {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n{head}</head>\n\
         <body>\n<main>\n<h1>Gannet</h1>\n{body}</main>\n</body>\n</html>\n"
    );
    Reply::text("text/html; charset=utf-8", text)
        .with("content-security-policy", POLICY.to_owned())
        // A page without a referrer cannot say in a form that it is ours.
        .with("referrer-policy", "same-origin".to_owned())
}

fn alert(why: &str) -> String {
    match why.is_empty() {
        true => String::new(),
        false => format!("<p role=\"alert\">{}</p>\n", escaped(why)),
    }
}

/// Returns the form with which users log in.
fn log_in_form(why: &str, name: &str, has_oidc: bool) -> String {
    let elsewhere = match has_oidc {
        true => "<p><a href=\"/login/oidc\">Log in with your organisation's account</a></p>\n",
        false => "",
    };
    format!(
        "<h2>Log in</h2>\n{}<form method=\"post\" action=\"/login\">\n\
         <label for=\"name\">Name</label>\n\
         <input id=\"name\" name=\"name\" value=\"{}\" autocomplete=\"username\" autocapitalize=\"none\" required>\n\
         <label for=\"password\">Password</label>\n\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required>\n\
         <label for=\"code\">One-time code, for those who have one</label>\n\
         <input id=\"code\" name=\"code\" autocomplete=\"one-time-code\" autocapitalize=\"none\">\n\
         <button>Log in</button>\n</form>\n{elsewhere}",
        alert(why),
        escaped(name)
    )
}

/// Returns the form with which a link is used.
fn link_form(code: &str, whom: &LinkFor, why: &str) -> String {
    let (title, name, is_needed) = match whom {
        LinkFor::First => (
            "Add the first user".to_owned(),
            "<label for=\"name\">Name</label>\n\
             <input id=\"name\" name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" required>\n",
            true,
        ),
        LinkFor::User(user) => (format!("Log in as {}", escaped(user)), "", false),
    };
    let (label, required) = match is_needed {
        true => ("Password, at least 12 characters", " required"),
        false => ("New password, at least 12 characters; empty: as it is", ""),
    };
    format!(
        "<h2>{title}</h2>\n{}<form method=\"post\" action=\"/login\">\n\
         <input type=\"hidden\" name=\"link\" value=\"{}\">\n{name}\
         <label for=\"password\">{label}</label>\n\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"new-password\"{required}>\n\
         <button>Log in</button>\n</form>\n",
        alert(why),
        escaped(code)
    )
}

/// Returns everything that a person should look at.
fn troubles(status: &api::Status) -> Vec<String> {
    let mut found = Vec::new();
    let configuration = &status.configuration;
    if configuration.is_last_reload_refused {
        found.push("The last reload was refused: what ran before still runs.".to_owned());
    }
    if let Some(why) = &configuration.changes.trouble {
        found.push(format!("Settings cannot be changed: {why}"));
    }
    if !configuration.changes.wrong.is_empty() {
        found.push("The file and the changes do not go together: what ran last is in use.".to_owned());
    }
    if status.is_audit_failing {
        found.push("The audit log cannot be written.".to_owned());
    }
    for missing in &status.missing_listeners {
        found.push(format!("The API could not be opened at {}: {}.", missing.at, missing.why));
    }
    let zones = &status.zones;
    if zones.failing > 0 {
        found.push(format!("{} zones are failing: {}", zones.failing, zones.names.join(", ")));
    }
    let lists = &status.lists;
    if lists.missing > 0 {
        found.push(format!("{} lists have not been fetched yet.", lists.missing));
    }
    if lists.failing > 0 {
        found.push(format!("The last download of {} lists failed.", lists.failing));
    }
    for certificate in &status.certificates {
        let names = certificate.names.join(", ");
        match certificate.ends_in_s {
            ..=0 => found.push(format!("The certificate for {names} has expired.")),
            1..=604_800 => found.push(format!("The certificate for {names} ends at {}.", certificate.ends)),
            _ => {}
        }
    }
    for (group, servers) in &status.upstreams {
        for server in servers.iter().filter(|server| server.health == "down") {
            let why = server.trouble.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            found.push(format!("Upstream {} of {group} is down{why}", server.server));
        }
    }
    found
}

/// Returns a time span for people.
fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Returns how the server is.
fn status_text(status: &api::Status, queries: u64) -> String {
    let mut text = "<h2>Status</h2>\n<dl>\n".to_owned();
    let rows = [
        ("Version", status.version.clone()),
        ("Up", span(status.uptime_s)),
        ("Queries", format!("{queries}, {:.1} a second lately", status.queries_per_second)),
        ("Waiting for other servers", status.waiting.to_string()),
        ("Configuration", format!("revision {}", status.configuration.revision)),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    text.push_str("</dl>\n");
    let found = troubles(status);
    match found.is_empty() {
        true => text.push_str("<p>Nothing is wrong.</p>\n"),
        false => {
            text.push_str("<h2>What is wrong</h2>\n<ul>\n");
            for trouble in found {
                let _ = writeln!(text, "<li>{}</li>", escaped(&trouble));
            }
            text.push_str("</ul>\n");
        }
    }
    text
}

fn is_form(kind: &HeaderValue) -> bool {
    let text = kind.to_str().unwrap_or("");
    let kind = text.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Reads what a form says.
async fn form(request: Request<Incoming>) -> Result<Vec<(String, String)>, Problem> {
    check_page(request.headers())?;
    if !request.headers().get(CONTENT_TYPE).is_some_and(is_form) {
        return Err(Problem::new(415, "expected a form"));
    }
    let body = read(request.into_body(), FORM_OCTETS_MAX).await?;
    let text = String::from_utf8(body).map_err(|_| Problem::new(400, "the form is not UTF-8"))?;
    query_parts(&text)
}

const fn state_cookie_name(is_tls: bool) -> &'static str {
    if is_tls { "__Host-gannet-oidc" } else { "gannet-oidc" }
}

/// Returns the cookie with what somebody was sent elsewhere with. Unlike that of a session it comes
/// along when the other server sends them back.
fn state_cookie(state: &str, is_tls: bool) -> String {
    let (name, secure) = (state_cookie_name(is_tls), if is_tls { "; Secure" } else { "" });

    format!("{name}={state}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600{secure}")
}

fn to_start() -> Reply {
    Reply::nothing(303).with("location", "/".to_owned())
}

impl Api {
    /// Answers what is asked of a page.
    pub(crate) async fn page(
        &self,
        request: Request<Incoming>,
        visitor: Option<Visitor>,
        who: &Who,
    ) -> Result<Reply, Problem> {
        let (method, path) = (request.method().as_str().to_owned(), request.uri().path().to_owned());
        match (method.as_str(), path.as_str()) {
            ("GET", "/style.css") => Ok(Reply::text("text/css; charset=utf-8", STYLE.to_owned())),
            ("GET", "/") => self.start(visitor).await,
            ("GET", "/login") => self.link(&request),
            ("GET", "/login/oidc") => self.elsewhere(&request, who).await,
            ("POST", "/login") => self.submitted(request, who).await,
            ("POST", "/logout") => self.left(request, visitor, who).await,
            (_, "/login") => Ok(not_allowed("GET, POST")),
            (_, "/logout") => Ok(not_allowed("POST")),
            _ => Ok(not_allowed("GET")),
        }
    }

    /// Answers with how the server is, or for strangers with the form to log in.
    async fn start(&self, visitor: Option<Visitor>) -> Result<Reply, Problem> {
        let Some(visitor) = visitor else {
            let about =
                "<p>This DNS server answers queries. Programs use its API with a token, people log in.</p>\n";
            return Ok(page(
                "Gannet",
                &format!("{about}{}", log_in_form("", "", self.operator().has_oidc())),
            ));
        };
        let operator = Arc::clone(self.operator());
        let caller = visitor.caller.clone();
        let (status, queries) = in_thread(move || {
            if visitor.is_due {
                operator.note_sessions();
            }
            (operator.status(), operator.queries())
        })
        .await?;
        let mut body = status_text(&status, queries);
        let _ = writeln!(
            body,
            "<p><a href=\"/api/v1/openapi.json\">The description of the API</a> (OpenAPI)</p>\n\
             <p>Logged in as {}, with the role {}.</p>",
            escaped(&caller.name),
            caller.role.word()
        );
        if visitor.session.is_some() {
            body.push_str("<form method=\"post\" action=\"/logout\"><button>Log out</button></form>\n");
        }
        Ok(page("Gannet: status", &body))
    }

    /// Answers with the form of a link. Nothing is used up: programs look at links before people
    /// follow them.
    fn link(&self, request: &Request<Incoming>) -> Result<Reply, Problem> {
        let query = query_parts(request.uri().query().unwrap_or(""))?;
        let Some((_, code)) = query.iter().find(|(name, _)| name == "code") else {
            return Ok(page("Gannet: log in", &log_in_form("", "", self.operator().has_oidc())));
        };
        Ok(match self.operator().link_is_for(code) {
            Some(whom) => page("Gannet: log in", &link_form(code, &whom, "")),
            None => page(
                "Gannet: log in",
                &log_in_form(
                    "This link was used before, or its time is over.",
                    "",
                    self.operator().has_oidc(),
                ),
            )
            .with_status(410),
        })
    }

    /// Sends somebody to log in elsewhere, or logs them in when they come back.
    async fn elsewhere(&self, request: &Request<Incoming>, who: &Who) -> Result<Reply, Problem> {
        let Who::Stranger { from, is_tls, .. } = *who else {
            return Err(Problem::new(409, "the control socket knows who asks: nobody logs in here"));
        };
        let operator = Arc::clone(self.operator());
        let query = query_parts(request.uri().query().unwrap_or(""))?;
        if query.is_empty() {
            return Ok(match in_thread(move || operator.begin_elsewhere(from)).await? {
                Ok((url, state)) => Reply::nothing(303)
                    .with("location", url)
                    .with("set-cookie", state_cookie(&state.0, is_tls)),
                Err(refusal) => self.not_from_elsewhere(refusal),
            });
        }
        let of = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let kept = cookie_value(request.headers(), state_cookie_name(is_tls));
        let back = ComesBack {
            code: of("code").map(api::Secret),
            state: api::Secret(of("state").unwrap_or_default()),
            kept_state: kept.map(|state| api::Secret(state.to_owned())),
            issuer: of("iss"),
            error: of("error"),
        };
        Ok(match in_thread(move || operator.log_in_elsewhere(&back, from)).await? {
            // A redirection would still be the other server's, which the cookie is not sent with.
            Ok(begun) => page_with(
                "<meta http-equiv=\"refresh\" content=\"0;url=/\">\n",
                "Gannet: logged in",
                "<p>Logged in. <a href=\"/\">Go on</a></p>\n",
            )
            .with("set-cookie", cookie(Some(&begun.secret.0), is_tls)),
            Err(refusal) => self.not_from_elsewhere(refusal),
        })
    }

    fn not_from_elsewhere(&self, refusal: LogInRefusal) -> Reply {
        let (status, why) = match refusal {
            LogInRefusal::Failed(error) => {
                let why = error.to_string();
                (Problem::from(error).status(), why)
            }
            LogInRefusal::Slow(_)
            | LogInRefusal::Wrong
            | LogInRefusal::CodeNeeded
            | LogInRefusal::LinkOver => (403, "nobody is logged in".to_owned()),
        };
        let form = log_in_form(&why, "", self.operator().has_oidc());
        page("Gannet: log in", &form).with_status(status)
    }

    /// Logs somebody in who has sent a form.
    async fn submitted(&self, request: Request<Incoming>, who: &Who) -> Result<Reply, Problem> {
        let Who::Stranger { from, is_tls, .. } = *who else {
            return Err(Problem::new(409, "the control socket knows who asks: nobody logs in here"));
        };
        let fields = form(request).await?;
        let field = |name: &str| {
            let found = fields.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let secret = |text: String| Some(api::Secret(text)).filter(|secret| !secret.0.is_empty());
        let asked = LogIn {
            name: field("name"),
            password: secret(field("password")),
            code: secret(field("code")),
            link: secret(field("link")),
        };
        self.log_in_by_form(asked, (from, is_tls)).await
    }

    async fn log_in_by_form(&self, asked: LogIn, (from, is_tls): (IpAddr, bool)) -> Result<Reply, Problem> {
        let (operator, also_asked) = (Arc::clone(self.operator()), asked.clone());
        let refusal = match in_thread(move || operator.log_in(&also_asked, from)).await? {
            Ok(begun) => return Ok(to_start().with("set-cookie", cookie(Some(&begun.secret.0), is_tls))),
            Err(refusal) => refusal,
        };
        let (status, why, wait) = match refusal {
            LogInRefusal::Slow(wait) => {
                (429, "Too many attempts: try again in a moment.".to_owned(), Some(wait.as_secs() + 1))
            }
            LogInRefusal::CodeNeeded => (401, "This user needs a one-time code, too.".to_owned(), None),
            LogInRefusal::Wrong => (401, "The name, the password or the code is wrong.".to_owned(), None),
            LogInRefusal::LinkOver => {
                (410, "This link was used before, or its time is over.".to_owned(), None)
            }
            LogInRefusal::Failed(error) => {
                let why = error.to_string();
                (Problem::from(error).status(), why, None)
            }
        };
        let of_link = asked.link.and_then(|link| Some((self.operator().link_is_for(&link.0)?, link)));
        let body = match of_link {
            Some((whom, link)) => link_form(&link.0, &whom, &why),
            None => log_in_form(&why, &asked.name, self.operator().has_oidc()),
        };
        let reply = page("Gannet: log in", &body).with_status(status);
        Ok(match wait {
            Some(seconds) => reply.with("retry-after", seconds.to_string()),
            None => reply,
        })
    }

    /// Logs somebody out who has sent a form.
    async fn left(
        &self,
        request: Request<Incoming>,
        visitor: Option<Visitor>,
        who: &Who,
    ) -> Result<Reply, Problem> {
        check_page(request.headers())?;
        let Some(Visitor { caller, session: Some(secret), .. }) = visitor else { return Ok(to_start()) };
        let operator = Arc::clone(self.operator());
        in_thread(move || operator.log_out(&caller, &secret)).await??;
        let is_tls = matches!(who, Who::Stranger { is_tls: true, .. });
        Ok(to_start().with("set-cookie", cookie(None, is_tls)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_no_part_of_a_page() {
        let form = log_in_form("<script>", "\"><script>alert('&')</script>", true);
        assert!(!form.contains("<script>") && form.contains("&quot;&gt;&lt;script&gt;"), "{form}");
        let link = link_form("\"", &LinkFor::User("<b>".to_owned()), "");
        assert!(link.contains("value=\"&quot;\"") && link.contains("Log in as &lt;b&gt;"), "{link}");
    }

    #[test]
    fn what_is_wrong_is_said_and_what_is_not_is_not() {
        let mut status = api::Status::default();
        assert!(troubles(&status).is_empty() && status_text(&status, 1).contains("Nothing is wrong."));
        status.configuration.is_last_reload_refused = true;
        status.lists.failing = 2;
        let certificate = |ends_in_s| api::Certificate { ends_in_s, ..api::Certificate::default() };
        status.certificates = vec![certificate(-1), certificate(604_800), certificate(604_801)];
        let down = |health: &str| api::Upstream { health: health.to_owned(), ..api::Upstream::default() };
        status.upstreams.insert("main".to_owned(), vec![down("down"), down("up")]);
        assert_eq!(troubles(&status).len(), 5, "{:?}", troubles(&status));
        assert!(status_text(&status, 1).contains("<li>The last download of 2 lists failed.</li>"));
    }

    #[test]
    fn a_time_span_is_short() {
        let spans = [5, 90, 3_700, 90_000].map(span);
        assert_eq!(spans, ["5 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
