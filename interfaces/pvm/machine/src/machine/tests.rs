//! Whole stories, without a process.

use super::VirtualMachine;
use crate::code::{self, notify, spawn};
use crate::frame::*;
use crate::tid;
use std::collections::HashMap;

/// A machine with clients, and what each was told.
struct World {
    machine: VirtualMachine,
    told: HashMap<(u32, u32), Vec<Told>>,
    orders: Vec<(u32, Order)>,
}

impl World {
    fn new() -> Self {
        Self { machine: VirtualMachine::new("first", false, ""), told: HashMap::new(), orders: Vec::new() }
    }

    fn see(&mut self, host: u32, seen: Seen) {
        self.machine.handle_seen(host, seen);
        while let Some((host, order)) = self.machine.poll_order() {
            match order {
                Order::Tell { client, bytes } => {
                    let told = read(&bytes.0[4..]).expect("a frame");
                    self.told.entry((host, client)).or_default().push(told);
                }
                other => self.orders.push((host, other)),
            }
        }
    }

    fn ask(&mut self, client: u32, request: &Request) -> Option<Answer> {
        let bytes = ByteString(framed(request)[4..].to_vec());
        self.see(1, Seen::Asked { client, bytes });
        self.answer(client)
    }

    fn answer(&mut self, client: u32) -> Option<Answer> {
        let told = self.told.get_mut(&(1, client))?;
        let place = told.iter().position(|told| matches!(told, Told::Answer { .. }))?;
        match told.remove(place) {
            Told::Answer { answer } => Some(answer),
            Told::Event { .. } => None,
        }
    }

    fn events(&mut self, client: u32) -> Vec<Event> {
        let told = self.told.remove(&(1, client)).unwrap_or_default();
        told.into_iter().filter_map(|told| if let Told::Event { event } = told { Some(event) } else { None }).collect()
    }

    fn code(&mut self, client: u32, request: &Request) -> i32 {
        match self.ask(client, request) {
            Some(Answer::Code { code }) => code,
            other => panic!("{request:?}: {other:?}"),
        }
    }

    fn enrol_as(&mut self, client: u32, who: Introduction) -> Identity {
        match self.ask(client, &Request::Enrol { who }) {
            Some(Answer::Enrolled { identity }) => identity,
            other => panic!("{other:?}"),
        }
    }

    fn enrol(&mut self, client: u32) -> i32 {
        let who = Introduction { pid: 100 + client as i32, card: vec![u64::from(client)], ..Introduction::default() };
        self.enrol_as(client, who).tid
    }

    fn spawn(&mut self, client: u32, count: u32, flags: i32, place: &str) -> Option<Answer> {
        let program = Program { file: "task".into(), flags, ..Program::default() };
        let prints_to = Destination::default();
        self.ask(client, &Request::Spawn { program, place: place.into(), count, prints_to, context: 5 })
    }

    fn started(&mut self) -> Vec<(u32, i32)> {
        let orders = std::mem::take(&mut self.orders);
        let starts = orders.iter().filter_map(|(host, order)| match order {
            Order::Start { tid, .. } => Some((*host, *tid)),
            _ => None,
        });
        starts.collect()
    }
}

fn exit_notice(of: i32) -> Event {
    let bytes = ByteString(of.to_be_bytes().to_vec());
    Event::Message { context: 3, content: Content { encoding: 0, source: tid::daemon(1), tag: 9, bytes } }
}

#[test]
fn tasks_are_numbered_and_meet() {
    let mut world = World::new();
    let (one, other) = (world.enrol(1), world.enrol(2));
    assert_eq!((one, other), (0x40001, 0x40002));
    assert_eq!(world.ask(1, &Request::Meet { tid: other }), Some(Answer::Card { code: 0, card: vec![2] }));
    assert_eq!(world.events(2), [Event::Met { tid: one, card: vec![1] }]);
    let nobody = Answer::Card { code: code::NO_TASK, card: vec![] };
    assert_eq!(world.ask(1, &Request::Meet { tid: 0x40077 }), Some(nobody));
    world.code(1, &Request::Leave);
    assert_eq!(world.code(2, &Request::TaskStatus { tid: one }), code::NO_TASK);
    assert_eq!(world.enrol(1), 0x40003, "who comes back is another task");
}

#[test]
fn who_was_spawned_knows_its_parent_and_siblings_and_is_awaited() {
    let mut world = World::new();
    let parent = world.enrol(1);
    assert_eq!(world.spawn(1, 2, 0, ""), None, "nothing has started yet");
    let started = world.started();
    let tids: Vec<i32> = started.iter().map(|(_, tid)| *tid).collect();
    // One is faster than the word of its start.
    let who = Introduction { pid: 7, started_as: tids[0], card: vec![70], ..Introduction::default() };
    assert_eq!(world.ask(5, &Request::Enrol { who }), None);
    world.see(1, Seen::Started { tid: tids[0], pid: 7 });
    world.see(1, Seen::Started { tid: tids[1], pid: 8 });
    assert_eq!(world.answer(1), Some(Answer::Tids { code: 2, tids: tids.clone() }));
    let Some(Answer::Enrolled { identity }) = world.answer(5) else { panic!("it is enrolled now") };
    assert_eq!((identity.tid, identity.parent, identity.context), (tids[0], parent, 5));
    assert_eq!(identity.siblings, tids);
    // The other one is not there yet.
    assert_eq!(world.ask(1, &Request::Meet { tid: tids[1] }), Some(Answer::Card { code: 0, card: vec![] }));
    let who = Introduction { pid: 8, started_as: tids[1], card: vec![80], ..Introduction::default() };
    world.enrol_as(6, who);
    assert_eq!(world.events(1), [Event::Met { tid: tids[1], card: vec![80] }]);
    assert_eq!(world.events(6), [Event::Met { tid: parent, card: vec![1] }]);
}

#[test]
fn what_cannot_be_started_is_a_code_among_the_tids() {
    let mut world = World::new();
    world.enrol(1);
    world.spawn(1, 2, 0, "");
    let started = world.started();
    world.see(1, Seen::Started { tid: started[0].1, pid: code::NO_FILE });
    world.see(1, Seen::Started { tid: started[1].1, pid: 9 });
    let tids = vec![code::NO_FILE, started[1].1];
    assert_eq!(world.answer(1), Some(Answer::Tids { code: 1, tids }));
    let nowhere = Answer::Tids { code: 0, tids: vec![code::NO_HOST] };
    assert_eq!(world.spawn(1, 1, spawn::HOST, "elsewhere"), Some(nowhere));
}

#[test]
fn an_end_is_told_once_to_who_has_asked_however_it_comes() {
    let mut world = World::new();
    world.enrol(1);
    let other = world.enrol(2);
    let ask = |what, of| Request::Notify { what, context: 3, tag: 9, count: 1, of };
    assert_eq!(world.code(1, &ask(notify::TASK_EXIT, vec![other])), code::OK);
    assert_eq!(world.events(1), []);
    world.see(1, Seen::ClientGone { client: 2 });
    assert_eq!(world.events(1), [exit_notice(other)]);
    // Of one that is gone already it comes at once, and of one that is cancelled as well.
    world.code(1, &ask(notify::TASK_EXIT, vec![other]));
    assert_eq!(world.events(1), [exit_notice(other)]);
    let third = world.enrol(3);
    world.code(1, &ask(notify::TASK_EXIT, vec![third]));
    world.code(1, &ask(notify::TASK_EXIT | notify::CANCEL, vec![third]));
    assert_eq!(world.events(1), [exit_notice(third)]);
    world.see(1, Seen::ClientGone { client: 3 });
    assert_eq!(world.events(1), []);
}

#[test]
fn ranks_of_a_job_are_siblings_without_a_parent() {
    let mut world = World::new();
    let rank = |rank| Introduction { pid: 5, job: 77, rank, size: 3, card: vec![1], ..Introduction::default() };
    let last = world.enrol_as(1, rank(2));
    let first = world.enrol_as(2, rank(0));
    assert_eq!((first.parent, first.siblings.len()), (0, 3));
    assert_eq!(first.siblings, last.siblings);
    assert_eq!((first.siblings[0], first.siblings[2]), (first.tid, last.tid));
}

/// The second rank of each never comes.
#[test]
fn jobs_that_are_over_are_forgotten() {
    let mut world = World::new();
    for job in 1..200 {
        let who = Introduction { pid: 5, job, rank: 0, size: 2, ..Introduction::default() };
        let identity = world.enrol_as(job as u32, who);
        assert_eq!(identity.siblings.len(), 2);
        world.see(1, Seen::ClientGone { client: job as u32 });
    }
    assert!(world.machine.tasks.count() < 50, "{}", world.machine.tasks.count());
}

#[test]
fn a_rank_shows_its_card_when_somebody_asks() {
    let mut world = World::new();
    let rank = Introduction { pid: 5, job: 77, rank: 0, size: 2, ..Introduction::default() };
    let rank = world.enrol_as(1, rank).tid;
    let other = world.enrol(2);
    assert_eq!(world.ask(2, &Request::Meet { tid: rank }), Some(Answer::Card { code: 0, card: vec![] }));
    assert_eq!(world.events(1), [Event::WantCard { is_wide: false }]);
    assert_eq!(world.ask(1, &Request::ShowCard { card: vec![9], is_wide: false }), None);
    assert_eq!(world.events(2), [Event::Met { tid: rank, card: vec![9] }]);
    assert_eq!(world.events(1), [Event::Met { tid: other, card: vec![2] }]);
}

#[test]
fn barriers_wait_for_all_and_refuse_another_count() {
    let mut world = World::new();
    let name = || ByteString::from("group");
    for client in 1..=3 {
        world.enrol(client);
        assert_eq!(world.code(client, &Request::JoinGroup { name: name() }), client as i32 - 1);
    }
    assert_eq!(world.code(1, &Request::JoinGroup { name: name() }), code::DUP_GROUP);
    let barrier = |count| Request::Barrier { name: name(), count };
    assert_eq!(world.ask(1, &barrier(-1)), None);
    assert_eq!(world.ask(2, &barrier(2)), Some(Answer::Code { code: code::MISMATCH }));
    assert_eq!(world.ask(2, &barrier(3)), None);
    assert_eq!(world.ask(3, &barrier(-1)), Some(Answer::Code { code: 0 }));
    assert_eq!((world.answer(1), world.answer(2)), (Some(Answer::Code { code: 0 }), Some(Answer::Code { code: 0 })));
    // The lowest number that is free is the next one's.
    assert_eq!(world.code(2, &Request::LeaveGroup { name: name() }), code::OK);
    world.enrol(4);
    assert_eq!(world.code(4, &Request::JoinGroup { name: name() }), 1);
}

/// Three ranks of a job in a group, whose first has offered memory, after their first barrier.
fn met() -> (World, Request, Vec<i32>) {
    let mut world = World::new();
    let (name, barrier) = (|| ByteString::from("group"), Request::Barrier { name: "group".into(), count: -1 });
    let mut tids = Vec::new();
    for rank in 0..3 {
        let who = Introduction { pid: 100, job: 9, rank, size: 3, ..Introduction::default() };
        tids.push(world.enrol_as(rank + 1, who).tid);
        assert_eq!(world.code(rank + 1, &Request::JoinGroup { name: name() }), rank as i32);
    }
    assert_eq!(world.ask(1, &Request::OfferBlock { block: 4 }), None);
    (1..=3).for_each(|client| assert_eq!(world.ask(client, &barrier), (client == 3).then_some(OVER)));
    for client in 1..=3 {
        let meeting = Event::MeetAt { name: name(), number: 1, block: 4, place: 0, tids: tids.clone() };
        // Before the answer, so that it is known when that is there.
        let told = world.told[&(1, client)].first();
        assert!(matches!(told, Some(Told::Event { event }) if *event == meeting), "{told:?}");
        assert!(client == 3 || world.answer(client) == Some(OVER));
        world.events(client);
    }
    (world, barrier, tids)
}

const OVER: Answer = Answer::Code { code: code::OK };
const ELSEWHERE: Answer = Answer::Code { code: code::ELSEWHERE };

#[test]
fn ranks_that_share_memory_meet_there_until_their_group_changes() {
    let (mut world, barrier, _) = met();
    assert_eq!(world.ask(2, &barrier), Some(ELSEWHERE), "it has been told");
    world.enrol(4);
    assert_eq!(world.code(4, &Request::JoinGroup { name: "group".into() }), 3);
    for client in 1..=3 {
        assert_eq!(world.events(client), [Event::MeetNoMore { number: 1 }]);
        assert_eq!(world.ask(client, &Request::LeftMeeting { number: 1 }), None);
    }
    // One of them is no rank.
    for client in 1..=4 {
        assert_eq!(world.ask(client, &barrier), (client == 4).then_some(OVER));
    }
    (1..=3).for_each(|client| assert_eq!(world.answer(client), Some(OVER)));
    assert_eq!(world.code(4, &Request::LeaveGroup { name: "group".into() }), code::OK);
    (1..=3).for_each(|client| assert_eq!(world.ask(client, &barrier), (client == 3).then_some(OVER)));
    let again = world.events(1);
    assert!(matches!(again[..], [Event::MeetAt { number: 2, place: 0, .. }]), "{again:?}");
}

#[test]
fn where_one_has_died_nobody_meets_again() {
    let (mut world, barrier, tids) = met();
    world.see(1, Seen::ClientGone { client: 2 });
    for client in [1, 3] {
        assert_eq!(world.events(client), [Event::MeetNoMore { number: 1 }]);
        assert_eq!(world.ask(client, &Request::LeftMeeting { number: 1 }), None);
        assert_eq!(world.ask(client, &barrier), (client == 3).then_some(OVER));
    }
    let (again, left) = (world.events(3), vec![tids[0], tids[2]]);
    let meeting = Event::MeetAt { name: "group".into(), number: 2, block: 4, place: 1, tids: left };
    assert_eq!(again, [meeting]);
}

/// A rank of a job of three, of whom the last one is on the second host.
fn rank_of_two_hosts(rank: u32) -> Request {
    let hosts = vec!["first".into(), "second".into()];
    let who = Introduction { pid: 100, job: 9, rank, size: 3, hosts, places: vec![0, 0, 1], ..Introduction::default() };
    Request::Enrol { who }
}

#[test]
fn a_job_on_several_hosts_waits_until_all_are_in_the_machine() {
    let mut world = World::new();
    let bytes = |rank| ByteString(framed(&rank_of_two_hosts(rank))[4..].to_vec());
    world.see(2, Seen::Asked { client: 1, bytes: bytes(2) });
    assert_eq!(world.told.remove(&(2, 1)), Some(vec![Told::Answer { answer: Answer::Code { code: code::NO_HOST } }]));
    assert_eq!((world.ask(1, &rank_of_two_hosts(0)), world.ask(2, &rank_of_two_hosts(1))), (None, None));
    assert_eq!(world.orders, [(1, Order::AddHost { number: 2, name: "second".into() })]);
    world.see(1, Seen::HostUp { number: 2, name: String::new(), architecture: "LINUX64".to_owned() });
    world.see(2, Seen::Asked { client: 2, bytes: bytes(2) });
    let siblings = vec![tid::task(1, 1), tid::task(1, 2), tid::task(2, 1)];
    for (place, client) in [(0, (1, 1)), (1, (1, 2)), (2, (2, 2))] {
        let Some([Told::Answer { answer: Answer::Enrolled { identity } }]) =
            world.told.get(&client).map(|all| &all[..])
        else {
            panic!("{:?}", world.told)
        };
        assert_eq!((identity.tid, &identity.siblings), (siblings[place], &siblings));
    }
}

#[test]
fn a_job_of_which_a_host_cannot_be_added_is_refused() {
    let mut world = World::new();
    assert_eq!(world.ask(1, &rank_of_two_hosts(0)), None);
    world.see(1, Seen::HostDown { number: 2, code: code::CANT_START });
    assert_eq!(world.answer(1), Some(Answer::Code { code: code::CANT_START }));
    // Whoever comes then tries it again, and one that is gone is not waited for.
    assert_eq!(world.ask(2, &rank_of_two_hosts(1)), None);
    world.see(1, Seen::ClientGone { client: 2 });
    world.see(1, Seen::HostUp { number: 2, name: String::new(), architecture: "LINUX64".to_owned() });
    assert_eq!(world.machine.tasks.count(), 0);
}

#[test]
fn the_mailbox_keeps_what_is_to_stay_and_wakes_who_waits() {
    let mut world = World::new();
    (1..=2).for_each(|client| _ = world.enrol(client));
    let content = Content { encoding: 1, source: 0, tag: 0, bytes: ByteString(vec![1, 2]) };
    let put = |flags| Request::Put { name: "n".into(), index: -1, flags, content: content.clone() };
    let get = |flags| Request::Get { name: "n".into(), index: 0, flags };
    assert_eq!(world.ask(2, &get(code::mailbox::WAIT)), None);
    assert_eq!(world.code(1, &put(code::mailbox::PERSISTENT)), 0);
    assert_eq!(world.answer(2), Some(Answer::Content { code: 0, content: content.clone() }));
    assert_eq!(world.code(2, &put(0)), code::DENIED);
    assert_eq!(world.code(2, &put(code::mailbox::MULTI_INSTANCE)), 1);
    assert_eq!(world.code(1, &Request::Delete { name: "n".into(), index: 1 }), code::DENIED);
    world.see(1, Seen::ClientGone { client: 1 });
    let Some(Answer::Names { names }) = world.ask(2, &Request::Names { pattern: "*".into() }) else { panic!() };
    assert_eq!((names[0].indices.clone(), names[0].owners.clone()), (vec![0, 1], vec![0, 0x40002]));
}

#[test]
fn a_host_comes_and_goes_with_its_tasks() {
    let mut world = World::new();
    world.enrol(1);
    let ask = Request::Notify { what: notify::HOST_ADD, context: 3, tag: 9, count: -1, of: vec![] };
    world.code(1, &ask);
    let names = vec!["second".into(), "first".into()];
    assert_eq!(world.ask(1, &Request::AddHosts { names }), None);
    world.see(1, Seen::HostUp { number: 2, name: String::new(), architecture: "LINUX64".to_owned() });
    let Some(Answer::Added { hosts }) = world.answer(1) else { panic!("they are added") };
    assert_eq!((hosts[0].tid, hosts[1].tid), (0x80000, code::DUP_HOST));
    assert_eq!(world.events(1).len(), 1);
    world.orders.clear();
    world.spawn(1, 2, 0, "");
    let started = world.started();
    assert_eq!(started.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [1, 2]);
    world.see(1, Seen::Started { tid: started[0].1, pid: 5 });
    world.see(2, Seen::Started { tid: started[1].1, pid: 5 });
    let far = started[1].1;
    assert_eq!(world.answer(1), Some(Answer::Tids { code: 2, tids: vec![started[0].1, far] }));
    world.code(1, &Request::Notify { what: notify::TASK_EXIT, context: 3, tag: 9, count: 1, of: vec![far] });
    world.see(1, Seen::HostDown { number: 2, code: code::HOST_FAIL });
    assert_eq!(world.events(1), [exit_notice(far)]);
    assert_eq!(world.code(1, &Request::TaskStatus { tid: far }), code::NO_TASK);
}

/// A card may lead there on its own host alone.
#[test]
fn tasks_of_two_hosts_meet_by_cards_that_are_good_on_both() {
    let mut world = World::new();
    let near = world.enrol(1);
    world.ask(1, &Request::AddHosts { names: vec!["second".into()] });
    world.see(1, Seen::HostUp { number: 2, name: String::new(), architecture: "LINUX64".to_owned() });
    world.answer(1);
    let say = |world: &mut World, request: &Request| {
        world.see(2, Seen::Asked { client: 1, bytes: ByteString(framed(request)[4..].to_vec()) });
        world.told.remove(&(2, 1)).unwrap_or_default()
    };
    let who = Introduction { pid: 7, card: vec![20], ..Introduction::default() };
    let told = say(&mut world, &Request::Enrol { who });
    let [Told::Answer { answer: Answer::Enrolled { identity } }] = &told[..] else { panic!("{told:?}") };
    assert!(identity.is_wide);
    let far = identity.tid;
    // The far one has not shown its card yet when it is asked for.
    assert_eq!(world.ask(1, &Request::ShowCard { card: vec![11], is_wide: true }), None);
    assert_eq!(world.ask(1, &Request::Meet { tid: far }), Some(Answer::Card { code: 0, card: vec![] }));
    assert_eq!(world.told.remove(&(2, 1)), Some(vec![Told::Event { event: Event::WantCard { is_wide: true } }]));
    let told = say(&mut world, &Request::ShowCard { card: vec![21], is_wide: true });
    assert_eq!(told, [Told::Event { event: Event::Met { tid: near, card: vec![11] } }]);
    assert_eq!(world.events(1), [Event::Met { tid: far, card: vec![21] }]);
    // One that has come before there were several hosts is asked.
    let other = world.enrol(3);
    world.events(3);
    let told = say(&mut world, &Request::Meet { tid: other });
    assert_eq!(told, [Told::Answer { answer: Answer::Card { code: 0, card: vec![] } }]);
    assert_eq!(world.events(3), [Event::WantCard { is_wide: true }]);
    assert_eq!(world.ask(3, &Request::ShowCard { card: vec![31], is_wide: true }), None);
    assert_eq!(world.events(3), [Event::Met { tid: far, card: vec![21] }]);
}

#[test]
fn nonsense_ends_its_client_and_nothing_else() {
    let mut world = World::new();
    let one = world.enrol(1);
    world.enrol(2);
    world.see(1, Seen::Asked { client: 1, bytes: ByteString(vec![99, 1, 2]) });
    assert!(world.orders.contains(&(1, Order::Close { client: 1 })));
    assert_eq!(world.code(2, &Request::TaskStatus { tid: one }), code::NO_TASK);
    assert!(!world.machine.is_idle());
    world.see(1, Seen::ClientGone { client: 2 });
    assert!(world.machine.is_idle());
}

/// A machine that stays may be older than a task's library. Both sides of this must be the same in all versions.
#[test]
fn who_speaks_another_version_is_told_so_and_let_go() {
    let mut world = World::new();
    assert_eq!(world.ask(1, &Request::Speak { version: VERSION }), None);
    world.enrol(1);
    assert_eq!(world.code(2, &Request::Speak { version: VERSION + 1 }), code::OTHER_VERSION);
    assert!(world.orders.contains(&(1, Order::Close { client: 2 })), "{:?}", world.orders);
    assert_eq!(framed(&Request::Speak { version: 7 }), [5, 0, 0, 0, 0, 7, 0, 0, 0]);
    let told = Told::Answer { answer: Answer::Code { code: code::OTHER_VERSION } };
    assert_eq!(framed(&told), [6, 0, 0, 0, 1, 2, 156, 255, 255, 255]);
}
