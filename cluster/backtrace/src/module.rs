//! The files that a process has mapped: their tables for unwinding, and the names of what is in them.

use crate::maps::FileMapping;
use crate::memory::open_file;
use crate::{StackFrame, file_name};
use gimli::{BaseAddresses, EhFrame, EndianArcSlice, EndianSlice, LittleEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub type Section<'a> = EndianSlice<'a, LittleEndian>;
type Lines = addr2line::Context<EndianArcSlice<LittleEndian>>;

/// The longest section that is read, and how much of debug information altogether.
const SECTION_MAX: u64 = 256 << 20;
const LINES_MAX: u64 = 768 << 20;
/// Files that are opened: a backtrace goes through fewer.
const MODULES_MAX: usize = 64;

/// The files of a process.
pub struct Modules {
    mappings: Vec<FileMapping>,
    open: Vec<MappedModule>,
}

/// One of them.
pub struct MappedModule {
    path: String,
    /// Which addresses are this file, as a part of it begins there.
    mappings: Vec<FileMapping>,
    contents: Option<ModuleContents>,
}

struct ModuleContents {
    /// Offset in the file, bytes, and address by the file's own reckoning.
    segments: Vec<[u64; 3]>,
    frames: Option<(u64, Vec<u8>)>,
    index: Option<(u64, Vec<u8>)>,
    text: u64,
    /// Functions by their addresses: begin, bytes, name.
    symbols: Vec<(u64, u64, String)>,
    lines: Option<Lines>,
}

impl Modules {
    pub fn new(mappings: Vec<FileMapping>) -> Self {
        Self { mappings, open: Vec::new() }
    }

    /// Whether a file is there.
    pub fn has(&self, address: u64) -> bool {
        self.mappings.iter().any(|mapping| mapping.addresses.contains(&address))
    }

    /// The file that is there.
    pub fn at(&mut self, address: u64) -> Option<&MappedModule> {
        let mapping = self.mappings.iter().find(|mapping| mapping.addresses.contains(&address))?;
        let path = mapping.path.clone();
        let known = self.open.iter().position(|module| module.path == path);
        let at = match known {
            Some(at) => at,
            None if self.open.len() < MODULES_MAX => {
                let mappings = self.mappings.iter().filter(|mapping| mapping.path == path).cloned().collect();
                let contents = ModuleContents::read(Path::new(&path));
                self.open.push(MappedModule { path, mappings, contents });
                self.open.len() - 1
            }
            None => return None,
        };
        Some(&self.open[at])
    }

    /// The functions at an address: those that were put into others (inlined) come first.
    pub fn name(&mut self, address: u64) -> Vec<StackFrame> {
        let unnamed = |file| vec![StackFrame { address, function: None, line: None, file }];
        match self.at(address) {
            None => unnamed(None),
            Some(module) => {
                let named = module.name(address);
                if named.is_empty() { unnamed(Some(module.path.clone())) } else { named }
            }
        }
    }
}

impl MappedModule {
    /// The address by the file's own reckoning.
    pub fn in_file(&self, address: u64) -> Option<u64> {
        let mapping = self.mappings.iter().find(|mapping| mapping.addresses.contains(&address))?;
        let offset = (address - mapping.addresses.start).checked_add(mapping.offset)?;
        let segments = &self.contents.as_ref()?.segments;
        let holds = |[begin, bytes, _]: &&[u64; 3]| offset.checked_sub(*begin).is_some_and(|inside| inside < *bytes);
        let [begin, _, own] = segments.iter().find(holds)?;
        Some(own.wrapping_add(offset - begin))
    }

    /// What `.eh_frame` says, and where it stands.
    pub fn tables(&self) -> Option<(EhFrame<Section<'_>>, BaseAddresses)> {
        let contents = self.contents.as_ref()?;
        let (address, bytes) = contents.frames.as_ref()?;
        let mut bases = BaseAddresses::default().set_eh_frame(*address).set_text(contents.text);
        if let Some((address, _)) = &contents.index {
            bases = bases.set_eh_frame_hdr(*address);
        }
        let mut section = EhFrame::new(bytes, LittleEndian);
        section.set_address_size(8);
        Some((section, bases))
    }

    /// The entry for an address, found by the index, or by looking through all.
    pub fn entry<'a>(
        &'a self,
        section: &EhFrame<Section<'a>>,
        bases: &BaseAddresses,
        address: u64,
    ) -> Option<gimli::FrameDescriptionEntry<Section<'a>>> {
        let index = self.contents.as_ref()?.index.as_ref();
        let by_index = index.and_then(|(_, bytes)| {
            let header = gimli::EhFrameHdr::new(bytes, LittleEndian).parse(bases, 8).ok()?;
            header.table()?.fde_for_address(section, bases, address, EhFrame::cie_from_offset).ok()
        });
        by_index.or_else(|| section.fde_for_address(bases, address, EhFrame::cie_from_offset).ok())
    }

    fn name(&self, address: u64) -> Vec<StackFrame> {
        let Some((contents, own)) = self.contents.as_ref().zip(self.in_file(address)) else { return Vec::new() };
        let file = Some(self.path.clone());
        let symbol = contents.symbol(own);
        let mut frames = Vec::new();
        let lines = contents.lines.as_ref().and_then(|lines| lines.find_frames(own).skip_all_loads().ok());
        if let Some(mut found) = lines {
            while let Ok(Some(frame)) = found.next() {
                let function = frame.function.and_then(|name| name.demangle().ok().map(|name| name.into_owned()));
                let line = frame.location.and_then(|place| Some((place.file?.to_owned(), place.line?)));
                frames.push(StackFrame { address, function, line, file: file.clone() });
            }
        }
        match (frames.last_mut(), symbol) {
            (Some(outermost), Some(name)) if outermost.function.is_none() => outermost.function = Some(name),
            (None, Some(name)) => frames.push(StackFrame { address, function: Some(name), line: None, file }),
            _ => {}
        }
        frames
    }
}

impl ModuleContents {
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(open_file(path).ok()?);
        let object = object::File::parse(&cache).ok()?;
        let segments = object.segments().map(|segment| {
            let (begin, bytes) = segment.file_range();
            [begin, bytes, segment.address()]
        });
        let apart = debug_file(path, &object).map(ReadCache::new);
        let apart = apart.as_ref().and_then(|cache| object::File::parse(cache).ok());
        let mut found = symbols(&object);
        found.extend(apart.iter().flat_map(symbols));
        found.sort();
        let lines = apart.as_ref().and_then(lines).or_else(|| lines(&object));
        Some(Self {
            segments: segments.collect(),
            frames: section(&object, ".eh_frame"),
            index: section(&object, ".eh_frame_hdr"),
            text: object.section_by_name(".text").map_or(0, |section| section.address()),
            symbols: found,
            lines,
        })
    }

    /// The function there.
    fn symbol(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|(begin, ..)| *begin <= address);
        let (begin, bytes, name) = self.symbols[..after].last()?;
        // Functions in assembler may say no length.
        (*bytes == 0 || address - begin < *bytes).then(|| addr2line::demangle_auto(name.into(), None).into_owned())
    }
}

/// Its address and bytes.
fn section<'a>(object: &impl Object<'a>, name: &str) -> Option<(u64, Vec<u8>)> {
    let section = object.section_by_name(name).filter(|section| section.size() <= SECTION_MAX)?;
    Some((section.address(), section.data().ok()?.to_vec()))
}

fn symbols<'a>(object: &impl Object<'a>) -> Vec<(u64, u64, String)> {
    let all = object.symbols().chain(object.dynamic_symbols());
    let functions = all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    functions.filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))).collect()
}

/// The lines of debug information, where there is any and not too much.
fn lines<'a>(object: &impl Object<'a>) -> Option<Lines> {
    object.section_by_name(".debug_info")?;
    let sizes = object.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug")));
    if sizes.map(|section| section.size()).fold(0, u64::saturating_add) > LINES_MAX {
        return None;
    }
    let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let bytes = section(object, id.name()).map(|(_, bytes)| bytes).unwrap_or_default();
        Ok(EndianArcSlice::new(Arc::from(bytes), LittleEndian))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}

/// Where debug information was taken out of a file, the file with it: by what it was built from, or by its name.
fn debug_file<'a>(path: &Path, object: &impl Object<'a>) -> Option<File> {
    let mut places: Vec<PathBuf> = Vec::new();
    if let Ok(Some([first, rest @ ..])) = object.build_id() {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        places.push(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug").into());
    }
    if let (Ok(Some((name, _))), Some(folder)) = (object.gnu_debuglink(), path.parent()) {
        let name = String::from_utf8_lossy(name).into_owned();
        let name = file_name(&name);
        places.extend([folder.join(".debug").join(name), folder.join(name)]);
    }
    places.iter().find_map(|place| open_file(place).ok())
}
