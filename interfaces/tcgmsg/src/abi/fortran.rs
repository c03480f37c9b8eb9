//! The Fortran names, and the same for an INTEGER of eight bytes.

use super::c::{self, bytes, counted};
use crate::failure::fail;
use crate::{place, start, together};
use std::ffi::{OsStr, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A Fortran INTEGER.
trait Integer: Copy {
    fn long(self) -> c_long;
    fn of(value: c_long) -> Self;
}

impl Integer for i32 {
    fn long(self) -> c_long {
        self.into()
    }

    fn of(value: c_long) -> Self {
        value as Self
    }
}

impl Integer for i64 {
    fn long(self) -> c_long {
        self
    }

    fn of(value: c_long) -> Self {
        value
    }
}

/// # Safety
/// `argument` is an INTEGER.
unsafe fn value<I: Integer>(argument: *const I) -> c_long {
    // SAFETY: the caller's promise; Fortran passes the address of what there is.
    unsafe { argument.read_unaligned() }.long()
}

/// # Safety
/// `argument` is an INTEGER.
unsafe fn set<I: Integer>(argument: *mut I, value: c_long) {
    // SAFETY: the caller's promise.
    unsafe { argument.write_unaligned(I::of(value)) };
}

/// A character argument, without the blanks at its end.
///
/// # Safety
/// There are so many characters.
unsafe fn characters<'a>(text: *const c_char, length: c_int) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length.max(0) as usize) }.trim_ascii_end()
}

/// # Safety
/// `x` has `n` numbers of `I`; the name is of [`characters`].
unsafe fn combine<I: together::Numeral, N: Integer>(
    call: &'static str,
    kind: *const N,
    x: *mut c_void,
    n: *const N,
    op: (*const c_char, c_int),
) {
    // SAFETY: the caller's promise.
    unsafe {
        let numbers = bytes(call, x, value(n).saturating_mul(I::BYTES as c_long));
        together::combine::<I>(call, value(kind) as i32, numbers, characters(op.0, op.1));
    }
}

/// # Safety
/// The name is of [`characters`].
unsafe fn copy(kind: c_long, node: c_long, name: (*const c_char, c_int)) {
    // SAFETY: the caller's promise.
    let name = unsafe { characters(name.0, name.1) };
    if name.is_empty() {
        fail("PFCOPY: the name of the file is empty, node", place::me().into());
    }
    crate::files::copy(kind as i32, node, Path::new(OsStr::from_bytes(name)));
}

/// Functions of C that take a number, for an INTEGER.
macro_rules! of_one {
    ($integer:ty: $($name:ident $(-> $answer:ty)? = $function:ident;)*) => { $(
        /// # Safety
        /// The argument is an INTEGER.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(argument: *const $integer) $(-> $answer)? {
            // SAFETY: the caller's promise.
            c::$function(unsafe { value(argument) })
        }
    )* };
}

/// The functions that take an INTEGER, by their names. All are as TCGMSG describes them; arguments are addresses.
macro_rules! with_arguments {
    ($integer:ty: $snd:ident $rcv:ident $waitcom:ident $probe:ident $brdcst:ident $dgop:ident $igop:ident $synch:ident
     $nxtval:ident $pfcopy:ident $pfilecopy:ident $setdbg:ident $niceftn:ident $srand48:ident $parerr:ident $mdtob:ident
     $mdtoi:ident $mitob:ident $mitod:ident) => {
        of_one! { $integer:
            $waitcom = tcg_waitcom;
            $synch = tcg_synch;
            $nxtval -> c_long = tcg_nxtval;
            $setdbg = tcg_setdbg;
            $niceftn -> c_long = tcg_niceftn;
            $srand48 = tcg_srand48;
            $parerr -> ! = tcg_parerr;
            $mdtob -> c_long = tcg_mdtob;
        }

        /// # Safety
        /// Arguments are as [`c::tcg_snd`] wants them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $snd(
            kind: *const $integer,
            buf: *mut c_void,
            lenbuf: *const $integer,
            node: *const $integer,
            sync: *const $integer,
        ) {
            // SAFETY: the caller's promise.
            unsafe { c::tcg_snd(value(kind), buf, value(lenbuf), value(node), value(sync)) };
        }

        /// # Safety
        /// Arguments are as [`c::tcg_rcv`] wants them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $rcv(
            kind: *const $integer,
            buf: *mut c_void,
            lenbuf: *const $integer,
            lenmes: *mut $integer,
            nodeselect: *const $integer,
            nodefrom: *mut $integer,
            sync: *const $integer,
        ) {
            let (mut length, mut from) = (0, 0);
            let places: (*mut c_long, *mut c_long) = (&mut length, &mut from);
            // SAFETY: the caller's promise.
            unsafe {
                c::tcg_rcv(value(kind), buf, value(lenbuf), places.0, value(nodeselect), places.1, value(sync));
                set(lenmes, length);
                set(nodefrom, from);
            }
        }

        /// # Safety
        /// Arguments are INTEGERs.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $probe(kind: *const $integer, node: *const $integer) -> c_long {
            // SAFETY: the caller's promise.
            unsafe { c::tcg_probe(value(kind), value(node)) }
        }

        /// # Safety
        /// Arguments are as [`c::tcg_brdcst`] wants them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $brdcst(
            kind: *const $integer,
            buf: *mut c_void,
            lenbuf: *const $integer,
            originator: *const $integer,
        ) {
            // SAFETY: the caller's promise.
            unsafe { c::tcg_brdcst(value(kind), buf, value(lenbuf), value(originator)) };
        }

        /// # Safety
        /// `x` has `n` doubles, `op` so many characters.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $dgop(
            kind: *const $integer,
            x: *mut c_void,
            n: *const $integer,
            op: *const c_char,
            characters: c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { combine::<f64, $integer>("DGOP", kind, x, n, (op, characters)) };
        }

        /// # Safety
        /// `x` has `n` INTEGERs, `op` so many characters.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $igop(
            kind: *const $integer,
            x: *mut c_void,
            n: *const $integer,
            op: *const c_char,
            characters: c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { combine::<$integer, $integer>("IGOP", kind, x, n, (op, characters)) };
        }

        /// # Safety
        /// Arguments are INTEGERs and so many characters.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pfcopy(
            kind: *const $integer,
            node0: *const $integer,
            name: *const c_char,
            characters: c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe { copy(value(kind), value(node0), (name, characters)) };
        }

        /// # Safety
        /// Arguments are INTEGERs and a C string.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pfilecopy(kind: *const $integer, node0: *const $integer, name: *const c_char) {
            // SAFETY: the caller's promise.
            unsafe { c::tcg_pfcopy(value(kind), value(node0), name) };
        }

        /// # Safety
        /// The argument is an INTEGER.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mdtoi(n: *const $integer) -> c_long {
            // SAFETY: the caller's promise.
            counted("MDTOI", unsafe { value(n) }) * (8 / size_of::<$integer>() as c_long)
        }

        /// # Safety
        /// The argument is an INTEGER.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mitob(n: *const $integer) -> c_long {
            // SAFETY: the caller's promise.
            counted("MITOB", unsafe { value(n) }) * size_of::<$integer>() as c_long
        }

        /// # Safety
        /// The argument is an INTEGER.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mitod(n: *const $integer) -> c_long {
            let each = size_of::<$integer>() as u64;
            // SAFETY: the caller's promise.
            (counted("MITOD", unsafe { value(n) }) as u64 * each).div_ceil(8) as c_long
        }
    };
}

with_arguments!(i32: snd_ rcv_ waitcom_ probe_ brdcst_ dgop_ igop_ synch_ nxtval_ pfcopy_ pfilecopy_ setdbg_ niceftn_
    srand48_ parerr_ mdtob_ mdtoi_ mitob_ mitod_);

with_arguments!(i64: tcgmsg8_snd_ tcgmsg8_rcv_ tcgmsg8_waitcom_ tcgmsg8_probe_ tcgmsg8_brdcst_ tcgmsg8_dgop_
    tcgmsg8_igop_ tcgmsg8_synch_ tcgmsg8_nxtval_ tcgmsg8_pfcopy_ tcgmsg8_pfilecopy_ tcgmsg8_setdbg_ tcgmsg8_niceftn_
    tcgmsg8_srand48_ tcgmsg8_parerr_ tcgmsg8_mdtob_ tcgmsg8_mdtoi_ tcgmsg8_mitob_ tcgmsg8_mitod_);

/// Global operations as C calls them by the upper case names: what they are called with ends with a C string.
macro_rules! for_c {
    ($($name:ident($call:literal, $number:ty, $integer:ty);)*) => {
        $(
            /// # Safety
            /// `x` has `n` numbers, `op` is a C string.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                kind: *const $integer,
                x: *mut c_void,
                n: *const $integer,
                op: *const c_char,
            ) {
                // SAFETY: the caller's promise.
                unsafe { combine::<$number, $integer>($call, kind, x, n, (op, libc::strlen(op) as c_int)) };
            }
        )*
    };
}

for_c! {
    tcgmsg4_dgop("DGOP", f64, i32);
    tcgmsg4_igop("IGOP", i32, i32);
    tcgmsg8_dgop("DGOP", f64, i64);
    tcgmsg8_igop("IGOP", i64, i64);
}

// A result is right for an INTEGER of either length.
without_arguments! {
    pbeginf_() = start::begin();
    pbginf_() = start::begin();
    pend_() = start::end();
    nodeid_() -> c_long = c::tcg_nodeid();
    nnodes_() -> c_long = c::tcg_nnodes();
    tcgready_() -> c_long = c::tcg_ready();
    tcgtime_() -> f64 = c::tcg_time();
    mtime_() -> c_long = c::tcg_mtime();
    drand48_() -> f64 = c::tcg_drand48();
    llog_() = c::tcg_llog();
    stats_() = c::tcg_stats();
}

/// The log of events: the calls are accepted, and nothing is written.
macro_rules! unwritten {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) {}
    )* };
}

unwritten! {
    evon_();
    evoff_();
    evbgin_(_info: *const c_char, _characters: c_int);
    evend_(_info: *const c_char, _characters: c_int);
    event_(_info: *const c_char, _characters: c_int);
}
