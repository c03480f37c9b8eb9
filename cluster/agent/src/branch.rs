//! Launch commands that an agent runs: where hosts are many, some agents start others
//! ([`weft_cluster::hosts::parents`]).
//!
//! What such a command reads and writes is passed on as it is, so for the launcher the agent behind it is one like
//! others: its pipes lead through the link to this one, and nothing else is different.

use crate::faults::FaultPlan;
use crate::keeper::{Keeper, Kept, RankInput, RankStart};
use crate::link::{KeeperMessage, ReceivedRecord};
use crate::relay::Relay;
use crate::sys::Apart;
use crate::{LaunchError, descriptors, sys};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weft_cluster::frame::{Channel, Frame, RankStream};

/// The ends of a command's input, output and error, and which streams these are.
const STREAMS: [RankStream; 3] = [RankStream::CommandInput, RankStream::CommandOutput, RankStream::CommandError];

/// The commands of this agent, if it has any.
#[derive(Default)]
pub struct Branch {
    kept: Option<Kept>,
}

impl Branch {
    /// Starts the commands, as children of a keeper that ends them when this process is gone.
    ///
    /// # Errors
    /// The system refuses a pipe or a process.
    pub fn start(mut relay: Relay, directory: &Path, commands: &[Vec<String>]) -> Result<(Self, Relay), LaunchError> {
        // Where the launcher's directory is not here, what the command names must not depend on it.
        let _ = std::env::set_current_dir(directory);
        let limits = descriptors::make_room(commands.len())?;
        let mut starts = Vec::new();
        for (words, number) in commands.iter().zip(0..) {
            let Some((program, arguments)) = words.split_first() else { continue };
            let mut command = Command::new(program);
            command.args(arguments);
            let ([input, output, error], [near_input, near_output, near_error]) =
                pipes().map_err(LaunchError::system("pipe"))?;
            let [to, from, said] = STREAMS.map(|stream| Channel { member: number, stream });
            relay.add_writer(to, near_input);
            relay.add_reader(from, near_output);
            relay.add_reader(said, near_error);
            let input = RankInput::Pipe(input);
            let (apart, outputs) = (Apart::Group, [output, error]);
            starts.push(RankStart { command, core: None, input, apart, outputs, own: Vec::new() });
        }
        let mask = sys::SignalSet::of(&[]).block().map_err(LaunchError::system("signals"))?;
        let (kept, relay) =
            Keeper { starts, inherit: Vec::new(), limits, mask, faults: FaultPlan::default(), grace: Duration::ZERO }
                .start(relay)?;
        Ok((Self { kept: Some(kept) }, relay))
    }

    /// What is to be read from, if anything is.
    pub fn fd(&self) -> Option<i32> {
        self.kept.as_ref().map(|kept| kept.link.fd())
    }

    /// Whether no command runs, and what they wrote has been passed on.
    pub fn is_over(&self) -> bool {
        self.kept.is_none()
    }

    /// Tells the launcher what has become of the commands.
    pub fn handle(&mut self, relay: &mut Relay) {
        while let Some(kept) = &self.kept {
            match kept.link.try_receive() {
                ReceivedRecord::Message(KeeperMessage::Ended { rank, exit }) => {
                    relay.send(&Frame::CommandEnded { command: rank as u32, exit });
                }
                ReceivedRecord::Message(KeeperMessage::NotStarted { rank, errno }) => {
                    relay.send(&Frame::CommandNotStarted { command: rank as u32, errno });
                }
                ReceivedRecord::Message(KeeperMessage::Over { .. }) => {
                    // Nobody is left who could write: what is in the pipes is all.
                    relay.drain(|channel| channel.stream.is_of_command());
                    self.end();
                }
                ReceivedRecord::Message(_) => {}
                ReceivedRecord::NothingYet => return,
                ReceivedRecord::Gone => {
                    relay.send(&Frame::KeeperGone { pid: kept.pid as u32 });
                    self.end();
                }
            }
        }
    }

    /// The keeper ends what still lives, and goes.
    pub fn end(&mut self) {
        if let Some(Kept { link, pid }) = self.kept.take() {
            drop(link);
            sys::wait_for(pid);
        }
    }
}

/// The launcher's half: what the command of this number reads and writes goes by the relay.
pub fn carry(relay: &mut Relay, number: u32, [input, output, error]: [OwnedFd; 3]) {
    let [to, from, said] = STREAMS.map(|stream| Channel { member: number, stream });
    relay.add_reader(to, input);
    relay.add_writer(from, output);
    relay.add_writer(said, error);
}

/// The ends of a command (input, output, error), and ours, which do not wait.
pub fn pipes() -> std::io::Result<([OwnedFd; 3], [OwnedFd; 3])> {
    let (input, near_input) = std::io::pipe()?;
    let (near_output, output) = std::io::pipe()?;
    let (near_error, error) = std::io::pipe()?;
    let near: [OwnedFd; 3] = [near_input.into(), near_output.into(), near_error.into()];
    near.iter().try_for_each(sys::set_nonblocking)?;
    Ok(([input.into(), output.into(), error.into()], near))
}
