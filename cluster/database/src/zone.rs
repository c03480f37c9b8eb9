//! A whole zone for a name server, as text.

use crate::records::{RecordBlock, records};
use crate::{Cluster, Member};
use std::fmt::Write as _;

/// Seconds for which others may keep what they were told, and what was not there.
const TTL: u32 = 60;
/// Seconds after which a secondary asks again, asks again after a failure, and gives up.
const REFRESH: [u32; 3] = [300, 60, 604_800];

/// The zone of a cluster. `origin` is its name; `name_servers` serve it, and without any the cluster's servers do,
/// which then need addresses.
///
/// The serial number is the version of the cluster. Besides its records there are addresses of members and, for tools
/// that look for daemons, SRV records of the servers.
///
/// # Errors
/// One line: the origin is no name of a zone, or nobody serves it.
pub fn zone(cluster: &Cluster, origin: &str, name_servers: &[String]) -> Result<String, String> {
    let origin = origin.trim_end_matches('.');
    if !is_domain(origin) {
        return Err(format!("'{origin}' is no name of a zone, as lab.example is"));
    }
    let own: Vec<&Member> = cluster.servers.iter().filter_map(|server| cluster.member(server)).collect();
    let own = own.iter().filter(|member| !member.addresses.is_empty() && is_label(&member.name));
    let mut servers: Vec<String> = name_servers.iter().map(|name| absolute(name, origin)).collect();
    if servers.is_empty() {
        servers.extend(own.map(|member| absolute(&member.name, origin)));
    }
    let Some(first) = servers.first() else {
        return Err(
            "nobody serves the zone: servers of the cluster have no address, and no name server is given".to_owned()
        );
    };
    let mut text = format!("; cluster {}, version {}\n$ORIGIN {origin}.\n$TTL {TTL}\n", cluster.name, cluster.version);
    // Serial numbers are of 32 bits, and count around.
    let serial = cluster.version & u64::from(u32::MAX);
    let [refresh, retry, expire] = REFRESH;
    let _ = writeln!(text, "@ IN SOA {first} hostmaster.{origin}. {serial} {refresh} {retry} {expire} {TTL}");
    servers.iter().for_each(|server| _ = writeln!(text, "@ IN NS {server}"));
    for member in cluster.members.iter().filter(|member| is_label(&member.name)) {
        for address in &member.addresses {
            let kind = if address.is_ipv4() { "A" } else { "AAAA" };
            let _ = writeln!(text, "{} IN {kind} {address}", member.name);
        }
    }
    let named = cluster.servers.iter().filter(|server| is_domain(server)).enumerate();
    for (at, server) in named {
        let target = absolute(server, origin);
        let _ = writeln!(text, "_weftd._tcp IN SRV {at} 0 {} {target}", cluster.port);
    }
    for RecordBlock { name, records } in records(cluster) {
        for texts in records {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            let _ = writeln!(text, "{name} IN TXT {}", texts.join(" "));
        }
    }
    Ok(text)
}

/// A name of one label is one of the zone.
fn absolute(name: &str, origin: &str) -> String {
    match name.trim_end_matches('.') {
        host if is_label(host) => format!("{host}.{origin}."),
        other => format!("{other}."),
    }
}

fn is_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=63).contains(&name.len()) && name.bytes().all(plain)
}

/// Whether a zone can have this name, and its records as well.
pub fn is_domain(name: &str) -> bool {
    name.len() <= 200 && name.split('.').all(is_label)
}

/// As it stands in a zone: bytes that are no plain text by their number.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            other => _ = write!(quoted, "\\{other:03}"),
        }
    }
    quoted.push('"');
    quoted
}
