//! Every member sends messages, and writes which have been delivered, in their order:
//! `weft run -n 4 history 1000 8 DIR`.
//!
//! Its arguments: messages of each member, their bytes, and a folder, where each process writes a file of its rank: a
//! line for each message, with its place, its origin, and which of its origin's it is; the last is `end`. Once all are
//! members each process prints its number.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use weft_fabric::Endpoint;
use weft_group::{GroupCalls as _, GroupEvent, OrderedGroups, USUAL_RULES, process_of};
use weft_ports::{InterfaceName, Messenger};

static PORTS: Messenger<OrderedGroups> = Messenger::new();
const CONTEXT: u32 = 10;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [messages, bytes, folder] = &words[..] else { panic!("usage: history MESSAGES BYTES FOLDER") };
    let [messages, bytes] = [messages, bytes].map(|word| word.parse::<usize>().expect("a number"));
    let mut endpoint = Endpoint::join_as(InterfaceName::Native, &[]).expect("a job");
    let (me, size) = (endpoint.me().0, endpoint.world_size());
    let groups = OrderedGroups::new(&mut endpoint, CONTEXT);
    PORTS.open_beside(endpoint, groups, false);
    let group = PORTS.join_group("history", USUAL_RULES).expect("a name");
    let (mut sent, mut living) = (0, BTreeSet::new());
    let (mut began, mut ended) = (false, BTreeSet::new());
    let mut lines = String::new();
    while !began || !living.iter().all(|one| ended.contains(one)) {
        match PORTS.await_event("history", group) {
            GroupEvent::Message { sequence, message } => {
                let (origin, count) = (process_of(message.origin).0, message.bytes.len());
                let number = u64::from_le_bytes(*message.bytes.first_chunk().expect("a number"));
                assert!(count == bytes.max(8), "{count} bytes");
                writeln!(lines, "{sequence} {origin} {number}").expect("memory");
                if number as usize + 1 == messages {
                    ended.insert(origin);
                }
            }
            GroupEvent::View(view) => {
                living = view.members.iter().map(|member| process_of(*member).0).collect();
                // Who comes late misses what was before.
                if !began && view.members.len() == size as usize {
                    began = true;
                    println!("{}", std::process::id());
                }
            }
            GroupEvent::Left | GroupEvent::Excluded => panic!("taken for dead"),
        }
        // One more for each that has come, so that all send at the same time.
        while began && sent < messages && PORTS.with_both(|_, groups| groups.unplaced(group)) < 4 {
            let mut text = vec![me as u8; bytes.max(8)];
            text[..8].copy_from_slice(&(sent as u64).to_le_bytes());
            PORTS.send_to_group("history", group, Arc::from(text)).expect("a member");
            sent += 1;
        }
    }
    writeln!(lines, "end").expect("memory");
    std::fs::write(Path::new(folder).join(me.to_string()), lines).expect("a folder");
    PORTS.leave_group("history", group);
    PORTS.close_groups("history");
    PORTS.close();
}
