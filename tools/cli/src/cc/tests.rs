use std::fs;

use super::*;

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn line(text: &str) -> String {
    let arguments = CompilerCall::read(&words(text));
    let flags = Flags::new(Path::new("/opt/weft"), None, Language::C, arguments.abi);
    shell_words(&flags.line(&arguments))
}

const INCLUDE: &str = "-I/opt/weft/include";
const LINK: &str = "-L/opt/weft/lib -Wl,-rpath,/opt/weft/lib -Wl,--enable-new-dtags -lmpi_abi";
/// The end of a whole command line of C.
const LINKED: &str = "-L/opt/weft/lib -Wl,-rpath,/opt/weft/lib -Wl,--enable-new-dtags -lmpi_abi \
                      -Wl,--push-state,--as-needed -lweft_mpifort -Wl,--pop-state";

#[test]
fn a_program_is_compiled_and_linked() {
    assert_eq!(line("-O2 a.c -o a"), format!("cc {INCLUDE} -O2 a.c -o a {LINKED}"));
    assert_eq!(line("-MD -MF a.d a.c b.o -lm"), format!("cc {INCLUDE} -MD -MF a.d a.c b.o -lm {LINKED}"));
    assert_eq!(line("@files"), format!("cc {INCLUDE} @files {LINKED}"));
}

#[test]
fn no_link_flags_where_the_compiler_stops_before_linking() {
    for option in ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r"] {
        assert_eq!(line(&format!("{option} a.c")), format!("cc {INCLUDE} {option} a.c"));
    }
}

#[test]
fn without_an_input_the_compiler_answers_alone() {
    for text in ["--version", "-v", "-dumpmachine", "-print-file-name=libc.so", "-o out", "-x c -v"] {
        assert_eq!(line(text), format!("cc {text}"));
    }
}

#[test]
fn the_value_of_an_option_is_neither_input_nor_switch() {
    assert_eq!(line("-o -c a.c"), format!("cc {INCLUDE} -o -c a.c {LINKED}"));
    assert_eq!(line("-Xlinker -r a.c"), format!("cc {INCLUDE} -Xlinker -r a.c {LINKED}"));
}

#[test]
fn questions_are_answered_as_build_systems_expect() {
    let flags = Flags::new(Path::new("/opt/weft"), Some(OsStr::new("ccache gcc")), Language::C, TargetAbi::Standard);
    let answer = |text: &str| {
        let arguments = CompilerCall::read(&words(text));
        flags.answer(arguments.question.expect("a question"), &arguments)
    };
    assert_eq!(answer("-show"), format!("ccache gcc {INCLUDE} {LINK}"));
    assert_eq!(answer("-show -c a.c"), format!("ccache gcc {INCLUDE} -c a.c"));
    assert_eq!(answer("a.c -showme"), format!("ccache gcc {INCLUDE} a.c {LINKED}"));
    assert_eq!(answer("-compile-info"), format!("ccache gcc {INCLUDE} -c"));
    assert_eq!(answer("-link-info"), format!("ccache gcc {LINK}"));
    assert_eq!(answer("-showme:compile"), INCLUDE);
    assert_eq!(answer("-showme:link"), LINK);
    assert_eq!(answer("--showme:libs"), "mpi_abi");
    assert_eq!(answer("-showme:incdirs"), "/opt/weft/include");
}

#[test]
fn the_compiler_can_be_chosen() {
    assert_eq!(CompilerCall::read(&words("-cc=clang a.c")).compiler, Some("clang".into()));
    assert_eq!(CompilerCall::read(&words("-cc=clang a.c")).passed, words("a.c"));
    assert_eq!(
        Flags::new(Path::new("/"), Some(OsStr::new(" ")), Language::Cxx, TargetAbi::Standard).compiler,
        words("c++")
    );
}

#[test]
fn another_abi_has_another_header_and_library() {
    let mpich = "-L/opt/weft/lib -Wl,-rpath,/opt/weft/lib -Wl,--enable-new-dtags -lmpi";
    for text in ["--abi mpich -O2 a.c", "--abi=mpich -O2 a.c"] {
        assert_eq!(line(text), format!("cc -I/opt/weft/include/mpich -O2 a.c {mpich}"));
    }
    assert_eq!(line("--abi standard a.c"), format!("cc {INCLUDE} a.c {LINKED}"));
    assert_eq!(line("-o --abi a.c"), format!("cc {INCLUDE} -o --abi a.c {LINKED}"), "the value of another option");
    let refused = |text: &str| CompilerCall::read(&words(text)).refused;
    assert_eq!(refused("--abi=openmpi a.c").as_deref(), Some("--abi openmpi is not known; standard and mpich are"));
    assert!(refused("a.c --abi").is_some() && refused("--abi mpich").is_none());
}

#[test]
fn fortran_has_modules_and_a_library_of_its_own() {
    let arguments = CompilerCall::read(&words("-O2 a.f90 -J mods"));
    let mut flags = Flags::new(Path::new("/opt/weft"), None, Language::Fortran, TargetAbi::Standard);
    flags.modules = Some("/cache/gfortran-12".into());
    let before = format!("{INCLUDE} -I/cache/gfortran-12 -fallow-argument-mismatch");
    let libraries = "-Wl,--push-state,--no-as-needed -lweft_mpifort -lmpi_abi -Wl,--pop-state";
    let link = LINK.replace("-lmpi_abi", libraries);
    assert_eq!(shell_words(&flags.line(&arguments)), format!("gfortran {before} -O2 a.f90 -J mods {link}"));
    assert_eq!(flags.answer(Question::Libraries, &arguments), "weft_mpifort mpi_abi");
    assert_eq!(flags.answer(Question::CompileFlags, &arguments), before);
}

#[test]
fn names_choose_the_language() {
    assert_eq!(Language::of_name("mpicc"), Some(Language::C));
    assert_eq!(Language::of_name("mpic++"), Language::of_name("mpicxx"));
    assert_eq!(Language::of_name("mpirun"), None);
    for name in ["mpifort", "mpif90", "mpif77"] {
        assert_eq!(Language::of_name(name), Some(Language::Fortran), "{name}");
    }
}

#[test]
fn words_are_quoted_for_a_shell() {
    let quoted = shell_words(&["-DX=\"a b\"".into(), "it's".into(), "".into(), "plain".into()]);
    assert_eq!(quoted, r#"'-DX="a b"' 'it'\''s' '' plain"#);
}

#[test]
fn another_mpi_library_is_noticed() {
    let other = tempfile::tempdir().unwrap();
    let ours = tempfile::tempdir().unwrap();
    fs::write(other.path().join("libmpi_abi.so.0"), "").unwrap();
    fs::create_dir(ours.path().join("lib")).unwrap();
    fs::write(ours.path().join("lib/libmpi_abi.so.1"), "").unwrap();
    let folder = other.path().display();
    let own = ours.path().join("lib");
    let own = own.display();
    let count = |text: &str| foreign::warnings(&CompilerCall::read(&words(text)), ours.path()).len();
    for text in [
        "a.c -lmpi".to_owned(),
        "a.c -l mpich".to_owned(),
        format!("a.c -L{folder}"),
        format!("a.c -L {folder}"),
        format!("a.c -Wl,-rpath,{folder}"),
        format!("a.c -Wl,-rpath -Wl,/usr/nowhere:{folder}"),
        format!("a.c -Wl,-rpath={folder}"),
        format!("a.c -Xlinker -rpath -Xlinker {folder}"),
        "a.c -Wl,--disable-new-dtags".to_owned(),
        "a.c -static".to_owned(),
    ] {
        assert_eq!(count(&text), 1, "{text}");
    }
    for text in [
        format!("-c a.c -L{folder}"),
        format!("a.c -L{own} -Wl,-rpath,{own}"),
        "a.c -lm -L. -lmpifoo".to_owned(),
        format!("a.c -I{folder}"),
    ] {
        assert_eq!(count(&text), 0, "{text}");
    }
}

#[test]
fn the_prefix_follows_from_where_the_command_lies() {
    let folder = tempfile::tempdir().unwrap();
    let make = |path: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    };
    let of = |command: &str| prefix::prefix_of(&folder.path().join(command));
    let missing = of("bin/weft").unwrap_err().to_string();
    assert!(missing.contains("lib/libmpi_abi.so") && missing.contains("cargo xtask install"), "{missing}");
    make("lib/libmpi_abi.so");
    make("target/weft/lib/libmpi_abi.so");
    assert_eq!(of("bin/weft").unwrap(), folder.path());
    assert_eq!(of("target/debug/weft").unwrap(), folder.path().join("target/weft"));
}
