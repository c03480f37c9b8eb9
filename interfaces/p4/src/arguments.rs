//! P4's own arguments on the command line of a program, which `p4_initenv` takes away.

use std::path::PathBuf;

/// What the user has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenArguments {
    pub procgroup: Option<PathBuf>,
    pub debug_level: Option<i32>,
    /// Bytes of shared memory.
    pub memory: Option<usize>,
    pub directory: Option<PathBuf>,
    pub output: Option<PathBuf>,
    pub wants_help: bool,
    pub wants_version: bool,
}

/// What each argument is, with what follows it. Those that mean nothing here are taken away all the same.
pub const HELP: &str = "\
  -p4help           say this, and end
  -p4pg FILE        who takes part: a procgroup file (else PROGRAM.pg or procgroup)
  -p4dbg LEVEL      up to which level p4_dprintfl prints
  -p4gm BYTES       shared memory for p4_shmalloc (else P4_GLOBMEMSIZE)
  -p4wd DIR         directory to work in
  -p4out FILE       where the first process prints
  -p4version        say which version this is
  -p4rdbg LEVEL -p4dmn DOMAIN -p4rout FILE -p4ssport PORT -p4sctrl TEXT -p4norem -p4log
                    mean nothing here";

impl GivenArguments {
    /// Takes P4's arguments out of `words`, of which the first one is the program's name.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn take(words: &[String]) -> Result<(Self, Vec<usize>), String> {
        let mut given = Self::default();
        let mut left = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let place = at;
            at += 1;
            let mut value = |what: &str| -> Result<&String, String> {
                let value = words.get(at).ok_or_else(|| format!("{word} is to be followed by {what}"))?;
                at += 1;
                Ok(value)
            };
            match word.as_str() {
                _ if place == 0 => left.push(place),
                "-p4pg" | "-pg" => given.procgroup = Some(value("a file")?.into()),
                "-p4dbg" => given.debug_level = Some(number(word, value("a number")?)?),
                "-p4gm" => given.memory = Some(number(word, value("a number of bytes")?)?),
                "-p4wd" => given.directory = Some(value("a directory")?.into()),
                "-p4out" => given.output = Some(value("a file")?.into()),
                "-p4rdbg" | "-p4dmn" | "-p4rout" | "-p4ssport" | "-p4sctrl" | "-p4yourname" | "-p4rmrank" => {
                    value("a value")?;
                }
                "-p4norem" | "-p4log" => {}
                "-p4help" => given.wants_help = true,
                "-p4version" => given.wants_version = true,
                _ => left.push(place),
            }
        }
        Ok((given, left))
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{word} is '{value}', allowed is a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> Result<(GivenArguments, Vec<usize>), String> {
        GivenArguments::take(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn own_arguments_are_taken_and_others_left() {
        let (given, left) = taken("prog -x -p4pg file 7 -p4dbg 30 -p4norem -p4gm 5000 -y").expect("good ones");
        assert_eq!(left, [0, 1, 4, 10]);
        let expected = GivenArguments {
            procgroup: Some("file".into()),
            debug_level: Some(30),
            memory: Some(5000),
            ..GivenArguments::default()
        };
        assert_eq!(given, expected);
        assert_eq!(taken("-p4help").expect("a program may be called so").1, [0]);
    }

    #[test]
    fn wrong_ones_are_told() {
        assert_eq!(taken("prog -p4pg").err().as_deref(), Some("-p4pg is to be followed by a file"));
        assert_eq!(taken("prog -p4gm much").err().as_deref(), Some("-p4gm is 'much', allowed is a number"));
    }
}
