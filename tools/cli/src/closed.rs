//! Standard output that nobody reads any more.

/// What `println!` begins with when it gives up: it knows nothing else than to panic.
const GIVES_UP: &str = "failed printing to stdout: Broken pipe";

/// From here on this process ends in silence where it prints and nobody reads any more, as before `| head`: with the
/// code of a program that was ended by SIGPIPE.
pub fn end_where_nobody_reads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str().is_some_and(|said| said.starts_with(GIVES_UP)) {
            std::process::exit(128 + libc::SIGPIPE);
        }
        usual(panic);
    }));
}
