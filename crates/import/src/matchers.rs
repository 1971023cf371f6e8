//! Matchers to conditions.

use diagnostic::At;
use yaml::Value;

use super::plugins::{Plugin, Quick, items, words};
use super::{Dialect, Kind, Translator};

/// What stands for a matcher in a condition, and whether it needs parentheses beside `and`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) text: String,
    is_any: bool,
}

impl Condition {
    fn one(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_any: false }
    }

    fn any(parts: &[Self]) -> Self {
        match parts {
            [only] => only.clone(),
            parts => {
                let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
                Self { text: texts.join(" or "), is_any: true }
            }
        }
    }

    fn not(self) -> Self {
        let text = match (self.is_any, self.text.as_str()) {
            (true, text) => format!("not ({text})"),
            (false, "true") => "false".to_owned(),
            (false, "false") => "true".to_owned(),
            (false, text) => match text.strip_prefix("not ") {
                Some(inside) => inside.to_owned(),
                None => format!("not {text}"),
            },
        };
        Self::one(text)
    }
}

/// Returns the condition that all of them make; `None` if there is nothing to ask.
pub(super) fn all(parts: Vec<Condition>) -> Option<String> {
    let several = parts.len() > 1;
    let text = |part: Condition| if part.is_any && several { format!("({})", part.text) } else { part.text };
    let texts: Vec<String> = parts.into_iter().filter(|part| part.text != "true").map(text).collect();
    (!texts.is_empty()).then(|| texts.join(" and "))
}

impl<'a> Translator<'a> {
    /// Translates a matcher of a rule.
    pub(super) fn matcher(&mut self, quick: &Quick) -> Option<Condition> {
        let found = if quick.is_reference {
            let plugin = self.plugin(&quick.head)?;
            if !quick.argument.value.is_empty() {
                self.wrong(quick.argument.span, "a reference to a matcher takes nothing more".to_owned());
                return None;
            }
            self.matcher_plugin(plugin)?
        } else {
            self.matcher_form(&quick.head, &quick.argument, quick)?
        };
        Some(if quick.negated { found.not() } else { found })
    }

    /// Translates a matcher that is a plugin.
    fn matcher_plugin(&mut self, plugin: &'a Plugin) -> Option<Condition> {
        // Matchers that only have a list take it as their settings, or under any key.
        let list = || match &plugin.args.value {
            Value::Map(entries) => entries.first().map_or(&[][..], |entry| items(&entry.node)),
            _ => items(&plugin.args),
        };
        match plugin.kind.value.as_str() {
            "rate_limiter" => {
                let args = self.args(plugin);
                let qps = args.number("qps", &mut self.problems).map_or(20, |qps| qps.value);
                let burst = args.number("burst", &mut self.problems).map_or(40, |burst| burst.value);
                let mask4 = args.number("mask4", &mut self.problems).map_or(32, |mask| mask.value);
                let mask6 = args.number("mask6", &mut self.problems).map_or(48, |mask| mask.value);
                args.finish(&mut self.problems);
                Some(rate(mask4, mask6, qps, burst))
            }
            "any_match" => {
                let mut parts = Vec::new();
                for node in list() {
                    if let Value::Scalar(scalar) = &node.value {
                        parts.push(self.matcher(&Quick::read(scalar, true))?);
                    }
                }
                if parts.is_empty() {
                    self.wrong(plugin.kind.span, "\"any_match\" has nothing to ask".to_owned());
                    return None;
                }
                Some(Condition::any(&parts))
            }
            "time" => self.time(plugin),
            // A full plugin of any other matcher has the words of its quick form as a list.
            _ => {
                let mut texts = Vec::new();
                for node in list() {
                    if let Value::Scalar(scalar) = &node.value {
                        texts.push(scalar.text.clone());
                    }
                }
                let argument = At { value: texts.join(" "), span: plugin.args.head() };
                let quick = Quick {
                    negated: false,
                    is_reference: false,
                    head: plugin.kind.clone(),
                    argument: argument.clone(),
                };
                self.matcher_form(&plugin.kind, &argument, &quick)
            }
        }
    }

    /// Translates `type argument`.
    fn matcher_form(&mut self, kind: &At<String>, argument: &At<String>, quick: &Quick) -> Option<Condition> {
        let nothing = |found: &str| Some(Condition::one(found));
        match kind.value.as_str() {
            "_true" => nothing("true"),
            "_false" => nothing("false"),
            "has_resp" => nothing("answer"),
            "has_wanted_ans" => nothing("answered"),
            "qname" => self.names("qname", argument),
            "cname" => self.names("answer-cname", argument),
            "client_ip" => self.addresses("client", argument),
            "resp_ip" => self.addresses("answer-address", argument),
            "ptr_ip" => self.addresses("ptr-address", argument),
            "question" => self.questions(argument),
            "qtype" => self.numbers("qtype", argument, |number| match wire::Rtype(number) {
                wire::Rtype(255) => "ANY".to_owned(),
                rtype => rtype.to_string(),
            }),
            "qclass" => {
                let words = self.separated(argument);
                let is_in = words.iter().any(|word| matches!(word.value.as_str(), "1" | "IN" | "in"));
                if !is_in {
                    self.warn(quick.span(), "never true here: other classes than IN do not come to policies");
                }
                Some(Condition::one(if is_in { "true" } else { "false" }))
            }
            "rcode" => self.numbers("rcode", argument, |number| match number {
                0 => "noerror".to_owned(),
                1 => "formerr".to_owned(),
                2 => "servfail".to_owned(),
                3 => "nxdomain".to_owned(),
                4 => "notimp".to_owned(),
                5 => "refused".to_owned(),
                other => other.to_string(),
            }),
            "mark" => {
                let mut marks = Vec::new();
                for word in self.separated(argument) {
                    marks.push(self.mark(&word)?.to_string());
                }
                self.need(quick, !marks.is_empty())?;
                Some(Condition::one(match marks.as_slice() {
                    [only] => format!("mark({only})"),
                    several => format!("mark in [{}]", several.join(", ")),
                }))
            }
            "env" => self.environment(quick),
            "random" => {
                let share = argument.value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
                let Some(share) = share else {
                    self.wrong(quick.span(), format!("\"{}\" is no share from 0 to 1", argument.value));
                    return None;
                };
                // Six digits are more than a random share can show.
                let percent = format!("{:.6}", share * 100.0);
                let percent = percent.trim_end_matches('0').trim_end_matches('.').to_owned();
                Some(Condition::one(match percent.as_str() {
                    "0" => "false".to_owned(),
                    "100" => "true".to_owned(),
                    percent => format!("random < {percent}%"),
                }))
            }
            "rate_limiter" if self.dialect == Dialect::Oxidns => {
                let mut numbers = Vec::new();
                for word in self.separated(argument) {
                    match word.value.parse::<u64>() {
                        Ok(number) => numbers.push(number),
                        Err(_) => {
                            self.wrong(word.span, format!("\"{}\" is no number", word.value));
                            return None;
                        }
                    }
                }
                let number = |at: usize, default: u64| numbers.get(at).copied().unwrap_or(default);
                let qps = number(0, 20);
                Some(rate(number(2, 32), number(3, 48), qps, number(1, qps * 2)))
            }
            "string_exp" => self.string(quick),
            "time" if self.dialect == Dialect::Oxidns => {
                Some(Condition::one(format!("now in hours(\"{}\")", argument.value)))
            }
            other => {
                self.wrong(kind.span, format!("{} has no matcher \"{other}\"", self.dialect.name()));
                None
            }
        }
    }

    /// Splits at blanks, and in one program at commas, too.
    pub(super) fn separated(&self, text: &At<String>) -> Vec<At<String>> {
        let words = words(text);
        if self.dialect == Dialect::Mosdns {
            return words;
        }
        let parts = |word: At<String>| -> Vec<At<String>> {
            word.value
                .split(',')
                .filter(|part| !part.is_empty())
                .map(|part| At { value: part.to_owned(), span: word.span })
                .collect()
        };
        words.into_iter().flat_map(parts).collect()
    }

    fn need(&mut self, quick: &Quick, there: bool) -> Option<()> {
        if !there {
            self.wrong(quick.span(), format!("\"{}\" has nothing to compare with", quick.head.value));
        }
        there.then_some(())
    }

    /// `qname` and `cname`: expressions, sets and files.
    fn names(&mut self, field: &str, argument: &At<String>) -> Option<Condition> {
        let terms = self.name_terms(argument)?;
        match terms.as_slice() {
            // Both programs hold an empty list for one in which nothing is.
            [] => Some(Condition::one("false")),
            terms => Some(Condition::one(format!("{field} in {}", terms.join("|")))),
        }
    }

    /// `question $set`: lists that look at the type, too.
    fn questions(&mut self, argument: &At<String>) -> Option<Condition> {
        self.names("qname", argument)
    }

    fn addresses(&mut self, field: &str, argument: &At<String>) -> Option<Condition> {
        let terms = self.address_terms(argument)?;
        match terms.as_slice() {
            [] => Some(Condition::one("false")),
            terms => Some(Condition::one(format!("{field} in {}", terms.join("|")))),
        }
    }

    fn numbers(
        &mut self,
        field: &str,
        argument: &At<String>,
        show: impl Fn(u16) -> String,
    ) -> Option<Condition> {
        let mut values = Vec::new();
        for word in self.separated(argument) {
            let value = match word.value.parse::<u16>() {
                Ok(number) => show(number),
                Err(_) if self.dialect == Dialect::Oxidns => {
                    let is_known = match field {
                        "qtype" => values::rtype(&word.value).is_ok(),
                        _ => values::rcode(&word.value).is_ok(),
                    };
                    if !is_known {
                        self.wrong(word.span, format!("\"{}\" is unknown", word.value));
                        return None;
                    }
                    if field == "qtype" {
                        word.value.to_ascii_uppercase()
                    } else {
                        word.value.to_ascii_lowercase()
                    }
                }
                Err(_) => {
                    self.wrong(word.span, format!("\"{}\" is no number", word.value));
                    return None;
                }
            };
            values.push(value);
        }
        match values.as_slice() {
            [] => {
                self.wrong(argument.span, format!("\"{field}\" has nothing to compare with"));
                None
            }
            [only] => Some(Condition::one(format!("{field} == {only}"))),
            several => Some(Condition::one(format!("{field} in [{}]", several.join(", ")))),
        }
    }

    fn environment(&mut self, quick: &Quick) -> Option<Condition> {
        let words = quick.words();
        self.need(quick, !words.is_empty())?;
        if self.dialect == Dialect::Mosdns {
            return match words.as_slice() {
                [key] => Some(Condition::one(format!("env({})", key.value))),
                [key, value] => {
                    self.warn(
                        quick.span(),
                        format!(
                            "mosdns looks whether a variable \"{}\" is set, by a mistake of its own; here \"{}\" is compared \
                             with it, as was meant",
                            value.value, key.value
                        ),
                    );
                    Some(Condition::one(format!("env({}) == {}", key.value, literal(&value.value))))
                }
                _ => {
                    self.wrong(quick.span(), "\"env\" takes a variable and perhaps a value".to_owned());
                    None
                }
            };
        }
        let parts: Vec<String> = words
            .iter()
            .map(|word| match word.value.split_once(['=', ':']) {
                Some((key, value)) => format!("env({key}) == {}", literal(value)),
                None => format!("env({})", word.value),
            })
            .collect();
        Some(Condition::one(parts.join(" and ")))
    }

    /// `string_exp source operator values…`.
    fn string(&mut self, quick: &Quick) -> Option<Condition> {
        let words = quick.words();
        let [source, operator, values @ ..] = words.as_slice() else {
            self.wrong(quick.span(), "\"string_exp\" takes a source, an operator and values".to_owned());
            return None;
        };
        let field = match source.value.as_str() {
            "url_path" => "path".to_owned(),
            "server_name" => "sni".to_owned(),
            variable if variable.starts_with('$') => {
                self.warn(source.span, "the variable is read when the file is loaded, not for each query");
                format!("env({})", &variable[1..])
            }
            "qname" if self.dialect == Dialect::Oxidns => "qname".to_owned(),
            "client_ip" if self.dialect == Dialect::Oxidns => "client".to_owned(),
            "resp_ip" if self.dialect == Dialect::Oxidns => "answer-address".to_owned(),
            "qtype" | "qclass" | "rcode" | "mark" if self.dialect == Dialect::Oxidns => {
                self.wrong(
                    source.span,
                    format!("\"{}\" cannot be compared as text; use the matcher of that name", source.value),
                );
                return None;
            }
            other => {
                self.wrong(source.span, format!("{} has no text \"{other}\"", self.dialect.name()));
                return None;
            }
        };
        let list: Vec<String> = values.iter().map(|value| literal(&value.value)).collect();
        let list = match list.as_slice() {
            [] if operator.value == "zl" => String::new(),
            [] => {
                self.wrong(operator.span, format!("\"{}\" needs something to compare with", operator.value));
                return None;
            }
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let word = match operator.value.as_str() {
            "zl" => return Some(Condition::one(format!("{field} is empty"))),
            "eq" => "in",
            "prefix" => "starts-with",
            "suffix" => "ends-with",
            "contains" => "contains",
            "regexp" => "matches",
            other => {
                self.wrong(operator.span, format!("unknown operator \"{other}\""));
                return None;
            }
        };
        let word = if word == "in" && values.len() == 1 { "==" } else { word };
        Some(Condition::one(format!("{field} {word} {list}")))
    }

    /// The plugin `time`.
    fn time(&mut self, plugin: &'a Plugin) -> Option<Condition> {
        let args = self.args(plugin);
        let zone = args.text("timezone", &mut self.problems);
        let mut windows = Vec::new();
        for node in args.items("periods") {
            let period = super::Args::new(self.dialect, "a period", node, &mut self.problems);
            let start = period.text("start", &mut self.problems);
            let end = period.text("end", &mut self.problems);
            let weekdays = period.texts("weekdays", &mut self.problems);
            let monthdays = period.texts("monthdays", &mut self.problems);
            period.finish(&mut self.problems);
            let (Some(start), Some(end)) = (start, end) else {
                self.wrong(node.head(), "a period needs \"start\" and \"end\"".to_owned());
                continue;
            };
            let mut window = String::new();
            if !weekdays.is_empty() {
                let days: Vec<String> = weekdays
                    .iter()
                    .map(|day| day.value.to_ascii_lowercase().chars().take(3).collect())
                    .collect();
                window.push_str(&format!("{} ", days.join(",")));
            }
            if !monthdays.is_empty() {
                let days: Vec<&str> = monthdays.iter().map(|day| day.value.as_str()).collect();
                window.push_str(&format!("day {} ", days.join(",")));
            }
            window.push_str(&format!("{}-{}", start.value, end.value));
            windows.push(format!("\"{window}\""));
        }
        args.finish(&mut self.problems);
        if windows.is_empty() {
            self.wrong(plugin.kind.span, "\"time\" has no periods".to_owned());
            return None;
        }
        if let Some(zone) = zone {
            windows.push(format!("\"{}\"", zone.value));
        }
        Some(Condition::one(format!("now in hours({})", windows.join(", "))))
    }

    /// Returns our name of the set that a plugin is.
    pub(super) fn set_of(&mut self, tag: &At<String>) -> Option<String> {
        let plugin = self.plugin(tag)?;
        self.set_plugin(plugin);
        Some(self.name(Kind::Set, &plugin.tag.value))
    }
}

/// True while the client may ask; what `rate` counts is what goes beyond.
fn rate(mask4: u64, mask6: u64, qps: u64, burst: u64) -> Condition {
    Condition::one(format!("rate(client/{mask4}/{mask6}) > {qps}/s burst {burst}")).not()
}

/// Returns a value as conditions take it.
fn literal(text: &str) -> String {
    if text.contains('"') { format!("'{text}'") } else { format!("\"{text}\"") }
}
