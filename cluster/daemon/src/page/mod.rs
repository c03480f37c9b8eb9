//! The page of a cluster: what there is to see, for a browser, for programs and for Prometheus.
//!
//! | path | what |
//! |---|---|
//! | `/` | one page, complete in itself: it loads nothing else, and draws what it fetches from the next two |
//! | `/view.json` | the [`ClusterView`] of this second |
//! | `/history.json` | the last hour: a sample each quarter of a minute ([`history`]) |
//! | `/metrics` | the same numbers for Prometheus ([`metrics`]) |
//!
//! It is read only: `GET`, and nothing a request says is believed. Who comes from this host needs no token, as `weft
//! ps` needs none; but a name of this host must be in the request, so that a page of somebody else, whose name suddenly
//! means this host, cannot read along. All others show the token, once in the address (`/?token=...`, which becomes a
//! cookie) or as `Authorization: Bearer`.
//!
//! What holds: bytes, connections and times are bounded, and the view is made once in a second however many look. A
//! request makes nobody wait but its own connection.
//!
//! Not here: TLS (a proxy or `ssh -L` has it), changes (the command `weft` makes them), and what has been before the
//! daemon began.
//!
//! Test: `cargo test -p weftd page`.

mod answer;
mod history;
mod metrics;
#[cfg(test)]
mod tests;

use answer::PageServer;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use weft_requests::ClusterView;

/// Most connections at once; further ones wait for one of these to end.
const CONNECTIONS_MAX: usize = 32;
/// How long a request may take to arrive, and a connection lie idle.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection may last. Browsers open another one.
const LIFE: Duration = Duration::from_secs(60);
/// The longest head of a request; it is also what hyper allows at least.
const HEAD_BYTES: usize = 8 << 10;
/// How long nobody is let in after a failure, of which the usual one is that there are no descriptors left.
const RESPITE: Duration = Duration::from_millis(100);

/// Serves the page until it is dropped. `view` is asked once in a second at most, with whether somebody looks, or only
/// the history has to go on; `token` is what others than this host need, and without one they see nothing.
///
/// It runs on a `LocalSet`.
pub async fn serve(listener: TcpListener, view: impl Fn(bool) -> ClusterView + 'static, token: Option<String>) {
    let page = Rc::new(PageServer::new(view, token));
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut samples = interval(history::EVERY);
    samples.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = samples.tick() => page.sample(),
            (permit, accepted) = async { (Arc::clone(&room).acquire_owned().await, listener.accept().await) } => {
                match accepted {
                    Ok((stream, peer)) => {
                        let page = Rc::clone(&page);
                        tokio::task::spawn_local(async move {
                            // What ends a connection is its own affair.
                            let _ = timeout(LIFE, connection(stream, peer, page)).await;
                            drop(permit);
                        });
                    }
                    Err(_) => sleep(RESPITE).await,
                }
            }
        }
    }
}

async fn connection<V>(stream: TcpStream, peer: SocketAddr, page: Rc<PageServer<V>>) -> hyper::Result<()>
where
    V: Fn(bool) -> ClusterView + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = page.answer(&request.into_parts().0, peer.ip());
        async { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    server.serve_connection(TokioIo::new(stream), service).await
}
