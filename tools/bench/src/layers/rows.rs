//! The rows and columns of the table.

use crate::format::Unit;
use serde::Serialize;

named! {
    /// A row: a layer, or what it is held against.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Row {
        /// Bytes in order, no tags, no matching.
        Raw = "raw",
        /// Messages with tags, matched.
        Port = "port",
        /// TCP sockets of a preloaded program.
        Socket = "socket",
        /// The same, both ends in one process.
        SocketSelf = "socket to self",
        Mpi = "MPI",
        /// Ports of `libweft`.
        Native = "native ports",
        Pvm = "PVM",
        P4 = "P4",
        Tcgmsg = "TCGMSG",
        /// AM-II.
        ActiveMessages = "Active Messages",
        /// Fast Messages 2.x.
        FastMessages = "Fast Messages",
        /// Message passing of Panda 2.0.
        Panda = "Panda",
        Tcp = "kernel TCP",
        TcpSelf = "kernel TCP to self",
        Unix = "Unix socket",
        UnixSelf = "Unix socket to self",
    }
}

impl Row {
    /// Both ends are in one process: which core is how near does not matter.
    pub fn is_to_self(self) -> bool {
        matches!(self, Row::SocketSelf | Row::TcpSelf | Row::UnixSelf)
    }

    /// The interface as `c/interfacebench.c` names it, and its library; `None` where it has a program of its own.
    pub fn interface(self) -> Option<(&'static str, &'static str)> {
        match self {
            Row::Native => Some(("NATIVE", "weft")),
            Row::Pvm => Some(("PVM", "pvm3")),
            Row::P4 => Some(("P4", "p4")),
            Row::Tcgmsg => Some(("TCGMSG", "tcgmsg")),
            Row::ActiveMessages => Some(("AM", "am")),
            Row::FastMessages => Some(("FM", "fm")),
            Row::Panda => Some(("PANDA", "panda")),
            _ => None,
        }
    }

    /// Whether both processes may be started by `weft run` on hosts of their own.
    pub fn goes_between_hosts(self) -> bool {
        self == Row::Mpi || self.interface().is_some() && self != Row::Pvm
    }

    /// A socket of a preloaded program.
    pub fn is_preloaded(self) -> bool {
        matches!(self, Row::Socket | Row::SocketSelf)
    }
}

/// How messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficPattern {
    PingPong,
    Exchange,
}

impl TrafficPattern {
    /// As the measuring programs name it.
    pub fn word(self) -> &'static str {
        match self {
            TrafficPattern::PingPong => "pingpong",
            TrafficPattern::Exchange => "exchange",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    Pingpong,
    Exchange,
    PingpongRate,
    ExchangeRate,
}

/// Bytes of the messages whose time counts, and of those for throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LayerSizes {
    pub short: u32,
    pub long: u32,
}

impl Column {
    pub const ALL: [Column; 4] = [Column::Pingpong, Column::Exchange, Column::PingpongRate, Column::ExchangeRate];

    pub fn pattern(self) -> TrafficPattern {
        match self {
            Column::Pingpong | Column::PingpongRate => TrafficPattern::PingPong,
            Column::Exchange | Column::ExchangeRate => TrafficPattern::Exchange,
        }
    }

    fn is_rate(self) -> bool {
        matches!(self, Column::PingpongRate | Column::ExchangeRate)
    }

    pub fn unit(self) -> Unit {
        if self.is_rate() { Unit::BytesPerSecond } else { Unit::Seconds }
    }

    /// Bytes of a message.
    pub fn bytes(self, sizes: LayerSizes) -> u32 {
        if self.is_rate() { sizes.long } else { sizes.short }
    }

    pub fn title(self, sizes: LayerSizes) -> String {
        let what = if self.pattern() == TrafficPattern::PingPong { "one way" } else { "exchange" };
        format!("{what} {}", crate::format::size(self.bytes(sizes).into()))
    }

    /// What the table shows of a message that took so long: one way, or exchanged with another.
    pub fn value(self, seconds: f64, long: u32) -> f64 {
        match self {
            Column::Pingpong | Column::Exchange => seconds,
            Column::PingpongRate => f64::from(long) / seconds,
            Column::ExchangeRate => 2.0 * f64::from(long) / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_moves_two_messages() {
        assert_eq!(Column::ALL.map(|column| column.value(0.5, 100)), [0.5, 0.5, 200.0, 400.0]);
        let sizes = LayerSizes { short: 8, long: 1 << 20 };
        assert_eq!(Column::ALL.map(|column| column.bytes(sizes)), [8, 8, 1 << 20, 1 << 20]);
        assert_eq!(Column::ExchangeRate.title(sizes), "exchange 1 MiB");
    }
}
