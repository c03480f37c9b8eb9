//! How a program is linked: with which shared libraries, and whether dynamically at all (ELF, 64 bit, little-endian; all
//! else is "unknown"). The file is a claim: every number in it is checked by reading only what is there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const EM_386: u16 = 3;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// More of any table than this is not looked at.
const TABLE_BYTES: usize = 64 * 1024;
/// Longest name of a library that is looked at.
const NAME_BYTES: usize = 256;

/// What decides whether a library can be preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `e_machine`.
    pub machine: u16,
    /// It asks for a dynamic linker.
    pub has_interpreter: bool,
    /// It was made by the Go compiler.
    pub is_go: bool,
}

/// Whether a file can be expected to run: a script, ELF for this kind of processor, anything else only where other formats
/// may be registered. What cannot be read is left to the kernel.
///
/// The C library gives a file that the kernel refuses to a shell, which is right for a script that does not name its
/// interpreter; of anything else the shell would try each line.
pub fn is_executable_format(program: &Path) -> bool {
    let mut head = [0; 256];
    let Ok(read) = File::open(program).and_then(|file| file.read_at(&mut head, 0)) else { return true };
    if head.starts_with(b"#!") || is_text(&head[..read]) || has_other_formats() {
        return true;
    }
    let machine = u16::from_le_bytes([head[18], head[19]]);
    let is_ours = match std::env::consts::ARCH {
        "x86_64" => [EM_X86_64, EM_386].contains(&machine),
        "aarch64" => machine == EM_AARCH64,
        _ => true,
    };
    read >= 20 && head.starts_with(b"\x7fELF") && is_ours
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
pub fn facts(program: &Path) -> Option<Facts> {
    let file = File::open(program).ok()?;
    let header = header(&file)?;
    let segments = segments(&file, &header)?;
    Some(Facts {
        machine: u16_at(&header, 18)?,
        has_interpreter: segments.iter().any(|segment| segment.kind == PT_INTERP),
        is_go: has_section(&file, &header, ".go.buildinfo").unwrap_or(false),
    })
}

/// The machine that this process runs on.
pub fn own_machine() -> u16 {
    if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 }
}

/// With what a dynamic program or library was linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// The names of the libraries.
    pub needed: Vec<String>,
    /// Directories that are searched before those of `LD_LIBRARY_PATH` (RPATH; only where there is no RUNPATH).
    pub first: Vec<String>,
}

/// What `program` was linked with; `None` when it is no dynamic program of the kind that is read here.
pub fn linked(program: &Path) -> Option<Linked> {
    let file = File::open(program).ok()?;
    let needed = strings(&file, DT_NEEDED)?;
    let first = if strings(&file, DT_RUNPATH)?.is_empty() { strings(&file, DT_RPATH)? } else { Vec::new() };
    let first = first.iter().flat_map(|list| list.split(':')).map(str::to_owned).collect();
    Some(Linked { needed, first })
}

/// Open MPI counts its library 20, 40, 80; MPICH and its relatives stay at 12.
pub fn is_open_mpi(library: &str) -> bool {
    let number = library.strip_prefix("libmpi.so.").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    number.is_some_and(|number| number >= 20)
}

/// The first bytes of a 64-bit little-endian program.
fn header(file: &File) -> Option<Vec<u8>> {
    read(file, 0, 64).filter(|header| header.get(..6) == Some(b"\x7fELF\x02\x01"))
}

fn segments(file: &File, header: &[u8]) -> Option<Vec<Segment>> {
    let entry_bytes = usize::from(u16_at(header, 54)?).max(56);
    let count = usize::from(u16_at(header, 56)?);
    let table = read(file, u64_at(header, 32)?, (entry_bytes * count).min(TABLE_BYTES))?;
    Some(table.chunks_exact(entry_bytes).filter_map(Segment::parse).collect())
}

/// Whether a section of this name stands in the section table.
fn has_section(file: &File, header: &[u8], wanted: &str) -> Option<bool> {
    let entry_bytes = usize::from(u16_at(header, 58)?).max(64);
    let count = usize::from(u16_at(header, 60)?);
    let table = read(file, u64_at(header, 40)?, (entry_bytes * count).min(TABLE_BYTES))?;
    let names = table.chunks_exact(entry_bytes).nth(usize::from(u16_at(header, 62)?))?;
    let names = read(file, u64_at(names, 24)?, usize::try_from(u64_at(names, 32)?).ok()?.min(TABLE_BYTES))?;
    let name_of = |section: &[u8]| {
        let at = u32::from_le_bytes(section.get(..4)?.try_into().ok()?);
        names.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
    };
    Some(table.chunks_exact(entry_bytes).any(|section| name_of(section).is_some_and(|name| name == wanted.as_bytes())))
}

/// The strings under one tag of the dynamic section.
fn strings(file: &File, wanted: u64) -> Option<Vec<String>> {
    let segments = segments(file, &header(file)?)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let dynamic = read(file, dynamic.offset, usize::try_from(dynamic.bytes).ok()?.min(TABLE_BYTES))?;
    let entries = || dynamic.chunks_exact(16).filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)));
    let strings = entries().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    let strings = segments.iter().find_map(|segment| segment.offset_of(strings))?;
    let names = entries().filter(|(tag, _)| *tag == wanted);
    Some(names.filter_map(|(_, at)| name(file, strings.checked_add(at)?)).collect())
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

impl Segment {
    fn parse(entry: &[u8]) -> Option<Self> {
        let kind = u32::from_le_bytes(entry.get(..4)?.try_into().ok()?);
        Some(Self { kind, offset: u64_at(entry, 8)?, address: u64_at(entry, 16)?, bytes: u64_at(entry, 32)? })
    }

    /// Where in the file the loaded `address` comes from.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let within = address.checked_sub(self.address)?;
        (self.kind == PT_LOAD && within < self.bytes).then(|| self.offset.checked_add(within))?
    }
}

fn name(file: &File, at: u64) -> Option<String> {
    let bytes = read(file, at, NAME_BYTES)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// Up to `count` bytes from `at`; fewer at the end of the file.
fn read(file: &File, at: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    let read = file.read_at(&mut bytes, at).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    #[test]
    fn libraries_of_this_very_program_are_found() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let names = strings(&file, DT_NEEDED).expect("a test is a dynamic program");
        assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
    }

    #[test]
    fn this_very_program_is_dynamic_and_has_its_sections() {
        let path = std::env::current_exe().unwrap();
        let facts = facts(&path).expect("a program");
        assert_eq!(facts, Facts { machine: own_machine(), has_interpreter: true, is_go: false });
        let file = File::open(path).unwrap();
        let header = header(&file).unwrap();
        assert_eq!(has_section(&file, &header, ".text"), Some(true));
        assert_eq!(has_section(&file, &header, ".no-such"), Some(false));
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
            let mut bytes = read(&File::open("/bin/true").unwrap(), 0, 1 << 20).unwrap();
            for (at, byte) in damage { bytes[at] = byte; }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            let _ = strings(&file, DT_NEEDED);
            let _ = header(&file).and_then(|header| has_section(&file, &header, ".go.buildinfo"));
        }
    }
}
