use super::*;
use proptest::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Fails in `innermost`, which the compiler may put into its caller; what is between is called by a pointer.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
static volatile int *nowhere;
__attribute__((noinline)) int innermost(int n) { *nowhere = n; return n + 1; }
__attribute__((noinline)) int between(const void *a, const void *b) { return innermost(*(int *)a + *(int *)b) + 1; }
int main(int argc, char **argv) {
    int two[2] = {2, 1};
    if (argc > 1 && !strcmp(argv[1], "abort")) abort();
    if (argc > 1 && !strcmp(argv[1], "jump")) return ((int (*)(int))0x10)(argc) + 1;
    qsort(two, 2, sizeof *two, between);
    return two[0];
}
"#;

struct Cores {
    _folder: TempDir,
    /// With lines, and without frame pointers.
    lines: PathBuf,
    /// With the names of symbols only.
    symbols: PathBuf,
    /// Without either.
    stripped: PathBuf,
    abort: PathBuf,
    jump: PathBuf,
}

/// Cores of a program, made in a folder of their own: the kernel must write them to the directory of the process.
fn cores() -> &'static Cores {
    static CORES: OnceLock<Cores> = OnceLock::new();
    CORES.get_or_init(|| {
        let folder = TempDir::new().expect("a folder");
        let core = |name: &str, options: &[&str], argument: &str| {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).expect("a folder");
            std::fs::write(place.join("fails.c"), PROGRAM).expect("written");
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-fomit-frame-pointer", "-o", "fails", "fails.c"]).args(options).current_dir(&place);
            assert!(cc.status().expect("a compiler").success());
            let script = format!("ulimit -c unlimited; ./fails {argument}; true");
            Command::new("bash").args(["-c", &script]).current_dir(&place).output().expect("bash");
            let found = std::fs::read_dir(&place).expect("it").flatten().map(|entry| entry.path());
            let core = found.into_iter().find(|path| path.to_string_lossy().contains("core"));
            core.expect("the kernel writes a core where the process is (kernel.core_pattern)")
        };
        Cores {
            lines: core("lines", &["-g"], ""),
            symbols: core("symbols", &[], ""),
            stripped: core("stripped", &["-s"], ""),
            abort: core("abort", &["-g"], "abort"),
            jump: core("jump", &["-g"], "jump"),
            _folder: folder,
        }
    })
}

fn shown(path: &Path) -> Vec<String> {
    of_core(path).expect("a core").frames.iter().map(ToString::to_string).collect()
}

#[test]
fn functions_and_lines_from_the_fault_to_main() {
    let failed = of_core(&cores().lines).expect("a core");
    assert_eq!((failed.signal, failed.address, failed.function()), (11, Some(0), Some("innermost")));
    let shown = shown(&cores().lines);
    assert_eq!(shown[..2], ["innermost at fails.c:5", "between at fails.c:6"], "{shown:?}");
    assert!(shown[2..].iter().any(|frame| frame.contains("libc.so")), "through the C library: {shown:?}");
    assert!(shown.contains(&"main at fails.c:11".to_owned()), "{shown:?}");
}

#[test]
fn names_without_debug_information() {
    let shown = shown(&cores().symbols);
    assert_eq!(shown[..2], ["innermost in fails", "between in fails"], "{shown:?}");
    assert!(shown.contains(&"main in fails".to_owned()), "{shown:?}");
}

#[test]
fn files_and_addresses_without_any_names() {
    let shown = shown(&cores().stripped);
    assert!(shown.len() >= 4 && shown[0].starts_with("0x") && shown[0].ends_with(" in fails"), "{shown:?}");
}

#[test]
fn the_function_of_an_abort_is_the_program_s() {
    let failed = of_core(&cores().abort).expect("a core");
    assert_eq!((failed.signal, failed.address, failed.function()), (6, None, Some("main")));
}

#[test]
fn who_has_called_what_is_no_function_is_found() {
    let failed = of_core(&cores().jump).expect("a core");
    assert_eq!((failed.function(), failed.frames[0].address), (Some("main"), 0x10));
}

#[test]
fn a_core_says_whose_it_is() {
    let head = core::head(&cores().lines).expect("a core");
    // The program has the group and the session of this test; they are 0 where their first process is outside of this
    // process namespace.
    let stat = std::fs::read_to_string("/proc/self/stat").expect("it");
    let ours: Vec<i32> = stat.rsplit(") ").next().expect("it").split(' ').skip(2).flat_map(str::parse).collect();
    assert_eq!([head.signal, head.group, head.session], [11, ours[0], ours[1]]);
    assert!(head.pid > 1, "{head:?}");
}

#[test]
fn what_is_no_core_is_refused() {
    assert!(matches!(of_core(Path::new("/proc/self/exe")), Err(CoreError::NotACore)));
    assert!(matches!(of_core(Path::new("/dev/zero")), Err(CoreError::System(_))), "it has no end");
    assert!(matches!(of_core(Path::new("/no/such")), Err(CoreError::System(_))));
}

/// The bytes of a small part of a core, which has all but memory.
fn head_of_core() -> &'static [u8] {
    static HEAD: OnceLock<Vec<u8>> = OnceLock::new();
    HEAD.get_or_init(|| {
        let mut bytes = std::fs::read(&cores().symbols).expect("a core");
        bytes.truncate(1 << 20);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_core_that_was_cut_off_gives_less_and_harms_nobody(length in 0usize..1 << 20) {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("core");
        let bytes = head_of_core();
        std::fs::write(&path, &bytes[..length.min(bytes.len())]).expect("written");
        if let Ok(failed) = of_core(&path) {
            prop_assert!(failed.frames.len() <= FRAMES_MAX);
        }
    }

    #[test]
    fn a_core_with_wrong_bytes_harms_nobody(changes in proptest::collection::vec((0usize..16384, any::<u8>()), 1..64)) {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("core");
        let mut bytes = head_of_core().to_vec();
        for (at, value) in changes {
            // The first two bytes decide whether anybody looks further.
            let at = 4 + at % (bytes.len() - 4);
            bytes[at] = value;
        }
        std::fs::write(&path, bytes).expect("written");
        if let Ok(failed) = of_core(&path) {
            prop_assert!(failed.frames.len() <= FRAMES_MAX);
        }
    }

    #[test]
    fn nonsense_behind_the_begin_of_a_core_harms_nobody(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("core");
        std::fs::write(&path, [&b"\x7fELF\x02\x01"[..], &bytes].concat()).expect("written");
        let _ = of_core(&path);
    }
}
