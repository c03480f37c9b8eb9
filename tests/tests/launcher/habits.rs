//! Command lines as people have them in scripts for the launchers of others.

use super::support::{Finished, finish, lines_sorted, weft_run};
use std::process::{Command, Stdio};
use weft_tests::build;

/// `weft FRONT` with these arguments, cut at blanks; `,sh` stands for a script that shows the rank.
fn front(front: &str, arguments: &str) -> Command {
    let mut command = Command::new(build::weft());
    command.arg(front).env("WEFT_BIND", "none").stdin(Stdio::null());
    for word in arguments.split_whitespace() {
        match word {
            ",sh" => command.args(["sh", "-c", "echo $PMI_RANK of $PMI_SIZE"]),
            word => command.arg(word),
        };
    }
    command
}

fn done(name: &str, arguments: &str) -> Finished {
    finish(&mut front(name, arguments))
}

const TWO: [&str; 2] = ["0 of 2", "1 of 2"];

#[test]
fn lines_of_scripts_for_open_mpi_run() {
    let lines = [
        "--mca btl self,vader --mca pml ob1 --report-bindings -np 2 ,sh",
        "-np 2 --bind-to socket --map-by numa --rank-by slot ,sh",
        "--map-by ppr:2:node --bind-to hwthread ,sh",
        "-H localhost:2 ,sh",
        "--host localhost,localhost ,sh",
        "-n 2 -x NOT_SET_ANYWHERE --display-map --nooversubscribe --use-hwthread-cpus ,sh",
        "-npernode 2 --allow-run-as-root -q --display bind,map ,sh",
        "--np 2 --prtemca a b --personality ompi --prefix /opt/mpi ,sh",
        "--map-by slot:PE=2,OVERSUBSCRIBE --bind-to core:overload-allowed -np 2 ,sh",
    ];
    for line in lines {
        let done = done("mpiexec", line);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{line}");
        assert_eq!(lines_sorted(&done.out), TWO, "{line}");
    }
}

#[test]
fn lines_of_scripts_for_mpich_and_intel_mpi_run() {
    let lines = [
        "-launcher ssh -rmk user -n 2 ,sh",
        "-bootstrap ssh -genvlist PATH,HOME -genv A=1 -np 2 ,sh",
        "-ppn 2 ,sh",
        "-hosts localhost:2 ,sh",
        "-usize INFINITE -print-rank-map -iface lo -n 2 ,sh",
        "-gpus-per-proc 1 -topolib hwloc -print-all-exitcodes -n 2 ,sh",
        "-envall -membind none -silent-abort -prot -n 2 ,sh",
    ];
    for line in lines {
        let done = done("mpiexec", line);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{line}");
        assert_eq!(lines_sorted(&done.out), TWO, "{line}");
    }
}

#[test]
fn what_is_ignored_is_told_in_a_line_where_v_is_given() {
    let done = done("mpiexec", "-v --mca btl self --report-bindings -np 1 true");
    assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (0, "", 2), "{}", done.err);
    assert!(done.err.lines().all(|line| line.starts_with("weft mpiexec: ") && line.contains(" is ignored: ")));
    assert!(done.err.contains("--mca btl self") && done.err.contains("--report-bindings"), "{}", done.err);
}

#[test]
fn all_unknown_options_are_named_at_once_with_the_nearest_one() {
    let done = done("mpiexec", "--map-bi slot -np 2 --report-binding=yes /bin/true --frob");
    assert_eq!((done.code, done.err.lines().count()), (2, 1), "{}", done.err);
    for words in ["'--map-bi' (nearest: --map-by)", "'--report-binding' (nearest: --report-bindings)"] {
        assert!(done.err.contains(words), "{words}: {}", done.err);
    }
    assert!(!done.err.contains("frob"), "what follows the program is the program's: {}", done.err);
}

#[test]
fn programs_come_from_a_configuration_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("programs");
    let script = "sh -c 'echo $PMI_RANK $A'";
    let text = format!("# two programs\n-n 1 -env A first {script}\n\n-n 2 -env A second \\\n {script}\n");
    std::fs::write(&file, text).unwrap();
    let done = finish(front("mpiexec", "-configfile").arg(&file));
    assert_eq!(lines_sorted(&done.out), ["0 first", "1 second", "2 second"], "{}", done.err);
}

#[test]
fn host_files_of_the_others_give_slots() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    for line in ["localhost slots = 2 max_slots=4", "localhost:2 ifname=lo", "localhost\nlocalhost # twice"] {
        std::fs::write(&file, format!("# hosts\n{line}\n")).unwrap();
        let done =
            finish(front("mpiexec", "-machinefile").arg(&file).args(["sh", "-c", "echo $PMI_RANK of $PMI_SIZE"]));
        assert_eq!(lines_sorted(&done.out), TWO, "{line}: {}", done.err);
    }
}

#[test]
fn all_wrong_lines_of_a_host_file_are_told_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    std::fs::write(&file, "localhost slot=2\nlocalhost\nlocalhost 4\nlocalhost slots=two\n").unwrap();
    let done = finish(front("mpiexec", "-hostfile").arg(&file).arg("true"));
    assert_eq!(done.code, 2, "{}", done.err);
    for told in ["line 1: 'slot=2' is not understood", "line 3: '4' is not", "line 4: ", "HOST slots=SLOTS"] {
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
}

#[test]
fn this_host_is_not_reached_by_a_launch_command_unless_one_is_named() {
    let script = ["sh", "-c", "echo $PMI_RANK of $PMI_SIZE"];
    let mut command = Command::new(build::weft());
    let done = finish(command.args(["run", "--hosts", "localhost:2"]).args(script).env_remove("WEFT_LAUNCH"));
    assert_eq!(lines_sorted(&done.out), TWO, "{}", done.err);
    let launch = ["run", "--hosts", "localhost:2", "--launch", "sh -c 'echo called {host} >&2; exit 3' {host}"];
    let done = finish(Command::new(build::weft()).args(launch).arg("true"));
    assert!(done.code == 1 && done.err.contains("called localhost"), "{}", done.err);
}

#[test]
fn another_host_is_reached_by_the_launch_command() {
    let mut command = front("mpiexec", "-H far.example:2 true");
    let done = finish(command.env("WEFT_LAUNCH", "sh -c 'echo called {host} >&2; exit 3' {host}"));
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("called far.example"), "{}", done.err);
}

#[test]
fn input_reaches_all_ranks_and_output_is_labelled() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input");
    std::fs::write(&input, "word\n").unwrap();
    for line in ["-s all -l -n 2 cat", "--stdin all --output tag -n 2 cat", "-stdin all -prepend-rank -n 2 cat"] {
        let mut command = front("mpiexec", line);
        let done = finish(command.stdin(std::fs::File::open(&input).unwrap()));
        assert_eq!(lines_sorted(&done.out), ["[0] word", "[1] word"], "{line}: {}", done.err);
    }
}

#[test]
fn output_goes_to_the_files_that_the_options_of_the_others_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let script = ["sh", "-c", "echo out $PMI_RANK; echo err $PMI_RANK >&2"];
    let run = |name: &str, options: &[&str]| {
        let mut command = front(name, "-n 2");
        let done = finish(command.args(options).args(script).current_dir(directory.path()));
        assert_eq!((done.code, done.out.as_str()), (0, ""), "{options:?}: {}", done.err);
        done.err
    };
    assert_eq!(run("mpiexec", &["--output-filename", "logs"]), "");
    assert_eq!((read("logs/rank-1.out"), read("logs/rank-0.err")), ("out 1\n".into(), "err 0\n".into()));
    let rest = run("mpiexec", &["-outfile-pattern", "out-%r.txt"]);
    assert_eq!((lines_sorted(&rest), read("out-1.txt")), (vec!["err 0", "err 1"], "out 1\n".into()));
    assert_eq!(run("srun", &["-o", "task.%t"]), "");
    assert_eq!(lines_sorted(&read("task.1")), ["err 1", "out 1"]);
    assert_eq!(run("srun", &["-l", "--output=all.txt"]), "");
    assert_eq!(lines_sorted(&read("all.txt")), ["[0] err 0", "[0] out 0", "[1] err 1", "[1] out 1"]);
    assert_eq!(run("srun", &["-o", "only-out.txt", "-e", "only-err.txt"]), "");
    assert_eq!(lines_sorted(&read("only-err.txt")), ["err 0", "err 1"]);
    assert_eq!(run("srun", &["-o", "both.txt", "-e", "both.txt"]), "");
    assert_eq!(lines_sorted(&read("both.txt")), ["err 0", "err 1", "out 0", "out 1"]);
}

#[test]
fn universe_is_what_the_option_says() {
    let done = finish(front("mpiexec", "-usize 7 -n 1").args(["sh", "-c", "echo $WEFT_UNIVERSE"]));
    assert_eq!(done.out, "7\n", "{}", done.err);
}

#[test]
fn version_and_help_are_answered() {
    for option in ["-version", "--version", "-V"] {
        let done = done("mpiexec", option);
        assert!(done.code == 0 && done.out.contains(env!("CARGO_PKG_VERSION")), "{option}: {}{}", done.out, done.err);
    }
    for option in ["--help", "-h"] {
        let done = done("srun", option);
        assert!(done.code == 0 && done.out.contains("--ntasks"), "{option}: {}{}", done.out, done.err);
    }
}

#[test]
fn both_names_of_the_others_are_commands_of_weft() {
    for name in ["mpiexec", "mpirun"] {
        assert_eq!(done(name, "-n 2 echo x").out, "x\nx\n", "{name}");
    }
}

#[test]
fn lines_of_scripts_for_slurm_run() {
    let lines = [
        "-n 2 ,sh",
        "-n2 -N1 -c2 --exclusive --mpi=pmi2 ,sh",
        "--ntasks=2 --cpu-bind=cores -p debug --time=1:00 ,sh",
        "--ntasks 2 --mpi pmix --kill-on-bad-exit=1 --export=ALL,A=1 ,sh",
        "--ntasks-per-node=2 --mem=2G --job-name=x -u ,sh",
        "-N 1 --ntasks-per-node 2 --exclusive=user --hint=nomultithread ,sh",
        "-w localhost -n 2 -K --overlap -D / ,sh",
    ];
    for line in lines {
        let done = done("srun", line);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{line}");
        assert_eq!(lines_sorted(&done.out), TWO, "{line}");
    }
    let slip = done("srun", "--ntsks=2 --foo /bin/true");
    assert_eq!((slip.code, slip.err.lines().count()), (2, 1), "{}", slip.err);
    assert!(slip.err.contains("'--ntsks' (nearest: --ntasks)") && slip.err.contains("'--foo'"), "{}", slip.err);
    let slip = done("srun", "-N 3 true");
    assert!(slip.code == 2 && slip.err.contains("3 hosts"), "{}", slip.err);
}

#[test]
fn number_of_ranks_is_spelled_as_people_do() {
    for spelling in ["-n 2", "-np 2", "--np 2", "--np=2", "--ranks 2"] {
        let done = finish(&mut weft_run(&format!("{spelling} echo x")));
        assert_eq!((done.code, done.out.as_str()), (0, "x\nx\n"), "{spelling}: {}", done.err);
    }
}

#[test]
fn what_was_given_by_an_option_is_named_by_it_where_it_is_refused() {
    for (option, value) in [("--device", "foo"), ("--bind", "foo"), ("--stdin", "foo"), ("--timeout", "soon")] {
        let done = finish(Command::new(build::weft()).args(["run", option, value, "true"]));
        let named = done.err.contains(option) || option == "--stdin" && done.err.contains("standard input");
        assert!(done.code == 2 && named && !done.err.contains("WEFT_"), "{option}: {}", done.err);
        assert!(done.err.contains(value) && done.err.contains("accepted") || option == "--timeout", "{}", done.err);
    }
}
