//! The launcher from outside: exit codes, output, input, signals, clean-up and binding, with ordinary programs and with
//! programs of MPICH.

mod launcher {
    mod cleanup;
    mod codes;
    mod habits;
    mod mpi;
    mod placement;
    mod streams;
    pub mod support;
    mod terminal;
    mod tuning;
}
