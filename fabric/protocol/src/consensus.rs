//! Uniform agreement of processes of which some may die: one member's machine, without a network or a clock.
//!
//! The lowest member that is not known to be lost *leads*. It collects a value of every member that lives, combines
//! them, and offers the result; when every member that lives has accepted it, the result is decided. So whoever has
//! decided knows that all who live have accepted the same. A member that takes over, because those below it are lost,
//! collects once more: who has accepted something says so, and what was accepted from the highest leader goes before
//! everything else. Who has decided answers with that.
//!
//! What makes it right: nobody is taken for lost who lives, everybody learns in the end who is lost, and nothing of a
//! member is heard any more once it is known to be lost.

/// What is agreed on. Each word is combined in its own way; see [`AgreedValue::combine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreedValue {
    /// Bits that all members set.
    pub all: u64,
    /// The highest number.
    pub highest: u64,
    /// Members known to be lost to anybody.
    pub lost: Members,
    /// Members whose loss everybody has acknowledged.
    pub acknowledged: Members,
}

/// A set of members, one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members(Vec<u64>);

impl Members {
    pub fn none(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    pub fn insert(&mut self, member: usize) {
        self.0[member / 64] |= 1 << (member % 64);
    }

    pub fn contains(&self, member: usize) -> bool {
        self.0.get(member / 64).is_some_and(|word| word >> (member % 64) & 1 != 0)
    }

    /// Whether all of these are in `other`.
    pub fn are_in(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, other)| mine & !other == 0)
    }
}

impl AgreedValue {
    fn combine(&mut self, other: &Self) {
        self.all &= other.all;
        self.highest = self.highest.max(other.highest);
        self.lost.0.iter_mut().zip(&other.lost.0).for_each(|(mine, other)| *mine |= other);
        self.acknowledged.0.iter_mut().zip(&other.acknowledged.0).for_each(|(mine, other)| *mine &= other);
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        [self.all, self.highest]
            .into_iter()
            .chain(self.lost.0.iter().copied())
            .chain(self.acknowledged.0.iter().copied())
    }

    /// What a member of `size` has written.
    fn read(words: &[u64], size: usize) -> Option<Self> {
        let [all, highest, rest @ ..] = words else { return None };
        let (lost, acknowledged) = rest.split_at_checked(size.div_ceil(64))?;
        let fits = acknowledged.len() == lost.len();
        let members = |words: &[u64]| Members(words.to_vec());
        fits.then(|| Self { all: *all, highest: *highest, lost: members(lost), acknowledged: members(acknowledged) })
    }
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsensusWord {
    /// To the leader: what I bring, or what I have accepted, and from which leader.
    Bring {
        accepted: Option<u32>,
        value: AgreedValue,
    },
    /// The leader's.
    Offer(AgreedValue),
    Accepted,
    Decided(AgreedValue),
    /// The leader's, who has just become it: whoever has decided says so.
    Lead,
}

impl ConsensusWord {
    /// As it travels: kind and leader in the first word.
    pub fn words(&self) -> Vec<u64> {
        let with = |kind: u64, value: &AgreedValue| std::iter::once(kind).chain(value.words()).collect();
        match self {
            Self::Bring { accepted, value } => with(accepted.map_or(0, |from| u64::from(from) + 1) << 8, value),
            Self::Offer(value) => with(1, value),
            Self::Accepted => vec![2],
            Self::Decided(value) => with(3, value),
            Self::Lead => vec![4],
        }
    }

    /// What a peer has written, in an agreement of `size`; `None` if it is no word.
    pub fn read(words: &[u64], size: usize) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        let value = || AgreedValue::read(rest, size);
        Some(match first & 0xff {
            0 => {
                let accepted = (first >> 8).checked_sub(1).map(u32::try_from).transpose().ok()?;
                Self::Bring { accepted, value: value()? }
            }
            1 => Self::Offer(value()?),
            2 => Self::Accepted,
            3 => Self::Decided(value()?),
            4 => Self::Lead,
            _ => return None,
        })
    }
}

/// One member's part in one agreement.
pub struct ConsensusMachine {
    me: usize,
    lost: Members,
    size: usize,
    /// What this member brings.
    mine: AgreedValue,
    /// What it has accepted, from whom.
    accepted: Option<(u32, AgreedValue)>,
    /// Whom it has brought its part to.
    follows: Option<usize>,
    /// Who waits for a word of this member: has brought it something, or leads.
    asked: Members,
    /// As a leader: what each has brought.
    brought: Vec<Option<(Option<u32>, AgreedValue)>>,
    /// As a leader: what is offered, and who has accepted it.
    offered: Option<(AgreedValue, Members)>,
    decided: Option<AgreedValue>,
    out: Vec<(usize, ConsensusWord)>,
}

impl ConsensusMachine {
    /// A member that begins, and brings this.
    pub fn new(me: usize, size: usize, mine: AgreedValue) -> Self {
        let mut machine = Self {
            me,
            size,
            lost: Members::none(size),
            mine,
            accepted: None,
            follows: None,
            asked: Members::none(size),
            brought: vec![None; size],
            offered: None,
            decided: None,
            out: Vec::new(),
        };
        machine.step();
        machine
    }

    /// The result.
    pub fn decided(&self) -> Option<&AgreedValue> {
        self.decided.as_ref()
    }

    /// The next word to say, and to whom.
    pub fn poll_word(&mut self) -> Option<(usize, ConsensusWord)> {
        if self.out.is_empty() { None } else { Some(self.out.remove(0)) }
    }

    /// A member is lost. Nothing of it may be fed in after this.
    pub fn handle_lost(&mut self, member: usize) {
        if !self.lost.contains(member) {
            self.lost.insert(member);
            self.step();
        }
    }

    pub fn handle_word(&mut self, from: usize, word: ConsensusWord) {
        if self.lost.contains(from) {
            return;
        }
        if let Some(decided) = &self.decided {
            if matches!(word, ConsensusWord::Bring { .. } | ConsensusWord::Lead) {
                self.out.push((from, ConsensusWord::Decided(decided.clone())));
            }
            return;
        }
        if matches!(word, ConsensusWord::Bring { .. } | ConsensusWord::Lead) {
            self.asked.insert(from);
        }
        match word {
            ConsensusWord::Bring { accepted, value } => self.brought[from] = Some((accepted, value)),
            // A leader above the one that we have brought our part to is not one yet for us, and will ask again.
            ConsensusWord::Offer(value) if self.follows == Some(from) => {
                self.accepted = Some((from as u32, value));
                self.out.push((from, ConsensusWord::Accepted));
            }
            ConsensusWord::Accepted => {
                if let Some((_, accepted)) = &mut self.offered {
                    accepted.insert(from);
                }
            }
            ConsensusWord::Decided(value) => self.pass_on(value),
            ConsensusWord::Offer(_) | ConsensusWord::Lead => {}
        }
        self.step();
    }

    /// A leader has decided. Who has asked knew that it is lost before we heard this last word of it.
    fn pass_on(&mut self, value: AgreedValue) {
        let asked: Vec<usize> = self.living().filter(|member| self.asked.contains(*member)).collect();
        self.out.extend(asked.into_iter().map(|member| (member, ConsensusWord::Decided(value.clone()))));
        self.decide(value);
    }

    fn living(&self) -> impl Iterator<Item = usize> {
        (0..self.size).filter(|member| !self.lost.contains(*member))
    }

    fn decide(&mut self, value: AgreedValue) {
        if self.decided.is_none() {
            self.decided = Some(value);
        }
    }

    /// Does what is due.
    fn step(&mut self) {
        if self.decided.is_some() {
            return;
        }
        let leader = self.living().next().unwrap_or(self.me);
        if self.follows != Some(leader) {
            self.follow(leader);
        }
        if leader == self.me {
            self.lead();
        }
    }

    fn follow(&mut self, leader: usize) {
        self.follows = Some(leader);
        let (accepted, value) = match &self.accepted {
            Some((from, value)) => (Some(*from), value.clone()),
            None => (None, self.mine.clone()),
        };
        if leader != self.me {
            return self.out.push((leader, ConsensusWord::Bring { accepted, value }));
        }
        self.brought[leader] = Some((accepted, value));
        // Those below may have decided something with others before they were lost.
        if leader > 0 {
            let others: Vec<usize> = self.living().filter(|member| *member != self.me).collect();
            self.out.extend(others.into_iter().map(|member| (member, ConsensusWord::Lead)));
        }
    }

    fn lead(&mut self) {
        if self.offered.is_none() && self.living().all(|member| self.brought[member].is_some()) {
            let value = self.choose();
            let mut accepted = Members::none(self.size);
            accepted.insert(self.me);
            self.accepted = Some((self.me as u32, value.clone()));
            let others: Vec<usize> = self.living().filter(|member| *member != self.me).collect();
            self.out.extend(others.into_iter().map(|member| (member, ConsensusWord::Offer(value.clone()))));
            self.offered = Some((value, accepted));
        }
        let Some((value, accepted)) = &self.offered else { return };
        if self.living().all(|member| accepted.contains(member)) {
            let value = value.clone();
            let others: Vec<usize> = self.living().filter(|member| *member != self.me).collect();
            self.out.extend(others.into_iter().map(|member| (member, ConsensusWord::Decided(value.clone()))));
            self.decide(value);
        }
    }

    /// What the highest leader had offered to anybody who lives; otherwise everything that was brought, also by members
    /// that are lost meanwhile.
    fn choose(&self) -> AgreedValue {
        let accepted = self.brought.iter().flatten().filter_map(|(from, value)| from.map(|from| (from, value)));
        if let Some((_, value)) = accepted.max_by_key(|(from, _)| *from) {
            return value.clone();
        }
        let mut value = self.mine.clone();
        self.brought.iter().flatten().for_each(|(_, brought)| value.combine(brought));
        (0..self.size).filter(|member| self.lost.contains(*member)).for_each(|member| value.lost.insert(member));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A network that brings the words of each pair in order, and loses what a dead member had not yet delivered from
    /// some point on.
    struct Net {
        machines: Vec<Option<ConsensusMachine>>,
        decided: Vec<Option<AgreedValue>>,
        wires: Vec<VecDeque<ConsensusWord>>,
        /// Who has heard of whose death.
        knows: Vec<Members>,
        size: usize,
        random: u64,
    }

    impl Net {
        fn next(&mut self, below: usize) -> usize {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 20) as usize % below
        }

        fn value(&mut self, me: usize) -> AgreedValue {
            let bits = self.next(1 << 16) as u64 | 1 << 40;
            let (lost, acknowledged) = (self.knows[me].clone(), Members::none(self.size));
            AgreedValue { all: bits, highest: self.next(1000) as u64, lost, acknowledged }
        }

        fn drain(&mut self, me: usize) {
            let Some(machine) = &mut self.machines[me] else { return };
            while let Some((to, word)) = machine.poll_word() {
                let copy = ConsensusWord::read(&word.words(), self.size).expect("what is written is read");
                assert_eq!(copy, word);
                self.wires[me * self.size + to].push_back(copy);
            }
            if self.decided[me].is_none() {
                self.decided[me] = machine.decided().cloned();
            } else {
                assert_eq!(self.decided[me].as_ref(), machine.decided());
            }
        }
    }

    fn run(seed: u64, size: usize, deaths: usize) {
        let mut net = Net {
            machines: (0..size).map(|_| None).collect(),
            decided: vec![None; size],
            wires: (0..size * size).map(|_| VecDeque::new()).collect(),
            knows: vec![Members::none(size); size],
            size,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        };
        let (mut dead, mut started) = (Members::none(size), Members::none(size));
        let mut deaths = deaths.min(size - 1);
        let mut held: Vec<Vec<(usize, ConsensusWord)>> = vec![Vec::new(); size];
        for step in 0.. {
            assert!(step < 200_000, "seed {seed}: never ends");
            let me = net.next(size);
            if dead.contains(me) {
                continue;
            }
            if (0..size).all(|member| dead.contains(member) || net.decided[member].is_some()) {
                break;
            }
            match net.next(40) {
                0 if deaths > 0 => {
                    // Some of what it has said is on its way for ever.
                    dead.insert(me);
                    deaths -= 1;
                    for to in 0..size {
                        let keep = net.next(4);
                        net.wires[me * size + to].truncate(keep);
                    }
                }
                1..=5 if !started.contains(me) => {
                    started.insert(me);
                    let mine = net.value(me);
                    let mut machine = ConsensusMachine::new(me, size, mine);
                    let known = net.knows[me].clone();
                    (0..size).filter(|other| known.contains(*other)).for_each(|other| machine.handle_lost(other));
                    std::mem::take(&mut held[me]).into_iter().for_each(|(from, word)| machine.handle_word(from, word));
                    net.machines[me] = Some(machine);
                }
                6..=8 => {
                    let other = net.next(size);
                    if dead.contains(other) && !net.knows[me].contains(other) {
                        net.knows[me].insert(other);
                        if let Some(machine) = &mut net.machines[me] {
                            machine.handle_lost(other);
                        }
                    }
                }
                _ => {
                    let from = net.next(size);
                    if net.knows[me].contains(from) {
                        continue;
                    }
                    if let Some(word) = net.wires[from * size + me].pop_front() {
                        match &mut net.machines[me] {
                            Some(machine) => machine.handle_word(from, word),
                            None => held[me].push((from, word)),
                        }
                    }
                }
            }
            net.drain(me);
        }
        let all: Vec<&AgreedValue> = net.decided.iter().flatten().collect();
        assert!(all.windows(2).all(|two| two[0] == two[1]), "seed {seed}: {all:?}");
    }

    #[test]
    fn all_decide_the_same_whoever_dies_when() {
        let seeds = std::env::var("WEFT_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000u64);
        for seed in 0..seeds {
            run(seed, 2 + seed as usize % 6, (seed / 7) as usize % 6);
        }
    }

    /// Three members of which the first has decided, and died before the one at `without` heard of it.
    fn decided_without(without: usize) -> ([ConsensusMachine; 2], ConsensusWord) {
        let value = AgreedValue { all: 5, highest: 3, lost: Members::none(3), acknowledged: Members::none(3) };
        let mut all: Vec<ConsensusMachine> = (0..3).map(|me| ConsensusMachine::new(me, 3, value.clone())).collect();
        loop {
            for from in 0..3 {
                while let Some((to, word)) = all[from].poll_word() {
                    match word {
                        ConsensusWord::Decided(_) if to != without => {
                            let others = all.split_off(1);
                            return (others.try_into().unwrap_or_else(|_| panic!("two")), word);
                        }
                        ConsensusWord::Decided(_) => {}
                        word => all[to].handle_word(from, word),
                    }
                }
            }
        }
    }

    /// The one that leads now asks before the last word of the first has come.
    #[test]
    fn who_leads_hears_what_comes_later_from_the_one_before() {
        let ([mut second, mut third], decided) = decided_without(1);
        second.handle_lost(0);
        assert_eq!(second.poll_word(), Some((2, ConsensusWord::Lead)));
        third.handle_word(1, ConsensusWord::Lead);
        assert_eq!(third.poll_word(), None);
        third.handle_word(0, decided.clone());
        assert_eq!(third.poll_word(), Some((1, decided)));
    }

    /// The one that is to lead now does not know it yet, and hears the last word of the first before it does.
    #[test]
    fn who_has_brought_its_part_to_the_next_one_hears_what_that_one_hears() {
        let ([mut second, mut third], decided) = decided_without(2);
        third.handle_lost(0);
        let Some((1, brought)) = third.poll_word() else { panic!("it follows the next one") };
        second.handle_word(2, brought);
        second.handle_word(0, decided.clone());
        assert_eq!(second.poll_word(), Some((2, decided)));
    }

    #[test]
    fn what_nobody_has_written_is_refused() {
        assert_eq!(ConsensusWord::read(&[], 3), None);
        assert_eq!(ConsensusWord::read(&[9], 3), None);
        assert_eq!(ConsensusWord::read(&[1, 2, 3, 4], 3), None);
        assert_eq!(ConsensusWord::read(&[1 << 50, 2, 3, 4, 5], 3), None);
    }
}
