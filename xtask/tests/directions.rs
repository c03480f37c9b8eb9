//! Which crate may depend on which, held against what cargo says.

use std::process::Command;

use serde_json::Value;

/// For every crate, all crates of ours that it may name, in words of the plan: wire <- protocol <- fabric <- collective
/// <- interfaces, wire <- device <- (fabric, lanes), wire <- cluster <- (fabric, agent, cli), lanes <- agent, kernel <-
/// (device, sockets, lanes, agent). Nothing may name a crate that is absent here on the right-hand sides: tools, tests
/// and xtask.
const ALLOWED: &[(&str, &[&str])] = &[
    ("weft-wire", &[]),
    ("weft-kernel", &[]),
    ("weft-protocol", &["weft-wire"]),
    ("weft-device", &["weft-wire", "weft-kernel"]),
    ("weft-cluster", &["weft-wire"]),
    ("weft-pmix", &["weft-cluster"]),
    ("weft-database", &["weft-wire", "weft-cluster"]),
    ("weft-membership", &[]),
    ("weft-records", &[]),
    ("weft-ranks", &["weft-wire"]),
    ("weft-backtrace", &[]),
    ("weft-zone", &["weft-database"]),
    ("weft-requests", &["weft-kernel", "weft-records"]),
    ("weft-fabric", &["weft-wire", "weft-protocol", "weft-device", "weft-cluster"]),
    ("weft-collective", &["weft-fabric"]),
    ("weft-data", &["weft-fabric"]),
    ("weft-ports", &["weft-fabric"]),
    ("weft-group", &["weft-fabric", "weft-ports"]),
    ("weft-mpi-table", &[]),
    ("weft-mpi", &["weft-fabric", "weft-collective", "weft-data", "weft-mpi-table"]),
    ("weft-mpi-standard", &["weft-mpi", "weft-mpi-table"]),
    ("weft-mpi-mpich", &["weft-mpi", "weft-mpi-table"]),
    ("weft-mpi-fortran", &["weft-mpi-table"]),
    ("weft-native", &["weft-fabric", "weft-ports", "weft-group", "weft-kernel"]),
    ("weft-pvm-machine", &["weft-kernel"]),
    ("weft-pvm", &["weft-fabric", "weft-ports", "weft-data", "weft-kernel", "weft-pvm-machine"]),
    ("weft-p4", &["weft-fabric", "weft-ports"]),
    ("weft-tcgmsg", &["weft-fabric", "weft-ports"]),
    ("weft-tcgmsg-integer8", &[]),
    ("weft-am", &["weft-fabric", "weft-ports"]),
    ("weft-fm", &["weft-fabric", "weft-ports"]),
    ("weft-panda", &["weft-fabric", "weft-ports", "weft-group"]),
    ("weft-objects-derive", &[]),
    ("weft-objects", &["weft-ports", "weft-group", "weft-objects-derive"]),
    ("weft-objects-c", &["weft-fabric", "weft-objects"]),
    ("weft-app-objects", &["weft-objects"]),
    ("weft-app-awari", &["weft-objects", "weft-app-objects"]),
    ("weft-app-barnes", &["weft-objects", "weft-app-objects"]),
    ("weft-app-moca", &["weft-objects", "weft-app-objects"]),
    ("weft-app-polygon", &["weft-objects", "weft-app-objects"]),
    ("weft-app-skyline", &["weft-objects", "weft-app-objects"]),
    ("weft-app-sor", &["weft-objects", "weft-app-objects"]),
    ("weft-sockets", &["weft-fabric", "weft-kernel"]),
    ("weft-lanes", &["weft-wire", "weft-kernel", "weft-device"]),
    (
        "weftd",
        &[
            "weft-kernel",
            "weft-cluster",
            "weft-database",
            "weft-membership",
            "weft-ranks",
            "weft-records",
            "weft-requests",
            "weft-lanes",
        ],
    ),
    (
        "weft-agent",
        &[
            "weft-wire",
            "weft-kernel",
            "weft-cluster",
            "weft-pmix",
            "weft-ranks",
            "weft-records",
            "weft-backtrace",
            "weft-lanes",
        ],
    ),
    (
        "weft-bench",
        &["weft-wire", "weft-kernel", "weft-records", "weft-fabric", "weft-ports", "weft-group", "weft-panda"],
    ),
    (
        "weft",
        &[
            "weft-wire",
            "weft-kernel",
            "weft-cluster",
            "weft-database",
            "weft-ranks",
            "weft-records",
            "weft-requests",
            "weft-zone",
            "weft-fabric",
            "weft-lanes",
            "weft-agent",
            "weft-bench",
            "weft-pvm-machine",
        ],
    ),
    ("weft-tests", &["weft-wire", "weft-cluster", "weft-device", "weft-fabric"]),
    ("xtask", &["weft-mpi-table"]),
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

/// Every package of the workspace with the names of the packages of ours that it depends on, of whatever kind.
fn dependencies(metadata: &Value) -> Vec<(String, Vec<String>)> {
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let ours: Vec<String> = packages.iter().map(name).collect();
    let depends = |package: &Value| -> Vec<String> {
        let all = package["dependencies"].as_array().expect("dependencies");
        all.iter().map(name).filter(|dependency| ours.contains(dependency)).collect()
    };
    packages.iter().map(|package| (name(package), depends(package))).collect()
}

/// One line per dependency that the table does not allow.
fn violations(found: &[(String, Vec<String>)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (package, dependencies) in found {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == package) else {
            lines.push(format!("{package} has no line in the table of this test"));
            continue;
        };
        let wrong = dependencies.iter().filter(|dependency| !allowed.contains(&dependency.as_str()));
        lines.extend(wrong.map(|dependency| format!("{package} must not depend on {dependency}")));
    }
    lines
}

#[test]
fn every_dependency_goes_in_an_allowed_direction() {
    let found = dependencies(&metadata());
    assert!(found.len() > 5, "cargo told of {} packages only", found.len());
    assert_eq!(violations(&found), Vec::<String>::new());
}

#[test]
fn a_dependency_in_the_wrong_direction_is_seen() {
    let found = [("weft-device".to_owned(), vec!["weft-protocol".to_owned(), "weft-wire".to_owned()])];
    assert_eq!(violations(&found), ["weft-device must not depend on weft-protocol"]);
    assert_eq!(violations(&[("weft-new".to_owned(), vec![])]).len(), 1);
}

#[test]
fn the_table_itself_has_no_cycle() {
    for (index, (name, allowed)) in ALLOWED.iter().enumerate() {
        let later = |dependency: &&&str| !ALLOWED[..index].iter().any(|(earlier, _)| earlier == *dependency);
        assert_eq!(allowed.iter().find(later), None, "{name}: list a crate after all that it may depend on");
    }
}
