//! From `PBEGIN` to `PEND`.

use crate::failure::fail;
use crate::place::{self, MESSENGER};
use crate::{counter, tally};
use weft_ports::{Endpoint, InterfaceName};

/// Takes part from now on.
pub fn begin() {
    place::seconds();
    if place::note_begin() {
        fail("PBEGIN: TCGMSG was initialized already", -1);
    }
    let endpoint = Endpoint::join_as(InterfaceName::Tcgmsg, &[]).unwrap_or_else(|error| {
        eprintln!("weft: {error}");
        std::process::exit(1)
    });
    place::settle(endpoint.me().0, endpoint.world_size());
    let way = counter::CounterWay::of(&endpoint);
    MESSENGER.open_with(endpoint, way.needs_thread());
    MESSENGER.lend();
    tally::begin(place::size());
    counter::begin(way);
}

/// Takes part no more. What was sent leaves first; receives that nobody has waited for are given up.
pub fn end() {
    if MESSENGER.is_open() {
        counter::end();
        MESSENGER.close();
    }
}
