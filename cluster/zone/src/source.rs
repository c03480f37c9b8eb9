//! Where a cluster is asked for: `dns:lab.example`, or `dns:lab.example@10.0.0.1:53`.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use weft_database::zone::is_domain;

const PREFIX: &str = "dns:";
const PORT: u16 = 53;
const CONFIGURATION: &str = "/etc/resolv.conf";
/// As many as other resolvers ask.
const SERVERS_MAX: usize = 3;

/// A zone, and perhaps the name server that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonePlace {
    origin: String,
    server: Option<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("'{given}' is not dns:ZONE or dns:ZONE@ADDRESS, as in dns:lab.example@10.0.0.1:53")]
    Bad { given: String },
    #[error("'{CONFIGURATION}': {error}")]
    Configuration { error: String },
}

impl ZonePlace {
    /// Whether this is meant as one.
    pub fn is_meant(given: &str) -> bool {
        given.starts_with(PREFIX)
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Those that are asked, in their order.
    pub(crate) fn servers(&self) -> Result<Vec<SocketAddr>, PlaceError> {
        if let Some(server) = self.server {
            return Ok(vec![server]);
        }
        let text = fs::read_to_string(CONFIGURATION);
        let text = text.map_err(|error| PlaceError::Configuration { error: error.to_string() })?;
        Ok(servers_in(&text))
    }
}

/// The name servers of a resolver's configuration; without any, the one of this host.
fn servers_in(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().map(str::split_whitespace);
    let named = lines.filter_map(|mut words| (words.next() == Some("nameserver")).then(|| words.next())?);
    let addresses = named.filter_map(|address| address.parse::<IpAddr>().ok());
    let mut servers: Vec<SocketAddr> = addresses.take(SERVERS_MAX).map(|address| (address, PORT).into()).collect();
    if servers.is_empty() {
        servers.push((Ipv4Addr::LOCALHOST, PORT).into());
    }
    servers
}

impl FromStr for ZonePlace {
    type Err = PlaceError;

    fn from_str(given: &str) -> Result<Self, PlaceError> {
        let bad = || PlaceError::Bad { given: given.to_owned() };
        let rest = given.strip_prefix(PREFIX).ok_or_else(bad)?;
        let (origin, server) = match rest.split_once('@') {
            None => (rest, None),
            Some((origin, server)) => {
                let alone = server.parse::<IpAddr>().map(|address| SocketAddr::from((address, PORT)));
                (origin, Some(alone.or_else(|_| server.parse::<SocketAddr>()).map_err(|_| bad())?))
            }
        };
        let origin = origin.strip_suffix('.').unwrap_or(origin).to_owned();
        if is_domain(&origin) { Ok(Self { origin, server }) } else { Err(bad()) }
    }
}

impl fmt::Display for ZonePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.origin)?;
        self.server.map_or(Ok(()), |server| write!(f, "@{server}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_zone_and_perhaps_a_server() {
        let read = |given: &str| given.parse::<ZonePlace>().map(|place| place.to_string());
        assert_eq!(read("dns:lab.example."), Ok("dns:lab.example".to_owned()));
        assert_eq!(read("dns:lab.example@10.0.0.1"), Ok("dns:lab.example@10.0.0.1:53".to_owned()));
        assert_eq!(read("dns:lab.example@[fd00::1]:5353"), Ok("dns:lab.example@[fd00::1]:5353".to_owned()));
        for given in
            ["lab.example", "dns:", "dns:a..b", "dns:a b", "dns:lab@ns1", "dns:lab@10.0.0.1:70000", "dns:lab.."]
        {
            assert_eq!(read(given), Err(PlaceError::Bad { given: given.to_owned() }), "{given}");
        }
    }

    #[test]
    fn name_servers_are_those_of_the_system() {
        let some =
            servers_in("# x\nsearch lab\nnameserver 10.0.0.1\nnameserver\nnameserver bad\n nameserver fd00::1\n");
        assert_eq!(some, ["10.0.0.1:53", "[fd00::1]:53"].map(|text| text.parse().expect("an address")));
        assert_eq!(servers_in(""), ["127.0.0.1:53".parse().expect("an address")]);
    }
}
