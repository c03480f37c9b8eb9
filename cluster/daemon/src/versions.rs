//! The database, of which all members have the newest version that is good; and what members tell the servers.

use crate::between::{Errand, Response};
use crate::daemon::{Daemon, names};
use crate::report::{self, HostReport};
use std::rc::Rc;
use weft_database::Cluster;

/// The last database that was good.
const DATABASE: &str = "database";

impl Daemon {
    /// Says again and again how this host is, and decides what waits.
    pub async fn tell(self: Rc<Self>) {
        loop {
            self.reread();
            self.look_after_orders();
            let report = self.own_report();
            let servers = self.cluster().servers.clone();
            for server in servers {
                let (daemon, report) = (Rc::clone(&self), Box::new(report.clone()));
                tokio::task::spawn_local(async move { daemon.tell_server(&server, report).await });
            }
            let _ = tokio::time::timeout(report::EVERY, self.changed.notified()).await;
        }
    }

    pub async fn tell_server(self: &Rc<Self>, server: &str, report: Box<HostReport>) {
        let told = self.ask_once(server, Errand::Heed(report)).await;
        if let Ok(Response::Version(version)) = told
            && version < self.cluster().version
        {
            let text = self.cluster.borrow().1.clone();
            let _ = self.ask_once(server, Errand::Adopt { text }).await;
        }
    }

    /// Takes a database in that is newer, if it is one.
    pub fn adopt(&self, text: String) -> Response {
        let (name, version) = (self.cluster_name(), self.cluster().version);
        match weft_database::read(&text) {
            Ok(new) if new.name == name && new.version > version => {
                // A file that cannot be written is told; the database is the newer one all the same.
                if let Err(error) = replace(&self.me.file, &text) {
                    *self.trouble.borrow_mut() = Some(format!("'{}': {error}", self.me.file.display()));
                }
                self.set_cluster(new, text);
                Response::Version(self.cluster().version)
            }
            Ok(new) if new.name != name => Response::Failed(format!("cluster '{}', and this is '{name}'", new.name)),
            Ok(_) => Response::Version(version),
            Err(mistakes) => Response::Failed(mistakes.first().map_or_else(String::new, ToString::to_string)),
        }
    }

    pub fn set_cluster(&self, cluster: Cluster, text: String) {
        self.keep(|records| records.remember(DATABASE, &text));
        for member in names(&self.cluster()).into_iter().filter(|name| cluster.member(name).is_none()) {
            self.heard.borrow_mut().remove(&member);
            self.orders.borrow_mut().bury(&member);
        }
        self.alive.set_members(&names(&cluster));
        *self.cluster.borrow_mut() = (Rc::new(cluster), text);
    }

    /// Looks whether the file has changed. A broken one is told, and the last good one stays.
    pub fn reread(&self) {
        let Ok(text) = std::fs::read_to_string(&self.me.file) else { return };
        if text == self.cluster.borrow().1 {
            return;
        }
        let file = self.me.file.display();
        let trouble = match weft_database::read(&text) {
            Err(mistakes) => mistakes.first().map(|mistake| format!("'{file}', {mistake}; the last good one is used")),
            Ok(new) if new.name != self.cluster_name() => Some(format!("'{file}' is of cluster '{}' now", new.name)),
            Ok(new) if new.version <= self.cluster().version => {
                Some(format!("'{file}' has changed, and its version, {}, has not: count it up", new.version))
            }
            Ok(new) => {
                self.set_cluster(new, text);
                None
            }
        };
        *self.trouble.borrow_mut() = trouble;
    }
}

/// Writes a file, which is there whole or as it was before.
fn replace(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension(format!("toml.{}", std::process::id()));
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).inspect_err(|_| {
        let _ = std::fs::remove_file(&new);
    })
}
