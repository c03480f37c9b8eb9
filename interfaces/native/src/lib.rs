//! libweft: ports of our own, for C programs and for Rust.
