//! The C boundary: types and constants of the standard ABI.

/// Bodies that answer one value of an object.
macro_rules! gives {
    ($($(#[$about:meta])* $name:ident($object:ident) -> $type:ty = $value:expr;)*) => {$(
        $(#[$about])*
        pub fn $name($object: usize) -> Result<$type> {
            Ok($value)
        }
    )*};
}

pub(crate) use gives;

mod arrays;
mod constants;
mod counts;
mod described;
mod status;
mod text;

pub use arrays::slice_of;
pub use constants::*;
pub use counts::{CountCallback, CountOut, Counts};
pub use described::{Aim, Described, Various};
pub use status::Status;
pub use text::{store_string, text_of};

#[cfg(test)]
mod tests {
    const COMMITTED: &str = include_str!("../../include/mpi.h");
    const WRITTEN: &str = include_str!(concat!(env!("OUT_DIR"), "/mpi.h"));

    #[test]
    fn the_committed_header_is_what_the_table_says() {
        if std::env::var_os("WEFT_UPDATE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/include/mpi.h");
            std::fs::write(path, WRITTEN).expect("the header is writable");
            return;
        }
        assert!(COMMITTED == WRITTEN, "include/mpi.h is old: run this test with WEFT_UPDATE=1 and commit it");
    }
}
