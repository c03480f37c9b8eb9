//! What the integers of a call mean, which the types do not say: it follows from the names of functions and parameters,
//! which the standard uses alike everywhere.

/// How an integer is converted: the name of a pair of functions in `src/number.rs` or of a section in `values.rs`;
/// `None` for a plain number.
pub fn meaning(function: &str, parameter: &str) -> Option<&'static str> {
    if let Some(rest) = function.strip_prefix("MPI_T_") {
        return tool(rest, parameter);
    }
    let keyval = parameter == "keyval" || parameter.ends_with("_keyval");
    Some(match parameter {
        _ if keyval => "keyval",
        "source" | "dest" | "root" | "rank_source" | "rank_dest" | "target_rank" | "ranks1" | "ranks2" => "rank",
        "rank" if function.starts_with("MPI_Win_") => "rank",
        "tag" | "sendtag" | "recvtag" => "tag",
        "required" | "provided" => "thread_level",
        "result" if function.ends_with("_compare") => "comparison",
        "status" if function == "MPI_Topo_test" => "topology",
        "split_type" => "splitting",
        "combiner" => "constructor",
        "order" | "array_of_distribs" => "order",
        "array_of_dargs" => "distribution_argument",
        "typeclass" => "type_class",
        "lock_type" => "lock",
        "assert" => "assertion",
        "amode" => "file_mode",
        "whence" => "seek",
        "errorcode" if function == "MPI_Abort" => return None,
        "errorcode" | "errorclass" | "error" => "code",
        _ => return None,
    })
}

fn tool(function: &str, parameter: &str) -> Option<&'static str> {
    match parameter {
        "required" | "provided" if function == "init_thread" => Some("thread_level"),
        "verbosity" => Some("verbosity"),
        "bind" => Some("bound"),
        "scope" => Some("scope"),
        "var_class" => Some("variable_class"),
        "cb_safety" => Some("safety"),
        "ordering" => Some("source_order"),
        _ => None,
    }
}

/// How many elements an array has that must be converted, in terms of the entry's variables.
pub fn length(function: &str, parameter: &str) -> &'static str {
    if function.contains("lltoallw") {
        let neighbor = function.contains("eighbor");
        return match (neighbor, parameter) {
            (false, "sendtypes") => "place::peers_of_buffer(comm, sendbuf)",
            (false, _) => "place::peers(comm)",
            (true, "sendtypes") => "place::neighbors(comm).1",
            (true, _) => "place::neighbors(comm).0",
        };
    }
    match (function, parameter) {
        ("MPI_Group_translate_ranks", _) => "n",
        // Only the root looks at them.
        ("MPI_Comm_spawn_multiple", _) => "place::in_root(comm, root, count)",
        ("MPI_T_event_get_info", _) => "place::number_at(num_elements)",
        (_, "array_of_datatypes") => "max_datatypes",
        (_, "array_of_distribs" | "array_of_dargs") => "ndims",
        (name, _) if name.ends_with("some") => "incount",
        _ => "count",
    }
}

/// Whether a buffer may be one of the special ones.
pub fn is_special_buffer(function: &str, parameter: &str) -> bool {
    let attach =
        function.ends_with("_attach") && function.starts_with("MPI_Buffer") || function.ends_with("_attach_buffer");
    matches!(parameter, "sendbuf" | "recvbuf" | "inbuf" | "inoutbuf")
        || parameter == "buffer" && (attach || is_bcast(function))
}

fn is_bcast(function: &str) -> bool {
    matches!(function, "MPI_Bcast" | "MPI_Ibcast" | "MPI_Bcast_init")
}
