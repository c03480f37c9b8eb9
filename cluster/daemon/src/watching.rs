//! The loop that tells who is alive ([`crate::alive`]).

use crate::daemon::Daemon;
use crate::log;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UdpSocket;
use weft_database::Cluster;
use weft_membership::{MemberChange, MemberId};

/// Names of members are looked up again so often.
const LOOK_UP: Duration = Duration::from_secs(30);
/// Nothing is longer.
const MOST_BYTES: usize = 2048;

/// Takes datagrams and sends them, for as long as the daemon lives.
pub async fn watch(daemon: Rc<Daemon>, sockets: Rc<Vec<UdpSocket>>) {
    let looking_up = tokio::task::spawn_local(look_up(Rc::clone(&daemon)));
    let alive = &daemon.alive;
    let mut missing = MissingMembers::new(&daemon.me.member);
    let mut place = [0; MOST_BYTES];
    loop {
        alive.send(&sockets).await;
        let news: Vec<MemberChange> = std::iter::from_fn(|| alive.machine.borrow_mut().poll_event()).collect();
        if !news.is_empty() {
            news.into_iter().filter_map(|change| missing.line(&daemon.cluster(), change)).for_each(log::say);
            daemon.decide();
        }
        let due = alive.machine.borrow().poll_timeout();
        let due = due.map(|due_ns| alive.begun + Duration::from_nanos(due_ns));
        let sleep = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            bytes = receive(&sockets, &mut place) => {
                if let Some((from, said)) = alive.opened(&place[..bytes]) {
                    alive.machine.borrow_mut().handle_datagram(alive.now_ns(), from, &said);
                }
            }
            () = sleep => alive.machine.borrow_mut().handle_timeout(alive.now_ns()),
            () = alive.changed.notified() => {}
        }
        if looking_up.is_finished() {
            return;
        }
    }
}

/// Members that were there and are not.
struct MissingMembers {
    me: MemberId,
    all: HashSet<MemberId>,
}

impl MissingMembers {
    fn new(me: &str) -> Self {
        Self { me: MemberId::of(me), all: HashSet::new() }
    }

    /// What the log says of a change. That each member is heard for the first time it does not say.
    fn line(&mut self, cluster: &Cluster, change: MemberChange) -> Option<String> {
        let (member, what) = match change {
            MemberChange::Alive { member, .. } => (member, self.all.remove(&member).then_some("is back")?),
            MemberChange::Suspect { member, .. } => (member, "is silent: it gets nothing new"),
            MemberChange::Dead { member, .. } => (member, "is dead: its daemon has ended in order"),
            MemberChange::Restarted { member, .. } if member == self.me => {
                (member, "was taken for dead by others, and goes on")
            }
            MemberChange::Restarted { member, .. } => (member, "has begun again"),
        };
        match change {
            MemberChange::Suspect { .. } | MemberChange::Dead { .. } => self.all.insert(member),
            MemberChange::Alive { .. } | MemberChange::Restarted { .. } => self.all.remove(&member),
        };
        let name = cluster.members.iter().map(|one| &one.name).find(|name| MemberId::of(name) == member)?;
        Some(format!("member '{name}' {what}"))
    }
}

/// The length of the next datagram of any of the sockets.
async fn receive(sockets: &[UdpSocket], place: &mut [u8]) -> usize {
    loop {
        let ready = sockets.iter().map(|socket| Box::pin(socket.readable()));
        let at = first(ready.collect()).await;
        if let Some(Ok((bytes, _))) = sockets.get(at).map(|socket| socket.try_recv_from(place)) {
            return bytes;
        }
    }
}

/// The number of the first that is ready.
async fn first<F: Future + Unpin>(mut all: Vec<F>) -> usize {
    std::future::poll_fn(|context| {
        let ready = all.iter_mut().position(|one| std::pin::Pin::new(one).poll(context).is_ready());
        ready.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}

/// Looks up where members are, again and again.
async fn look_up(daemon: Rc<Daemon>) {
    loop {
        let cluster = daemon.cluster();
        for member in &cluster.members {
            if let Some(address) = daemon.addresses_of(&member.name).await.ok().and_then(|all| all.first().copied()) {
                daemon.alive.addresses.borrow_mut().insert(MemberId::of(&member.name), address);
            }
        }
        daemon.alive.changed.notify_one();
        tokio::time::sleep(LOOK_UP).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_and_comes_back_is_told_and_who_comes_first_is_not() {
        let text = "name = \"lab\"\nversion = 1\n[[member]]\nname = \"a\"\n";
        let cluster = weft_database::read(text).expect("a cluster");
        let (mut missing, member) = (MissingMembers::new("me"), MemberId::of("a"));
        let mut line = |change| missing.line(&cluster, change);
        let alive = MemberChange::Alive { member, incarnation: 1 };
        assert_eq!(line(alive), None);
        let silent = line(MemberChange::Suspect { member, incarnation: 1, since_ns: 0 });
        assert_eq!(silent.as_deref(), Some("member 'a' is silent: it gets nothing new"));
        assert_eq!(line(alive).as_deref(), Some("member 'a' is back"));
        let dead = line(MemberChange::Dead { member, incarnation: 1 });
        assert_eq!(dead.as_deref(), Some("member 'a' is dead: its daemon has ended in order"));
        let again = line(MemberChange::Restarted { member, incarnation: 2 });
        assert_eq!((again.as_deref(), line(alive)), (Some("member 'a' has begun again"), None));
        let stranger = MemberChange::Dead { member: MemberId::of("b"), incarnation: 1 };
        assert_eq!(line(stranger), None);
    }
}
