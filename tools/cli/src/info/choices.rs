//! `weft info --choices`: what the selector answers for each length, and why.

use std::fmt::Write;
use weft_fabric::selector::machine::Best;
use weft_fabric::selector::{
    BufferKind, Choice, Departure, EAGER_CEILING, Method, Reception, Road, Rules, Way, may_go, prefers_connection,
};
use weft_fabric::{DeviceName, Settings};

use crate::tune;

/// 8 bytes, and powers of 4 to 4 MiB.
const LENGTHS: [usize; 10] = [8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// What a datagram on Ethernet carries of a message, about.
const DATAGRAM_BYTES: usize = 1400;

pub fn run() -> i32 {
    let settings = match Settings::from_env(std::env::vars_os()) {
        Ok(settings) => settings,
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("weft info: {error}"));
            return 1;
        }
    };
    let (machine, origin) = tune::known();
    print!("messages go {origin}\n{}", table(&settings, machine));
    0
}

fn table(settings: &Settings, machine: Best) -> String {
    let eager = (settings.eager_bytes as usize).min(EAGER_CEILING as usize);
    let single_copy = settings.single_copy_bytes.map(|bytes| bytes as usize);
    let rules = Rules { eager, single_copy, machine };
    let copies = settings.single_copy != weft_fabric::settings::SingleCopy::Off;
    let mut text = String::new();
    for (title, kind, far) in [
        ("inside a host, ordinary memory", BufferKind::Ordinary, false),
        ("inside a host, memory of MPI_Alloc_mem", BufferKind::Shown, false),
        ("between hosts", BufferKind::Ordinary, true),
    ] {
        let _ = writeln!(text, "\n{title}");
        for length in LENGTHS {
            let road = if far { far_road(settings, length) } else { Road::Ring };
            let kind = if rules.may_show(length) && copies { kind } else { BufferKind::Ordinary };
            let (way, why) = row(&rules, length, kind, road, copies && !far);
            let _ = writeln!(text, "  {:>7}  {way}: {why}", size(length));
        }
    }
    text
}

fn size(bytes: usize) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// What leads to another host with these settings, once there is a connection.
fn far_road(settings: &Settings, length: usize) -> Road {
    let has = |name| settings.device.contains(name);
    let by_lane = || has(DeviceName::Xdp);
    match (has(DeviceName::Udp) || has(DeviceName::Xdp), has(DeviceName::Tcp)) {
        (false, _) => Road::Connection,
        (true, true) if prefers_connection(length, by_lane) => Road::Both,
        (true, _) => Road::Datagrams { packet: DATAGRAM_BYTES.max(if length <= 4096 { length } else { 0 }) },
    }
}

/// The ways of both sides, and why.
fn row(rules: &Rules, length: usize, kind: BufferKind, road: Road, copies: bool) -> (String, String) {
    let departure = Departure { length, synchronous: false, kind, copies };
    let sent = |method| rules.send(&departure, road, || method);
    let shown = kind == BufferKind::Shown;
    let received = |choice: Choice, method| {
        let offered = choice.way == Way::Offer;
        let reception = Reception { bytes: length as u64, offered, shown, copies };
        matches!(choice.way, Way::Offer | Way::Ask).then(|| rules.answer(&reception, || false, || method))
    };
    let whole = |method| {
        let choice = sent(method);
        (choice, received(choice, method))
    };
    let (first, second) = (whole(Method::Stream), whole(Method::Copy));
    let mut ways = vec![both(first)];
    if second != first {
        ways.push(both(second));
    }
    if first.0.way == Way::Ask && road.has_connection() && may_go(length, rules.eager) {
        ways.push("unasked over the connection where the receiver waited for the last ones".into());
    }
    let (choice, answer) = first;
    let why = match answer {
        Some(answer) if answer.because != choice.because => format!("{}; {}", choice.because, answer.because),
        _ => choice.because.to_string(),
    };
    (ways.join(", or "), why)
}

fn both((choice, answer): (Choice, Option<Choice>)) -> String {
    match answer {
        Some(answer) => format!("{}, {}", said(choice.way), said(answer.way)),
        None => said(choice.way),
    }
}

fn said(way: Way) -> String {
    match way {
        Way::Short => "in a cell".into(),
        Way::Eager { packet } if packet < 1024 => "without asking".into(),
        Way::Eager { packet } => format!("without asking, packets of {}", size(packet)),
        Way::EagerByConnection => "without asking, over the connection".into(),
        Way::Offer => "offered".into(),
        Way::Ask => "asked for".into(),
        Way::Nothing => "nothing".into(),
        Way::CopyShown => "copied by the receiver".into(),
        Way::CopyByReceiver => "copied by the receiver's kernel".into(),
        Way::CopyByBoth => "copied by both".into(),
        Way::Stream => "streamed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(settings: &[(&str, &str)], machine: Best) -> Vec<String> {
        let settings = Settings::from_env(settings.iter().copied()).expect("settings");
        table(&settings, machine).lines().map(str::to_owned).collect()
    }

    fn line<'a>(lines: &'a [String], part: &str, length: &str) -> &'a str {
        let start = lines.iter().position(|line| line.contains(part)).expect("a part");
        let wanted = |line: &&String| line.trim_start().starts_with(&format!("{length}  "));
        lines[start..].iter().find(wanted).expect("a line")
    }

    #[test]
    fn every_length_has_a_way_and_a_reason() {
        let lines = lines(&[], Best::default());
        assert_eq!(lines.iter().filter(|line| line.contains(": ")).count(), 30);
        assert!(line(&lines, "ordinary", "8 B").contains("in a cell: it fits into a cell"));
        assert!(line(&lines, "ordinary", "4 KiB").contains("packets of 8 KiB: it fits into one packet"));
        let learned = line(&lines, "ordinary", "64 KiB");
        assert!(
            learned.contains("packets of 16 KiB, or offered, copied by the receiver's kernel: the faster"),
            "{learned}"
        );
        let both = line(&lines, "Alloc_mem", "1 MiB");
        assert!(both.contains("asked for, copied by both: longer than WEFT_EAGER_BYTES; mapped"), "{both}");
        assert!(line(&lines, "between hosts", "16 KiB").contains("over the connection"));
        let unasked = line(&lines, "between hosts", "1 MiB");
        assert!(unasked.contains("asked for, streamed, or unasked over the connection"), "{unasked}");
    }

    #[test]
    fn settings_and_machine_show() {
        let far = Best::default().with_packets(32 << 10);
        assert!(line(&lines(&[], far), "ordinary", "16 KiB").contains("packets of 32 KiB"));
        let off = lines(&[("WEFT_SINGLE_COPY", "off")], Best::default());
        assert!(
            line(&off, "ordinary", "1 MiB")
                .contains("streamed: longer than WEFT_EAGER_BYTES; copies by the kernel are")
        );
        let short = lines(&[("WEFT_EAGER_BYTES", "1K")], Best::default());
        assert!(line(&short, "ordinary", "4 KiB").contains("asked for"));
    }
}
