//! What was found, in plain words.

use super::{Checked, FoundHost, HostAbout};
use std::fmt::Write;
use weft_bench::Distance;

pub fn text(checked: &Checked) -> String {
    let width = checked.hosts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::from("hosts\n");
    for (name, found) in &checked.hosts {
        let (usable, what) = match found {
            FoundHost::Good(about) => ("usable", host(about)),
            FoundHost::Bad(why) => ("not usable", why.clone()),
        };
        let _ = writeln!(text, "  {name:width$}  {usable:<10}  {what}");
        if let FoundHost::Good(about) = found {
            for device in about.devices.iter().filter(|device| !device.usable) {
                let why = device.reasons.join("; ");
                let _ = writeln!(text, "  {:width$}  {:<10}  {} cannot be used: {why}", "", "", device.name);
            }
        }
    }
    if !checked.pairs.is_empty() {
        text += "\npairs: 8 bytes one way, messages of 1 MiB\n";
    }
    for (first, second, found) in &checked.pairs {
        let what = match found {
            FoundHost::Good(distance) => way(distance),
            FoundHost::Bad(why) => format!("no way: {why}"),
        };
        let _ = writeln!(text, "  {first:width$}  {second:width$}  {what}");
    }
    if !checked.filtered.is_empty() {
        text += "\nthe same with an XDP filter attached to both, and what that leaves of the rate of TCP\n";
    }
    for (first, second, found) in &checked.filtered {
        let bare = checked.pairs.iter().find(|(one, other, _)| (one, other) == (first, second));
        let what = match (found, bare.map(|(_, _, bare)| bare)) {
            (FoundHost::Good(distance), Some(FoundHost::Good(bare))) => way(distance) + &rest(distance, bare),
            (FoundHost::Good(distance), _) => way(distance),
            (FoundHost::Bad(why), _) => format!("not measured: {why}"),
        };
        let _ = writeln!(text, "  {first:width$}  {second:width$}  {what}");
    }
    text
}

/// What other traffic by TCP may expect while the filter is attached, if TCP is what was measured.
fn rest(distance: &Distance, bare: &Distance) -> String {
    match distance.tcp_packets.min(bare.tcp_packets) {
        0 => String::new(),
        _ => format!(", {:.2} of the rate without", distance.bandwidth / bare.bandwidth),
    }
}

fn host(about: &HostAbout) -> String {
    let usable: Vec<&str> = about.devices.iter().filter(|device| device.usable).map(|d| d.name.as_str()).collect();
    let cores = if about.cores == 1 { "core" } else { "cores" };
    let addresses = if about.addresses.is_empty() { "no address".to_owned() } else { about.addresses.join(", ") };
    format!("weft {}, {} {cores}; {addresses}; devices {}", about.version, about.cores, usable.join(", "))
}

fn way(distance: &Distance) -> String {
    let short = match (distance.xdp_datagrams > 0, distance.udp_packets > 0) {
        (true, _) => Some("xdp"),
        (false, true) => Some("udp"),
        (false, false) => None,
    };
    let device = match (short, distance.tcp_packets > 0) {
        (Some(short), true) => format!("{short}, long messages by tcp"),
        (Some(short), false) => short.to_owned(),
        (None, true) => "tcp".to_owned(),
        (None, false) => "another device than xdp, udp and tcp".to_owned(),
    };
    format!("{:8.1} us  {:9.1} MB/s  by {device}", distance.latency_s * 1e6, distance.bandwidth / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::HostDevice;
    use super::*;

    #[test]
    fn hosts_and_pairs_are_told_with_what_is_wrong() {
        let device = |name: &str, usable: bool, reason: &str| HostDevice {
            name: name.to_owned(),
            usable,
            reasons: vec![reason.to_owned()],
        };
        let about = HostAbout {
            version: "1.0".to_owned(),
            checksum: "0".to_owned(),
            cores: 4,
            addresses: vec!["10.0.0.1".to_owned()],
            devices: vec![device("shm", true, ""), device("xdp", false, "no permission")],
        };
        let good = Distance { latency_s: 12e-6, bandwidth: 1.2e9, xdp_datagrams: 0, udp_packets: 0, tcp_packets: 3 };
        let filtered = Distance { latency_s: 3e-6, bandwidth: 0.9e9, xdp_datagrams: 9, ..good };
        let checked = Checked {
            hosts: vec![
                ("node1".to_owned(), FoundHost::Good(about)),
                ("n2".to_owned(), FoundHost::Bad("down".to_owned())),
            ],
            pairs: vec![
                ("node1".to_owned(), "n3".to_owned(), FoundHost::Good(good)),
                ("node1".to_owned(), "n4".to_owned(), FoundHost::Bad("why".to_owned())),
            ],
            filtered: vec![("node1".to_owned(), "n3".to_owned(), FoundHost::Good(filtered))],
        };
        assert_eq!(
            text(&checked),
            "hosts\n  node1  usable      weft 1.0, 4 cores; 10.0.0.1; devices shm\n                     xdp cannot be used: no \
             permission\n  n2     not usable  down\n\npairs: 8 bytes one way, messages of 1 MiB\n  node1  n3         12.0 \
             us     1200.0 MB/s  by tcp\n  node1  n4     no way: why\n\nthe same with an XDP filter attached to both, and what that \
             leaves of the rate of TCP\n  node1  n3          3.0 us      900.0 MB/s  by xdp, long messages by tcp, 0.75 of \
             the rate without\n"
        );
        assert!(!checked.is_good());
    }
}
