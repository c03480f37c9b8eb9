//! `weft cc`, `weft c++` and `weft fc` (also called `mpicc`, `mpicxx`, `mpic++`, `mpifort`, `mpif90`, `mpif77`): the
//! system's compiler with what our library needs.
//!
//! The user's arguments are passed on untouched and in order. Our include directory comes before them, so that our
//! `mpi.h` is the one found; our library comes after them, where linkers want libraries. The library's directory is
//! written into the program as RUNPATH, so that `./prog` finds it and LD_LIBRARY_PATH can still override it.

mod arguments;
mod foreign;
mod fortran;
mod prefix;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use arguments::{CompilerCall, Question, TargetAbi};
pub use prefix::prefix;

/// What the manual says of both commands.
pub const LONG_ABOUT: &str = "\
Calls the system's compiler with the arguments as they are, and adds what a program for MPI needs: the folder of mpi.h \
before them, the library and its folder (also as RUNPATH) behind them where they link.

With --abi mpich the program is compiled for the MPICH ABI (libmpi.so.12) in place of the standard one: for sources that need \
MPI_Fint and the conversions from and to Fortran, and for programs that are to run with MPICH or Intel MPI as well.

The compiler is cc or c++, or what WEFT_CC or WEFT_CXX says, or what -cc=NAME or -cxx=NAME says.

Some arguments are questions, which are answered in place of compiling: -show (or -showme) prints the whole command line, \
-compile-info and -link-info print that of one step, -showme:compile and -showme:link print what is added, and \
-showme:command, :incdirs, :libdirs, :libs and :version print one thing each.

All other arguments go to the compiler. --help alone prints this; -v --help asks the compiler.";

/// What the manual says of the command for Fortran.
pub const FORTRAN_ABOUT: &str = "\
Calls gfortran with the arguments as they are, and adds what a program for MPI needs: the folders of mpif.h and of the \
modules mpi and mpi_f08 before them, the libraries and their folder (also as RUNPATH) behind them where they link. Calls of \
one procedure with buffers of several types, which mpif.h needs, are allowed (-fallow-argument-mismatch).

The modules are made for the version of the compiler that is found, once, beside the installed source or in the cache of the \
user.

The compiler is gfortran, or what WEFT_FC says, or what -fc=NAME says.

Questions are answered as weft cc does: -show (or -showme) prints the whole command line, -compile-info and -link-info print \
that of one step, -showme:compile and -showme:link print what is added, and -showme:command, :incdirs, :libdirs, :libs and \
:version print one thing each.

All other arguments go to the compiler. --help alone prints this; -v --help asks the compiler.";

/// What is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
    Fortran,
}

impl Language {
    /// The language of the name under which we were called (`mpicc`, ...), if it is one of a compiler.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "mpicc" => Some(Language::C),
            "mpicxx" | "mpic++" => Some(Language::Cxx),
            "mpifort" | "mpif90" | "mpif77" => Some(Language::Fortran),
            _ => None,
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Language::C => "WEFT_CC",
            Language::Cxx => "WEFT_CXX",
            Language::Fortran => "WEFT_FC",
        }
    }

    fn default_compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
            Language::Fortran => "gfortran",
        }
    }

    /// What is typed for it.
    pub fn command(self) -> &'static str {
        match self {
            Language::C => "weft cc",
            Language::Cxx => "weft c++",
            Language::Fortran => "weft fc",
        }
    }
}

/// Compiles or links with the arguments after the command's name, or answers what would be done.
///
/// Where a compiler is called it takes the place of this process, so that its exit code and signals are the program's.
///
/// # Errors
/// No installation around this command, or the compiler cannot be started.
pub fn run(args: &[OsString], language: Language) -> Result<i32> {
    let prefix = prefix()?;
    let arguments = CompilerCall::read(args);
    let compiler = arguments.compiler.clone().or_else(|| std::env::var_os(language.variable()));
    if let Some(refused) = arguments.refused {
        bail!("{refused}");
    }
    let mut flags = Flags::new(&prefix, compiler.as_deref(), language, arguments.abi);
    if language == Language::Fortran {
        if arguments.abi == TargetAbi::Mpich {
            bail!("--abi mpich is for C and C++; Fortran programs are compiled for the standard ABI");
        }
        if arguments.question.is_some() || arguments.has_input() {
            flags.modules = Some(fortran::modules(&prefix, &flags.compiler)?.into());
        }
    }
    if let Some(question) = arguments.question {
        println!("{}", flags.answer(question, &arguments));
        return Ok(0);
    }
    for warning in foreign::warnings(&arguments, &prefix) {
        eprintln!("{}: warning: {warning}", language.command());
    }
    let line = flags.line(&arguments);
    let (program, rest) = line.split_first().context("the command line names a compiler")?;
    let error = Command::new(program).args(rest).exec();
    let hint = format!("cannot start the compiler {program:?}; set {} to one", language.variable());
    Err(error).context(hint)
}

/// What our library adds to a compiler's command line.
#[derive(Debug)]
struct Flags {
    compiler: Vec<OsString>,
    include: OsString,
    library: OsString,
    abi: TargetAbi,
    language: Language,
    /// The folder of the modules of Fortran.
    modules: Option<OsString>,
}

impl Flags {
    /// `compiler` may be several words, as in `ccache gcc`.
    fn new(prefix: &Path, compiler: Option<&OsStr>, language: Language, abi: TargetAbi) -> Self {
        let words = compiler.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
        let mut compiler: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        if compiler.is_empty() {
            compiler.push(language.default_compiler().into());
        }
        let include = match abi {
            TargetAbi::Standard => prefix.join("include"),
            TargetAbi::Mpich => prefix.join("include/mpich"),
        };
        Self { compiler, include: include.into(), library: prefix.join("lib").into(), abi, language, modules: None }
    }

    fn compile(&self) -> Vec<OsString> {
        let folders = self.include_folders().into_iter().map(|folder| joined("-I", &folder));
        let mismatch = (self.language == Language::Fortran).then(|| "-fallow-argument-mismatch".into());
        folders.chain(mismatch).collect()
    }

    fn include_folders(&self) -> Vec<OsString> {
        std::iter::once(self.include.clone()).chain(self.modules.clone()).collect()
    }

    fn link(&self) -> Vec<OsString> {
        let mut flags =
            vec![joined("-L", &self.library), joined("-Wl,-rpath,", &self.library), "-Wl,--enable-new-dtags".into()];
        let libraries = self.libraries().into_iter().map(|name| format!("-l{name}").into());
        if self.language == Language::Fortran {
            // The program itself calls only the first library, and that one says of nobody that it needs it.
            flags.push("-Wl,--push-state,--no-as-needed".into());
            flags.extend(libraries);
            flags.push("-Wl,--pop-state".into());
        } else {
            flags.extend(libraries);
        }
        flags
    }

    /// The library with the conversions of statuses that `mpi.h` declares beside the ABI, for programs of C that call
    /// one, and no others: it is not there where another library of the ABI is. What is answered to build systems
    /// leaves it out, because those take such a line to pieces.
    fn conversions(&self) -> Vec<OsString> {
        match (self.language, self.abi) {
            (Language::C | Language::Cxx, TargetAbi::Standard) => {
                ["-Wl,--push-state,--as-needed", "-lweft_mpifort", "-Wl,--pop-state"].map(OsString::from).into()
            }
            _ => Vec::new(),
        }
    }

    fn libraries(&self) -> Vec<&'static str> {
        let fortran = (self.language == Language::Fortran).then_some("weft_mpifort");
        fortran.into_iter().chain([self.abi.library()]).collect()
    }

    /// The whole command line.
    fn line(&self, arguments: &CompilerCall) -> Vec<OsString> {
        let mut line = self.compiler.clone();
        if arguments.has_input() {
            line.extend(self.compile());
        }
        line.extend(arguments.passed.iter().cloned());
        if arguments.links() {
            line.extend(self.link());
            line.extend(self.conversions());
        }
        line
    }

    fn answer(&self, question: Question, arguments: &CompilerCall) -> String {
        match question {
            Question::Line if arguments.passed.is_empty() => self.whole(&[self.compile(), self.link()]),
            Question::Line => shell_words(&self.line(arguments)),
            Question::CompileLine => self.whole(&[self.compile(), arguments.passed.clone(), vec!["-c".into()]]),
            Question::LinkLine => self.whole(&[arguments.passed.clone(), self.link()]),
            Question::CompileFlags => shell_words(&self.compile()),
            Question::LinkFlags => shell_words(&self.link()),
            Question::Compiler => shell_words(&self.compiler),
            Question::IncludeFolders => shell_words(&self.include_folders()),
            Question::LibraryFolders => shell_words(std::slice::from_ref(&self.library)),
            Question::Libraries => self.libraries().join(" "),
            Question::Version => format!("weft {}", env!("CARGO_PKG_VERSION")),
        }
    }

    fn whole(&self, parts: &[Vec<OsString>]) -> String {
        let line: Vec<OsString> = self.compiler.iter().chain(parts.iter().flatten()).cloned().collect();
        shell_words(&line)
    }
}

fn joined(option: &str, value: &OsStr) -> OsString {
    let mut text = OsString::from(option);
    text.push(value);
    text
}

/// One line that a shell reads back as these words.
fn shell_words(words: &[OsString]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    quoted.join(" ")
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,/:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
