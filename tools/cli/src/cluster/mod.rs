//! `weft cluster`: a file that says which hosts there are and what partitions jobs run on.
//!
//! `file` finds it and writes it, `change` (with `draft`) and `reserve` have what changes it, `members` brings it to
//! the members, `show` prints it, `export` writes it as a zone, and `daemons` starts what serves
//! it. What it may say is the crate `weft-database`.

mod change;
mod daemons;
mod draft;
mod export;
pub mod file;
mod known;
mod members;
mod reserve;
mod show;

use crate::counted::counted;
use crate::reach::are_here;
use crate::{EXIT_USAGE, hosts};
use file::{ClusterFile, Slips, launch_of};
use std::path::PathBuf;
use weft_cluster::hosts::Launch;

const FRONT: &str = "weft cluster";

pub const LONG_ABOUT: &str = "\
Look after the file of a cluster: its members, and the partitions that jobs run on.

  weft cluster init lab node1 node2:4     writes the file lab.toml, and asks the hosts
  weft run --partition all -n 8 ./prog    uses it; so do WEFT_PARTITION and WEFT_RANKS

A cluster's file lies in ~/.config/weft or /etc/weft. WEFT_CLUSTER names it, or another file by its path; with a single \
file there nothing has to be named. WEFT_CLUSTER=dns:ZONE reads it from a name server, as export writes it. A file is \
TOML that people may write by hand; check names each mistake with its line. \
Nothing has to run on the hosts but what weft run --hosts needs.";

#[derive(clap::Subcommand)]
pub enum ClusterCommand {
    /// Write the file of a new cluster. Hosts that say no slots are asked for their cores.
    Init(InitArguments),
    /// Say what is wrong with the file, and look at the members as weft hosts check does.
    Check {
        /// Look at the file only
        #[arg(long)]
        offline: bool,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Show members and partitions.
    Show {
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the file in your editor (VISUAL, EDITOR, else vi). What has mistakes is not taken; the last version is
    /// kept.
    Edit,
    /// Keep hosts or slots of a partition for some users for a while, or show what is reserved.
    Reserve(reserve::ReserveArguments),
    /// Bring the file to all members. One that has a newer version keeps it.
    Apply,
    /// Start the daemon of each member, which counts slots, lets jobs in and keeps records.
    Start,
    /// End the daemon of each member. Jobs go on.
    Stop,
    /// Say where the page is that shows hosts, queue and jobs, and open it where there is a desktop.
    Page,
    /// Print the unit with which systemd starts the daemon of this host.
    Unit {
        /// Print that of its socket, which then is there before the daemon and while it begins again
        #[arg(long)]
        socket: bool,
    },
    /// Take what a member needs from standard input, and start its daemon; for weft cluster start.
    #[command(hide = true)]
    Begin { name: String, member: String },
    /// End the daemon of this host, if it shows the key from standard input to be its own; for weft cluster stop.
    #[command(hide = true)]
    End { name: String, member: String },
    /// Write the cluster as a zone for a name server.
    Export(export::ExportArguments),
    /// Take the cluster out of a zone, or from standard input, and write its file, if it is newer.
    Take(members::TakeArguments),
}

#[derive(clap::Args)]
pub struct InitArguments {
    /// What the cluster is called
    name: String,
    /// The members: NAME or NAME:SLOTS
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// The command that starts a program on a host, {host} being its name [default: WEFT_LAUNCH, else ssh]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<Launch>,
    /// Write it for all users, into /etc/weft
    #[arg(long, conflicts_with = "file")]
    system: bool,
    /// Write this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn main(command: ClusterCommand) -> i32 {
    let done = match command {
        ClusterCommand::Init(given) => change::init(given),
        ClusterCommand::Check { offline, json } => check(offline, json),
        ClusterCommand::Show { json } => show::show(json),
        ClusterCommand::Edit => change::edit(),
        ClusterCommand::Reserve(given) => reserve::reserve(&given),
        ClusterCommand::Apply => members::apply(),
        ClusterCommand::Start => daemons::start(),
        ClusterCommand::Stop => daemons::stop(),
        ClusterCommand::Page => crate::ask::page().map_err(|error| vec![format!("{error:#}")]),
        ClusterCommand::Unit { socket: false } => daemons::unit(),
        ClusterCommand::Unit { socket: true } => daemons::socket_unit(),
        ClusterCommand::Begin { name, member } => daemons::begin(&name, &member),
        ClusterCommand::End { name, .. } => daemons::end(&name),
        ClusterCommand::Export(given) => export::export(&given),
        ClusterCommand::Take(given) => members::take(given),
    };
    done.unwrap_or_else(|slips| {
        slips.iter().for_each(|slip| eprintln!("{FRONT}: {slip}"));
        EXIT_USAGE
    })
}

fn check(offline: bool, json: bool) -> Result<i32, Slips> {
    let ClusterFile { path, cluster, .. } = file::find()?;
    let (version, members, partitions) = (cluster.version, cluster.members.len(), cluster.partitions.len());
    let names: Vec<String> = cluster.members.iter().map(|member| member.name.clone()).collect();
    known::warn_of_unknown(&cluster.partitions, &cluster.reservations);
    // Jobs on this host alone are started without a launch command.
    let launch = if offline || are_here(&cluster.hosts()) { None } else { Some(launch_of(&cluster)?) };
    if !json {
        let counts = format!("{}, {}", counted(members, "member"), counted(partitions, "partition"));
        println!("{}: version {version}, {counts}", path.display());
        return Ok(launch.map_or(0, |launch| hosts::look_at(&names, &launch)));
    }
    let found = launch.map(|launch| hosts::find(&names, &launch)).transpose().map_err(|error| vec![error])?;
    let all = serde_json::json!({
        "file": path, "version": version, "members": members, "partitions": partitions,
        "found": found.as_ref().map(|(_, found)| found),
    });
    println!("{all:#}");
    Ok(i32::from(found.is_some_and(|(is_good, _)| !is_good)))
}
