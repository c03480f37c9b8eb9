//! What programs call. Arguments become Rust values here, and nothing else happens here.

/// Functions that give a number.
macro_rules! numbers {
    ($($(#[$comment:meta])* $name:ident = $value:expr;)*) => { $(
        $(#[$comment])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            $value
        }
    )* };
}

mod c;
mod fortran;
mod shared;
