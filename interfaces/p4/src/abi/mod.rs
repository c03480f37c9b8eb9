//! What programs call. Arguments become Rust values here, and nothing else happens here.

mod c;
mod fortran;
mod shared;
