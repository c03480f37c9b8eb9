use super::super::lines;
use super::*;

#[test]
fn the_speed_up_of_the_largest_plate_is_read() {
    let table =
        "      512 |   0.3511 |   0.2111      1.66\n     1024 |   1.4211 |   0.7511      1.89\n\nheat: every line\n";
    assert_eq!(speed_up(table).unwrap(), 1.89);
    assert!(speed_up("heat: no memory\n").is_err());
    assert!(speed_up("1024 | -").unwrap_err().to_string().contains("no speed-up"));
}

#[test]
fn what_must_have_crossed_the_cable_follows_from_the_iterations() {
    let text = "mpibench: cache-line 6e-08 s 1 0.1\nmpibench: latency:8 1e-06 s 500 0.1\n\
                mpibench: rate:8 1e6 1/s 10 0.1\nmpibench: barrier 1e-06 s 7 0.1\n\
                mpibench: latency-0-2:8 1e-06 s 3 0.1\nmpibench: latency-1-2:8 1e-06 s 3 0.1\n";
    let figures = parse::output("mpibench", text).unwrap().figures;
    assert_eq!(figures.iter().map(least_bytes).collect::<Vec<_>>(), [0, 4000, 5120, 7, 24, 0]);
}

#[test]
fn patterns_choose_lines_and_unknown_ones_are_refused() {
    let ids = |pattern: &str| select(lines::all(), &[pattern.into()]).map(|lines| lines.len());
    assert_eq!(ids("*/rate/8").unwrap(), 3);
    let parts = ["plain", "xdp", "native"].map(|part| ids(part).unwrap());
    assert_eq!(parts.into_iter().sum::<usize>(), select(lines::all(), &[]).unwrap().len());
    assert!(ids("shm").unwrap_err().to_string().contains("--only shm"));
}

#[test]
fn only_weft_must_say_nothing() {
    assert!(check_quiet(NetWay::WeftXdp, "weft: xdp cannot be had\n").is_err());
    check_quiet(NetWay::WeftXdp, "\n").unwrap();
    check_quiet(NetWay::MpichUcx, "[proxy] hello\n").unwrap();
}
