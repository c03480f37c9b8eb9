//! How long nothing is delivered when the sequencer dies: `weft run --keep-going -n 4 target/release/examples/gap`.
//!
//! All send for two seconds; after one the sequencer ends by SIGABRT, or with the argument `stop` by SIGSTOP.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_fabric::Endpoint;
use weft_group::{GroupCalls as _, GroupEvent, OrderedGroups, USUAL_RULES, process_of};
use weft_ports::{InterfaceName, Messenger};

static PORTS: Messenger<OrderedGroups> = Messenger::new();

fn main() {
    let stops = std::env::args().nth(1).is_some_and(|word| word == "stop");
    let mut endpoint = Endpoint::join_as(InterfaceName::Native, &[]).expect("a job");
    let (me, size) = (endpoint.me(), endpoint.world_size() as usize);
    let groups = OrderedGroups::new(&mut endpoint, 10);
    PORTS.open_beside(endpoint, groups, false);
    let group = PORTS.join_group("gap", USUAL_RULES).expect("a name");
    let (mut begun, mut last, mut longest) = (None, Instant::now(), Duration::ZERO);
    let span = Duration::from_secs(if stops { 6 } else { 2 });
    let bytes: Arc<[u8]> = [0; 8].into();
    while begun.is_none_or(|begun: Instant| begun.elapsed() < span) {
        if begun.is_some() && PORTS.with_both(|_, groups| groups.unplaced(group)) < 8 {
            PORTS.send_to_group("gap", group, bytes.clone()).expect("a member");
        }
        match PORTS.await_event("gap", group) {
            GroupEvent::View(view) if begun.is_none() && view.members.len() == size => {
                (begun, last) = (Some(Instant::now()), Instant::now());
            }
            GroupEvent::Message { .. } => {
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            _ => {}
        }
        let first = PORTS.with_both(|_, groups| groups.view(group).and_then(|view| view.members.first().copied()));
        let dies = begun.is_some_and(|begun| begun.elapsed() > Duration::from_secs(1));
        let all = PORTS.with_both(|_, groups| groups.view(group).is_some_and(|view| view.members.len() == size));
        if dies && all && first.is_some_and(|first| process_of(first) == me) {
            if !stops {
                std::process::abort();
            }
            let _ = Command::new("kill").args(["-STOP", &std::process::id().to_string()]).status();
        }
    }
    println!("process {}: the longest pause was {:.1} ms", me.0, longest.as_secs_f64() * 1e3);
    PORTS.close_groups("gap");
    PORTS.close();
}
