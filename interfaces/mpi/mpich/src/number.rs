//! Integers with a meaning: special ranks and tags, error codes, attribute keys, and the sets of constants. What has no
//! meaning is passed on as it is.

#![allow(dead_code, reason = "functions that have no body yet convert nothing")]

use crate::values;
use weft_mpi::abi as ours;

macro_rules! sets {
    ($($to_ours:ident, $to_theirs:ident;)*) => {
        $(
            pub fn $to_ours(value: i32) -> i32 {
                values::$to_ours(value).unwrap_or(value)
            }

            pub fn $to_theirs(value: i32) -> i32 {
                values::$to_theirs(value).unwrap_or(value)
            }
        )*
    };
}

sets! {
    thread_level_ours, thread_level_theirs;
    comparison_ours, comparison_theirs;
    topology_ours, topology_theirs;
    splitting_ours, splitting_theirs;
    constructor_ours, constructor_theirs;
    order_ours, order_theirs;
    type_class_ours, type_class_theirs;
    lock_ours, lock_theirs;
    assertion_ours, assertion_theirs;
    seek_ours, seek_theirs;
    file_mode_ours, file_mode_theirs;
    verbosity_ours, verbosity_theirs;
    bound_ours, bound_theirs;
    scope_ours, scope_theirs;
    variable_class_ours, variable_class_theirs;
}

/// A number that is no rank, tag or special value in the standard ABI.
const NOTHING: i32 = i32::MIN;

#[inline]
pub fn rank_ours(rank: i32) -> i32 {
    match rank {
        0.. => rank,
        values::PROC_NULL => ours::PROC_NULL,
        values::ANY_SOURCE => ours::ANY_SOURCE,
        values::ROOT => ours::ROOT,
        ours::ROOT => NOTHING,
        _ => rank,
    }
}

#[inline]
pub fn rank_theirs(rank: i32) -> i32 {
    match rank {
        0.. => rank,
        ours::PROC_NULL => values::PROC_NULL,
        ours::ANY_SOURCE => values::ANY_SOURCE,
        ours::ROOT => values::ROOT,
        NOTHING => ours::ROOT,
        _ => rank,
    }
}

#[inline]
pub fn tag_ours(tag: i32) -> i32 {
    match tag {
        0.. => tag,
        values::ANY_TAG => ours::ANY_TAG,
        ours::ANY_TAG => NOTHING,
        _ => tag,
    }
}

#[inline]
pub fn tag_theirs(tag: i32) -> i32 {
    match tag {
        0.. => tag,
        ours::ANY_TAG => values::ANY_TAG,
        NOTHING => ours::ANY_TAG,
        _ => tag,
    }
}

/// A block's length, or the mark of the usual one.
pub fn distribution_argument_ours(argument: i32) -> i32 {
    if argument == values::DISTRIBUTE_DFLT_DARG { ours::DISTRIBUTE_DFLT_DARG } else { argument }
}

pub fn distribution_argument_theirs(argument: i32) -> i32 {
    if argument == ours::DISTRIBUTE_DFLT_DARG { values::DISTRIBUTE_DFLT_DARG } else { argument }
}

/// The first code that a program adds.
const FIRST_ADDED: i32 = values::ERR_LASTCODE + 1;
const FIRST_ADDED_OURS: i32 = ours::ERR_LASTCODE + 1;
/// More than a program adds.
const ADDED: i32 = 1 << 24;
const END_ADDED_OURS: i32 = FIRST_ADDED_OURS + ADDED;

/// Error classes and codes, with those that the program added.
pub fn code_ours(code: i32) -> i32 {
    if code >= FIRST_ADDED {
        return FIRST_ADDED_OURS.saturating_add(code - FIRST_ADDED);
    }
    let class = values::class_ours(code).or_else(|| values::failure_class_ours(code));
    class.or_else(|| values::tool_class_ours(code)).unwrap_or(match code {
        values::ERR_LASTCODE => ours::ERR_LASTCODE,
        // A number of a class there, or of one that was added, is none of these: it stands aside meanwhile.
        FIRST_ADDED_OURS..END_ADDED_OURS => code + ADDED,
        _ if values::class_theirs(code).is_some() => ours::ERR_UNKNOWN,
        _ => code,
    })
}

pub fn code_theirs(code: i32) -> i32 {
    if (FIRST_ADDED_OURS..END_ADDED_OURS).contains(&code) {
        return FIRST_ADDED + (code - FIRST_ADDED_OURS);
    }
    if (END_ADDED_OURS..END_ADDED_OURS + ADDED).contains(&code) {
        return code - ADDED;
    }
    let class = values::class_theirs(code).or_else(|| values::failure_class_theirs(code));
    let class = class.or_else(|| values::tool_class_theirs(code));
    class.unwrap_or(if code == ours::ERR_LASTCODE { values::ERR_LASTCODE } else { code })
}

/// What marks keys of the program, which are numbers of 31 bits in the standard ABI.
const OWN: i32 = i32::MIN;

pub fn keyval_ours(keyval: i32) -> i32 {
    if keyval < 0 { keyval & !OWN } else { values::key_ours(keyval).unwrap_or(crate::handle::UNKNOWN as i32) }
}

pub fn keyval_theirs(keyval: i32) -> i32 {
    let own = keyval >= weft_mpi::handle::FIRST_USER as i32;
    if own { keyval | OWN } else { values::key_theirs(keyval).unwrap_or(values::KEYVAL_INVALID) }
}

/// The key of C for one of Fortran: the numbers of predefined keys are one more there.
pub fn keyval_of_fortran(keyval: i32) -> i32 {
    let of_c = keyval.wrapping_sub(1);
    if keyval > 0 && values::key_ours(of_c).is_some() { of_c } else { keyval }
}

/// Levels at which tools may be called back: the bits of the standard ABI in the order of the numbers here.
const SAFETIES: [i32; 4] = [0, 3, 15, 63];

pub fn safety_ours(safety: i32) -> i32 {
    usize::try_from(safety).ok().and_then(|at| SAFETIES.get(at)).copied().unwrap_or(-1)
}

pub fn safety_theirs(safety: i32) -> i32 {
    SAFETIES.iter().position(|&one| one == safety).map_or(safety, |at| at as i32)
}

pub fn source_order_ours(order: i32) -> i32 {
    order + 1
}

pub fn source_order_theirs(order: i32) -> i32 {
    order - 1
}

/// `MPI_DISPLACEMENT_CURRENT`, or a displacement.
pub fn displacement(value: i64) -> i64 {
    if value == values::DISPLACEMENT_CURRENT { ours::DISPLACEMENT_CURRENT } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_ranks_and_tags_come_back_and_others_stay() {
        for rank in [-5, -4, -3, -2, -1, 0, 7, values::UNDEFINED] {
            assert_eq!(rank_theirs(rank_ours(rank)), rank);
        }
        for tag in [-4, -3, -2, -1, 0, 7] {
            assert_eq!(tag_theirs(tag_ours(tag)), tag);
        }
        assert_eq!((rank_ours(-1), rank_ours(-2), rank_ours(-3)), (ours::PROC_NULL, ours::ANY_SOURCE, ours::ROOT));
        assert_eq!(rank_ours(-4), NOTHING, "-4 is ROOT only in the standard ABI");
    }

    #[test]
    fn error_codes_come_back_with_those_that_a_program_added() {
        for class in 0..=ours::ERR_ABI {
            assert_eq!(code_ours(code_theirs(class)), class);
        }
        assert_eq!((code_theirs(ours::ERR_TRUNCATE), code_theirs(ours::T_ERR_NOT_SUPPORTED)), (14, 78));
        assert_eq!(code_theirs(ours::ERR_LASTCODE + 3), values::ERR_LASTCODE + 3);
        assert_eq!(code_ours(values::ERR_LASTCODE + 3), ours::ERR_LASTCODE + 3);
        assert_eq!(code_ours(12345), 12345);
        // What nobody has added comes back as it went in, and names nothing that was.
        for code in [FIRST_ADDED_OURS, 20_000, END_ADDED_OURS - 1] {
            assert!(code_ours(code) >= END_ADDED_OURS && code_theirs(code_ours(code)) == code, "{code}");
        }
        assert_eq!(code_theirs(code_ours(FIRST_ADDED + 7)), FIRST_ADDED + 7);
    }

    #[test]
    fn keys_come_back_and_own_ones_meet_no_predefined_one() {
        assert_eq!(keyval_ours(values::TAG_UB), ours::TAG_UB);
        assert_eq!(keyval_theirs(ours::WIN_BASE), values::WIN_BASE);
        assert_eq!(keyval_theirs(ours::KEYVAL_INVALID), values::KEYVAL_INVALID);
        for own in [0x6000_0000, 0x6440_0001, 0x67ff_ffff] {
            assert!(keyval_theirs(own) < 0 && keyval_ours(keyval_theirs(own)) == own);
        }
    }

    #[test]
    fn predefined_keys_of_fortran_are_one_more_and_others_the_same() {
        assert_eq!(keyval_of_fortran(values::TAG_UB + 1), values::TAG_UB);
        assert_eq!(keyval_of_fortran(values::WIN_MODEL + 1), values::WIN_MODEL);
        for same in [values::TAG_UB, values::WIN_BASE, values::KEYVAL_INVALID, i32::MIN, i32::MIN | 0x6440_0002, -1, 0]
        {
            assert_eq!(keyval_of_fortran(same), same);
        }
    }

    #[test]
    fn modes_go_over_bit_by_bit() {
        let mode = values::MODE_CREATE | values::MODE_RDWR | values::MODE_APPEND;
        assert_eq!(file_mode_ours(mode), ours::MODE_CREATE | ours::MODE_RDWR | ours::MODE_APPEND);
        assert_eq!(file_mode_theirs(file_mode_ours(mode)), mode);
        assert_eq!(
            assertion_ours(values::MODE_NOSTORE | values::MODE_NOSUCCEED),
            ours::MODE_NOSTORE | ours::MODE_NOSUCCEED
        );
        assert_ne!(file_mode_ours(1 << 20), 0, "an unknown bit stays unknown");
    }
}
