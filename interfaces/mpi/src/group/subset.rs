//! New groups out of old ones (MPI 5.0, section 7.3.2). Order matters everywhere: it becomes the ranks.

use super::Group;
use crate::error::{Class, Error, RANKS, Result};
use weft_fabric::Peer;

/// Members of `first`, then those of `second` that are not in `first`.
pub fn union(first: &Group, second: &Group) -> Vec<Peer> {
    let added = second.peers().filter(|&peer| first.rank_of(peer).is_none());
    first.peers().chain(added).collect()
}

/// Members of `first` that are (`inside`) or are not in `second`.
pub fn filter(first: &Group, second: &Group, inside: bool) -> Vec<Peer> {
    first.peers().filter(|&peer| second.rank_of(peer).is_some() == inside).collect()
}

fn check(group: &Group, ranks: &[i32]) -> Result<()> {
    let mut seen = vec![false; group.size() as usize];
    for &rank in ranks {
        let slot = usize::try_from(rank).ok().and_then(|rank| seen.get_mut(rank));
        let slot = slot.ok_or_else(|| {
            Error::outside(Class::Rank, format!("ranks holds {rank}"), "the group", RANKS, group.size() as usize)
        })?;
        if std::mem::replace(slot, true) {
            return Err(Error::new(Class::Rank, format!("ranks holds {rank} twice")));
        }
    }
    Ok(())
}

/// The members with these ranks, in the order of the list.
pub fn included(group: &Group, ranks: &[i32]) -> Result<Vec<Peer>> {
    check(group, ranks)?;
    Ok(ranks.iter().map(|&rank| group.peer(rank as u32)).collect())
}

/// The members without these ranks, in the order of the group.
pub fn excluded(group: &Group, ranks: &[i32]) -> Result<Vec<Peer>> {
    check(group, ranks)?;
    let mut kept = vec![true; group.size() as usize];
    ranks.iter().for_each(|&rank| kept[rank as usize] = false);
    Ok(group.peers().zip(kept).filter(|member| member.1).map(|member| member.0).collect())
}

/// The ranks that triplets (first, last, stride) stand for.
pub fn expand(group: &Group, ranges: &[[i32; 3]]) -> Result<Vec<i32>> {
    let mut ranks = Vec::new();
    for &[first, last, stride] in ranges {
        if stride == 0 {
            return Err(Error::new(Class::Arg, format!("range ({first}, {last}, 0) has stride 0")));
        }
        let (first, last, stride) = (i64::from(first), i64::from(last), i64::from(stride));
        let count = ((last - first) / stride + 1).max(0);
        if (last - first).signum() == -stride.signum() {
            continue;
        }
        if count > i64::from(group.size()) {
            let detail = format!("range ({first}, {last}, {stride}) holds {count} ranks, the group {}", group.size());
            return Err(Error::new(Class::Rank, detail));
        }
        ranks.extend((0..count).map(|step| (first + step * stride) as i32));
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::super::Likeness;
    use super::*;

    fn group(peers: &[u32]) -> Group {
        Group::new(peers.iter().map(|&peer| Peer(peer)).collect(), Peer(1))
    }

    fn numbers(peers: Vec<Peer>) -> Vec<u32> {
        peers.into_iter().map(|peer| peer.0).collect()
    }

    #[test]
    fn set_operations_keep_the_order_of_the_first_group() {
        let (a, b) = (group(&[4, 1, 3]), group(&[3, 7, 4]));
        assert_eq!(numbers(union(&a, &b)), [4, 1, 3, 7]);
        assert_eq!(numbers(filter(&a, &b, true)), [4, 3]);
        assert_eq!(numbers(filter(&a, &b, false)), [1]);
    }

    #[test]
    fn ranks_translate_both_ways() {
        let a = group(&[4, 1, 3]);
        assert_eq!((a.size(), a.mine(), a.peer(2)), (3, Some(1), Peer(3)));
        assert_eq!((a.rank_of(Peer(4)), a.rank_of(Peer(0))), (Some(0), None));
        let whole = group(&[0, 1, 2]);
        assert_eq!((whole.rank_of(Peer(2)), whole.rank_of(Peer(3)), whole.mine()), (Some(2), None, Some(1)));
    }

    #[test]
    fn ranks_outside_and_twice_are_refused() {
        let a = group(&[4, 1, 3]);
        assert_eq!(numbers(included(&a, &[2, 0]).unwrap()), [3, 4]);
        assert_eq!(numbers(excluded(&a, &[2, 0]).unwrap()), [1]);
        assert_eq!(included(&a, &[3]).unwrap_err().detail, "ranks holds 3, but the group has ranks 0 to 2");
        assert_eq!(excluded(&a, &[1, 1]).unwrap_err().detail, "ranks holds 1 twice");
        assert!(included(&a, &[-1]).is_err());
    }

    #[test]
    fn ranges_run_both_ways_and_may_be_empty() {
        let a = group(&[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(expand(&a, &[[0, 6, 3], [7, 4, -2], [3, 2, 1]]).unwrap(), [0, 3, 6, 7, 5]);
        assert!(expand(&a, &[[0, 3, 0]]).is_err());
        assert!(expand(&a, &[[0, i32::MAX, 1]]).is_err());
    }

    #[test]
    fn likeness_tells_order_from_membership() {
        assert_eq!(group(&[2, 1]).likeness(&group(&[2, 1])), Likeness::Congruent);
        assert_eq!(group(&[2, 1]).likeness(&group(&[1, 2])), Likeness::Similar);
        assert_eq!(group(&[2, 1]).likeness(&group(&[1, 3])), Likeness::Unequal);
    }
}
