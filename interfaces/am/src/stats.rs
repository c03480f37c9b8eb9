//! What an endpoint counts: the C type `amudp_stats_t`. Nothing is sent twice, so what tells of that is always 0.

use crate::message::AmCategory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    pub requests_sent: [u64; 3],
    pub replies_sent: [u64; 3],
    requests_sent_again: [u64; 3],
    replies_sent_again: [u64; 3],
    replies_squashed: [u64; 3],
    pub requests_received: [u64; 3],
    pub replies_received: [u64; 3],
    pub returned: u64,
    out_of_order: [u64; 2],
    /// Least, most, sum: not measured.
    latency: [u64; 3],
    request_bytes: [u64; 3],
    reply_bytes: [u64; 3],
    request_bytes_in_all: [u64; 3],
    reply_bytes_in_all: [u64; 3],
    bytes_in_all: u64,
}

impl Stats {
    pub const INITIAL: Self = Self {
        requests_sent: [0; 3],
        replies_sent: [0; 3],
        requests_sent_again: [0; 3],
        replies_sent_again: [0; 3],
        replies_squashed: [0; 3],
        requests_received: [0; 3],
        replies_received: [0; 3],
        returned: 0,
        out_of_order: [0; 2],
        latency: [u64::MAX, 0, 0],
        request_bytes: [0; 3],
        reply_bytes: [0; 3],
        request_bytes_in_all: [0; 3],
        reply_bytes_in_all: [0; 3],
        bytes_in_all: 0,
    };

    /// A message was sent: arguments and bytes of the user, and what went in front of them.
    #[inline]
    pub fn sent(&mut self, is_request: bool, category: AmCategory, data: usize, front: usize) {
        let at = category as usize;
        let all = (data + front) as u64;
        let (sent, bytes, in_all) = match is_request {
            true => (&mut self.requests_sent, &mut self.request_bytes, &mut self.request_bytes_in_all),
            false => (&mut self.replies_sent, &mut self.reply_bytes, &mut self.reply_bytes_in_all),
        };
        sent[at] += 1;
        bytes[at] += data as u64;
        in_all[at] += all;
        self.bytes_in_all += all;
    }

    #[inline]
    pub fn received(&mut self, is_request: bool, category: AmCategory) {
        let received = if is_request { &mut self.requests_received } else { &mut self.replies_received };
        received[category as usize] += 1;
    }

    /// Adds what another endpoint has counted.
    pub fn add(&mut self, more: &Self) {
        let pairs = [
            (&mut self.requests_sent, &more.requests_sent),
            (&mut self.replies_sent, &more.replies_sent),
            (&mut self.requests_received, &more.requests_received),
            (&mut self.replies_received, &more.replies_received),
            (&mut self.request_bytes, &more.request_bytes),
            (&mut self.reply_bytes, &more.reply_bytes),
            (&mut self.request_bytes_in_all, &more.request_bytes_in_all),
            (&mut self.reply_bytes_in_all, &more.reply_bytes_in_all),
        ];
        for (sums, more) in pairs {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.wrapping_add(*more));
        }
        self.returned = self.returned.wrapping_add(more.returned);
        self.bytes_in_all = self.bytes_in_all.wrapping_add(more.bytes_in_all);
    }

    /// For people.
    pub fn text(&self) -> String {
        let line = |what: &str, counts: &[u64; 3]| {
            format!(" {what:<18} {:>10} short {:>10} medium {:>10} long\n", counts[0], counts[1], counts[2])
        };
        [
            line("requests sent", &self.requests_sent),
            line("replies sent", &self.replies_sent),
            line("requests received", &self.requests_received),
            line("replies received", &self.replies_received),
            format!(" {:<18} {:>10}\n", "messages returned", self.returned),
            format!(" {:<18} {:>10}\n", "bytes sent", self.bytes_in_all),
        ]
        .concat()
    }
}

const _: () = assert!(size_of::<Stats>() == 8 * (7 * 3 + 1 + 2 + 3 + 4 * 3 + 1));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_all() {
        let mut one = Stats::INITIAL;
        one.sent(true, AmCategory::Medium, 108, 16);
        let mut other = one;
        other.sent(false, AmCategory::Long, 1, 0);
        other.returned = 1;
        one.add(&other);
        assert_eq!((one.requests_sent, one.replies_sent), ([0, 2, 0], [0, 0, 1]));
        assert_eq!((one.returned, one.bytes_in_all), (1, 249));
        assert!(one.text().contains("bytes sent                249"), "{}", one.text());
    }
}
