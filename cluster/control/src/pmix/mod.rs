//! PMIx for the ranks of one job: what the launcher and the processes that hold PMIx servers say to each other, and the
//! launcher's half of it ([`PmixExchange`]).
//!
//! PMIx is no wire protocol but a library, so the ranks of each host have a server that has loaded it (`weft-pmix`).
//! What goes between hosts is ours: the library hands over what it has gathered from the ranks of its host, and gets
//! back what those of all hosts have given.
//!
//! Test: `cargo test -p weft-cluster pmix`.

mod exchange;
mod layout;
mod said;

pub use exchange::{PmixEvent, PmixExchange};
pub use layout::{PmixDatum, PmixEntry, PmixName, WILDCARD, copy_text};
use said::PIECE_MAX;
pub use said::{PmixPieces, PmixSaid, PmixTold, Together, framed};

/// `PMIX_SUCCESS`, as in every version.
pub const SUCCESS: i32 = 0;
/// `PMIX_ERR_BAD_PARAM`.
pub const BAD_PARAMETER: i32 = -27;
/// `PMIX_ERR_OUT_OF_RESOURCE`.
pub const TOO_MUCH: i32 = -29;
/// `PMIX_ERR_NOT_FOUND`.
pub const NOT_FOUND: i32 = -46;
/// `PMIX_ERR_NOT_SUPPORTED`.
pub const NOT_SUPPORTED: i32 = -47;
/// `PMIX_ERR_LOST_CONNECTION`.
pub const LOST: i32 = -61;

/// What may be given with one piece; what is left of the longest piece is for what stands before it.
pub const GIVEN_MAX: usize = PIECE_MAX - 1024;

/// What is given, or that it is more than fits into a piece that names so many ranks.
pub fn bounded(status: i32, data: Vec<u8>, ranks: usize) -> (i32, Vec<u8>) {
    if data.len() + ranks * 4 > GIVEN_MAX { (TOO_MUCH, Vec::new()) } else { (status, data) }
}
