//! The options of other launchers: a table for each of them, from which the command line is read and the help is made.

use std::collections::VecDeque;
use std::ffi::OsString;
use weft_wire::settings::nearest;

/// One option: its names without dashes, what follows it, what it becomes, and what the help says of it.
pub struct KnownOption<B: 'static> {
    /// Cut at blanks.
    pub names: &'static str,
    /// The words that follow it, cut at blanks. One that begins with `[=` may only stand behind an equals sign.
    pub takes: &'static str,
    pub becomes: B,
    /// What it does, or why it is ignored.
    pub meaning: &'static str,
}

/// Short for a line of a table.
pub const fn known<B>(names: &'static str, takes: &'static str, becomes: B, meaning: &'static str) -> KnownOption<B> {
    KnownOption { names, takes, becomes, meaning }
}

/// Options under one title.
pub struct OptionSection<B: 'static> {
    pub title: &'static str,
    pub options: &'static [KnownOption<B>],
}

/// How a launcher's options are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Every name behind one dash or two.
    AnyDashes,
    /// Names of one letter behind one dash, with their value behind them or joined; others behind two.
    ByLength,
}

/// All that one front knows.
pub struct OptionTable<B: 'static> {
    pub spelling: Spelling,
    pub sections: &'static [OptionSection<B>],
}

/// An option as it was given.
pub struct GivenOption<B: 'static> {
    /// With its dashes.
    pub option: String,
    pub values: Vec<String>,
    pub known: &'static KnownOption<B>,
}

/// What is wrong with an option.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The name, and one that is near, both with their dashes.
    Unknown { option: String, nearest: Option<String> },
    /// In a line.
    Other(String),
}

/// The words of a command line that have not been read.
pub type Words = VecDeque<OsString>;

impl<B> GivenOption<B> {
    /// The one value that it has.
    pub fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// Option and values, as in messages.
impl<B> std::fmt::Display for GivenOption<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.option)?;
        self.values.iter().try_for_each(|value| write!(f, " {value}"))
    }
}

impl<B> KnownOption<B> {
    fn has(&self, name: &str) -> bool {
        self.names.split(' ').any(|own| own == name)
    }

    fn is_optional(&self) -> bool {
        self.takes.starts_with("[=")
    }
}

impl<B> OptionTable<B> {
    /// Whether an option of this name is there, without its dashes.
    pub fn has(&self, name: &str) -> bool {
        self.all().any(|known| known.has(name))
    }

    fn all(&self) -> impl Iterator<Item = &'static KnownOption<B>> + use<B> {
        self.sections.iter().flat_map(|section| section.options)
    }

    /// A name that two options have.
    #[cfg(test)]
    pub fn twice(&self) -> Option<&'static str> {
        let mut seen = std::collections::HashSet::new();
        self.all().flat_map(|known| known.names.split(' ')).find(|name| !seen.insert(*name))
    }

    /// Takes the option that `words` begins with, and its values; `None` where they do not begin with one.
    pub fn next(&self, words: &mut Words) -> Option<Result<GivenOption<B>, Wrong>> {
        let word = words.front()?.to_str()?.to_owned();
        if !word.starts_with('-') || word.len() < 2 {
            return None;
        }
        words.pop_front();
        // What a dash that joins nothing ends is the options; what follows is the program.
        if word == "--" {
            return None;
        }
        Some(self.read(&word, words))
    }

    fn read(&self, word: &str, words: &mut Words) -> Result<GivenOption<B>, Wrong> {
        let short = self.spelling == Spelling::ByLength && !word.starts_with("--");
        let (option, joined) = match short {
            true => cut_short(word),
            false => word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value))),
        };
        let name = option.trim_start_matches('-');
        let fits = |name: &str| self.spelling == Spelling::AnyDashes || short == (name.len() == 1);
        let Some(known) = self.all().find(|known| known.has(name) && fits(name)) else {
            return Err(self.unknown(option));
        };
        let given = |values| GivenOption { option: option.to_owned(), values, known };
        let wanted = known.takes.split_whitespace().count();
        match joined {
            Some(more) if wanted == 0 && short => {
                // Letters that take no value may share a dash.
                words.push_front(format!("-{more}").into());
                return Ok(given(Vec::new()));
            }
            Some(_) if wanted == 0 => return Err(Wrong::Other(format!("{option} takes no value"))),
            None if known.is_optional() => return Ok(given(Vec::new())),
            _ => {}
        }
        let mut values: Vec<String> = joined.map(str::to_owned).into_iter().collect();
        // NAME=VALUE stands for NAME and VALUE.
        if let (2, None, Some(first)) = (wanted, joined, words.front().and_then(|word| word.to_str()))
            && let Some((name, value)) = first.split_once('=')
        {
            values = vec![name.to_owned(), value.to_owned()];
            words.pop_front();
        }
        while values.len() < wanted {
            let Some(word) = words.pop_front() else {
                return Err(Wrong::Other(format!("{option} needs {}", known.takes)));
            };
            values.push(word.to_string_lossy().into_owned());
        }
        Ok(given(values))
    }

    fn unknown(&self, option: &str) -> Wrong {
        let name = option.trim_start_matches('-');
        let names = self.all().flat_map(|known| known.names.split(' '));
        let nearest = nearest(name, names).map(|nearest| self.dashed(nearest, option.starts_with("--")));
        Wrong::Unknown { option: option.to_owned(), nearest }
    }

    fn dashed(&self, name: &str, two: bool) -> String {
        let two = match self.spelling {
            Spelling::AnyDashes => two,
            Spelling::ByLength => name.len() > 1,
        };
        format!("{}{name}", if two { "--" } else { "-" })
    }

    /// All options, section by section.
    pub fn help(&self) -> String {
        const COLUMN: usize = 34;
        let mut text = String::new();
        for section in self.sections {
            text += &format!("\n{}:\n", section.title);
            for known in section.options {
                let names: Vec<_> = known.names.split(' ').map(|name| self.dashed(name, false)).collect();
                let blank = if known.takes.is_empty() || known.is_optional() { "" } else { " " };
                let left = format!("  {}{blank}{}", names.join(", "), known.takes);
                match left.len() < COLUMN {
                    true => text += &format!("{left:COLUMN$}{}\n", known.meaning),
                    false => text += &format!("{left}\n{:COLUMN$}{}\n", "", known.meaning),
                }
            }
        }
        text
    }
}

/// `-n4` is `-n` and `4`; so is `-n=4` for many.
fn cut_short(word: &str) -> (&str, Option<&str>) {
    let end = word.char_indices().nth(2).map_or(word.len(), |(at, _)| at);
    let (option, rest) = word.split_at(end);
    (option, (!rest.is_empty()).then(|| rest.strip_prefix('=').unwrap_or(rest)))
}

/// All unknown options in one line.
pub fn unknown_ones(unknown: &[(String, Option<String>)], help: &str) -> String {
    let near = |near: &Option<String>| near.as_ref().map(|near| format!(" (nearest: {near})")).unwrap_or_default();
    let list: Vec<_> = unknown.iter().map(|(option, nearest)| format!("'{option}'{}", near(nearest))).collect();
    let (word, is) = if list.len() == 1 { ("option", "is") } else { ("options", "are") };
    format!("{word} {} {is} not known; {help} shows those that are", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: OptionTable<u8> = OptionTable {
        spelling: Spelling::AnyDashes,
        sections: &[OptionSection {
            title: "All",
            options: &[
                known("n np", "N", 1, "how many"),
                known("env", "NAME VALUE", 2, "a variable"),
                known("map-by", "HOW", 3, "ignored"),
                known("v", "", 4, "tells"),
            ],
        }],
    };
    const SHORT: OptionTable<u8> = OptionTable {
        spelling: Spelling::ByLength,
        sections: &[OptionSection {
            title: "All",
            options: &[
                known("n ntasks", "N", 1, "how many"),
                known("exclusive", "[=WHO]", 2, "alone"),
                known("l label", "", 3, "labels"),
            ],
        }],
    };

    fn read(table: &OptionTable<u8>, line: &str) -> Result<(u8, Vec<String>, usize), Wrong> {
        let mut words: Words = line.split(' ').map(OsString::from).collect();
        let given = table.next(&mut words).expect("an option")?;
        Ok((given.known.becomes, given.values, words.len()))
    }

    #[test]
    fn values_stand_behind_or_are_joined() {
        let one = |value: &str| vec![value.to_owned()];
        assert_eq!(read(&ONE, "-np 2 a"), Ok((1, one("2"), 1)));
        assert_eq!(read(&ONE, "--np=2 a"), Ok((1, one("2"), 1)));
        assert_eq!(read(&ONE, "-env A 1 a"), Ok((2, vec!["A".into(), "1".into()], 1)));
        assert_eq!(read(&ONE, "-env A=1 a"), Ok((2, vec!["A".into(), "1".into()], 1)));
        assert_eq!(read(&SHORT, "-n4 a"), Ok((1, one("4"), 1)));
        assert_eq!(read(&SHORT, "-ln4 a"), Ok((3, vec![], 2)));
        assert_eq!(read(&SHORT, "--exclusive a"), Ok((2, vec![], 1)));
        assert_eq!(read(&SHORT, "--exclusive=user a"), Ok((2, one("user"), 1)));
    }

    #[test]
    fn slips_say_what_is_missing_and_what_is_near() {
        let unknown =
            |option: &str, near: &str| Wrong::Unknown { option: option.into(), nearest: Some(near.to_owned()) };
        assert_eq!(read(&ONE, "--foo"), Err(Wrong::Unknown { option: "--foo".into(), nearest: None }));
        assert_eq!(read(&ONE, "--map-bi x"), Err(unknown("--map-bi", "--map-by")));
        assert_eq!(read(&SHORT, "--lable"), Err(unknown("--lable", "--label")));
        assert_eq!(read(&SHORT, "-label"), Ok((3, vec![], 1)), "letters share a dash");
        assert_eq!(read(&ONE, "-env A"), Err(Wrong::Other("-env needs NAME VALUE".into())));
        assert_eq!(read(&ONE, "--v=1"), Err(Wrong::Other("--v takes no value".into())));
    }

    #[test]
    fn help_has_every_name() {
        let help = SHORT.help();
        for words in ["All:", "-n, --ntasks N", "--exclusive[=WHO]", "labels"] {
            assert!(help.contains(words), "{words}: {help}");
        }
    }
}
