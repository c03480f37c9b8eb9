//! libtcgmsg: TCGMSG over the fabric.
