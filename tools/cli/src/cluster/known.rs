//! Users and groups that a cluster's file names and this host does not know. Other members may know them, so that is no
//! mistake; but a name that was mistyped would be of no use to anybody.

use super::FRONT;
use nix::unistd::{Group, User};
use weft_database::{Partition, Reservation};

/// Warns of those of partitions and reservations.
pub fn warn_of_unknown(partitions: &[Partition], reservations: &[Reservation]) {
    let is_user = |name: &str| !matches!(User::from_name(name), Ok(None));
    let is_group = |name: &str| !matches!(Group::from_name(name), Ok(None));
    unknown(partitions, reservations, is_user, is_group).iter().for_each(|line| eprintln!("{FRONT}: {line}"));
}

fn unknown(
    partitions: &[Partition],
    reservations: &[Reservation],
    is_user: impl Fn(&str) -> bool,
    is_group: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut look = |place: String, kind: &str, names: &[String], is_known: &dyn Fn(&str) -> bool| {
        for name in names.iter().filter(|name| !is_known(name)) {
            lines.push(format!("warning: {place}: {kind} '{name}' is not known on this host"));
        }
    };
    for partition in partitions {
        let place = || format!("partition '{}'", partition.name);
        look(place(), "user", partition.users.as_deref().unwrap_or_default(), &is_user);
        look(place(), "group", partition.groups.as_deref().unwrap_or_default(), &is_group);
    }
    for one in reservations {
        look(format!("reservation '{}'", one.name), "user", &one.users, &is_user);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_has_here_are_told_with_their_places() {
        let text = "name = \"lab\"\nversion = 1\n[[member]]\nname = \"a\"\n[[partition]]\nname = \"all\"\n\
                    users = [\"ann\", \"nosuch\"]\ngroups = [\"staff\", \"none\"]\n[[reservation]]\nname = \"c1\"\n\
                    partition = \"all\"\nfrom = 2026-11-27T09:00:00Z\nuntil = 2026-11-27T10:00:00Z\nusers = [\"bob\"]\n";
        let cluster = weft_database::read(text).expect("a cluster");
        assert_eq!(
            unknown(&cluster.partitions, &cluster.reservations, |name| name == "ann", |name| name == "staff"),
            [
                "warning: partition 'all': user 'nosuch' is not known on this host",
                "warning: partition 'all': group 'none' is not known on this host",
                "warning: reservation 'c1': user 'bob' is not known on this host",
            ]
        );
    }
}
