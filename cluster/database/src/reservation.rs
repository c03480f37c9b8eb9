//! Reservations by hand: for a while, slots of a partition are for some users only.

use crate::{Member, Partition};
use toml::value::{Date, Datetime, Offset, Time};
use weft_cluster::hosts::SlotHost;

/// From `from` until `until` these slots are for these users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub name: String,
    pub partition: String,
    /// How many slots, where it does not name members.
    pub slots: Option<usize>,
    /// Members, with the slots that are reserved there.
    pub hosts: Vec<SlotHost>,
    /// In seconds since 1970.
    pub from: u64,
    pub until: u64,
    /// Nobody's, where there are none: then the hosts are kept free.
    pub users: Vec<String>,
}

impl Reservation {
    /// Whether it holds at any time between these two.
    pub fn is_between(&self, from: u64, until: u64) -> bool {
        self.from < until && from < self.until
    }

    pub fn is_for(&self, user: &str) -> bool {
        self.users.iter().any(|one| one == user)
    }

    /// Slots that it has on a member.
    pub fn slots_on(&self, member: &str) -> usize {
        self.hosts.iter().filter(|host| host.name == member).map(|host| host.slots).sum()
    }
}

/// All slots of these members.
pub(crate) fn whole<'m>(members: impl Iterator<Item = &'m Member>) -> Vec<SlotHost> {
    members.map(Member::host).collect()
}

/// So many slots of a partition: of its last members, since the first ones are filled first. Fewer where it has not as
/// many.
pub(crate) fn last_slots(partition: &Partition, mut slots: usize) -> Vec<SlotHost> {
    let mut hosts = Vec::new();
    for host in partition.hosts.iter().rev().filter(|host| host.slots > 0) {
        let taken = host.slots.min(slots);
        if taken == 0 {
            break;
        }
        slots -= taken;
        hosts.push(SlotHost { slots: taken, ..host.clone() });
    }
    hosts
}

const DAY: i64 = 86400;
/// Days from the first of March of the year 0, with which the arithmetic begins, to 1970.
const TO_1970: i64 = 719_468;
/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// The seconds since 1970 of a date with a time and an offset, as in `2026-11-27T09:00:00+01:00`.
pub fn read_moment(text: &str) -> Option<u64> {
    moment(text.parse().ok()?)
}

pub(crate) fn moment(given: Datetime) -> Option<u64> {
    let Datetime { date: Some(date), time: Some(time), offset: Some(offset) } = given else { return None };
    let minutes = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    // Years are counted from March: the day that some have more is their last then.
    let (year, month) = (i64::from(date.year) - i64::from(date.month <= 2), (i64::from(date.month) + 9) % 12);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + i64::from(date.day) - 1;
    let days = era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - TO_1970;
    let second = i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second.unwrap_or(0));
    u64::try_from(days * DAY + second - minutes * 60).ok()
}

/// The same as it is read again, in universal time.
pub fn show_moment(moment: u64) -> String {
    let moment = i64::try_from(moment).unwrap_or(i64::MAX).min(253_402_300_799);
    let (days, second) = (moment.div_euclid(DAY) + TO_1970, moment.rem_euclid(DAY));
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let date = Date { year: (era * 400 + year + i64::from(month <= 2)) as u16, month: month as u8, day: day as u8 };
    let part = |length: i64, of: i64| (second / length % of) as u8;
    let time = Time { hour: part(3600, 24), minute: part(60, 60), second: Some(part(1, 60)), nanosecond: None };
    Datetime { date: Some(date), time: Some(time), offset: Some(Offset::Z) }.to_string()
}
