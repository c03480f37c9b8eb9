//! Jobs on several hosts: their hosts are added to the machine, and their ranks wait until all of these are there.
//!
//! A rank of the job's first host comes first, since that is where the machine is, or is started. Who comes before is
//! to come again.

use super::tasks::MOST_RANKS;
use super::{ClientNumber, VirtualMachine};
use crate::code;
use crate::frame::{ByteString, Introduction};

/// A job of which not all hosts are there.
pub struct Gathering {
    job: u64,
    /// The number of its first host in the machine, and the names of the others.
    first: u32,
    others: Vec<ByteString>,
    /// By rank: the index of its host.
    places: Vec<u32>,
    ranks: Vec<(ClientNumber, Introduction)>,
}

impl VirtualMachine {
    /// A rank of a job that is not known yet.
    pub(super) fn gather(&mut self, client: ClientNumber, who: Introduction) {
        let Introduction { job, rank, size, ref hosts, ref places, .. } = who;
        let fits = (2..=MOST_RANKS).contains(&size)
            && places.len() == size as usize
            && places.iter().all(|place| (*place as usize) < hosts.len());
        let Some(place) = places.get(rank as usize).filter(|_| fits) else {
            return self.answer_code(client, code::BAD_PARAM);
        };
        if let Some(gathering) = self.gathering.iter_mut().find(|gathering| gathering.job == job) {
            gathering.ranks.push((client, who));
            return;
        }
        if *place != 0 {
            return self.answer_code(client, code::NO_HOST);
        }
        let (others, places) = (hosts[1..].to_vec(), places.clone());
        let is_new = |name: &&ByteString| self.hosts.status(&name.text()) == code::NO_HOST;
        let new = others.iter().filter(is_new).cloned().collect();
        self.gathering.push(Gathering { job, first: client.0, others, places, ranks: vec![(client, who)] });
        self.add_hosts(None, new);
        self.finish_gathering();
    }

    /// Lets those in whose hosts are all there.
    pub(super) fn finish_gathering(&mut self) {
        let hosts = &self.hosts;
        let is_there =
            |gathering: &mut Gathering| gathering.others.iter().all(|name| hosts.status(&name.text()) == code::OK);
        let complete: Vec<Gathering> = self.gathering.extract_if(.., is_there).collect();
        for Gathering { job, first, others, places, ranks } in complete {
            let number = |place: &u32| match place.checked_sub(1) {
                None => Some(first),
                Some(other) => self.hosts.named(&others.get(other as usize)?.text()),
            };
            let numbers: Option<Vec<u32>> = places.iter().map(number).collect();
            let added = numbers.and_then(|numbers| self.tasks.add_job(job, &numbers));
            for (client, who) in ranks {
                match added {
                    Some(()) => self.enrol(client, who),
                    None => self.answer_code(client, code::OUT_OF_RES),
                }
            }
        }
    }

    /// A host is not there: whoever waits for one waits in vain.
    pub(super) fn refuse_gathered(&mut self, code: i32) {
        for Gathering { ranks, .. } in std::mem::take(&mut self.gathering) {
            ranks.into_iter().for_each(|(client, _)| self.answer_code(client, code));
        }
    }

    pub(super) fn forget_gathered(&mut self, client: ClientNumber) {
        for gathering in &mut self.gathering {
            gathering.ranks.retain(|(of, _)| *of != client);
        }
        self.gathering.retain(|gathering| !gathering.ranks.is_empty());
    }
}
