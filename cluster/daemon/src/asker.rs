//! Who asks: what the kernel says of the other end of a local socket, and the names that the system has for it.

use crate::between::Asker;
use crate::launcher::{start_of, uids_of};
use crate::log;
use anyhow::{Context, Result};
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

/// The name and groups of a user are looked up so often.
const KNOWN: Duration = Duration::from_secs(10);

/// A user and its groups, by name.
type Names = (String, Vec<String>);

/// Users who have asked lately, by their numbers and those of their groups.
#[derive(Default)]
pub struct Askers {
    known: RefCell<HashMap<(u32, u32), (Names, Instant)>>,
    /// How many connections each user has.
    pub connections: RefCell<HashMap<u32, usize>>,
    refusals: RefCell<log::Refusals>,
}

impl Askers {
    /// Writes into the log that a user is refused something for lack of rights, and answers the reason.
    pub fn refuse(&self, user: &str, reason: String) -> String {
        let line = self.refusals.borrow_mut().line(user, &reason, Instant::now());
        line.into_iter().for_each(log::say);
        reason
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// The user has no name: jobs go by names, and a number would be taken for one.
    pub async fn asker(&self, stream: &UnixStream) -> Result<Asker> {
        let peer = stream.peer_cred()?;
        let (uid, gid, pid) = (peer.uid(), peer.gid(), peer.pid().unwrap_or(0));
        let known = {
            let mut known = self.known.borrow_mut();
            known.retain(|_, (_, since)| since.elapsed() < KNOWN);
            known.get(&(uid, gid)).map(|(names, _)| names.clone())
        };
        let names = match known {
            Some(names) => names,
            None => {
                // A directory service may take its time, and nobody else shall wait for it.
                let names = tokio::task::spawn_blocking(move || names(uid, gid)).await??;
                self.known.borrow_mut().insert((uid, gid), (names.clone(), Instant::now()));
                names
            }
        };
        // Of a process that is somebody else's by now, nothing is known.
        let began = uids_of(pid).filter(|uids| uids.iter().all(|one| *one == uid)).and_then(|_| start_of(pid));
        let (user, groups) = names;
        Ok(Asker { user, uid, groups, pid, began: began.unwrap_or(0) })
    }
}

fn names(uid: u32, gid: u32) -> Result<Names> {
    let user = User::from_uid(Uid::from_raw(uid))?.with_context(|| format!("user {uid} has no name on this host"))?;
    let gid = Gid::from_raw(gid);
    let ids = getgrouplist(&CString::new(&*user.name)?, gid).unwrap_or_else(|_| vec![gid]);
    let groups = ids.into_iter().filter_map(|id| Group::from_gid(id).ok().flatten()).map(|group| group.name).collect();
    Ok((user.name, groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_name_is_nobody() {
        let error = names(3_999_999_999, 0).expect_err("no such user");
        assert!(error.to_string().contains("3999999999"));
        assert_eq!(names(0, 0).expect("root").0, "root");
    }
}
