//! Lists of programs that several tests run.

/// The programs under `tests/c/mpi` that ranks without shared memory run as well, each handed to `$each` by its name.
#[macro_export]
macro_rules! programs_between_hosts {
    ($each:ident) => {
        $each! {
            coll_inter
            coll_move
            coll_neighbor
            coll_reduce
            coll_threads
            objects_inter
            objects_threads
            objects_topology
            point_ask
            point_buffered
            point_cancel
            point_complete
            point_exchange
            point_modes
            point_persistent
            point_probe
            point_threads
            point_types
            windows_errors
            windows_move
            windows_objects
            windows_random
            windows_threads
        }
    };
}
