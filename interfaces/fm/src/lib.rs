//! libfm: Fast Messages over the fabric.
