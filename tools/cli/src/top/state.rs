//! What is chosen, and what keys do.

use ratatui::crossterm::event::KeyCode;
use weft_requests::{ClusterView, Demand, JobName, JobView, MemberView, RankView};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
/// How far a page goes.
const PAGE: isize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopPanel {
    #[default]
    Hosts,
    Jobs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOrder {
    /// As the database has them.
    #[default]
    Database,
    Load,
    Used,
    Trouble,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobOrder {
    /// The longest first.
    #[default]
    Time,
    Ranks,
    Blocked,
    User,
}

/// What a key asks for.
#[derive(Debug, PartialEq)]
pub enum TopAct {
    Quit,
    Ask(Demand),
}

/// What is done after a yes.
#[derive(Debug, PartialEq)]
pub struct Doubt {
    pub question: String,
    demand: Demand,
}

#[derive(Default)]
pub struct TopState {
    pub view: ClusterView,
    pub panel: TopPanel,
    pub host_order: HostOrder,
    pub job_order: JobOrder,
    /// By name, since lists move.
    pub host: Option<String>,
    pub job: Option<JobName>,
    pub doubt: Option<Doubt>,
    /// What became of the last demand.
    pub line: Option<String>,
    pub is_heard: bool,
}

impl TopState {
    pub fn handle_view(&mut self, view: ClusterView) {
        (self.view, self.is_heard) = (view, true);
        if self.place_of_host().is_none() {
            self.host = self.hosts().first().map(|member| member.name.clone());
        }
        if self.place_of_job().is_none() {
            self.job = self.jobs().first().map(|job| job.job.clone());
        }
    }

    pub fn handle_line(&mut self, line: String) {
        self.line = Some(line);
    }

    /// In the order in which they are shown.
    pub fn hosts(&self) -> Vec<&MemberView> {
        let mut hosts: Vec<&MemberView> = self.view.members.iter().collect();
        let load = |member: &MemberView| member.load.as_ref().map_or(-1.0, |load| load.load);
        match self.host_order {
            HostOrder::Database => {}
            HostOrder::Load => hosts.sort_by(|one, other| load(other).total_cmp(&load(one))),
            HostOrder::Used => hosts.sort_by_key(|member| std::cmp::Reverse(member.used)),
            HostOrder::Trouble => hosts.sort_by_key(|member| word(member) == "alive" && member.trouble.is_none()),
        }
        hosts
    }

    pub fn jobs(&self) -> Vec<&JobView> {
        let mut jobs: Vec<&JobView> = self.view.jobs.iter().collect();
        match self.job_order {
            JobOrder::Time => jobs.sort_by_key(|job| job.since),
            JobOrder::Ranks => jobs.sort_by_key(|job| std::cmp::Reverse(job.size)),
            JobOrder::Blocked => jobs.sort_by_key(|job| std::cmp::Reverse(blocked(job))),
            JobOrder::User => jobs.sort_by(|one, other| one.user.cmp(&other.user)),
        }
        jobs
    }

    pub fn place_of_host(&self) -> Option<usize> {
        let name = self.host.as_ref()?;
        self.hosts().iter().position(|member| member.name == *name)
    }

    pub fn place_of_job(&self) -> Option<usize> {
        let name = self.job.as_ref()?;
        self.jobs().iter().position(|job| job.job == *name)
    }

    pub fn chosen_job(&self) -> Option<&JobView> {
        self.view.jobs.iter().find(|job| Some(&job.job) == self.job.as_ref())
    }

    pub fn handle_key(&mut self, key: KeyCode) -> Option<TopAct> {
        if let Some(doubt) = self.doubt.take() {
            self.line = None;
            return matches!(key, KeyCode::Char('y' | 'Y')).then_some(TopAct::Ask(doubt.demand));
        }
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Some(TopAct::Quit),
            KeyCode::Tab | KeyCode::BackTab => {
                self.panel = if self.panel == TopPanel::Hosts { TopPanel::Jobs } else { TopPanel::Hosts };
            }
            KeyCode::Down => self.go(1),
            KeyCode::Up => self.go(-1),
            KeyCode::PageDown => self.go(PAGE),
            KeyCode::PageUp => self.go(-PAGE),
            KeyCode::Home => self.go(isize::MIN),
            KeyCode::End => self.go(isize::MAX),
            KeyCode::Char('s') => self.sort(),
            KeyCode::Char('k') => self.doubt = self.of_signal(SIGTERM, "end"),
            KeyCode::Char('K') => self.doubt = self.of_signal(SIGKILL, "kill"),
            KeyCode::Char('d') => self.doubt = self.of_drain(),
            _ => {}
        }
        None
    }

    fn go(&mut self, steps: isize) {
        let to =
            |at: Option<usize>, count: usize| at.unwrap_or(0).saturating_add_signed(steps).min(count.saturating_sub(1));
        match self.panel {
            TopPanel::Hosts => {
                let hosts = self.hosts();
                self.host = hosts.get(to(self.place_of_host(), hosts.len())).map(|member| member.name.clone());
            }
            TopPanel::Jobs => {
                let jobs = self.jobs();
                self.job = jobs.get(to(self.place_of_job(), jobs.len())).map(|job| job.job.clone());
            }
        }
    }

    fn sort(&mut self) {
        use {HostOrder as H, JobOrder as J};
        match self.panel {
            TopPanel::Hosts => {
                self.host_order = match self.host_order {
                    H::Database => H::Load,
                    H::Load => H::Used,
                    H::Used => H::Trouble,
                    H::Trouble => H::Database,
                }
            }
            TopPanel::Jobs => {
                self.job_order = match self.job_order {
                    J::Time => J::Ranks,
                    J::Ranks => J::Blocked,
                    J::Blocked => J::User,
                    J::User => J::Time,
                }
            }
        }
    }

    fn of_signal(&self, signal: i32, verb: &str) -> Option<Doubt> {
        let JobView { job, user, program, size, .. } = self.chosen_job()?;
        let question = format!("{verb} {job}, {program} of {user} with {size} ranks? [y/n]");
        Some(Doubt { question, demand: Demand::Signal { job: job.clone(), signal } })
    }

    fn of_drain(&self) -> Option<Doubt> {
        let member = self.view.members.iter().find(|member| Some(&member.name) == self.host.as_ref())?;
        let name = member.name.clone();
        let (question, slots) = if member.slots == 0 {
            (format!("let jobs in to {name} again? [y/n]"), None)
        } else {
            (format!("drain {name}: nothing new is placed there, what runs stays? [y/n]"), Some(0))
        };
        Some(Doubt { question, demand: Demand::Drain { member: name, slots } })
    }
}

/// What a host is, in a word.
pub fn word(member: &MemberView) -> &'static str {
    use weft_requests::MemberStanding as S;
    match member.standing {
        S::Alive if member.slots == 0 => "drained",
        S::Alive => "alive",
        S::Suspect => "silent",
        S::Dead => "dead",
        S::Unknown => "not seen",
    }
}

pub fn blocked(job: &JobView) -> usize {
    job.ranks.iter().filter(|rank| rank.blocked.is_some()).count()
}

/// Ranks that do the same.
pub struct Alike<'a> {
    pub what: &'a str,
    pub ranks: Vec<u32>,
    /// The longest of them, in seconds.
    pub seconds: f64,
}

/// What the ranks of a job do, the most frequent first.
pub fn alike(ranks: &[RankView]) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for rank in ranks {
        let what = rank.blocked.as_deref().unwrap_or("computes");
        match all.iter_mut().find(|group| group.what == what) {
            Some(group) => {
                group.ranks.push(rank.rank);
                group.seconds = group.seconds.max(rank.seconds);
            }
            None => all.push(Alike { what, ranks: vec![rank.rank], seconds: rank.seconds }),
        }
    }
    all.sort_by_key(|group| std::cmp::Reverse(group.ranks.len()));
    all
}

/// Numbers as ranges: `0-3,7`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let parts = sorted.chunk_by(|one, next| *next == one + 1).map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// A time in one or two units.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}
