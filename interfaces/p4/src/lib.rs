//! libp4: P4 1.4b over the fabric.
