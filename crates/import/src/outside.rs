//! What plugins do outside of DNS: sets of the kernel, routers, requests, programs, records of
//! queries, jobs by time.

use diagnostic::{At, Span};
use yaml::Value;

use super::plugins::{Plugin, Quick, rules, words};
use super::policies::{Action, Rule};
use super::write::{Map, Noted, Out};
use super::{Args, Dialect, Kind, Translator};

/// One half of a kernel set: which set, and how many bits of an address go in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelSet {
    family: String,
    table: String,
    set: String,
    bits: u64,
}

impl<'a> Translator<'a> {
    /// Translates `ipset …` and `nftset …` in a sequence.
    pub(super) fn kernel_sets(&mut self, quick: &Quick) -> Vec<Rule> {
        let is_nft = quick.head.value == "nftset";
        let (mut v4, mut v6) = (None, None);
        for word in words(&quick.argument) {
            let parts: Vec<&str> = word.value.split(',').collect();
            let found = match (is_nft, parts.as_slice()) {
                (true, [family, table, set, kind @ ("ipv4_addr" | "ipv6_addr"), bits]) => {
                    Some((*kind == "ipv4_addr", (*family).to_owned(), (*table).to_owned(), *set, *bits))
                }
                (false, [set, kind @ ("inet" | "inet6"), bits]) => {
                    Some((*kind == "inet", String::new(), String::new(), *set, *bits))
                }
                _ => None,
            };
            let Some((is_v4, family, table, set, bits)) = found else {
                let form = if is_nft { "family,table,set,ipv4_addr,24" } else { "set,inet,24" };
                self.wrong(word.span, format!("\"{}\" is not of the form \"{form}\"", word.value));
                return Vec::new();
            };
            let Some(bits) = bits.parse::<u64>().ok().filter(|&bits| bits <= if is_v4 { 32 } else { 128 })
            else {
                self.wrong(word.span, format!("\"{bits}\" is no number of bits"));
                return Vec::new();
            };
            let half = KernelSet { family, table, set: set.to_owned(), bits };
            if is_v4 { v4 = Some(half) } else { v6 = Some(half) }
        }
        self.kernel_actions(is_nft, v4.as_ref(), v6.as_ref())
    }

    fn kernel_actions(&mut self, is_nft: bool, v4: Option<&KernelSet>, v6: Option<&KernelSet>) -> Vec<Rule> {
        let part =
            |half: &KernelSet, digit: char| format!(", set{digit} {}, prefix{digit} {}", half.set, half.bits);
        let text = |table: &str, halves: &[(&KernelSet, char)]| {
            let parts: String = halves.iter().map(|(half, digit)| part(half, *digit)).collect();
            if is_nft {
                format!("nftset(\"{table}\"{parts})")
            } else {
                format!("ipset({})", parts.trim_start_matches(", "))
            }
        };
        let table = |half: &KernelSet| format!("{} {}", half.family, half.table);
        let actions = match (v4, v6) {
            (None, None) => return Vec::new(),
            (Some(four), Some(six)) if table(four) == table(six) => {
                vec![text(&table(four), &[(four, '4'), (six, '6')])]
            }
            (four, six) => {
                let four = four.map(|four| text(&table(four), &[(four, '4')]));
                let six = six.map(|six| text(&table(six), &[(six, '6')]));
                [four, six].into_iter().flatten().collect()
            }
        };
        let notes = if self.dialect == Dialect::Mosdns {
            vec!["An error of the kernel makes no query fail here; it is counted.".to_owned()]
        } else {
            Vec::new()
        };
        vec![Rule { notes, actions: actions.into_iter().map(Action::plain).collect(), ..Rule::default() }]
    }

    /// Translates a plugin that has an effect outside.
    pub(super) fn effect(&mut self, plugin: &'a Plugin) -> Vec<Rule> {
        let args = self.args(plugin);
        match plugin.kind.value.as_str() {
            "ipset" => {
                let half = |key, mask, default, problems: &mut Vec<_>| {
                    let set = args.text(key, problems).filter(|set| !set.value.is_empty());
                    let bits = args.number(mask, problems).map_or(default, |bits| bits.value);
                    set.map(|set| KernelSet {
                        family: String::new(),
                        table: String::new(),
                        set: set.value,
                        bits,
                    })
                };
                let v4 = half("set_name4", "mask4", 24, &mut self.problems);
                let v6 = half("set_name6", "mask6", 32, &mut self.problems);
                args.finish(&mut self.problems);
                self.kernel_actions(false, v4.as_ref(), v6.as_ref())
            }
            "nftset" => {
                let v4 =
                    self.nft_half(&args, "ipv4", ["table_family4", "table_name4", "set_name4", "mask4"], 24);
                let v6 =
                    self.nft_half(&args, "ipv6", ["table_family6", "table_name6", "set_name6", "mask6"], 48);
                args.finish(&mut self.problems);
                self.kernel_actions(true, v4.as_ref(), v6.as_ref())
            }
            _ => {
                let is_new = !self.names.contains_key(&(Kind::Effect, plugin.tag.value.clone()));
                let name = self.name(Kind::Effect, &plugin.tag.value);
                let map = match plugin.kind.value.as_str() {
                    "ros_address_list" | "ros_route" => self.router(&args, &plugin.kind.value),
                    "http_request" => self.request(&args, plugin.kind.span),
                    _ => self.script(&args),
                };
                args.finish(&mut self.problems);
                if is_new {
                    self.effects.put(name.clone(), map);
                }
                vec![Rule { actions: vec![Action::plain(format!("effect({name})"))], ..Rule::default() }]
            }
        }
    }

    fn nft_half(
        &mut self,
        args: &Args<'_>,
        key: &'static str,
        flat: [&'static str; 4],
        bits: u64,
    ) -> Option<KernelSet> {
        let problems = &mut self.problems;
        if let Some(node) = args.node(key) {
            let half = Args::new(self.dialect, "a set", node, problems);
            let family = half.text("table_family", problems).map(|text| text.value);
            let table = half.text("table_name", problems).map(|text| text.value);
            let set = half.text("set_name", problems).map(|text| text.value);
            let bits = half.number("mask", problems).map_or(bits, |bits| bits.value);
            half.finish(problems);
            return Some(KernelSet { family: family?, table: table?, set: set?, bits });
        }
        if self.dialect == Dialect::Mosdns {
            return None;
        }
        let [family, table, set, mask] = flat;
        let family = args.text(family, problems).map(|text| text.value);
        let table = args.text(table, problems).map(|text| text.value);
        let set = args.text(set, problems).map(|text| text.value);
        let bits = args.number(mask, problems).map_or(bits, |bits| bits.value);
        Some(KernelSet { family: family?, table: table?, set: set?, bits })
    }

    /// A MikroTik router.
    fn router(&mut self, args: &Args<'_>, kind: &str) -> Map {
        let problems = &mut self.problems;
        let mut map = Map::default();
        map.put("type", if kind == "ros_route" { "mikrotik-route" } else { "mikrotik-list" });
        let text = |key: &'static str, problems: &mut Vec<_>| args.text(key, problems).map(|text| text.value);
        map.put_some("address", text("address", problems));
        map.put_some("user", text("username", problems));
        map.put_some("password", text("password", problems));
        if kind == "ros_route" {
            map.put_some("gateway4", text("gateway4", problems));
            map.put_some("gateway6", text("gateway6", problems));
            map.put_some("routing-table", text("routing_table", problems));
            map.put_some(
                "distance",
                args.number("distance", problems).map(|number| number.value.to_string()),
            );
            args.ignore(&["conntrack_guard"], "routes end when their time is over", problems);
        } else {
            map.put_some("list4", text("address_list4", problems));
            map.put_some("list6", text("address_list6", problems));
            map.put_some("comment", text("comment_prefix", problems));
        }
        let fixed = args.number("fixed_ttl", problems).map(|number| number.value);
        let least = args.number("min_ttl", problems).map(|number| number.value);
        let most = args.number("max_ttl", problems).map(|number| number.value);
        match fixed {
            Some(0) => map.put("timeout", "none"),
            Some(fixed) => map.put("timeout", format!("{fixed}s")),
            None => {
                map.put("timeout", "ttl");
                map.put("timeout-min", format!("{}s", least.unwrap_or(60)));
                map.put("timeout-max", format!("{}s", most.unwrap_or(3600)));
            }
        }
        map.put_some("queue", args.number("queue_capacity", problems).map(|number| number.value.to_string()));
        if let Some(node) = args.node("tls") {
            let tls = Args::new(self.dialect, "\"tls\"", node, problems);
            map.put("tls", "true");
            map.put_some("server-name", tls.text("server_name", problems).map(|text| text.value));
            map.put_some("ca", tls.text("ca", problems).map(|text| text.value));
            if tls.flag("insecure", problems).is_some_and(|flag| flag.value) {
                map.put("verify", "false");
            }
            tls.finish(problems);
        }
        if let Some(node) = args.node("persistent") {
            let persistent = Args::new(self.dialect, "\"persistent\"", node, problems);
            let mut addresses = persistent.texts("ips", problems);
            let files = persistent.texts("files", problems);
            persistent.finish(problems);
            for file in &files {
                addresses.extend(self.addresses_of_file(file));
            }
            for address in &addresses {
                if let Err(misread) = values::prefix(&address.value) {
                    self.problems.push(misread.into_problem(address.span));
                }
            }
            let notes = files.iter().map(|file| {
                format!(
                    "Those of \"{}\" as it was: what is changed there is to be changed here, too.",
                    file.value
                )
            });
            if !addresses.is_empty() {
                let row = Out::Row(addresses.into_iter().map(|address| address.value).collect());
                map.note("always", notes.collect(), row);
            }
        }
        args.ignore(
            &[
                "async",
                "wait_timeout",
                "connect_timeout",
                "send_timeout",
                "receive_timeout",
                "cleanup_on_shutdown",
            ],
            "no query ever waits for the router here",
            &mut self.problems,
        );
        map
    }

    /// Reads a file of addresses and networks, one on each line.
    fn addresses_of_file(&mut self, file: &At<String>) -> Vec<At<String>> {
        // Where the program is started is usually where its file is.
        let path = self.directory.join(&file.value);
        let octets = match self.environment.read(&path) {
            Ok(octets) => octets,
            Err(error) => {
                self.wrong(
                    file.span,
                    format!("cannot read \"{}\": {}", file.value, diagnostic::io_text(&error)),
                );
                return Vec::new();
            }
        };
        let text = String::from_utf8_lossy(&octets);
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        let found = lines.filter(|line| !line.is_empty());
        found.map(|line| At { value: line.to_owned(), span: file.span }).collect()
    }

    /// An HTTP request.
    fn request(&mut self, args: &Args<'_>, plugin: Span) -> Map {
        let mut map = Map::default();
        map.put("type", "http");
        let url = args.text("url", &mut self.problems);
        let mut target = url.map_or_else(String::new, |url| self.template(&url));
        let pairs = self.pairs(args, "query_params");
        for (at, (key, value)) in pairs.iter().enumerate() {
            target.push_str(&format!(
                "{}{key}={value}",
                if at == 0 && !target.contains('?') { '?' } else { '&' }
            ));
        }
        map.put("url", target);
        map.put_some(
            "method",
            args.text("method", &mut self.problems).map(|method| method.value.to_ascii_lowercase()),
        );
        let mut headers: Vec<String> =
            self.pairs(args, "headers").iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let content = args.text("content_type", &mut self.problems).map(|text| text.value);
        if let Some(body) = args.text("body", &mut self.problems) {
            if let Some(content) = content {
                headers.push(format!("Content-Type: {content}"));
            }
            let body = self.template(&body);
            map.put("body", body);
        } else {
            let json = self.pairs(args, "json");
            let form = self.pairs(args, "form");
            if !json.is_empty() {
                headers.push("Content-Type: application/json".to_owned());
                let parts: Vec<String> =
                    json.iter().map(|(key, value)| format!("\"{key}\": \"{value}\"")).collect();
                // "{{" stands for a brace, and one that closes nothing for itself.
                map.put("body", format!("{{{{{}}}", parts.join(", ")));
            } else if !form.is_empty() {
                headers.push("Content-Type: application/x-www-form-urlencoded".to_owned());
                let parts: Vec<String> = form.iter().map(|(key, value)| format!("{key}={value}")).collect();
                map.put("body", parts.join("&"));
            }
        }
        if !headers.is_empty() {
            map.put("headers", Out::List(headers.into_iter().map(Noted::from).collect()));
        }
        self.patience(args, &mut map);
        map.put_some(
            "queue",
            args.number("queue_size", &mut self.problems).map(|number| number.value.to_string()),
        );
        if args.flag("insecure_skip_verify", &mut self.problems).is_some_and(|flag| flag.value) {
            map.put("verify", "false");
        }
        self.after_the_answer(args);
        self.no_way_of_its_own(args, "an HTTP request", plugin);
        args.ignore(&["max_redirects"], "redirects are not followed", &mut self.problems);
        map
    }

    /// A program.
    fn script(&mut self, args: &Args<'_>) -> Map {
        let mut map = Map::default();
        map.put("type", "script");
        map.put_some("command", args.text("command", &mut self.problems).map(|text| text.value));
        let arguments = args.texts("args", &mut self.problems);
        let arguments: Vec<Noted> = arguments.iter().map(|text| self.template(text).into()).collect();
        if !arguments.is_empty() {
            map.put("arguments", Out::List(arguments));
        }
        let variables = self.pairs(args, "env");
        if !variables.is_empty() {
            let list = variables.iter().map(|(key, value)| format!("{key}={value}").into()).collect();
            map.put("environment", Out::List(list));
        }
        map.put_some("directory", args.text("cwd", &mut self.problems).map(|text| text.value));
        self.patience(args, &mut map);
        self.after_the_answer(args);
        args.ignore(&["max_output_bytes"], "what a program prints is not kept", &mut self.problems);
        map
    }

    fn patience(&mut self, args: &Args<'_>, map: &mut Map) {
        map.put_some("patience", args.text("timeout", &mut self.problems).map(|time| duration(&time.value)));
    }

    /// Everything outside happens when the reply is complete, whatever the plugin says.
    fn after_the_answer(&mut self, args: &Args<'_>) {
        args.ignore(
            &["phase", "async", "error_mode"],
            "effects come when the reply is complete and hold up nothing",
            &mut self.problems,
        );
    }

    /// Returns the keys and values of a mapping, with placeholders in our form.
    fn pairs(&mut self, args: &Args<'_>, key: &'static str) -> Vec<(String, String)> {
        let Some(node) = args.node(key) else { return Vec::new() };
        let Value::Map(entries) = &node.value else {
            self.wrong(node.head(), format!("\"{key}\" takes \"name: value\" lines"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for entry in entries {
            let Value::Scalar(scalar) = &entry.node.value else {
                self.wrong(entry.node.head(), "this is not one value".to_owned());
                continue;
            };
            let text = At { value: scalar.text.clone(), span: entry.node.span };
            found.push((entry.key.clone(), self.template(&text)));
        }
        found
    }

    /// Turns `${qname}` and the like into our placeholders; one that has no equal is an error.
    fn template(&mut self, text: &At<String>) -> String {
        let mut out = String::new();
        let mut rest = text.value.as_str();
        while let Some(at) = rest.find("${") {
            out.push_str(&rest[..at]);
            let after = &rest[at + 2..];
            let Some(end) = after.find('}') else { break };
            match after[..end].as_ref() {
                "qname" => out.push_str("{name}"),
                "qtype" | "qtype_name" => out.push_str("{type}"),
                "client_ip" => out.push_str("{client}"),
                "rcode" | "rcode_name" => out.push_str("{rcode}"),
                "resp_ip" => out.push_str("{addresses}"),
                other => self.wrong(text.span, format!("\"${{{other}}}\" cannot be filled in")),
            }
            rest = &after[end + 1..];
        }
        out.push_str(rest);
        out
    }

    /// The record of queries.
    pub(super) fn recorder(&mut self, plugin: &'a Plugin) -> Vec<Rule> {
        let is_new = self.recorder.is_none();
        let args = self.args(plugin);
        let mut map = Map::default();
        map.put_some("file", args.text("path", &mut self.problems).map(|text| text.value));
        map.put("queries", "chosen");
        let days = args.number("retention_days", &mut self.problems).map_or(7, |days| days.value);
        map.put("keep", format!("{days}d"));
        for key in ["include_marks", "exclude_marks"] {
            if args.node(key).is_some()
                && let Some(place) = args.place(key)
            {
                self.wrong(
                    place,
                    format!("\"{key}\" cannot be expressed: put a condition before the recorder"),
                );
            }
        }
        args.ignore(
            &[
                "queue_size",
                "batch_size",
                "flush_interval_ms",
                "memory_tail",
                "cleanup_interval_hours",
                "reader_concurrency",
            ],
            "the recorder chooses it by itself",
            &mut self.problems,
        );
        args.finish(&mut self.problems);
        if is_new {
            self.recorder = Some(map);
        } else {
            self.wrong(plugin.tag.span, "there is one recorder; this is another".to_owned());
        }
        vec![Rule { actions: vec![Action::plain("record")], ..Rule::default() }]
    }

    /// Names that go into a set by themselves.
    pub(super) fn learn(&mut self, plugin: &'a Plugin) -> Vec<Rule> {
        let args = self.args(plugin);
        let provider = args.text("provider", &mut self.problems);
        let kind =
            args.text("rule_kind", &mut self.problems).map_or_else(|| "full".to_owned(), |kind| kind.value);
        let types = args.texts("qtypes", &mut self.problems);
        args.ignore(
            &["phase", "questions", "success_only", "answer_required", "async", "error_mode", "timeout"],
            "every name that reaches the rule is learnt, when the reply is complete, whatever it says",
            &mut self.problems,
        );
        args.finish(&mut self.problems);
        let Some(provider) = provider else {
            self.wrong(plugin.kind.span, "\"learn_domain\" needs a \"provider\"".to_owned());
            return Vec::new();
        };
        let provider = At { value: provider.value.trim_start_matches('$').to_owned(), span: provider.span };
        let Some(set) = self.set_of(&provider) else { return Vec::new() };
        let types: Vec<String> = types.into_iter().map(|word| word.value.to_ascii_uppercase()).collect();
        let types = if types.is_empty() { "A, AAAA".to_owned() } else { types.join(", ") };
        let how = if kind == "domain" { ", suffix" } else { ", name" };
        vec![Rule {
            condition: Some(format!("qtype in [{types}]")),
            actions: vec![Action::plain(format!("learn({set}{how})"))],
            ..Rule::default()
        }]
    }

    /// Jobs by time.
    pub(super) fn jobs(&mut self) {
        let declared = self.declared;
        for plugin in declared.plugins.iter().filter(|plugin| plugin.kind.value == "cron") {
            self.used.insert(plugin.tag.value.clone());
            let args = self.args(plugin);
            let zone = args.text("timezone", &mut self.problems);
            for node in args.items("jobs") {
                let job = Args::new(self.dialect, "a job", node, &mut self.problems);
                let name = job.text("name", &mut self.problems);
                let schedule = job.text("schedule", &mut self.problems);
                let interval = job.text("interval", &mut self.problems);
                let executors = job.node("executors").map_or_else(Vec::new, |node| self.quick_list(node));
                job.finish(&mut self.problems);
                let mut what = Vec::new();
                for quick in executors {
                    for task in self.job(&quick, 0) {
                        if !what.contains(&task) {
                            what.push(task);
                        }
                    }
                }
                let at = match (schedule, interval) {
                    (Some(schedule), _) => schedule.value,
                    (None, Some(interval)) => match every(&interval.value) {
                        Some(at) => at,
                        None => {
                            self.wrong(
                                interval.span,
                                format!("\"{}\" cannot be said as cron does", interval.value),
                            );
                            continue;
                        }
                    },
                    (None, None) => {
                        self.wrong(
                            node.head(),
                            "this job has neither \"schedule\" nor \"interval\"".to_owned(),
                        );
                        continue;
                    }
                };
                if what.is_empty() {
                    continue;
                }
                let mut map = Map::default();
                map.put_some("name", name.map(|name| name.value));
                map.put("at", at);
                map.put_some("time-zone", zone.as_ref().map(|zone| zone.value.clone()));
                map.put("do", Out::Row(what));
                self.schedules.push(map.into());
            }
            args.finish(&mut self.problems);
        }
    }

    /// Returns what the rules of a sequence do, one after the other.
    fn job_sequence(&mut self, plugin: &'a Plugin, depth: usize) -> Vec<String> {
        let mut what = Vec::new();
        for rule in rules(&plugin.args, &mut self.problems) {
            if let Some(test) = rule.matches.first() {
                self.wrong(
                    test.span(),
                    "a schedule has no conditions: there is no query to look at".to_owned(),
                );
                continue;
            }
            let Some(exec) = &rule.exec else { continue };
            match exec.head.value.as_str() {
                // What ends a sequence ends the job, and what stands behind it is never done.
                "accept" | "return" if !exec.is_reference => break,
                "debug_print" | "query_summary" | "sleep" if !exec.is_reference => {
                    self.warn(exec.span(), format!("\"{}\" in a job is left out", exec.head.value));
                }
                _ => what.extend(self.job(exec, depth + 1)),
            }
        }
        what
    }

    /// Returns what a job does; `depth`: sequences that it is inside of.
    fn job(&mut self, quick: &Quick, depth: usize) -> Vec<String> {
        let kind = if quick.is_reference {
            let Some(plugin) = self.plugin(&quick.head) else { return Vec::new() };
            let kind = plugin.kind.value.clone();
            match kind.as_str() {
                "http_request" | "script" => {
                    return self
                        .effect(plugin)
                        .into_iter()
                        .flat_map(|rule| rule.actions)
                        .map(|action| action.text)
                        .collect();
                }
                // Its files are lists of sets now.
                "download" => return vec!["refresh(sets)".to_owned()],
                "sequence" if depth < JOB_DEPTH_MAX => return self.job_sequence(plugin, depth),
                _ => {}
            }
            kind
        } else {
            quick.head.value.clone()
        };
        match kind.as_str() {
            "reload_provider" => vec!["refresh(sets)".to_owned()],
            "download" => {
                self.wrong(
                    quick.span(),
                    "what is downloaded here is a list of a set: let a plugin \"download\" name its file"
                        .to_owned(),
                );
                Vec::new()
            }
            "upgrade" => {
                self.wrong(
                    quick.span(),
                    "Gannet does not replace itself: whoever installed it does".to_owned(),
                );
                Vec::new()
            }
            other => {
                self.wrong(quick.head.span, format!("\"{other}\" cannot be done by time"));
                Vec::new()
            }
        }
    }
}

/// How deep sequences of a job may name sequences.
const JOB_DEPTH_MAX: usize = 8;

/// Returns a time with its unit: a bare number is seconds.
fn duration(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { format!("{text}s") } else { text.to_owned() }
}

/// Returns how cron says "every so often"; `None` for what does not divide an hour or a day.
fn every(text: &str) -> Option<String> {
    let minutes = values::duration(text).ok()?.as_secs() / 60;
    match minutes {
        1 => Some("* * * * *".to_owned()),
        minutes @ 2..=59 if 60 % minutes == 0 => Some(format!("*/{minutes} * * * *")),
        60 => Some("0 * * * *".to_owned()),
        minutes if minutes % 60 == 0 && minutes / 60 < 24 && 24 % (minutes / 60) == 0 => {
            Some(format!("0 */{} * * *", minutes / 60))
        }
        1440 => Some("0 0 * * *".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_said_as_cron_does() {
        for (text, expect) in [
            ("10m", Some("*/10 * * * *")),
            ("1h", Some("0 * * * *")),
            ("6h", Some("0 */6 * * *")),
            ("24h", Some("0 0 * * *")),
            ("7m", None),
            ("5h", None),
        ] {
            assert_eq!(every(text).as_deref(), expect, "{text}");
        }
    }
}
