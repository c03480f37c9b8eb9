//! What programs call. Arguments become Rust values here, and nothing else happens here.
//!
//! - `c`: `tcgmsg.h`.
//! - `fortran`: the lower case names with an underscore, for an INTEGER of four bytes, and `tcgmsg8_*` for one of
//!   eight, which are also what the upper case macros of `sndrcv.h` mean.

/// Functions without arguments.
macro_rules! without_arguments {
    ($($(#[$comment:meta])* $name:ident() $(-> $result:ty)? = $what:expr;)*) => { $(
        $(#[$comment])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() $(-> $result)? {
            $what
        }
    )* };
}

mod c;
mod fortran;
