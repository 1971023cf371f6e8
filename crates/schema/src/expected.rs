//! What a setting takes, in words: for messages, the manual and comments.

use std::time::Duration;

use diagnostic::suggest::one_of;
use lists::ListFormat;
use values::PREFIX_WORDS;

use super::{Kind, NUMBERED_PICKS, PLAIN_PICKS, Value};

impl Kind {
    /// Says what a setting takes.
    pub fn expected(self) -> String {
        match self {
            Self::Section | Self::Named(_) => "a mapping".to_owned(),
            Self::Items => "a list".to_owned(),
            Self::List(value) => format!("a list, each {}", value.expected()),
            Self::One(value) => value.expected(),
        }
    }
}

impl Value {
    /// Says what a value may be.
    pub fn expected(self) -> String {
        let or = |text: String, word: Option<&str>| match word {
            Some(word) => format!("{text}, or \"{word}\""),
            None => text,
        };
        let time = |ms: u64| values::duration_text(Duration::from_millis(ms));
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Whole { min, max, word } => or(format!("a number from {min} to {max}"), word),
            Self::Duration { min, max, word } => {
                or(format!("a duration from {} to {}", time(min), time(max)), word)
            }
            Self::Hedge { min, max } => {
                format!("\"auto\", \"off\", or a duration from {} to {}", time(min), time(max))
            }
            Self::Size { min, max } => {
                format!("a size from {} to {}", values::size_text(min), values::size_text(max))
            }
            Self::Percent { min, max, word } => or(format!("a percentage from {min}% to {max}%"), word),
            Self::Word(words) => one_of(words),
            Self::Text { word } => or("a text".to_owned(), word),
            Self::Path => "a path".to_owned(),
            Self::Glob => "a path, which may hold \"*\" and \"?\"".to_owned(),
            Self::Address => "an IP address".to_owned(),
            Self::Socket { port, word } => or(format!("an address, with a port if it is not {port}"), word),
            Self::Prefix => format!("an address prefix, or one of {}", PREFIX_WORDS.join(", ")),
            Self::Server => {
                "\"system\", an address, a host name, either after \"udp://\", \"tcp://\", \"tls://\" or \"quic://\", or an \
                 \"https://\" or \"h3://\" URL, or a DNS stamp"
                    .to_owned()
            }
            Self::Pin => "\"sha256/\" and 44 letters of Base64".to_owned(),
            Self::Pick => {
                let plain = PLAIN_PICKS.iter().map(|(word, _)| *word);
                let all: Vec<&str> = plain.chain(NUMBERED_PICKS.iter().map(|(_, written)| *written)).collect();
                one_of(&all)
            }
            Self::RcodeTerm => format!("\"unusable\", or {}", one_of(&values::RCODES.map(|(word, _)| word))),
            Self::Secret { word } => or("32 hexadecimal digits, or \"file:\" and a path".to_owned(), word),
            Self::Password => "a secret text, or \"file:\" and a path".to_owned(),
            Self::NamePattern => {
                "\"suffix:example.org\", \"exact:example.org\", \"keyword:text\" or \"regex:expression\""
                    .to_owned()
            }
            Self::AddressRange => {
                format!("an address, a prefix, a range, or one of {}", PREFIX_WORDS.join(", "))
            }
            Self::SetList => format!("FORMAT:FILE or FORMAT:URL, where FORMAT is {}", one_of(ListFormat::WORDS)),
            Self::Condition => "a condition".to_owned(),
            Self::Action => "an action such as \"cache(main)\"".to_owned(),
            Self::Label => "a name".to_owned(),
        }
    }
}
