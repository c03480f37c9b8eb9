//! The loop that tells who is alive ([`crate::alive`]).

use crate::daemon::Daemon;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UdpSocket;

/// Names of members are looked up again so often.
const LOOK_UP: Duration = Duration::from_secs(30);
/// Nothing is longer.
const MOST_BYTES: usize = 2048;

/// Takes datagrams and sends them, for as long as the daemon lives.
pub async fn watch(daemon: Rc<Daemon>, sockets: Rc<Vec<UdpSocket>>) {
    let looking_up = tokio::task::spawn_local(look_up(Rc::clone(&daemon)));
    let alive = &daemon.alive;
    let mut place = [0; MOST_BYTES];
    loop {
        alive.send(&sockets).await;
        let is_news = std::iter::from_fn(|| alive.machine.borrow_mut().poll_event()).count() > 0;
        if is_news {
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
                daemon.alive.addresses.borrow_mut().insert(weft_membership::MemberId::of(&member.name), address);
            }
        }
        daemon.alive.changed.notify_one();
        tokio::time::sleep(LOOK_UP).await;
    }
}
