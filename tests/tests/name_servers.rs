//! A cluster in the domain name system: our zone in nsd, handed on to knot by zone transfer, and read from both.
//!
//! The servers are ordinary processes on free ports of this host with folders of their own, ended by their process ids.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use weft_tests::{signal, sockets, tree};

const SIGHUP: i32 = 1;
/// How often is asked until a server knows; each question waits by itself.
const ASKS: usize = 2000;

struct NameServer(Child);

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &str, arguments: &[&str], folder: &Path) -> NameServer {
    let log = fs::File::create(folder.join("log")).expect("a log");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    NameServer(command.spawn().unwrap_or_else(|error| panic!("'{program}': {error}")))
}

fn nsd(folder: &Path, port: u16, secondary: u16) -> NameServer {
    let at = folder.display();
    let text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  username: \"\"\n  pidfile: \"{at}/pid\"\n  zonesdir: \"{at}\"\n  \
         xfrdir: \"{at}\"\n  zonelistfile: \"{at}/list\"\n  database: \"\"\n  server-count: 1\nremote-control:\n  \
         control-enable: no\nzone:\n  name: lab.example\n  zonefile: zone\n  notify: 127.0.0.1@{secondary} NOKEY\n  \
         provide-xfr: 127.0.0.1 NOKEY\n"
    );
    fs::write(folder.join("nsd.conf"), text).expect("written");
    start("/usr/sbin/nsd", &["-d", "-c", &format!("{at}/nsd.conf")], folder)
}

fn knot(folder: &Path, port: u16, primary: u16) -> NameServer {
    let at = folder.display();
    let text = format!(
        "server:\n    rundir: \"{at}\"\n    listen: 127.0.0.1@{port}\n    udp-workers: 1\n    tcp-workers: 1\n    \
         background-workers: 1\ndatabase:\n    storage: \"{at}\"\n    journal-db-max-size: 8M\n    \
         timer-db-max-size: 8M\n    kasp-db-max-size: 8M\nremote:\n  - id: primary\n    \
         address: 127.0.0.1@{primary}\nacl:\n  - id: notify\n    address: 127.0.0.1\n    action: notify\nzone:\n  \
         - domain: lab.example\n    storage: \"{at}\"\n    file: zone\n    master: primary\n    acl: notify\n"
    );
    fs::write(folder.join("knot.conf"), text).expect("written");
    start("/usr/sbin/knotd", &["-c", &format!("{at}/knot.conf")], folder)
}

fn weft(folder: &Path, cluster: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(arguments).env("XDG_CONFIG_HOME", folder).env("WEFT_CLUSTER", cluster).env_remove("WEFT_LAUNCH");
    command.stdin(Stdio::null()).output().expect("started")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a server at this port says, once that is a cluster of this version.
fn shown(folder: &Path, port: u16, version: u64) -> serde_json::Value {
    let place = format!("dns:lab.example@127.0.0.1:{port}");
    let mut last = String::new();
    for _ in 0..ASKS {
        let output = weft(folder, &place, &["cluster", "show", "--json"]);
        if output.status.success() {
            let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            if json["version"] == version {
                json["file"].take();
                return json;
            }
        }
        last = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("{place} has no version {version}: {last}");
}

fn of_file(folder: &Path) -> serde_json::Value {
    let mut json: serde_json::Value =
        serde_json::from_str(&said(&weft(folder, "lab", &["cluster", "show", "--json"]))).expect("JSON");
    json["file"].take();
    json
}

fn file(version: u64, members: usize) -> String {
    let mut text = format!("name = \"lab\"\nversion = {version}\nservers = [\"node1\", \"node0\"]\n");
    for member in 0..members {
        let (high, low) = (member / 250, member % 250 + 1);
        text += &format!("[[member]]\nname = \"node{member}\"\nslots = 16\n");
        text += &format!("address = [\"10.0.{high}.{low}\", \"fd00::{member}\"]\n");
        text += "features = [\"gpu\"]\n";
    }
    text + "[[partition]]\nname = \"night\"\nusers = [\"ada\", \"LAB\\\\grace\"]\ntime = \"12h\"\nprocesses = 4\n"
        + "members = [\"node1\", \"node0\"]\n[[partition]]\nname = \"all\"\n"
}

#[test]
fn a_zone_is_served_handed_on_and_read_as_the_cluster_that_it_was() {
    let folders = ["own", "nsd", "knot"].map(|name| (name, TempDir::new().expect("a folder")));
    let [own, first, second] = folders.each_ref().map(|(_, folder)| folder.path());
    let (primary, secondary) = (sockets::free_datagram_port(), sockets::free_datagram_port());
    let place = own.join("weft/lab.toml");
    fs::create_dir_all(own.join("weft")).expect("a folder");
    let publish = |version, members| {
        fs::write(&place, file(version, members)).expect("written");
        fs::write(first.join("zone"), said(&weft(own, "lab", &["cluster", "export", "--zone", "lab.example"])))
            .expect("written");
    };
    // As many members as make answers that are longer than a datagram, and several blocks.
    publish(7, 300);
    let nsd = nsd(first, primary, secondary);
    assert_eq!(shown(own, primary, 7), of_file(own));
    let _knot = knot(second, secondary, primary);
    assert_eq!(shown(own, secondary, 7), of_file(own));

    publish(8, 280);
    signal::send(nsd.0.id() as i32, SIGHUP);
    assert_eq!(shown(own, secondary, 8), of_file(own), "the secondary is told, and fetches it");

    // A host without a file takes it from the zone, once.
    let (other, at) = (TempDir::new().expect("a folder"), format!("dns:lab.example@127.0.0.1:{secondary}"));
    let take = || said(&weft(other.path(), "", &["cluster", "take", "--from", &at]));
    assert_eq!((take(), take()), ("has version 8 now, had none\n".into(), "has version 8\n".into()));
    assert_eq!(of_file(other.path()), of_file(own));

    let none = weft(own, &format!("dns:other.example@127.0.0.1:{primary}"), &["cluster", "show"]);
    let line = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(!none.status.success() && line.lines().count() == 1 && line.contains("_weft.other.example"), "{line}");
}
