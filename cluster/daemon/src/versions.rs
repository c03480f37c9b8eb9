//! The database, of which all members have the newest version that is good.

use crate::between::Response;
use crate::daemon::{Daemon, names};
use crate::file::{DATABASE, tag_of};
use crate::log;
use std::rc::Rc;
use weft_database::Cluster;

impl Daemon {
    /// Takes a database in that is newer, if it is one.
    pub fn adopt(self: &Rc<Self>, text: String) -> Response {
        let (name, version) = (self.cluster_name(), self.cluster().version);
        match weft_database::read(&text) {
            Ok(new) if new.name == name && new.version > version => {
                // A file that cannot be written is told; the database is the newer one all the same.
                let file = &self.me.file;
                let written = replace(&file.path, &text);
                file.tell(written.err().map(|error| format!("'{}': {error}", file.path.display())));
                self.set_cluster(new, text);
                Response::Version(self.cluster().version)
            }
            Ok(new) if new.name != name => Response::Failed(format!("cluster '{}', and this is '{name}'", new.name)),
            Ok(_) => Response::Version(version),
            Err(mistakes) => Response::Failed(mistakes.first().map_or_else(String::new, ToString::to_string)),
        }
    }

    pub fn set_cluster(self: &Rc<Self>, cluster: Cluster, text: String) {
        log::say(format!("uses version {} of cluster '{}' from now on", cluster.version, cluster.name));
        self.keep(|records| records.remember(DATABASE, &text));
        for member in names(&self.cluster()).into_iter().filter(|name| cluster.member(name).is_none()) {
            self.give_up(&member);
        }
        self.alive.set_members(&names(&cluster));
        self.me.file.tag.set(tag_of(&text));
        *self.cluster.borrow_mut() = (Rc::new(cluster), text);
        self.spread();
    }

    /// Looks whether the file has changed. A broken one is told, and the last good one stays.
    pub fn reread(self: &Rc<Self>) {
        let Some(text) = self.me.file.news() else { return };
        if text == self.cluster.borrow().1 {
            return self.me.file.tell(None);
        }
        let file = self.me.file.path.display();
        let version = self.cluster().version;
        let trouble = match weft_database::read(&text) {
            Err(mistakes) => mistakes
                .first()
                .map(|mistake| format!("'{file}', {mistake}; the last good one, version {version}, is used")),
            Ok(new) if new.name != self.cluster_name() => Some(format!("'{file}' is of cluster '{}' now", new.name)),
            Ok(new) if new.version < version => Some(format!(
                "'{file}' has version {}, and {version} is used already: its version must be higher than that",
                new.version
            )),
            Ok(new) if new.version == version => {
                Some(format!("'{file}' has changed, and its version, {}, has not: count it up", new.version))
            }
            Ok(new) => {
                self.set_cluster(new, text);
                None
            }
        };
        self.me.file.tell(trouble);
    }
}

/// Writes a file, which is there whole or as it was before.
fn replace(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension(format!("toml.{}", std::process::id()));
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).inspect_err(|_| {
        let _ = std::fs::remove_file(&new);
    })
}
