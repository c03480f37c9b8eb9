//! The names of the C library that we stand in front of. Each turns its arguments into ours and calls one function.
//!
//! Every function here has the contract of the C function of its name; that is what its `Safety` section would say.
#![allow(clippy::missing_safety_doc, non_snake_case)]

/// Names under which the C library has the same function again.
macro_rules! aliases {
    ($($alias:ident($($argument:ident: $type:ty),*) -> $answer:ty = $name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $alias($($argument: $type),*) -> $answer {
            // SAFETY: the same function.
            unsafe { $name($($argument),*) }
        }
    )* };
}

/// Functions that do something first.
macro_rules! before {
    ($($(#[$comment:meta])* $name:ident($($argument:ident: $type:ty),*) -> $answer:ty: $first:expr;)*) => { $(
        $(#[$comment])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $answer {
            $first;
            // SAFETY: the program's own arguments.
            unsafe { real::$name($($argument),*) }
        }
    )* };
}

mod by_number;
mod data;
mod descriptors;
pub mod heirs;
mod multiplex;
mod process;
mod sleeping;
mod variadic;
