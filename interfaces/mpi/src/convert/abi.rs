//! Bodies of `MPI_X_toint` and `MPI_X_fromint`.

macro_rules! conversions {
    ($($to:ident, $from:ident;)*) => {
        $(
            #[inline]
            pub unsafe fn $to(handle: usize) -> i32 {
                handle as i32
            }

            #[inline]
            pub unsafe fn $from(number: i32) -> usize {
                number as u32 as usize
            }
        )*
    };
}

conversions! {
    comm_toint, comm_fromint;
    errhandler_toint, errhandler_fromint;
    file_toint, file_fromint;
    group_toint, group_fromint;
    info_toint, info_fromint;
    message_toint, message_fromint;
    op_toint, op_fromint;
    request_toint, request_fromint;
    session_toint, session_fromint;
    type_toint, type_fromint;
    win_toint, win_fromint;
}
