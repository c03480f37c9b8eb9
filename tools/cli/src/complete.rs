//! Names that a shell completes: members, partitions, jobs and signals. The scripts that the parser makes know the
//! words of the command line only; what is added to them asks `weft names`, with the words that are there already.

use crate::ask;
use crate::cluster::file;
use clap_complete::Shell;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Nobody waits longer for what a key shows.
const PATIENCE: Duration = Duration::from_secs(1);
/// Records of jobs that are over, among which a job is looked for.
const MOST_ENDED: usize = 50;

/// What stands at a place of the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NameKind {
    Members,
    Partitions,
    /// Jobs that run or wait.
    Jobs,
    /// Those that are over, too.
    AllJobs,
    Signals,
}

/// What comes behind these words, which stand behind `weft`, if it has a name.
fn kind(words: &[&str]) -> Option<NameKind> {
    match words {
        ["run" | "cluster", .., "--partition"] => Some(NameKind::Partitions),
        ["cluster", "reserve", .., "--members"] => Some(NameKind::Members),
        ["kill", .., "-s" | "--signal"] => Some(NameKind::Signals),
        ["kill", ..] => Some(NameKind::Jobs),
        ["logs", .., "--rank"] | ["drain", .., "--slots"] => None,
        ["logs", others @ ..] if !has_name(others, "--rank") => Some(NameKind::AllJobs),
        ["drain", others @ ..] if !has_name(others, "--slots") => Some(NameKind::Members),
        _ => None,
    }
}

/// Whether one of these words is neither an option nor the value of this option.
fn has_name(words: &[&str], option: &str) -> bool {
    (0..words.len()).any(|at| !words[at].starts_with('-') && (at == 0 || words[at - 1] != option))
}

/// Writes the names that may come behind these words, one a line. Answers 1 where there are none to be known.
pub fn names(words: &[String]) -> i32 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(kind) = kind(&words) else { return 1 };
    let (sender, found) = channel();
    // What waits for a daemon ends with the process.
    std::thread::spawn(move || sender.send(look(kind)));
    let all = found.recv_timeout(PATIENCE).unwrap_or_default();
    // Shells read more than letters in words.
    let is_plain = |name: &&String| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    all.iter().filter(is_plain).for_each(|name| println!("{name}"));
    0
}

fn look(kind: NameKind) -> Vec<String> {
    let cluster = || file::find().map(|file| file.cluster);
    match kind {
        NameKind::Signals => ask::signal_names().map(str::to_owned).collect(),
        NameKind::Members => {
            cluster().map(|all| all.members.into_iter().map(|one| one.name).collect()).unwrap_or_default()
        }
        NameKind::Partitions => {
            cluster().map(|all| all.partitions.into_iter().map(|one| one.name).collect()).unwrap_or_default()
        }
        NameKind::Jobs => jobs(),
        NameKind::AllJobs => {
            let ended = ask::ended(MOST_ENDED, false).unwrap_or_default();
            jobs().into_iter().chain(ended.into_iter().map(|record| record.job)).collect()
        }
    }
}

fn jobs() -> Vec<String> {
    let Ok(view) = ask::look(false) else { return Vec::new() };
    let waiting = view.queue.into_iter().map(|job| job.job);
    view.jobs.into_iter().map(|job| job.job).chain(waiting).map(|job| job.to_string()).collect()
}

const BASH: &str = r#"
_weft_names() {
    local names word="${COMP_WORDS[COMP_CWORD]}"
    if [[ $word != -* ]] && names=$("${COMP_WORDS[0]}" names -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null); then
        COMPREPLY=($(compgen -W "$names" -- "$word"))
    else
        _weft "$@"
    fi
}
complete -F _weft_names -o nosort -o bashdefault -o default weft 2>/dev/null ||
    complete -F _weft_names -o bashdefault -o default weft
"#;

/// Before the function of the parser, which has another name then.
const ZSH: &str = r#"_weft() {
    local names
    if [[ ${words[CURRENT]} != -* ]] && names=$("${words[1]}" names -- "${(@)words[2,CURRENT-1]}" 2>/dev/null); then
        compadd -- ${(f)names}
    else
        _weft_words "$@"
    fi
}

_weft_words() {"#;

const FISH: &str = r#"
function __weft_names
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program names -- $words 2>/dev/null
end
complete -c weft -n '__weft_names >/dev/null' -f -a '(__weft_names)'
complete -c weft -n '__fish_seen_subcommand_from kill' -s s -l signal -x -a '(__weft_names)'
complete -c weft -n '__fish_seen_subcommand_from run reserve' -l partition -x -a '(__weft_names)'
complete -c weft -n '__fish_seen_subcommand_from reserve' -l members -x -a '(__weft_names)'
"#;

/// The script of the parser, with names.
pub fn with_names(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => script.replacen("_weft() {", ZSH, 1),
        _ => script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_is_known_by_the_words_before_it() {
        let kind = |line: &str| kind(&line.split_whitespace().collect::<Vec<_>>());
        for line in ["run -n 2 --partition", "cluster reserve x --partition"] {
            assert_eq!(kind(line), Some(NameKind::Partitions), "{line}");
        }
        for line in ["drain", "drain --undo", "drain --slots 2", "cluster reserve x --members"] {
            assert_eq!(kind(line), Some(NameKind::Members), "{line}");
        }
        for line in ["kill", "kill a.1", "kill -s TERM"] {
            assert_eq!(kind(line), Some(NameKind::Jobs), "{line}");
        }
        assert_eq!((kind("logs"), kind("logs --rank 2")), (Some(NameKind::AllJobs), Some(NameKind::AllJobs)));
        assert_eq!((kind("kill -s"), kind("kill a.1 --signal")), (Some(NameKind::Signals), Some(NameKind::Signals)));
        for line in ["", "run", "run --partition all", "drain node1", "drain --slots", "logs a.1", "logs --rank"] {
            assert_eq!(kind(line), None, "{line}");
        }
    }

    /// The functions of bash, with a `weft` that says what it was asked.
    #[test]
    fn bash_completes_what_weft_says_and_else_what_the_parser_knows() {
        let script = with_names(Shell::Bash, "_weft() { COMPREPLY=(words); }\n".to_owned());
        let test = "weft() { [ \"$*\" = 'names -- kill -s' ] && printf 'TERM\\nTSTP\\nINT\\n'; }\n\
                    COMP_WORDS=(weft kill -s T); COMP_CWORD=3; _weft_names; echo \"${COMPREPLY[*]}\"\n\
                    COMP_WORDS=(weft kill -); COMP_CWORD=2; _weft_names; echo \"${COMPREPLY[*]}\"\n\
                    COMP_WORDS=(weft run T); COMP_CWORD=2; _weft_names; echo \"${COMPREPLY[*]}\"\n";
        let output = std::process::Command::new("bash").args(["-c", &(script + test)]).output().expect("bash runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "TERM TSTP\nwords\nwords\n");
    }

    #[test]
    fn bash_before_4_4_completes_too() {
        let old =
            "complete() { [[ $* != *nosort* ]] || { echo 'invalid option name' >&2; return 2; }; echo \"$*\"; }\n";
        let script = with_names(Shell::Bash, old.to_owned());
        let output = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(said, ["-F _weft_names -o bashdefault -o default weft\n", ""]);
    }
}
