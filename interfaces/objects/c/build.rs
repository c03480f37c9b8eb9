//! Gives the library the name under which programs ask for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libweft_objects.so.1");
}
