//! What is measured: the primitives and the communication kernels of the paper, sections 3 and 4.

use crate::format::Unit;
use serde::{Deserialize, Serialize};

named! {
    /// One curve against the size of messages. Units are those of one sender, or of all together, as the paper has
    /// them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum)]
    #[serde(rename_all = "kebab-case")]
    pub enum KernelName {
        /// A call with an argument of that size and an empty answer: there and back. Figure 2.
        RpcLatency = "rpc-latency", "RPC, there and back";
        /// One process sends as fast as it can, another one takes: bytes of a second. Figure 2.
        Messages = "messages", "messages to one";
        /// Two members answer each other in a group, every two of them by turns: from sending to being delivered.
        /// Figure 3.
        GroupLatency = "group-latency", "group, until delivered";
        /// Each member in turn sends to the group as fast as it can: bytes that this one sends in a second. Figure 3.
        Group = "group", "group, one sends";
        /// Each process exchanges with both its neighbours, again and again: bytes that all send in a second. Figure 4.
        Ring = "ring", "ring, all send";
        /// Each member sends to the group at the same time: bytes that all send, each counted once. Figure 5.
        AllToAll = "all-to-all", "all-to-all by multicast";
        /// Each process has a message for each other one: bytes that all send in a second. Figure 6.
        Personalised = "personalised", "personalised all-to-all";
    }
}

impl KernelName {
    /// The figure of the paper.
    pub fn figure(self) -> u32 {
        match self {
            Self::RpcLatency | Self::Messages => 2,
            Self::GroupLatency | Self::Group => 3,
            Self::Ring => 4,
            Self::AllToAll => 5,
            Self::Personalised => 6,
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Self::RpcLatency | Self::GroupLatency => Unit::Seconds,
            _ => Unit::BytesPerSecond,
        }
    }

    /// How many processes take part where so many are there: the primitives of figure 2 are between two.
    pub fn processes(self, there: u32) -> u32 {
        if self.figure() == 2 { 2 } else { there }
    }

    /// What one round that took `seconds` says, in the unit of the kernel.
    pub fn value(self, seconds: f64, bytes: u32, processes: u32) -> f64 {
        let (bytes, processes) = (f64::from(bytes), f64::from(processes));
        match self {
            Self::RpcLatency | Self::GroupLatency => seconds,
            Self::Messages => bytes / seconds,
            // A round is one message of each.
            Self::Group | Self::AllToAll => processes * bytes / seconds,
            Self::Ring => 2.0 * processes * bytes / seconds,
            Self::Personalised => processes * (processes - 1.0) * bytes / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn words_are_those_of_the_command_line() {
        for kernel in KernelName::ALL {
            assert_eq!(kernel.to_possible_value().unwrap().get_name(), kernel.word());
        }
    }

    #[test]
    fn what_all_send_is_counted_as_in_the_paper() {
        let of = |kernel: KernelName| kernel.value(0.5, 10, 8);
        assert_eq!(of(KernelName::RpcLatency), 0.5);
        assert_eq!(of(KernelName::Messages), 20.0);
        // Receivers have seven times as much.
        assert_eq!(of(KernelName::AllToAll), 8.0 * 20.0);
        assert_eq!(of(KernelName::Ring), 16.0 * 20.0);
        assert_eq!(of(KernelName::Personalised), 56.0 * 20.0);
    }
}
