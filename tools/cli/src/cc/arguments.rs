//! What the user's arguments ask of the compiler. Only what decides about our own flags is understood.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// A question about the compiler command, in place of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The whole command line for these arguments.
    Line,
    CompileLine,
    LinkLine,
    CompileFlags,
    LinkFlags,
    Compiler,
    IncludeFolders,
    LibraryFolders,
    Libraries,
    Version,
}

/// Options of other libraries' compiler commands, which build systems ask.
const QUESTIONS: &[(&str, Question)] = &[
    ("-show", Question::Line),
    ("-showme", Question::Line),
    ("--showme", Question::Line),
    ("-compile-info", Question::CompileLine),
    ("-compile_info", Question::CompileLine),
    ("-link-info", Question::LinkLine),
    ("-link_info", Question::LinkLine),
    ("-showme:compile", Question::CompileFlags),
    ("--showme:compile", Question::CompileFlags),
    ("-showme:link", Question::LinkFlags),
    ("--showme:link", Question::LinkFlags),
    ("-showme:command", Question::Compiler),
    ("--showme:command", Question::Compiler),
    ("-showme:incdirs", Question::IncludeFolders),
    ("--showme:incdirs", Question::IncludeFolders),
    ("-showme:libdirs", Question::LibraryFolders),
    ("--showme:libdirs", Question::LibraryFolders),
    ("-showme:libs", Question::Libraries),
    ("--showme:libs", Question::Libraries),
    ("-showme:version", Question::Version),
    ("--showme:version", Question::Version),
];

/// Options after which the compiler stops before it links, and the one whose result is linked later.
const NO_LINK: &[&str] = &["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r"];

/// Options whose value is the next argument, so that it is not an input.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-x",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "--sysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xpreprocessor",
    "-Xassembler",
    "-Xclang",
    "-T",
    "-u",
    "-z",
    "-e",
    "-B",
    "-A",
    "-G",
    "-aux-info",
    "-dumpbase",
    "-dumpdir",
    "--param",
    "-target",
    "-arch",
    "-wrapper",
    "-specs",
    "-J",
];

/// Options that name the compiler.
const CHOICES: [&str; 3] = ["-cc=", "-cxx=", "-fc="];

/// Which ABI a program is compiled for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TargetAbi {
    /// MPI 5.0, chapter 20.
    #[default]
    Standard,
    Mpich,
}

impl TargetAbi {
    /// # Errors
    /// It is no name of one.
    fn named(name: &str) -> Result<Self, String> {
        match name {
            "standard" => Ok(Self::Standard),
            "mpich" => Ok(Self::Mpich),
            _ => Err(format!("--abi {name} is not known; standard and mpich are")),
        }
    }

    /// The library's name for the linker.
    pub fn library(self) -> &'static str {
        match self {
            Self::Standard => "mpi_abi",
            Self::Mpich => "mpi",
        }
    }
}

/// The user's arguments, read.
#[derive(Debug, Default)]
pub struct CompilerCall {
    /// What goes to the compiler.
    pub passed: Vec<OsString>,
    pub question: Option<Question>,
    /// From `-cc=NAME`, `-cxx=NAME` or `-fc=NAME`.
    pub compiler: Option<OsString>,
    /// From `--abi NAME` or `--abi=NAME`.
    pub abi: TargetAbi,
    /// Why an argument of ours is refused.
    pub refused: Option<String>,
    inputs: bool,
    stops_early: bool,
}

impl CompilerCall {
    pub fn read(args: &[OsString]) -> Self {
        let mut read = Self::default();
        let mut value_follows = false;
        let mut abi_follows = false;
        for argument in args {
            if std::mem::take(&mut abi_follows) {
                read.choose(&argument.to_string_lossy());
            } else if !value_follows && argument == "--abi" {
                abi_follows = true;
            } else if value_follows {
                value_follows = false;
                read.passed.push(argument.clone());
            } else {
                value_follows = read.take(argument);
            }
        }
        if abi_follows {
            read.choose("");
        }
        read
    }

    fn choose(&mut self, abi: &str) {
        match TargetAbi::named(abi) {
            Ok(abi) => self.abi = abi,
            Err(refused) => self.refused = Some(refused),
        }
    }

    /// Takes one argument that is not the value of another; whether its own value follows.
    fn take(&mut self, argument: &OsString) -> bool {
        let text = argument.to_str().unwrap_or_default();
        if let Some((_, question)) = QUESTIONS.iter().find(|(option, _)| *option == text) {
            self.question = Some(*question);
            return false;
        }
        if let Some(compiler) = CHOICES.iter().find_map(|option| text.strip_prefix(option)) {
            self.compiler = Some(compiler.into());
            return false;
        }
        if let Some(abi) = text.strip_prefix("--abi=") {
            self.choose(abi);
            return false;
        }
        self.stops_early |= NO_LINK.contains(&text);
        self.inputs |= is_input(argument);
        self.passed.push(argument.clone());
        WITH_VALUE.contains(&text)
    }

    /// Whether anything is compiled or linked; if not, as in `--version`, the compiler answers for itself.
    pub fn has_input(&self) -> bool {
        self.inputs
    }

    /// Whether the compiler will call the linker.
    pub fn links(&self) -> bool {
        self.inputs && !self.stops_early
    }
}

/// A file, standard input, or a response file, whose content we leave to the compiler.
fn is_input(argument: &OsStr) -> bool {
    let bytes = argument.as_bytes();
    bytes == b"-" || bytes.first().is_some_and(|first| *first != b'-')
}
