//! Executors to actions.

use diagnostic::{At, Span};
use yaml::Value;

use super::plugins::{Plugin, Quick, items};
use super::policies::{Action, Rule};
use super::{Args, Dialect, Kind, Translator};

/// Rules that an executor becomes, mostly one with one action.
type Rules = Vec<Rule>;

fn one(action: Action) -> Rules {
    vec![Rule { actions: vec![action], ..Rule::default() }]
}

fn plain(text: impl Into<String>) -> Rules {
    one(Action::plain(text))
}

fn noted(mut rules: Rules, note: &str) -> Rules {
    if let Some(first) = rules.first_mut() {
        first.notes.push(note.to_owned());
    }
    rules
}

impl<'a> Translator<'a> {
    /// Translates what a rule does. `ends_alone`: what ends this sequence does not end whoever ran
    /// it.
    pub(super) fn executor(&mut self, quick: &Quick, ends_alone: bool) -> Rules {
        if quick.is_reference {
            let Some(plugin) = self.plugin(&quick.head) else { return Rules::new() };
            return self.executor_plugin(plugin, quick);
        }
        let argument = &quick.argument;
        match quick.head.value.as_str() {
            "accept" if ends_alone => plain("return"),
            "accept" => plain("accept"),
            "return" => plain("return"),
            "reject" => {
                let Some(rcode) = self.rcode(quick) else { return Rules::new() };
                if ends_alone {
                    let answer = Action::finds(format!("respond({rcode})"));
                    return vec![Rule { actions: vec![answer, Action::plain("return")], ..Rule::default() }];
                }
                plain(format!("reject({rcode})"))
            }
            "jump" | "goto" => {
                let Some(plugin) = self.plugin(argument) else { return Rules::new() };
                if plugin.kind.value != "sequence" {
                    self.wrong(argument.span, format!("\"{}\" is no sequence", argument.value));
                    return Rules::new();
                }
                let name = self.sequence_policy(&argument.value, ends_alone);
                match (quick.head.value.as_str(), self.dialect) {
                    ("jump", _) => plain(format!("call({name})")),
                    ("goto", Dialect::Mosdns) => plain(format!("goto({name})")),
                    // What called this sequence goes on after it.
                    _ => {
                        let actions = vec![Action::plain(format!("call({name})")), Action::plain("return")];
                        vec![Rule { actions, ..Rule::default() }]
                    }
                }
            }
            "mark" | "set_mark" => self.marks(quick),
            "drop_resp" => plain("forget"),
            "prefer_ipv4" => plain("prefer-ipv4"),
            "prefer_ipv6" => plain("prefer-ipv6"),
            "sleep" => self.sleep(argument),
            "ttl" => self.ttl(quick),
            "black_hole" => self.black_hole(quick),
            "forward" => self.quick_forward(quick),
            "cache" => self.quick_cache(quick),
            "ecs" if self.dialect == Dialect::Mosdns => self.preset_subnet(quick, true),
            "ecs_handler" => self.preset_subnet(quick, false),
            "forward_edns0opt" => {
                let codes = self.separated(argument);
                self.edns_options(&codes)
            }
            "client_ip_from_ecs" if self.dialect == Dialect::Oxidns => {
                let peers: Vec<String> =
                    self.separated(argument).into_iter().map(|word| word.value).collect();
                self.trusted_peers(&peers, quick.span());
                Rules::new()
            }
            "ipset" | "nftset" => self.kernel_sets(quick),
            "debug_print" | "query_summary" => {
                let default = if quick.head.value == "debug_print" { "debug print" } else { "query summary" };
                let text = if argument.value.is_empty() { default } else { &argument.value };
                plain(format!("log({})", quoted(text)))
            }
            "metrics_collector" => self.label(argument),
            "ip_selector" if self.dialect == Dialect::Oxidns => {
                self.select_addresses(&argument.value, argument)
            }
            "download" | "reload" | "upgrade" | "reload_provider" if self.dialect == Dialect::Oxidns => {
                self.no_upkeep(&quick.head.value, quick.span());
                Rules::new()
            }
            other => {
                self.wrong(
                    quick.head.span,
                    format!("{} has no executor \"{other}\" of this form", self.dialect.name()),
                );
                Rules::new()
            }
        }
    }

    /// Says that no query looks after the server.
    fn no_upkeep(&mut self, kind: &str, place: Span) {
        let what = match kind {
            "upgrade" => "Gannet does not replace itself: whoever installed it does",
            "reload" => "a reload is asked for by \"gannet reload\"",
            _ => "lists are refreshed by time here, see \"schedules\"",
        };
        self.wrong(place, format!("\"{kind}\" for each query: {what}"));
    }

    /// Translates `$tag`.
    fn executor_plugin(&mut self, plugin: &'a Plugin, quick: &Quick) -> Rules {
        let tag = plugin.tag.value.clone();
        let takes_words = plugin.kind.value == "forward" && self.dialect == Dialect::Mosdns;
        if !quick.argument.value.is_empty() && !takes_words {
            self.wrong(quick.argument.span, format!("\"{tag}\" takes nothing more"));
            return Rules::new();
        }
        match plugin.kind.value.as_str() {
            "sequence" if self.dialect == Dialect::Mosdns => {
                // What ends such a sequence does not end the one that names it: unlike after
                // "jump".
                let name = self.sequence_policy(&tag, true);
                plain(format!("call({name})"))
            }
            "sequence" => {
                let name = self.sequence_policy(&tag, false);
                plain(format!("call({name})"))
            }
            "forward" => {
                let members = quick.words();
                let ends = self.short_circuit(plugin);
                let Some(text) = self.forward(plugin, &members) else { return Rules::new() };
                with_end(text, ends)
            }
            "cache" => {
                let Some(ends) = self.cache(plugin) else { return Rules::new() };
                let name = self.name(Kind::Cache, &tag);
                let action = Action::finds(format!("cache({name})"));
                one(if ends { action.ending() } else { action })
            }
            "fallback" => self.fallback(plugin),
            "hosts" => self.hosts(plugin),
            "arbitrary" => self.arbitrary(plugin),
            "redirect" => self.redirect(plugin),
            "response" if self.dialect == Dialect::Oxidns => self.response(plugin),
            "ecs_handler" => self.subnet(plugin),
            "reverse_lookup" => self.reverse(plugin),
            "black_hole" if self.dialect == Dialect::Oxidns => self.black_hole_plugin(plugin),
            "ttl" if self.dialect == Dialect::Oxidns => self.ttl_plugin(plugin),
            "sleep" => {
                let args = self.args(plugin);
                let time = args.text("duration", &mut self.problems);
                args.finish(&mut self.problems);
                time.map_or_else(Rules::new, |time| self.sleep(&time))
            }
            "debug_print" | "query_summary" => {
                let args = self.args(plugin);
                let text = args.text("msg", &mut self.problems).map(|text| text.value);
                args.finish(&mut self.problems);
                plain(format!("log({})", quoted(text.as_deref().unwrap_or(&plugin.kind.value))))
            }
            "metrics_collector" => {
                let args = self.args(plugin);
                let name = args.text("name", &mut self.problems);
                args.finish(&mut self.problems);
                name.map_or_else(Rules::new, |name| self.label(&name))
            }
            "forward_edns0opt" => {
                let args = self.args(plugin);
                let codes = args.texts("codes", &mut self.problems);
                args.finish(&mut self.problems);
                self.edns_options(&codes)
            }
            "client_ip_from_ecs" => {
                let peers: Vec<String> = super::args::texts(&plugin.args, &mut self.problems)
                    .into_iter()
                    .map(|peer| peer.value)
                    .collect();
                self.trusted_peers(&peers, plugin.tag.span);
                Rules::new()
            }
            "prefer_ipv4" => self.prefer_plugin(plugin, "prefer-ipv4"),
            "prefer_ipv6" => self.prefer_plugin(plugin, "prefer-ipv6"),
            "ip_selector" => self.selector_plugin(plugin),
            "ipset" | "nftset" | "ros_address_list" | "ros_route" | "http_request" | "script" => {
                self.effect(plugin)
            }
            "query_recorder" => self.recorder(plugin),
            "learn_domain" => self.learn(plugin),
            "drop_resp" => plain("forget"),
            kind @ ("download" | "reload" | "upgrade" | "reload_provider")
                if self.dialect == Dialect::Oxidns =>
            {
                self.no_upkeep(kind, quick.span());
                Rules::new()
            }
            other => {
                self.wrong(
                    quick.span(),
                    format!("\"{tag}\" is of the type \"{other}\", which is no executor"),
                );
                Rules::new()
            }
        }
    }

    fn black_hole_plugin(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let mode = args.text("mode", &mut self.problems).map(|mode| mode.value);
        let addresses = args.texts("ips", &mut self.problems);
        let ends = args.flag("short_circuit", &mut self.problems).is_some_and(|flag| flag.value);
        args.finish(&mut self.problems);
        self.black_hole_of(mode.as_deref(), &addresses, ends)
    }

    fn ttl_plugin(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let fixed = args.number("fix", &mut self.problems).map(|ttl| ttl.value);
        let min = args.number("min", &mut self.problems).map(|ttl| ttl.value);
        let max = args.number("max", &mut self.problems).map(|ttl| ttl.value);
        args.finish(&mut self.problems);
        ttl(fixed, min, max)
    }

    fn prefer_plugin(&mut self, plugin: &'a Plugin, action: &str) -> Rules {
        let args = self.args(plugin);
        args.ignore(
            &["cache", "cache_ttl", "probe_executor"],
            "Gannet asks both at once",
            &mut self.problems,
        );
        args.finish(&mut self.problems);
        plain(action)
    }

    /// Translates what orders the addresses of an answer by their distance.
    fn selector_plugin(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let mode =
            args.text("selection_mode", &mut self.problems).map_or_else(String::new, |mode| mode.value);
        let methods = args.texts("probe_methods", &mut self.problems);
        args.ignore(
            &[
                "probe_stagger",
                "probe_timeout",
                "max_wait",
                "top_n",
                "dnssec_policy",
                "max_parallel_probes",
                "cache",
            ],
            "measured behind the clients' backs here",
            &mut self.problems,
        );
        self.no_way_of_its_own(&args, "a measurement", plugin.kind.span);
        args.finish(&mut self.problems);
        let methods: Vec<String> = methods.into_iter().map(|method| method.value).collect();
        self.select_addresses(&format!("{mode} {}", methods.join(",")), &plugin.kind)
    }

    /// Returns whether a plugin of OxiDNS ends with the answer it finds.
    fn short_circuit(&mut self, plugin: &'a Plugin) -> bool {
        let Value::Map(entries) = &plugin.args.value else { return false };
        entries.iter().any(|entry| {
            entry.key == "short_circuit"
                && matches!(&entry.node.value, Value::Scalar(scalar) if scalar.text.eq_ignore_ascii_case("true"))
        })
    }

    fn rcode(&mut self, quick: &Quick) -> Option<String> {
        let text = quick.argument.value.as_str();
        let number = match text {
            "" => 5,
            text => match text.parse::<u16>() {
                Ok(number) => number,
                Err(_) if self.dialect == Dialect::Oxidns && values::rcode(text).is_ok() => {
                    return Some(text.to_ascii_lowercase());
                }
                Err(_) => {
                    self.wrong(quick.argument.span, format!("\"{text}\" is no response code"));
                    return None;
                }
            },
        };
        const WORDS: [&str; 6] = ["noerror", "formerr", "servfail", "nxdomain", "notimp", "refused"];
        match WORDS.get(usize::from(number)) {
            Some(word) => Some((*word).to_owned()),
            None => {
                self.wrong(
                    quick.span(),
                    format!(
                        "the response code {number} cannot be given: clients would not know what it means"
                    ),
                );
                None
            }
        }
    }

    fn marks(&mut self, quick: &Quick) -> Rules {
        let mut actions = Vec::new();
        if quick.head.value == "set_mark" {
            // It replaces all marks.
            actions.push(Action::plain("unmark"));
        }
        for word in self.separated(&quick.argument) {
            if let Some(mark) = self.mark(&word) {
                actions.push(Action::plain(format!("mark({mark})")));
            }
        }
        vec![Rule { actions, ..Rule::default() }]
    }

    fn sleep(&mut self, time: &At<String>) -> Rules {
        let text = time.value.trim();
        let text = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("{text}ms")
        } else {
            text.to_owned()
        };
        if values::duration(&text).is_err() {
            self.wrong(time.span, format!("\"{}\" is no time", time.value));
            return Rules::new();
        }
        plain(format!("sleep({text})"))
    }

    fn ttl(&mut self, quick: &Quick) -> Rules {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let found = match quick.argument.value.split_once('-') {
            None => number(&quick.argument.value).map(|fixed| ttl(Some(fixed), None, None)),
            Some((min, max)) => match (number(min), number(max)) {
                (Some(min), Some(max)) => Some(ttl(None, Some(min), Some(max))),
                _ => None,
            },
        };
        found.unwrap_or_else(|| {
            self.wrong(quick.span(), "\"ttl\" takes seconds, or two numbers with \"-\" between".to_owned());
            Rules::new()
        })
    }

    fn black_hole(&mut self, quick: &Quick) -> Rules {
        let mut words = quick.words();
        if self.dialect == Dialect::Mosdns {
            return self.black_hole_addresses(&words);
        }
        let mut ends = false;
        words.retain(|word| {
            let is_option = word.value.starts_with("short_circuit");
            ends |= is_option && !word.value.ends_with("false");
            !is_option
        });
        let mode =
            words.first().filter(|word| values::address(&word.value).is_err()).map(|word| word.value.clone());
        let addresses = &words[usize::from(mode.is_some())..];
        self.black_hole_of(mode.as_deref(), addresses, ends)
    }

    /// In mosdns only types for which there is an address get one; everything else goes on.
    fn black_hole_addresses(&mut self, words: &[At<String>]) -> Rules {
        let mut v4 = Vec::new();
        let mut v6 = Vec::new();
        for word in words {
            match values::address(&word.value) {
                Ok(address) if address.is_ipv4() => v4.push(word.value.clone()),
                Ok(_) => v6.push(word.value.clone()),
                Err(_) => self.wrong(word.span, format!("\"{}\" is no address", word.value)),
            }
        }
        let condition = match (v4.is_empty(), v6.is_empty()) {
            (true, true) => return Rules::new(),
            (false, true) => "qtype == A",
            (true, false) => "qtype == AAAA",
            (false, false) => "qtype in [A, AAAA]",
        };
        let list = [v4, v6].concat().join("|");
        let action = Action::finds(format!("block({list}, ttl 300s)"));
        vec![Rule { condition: Some(condition.to_owned()), actions: vec![action], ..Rule::default() }]
    }

    fn black_hole_of(&mut self, mode: Option<&str>, addresses: &[At<String>], ends: bool) -> Rules {
        let list: Vec<&str> = addresses.iter().map(|address| address.value.as_str()).collect();
        let word = match (mode, list.is_empty()) {
            (Some(mode @ ("nxdomain" | "nodata" | "null" | "refused")), _) => mode.to_owned(),
            (Some("servfail"), _) => {
                return one(Action { continues: !ends, ..Action::finds("respond(servfail)") });
            }
            (None, true) => "nxdomain".to_owned(),
            (None | Some("custom"), false) => list.join("|"),
            (Some(other), _) => {
                let at = addresses.first().map_or(Span::BUILT_IN, |address| address.span);
                self.wrong(at, format!("\"black_hole\" has no mode \"{other}\""));
                return Rules::new();
            }
        };
        one(Action { continues: !ends, ..Action::finds(format!("block({word}, ttl 300s)")) })
    }

    fn fallback(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let primary = args.text("primary", &mut self.problems);
        let secondary = args.text("secondary", &mut self.problems);
        let threshold = match self.dialect {
            Dialect::Mosdns => {
                args.number("threshold", &mut self.problems).map(|ms| format!("{}ms", ms.value))
            }
            Dialect::Oxidns => args.text("threshold", &mut self.problems).map(|time| {
                if time.value.bytes().all(|byte| byte.is_ascii_digit()) {
                    format!("{}ms", time.value)
                } else {
                    time.value
                }
            }),
        };
        let threshold =
            threshold.filter(|time| !time.starts_with("0m")).unwrap_or_else(|| "500ms".to_owned());
        let standby = args.flag("always_standby", &mut self.problems).is_some_and(|flag| flag.value);
        let mut ends = false;
        if self.dialect == Dialect::Oxidns {
            ends = args.flag("short_circuit", &mut self.problems).is_some_and(|flag| flag.value);
            for key in ["fallback_on_timeout", "fallback_on_error", "fallback_on_no_response"] {
                if args.flag(key, &mut self.problems).is_some_and(|flag| !flag.value)
                    && let Some(place) = args.place(key)
                {
                    self.warn(
                        place,
                        format!("\"{key}: false\" is left out: a side without an answer never wins here"),
                    );
                }
            }
        }
        args.finish(&mut self.problems);
        let (Some(primary), Some(secondary)) = (primary, secondary) else {
            self.wrong(plugin.kind.span, "\"fallback\" needs \"primary\" and \"secondary\"".to_owned());
            return Rules::new();
        };
        let (Some(first), Some(second)) = (self.side(&primary), self.side(&secondary)) else {
            return Rules::new();
        };
        let standby = if standby { ", standby always" } else { "" };
        let text = format!("fallback({first}, {second}, after {threshold}{standby})");
        let rules = with_end(text, ends);
        noted(
            rules,
            &format!(
                "In {} any answer of the first side wins, SERVFAIL too; here the second is asked then.",
                self.dialect.name()
            ),
        )
    }

    /// One side of a fallback: an upstream group or a policy.
    fn side(&mut self, tag: &At<String>) -> Option<String> {
        let plugin = self.plugin(tag)?;
        match plugin.kind.value.as_str() {
            "forward" => {
                self.forward(plugin, &[])?;
                Some(self.name(Kind::Upstream, &plugin.tag.value))
            }
            "sequence" => Some(self.sequence_policy(&plugin.tag.value, false)),
            _ => Some(self.single_policy(&plugin.tag.value)),
        }
    }

    fn quick_cache(&mut self, quick: &Quick) -> Rules {
        let mut ends = false;
        let mut octets = None;
        match self.dialect {
            Dialect::Mosdns if !quick.argument.value.is_empty() => {
                match quick.argument.value.parse::<u64>() {
                    Ok(size) => octets = Some(size),
                    Err(_) => {
                        self.wrong(quick.argument.span, format!("\"{}\" is no size", quick.argument.value));
                        return Rules::new();
                    }
                }
            }
            Dialect::Mosdns => {}
            Dialect::Oxidns => {
                ends = quick.argument.value.starts_with("short_circuit")
                    && !quick.argument.value.ends_with("false");
            }
        }
        let name = self.fresh(Kind::Cache, "quick");
        self.plain_cache(&name, octets.unwrap_or(1024));
        one(Action { continues: !ends, ..Action::finds(format!("cache({name})")) })
    }

    fn subnet(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let flag = |args: &Args<'_>, key, problems: &mut Vec<_>| {
            args.flag(key, problems).is_some_and(|flag| flag.value)
        };
        let forward = flag(&args, "forward", &mut self.problems);
        let send = flag(&args, "send", &mut self.problems);
        let preset = args.text("preset", &mut self.problems).filter(|preset| !preset.value.is_empty());
        let mask4 = args.number("mask4", &mut self.problems).map_or(24, |mask| mask.value);
        let mask6 = args.number("mask6", &mut self.problems).map_or(48, |mask| mask.value);
        args.finish(&mut self.problems);
        let keep = if forward { ", keep" } else { "" };
        let text = match preset {
            Some(preset) => {
                let Ok(address) = values::address(preset.value.split('/').next().unwrap_or("")) else {
                    self.wrong(preset.span, format!("\"{}\" is no address", preset.value));
                    return Rules::new();
                };
                let mask = if address.is_ipv4() { mask4 } else { mask6 };
                format!("ecs({}{keep})", network(address, mask))
            }
            None if send => format!("ecs(client, ipv4 {mask4}, ipv6 {mask6}{keep})"),
            None if forward => "ecs(forward)".to_owned(),
            None => "ecs(strip)".to_owned(),
        };
        let rules = plain(text);
        if send {
            return noted(
                rules,
                "Private addresses of clients are never told here; they would tell nobody anything.",
            );
        }
        rules
    }

    fn preset_subnet(&mut self, quick: &Quick, is_old_form: bool) -> Rules {
        let words = quick.words();
        let Some(first) = words.first() else {
            self.warn(quick.span(), "without an address this does nothing useful: it is left out");
            return Rules::new();
        };
        let (address, bits) = match first.value.split_once('/') {
            Some((address, bits)) if !is_old_form => (address, bits.parse::<u8>().ok()),
            Some((address, _)) => (address, None),
            None => (first.value.as_str(), None),
        };
        let Ok(address) = values::address(address) else {
            self.wrong(first.span, format!("\"{}\" is no address", first.value));
            return Rules::new();
        };
        if words.len() > 1 {
            self.warn(quick.span(), "only the first address is used, as there");
        }
        let bits = bits.unwrap_or(if address.is_ipv4() { 24 } else { 48 });
        plain(format!("ecs({})", network(address, u64::from(bits))))
    }

    fn edns_options(&mut self, codes: &[At<String>]) -> Rules {
        let mut list = Vec::new();
        let mut rules = Rules::new();
        for code in codes.iter().flat_map(|code| code.value.split(',').map(|part| (part.trim(), code.span))) {
            match code.0.parse::<u16>() {
                Ok(8) => rules.extend(plain("ecs(forward)")),
                Ok(number @ 10..=12) => self.warn(
                    code.1,
                    format!("option {number} is left out: it is for one connection or one server alone"),
                ),
                Ok(number) => list.push(format!("{number} forward")),
                Err(_) => self.wrong(code.1, format!("\"{}\" is no number of an option", code.0)),
            }
        }
        if !list.is_empty() {
            rules.extend(plain(format!("options({})", list.join(", "))));
        }
        rules
    }

    fn select_addresses(&mut self, words: &str, at: &At<String>) -> Rules {
        let mut ports = Vec::new();
        for method in words.split([' ', ',']).filter(|word| !word.is_empty()) {
            match method {
                "first_success" | "best_within_budget" | "background" | "none" => {}
                "ping" => self.warn(at.span, "addresses are measured by TCP here: \"ping\" is left out"),
                method => match method.strip_prefix("tcp:").and_then(|port| port.parse::<u16>().ok()) {
                    Some(port) => ports.push(port.to_string()),
                    None => self.wrong(at.span, format!("unknown way to measure \"{method}\"")),
                },
            }
        }
        let ports = if ports.is_empty() { "443".to_owned() } else { ports.join("|") };
        vec![Rule::after(format!("quickest(port {ports})"))]
    }

    fn label(&mut self, name: &At<String>) -> Rules {
        if name.value.is_empty() {
            self.wrong(name.span, "\"metrics_collector\" needs a name".to_owned());
            return Rules::new();
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let label: String = name.value.chars().map(|c| if legal(c) { c } else { '-' }).collect();
        plain(format!("label({label})"))
    }

    fn response(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let rcode =
            args.text("rcode", &mut self.problems).map_or_else(|| "noerror".to_owned(), |rcode| rcode.value);
        let rcode = match rcode.parse::<usize>() {
            Ok(number) => ["noerror", "formerr", "servfail", "nxdomain", "notimp", "refused"]
                .get(number)
                .map_or(rcode.clone(), |word| (*word).to_owned()),
            Err(_) => rcode.to_ascii_lowercase(),
        };
        let mut text = format!("respond({rcode}");
        for (key, word) in
            [("answers", "answer"), ("authorities", "authority"), ("additionals", "additional")]
        {
            let records: Vec<String> = args
                .texts(key, &mut self.problems)
                .iter()
                .map(|record| quoted(&record.value.replace("{qname}", "@").replace("{qclass}", "IN")))
                .collect();
            if !records.is_empty() {
                text.push_str(&format!(", {word} {}", records.join("|")));
            }
        }
        if args.flag("authoritative", &mut self.problems).is_some_and(|flag| flag.value) {
            text.push_str(", authoritative");
        }
        if args.flag("authentic_data", &mut self.problems).is_some_and(|flag| flag.value) {
            text.push_str(", authentic");
        }
        let ends = args.flag("short_circuit", &mut self.problems).is_none_or(|flag| flag.value);
        args.finish(&mut self.problems);
        text.push(')');
        one(Action { continues: !ends, ..Action::finds(text) })
    }

    fn reverse(&mut self, plugin: &'a Plugin) -> Rules {
        let args = self.args(plugin);
        let size = args.number("size", &mut self.problems).map_or(65_535, |size| size.value);
        let answers = args.flag("handle_ptr", &mut self.problems).is_some_and(|flag| flag.value);
        let ttl = args.number("ttl", &mut self.problems).map_or(7200, |ttl| ttl.value);
        args.finish(&mut self.problems);
        let mut rules = Rules::new();
        if answers {
            rules.extend(plain("reverse"));
        }
        rules.push(Rule::after(format!("remember(for {ttl}s, size {size})")));
        // What is remembered for so long is not kept longer by clients.
        rules.push(Rule::after(format!("ttl(max {ttl}s)")));
        rules
    }

    /// Reads a list of plugins as `executors` has them.
    pub(super) fn quick_list(&mut self, node: &yaml::Node) -> Vec<Quick> {
        items(node)
            .iter()
            .filter_map(|item| match &item.value {
                Value::Scalar(scalar) => Some(Quick::read(scalar, false)),
                Value::Null | Value::Long(_) | Value::List(_) | Value::Map(_) => None,
            })
            .collect()
    }
}

/// An action that brings an answer and perhaps ends.
pub(super) fn with_end(text: String, ends: bool) -> Rules {
    let mut rules = plain(text);
    if ends {
        rules.push(Rule {
            condition: Some("answer".to_owned()),
            actions: vec![Action::plain("accept")],
            ..Rule::default()
        });
    }
    rules
}

fn ttl(fixed: Option<u64>, min: Option<u64>, max: Option<u64>) -> Rules {
    let (min, max) = (min.filter(|&ttl| ttl > 0), max.filter(|&ttl| ttl > 0));
    match (fixed.filter(|&ttl| ttl > 0), min, max) {
        (Some(fixed), _, _) => plain(format!("ttl(fixed {fixed}s)")),
        (None, Some(min), Some(max)) => plain(format!("ttl(min {min}s, max {max}s)")),
        (None, Some(min), None) => plain(format!("ttl(min {min}s)")),
        (None, None, Some(max)) => plain(format!("ttl(max {max}s)")),
        (None, None, None) => Rules::new(),
    }
}

/// Returns a network without host bits, as prefixes are written here.
fn network(address: std::net::IpAddr, bits: u64) -> wire::Prefix {
    let most = if address.is_ipv4() { 32 } else { 128 };
    wire::Prefix::new(address, bits.min(most) as u8)
}

/// Returns a text as actions take it.
pub(super) fn quoted(text: &str) -> String {
    if text.contains('"') { format!("'{}'", text.replace('\'', " ")) } else { format!("\"{text}\"") }
}
