//! What is shown of made-up clusters, and what keys do.

use super::state::{HostOrder, TopAct, TopPanel, TopState, ranges, span};
use super::{draw, text};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use weft_requests::{ClusterView, Demand, made};

fn state(hosts: usize) -> TopState {
    let mut state = TopState::default();
    state.handle_view(made::view(hosts, 0));
    state
}

fn screen(state: &TopState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw::draw(frame, state)).expect("drawn");
    terminal.backend().to_string()
}

fn keys(state: &mut TopState, keys: &str) -> Option<TopAct> {
    keys.chars().map(|key| state.handle_key(KeyCode::Char(key))).last().flatten()
}

#[test]
fn a_screen_has_hosts_partitions_queue_jobs_and_ranks() {
    let screen = screen(&state(12), 140, 50);
    for part in ["Hosts, as in the database", "node08", "dead", "drained", "Partitions", "batch", "Queue", "node01.140"]
    {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    for part in ["Jobs, the longest first", "blocked", "Ranks of ", "computes", "q quit"] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
}

#[test]
fn small_and_large_screens_and_clusters_are_drawn() {
    for hosts in [1, 12, 256] {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            screen(&state(hosts), width, height);
        }
    }
    screen(&TopState::default(), 80, 24);
    let mut empty = TopState::default();
    empty.handle_view(ClusterView::default());
    screen(&empty, 80, 24);
    for key in ["k", "d", "s", "K"] {
        assert_eq!(keys(&mut empty, key), None);
    }
}

#[test]
fn what_changes_something_asks_before() {
    let mut state = state(12);
    assert_eq!(keys(&mut state, "d"), None);
    assert!(screen(&state, 140, 50).contains("drain node01: nothing new is placed there"));
    assert_eq!(keys(&mut state, "n"), None);
    assert_eq!(state.doubt, None);
    let drain = Demand::Drain { member: "node01".to_owned(), slots: Some(0) };
    assert_eq!(keys(&mut state, "dy"), Some(TopAct::Ask(drain)));
    state.host = Some("node06".to_owned());
    let again = Demand::Drain { member: "node06".to_owned(), slots: None };
    assert_eq!(keys(&mut state, "dy"), Some(TopAct::Ask(again)));
    let job = state.jobs()[0].job.clone();
    assert_eq!(keys(&mut state, "ky"), Some(TopAct::Ask(Demand::Signal { job: job.clone(), signal: 15 })));
    assert_eq!(keys(&mut state, "Ky"), Some(TopAct::Ask(Demand::Signal { job, signal: 9 })));
    assert_eq!(keys(&mut state, "kq"), None, "an answer to the question, and no wish to leave");
    assert_eq!(keys(&mut state, "q"), Some(TopAct::Quit));
}

#[test]
fn what_is_chosen_stays_chosen_when_lists_move() {
    let mut state = state(12);
    for _ in 0..3 {
        state.handle_key(KeyCode::Down);
    }
    assert_eq!(state.host.as_deref(), Some("node04"));
    keys(&mut state, "s");
    assert_eq!((state.host_order, state.host.as_deref()), (HostOrder::Load, Some("node04")));
    let load = |at: usize| state.hosts()[at].load.as_ref().map_or(-1.0, |load| load.load);
    assert!((1..12).all(|at| load(at - 1) >= load(at)));
    state.handle_key(KeyCode::End);
    assert_eq!(state.place_of_host(), Some(11));
    state.handle_key(KeyCode::Home);
    state.handle_key(KeyCode::Up);
    assert_eq!(state.place_of_host(), Some(0));
    state.handle_key(KeyCode::Tab);
    state.handle_key(KeyCode::Down);
    assert_eq!((state.panel, state.place_of_job()), (TopPanel::Jobs, Some(1)));
    let mut fewer = made::view(12, 5);
    fewer.jobs.remove(1);
    fewer.jobs.sort_by_key(|job| job.since);
    state.handle_view(fewer);
    assert!(state.place_of_job().is_some());
}

#[test]
fn a_pipe_gets_the_same_in_words() {
    let text = text::of(&made::view(12, 0));
    for part in ["cluster lab, version 42", "node08  dead", "its database has version 41", "queue: 4", "jobs: "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains(" computes, up to "), "{text}");
}

#[test]
fn ranges_and_times_are_short() {
    assert_eq!(ranges(&[7, 0, 1, 2, 3, 9, 8]), "0-3,7-9");
    assert_eq!((ranges(&[]), ranges(&[5])), (String::new(), "5".to_owned()));
    assert_eq!([5, 65, 3700, 90_000].map(span), ["5 s", "1 min", "1 h 1 min", "1 d 1 h"]);
}
