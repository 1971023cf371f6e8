//! Arguments as these programs take them: single letters, some with a value, then the rest.

/// Arguments that were read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    /// Letters, each with its value, in their order.
    pub(super) options: Vec<(char, String)>,
    pub(super) rest: Vec<String>,
}

impl Arguments {
    /// Reads arguments: `with_value` are the letters that have one, `plain` those without. Letters
    /// may stand behind other arguments, too, as for `getopt` of glibc; behind `--` there are none.
    ///
    /// # Errors
    ///
    /// The letter that is unknown, or lacks its value.
    pub(super) fn read(arguments: Vec<String>, with_value: &str, plain: &str) -> Result<Self, char> {
        let mut read = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let letters = match argument.strip_prefix('-') {
                Some("-") => {
                    read.rest.extend(arguments);
                    break;
                }
                Some(letters) if !letters.is_empty() => letters,
                _ => {
                    read.rest.push(argument);
                    continue;
                }
            };
            for (at, letter) in letters.char_indices() {
                if plain.contains(letter) {
                    read.options.push((letter, String::new()));
                    continue;
                }
                if !with_value.contains(letter) {
                    return Err(letter);
                }
                let behind = &letters[at + letter.len_utf8()..];
                let value = if behind.is_empty() { arguments.next() } else { Some(behind.to_owned()) };
                read.options.push((letter, value.ok_or(letter)?));
                break;
            }
        }
        Ok(read)
    }

    /// Returns whether a letter is there.
    pub(super) fn has(&self, letter: char) -> bool {
        self.options.iter().any(|(known, _)| *known == letter)
    }

    /// Returns the value of a letter: of several, the last.
    pub(super) fn value(&self, letter: char) -> Option<&str> {
        self.options.iter().rev().find(|(known, _)| *known == letter).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(String, String), char> {
        let read = Arguments::read(line.split(' ').map(str::to_owned).collect(), "cs", "qh")?;
        let options: Vec<String> =
            read.options.iter().map(|(letter, value)| format!("{letter}={value}")).collect();
        Ok((options.join(" "), read.rest.join(" ")))
    }

    #[test]
    fn letters_stand_together_and_values_behind_them() {
        let check = |line: &str, options: &str, rest: &str| {
            assert_eq!(read(line), Ok((options.to_owned(), rest.to_owned())), "{line}");
        };
        check("-q -c file status", "q= c=file", "status");
        check("-qcfile set_option -- -x: 1", "q= c=file", "set_option -x: 1");
        check("flush +c a", "", "flush +c a");
        check("-- -q", "", "-q");
        check("file -c value -q - -- -s", "c=value q=", "file - -s");
        assert_eq!(read("verbosity -1"), Err('1'));
        assert_eq!(read("-z"), Err('z'));
        assert_eq!(read("-q -c"), Err('c'));
    }
}
