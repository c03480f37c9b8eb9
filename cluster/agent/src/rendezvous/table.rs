//! Who has shown what, who shares which arena, which slots are used: pure.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use weft_lanes::Client;
use weft_wire::stream::arena::SLOTS;
use weft_wire::stream::datagram::DatagramPeer;
use weft_wire::stream::packet::SlotSide;

/// A connection as one end names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Network namespace, by the kernel's number.
    pub namespace: u64,
    local: SocketAddr,
    remote: SocketAddr,
    /// Of datagrams: whose, because only processes of one user exchange them beside the kernel.
    datagrams_of: Option<u32>,
}

/// One address has several spellings.
fn plain(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl Tuple {
    pub fn new(namespace: u64, local: SocketAddr, remote: SocketAddr) -> Self {
        Self { namespace, local: plain(local), remote: plain(remote), datagrams_of: None }
    }

    /// A pair of datagram sockets of `user`.
    pub fn of_datagrams(namespace: u64, local: SocketAddr, remote: SocketAddr, user: u32) -> Self {
        Self { datagrams_of: Some(user), ..Self::new(namespace, local, remote) }
    }

    fn other_end(&self) -> Self {
        Self { local: self.remote, remote: self.local, ..*self }
    }
}

/// A shown end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownEnd {
    pub client: Client,
    pub cookie: u64,
    /// Of a datagram socket: the other one, as its process names it.
    pub peer: Option<DatagramPeer>,
}

/// Both ends are known: what to tell whom.
#[derive(Debug, PartialEq, Eq)]
pub struct Meeting {
    pub ends: [(ShownEnd, SlotSide); 2],
    /// The arena, new for these sides.
    pub new_to: [bool; 2],
}

/// Ends that one process may have waiting for their other end; the oldest are forgotten.
const WAITING: usize = 16 * 1024;

#[derive(Default)]
struct TableSlot {
    generation: u32,
    used: bool,
    released: [bool; 2],
    ports: [u16; 2],
}

/// What two processes share. Side n is that of `clients[n]`.
pub struct SharedArena {
    pub name: u64,
    pub clients: [Client; 2],
    known: [bool; 2],
    slots: Vec<TableSlot>,
    free: Vec<u32>,
}

impl SharedArena {
    fn new(name: u64, clients: [Client; 2]) -> Self {
        Self { name, clients, known: [false; 2], slots: Vec::new(), free: Vec::new() }
    }

    fn take(&mut self, ports: [u16; 2]) -> Option<(u32, u32)> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < SLOTS as usize => {
                self.slots.push(TableSlot::default());
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let entry = &mut self.slots[slot as usize];
        // After four thousand million uses a number comes back; 0 never.
        let generation = entry.generation.checked_add(1).unwrap_or(1);
        *entry = TableSlot { generation, used: true, released: [false; 2], ports };
        Some((slot, generation))
    }

    fn release(&mut self, place: SlotSide) {
        let Some(entry) = self.slots.get_mut(place.slot as usize) else { return };
        if !entry.used || entry.generation != place.generation {
            return;
        }
        entry.released[place.side as usize & 1] = true;
        if entry.released == [true; 2] {
            entry.used = false;
            self.free.push(place.slot);
        }
    }

    /// Used slots with the ports at their ends.
    pub fn connections(&self) -> impl Iterator<Item = (u32, [u16; 2])> + '_ {
        let used = self.slots.iter().enumerate().filter(|(_, slot)| slot.used && slot.released == [false; 2]);
        used.map(|(index, slot)| (index as u32, slot.ports))
    }
}

/// Everything that is known.
#[derive(Default)]
pub struct RendezvousTable {
    waiting: HashMap<Tuple, ShownEnd>,
    /// In the order of showing, for forgetting.
    shown: HashMap<Client, VecDeque<Tuple>>,
    /// Where an end of a connection waits, by its cookie.
    places: HashMap<(Client, u64), Tuple>,
    arenas: HashMap<u64, SharedArena>,
    pairs: HashMap<[Client; 2], Vec<u64>>,
}

impl RendezvousTable {
    /// `end` of the connection `tuple` was shown. `new_arena` makes an arena and answers its name.
    pub fn show(&mut self, tuple: Tuple, end: ShownEnd, new_arena: impl FnOnce() -> Option<u64>) -> Option<Meeting> {
        // A socket connected to itself has one end only.
        if tuple.local == tuple.remote {
            return None;
        }
        let Some(other) = self.waiting.get(&tuple.other_end()).copied() else {
            self.wait(tuple, end);
            return None;
        };
        self.forget(&tuple.other_end());
        let mut ends = [(other, tuple.remote.port()), (end, tuple.local.port())];
        ends.sort_by_key(|(end, _)| end.client);
        self.meet(ends, new_arena)
    }

    fn wait(&mut self, tuple: Tuple, end: ShownEnd) {
        self.forget(&tuple);
        self.waiting.insert(tuple, end);
        if end.peer.is_none() {
            self.places.insert((end.client, end.cookie), tuple);
        }
        let shown = self.shown.entry(end.client).or_default();
        shown.push_back(tuple);
        let oldest = if shown.len() > WAITING { shown.pop_front() } else { None };
        if let Some(oldest) = oldest.filter(|oldest| *oldest != tuple && self.is_of(oldest, end.client)) {
            self.forget(&oldest);
        }
    }

    fn is_of(&self, tuple: &Tuple, client: Client) -> bool {
        self.waiting.get(tuple).is_some_and(|end| end.client == client)
    }

    /// Nobody waits there any more.
    fn forget(&mut self, tuple: &Tuple) {
        if let Some(end) = self.waiting.remove(tuple) {
            self.places.remove(&(end.client, end.cookie));
        }
    }

    /// An end is closed that has met nobody: the next connection between the same ports must not meet it.
    pub fn withdraw(&mut self, client: Client, cookie: u64) {
        if let Some(tuple) = self.places.get(&(client, cookie)).copied() {
            self.forget(&tuple);
        }
    }

    fn meet(&mut self, ends: [(ShownEnd, u16); 2], new_arena: impl FnOnce() -> Option<u64>) -> Option<Meeting> {
        let pair = ends.map(|(end, _)| end.client);
        let ports = ends.map(|(_, port)| port);
        let names = self.pairs.entry(pair).or_default();
        let room = names.iter().find_map(|name| {
            let arena = self.arenas.get_mut(name)?;
            arena.take(ports).map(|taken| (*name, taken))
        });
        let (name, (slot, generation)) = match room {
            Some(found) => found,
            None => {
                let name = new_arena()?;
                names.push(name);
                let arena = self.arenas.entry(name).or_insert_with(|| SharedArena::new(name, pair));
                (name, arena.take(ports)?)
            }
        };
        let arena = self.arenas.get_mut(&name)?;
        let new_to = arena.known.map(|known| !known);
        arena.known = [true; 2];
        let place = |side: usize| SlotSide { arena: name, slot, side: side as u32, generation };
        Some(Meeting { ends: [(ends[0].0, place(0)), (ends[1].0, place(1))], new_to })
    }

    /// This side has not got the arena after all: it comes again with the next meeting.
    pub fn forget_known(&mut self, arena: u64, side: usize) {
        if let Some(arena) = self.arenas.get_mut(&arena) {
            arena.known[side & 1] = false;
        }
    }

    pub fn release(&mut self, place: SlotSide) {
        if let Some(arena) = self.arenas.get_mut(&place.arena) {
            arena.release(place);
        }
    }

    /// A process is gone. Answers the arenas that are used no further, each with the other process.
    pub fn leave(&mut self, client: Client) -> Vec<(u64, Client)> {
        for tuple in self.shown.remove(&client).unwrap_or_default() {
            if self.is_of(&tuple, client) {
                self.forget(&tuple);
            }
        }
        let ended: Vec<[Client; 2]> = self.pairs.keys().filter(|pair| pair.contains(&client)).copied().collect();
        let mut retired = Vec::new();
        for pair in ended {
            let other = if pair[0] == client { pair[1] } else { pair[0] };
            for name in self.pairs.remove(&pair).unwrap_or_default() {
                self.arenas.remove(&name);
                retired.push((name, other));
            }
        }
        retired
    }

    /// Ends of this process that wait for their other end.
    pub fn waiting_of(&self, client: Client) -> usize {
        self.waiting.values().filter(|end| end.client == client).count()
    }

    pub fn arenas(&self) -> impl Iterator<Item = &SharedArena> {
        self.arenas.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(local: &str, remote: &str) -> Tuple {
        Tuple::new(7, local.parse().expect("an address"), remote.parse().expect("an address"))
    }

    fn end(client: Client, cookie: u64) -> ShownEnd {
        ShownEnd { client, cookie, peer: None }
    }

    const A: &str = "127.0.0.1:1000";
    const B: &str = "127.0.0.1:2000";

    #[test]
    fn both_ends_meet_and_know_their_sides() {
        let mut table = RendezvousTable::default();
        assert_eq!(table.show(tuple(A, B), end(2, 20), || panic!("too early")), None);
        let meeting = table.show(tuple(B, A), end(1, 10), || Some(99)).expect("both are known");
        let place = |side| SlotSide { arena: 99, slot: 0, side, generation: 1 };
        assert_eq!(meeting.ends, [(end(1, 10), place(0)), (end(2, 20), place(1))]);
        assert_eq!(meeting.new_to, [true, true]);
        assert_eq!(table.arenas().next().expect("one").connections().collect::<Vec<_>>(), [(0, [2000, 1000])]);
    }

    #[test]
    fn mapped_addresses_are_the_same() {
        let mut table = RendezvousTable::default();
        table.show(tuple("[::ffff:127.0.0.1]:1000", "[::ffff:127.0.0.1]:2000"), end(1, 1), || None);
        assert!(table.show(tuple(B, A), end(2, 2), || Some(5)).is_some());
    }

    #[test]
    fn other_namespaces_and_other_ports_do_not_meet() {
        let mut table = RendezvousTable::default();
        table.show(tuple(A, B), end(1, 1), || None);
        assert_eq!(table.show(Tuple { namespace: 8, ..tuple(B, A) }, end(2, 2), || Some(5)), None);
        assert_eq!(table.show(tuple(B, "127.0.0.1:1001"), end(2, 3), || Some(5)), None);
        assert_eq!(table.show(tuple(A, A), end(2, 4), || Some(5)), None);
        assert_eq!(table.show(tuple(A, A), end(2, 4), || Some(5)), None);
    }

    #[test]
    fn datagram_sockets_meet_their_own_user_s_and_no_connections() {
        let mut table = RendezvousTable::default();
        let pair = |local: &str, remote: &str, user| {
            Tuple::of_datagrams(7, local.parse().expect("an address"), remote.parse().expect("an address"), user)
        };
        table.show(pair(A, B, 1000), end(1, 1), || None);
        assert_eq!(table.show(tuple(B, A), end(2, 2), || Some(5)), None);
        assert_eq!(table.show(pair(B, A, 1001), end(2, 3), || Some(5)), None);
        assert!(table.show(pair(B, A, 1000), end(2, 4), || Some(5)).is_some());
    }

    fn connect(table: &mut RendezvousTable, port: u16) -> Meeting {
        let here = format!("127.0.0.1:{port}");
        table.show(tuple(&here, B), end(1, u64::from(port)), || None);
        table.show(tuple(B, &here), end(2, u64::from(port)), || Some(u64::from(port))).expect("both are known")
    }

    #[test]
    fn a_slot_is_used_again_only_after_both_sides_left_it() {
        let mut table = RendezvousTable::default();
        let first = connect(&mut table, 1);
        let second = connect(&mut table, 2);
        assert_eq!((second.ends[0].1.slot, second.new_to), (1, [false, false]));
        table.release(first.ends[0].1);
        assert_eq!(connect(&mut table, 3).ends[0].1.slot, 2);
        table.release(SlotSide { generation: 2, ..first.ends[1].1 });
        assert_eq!(connect(&mut table, 4).ends[0].1.slot, 3, "another generation's word");
        table.release(first.ends[1].1);
        let again = connect(&mut table, 5).ends[0].1;
        assert_eq!((again.slot, again.generation), (0, 2));
    }

    #[test]
    fn a_full_arena_gets_a_second_one() {
        let mut table = RendezvousTable::default();
        (0..SLOTS as u16).for_each(|port| assert_eq!(connect(&mut table, port + 1).ends[0].1.arena, 1));
        let next = connect(&mut table, 5000);
        assert_eq!((next.ends[1].1.arena, next.ends[1].1.slot, next.new_to), (5000, 0, [true, true]));
    }

    #[test]
    fn who_leaves_takes_its_offers_and_arenas_along() {
        let mut table = RendezvousTable::default();
        connect(&mut table, 1);
        table.show(tuple(A, B), end(1, 9), || None);
        assert_eq!(table.leave(1), [(1, 2)]);
        assert_eq!(table.show(tuple(B, A), end(2, 9), || Some(5)), None);
        assert_eq!((table.waiting_of(1), table.waiting_of(2), table.arenas().count()), (0, 1, 0));
        assert_eq!(table.places.len(), 1);
    }

    #[test]
    fn a_closed_end_does_not_meet_the_next_connection_between_its_ports() {
        let mut table = RendezvousTable::default();
        table.show(tuple(A, B), end(1, 10), || None);
        table.withdraw(2, 10);
        assert_eq!(table.waiting_of(1), 1, "another process's");
        table.withdraw(1, 10);
        assert_eq!(table.waiting_of(1), 0);
        assert_eq!(table.show(tuple(B, A), end(2, 21), || panic!("it is closed")), None);
        let meeting = table.show(tuple(A, B), end(1, 11), || Some(5)).expect("both are known");
        assert_eq!([meeting.ends[0].0, meeting.ends[1].0], [end(1, 11), end(2, 21)]);
        table.withdraw(2, 21);
        assert!(table.places.is_empty());
    }

    #[test]
    fn the_oldest_offers_are_forgotten() {
        let mut table = RendezvousTable::default();
        for port in 3000..=3000 + WAITING as u16 {
            table.show(tuple(&format!("127.0.0.1:{port}"), B), end(1, 1), || None);
        }
        assert_eq!(table.waiting_of(1), WAITING);
        assert_eq!(table.show(tuple(B, "127.0.0.1:3000"), end(2, 2), || Some(5)), None, "forgotten");
        assert!(table.show(tuple(B, "127.0.0.1:3001"), end(2, 2), || Some(5)).is_some());
    }
}
