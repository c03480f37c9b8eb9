//! The ports of this process.

use crate::error::{Class, Error, Result};
use crate::world::WORLD;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use weft_fabric::door::Door;

/// A door that several threads may stand at.
pub(super) type Port = Arc<Mutex<Door>>;

static PORTS: LazyLock<Mutex<HashMap<String, Port>>> = LazyLock::new(Mutex::default);

fn ports() -> MutexGuard<'static, HashMap<String, Port>> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn locked(port: &Port) -> MutexGuard<'_, Door> {
    port.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A door of this process.
pub(super) fn door() -> Result<Door> {
    let opened = WORLD.enter().endpoint.open_door();
    opened.map_err(|error| Error::new(Class::Other, format!("no port can be opened: {error}")))
}

/// Opens a port; its name.
pub(super) fn open() -> Result<String> {
    let door = door()?;
    let name = door.name().to_owned();
    ports().insert(name.clone(), Arc::new(Mutex::new(door)));
    Ok(name)
}

/// What was opened under this name.
pub(super) fn find(name: &str) -> Result<Port> {
    ports().get(name).cloned().ok_or_else(|| unknown(name))
}

pub(super) fn close(name: &str) -> Result<()> {
    ports().remove(name).map(drop).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    let name: String = name.chars().take(80).collect();
    Error::new(Class::Port, format!("port_name '{name}' is no port that this process has open"))
}
