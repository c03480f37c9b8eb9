//! The cluster as a zone.

use super::file::{self, Slips};
use weft_database::zone::zone;

#[derive(clap::Args)]
pub struct ExportArguments {
    /// Name of the zone, as lab.example
    #[arg(long, value_name = "ZONE")]
    zone: String,
    /// Who serves the zone; may be given several times [default: the cluster's servers, which then need addresses]
    #[arg(long = "name-server", value_name = "NAME")]
    name_servers: Vec<String>,
}

pub fn export(given: &ExportArguments) -> Result<i32, Slips> {
    let cluster = file::find()?.cluster;
    let text = zone(&cluster, &given.zone, &given.name_servers).map_err(|line| vec![line])?;
    print!("{text}");
    if cluster.launch.is_some() {
        eprintln!("{}: the launch command stays out of the zone; WEFT_LAUNCH says it there", super::FRONT);
    }
    Ok(0)
}
