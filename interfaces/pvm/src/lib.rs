//! libpvm3: PVM 3.4 over the fabric.
