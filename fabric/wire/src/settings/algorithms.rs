//! Which algorithm a collective operation uses, where one is to be prescribed.

use std::fmt::{self, Display};

/// An algorithm of one operation, by the words of [`Algorithms::TABLE`].
pub trait Algorithm {
    const OPERATION: &'static str;
    fn word(self) -> &'static str;
}

/// Defines the operations with their algorithms: an enum for each, and the table that people are shown.
macro_rules! operations {
    ($($field:ident: $name:ident = $operation:literal { $($variant:ident = $word:literal, $when:literal;)+ })+) => {
        $(
            #[doc = concat!("An algorithm of ", $operation, ".")]
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name { $(#[doc = $when] $variant),+ }

            impl Algorithm for $name {
                const OPERATION: &'static str = $operation;

                fn word(self) -> &'static str {
                    match self { $(Self::$variant => $word),+ }
                }
            }
        )+

        /// Algorithms that are prescribed, by operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Algorithms { $(pub $field: Option<$name>),+ }

        impl Algorithms {
            /// None is prescribed.
            pub const AUTO: Self = Self { $($field: None),+ };

            /// Every operation with its algorithms, and when each is chosen where none is prescribed.
            pub const TABLE: &'static [(&'static str, &'static [(&'static str, &'static str)])] =
                &[$(($operation, &[$(($word, $when)),+])),+];

            fn set(&mut self, operation: &str, algorithm: &str) -> Option<()> {
                $(if operation.eq_ignore_ascii_case($operation) {
                    let known = [$(($name::$variant, $word)),+];
                    let found = known.iter().find(|(_, word)| algorithm.eq_ignore_ascii_case(word))?;
                    return self.$field.replace(found.0).is_none().then_some(());
                })+
                None
            }

            /// Those prescribed, as (operation, algorithm).
            fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
                [$(self.$field.map(|algorithm| ($operation, algorithm.word()))),+]
                    .into_iter()
                    .flatten()
            }
        }
    };
}

operations! {
    bcast: Bcast = "bcast" {
        Binomial = "binomial", "up to 32K, and between two ranks";
        ScatterAllgather = "scatter-allgather", "above 32K";
        Chain = "chain", "from 1M on";
    }
    reduce: Reduce = "reduce" {
        Binomial = "binomial", "up to 16K, and between two ranks";
        Halving = "halving", "from 16K on";
    }
    allreduce: Allreduce = "allreduce" {
        Doubling = "doubling", "up to 16K, and among two or three ranks";
        Halving = "halving", "from 16K on, among four and more";
    }
    reduce_scatter: ReduceScatter = "reduce-scatter" {
        Allreduce = "allreduce", "up to 4K in all";
        Pairwise = "pairwise", "above";
    }
    allgather: Allgather = "allgather" {
        Doubling = "doubling", "up to 64K in all, and a power of two of ranks, more than two";
        Bruck = "bruck", "up to 64K in all";
        Ring = "ring", "above, and between two ranks";
    }
    alltoall: Alltoall = "alltoall" {
        Bruck = "bruck", "equal blocks of up to 256 bytes, from 16 ranks on";
        Pairwise = "pairwise", "otherwise";
    }
    gather: Gather = "gather" {
        Tree = "tree", "equal blocks of up to 2K, from 5 ranks on";
        Direct = "direct", "otherwise";
    }
    scatter: Scatter = "scatter" {
        Tree = "tree", "equal blocks of up to 2K, from 5 ranks on";
        Direct = "direct", "otherwise";
    }
}

impl Algorithms {
    /// What `text` means: `auto`, or pairs such as `bcast:chain` with commas, no operation twice.
    pub fn parse(text: &str) -> Option<Self> {
        let mut algorithms = Self::AUTO;
        if text.eq_ignore_ascii_case("auto") {
            return Some(algorithms);
        }
        for pair in text.split(',') {
            let (operation, algorithm) = pair.split_once(':')?;
            algorithms.set(operation.trim(), algorithm.trim())?;
        }
        Some(algorithms)
    }

    /// What is accepted, in one line.
    pub(super) fn accepted() -> String {
        let of = |(operation, algorithms): &(&str, &[(&str, &str)])| {
            let words: Vec<&str> = algorithms.iter().map(|(word, _)| *word).collect();
            format!("{operation}:{}", words.join("|"))
        };
        let all: Vec<String> = Self::TABLE.iter().map(of).collect();
        format!("auto, or some of {}, with commas", all.join(", "))
    }
}

impl Display for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::AUTO {
            return f.write_str("auto");
        }
        for (index, (operation, algorithm)) in self.pairs().enumerate() {
            write!(f, "{}{operation}:{algorithm}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_what_was_written_and_no_operation_twice() {
        let text = |text| Algorithms::parse(text).map(|algorithms| algorithms.to_string());
        assert_eq!(text("auto"), Some("auto".to_owned()));
        assert_eq!(text("Bcast:chain, allreduce:HALVING"), Some("bcast:chain,allreduce:halving".to_owned()));
        for bad in ["", "bcast", "bcast:", "bcast:ring", "chain", "bcast:chain,", "bcast:chain,bcast:binomial"] {
            assert_eq!(text(bad), None, "{bad}");
        }
        let algorithms = Algorithms::parse("alltoall:bruck").expect("good");
        assert_eq!((algorithms.alltoall, algorithms.bcast), (Some(Alltoall::Bruck), None));
    }

    #[test]
    fn every_algorithm_can_be_prescribed() {
        for (operation, algorithms) in Algorithms::TABLE {
            for (word, _) in *algorithms {
                let pair = format!("{operation}:{word}");
                assert_eq!(Algorithms::parse(&pair).map(|a| a.to_string()), Some(pair.clone()));
                assert!(Algorithms::accepted().contains(operation), "{pair}");
            }
        }
    }
}
