//! Other members: connections to them, and calls.

use crate::between::{Asker, DaemonLink, Errand, PendingCall, Response};
use crate::daemon::Daemon;
use anyhow::{Context, Result, anyhow};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tokio::sync::mpsc;
use weft_database::Member;
use weft_requests::{ClusterReply, Demand};

impl Daemon {
    /// A connection to a member.
    pub async fn link(self: &Rc<Self>, member: &str) -> Result<Rc<DaemonLink>> {
        if let Some(link) = self.links.borrow().get(member).filter(|link| link.is_open()) {
            return Ok(Rc::clone(link));
        }
        let addresses = self.addresses_of(member).await?;
        let link = DaemonLink::connect(&self.me.key, &self.cluster_name(), member, &addresses).await?;
        self.links.borrow_mut().insert(member.to_owned(), Rc::clone(&link));
        Ok(link)
    }

    pub async fn addresses_of(&self, member: &str) -> Result<Vec<SocketAddr>> {
        let cluster = self.cluster();
        let Member { addresses, .. } =
            cluster.member(member).ok_or_else(|| anyhow!("'{member}' is no member of cluster '{}'", cluster.name))?;
        let with_port = |address: &IpAddr| SocketAddr::new(*address, cluster.port);
        if !addresses.is_empty() {
            return Ok(addresses.iter().map(with_port).collect());
        }
        let found = tokio::net::lookup_host((member, cluster.port)).await;
        Ok(found.with_context(|| format!("member '{member}' has no address"))?.collect())
    }

    /// Begins a call to a member, which may be this one.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn ask(self: &Rc<Self>, member: &str, errand: Errand) -> Result<PendingCall> {
        if member == self.me.member {
            let (sender, responses) = mpsc::unbounded_channel();
            let daemon = Rc::clone(self);
            let task = tokio::task::spawn_local(async move { daemon.carry_out(errand, sender).await });
            return Ok(PendingCall::near(task.abort_handle(), responses));
        }
        Ok(self.link(member).await?.ask(errand))
    }

    /// The same for a call that needs no waiting.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask_once(self: &Rc<Self>, member: &str, errand: Errand) -> Result<Response> {
        self.ask(member, errand).await?.last().await.with_context(|| format!("member '{member}'"))
    }

    /// The servers, the one in charge before the others.
    pub fn servers(&self) -> Vec<String> {
        let mut servers = self.cluster().servers.clone();
        let in_charge = self.server_in_charge();
        servers.sort_by_key(|server| Some(server) != in_charge.as_ref());
        servers
    }

    /// Asks for the client of a member, at any of the servers.
    pub async fn ask_servers(self: &Rc<Self>, asker: &Asker, demand: &Demand) -> ClusterReply {
        let mut failed = String::new();
        for server in self.servers() {
            let errand = Errand::For { asker: asker.clone(), demand: demand.clone() };
            match self.ask_once(&server, errand).await {
                Ok(Response::Last(reply)) => return reply,
                Ok(other) => failed = format!("server '{server}' answered {other:?}"),
                Err(error) => failed = format!("{error:#}"),
            }
        }
        ClusterReply::Refused(failed)
    }
}
