//! What the file system says, in the standard's error classes (MPI 5.0, section 14.7).

use crate::error::{Class, Error};
use std::io;
use std::path::Path;

fn class(error: &io::Error) -> Class {
    match error.raw_os_error().unwrap_or(0) {
        libc::ENOENT => Class::NoSuchFile,
        libc::EEXIST => Class::FileExists,
        libc::EACCES | libc::EPERM => Class::Access,
        libc::EROFS => Class::ReadOnly,
        libc::ENOSPC => Class::NoSpace,
        libc::EDQUOT => Class::Quota,
        libc::EBUSY | libc::ETXTBSY => Class::FileInUse,
        libc::EISDIR | libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP | libc::ENXIO => Class::BadFile,
        libc::ENOMEM => Class::NoMem,
        libc::EOPNOTSUPP | libc::ENOLCK => Class::UnsupportedOperation,
        _ => Class::Io,
    }
}

/// The error of an operation on the file with this name.
#[cold]
pub fn of(doing: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(class(error), format!("file {}: {doing} failed: {error}", path.display()))
}
