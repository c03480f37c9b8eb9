//! Jobs on several hosts, which are network namespaces: what ranks find there, that all is as on one host, every way of
//! not coming to be, and that nothing is left whoever is killed.
//!
//! The namespaces share process numbers and files with this machine. What proves "another host" is the network alone.

mod hosts {
    mod agent;
    mod cleanup;
    mod faults;
    mod ranks;
    mod refusals;
    mod stage;
    mod streams;
    mod support;
}
#[path = "launcher/support.rs"]
mod launcher;
