//! Why members are not there. Datagrams tell that a member is silent, and not why: so a server tries to connect to it,
//! and what comes of that is shown beside it.

use crate::between::{Errand, Response};
use crate::daemon::Daemon;
use crate::log;
use std::rc::Rc;
use std::time::Duration;
use weft_membership::MemberId;
use weft_requests::MemberStanding;

/// So often is it tried.
const AGAIN: Duration = Duration::from_secs(5);
/// Members that are tried at once: each may take seconds to say nothing.
const AT_ONCE: usize = 64;

/// Looks again and again, where this member is a server.
pub async fn look_for_reasons(daemon: Rc<Daemon>) {
    loop {
        tokio::time::sleep(AGAIN).await;
        if !daemon.cluster().servers.contains(&daemon.me.member) {
            continue;
        }
        daemon.forget_who_is_there();
        for some in daemon.missing().chunks(AT_ONCE) {
            let each = some.iter().cloned().map(|member| {
                let daemon = Rc::clone(&daemon);
                tokio::task::spawn_local(async move { daemon.look_for_reason(&member).await })
            });
            for task in each.collect::<Vec<_>>() {
                let _ = task.await;
            }
        }
    }
}

impl Daemon {
    /// Members that should be there and are not.
    fn missing(&self) -> Vec<String> {
        let is_missing =
            |name: &String| matches!(self.alive.standing(name).0, MemberStanding::Suspect | MemberStanding::Unknown);
        crate::daemon::names(&self.cluster()).into_iter().filter(is_missing).collect()
    }

    fn forget_who_is_there(&self) {
        let missing: Vec<MemberId> = self.missing().iter().map(|name| MemberId::of(name)).collect();
        self.alive.unreached.borrow_mut().retain(|member, _| missing.contains(member));
    }

    /// Tries to ask one, and keeps what is wrong. It is told once.
    async fn look_for_reason(self: &Rc<Self>, member: &str) {
        let port = self.cluster().port;
        let why = match self.ask_once(member, Errand::Clock).await {
            Ok(Response::Clock(_)) => {
                format!("answers by TCP, and its datagrams do not come: UDP port {port} must be open, too")
            }
            Ok(Response::Failed(reason)) => reason,
            Ok(other) => format!("answers what means nothing here: {other:?}"),
            Err(error) => without_name(&format!("{error:#}"), member),
        };
        // Of what others have said nothing is to look like another line.
        let why = why.replace(|letter: char| letter.is_control(), "?");
        let known = self.alive.unreached.borrow_mut().insert(MemberId::of(member), why.clone());
        if known.as_ref() != Some(&why) && self.missing().iter().any(|name| name == member) {
            log::say(format!("member '{member}': {why}"));
        }
    }

    /// Why a member is not there that is not.
    pub fn why_missing(&self, member: &str) -> Option<String> {
        let is_missing = matches!(self.alive.standing(member).0, MemberStanding::Suspect | MemberStanding::Unknown);
        self.alive.unreached.borrow().get(&MemberId::of(member)).filter(|_| is_missing).cloned()
    }
}

/// An error of this member in a place that names it already.
fn without_name(told: &str, member: &str) -> String {
    let rest = told.strip_prefix(&format!("member '{member}'")).unwrap_or(told);
    rest.trim_start_matches([':', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_name;
    use crate::hostile::{Besieged, run};

    #[test]
    fn the_name_is_told_once() {
        for (told, rest) in [
            ("member 'two': no answer", "no answer"),
            ("member 'two' has no address", "has no address"),
            ("member 'two' at 127.0.0.1:7337: no answer", "at 127.0.0.1:7337: no answer"),
            ("'two' is no member of cluster 'lab'", "'two' is no member of cluster 'lab'"),
        ] {
            assert_eq!(without_name(told, "two"), rest);
        }
    }

    #[test]
    fn a_member_that_cannot_be_reached_is_shown_with_the_reason() {
        run(async {
            // Its other member has the address of this one, which says that it is not that one.
            let daemon = Besieged::up("one").await.daemon;
            assert_eq!(daemon.missing(), ["two"]);
            assert_eq!(daemon.view().members[1].trouble, None);
            daemon.look_for_reason("two").await;
            let told = daemon.view().members[1].trouble.clone().expect("it is told");
            assert!(told.starts_with("at 127.0.0.1:") && told.ends_with("this is 'one' of cluster 'lab'"), "{told}");
            assert_eq!(daemon.view().members[0].trouble, None);
        });
    }
}
