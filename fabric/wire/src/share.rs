//! How two processes of different jobs, which have a connection, come to share memory: the control words of
//! [`Kind::Share`](crate::cell::Kind::Share).
//!
//! | word | offer | answer |
//! |---|---|---|
//! | 0 | 1 | 2: taken, 3: not taken |
//! | 1 | process that offers (lower half), number of its namespace (upper half) | 1: the memory can be copied |
//! | 2 | its descriptor of the segment | |
//! | 3, 4 | token that stands in the segment | |
//! | 5 | where the token stands in the memory of the process | |

use crate::cell::INLINE_WORDS;

/// What is said; all of it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    Offer {
        pid: u32,
        /// Of that number.
        namespace: u32,
        descriptor: u32,
        token: [u64; 2],
        /// Of the token in the memory of the process.
        address: u64,
    },
    Taken {
        /// Whoever takes it has copied out of the other one's memory.
        copies: bool,
    },
    NotTaken,
}

impl Share {
    pub fn words(&self) -> [u64; INLINE_WORDS] {
        match *self {
            Self::Offer { pid, namespace, descriptor, token, address } => {
                let process = u64::from(pid) | u64::from(namespace) << 32;
                [1, process, descriptor.into(), token[0], token[1], address]
            }
            Self::Taken { copies } => [2, copies.into(), 0, 0, 0, 0],
            Self::NotTaken => [3, 0, 0, 0, 0, 0],
        }
    }

    /// `None` where the words say none of this.
    pub fn from_words(words: &[u64; INLINE_WORDS]) -> Option<Self> {
        Some(match words[0] {
            1 => Self::Offer {
                pid: words[1] as u32,
                namespace: (words[1] >> 32) as u32,
                descriptor: words[2] as u32,
                token: [words[3], words[4]],
                address: words[5],
            },
            2 => Self::Taken { copies: words[1] == 1 },
            3 => Self::NotTaken,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_as_it_was_said() {
        let offer = Share::Offer {
            pid: u32::MAX,
            namespace: 7,
            descriptor: 9,
            token: [u64::MAX, 3],
            address: 0x7fff_0000_1234,
        };
        for said in [offer, Share::Taken { copies: true }, Share::Taken { copies: false }, Share::NotTaken] {
            assert_eq!(Share::from_words(&said.words()), Some(said));
        }
        assert_eq!(Share::from_words(&[0; INLINE_WORDS]), None);
        assert_eq!(Share::from_words(&[4, 0, 0, 0, 0, 0]), None);
    }
}
