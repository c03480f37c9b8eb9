//! What the daemon knows. What it does stands in the files that are named after it: a server's part in `server`, jobs
//! in `jobs`, other daemons in `reach` and `calls`, clients in `local`.
//!
//! Everything runs in one thread; a task for each connection and each call takes turns with the others where it waits.
//! Nothing is borrowed across such a point.

use crate::alive::Alive;
use crate::asker::Askers;
use crate::between::{Asker, DaemonLink};
use crate::door::Tickets;
use crate::file::{DatabaseFile, tag_of};
use crate::home::Home;
use crate::log;
use crate::orders::{OrderVerdict, Orders};
use crate::records::Records;
use crate::report::HostReport;
use crate::seal::Secret;
use crate::seen::Glance;
use crate::turns::state::Turns;
use anyhow::Result;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::{Notify, mpsc};
use weft_database::Cluster;
use weft_requests::{JobName, LoadView};

/// The setting of slots that somebody has made by hand.
const SLOTS: &str = "slots";

/// Records that are given at once.
const MOST_RECORDS: usize = 4096;

/// Who this daemon is.
pub struct Me {
    pub member: String,
    pub uid: u32,
    pub user: String,
    pub key: Secret,
    pub file: DatabaseFile,
}

/// Those who wait for a verdict, each with a number of its own.
#[derive(Default)]
pub struct Seekers {
    pub all: HashMap<JobName, (u64, mpsc::UnboundedSender<OrderVerdict>)>,
    /// The number of the last one.
    pub last: u64,
}

pub struct Daemon {
    pub me: Me,
    pub cluster: RefCell<(Rc<Cluster>, String)>,
    pub home: Home,
    /// Jobs of this host that may have been granted something and do not want it any more.
    pub lost: RefCell<Vec<JobName>>,
    pub tickets: RefCell<Tickets>,
    pub orders: RefCell<Orders>,
    /// Those who wait for a verdict of ours.
    pub seekers: RefCell<Seekers>,
    pub heard: RefCell<HashMap<String, HostReport>>,
    /// Members that are not alive, and since when.
    pub silent: RefCell<HashMap<String, Instant>>,
    pub links: RefCell<HashMap<String, Rc<DaemonLink>>>,
    pub alive: Alive,
    pub begun: Instant,
    pub records: Records,
    /// Slots that somebody has set by hand.
    slots: Cell<Option<usize>>,
    pub trouble: RefCell<Option<String>>,
    pub changed: Notify,
    /// Somebody who may has asked it to end.
    pub stop: Notify,
    pub askers: Askers,
    pub turns: Turns,
    pub glance: Glance,
}

impl Daemon {
    /// # Errors
    /// What must last cannot be read.
    pub fn new(me: Me, cluster: Cluster, text: String, records: Records) -> Result<Rc<Self>> {
        let slots = records.fact(SLOTS)?.and_then(|slots| slots.parse().ok());
        me.file.tag.set(tag_of(&text));
        let alive = Alive::new(&me.member, &names(&cluster), &me.key);
        let home = Home::default();
        home.count_from(records.last_number()?);
        let daemon = Rc::new(Self {
            me,
            cluster: RefCell::new((Rc::new(cluster), text)),
            home,
            lost: RefCell::default(),
            tickets: RefCell::default(),
            orders: RefCell::default(),
            seekers: RefCell::default(),
            heard: RefCell::default(),
            silent: RefCell::default(),
            links: RefCell::default(),
            alive,
            begun: Instant::now(),
            records,
            slots: Cell::new(slots),
            trouble: RefCell::default(),
            changed: Notify::new(),
            stop: Notify::new(),
            askers: Askers::default(),
            turns: Turns::default(),
            glance: Glance::default(),
        });
        daemon.find_jobs_again()?;
        daemon.find_turns_again()?;
        Ok(daemon)
    }

    pub fn cluster(&self) -> Rc<Cluster> {
        Rc::clone(&self.cluster.borrow().0)
    }

    pub fn cluster_name(&self) -> String {
        self.cluster.borrow().0.name.clone()
    }

    /// Writes what must last. A job goes on where that fails, and the failure is told once.
    pub fn keep(&self, write: impl FnOnce(&Records) -> Result<()>) {
        if let Err(error) = write(&self.records) {
            self.say_once(format!("records cannot be written: {error:#}"));
        }
    }

    /// Tells of another version, each once: whoever has it connects again and again.
    pub fn tell_of_version(&self, version: u8) {
        let ours = crate::seal::VERSION;
        self.say_once(format!("a daemon of version {version} has connected, and this is {ours}"));
    }

    /// Says what is wrong, unless it was the last thing that was.
    pub fn say_once(&self, told: String) {
        if self.trouble.borrow().as_ref() != Some(&told) {
            log::say(&told);
            *self.trouble.borrow_mut() = Some(told);
        }
    }

    /// Says as what it has begun.
    pub fn say_begun(&self) {
        let (Me { member, user, .. }, cluster, weft) = (&self.me, self.cluster(), env!("CARGO_PKG_VERSION"));
        let (name, version) = (&cluster.name, cluster.version);
        log::say(format!("begins as '{member}' of cluster '{name}', version {version}, user '{user}', weft {weft}"));
    }

    /// Lets the servers know soon.
    pub fn tell_of_change(&self) {
        self.changed.notify_one();
    }

    /// Slots that this host has by the database.
    pub fn usual_slots(&self) -> usize {
        self.cluster().member(&self.me.member).map_or(0, |member| member.slots)
    }

    /// Slots that this host has now.
    pub fn own_slots(&self) -> usize {
        let usual = self.usual_slots();
        self.slots.get().map_or(usual, |slots| slots.min(usual))
    }

    pub fn own_report(&self, load: LoadView) -> HostReport {
        HostReport {
            member: self.me.member.clone(),
            slots: self.own_slots(),
            load: LoadView { version: self.cluster().version, ..load },
            trouble: self.me.file.trouble().or_else(|| self.trouble.borrow().clone()),
            jobs: self.home.running(),
            text: self.me.file.tag.get(),
        }
    }

    /// Sets the slots of this host.
    pub fn set_slots(&self, slots: Option<usize>) {
        self.slots.set(slots);
        self.keep(|records| match slots {
            Some(slots) => records.remember(SLOTS, &slots.to_string()),
            None => records.forget(SLOTS),
        });
        self.tell_of_change();
    }

    /// Whether a client is one of ours: root's daemon serves all, another one its user and root.
    pub fn serves(&self, asker: &Asker) -> bool {
        self.me.uid == 0 || asker.uid == self.me.uid || asker.is_root()
    }

    /// Records of jobs, as an asker may see them.
    pub fn ended_jobs(&self, asker: &Asker, most: usize) -> Result<Vec<weft_records::JobRecord>> {
        let user = Some(&*asker.user).filter(|_| !asker.is_root());
        self.records.ended(user, most.min(MOST_RECORDS))
    }
}

/// The names of all members.
pub fn names(cluster: &Cluster) -> Vec<String> {
    cluster.members.iter().map(|member| member.name.clone()).collect()
}
