use super::*;
use weft_fabric::Segment;

/// A context that no one else uses.
const CONTEXT: u32 = 40;

struct Process {
    endpoint: Endpoint,
    groups: OrderedGroups,
    events: Vec<(GroupId, GroupEvent)>,
}

struct World(Vec<Option<Process>>);

impl World {
    fn new(size: u32) -> Self {
        let segment = Segment::create(size).expect("memory");
        let process = |me| {
            let mut endpoint = Endpoint::join_segment(segment.clone(), me).expect("a member");
            let groups = OrderedGroups::new(&mut endpoint, CONTEXT);
            Some(Process { endpoint, groups, events: Vec::new() })
        };
        Self((0..size).map(process).collect())
    }

    fn process(&mut self, at: usize) -> &mut Process {
        self.0[at].as_mut().expect("it lives")
    }

    fn join(&mut self, at: usize, name: &str) -> GroupId {
        let Process { endpoint, groups, .. } = self.process(at);
        groups.join(endpoint, name, GroupRules { window: 8, history: 32, ..USUAL_RULES }).expect("a name")
    }

    /// Moves all until `done`.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for pass in 0_u64..50_000_000 {
            for process in self.0.iter_mut().flatten() {
                let Process { endpoint, groups, events } = process;
                if !endpoint.progress() {
                    groups.idle(endpoint, pass % 64 == 0);
                }
                groups.advance(endpoint);
                for id in groups.all.iter().map(LiveGroup::id).collect::<Vec<_>>() {
                    while let Some(event) = groups.take_event(endpoint, id) {
                        events.push((id, event));
                    }
                }
            }
            if done(self) {
                return;
            }
        }
        panic!("it never came");
    }

    /// Waits until all who live see so many members.
    fn until_members(&mut self, ids: &[GroupId], count: usize) {
        self.until(|world| {
            let mut all = world.0.iter().zip(ids).filter_map(|(process, id)| Some((process.as_ref()?, id)));
            all.all(|(process, id)| process.groups.view(*id).is_some_and(|view| view.members.len() == count))
        });
    }

    fn send(&mut self, at: usize, id: GroupId, bytes: Vec<u8>) {
        let bytes: Arc<[u8]> = bytes.into();
        self.until(|world| {
            let Process { endpoint, groups, .. } = world.process(at);
            groups.try_send(endpoint, id, bytes.clone()).expect("a member")
        });
    }

    fn texts(&self, at: usize, id: GroupId) -> Vec<(usize, u8)> {
        let events = self.0[at].iter().flat_map(|process| &process.events);
        events
            .filter_map(|(of, event)| match event {
                GroupEvent::Message { message, .. } if *of == id => {
                    Some((message.bytes.len(), *message.bytes.first()?))
                }
                _ => None,
            })
            .collect()
    }
}

#[test]
fn all_deliver_messages_of_any_length_in_one_order() {
    let mut world = World::new(3);
    let ids: Vec<_> = (0..3).map(|at| world.join(at, "board")).collect();
    world.until_members(&ids, 3);
    let lengths = [8, 100_000, 1, 5000, 3_000_000, 20_000, 8, 8];
    for (at, length) in lengths.iter().cycle().take(40).enumerate() {
        world.send(at % 3, ids[at % 3], vec![at as u8; *length]);
    }
    world.until(|world| (0..3).all(|at| world.texts(at, ids[at]).len() == 40));
    let first = world.texts(0, ids[0]);
    assert!((1..3).all(|at| world.texts(at, ids[at]) == first));
    (0..3).for_each(|of| {
        let own: Vec<_> = first.iter().map(|(_, at)| *at).filter(|at| at % 3 == of).collect();
        assert!(own.is_sorted(), "in the order of sending: {own:?}");
    });
}

#[test]
fn who_leaves_and_comes_back_is_another_member() {
    let mut world = World::new(2);
    let ids = [world.join(0, "board"), world.join(1, "board")];
    world.until_members(&ids, 2);
    let Process { endpoint, groups, .. } = world.process(0);
    groups.leave(endpoint, ids[0]);
    world.until(|world| world.process(1).groups.view(ids[1]).is_some_and(|view| view.members.len() == 1));
    let again = world.join(0, "board");
    world.until_members(&[again, ids[1]], 2);
    world.send(0, again, vec![7]);
    world.until(|world| world.texts(1, ids[1]) == [(1, 7)] && world.texts(0, again) == [(1, 7)]);
    let Process { endpoint, groups, .. } = world.process(0);
    assert_eq!(groups.try_send(endpoint, ids[0], [1].as_slice().into()), Err(GroupError::Over));
    assert_eq!(groups.join(endpoint, "board", USUAL_RULES), Err(GroupError::Joined("board".to_owned())));
    assert_eq!(groups.join(endpoint, "", USUAL_RULES), Err(GroupError::Name(String::new())));
    let fault = groups.join(endpoint, &"x".repeat(300), USUAL_RULES).expect_err("it is too long").to_string();
    assert_eq!(fault, format!("a group's name has 1 to 255 bytes, not 300: '{}...'", "x".repeat(40)));
}

#[test]
fn the_sequencer_s_process_leaves_the_job_and_the_others_go_on() {
    let mut world = World::new(3);
    let ids: Vec<_> = (0..3).map(|at| world.join(at, "board")).collect();
    world.until_members(&ids, 3);
    let first = process_of(world.process(0).groups.view(ids[0]).expect("a view").members[0]).0 as usize;
    (0..20).for_each(|at| world.send((first + 1) % 3, ids[(first + 1) % 3], vec![at]));
    let Process { endpoint, mut groups, .. } = world.0[first].take().expect("it lives");
    let mut endpoint = endpoint;
    groups.withdraw(&mut endpoint);
    endpoint.leave();
    world.until_members(&ids, 2);
    let others: Vec<_> = (0..3).filter(|at| *at != first).collect();
    (20..40).for_each(|at| world.send(others[1], ids[others[1]], vec![at]));
    world.until(|world| others.iter().all(|at| world.texts(*at, ids[*at]).len() == 40));
    assert_eq!(world.texts(others[0], ids[others[0]]), world.texts(others[1], ids[others[1]]));
    // Names are known to who is left, too.
    let new = [world.join(others[0], "other"), world.join(others[1], "other")];
    world.until(|world| {
        (0..2).all(|at| world.process(others[at]).groups.view(new[at]).is_some_and(|view| view.members.len() == 2))
    });
}

#[test]
fn groups_that_are_over_are_forgotten_in_time() {
    let mut world = World::new(1);
    for _ in 0..2 * KEPT {
        let id = world.join(0, "board");
        world.until_members(&[id], 1);
        let Process { endpoint, groups, .. } = world.process(0);
        groups.leave(endpoint, id);
        world.until(|world| world.process(0).events.last() == Some(&(id, GroupEvent::Left)));
    }
    assert!(world.process(0).groups.all.len() <= KEPT + 2);
}

#[test]
fn a_name_is_free_when_all_its_members_have_left() {
    let mut world = World::new(3);
    let ids = [world.join(1, "board"), world.join(2, "board")];
    world.until(|world| {
        (0..2).all(|at| world.process(at + 1).groups.view(ids[at]).is_some_and(|view| view.members.len() == 2))
    });
    for (at, id) in ids.into_iter().enumerate() {
        let Process { endpoint, groups, .. } = world.process(at + 1);
        groups.leave(endpoint, id);
    }
    world.until(|world| (0..2).all(|at| world.process(at + 1).events.last() == Some(&(ids[at], GroupEvent::Left))));
    let again = world.join(0, "board");
    world.until(|world| world.process(0).groups.view(again).is_some_and(|view| view.members.len() == 1));
    // One that is left before it was found makes no name either.
    let id = world.join(1, "other");
    let Process { endpoint, groups, .. } = world.process(1);
    groups.leave(endpoint, id);
    let new = world.join(2, "other");
    world.until(|world| world.process(2).groups.view(new).is_some_and(|view| view.members.len() == 1));
}
