//! The daemon of a virtual machine on a host: the first one, with the machine, and those that it starts on other hosts.

use crate::code;
use crate::door;
use crate::frame::{Order, Seen, framed, read};
use crate::hand::{FrameLink, Hand, HandToken};
use crate::launch;
use crate::machine::VirtualMachine;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weft_kernel::EventLoop;

pub use crate::hand::{DIRECTORY_VARIABLE, PATH_VARIABLE};

/// The number of the first host.
const FIRST: u32 = 1;
/// How long the daemon lives without anybody before the first task comes.
const AWAITED: Duration = Duration::from_secs(10);
/// How often the first daemon says something to the others, who answer.
const PULSE: Duration = Duration::from_secs(1);
/// A daemon of which nothing is heard for so long is lost, with its host: that of another one, or the first.
const SILENCE: Duration = Duration::from_secs(8);
/// How long one may take to start.
const STARTING: Duration = Duration::from_secs(30);

/// How long those of other hosts have to end when the machine does.
const FAREWELL: Duration = Duration::from_millis(500);

/// What makes the command of a host, named as in a hostfile.
pub type FarCommand = Box<dyn Fn(&str) -> io::Result<Command>>;

/// What the first daemon is told.
pub struct DaemonPlan {
    /// The host's name.
    pub name: String,
    /// It ends by `halt` alone.
    pub stays: bool,
    /// The job that has started it, and ends all that it has started.
    pub ends_with: String,
    /// The command that starts the daemon of another host, named as in a hostfile; it is to run [`serve_far`].
    pub far: FarCommand,
}

/// The name of this host.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Starts `command`, which is to call [`run`], apart from this process, and returns when it listens.
///
/// # Errors
/// It cannot be started, or ends at once.
pub fn start(mut command: Command) -> io::Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
    launch::detached(&mut command);
    let mut child = command.spawn()?;
    let mut said = [0];
    let stdout = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
    { stdout }.read_exact(&mut said)
}

/// Runs the first daemon until nobody needs it. A byte on standard output says that it listens, or that another one
/// does; it has no other descriptors of who has started it.
///
/// # Errors
/// Those of sockets.
pub fn run(plan: DaemonPlan) -> io::Result<()> {
    weft_kernel::close_all_but(libc::STDERR_FILENO + 1, &[]);
    let door = door::listen();
    io::stdout().write_all(b"\n").and_then(|()| io::stdout().flush())?;
    drop_standard_output()?;
    let door = match door {
        Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(()),
        door => door?,
    };
    FirstDaemon {
        machine: VirtualMachine::new(&plan.name, plan.stays, &plan.ends_with),
        hand: Hand::new(door),
        far: BTreeMap::new(),
        plan,
    }
    .run()
}

/// Who waits for the end of what we say need not wait for ours.
fn drop_standard_output() -> io::Result<()> {
    let nothing = std::fs::File::options().write(true).open("/dev/null")?;
    launch::replace_standard_output(nothing.as_fd())
}

/// The daemon of another host.
struct FarDaemon {
    link: FrameLink,
    child: Child,
    is_up: bool,
    heard: Instant,
}

impl FarDaemon {
    /// It tells its tasks first what they were still to be told, such as the last one that it may go.
    fn ask_to_end(&mut self) {
        let _ = self.link.send(&framed(&Order::End));
    }

    fn is_silent(&self) -> bool {
        self.heard.elapsed() > if self.is_up { SILENCE } else { STARTING }
    }
}

struct FirstDaemon {
    machine: VirtualMachine,
    hand: Hand,
    far: BTreeMap<u32, FarDaemon>,
    plan: DaemonPlan,
}

impl FirstDaemon {
    fn run(mut self) -> io::Result<()> {
        let mut events = EventLoop::new()?;
        let begin = Instant::now();
        let mut had_any = false;
        let mut pulse = begin;
        while !self.hand.has_ended() {
            self.hand.ask(&mut events);
            self.far.iter().for_each(|(number, far)| far.link.ask(&mut events, HandToken::Host(*number)));
            let awaits = !had_any && !self.plan.stays || !self.far.is_empty();
            let limit = awaits.then_some(PULSE).into_iter().chain(self.hand.rest()).min();
            let came = events.turn(limit)?;
            if pulse.elapsed() >= PULSE {
                pulse = Instant::now();
                self.feel_pulse();
            }
            for (token, _) in came {
                had_any = true;
                match token {
                    HandToken::Host(number) => self.on_far(number),
                    token => self.hand.on_event(token),
                }
            }
            self.settle();
            // Who comes just now finds nobody, and starts another one.
            if self.machine.is_idle() || !had_any && !self.plan.stays && begin.elapsed() > AWAITED {
                self.hand.obey(Order::End);
            }
        }
        self.far.values_mut().for_each(FarDaemon::ask_to_end);
        let begin = Instant::now();
        while !self.far.is_empty() && begin.elapsed() < FAREWELL {
            self.far.retain(|_, far| matches!(far.child.try_wait(), Ok(None)));
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Lets the machine hear what was seen, and does what it orders, until neither is left.
    fn settle(&mut self) {
        loop {
            let seen = self.hand.poll_seen();
            let any = seen.is_some();
            seen.into_iter().for_each(|seen| self.machine.handle_seen(FIRST, seen));
            let order = self.machine.poll_order();
            match order {
                None if !any => return,
                None => {}
                Some((_, Order::AddHost { number, name })) => self.add_host(number, &name.text()),
                Some((_, Order::DropHost { number })) => drop(self.far.remove(&number)),
                Some((FIRST, order)) => self.hand.obey(order),
                Some((number, order)) => self.order_far(number, &order),
            }
        }
    }

    /// Lets the other daemons know that this one is there, and loses those that say nothing.
    fn feel_pulse(&mut self) {
        for number in self.far.keys().copied().collect::<Vec<u32>>() {
            self.order_far(number, &Order::Pulse);
            if self.far.get(&number).is_some_and(FarDaemon::is_silent) {
                self.lose_far(number);
            }
        }
    }

    fn add_host(&mut self, number: u32, name: &str) {
        match self.start_far(name) {
            Ok(far) => drop(self.far.insert(number, far)),
            Err(error) => {
                self.hand.write_log(format!("host '{name}' cannot be started: {error}\n").as_bytes());
                self.machine.handle_seen(FIRST, Seen::HostDown { number, code: code::CANT_START });
            }
        }
    }

    fn start_far(&mut self, name: &str) -> io::Result<FarDaemon> {
        let mut command = (self.plan.far)(name)?;
        let (ours, theirs) = UnixStream::pair()?;
        let again = theirs.try_clone()?;
        command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(again));
        // What a launch command complains of is for who looks why there is no host.
        let log = self.hand.log().and_then(|log| log.try_clone().ok());
        command.stderr(log.map_or_else(Stdio::null, Stdio::from));
        launch::end_with_us(&mut command);
        Ok(FarDaemon {
            child: command.spawn()?,
            link: FrameLink::of_socket(ours)?,
            is_up: false,
            heard: Instant::now(),
        })
    }

    fn order_far(&mut self, number: u32, order: &Order) {
        let sent = self.far.get_mut(&number).map(|far| far.link.send(&framed(order)));
        if sent.is_some_and(|sent| sent.is_err()) {
            self.lose_far(number);
        }
    }

    fn on_far(&mut self, number: u32) {
        let Some(far) = self.far.get_mut(&number) else { return };
        let went = far.link.serve();
        far.heard = Instant::now();
        let sane = loop {
            let seen = match far.link.next_frame() {
                Ok(Some(bytes)) => read(&bytes),
                Ok(None) => break true,
                Err(_) => break false,
            };
            match seen {
                // What it is called and which number it has is known here.
                Some(Seen::HostUp { architecture, .. }) => {
                    far.is_up = true;
                    self.machine.handle_seen(FIRST, Seen::HostUp { number, name: String::new(), architecture });
                }
                Some(Seen::Pulse) => {}
                Some(seen) if far.is_up && !matches!(seen, Seen::HostDown { .. }) => {
                    self.machine.handle_seen(number, seen);
                }
                // It speaks another language, such as a shell that greets.
                _ => break false,
            }
        };
        if went.is_err() || !sane {
            self.lose_far(number);
        }
    }

    fn lose_far(&mut self, number: u32) {
        let Some(mut far) = self.far.remove(&number) else { return };
        let code = if far.is_up { code::HOST_FAIL } else { code::CANT_START };
        if let (false, Ok(Some(status))) = (far.is_up, far.child.try_wait()) {
            self.hand.write_log(format!("the command that starts a host has ended with {status}\n").as_bytes());
        }
        self.machine.handle_seen(FIRST, Seen::HostDown { number, code });
    }
}

impl Drop for FarDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the daemon of another host than the first, whose daemon is at the other end of standard input and output.
///
/// # Errors
/// Those of sockets; this host has a virtual machine already.
pub fn serve_far() -> io::Result<()> {
    let reads = io::stdin().as_fd().try_clone_to_owned()?;
    let writes = io::stdout().as_fd().try_clone_to_owned()?;
    let mut first = FrameLink::new(reads, writes)?;
    let mut hand = Hand::new(door::listen()?);
    let architecture = code::ARCHITECTURE.to_owned();
    first.send(&framed(&Seen::HostUp { number: 0, name: host_name(), architecture }))?;
    let mut events = EventLoop::new()?;
    let mut heard = Instant::now();
    while !hand.has_ended() {
        hand.ask(&mut events);
        first.ask(&mut events, HandToken::Host(FIRST));
        for (token, _) in events.turn(hand.rest().or(Some(PULSE)))? {
            match token {
                HandToken::Host(_) => {
                    heard = Instant::now();
                    if !obey_first(&mut first, &mut hand) {
                        hand.obey(Order::End);
                    }
                }
                token => hand.on_event(token),
            }
        }
        if heard.elapsed() > SILENCE {
            hand.obey(Order::End);
        }
        while let Some(seen) = hand.poll_seen() {
            if first.send(&framed(&seen)).is_err() {
                hand.obey(Order::End);
            }
        }
    }
    first.flush();
    Ok(())
}

/// Does what the first daemon says; false where it is gone, or speaks another language.
fn obey_first(first: &mut FrameLink, hand: &mut Hand) -> bool {
    let went = first.serve();
    loop {
        let order = match first.next_frame() {
            Ok(Some(bytes)) => read(&bytes),
            Ok(None) => return went.is_ok(),
            Err(_) => return false,
        };
        match order {
            Some(Order::Pulse) if first.send(&framed(&Seen::Pulse)).is_ok() => {}
            Some(Order::Pulse) | None => return false,
            Some(order) => hand.obey(order),
        }
    }
}
