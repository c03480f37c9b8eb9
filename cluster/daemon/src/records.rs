//! What must last: the jobs that run and have run, and the last database that was good. In SQLite, so that a daemon
//! that is killed at any moment finds all of it again.

use crate::log;
use anyhow::{Context, Result, anyhow};
use rusqlite::{Connection, OptionalExtension, params};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;
use weft_records::JobRecord;
use weft_requests::{JobName, JobView};

const SCHEMA: &str = "
    create table if not exists jobs (
        number integer primary key autoincrement,
        user text not null,
        uid integer not null,
        view text not null,
        until integer,
        pid integer not null,
        began integer not null,
        ended integer,
        record text
    );
    create index if not exists running on jobs (ended) where ended is null;
    create table if not exists logs (number integer primary key, finish integer not null, bytes blob not null);
    create table if not exists facts (name text primary key, value text not null);
";

/// The names of facts that are doors begin so, and this comes behind all of them.
const DOOR: &str = "door/";
const DOORS_END: &str = "door0";

/// How long somebody else may have the file: who is killed has it no more.
const IN_USE: Duration = Duration::from_millis(200);

/// Jobs that are kept, and how often the older ones are taken out.
const MOST_KEPT: i64 = 100_000;
const PRUNE_EVERY: u64 = 1000;

/// What is kept of what they have written, of all together.
const MOST_LOG_BYTES: i64 = 256 << 20;

/// A job that runs, as it is found again.
#[derive(Clone, Debug, PartialEq)]
pub struct BegunJob {
    pub number: u64,
    pub uid: u32,
    pub view: JobView,
    pub until: Option<u64>,
    /// Its launcher, and when that began: the number alone may be somebody else's by now.
    pub pid: i32,
    pub began: u64,
}

pub struct Records {
    database: Connection,
}

impl Records {
    /// # Errors
    /// The file cannot be written, or is no database.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = || format!("'{}'", path.display());
        if let Some(folder) = path.parent() {
            // What users have run is for them and root.
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(failed)?;
        }
        let database = Connection::open(path).with_context(failed)?;
        database.busy_timeout(IN_USE)?;
        // What is written survives a killed daemon; a crash of the host may cost the last moments.
        // Nobody else has it: two daemons of one member would be one too many.
        database.pragma_update(None, "locking_mode", "exclusive")?;
        database.pragma_update(None, "journal_mode", "wal").map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy) => {
                anyhow!("'{}' is in use: a daemon of this member runs already", path.display())
            }
            _ => anyhow::Error::new(error).context(failed()),
        })?;
        database.pragma_update(None, "synchronous", "normal")?;
        database.pragma_update(None, "cache_size", 64)?;
        database.execute_batch(SCHEMA).with_context(failed)?;
        Ok(Self { database })
    }

    /// The number of a new job.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn begin(&self, job: &BegunJob) -> Result<()> {
        let view = serde_json::to_string(&job.view)?;
        let mut insert = self.database.prepare_cached(
            "insert into jobs (number, user, uid, view, until, pid, began) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        if job.number.is_multiple_of(PRUNE_EVERY) {
            self.prune(MOST_KEPT)?;
        }
        insert.execute(params![
            job.number as i64,
            job.view.user,
            job.uid,
            view,
            job.until.map(|until| until as i64),
            job.pid,
            job.began as i64
        ])?;
        Ok(())
    }

    /// The oldest make room, where more are kept. Numbers do not tell: what is no job has one, and is not kept.
    fn prune(&self, most: i64) -> Result<()> {
        self.database.execute(
            "delete from jobs where ended is not null and number <=
             (select number from jobs where ended is not null order by number desc limit 1 offset ?1)",
            [most],
        )?;
        self.database.execute(
            "delete from logs where number not in (select number from jobs) or number in (select number from
             (select number, sum(length(bytes)) over (order by number desc) as total from logs) where total > ?1)",
            [MOST_LOG_BYTES],
        )?;
        Ok(())
    }

    /// A job is over. A second time changes nothing.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn end(&self, number: u64, now: u64, record: &JobRecord) -> Result<()> {
        let record = serde_json::to_string(record)?;
        let mut update = self
            .database
            .prepare_cached("update jobs set ended = ?2, record = ?3 where number = ?1 and ended is null")?;
        update.execute(params![number as i64, now as i64, record])?;
        Ok(())
    }

    /// Nothing is kept of what was no job.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn forget_job(&self, number: u64) -> Result<()> {
        self.database.execute("delete from jobs where number = ?1", [number as i64])?;
        Ok(())
    }

    /// Keeps the last of what the ranks of a job have written, and where that ended.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn keep_log(&self, number: u64, end: u64, bytes: &[u8]) -> Result<()> {
        let mut insert = self.database.prepare_cached("insert or replace into logs values (?1, ?2, ?3)")?;
        insert.execute(params![number as i64, end as i64, bytes])?;
        Ok(())
    }

    /// What was kept so, if anything was.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn log(&self, number: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?));
        let select = "select finish, bytes from logs where number = ?1";
        Ok(self.database.query_row(select, [number as i64], row).optional()?)
    }

    /// Whose a job was that is known, and how many ranks it had.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn owner(&self, number: u64) -> Result<Option<(String, usize)>> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(0) as usize));
        let asked = "select user, json_extract(view, '$.size') from jobs where number = ?1";
        Ok(self.database.query_row(asked, [number as i64], row).optional()?)
    }

    /// The highest number of a job so far, also of one that is not kept.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_number(&self) -> Result<u64> {
        let highest = "select coalesce(max(seq), 0) from sqlite_sequence where name = 'jobs'";
        Ok(self.database.query_row(highest, [], |row| row.get::<_, i64>(0))? as u64)
    }

    /// Jobs that had not ended when the daemon did.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn running(&self) -> Result<Vec<BegunJob>> {
        let mut select =
            self.database.prepare("select number, uid, view, until, pid, began from jobs where ended is null")?;
        let rows = select.query_map([], |row| {
            let (number, view): (i64, String) = (row.get(0)?, row.get(2)?);
            let (until, began): (Option<i64>, i64) = (row.get(3)?, row.get(5)?);
            Ok((number as u64, row.get(1)?, view, until.map(|until| until as u64), row.get(4)?, began as u64))
        })?;
        let mut all = Vec::new();
        for row in rows {
            let (number, uid, view, until, pid, began) = row?;
            match serde_json::from_str(&view) {
                Ok(view) => all.push(BegunJob { number, uid, view, until, pid, began }),
                Err(error) => log::say(format!("the record of job {number} cannot be read: {error}")),
            }
        }
        Ok(all)
    }

    /// Records of jobs that have ended, the newest first: those of one user, or of all.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn ended(&self, user: Option<&str>, most: usize) -> Result<Vec<JobRecord>> {
        let mut select = self.database.prepare(
            "select record from jobs where ended is not null and (?1 is null or user = ?1) order by ended desc, number desc limit ?2",
        )?;
        let rows = select.query_map(params![user, most as i64], |row| row.get::<_, String>(0))?;
        let mut all = Vec::new();
        for row in rows {
            all.extend(serde_json::from_str(&row?).ok());
        }
        Ok(all)
    }

    /// # Errors
    /// Nothing can be written.
    pub fn remember(&self, name: &str, value: &str) -> Result<()> {
        self.database.execute("insert or replace into facts (name, value) values (?1, ?2)", params![name, value])?;
        Ok(())
    }

    /// # Errors
    /// Nothing can be written.
    pub fn forget(&self, name: &str) -> Result<()> {
        self.database.execute("delete from facts where name = ?1", params![name])?;
        Ok(())
    }

    /// A door of a job that takes turns.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn note_door(&self, job: &JobName, pid: i32, began: u64) -> Result<()> {
        self.remember(&format!("{DOOR}{pid}"), &serde_json::to_string(&(job, began))?)
    }

    /// # Errors
    /// Nothing can be written.
    pub fn forget_door(&self, pid: i32) -> Result<()> {
        self.forget(&format!("{DOOR}{pid}"))
    }

    /// Doors that were open: job, process, and when that began.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn doors(&self) -> Result<Vec<(JobName, i32, u64)>> {
        let mut select = self.database.prepare("select name, value from facts where name >= ?1 and name < ?2")?;
        let rows =
            select.query_map([DOOR, DOORS_END], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let mut all = Vec::new();
        for row in rows {
            let (name, value) = row?;
            let pid = name.strip_prefix(DOOR).and_then(|pid| pid.parse().ok());
            let read: Option<(JobName, u64)> = serde_json::from_str(&value).ok();
            all.extend(pid.zip(read).map(|(pid, (job, began))| (job, pid, began)));
        }
        Ok(all)
    }

    /// # Errors
    /// The file cannot be read.
    pub fn fact(&self, name: &str) -> Result<Option<String>> {
        let row = |row: &rusqlite::Row<'_>| row.get(0);
        Ok(self.database.query_row("select value from facts where name = ?1", [name], row).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(number: u64, uid: u32) -> BegunJob {
        let view = JobView {
            job: JobName::new("node1", number),
            kind: weft_requests::RegisteredKind::Job,
            pid: 12,
            user: "ann".to_owned(),
            partition: None,
            program: "./prog".to_owned(),
            arguments: vec!["a b".to_owned()],
            size: 2,
            hosts: vec![("node1".to_owned(), 2)],
            since: 7,
            until: None,
            priority: 0,
            id: "12-f".to_owned(),
            ranks: Vec::new(),
        };
        BegunJob { number, uid, view, until: Some(9), pid: 12, began: 34 }
    }

    #[test]
    fn a_job_is_found_again_until_it_has_ended_and_ends_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state/records");
        let first = Records::open(&path).expect("opened");
        assert_eq!(first.last_number().expect("read"), 0);
        for (number, uid) in [(1, 5), (2, 6)] {
            first.begin(&begun(number, uid)).expect("written");
        }
        let record = |exit_code| JobRecord { exit_code, ..JobRecord::default() };
        first.end(1, 10, &record(0)).expect("written");
        first.end(1, 11, &record(1)).expect("written");
        drop(first);
        let again = Records::open(&path).expect("opened");
        assert_eq!(again.running().expect("read"), vec![begun(2, 6)]);
        assert_eq!(again.last_number().expect("read"), 2);
        assert_eq!(again.ended(None, 10).expect("read"), vec![record(0)]);
        assert!(again.ended(Some("bob"), 10).expect("read").is_empty());
    }

    #[test]
    fn logs_are_kept_with_jobs() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::open(&folder.path().join("records")).expect("opened");
        records.begin(&begun(PRUNE_EVERY - 1, 5)).expect("written");
        records.keep_log(PRUNE_EVERY - 1, 9, b"last").expect("written");
        records.begin(&begun(PRUNE_EVERY, 5)).expect("written");
        assert_eq!(records.log(PRUNE_EVERY - 1).expect("read"), Some((9, b"last".to_vec())));
        assert_eq!(records.log(PRUNE_EVERY).expect("read"), None);
        assert_eq!(records.owner(PRUNE_EVERY).expect("read"), Some(("ann".to_owned(), 2)));
        assert_eq!(records.owner(7).expect("read"), None);
    }

    #[test]
    fn the_oldest_records_make_room_and_what_is_no_job_takes_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let records = Records::open(&path).expect("opened");
        for number in [1, 2, 3, 4] {
            records.begin(&begun(number, 5)).expect("written");
            let record = JobRecord { exit_code: number as i32, ..JobRecord::default() };
            records.end(number, 10, &record).expect("written");
            records.keep_log(number, 9, b"last").expect("written");
        }
        // This one goes on.
        records.begin(&begun(5, 5)).expect("written");
        for number in 1000..1010 {
            records.begin(&begun(number, 5)).expect("written");
            records.forget_job(number).expect("written");
        }
        let kept = || records.ended(None, 9).expect("read").iter().map(|record| record.exit_code).collect::<Vec<_>>();
        records.prune(4).expect("written");
        assert_eq!(kept(), [4, 3, 2, 1]);
        records.prune(2).expect("written");
        assert_eq!(kept(), [4, 3]);
        assert_eq!((records.log(2).expect("read"), records.log(3).expect("read").is_some()), (None, true));
        assert_eq!(records.running().expect("read").len(), 1);
        drop(records);
        assert_eq!(
            Records::open(&path).expect("opened").last_number().expect("read"),
            1009,
            "no number is given twice"
        );
    }

    #[test]
    fn doors_are_known_until_they_are_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::open(&folder.path().join("records")).expect("opened");
        records.remember("slots", "3").expect("written");
        let doors = [(JobName::new("a", 1), 7, 5), (JobName::new("b", 2), 70, 6)];
        doors.iter().for_each(|(job, pid, began)| records.note_door(job, *pid, *began).expect("written"));
        assert_eq!(records.doors().expect("read"), doors);
        records.forget_door(7).expect("written");
        assert_eq!(records.doors().expect("read"), doors[1..]);
    }

    #[test]
    fn facts_are_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::open(&folder.path().join("records")).expect("opened");
        assert_eq!(records.fact("slots").expect("read"), None);
        for value in ["1", "2"] {
            records.remember("slots", value).expect("written");
        }
        assert_eq!(records.fact("slots").expect("read").as_deref(), Some("2"));
        records.forget("slots").expect("written");
        assert_eq!(records.fact("slots").expect("read"), None);
    }
}
