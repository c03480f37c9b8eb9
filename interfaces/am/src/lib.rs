//! libam: Active Messages (AM-II, GAM, AMUDP) over the fabric.
