//! `weft top`: the cluster on a terminal, as it is from second to second.
//!
//! `state` has what is chosen and what keys do, `draw` what it looks like, `text` the same once for a pipe. All three
//! know no terminal and no daemon, and are tested without them. A thread asks the daemon, so that keys are heard while
//! it is silent, which is when people look.

mod draw;
mod state;
mod text;

use anyhow::{Context, Result, bail};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use state::{TopAct, TopState};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use weft_requests::client::{ClusterClient, refusal};
use weft_requests::{ClusterReply, ClusterView, Demand};

/// Options of `weft top`.
#[derive(clap::Args)]
pub struct TopArguments {
    /// Write what there is to see once, as text
    #[arg(long)]
    once: bool,
    /// Write it once, as JSON
    #[arg(long)]
    json: bool,
}

pub const LONG_ABOUT: &str = "\
Show the cluster from second to second: hosts with load and slots, partitions, the queue, jobs, and what each rank of the \
chosen job waits for. It asks the daemon of this host.

  Tab       hosts, jobs           arrows    choose one
  s         sort by the next      d         drain the chosen host, or let jobs in again
  k K       end the chosen job (SIGTERM, SIGKILL)
  q         quit

What changes anything asks before.";

/// How often is looked.
const EVERY: Duration = Duration::from_secs(1);
/// How soon an answer is shown.
const TICK: Duration = Duration::from_millis(100);

pub fn main(given: &TopArguments) -> Result<i32> {
    let mut client = ClusterClient::find()?.context("no daemon runs on this host; weft cluster start starts them")?;
    if given.json || given.once || !std::io::stdout().is_terminal() {
        let view = look(&mut client)?;
        let text = if given.json { serde_json::to_string_pretty(&view)? + "\n" } else { text::of(&view) };
        print!("{text}");
        return Ok(0);
    }
    let (demands, asked) = channel();
    let (answers, heard) = channel();
    std::thread::Builder::new().spawn(move || ask(client, &asked, &answers))?;
    // It restores the terminal also where this process panics.
    let terminal = ratatui::init();
    let done = show(terminal, &demands, &heard);
    ratatui::restore();
    done.map(|()| 0)
}

fn look(client: &mut ClusterClient) -> Result<ClusterView> {
    match client.ask(&Demand::Look { ranks: true })? {
        ClusterReply::View(view) => Ok(*view),
        other => bail!(refusal(other)),
    }
}

/// What the daemon has said: a view, what became of a demand, or why there is nothing more.
enum DaemonSaid {
    View(Box<ClusterView>),
    Line(String),
    Gone(String),
}

/// Looks each second, and asks in between what it is told to, until nobody listens.
fn ask(mut client: ClusterClient, asked: &Receiver<Demand>, answers: &Sender<DaemonSaid>) {
    loop {
        let said = match look(&mut client) {
            Ok(view) => DaemonSaid::View(Box::new(view)),
            Err(error) => DaemonSaid::Gone(format!("{error:#}")),
        };
        let is_end = matches!(said, DaemonSaid::Gone(_));
        if answers.send(said).is_err() || is_end {
            return;
        }
        match asked.recv_timeout(EVERY) {
            Ok(demand) => {
                let line = match client.ask(&demand) {
                    Ok(ClusterReply::Done) => "done".to_owned(),
                    Ok(other) => refusal(other).to_string(),
                    Err(error) => error.to_string(),
                };
                if answers.send(DaemonSaid::Line(line)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn show(mut terminal: ratatui::DefaultTerminal, demands: &Sender<Demand>, heard: &Receiver<DaemonSaid>) -> Result<()> {
    let mut state = TopState::default();
    loop {
        terminal.draw(|frame| draw::draw(frame, &state))?;
        if event::poll(TICK)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            // The terminal hands Ctrl-C over as a key.
            let ends = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            match if ends { Some(TopAct::Quit) } else { state.handle_key(key.code) } {
                Some(TopAct::Quit) => return Ok(()),
                Some(TopAct::Ask(demand)) => _ = demands.send(demand),
                None => {}
            }
        }
        while let Ok(said) = heard.try_recv() {
            match said {
                DaemonSaid::View(view) => state.handle_view(*view),
                DaemonSaid::Line(line) => state.handle_line(line),
                DaemonSaid::Gone(why) => bail!("the daemon is silent: {why}"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
