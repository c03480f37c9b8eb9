//! The tool interface, and tools that take the place of functions.

use std::path::Path;
use tempfile::TempDir;
use weft_tests::ranks::{assert_ok, command, compile, passes, source};

#[test]
fn settings_and_counters_are_variables_of_tools() {
    passes("tool", &[1, 2]);
}

#[test]
fn events_are_told_with_what_has_happened() {
    passes("tool_events", &[1, 2, 3]);
}

/// The tool as a library of its own.
fn profiler(folder: &Path) -> String {
    compile(folder, "profiler", &["-shared", "-fPIC"]).display().to_string()
}

#[test]
fn settings_are_read_only_for_a_tool_that_comes_late() {
    passes("tool_late", &[1, 2]);
}

#[test]
fn a_function_of_a_linked_tool_wins() {
    let folder = TempDir::new().expect("there is room for a folder");
    let tool = source("profiler").display().to_string();
    let within = compile(folder.path(), "profiled", &[&tool]);
    assert_ok("compiled in", &command(&within, 2, &[]).output().expect("weft can be started"));
    let tool = profiler(folder.path());
    let linked = compile(folder.path(), "profiled", &[&tool]);
    assert_ok("linked", &command(&linked, 2, &[]).output().expect("weft can be started"));
}

#[test]
fn a_function_of_a_preloaded_tool_wins() {
    let folder = TempDir::new().expect("there is room for a folder");
    let tool = profiler(folder.path());
    let program = compile(folder.path(), "profiled", &[]);
    let mut command = command(&program, 2, &[]);
    assert_ok("preloaded", &command.env("LD_PRELOAD", tool).output().expect("weft can be started"));
}
