//! libtcgmsg8: the Fortran names of TCGMSG for programs whose INTEGER has eight bytes (`-fdefault-integer-8`). Linked
//! before libtcgmsg, which does the work under names of its own.
//!
//! Test: `tests/tests/tcgmsg.rs`.

use std::ffi::{c_char, c_int, c_long};

/// Functions with so many addresses, some with the length of the text at the end.
macro_rules! forward {
    ($($name:ident $wide:ident ($($argument:ident)*) $($characters:ident)?;)*) => {
        unsafe extern "C" {
            $(fn $wide($($argument: *mut c_char,)* $($characters: c_int)?) -> c_long;)*
        }

        $(
            /// # Safety
            /// As TCGMSG has it.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: *mut c_char,)* $($characters: c_int)?) -> c_long {
                // SAFETY: the caller's promise; a result that there is not is not looked at.
                unsafe { $wide($($argument,)* $($characters)?) }
            }
        )*
    };
}

forward! {
    snd_ tcgmsg8_snd_ (a b c d e);
    rcv_ tcgmsg8_rcv_ (a b c d e f g);
    waitcom_ tcgmsg8_waitcom_ (a);
    probe_ tcgmsg8_probe_ (a b);
    brdcst_ tcgmsg8_brdcst_ (a b c d);
    dgop_ tcgmsg8_dgop_ (a b c d) characters;
    igop_ tcgmsg8_igop_ (a b c d) characters;
    synch_ tcgmsg8_synch_ (a);
    nxtval_ tcgmsg8_nxtval_ (a);
    pfcopy_ tcgmsg8_pfcopy_ (a b c) characters;
    pfilecopy_ tcgmsg8_pfilecopy_ (a b c);
    setdbg_ tcgmsg8_setdbg_ (a);
    niceftn_ tcgmsg8_niceftn_ (a);
    srand48_ tcgmsg8_srand48_ (a);
    parerr_ tcgmsg8_parerr_ (a);
    mdtob_ tcgmsg8_mdtob_ (a);
    mdtoi_ tcgmsg8_mdtoi_ (a);
    mitob_ tcgmsg8_mitob_ (a);
    mitod_ tcgmsg8_mitod_ (a);
}
