//! Network programs of everyday, unmodified, on loopback with the socket library preloaded: each moves real data and
//! has it checked, and of what preloaded peers send each other at least 99 % must go through rings.
//!
//! Servers are ordinary processes on free ports with temporary folders, ended by their process ids.

mod sockets_programs {
    mod command;
    mod databases;
    mod datagrams;
    mod languages;
    mod message_passing;
    mod streams;
    mod users;
    mod web;
}
