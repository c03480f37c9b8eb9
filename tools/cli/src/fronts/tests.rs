use super::*;
use weft_agent::{Destination, Job};
use weft_cluster::job::StdinTo;
use weft_cluster::placement::Bind;

fn job(read: Result<FrontWish, Vec<Slip>>) -> Result<Job, String> {
    match read.map_err(|slips| slips.join("\n"))? {
        FrontWish::Job(job) => Ok(*job),
        FrontWish::Text(text) => panic!("no text was asked for: {text}"),
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

fn read(line: &str) -> Result<Job, String> {
    job(mpiexec::read("mpiexec", &words(line)))
}

fn srun(line: &str) -> Result<Job, String> {
    job(super::srun::read("weft srun", &words(line)))
}

fn ranks(job: &Job) -> usize {
    job.programs.iter().map(|program| program.ranks).sum()
}

#[test]
fn options_of_the_others_are_understood() {
    let job = read("-genv A 1 -np 2 -env B 2 -wdir /tmp -l -ppn 2 ./a -n 5 : -x C=3 --bind-to none -n 3 ./b").unwrap();
    assert_eq!(job.programs.len(), 2);
    let first = &job.programs[0];
    assert_eq!((first.ranks, first.program.as_str()), (2, "./a"));
    assert_eq!(first.arguments, ["-n", "5"]);
    assert_eq!(first.environment, [("A".into(), "1".into()), ("B".into(), "2".into())]);
    assert_eq!(job.programs[1].environment, [("A".into(), "1".into()), ("C".into(), "3".into())]);
    assert_eq!(job.bind, Bind::None);
    assert!(job.output.tag);
}

#[test]
fn every_option_means_one_thing() {
    assert_eq!((mpiexec::TABLE.twice(), super::srun::TABLE.twice()), (None, None));
}

#[test]
fn slips_are_named() {
    let slip = |text| read(text).unwrap_err();
    assert!(slip("-frobnicate 3 ./a").contains("'-frobnicate'"));
    assert!(slip("-n 0 ./a").contains("'0'") && slip("-n 0 ./a").contains("1 to 4096"));
    assert!(slip("-n 2").contains("no program"));
    assert!(slip("-n").contains("-n needs N"));
    assert!(slip("./a : -n 2").contains("missing after ':'"));
    assert!(slip(": ./a").contains("missing before ':'"));
    assert!(slip("-host localhost:x ./a").contains("'localhost:x'"));
    assert!(slip("-bind-to chair ./a").contains("'chair'"));
    assert!(slip("-map-by chair ./a").contains("'chair'"));
    assert!(slip("-s 1 ./a").contains("none and rank 0"));
    assert!(slip("-f /no/such/file ./a").contains("/no/such/file"));
    assert!(slip("-usize few ./a").contains("'few'"));
    assert!(slip("-outfile-pattern out-%h ./a").contains("'out-%h'"));
    assert!(slip("-npersocket 2 ./a").contains("-n N"));
    assert!(slip("--map-by ppr:2:socket ./a").contains("ppr:2:socket"));
}

#[test]
fn unknown_options_are_all_named() {
    let slip = read("--map-bi 3 --bar /bin/true --baz").unwrap_err();
    assert!(slip.contains("'--map-bi' (nearest: --map-by)") && slip.contains("'--bar'"), "{slip}");
    assert!(!slip.contains("baz") && !slip.contains('\n'), "{slip}");
}

#[test]
fn number_of_ranks_follows_from_hosts_and_slots() {
    let count = |line: &str| ranks(&read(line).unwrap());
    assert_eq!(count("./a"), 1);
    assert_eq!(count("-host localhost:4,localhost ./a"), 5);
    assert_eq!(count("-host localhost:4 -n 1 ./a"), 1);
    assert_eq!(count("-H localhost -n 6 ./a"), 6);
    assert_eq!(count("-ppn 3 ./a"), 3);
    assert_eq!(count("-pernode -H far:4,other:4 ./a"), 2);
    assert_eq!(count("-map-by ppr:2:node -H far,other ./a"), 4);
}

#[test]
fn other_hosts_get_ranks_as_slots_and_maps_say() {
    let places = |line: &str| {
        let hosts = read(line).unwrap().hosts.expect("other hosts");
        hosts.places.iter().map(|place| hosts.names[*place].clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(places("-H a:2,b ./x"), "a a b");
    assert_eq!(places("-H a:2,b:2 --map-by node ./x"), "a b a b");
    assert_eq!(places("-hosts a,b -n 4 ./x"), "a b a b", "without slots they begin again");
    assert_eq!(places("-hosts a,b -ppn 2 -n 4 ./x"), "a a b b");
    assert_eq!(places("-H a:1,b:1 --oversubscribe -n 3 ./x"), "a b a");
    assert_eq!(places("-H a -n 1 ./x : -H b:2 -n 2 ./y"), "a b b");
    assert_eq!(places("-H a,b -n 1 ./x : -n 1 ./y"), "a b");
    assert_eq!(places("-H a:2 --host b -host a:1 ./x"), "a a a b", "several add up");
    let slip = read("-hosts a -hosts b ./x").unwrap_err();
    assert!(slip.contains("-hosts lists hosts already") && slip.contains("-host may"), "{slip}");
    let slip = read("-H a:1,b:1 -n 3 ./x").unwrap_err();
    assert!(slip.contains("2 slots") && slip.contains("--oversubscribe"), "{slip}");
}

#[test]
fn binding_is_a_core_each_or_none() {
    let bind = |line: &str| read(&format!("{line} -n 1 ./a")).unwrap().bind;
    assert_eq!(bind("-bind-to core"), Bind::Core);
    assert_eq!(bind("--bind-to core:overload-allowed"), Bind::Auto);
    assert_eq!(bind("--bind-to hwthread"), Bind::Auto);
    for none in ["-bind-to none", "-bind-to socket", "-bind-to numa", "-bind-to core:2", "--bind-to-socket"] {
        assert_eq!(bind(none), Bind::None, "{none}");
    }
    assert_eq!(bind("--bind-to core --map-by slot:PE=4"), Bind::None, "a rank of four threads needs four cores");
    assert_eq!(bind("--cpus-per-proc 2"), Bind::None);
}

#[test]
fn srun_s_letters_and_names_are_understood() {
    let job = srun("-n4 -lc2 --exclusive --export=ALL,A=1 -t1:30 -D/tmp ./a -n 3").unwrap();
    assert_eq!((ranks(&job), job.bind, job.output.tag, job.stdin), (4, Bind::None, true, StdinTo::All));
    assert_eq!(job.timeout.map(|limit| limit.time), Some(std::time::Duration::from_secs(90)));
    let program = &job.programs[0];
    assert_eq!(program.arguments, ["-n", "3"]);
    assert!(program.environment.contains(&("A".into(), "1".into())));
    assert_eq!(program.directory.as_deref(), Some("/tmp".as_ref()));
    assert_eq!(ranks(&srun("-w a,b,c -N2 ./a").unwrap()), 2);
    assert_eq!(ranks(&srun("-w a,b --ntasks-per-node=3 ./a").unwrap()), 6);
    let places = |line: &str| srun(line).unwrap().hosts.expect("other hosts").places;
    assert_eq!(places("-w a,b -n 3 ./a"), [0, 0, 1], "in blocks");
    assert_eq!(places("-w a,b -n 3 -m cyclic:block ./a"), [0, 1, 0]);
    assert_eq!(places("-w a,b -n 7 -m plane=2 ./a"), [0, 0, 1, 1, 0, 0, 1]);
    let names_of = |line: &str| srun(line).unwrap().hosts.expect("other hosts").names.join(" ");
    assert_eq!(names_of("-w a[1-4] -x a2,a[4-5] -N2 ./a"), "a1 a3");
    let names = |list: &str| srun(&format!("-w {list} ./a")).unwrap().hosts.expect("other hosts").names.join(" ");
    assert_eq!(names("login,node[01-03,7],x[1-2]y"), "login node01 node02 node03 node7 x1y x2y");
    let seconds = |time: &str| srun(&format!("-t {time} ./a")).unwrap().timeout.map(|limit| limit.time.as_secs());
    assert_eq!(
        [seconds("2"), seconds("1:00:00"), seconds("1-2"), seconds("0")],
        [Some(120), Some(3600), Some(93600), None]
    );
    for (slip, word) in [
        ("-t soon ./a", "'soon'"),
        ("-N2 ./a", "2 hosts"),
        ("-w a[3-1] ./a", "'a[3-1]'"),
        ("-w a[1 ./a", "'a[1'"),
        ("-o out.%q ./a", "'out.%q'"),
        ("-n", "-n needs"),
        ("-o 3 ./a", "-o 3"),
        ("-n1 ./a : -n3 ./b", "several programs"),
        ("-m plane ./a", "'plane'"),
        ("-m plane=0 ./a", "'plane=0'"),
        ("-m arbitrary ./a", "'arbitrary'"),
        ("-w a -x a ./a", "-x: no host"),
        ("--exclude=localhost ./a", "--exclude: without -w"),
    ] {
        assert!(srun(slip).unwrap_err().contains(word), "{slip}");
    }
}

#[test]
fn a_file_of_options_that_names_itself_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    std::fs::write(&one, format!("-n 1 ./a\n-configfile {}\n", other.display())).unwrap();
    std::fs::write(&other, "-n 2 ./b\n").unwrap();
    assert_eq!(ranks(&read(&format!("-configfile {}", one.display())).unwrap()), 3, "another one is read");
    std::fs::write(&other, format!("-n 2 -configfile {} ./b\n", one.display())).unwrap();
    let slip = read(&format!("-configfile {}", one.display())).unwrap_err();
    assert!(slip.contains("one' was read before") && !slip.contains('\n'), "{slip}");
}

#[test]
fn output_goes_where_the_options_say() {
    let each = |job: &Job, stream: usize| match &job.output.streams[stream] {
        Destination::Each(path) => path.to_string_lossy().into_owned(),
        other => panic!("{other:?}"),
    };
    let job = read("--output tag,dir=logs ./a").unwrap();
    assert_eq!((each(&job, 0), each(&job, 1)), ("logs/rank-%0r.out".into(), "logs/rank-%0r.err".into()));
    let job = read("-errfile-pattern e%r ./a").unwrap();
    assert!(matches!(job.output.streams[0], Destination::Merged));
    assert_eq!(each(&job, 1), "e%r");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("all");
    let job = read(&format!("-H far,other -outfile-pattern {0} -errfile-pattern {0} ./a", file.display())).unwrap();
    assert!(job.output.streams.iter().all(|stream| matches!(stream, Destination::MergedInto(_))), "one file for all");
    let job = srun("-o t.%t ./a").unwrap();
    assert_eq!((each(&job, 0), each(&job, 1)), ("t.%r".into(), "t.%r".into()));
}
