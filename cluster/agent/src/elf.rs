//! How a program is linked: with which shared libraries, and whether dynamically at all (ELF, 64 bit, little-endian;
//! all else is "unknown"). The file is a claim: every number in it is checked by reading only what is there.

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRTAB, DynamicTag, EM_386, EM_AARCH64, EM_X86_64, FileHeader64, Machine,
    PT_INTERP, PT_LOAD,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::read::{ReadCache, StringTable};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What decides whether a library can be preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfFacts {
    /// `e_machine`.
    pub machine: Machine,
    /// It asks for a dynamic linker.
    pub has_interpreter: bool,
    /// It was made by the Go compiler.
    pub is_go: bool,
}

/// Whether a file can be expected to run: a script, ELF for this kind of processor, anything else only where other
/// formats may be registered. What cannot be read is left to the kernel.
///
/// The C library gives a file that the kernel refuses to a shell, which is right for a script that does not name its
/// interpreter; of anything else the shell would try each line.
pub fn is_executable_format(program: &Path) -> bool {
    let mut head = [0; 256];
    let Ok(read) = File::open(program).and_then(|file| file.read_at(&mut head, 0)) else { return true };
    if head.starts_with(b"#!") || is_text(&head[..read]) {
        return true;
    }
    let machine = Machine(u16::from_le_bytes([head[18], head[19]]));
    let is_ours = match std::env::consts::ARCH {
        "x86_64" => [EM_X86_64, EM_386].contains(&machine),
        "aarch64" => machine == EM_AARCH64,
        _ => true,
    };
    (read >= 20 && head.starts_with(b"\x7fELF") && is_ours) || has_other_formats()
}

/// Whether a file that begins so may be read by a shell: there is something in it, and no byte that is in no text.
fn is_text(head: &[u8]) -> bool {
    let is_in_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    !head.is_empty() && head.iter().all(is_in_text)
}

/// Whether formats beyond the kernel's own are registered (binfmt_misc).
fn has_other_formats() -> bool {
    let entries = std::fs::read_dir("/proc/sys/fs/binfmt_misc").into_iter().flatten().flatten();
    entries.into_iter().any(|entry| !["register", "status"].contains(&&*entry.file_name().to_string_lossy()))
}

/// The facts about a program; `None` when it is not one of the kind that is read here.
pub fn facts(program: &Path) -> Option<ElfFacts> {
    let file = open(program)?;
    let header = header(&file)?;
    let segments = header.program_headers(LittleEndian, &file).ok()?;
    Some(ElfFacts {
        machine: header.e_machine(LittleEndian),
        has_interpreter: segments.iter().any(|segment| segment.p_type(LittleEndian) == PT_INTERP),
        is_go: has_section(&file, ".go.buildinfo").unwrap_or(false),
    })
}

/// The machine that this process runs on.
pub fn own_machine() -> Machine {
    if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 }
}

/// With what a dynamic program or library was linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// The names of the libraries.
    pub needed: Vec<String>,
    /// Directories that are searched before those of `LD_LIBRARY_PATH` (RPATH; only where there is no RUNPATH).
    pub first: Vec<String>,
    /// Directories that are searched after those (RUNPATH).
    pub then: Vec<String>,
}

/// What `program` was linked with; `None` when it is no dynamic program of the kind that is read here.
pub fn linked(program: &Path) -> Option<Linked> {
    let file = open(program)?;
    let needed = strings(&file, DT_NEEDED)?;
    let then = strings(&file, DT_RUNPATH)?;
    let first = if then.is_empty() { strings(&file, DT_RPATH)? } else { Vec::new() };
    let folders = |lists: &[String]| lists.iter().flat_map(|list| list.split(':')).map(str::to_owned).collect();
    Some(Linked { needed, first: folders(&first), then: folders(&then) })
}

/// Open MPI counts its library 20, 40, 80; MPICH and its relatives stay at 12.
pub fn is_open_mpi(library: &str) -> bool {
    let number = library.strip_prefix("libmpi.so.").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    number.is_some_and(|number| number >= 20)
}

type Header = FileHeader64<LittleEndian>;
type Program = ReadCache<File>;

/// A file of which only what is asked for is read.
fn open(program: &Path) -> Option<Program> {
    Some(ReadCache::new(File::open(program).ok()?))
}

/// That of a 64-bit little-endian program.
fn header(file: &Program) -> Option<&Header> {
    let header = Header::parse(file).ok()?;
    header.endian().ok()?;
    Some(header)
}

/// Whether a section of this name stands in the section table.
fn has_section(file: &Program, wanted: &str) -> Option<bool> {
    let sections = header(file)?.sections(LittleEndian, file).ok()?;
    Some(sections.section_by_name(LittleEndian, wanted.as_bytes()).is_some())
}

/// The strings under one tag of the dynamic section.
fn strings(file: &Program, wanted: DynamicTag) -> Option<Vec<String>> {
    let segments = header(file)?.program_headers(LittleEndian, file).ok()?;
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(LittleEndian, file).ok()?)?;
    let under = |tag| dynamic.iter().filter(move |entry| entry.tag(LittleEndian) == tag);
    let address = under(DT_STRTAB).next()?.val(LittleEndian);
    let strings = segments.iter().find_map(|segment| {
        let within = address.checked_sub(segment.p_vaddr(LittleEndian))?;
        let (offset, bytes) = segment.file_range(LittleEndian);
        let is_there = segment.p_type(LittleEndian) == PT_LOAD && within < bytes;
        is_there.then(|| Some(StringTable::new(file, offset.checked_add(within)?, offset.checked_add(bytes)?)))?
    })?;
    let text = |at: u64| String::from_utf8(strings.get(at.try_into().ok()?).ok()?.to_vec()).ok();
    Some(under(wanted).filter_map(|entry| text(entry.val(LittleEndian))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn libraries_of_this_very_program_are_found() {
        let names = linked(&std::env::current_exe().unwrap()).expect("a test is a dynamic program").needed;
        assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
    }

    #[test]
    fn this_very_program_is_dynamic_and_has_its_sections() {
        let path = std::env::current_exe().unwrap();
        let facts = facts(&path).expect("a program");
        assert_eq!(facts, ElfFacts { machine: own_machine(), has_interpreter: true, is_go: false });
        let file = open(&path).unwrap();
        assert_eq!(has_section(&file, ".text"), Some(true));
        assert_eq!(has_section(&file, ".no-such"), Some(false));
    }

    #[test]
    fn scripts_are_told_from_what_no_shell_can_read() {
        assert!(is_text(b"echo a\tb\n") && is_text("caf\u{e9}=1\r\n".as_bytes()));
        assert!(!is_text(b"") && !is_text(b"\x7fELF") && !is_text(b"a\0b") && !is_text(b"\x1bx"));
    }

    #[test]
    fn numbers_tell_the_libraries_apart() {
        assert!(is_open_mpi("libmpi.so.40") && is_open_mpi("libmpi.so.20.10.1"));
        assert!(!is_open_mpi("libmpi.so.12") && !is_open_mpi("libmpi_abi.so.1") && !is_open_mpi("libmpich.so.40"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn damaged_program_is_read_without_panic(damage in proptest::collection::vec((0usize..4096, any::<u8>()), 1..40)) {
            let mut bytes = std::fs::read("/bin/true").unwrap();
            for (at, byte) in damage { bytes[at] = byte; }
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            let _ = (linked(file.path()), facts(file.path()));
        }
    }
}
