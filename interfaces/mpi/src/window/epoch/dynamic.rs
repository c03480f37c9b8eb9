//! Memory of dynamic windows.

use super::find;
use crate::error::{Class, Error, Result};
use crate::window::{Flavor, Window};
use crate::world::WORLD;

pub fn attach(handle: usize, base: usize, size: isize) -> Result<()> {
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    check_dynamic(window)?;
    let bytes = usize::try_from(size).map_err(|_| Error::new(Class::Size, format!("size {size} is negative")))?;
    if bytes > 0 && base == 0 {
        return Err(Error::new(
            Class::RmaAttach,
            format!("base is a null pointer, but {bytes} bytes are to be attached"),
        ));
    }
    if base.checked_add(bytes).is_none() {
        return Err(Error::new(Class::RmaAttach, format!("{bytes} bytes at {base:#x} are more than there can be")));
    }
    let overlaps = |&(at, there): &(usize, usize)| bytes > 0 && there > 0 && at < base + bytes && base < at + there;
    if let Some((at, there)) = window.attached.iter().copied().find(overlaps) {
        let detail = format!("{bytes} bytes at {base:#x} overlap the {there} at {at:#x} that are attached already");
        return Err(Error::new(Class::RmaAttach, detail));
    }
    window.attached.push((base, bytes));
    Ok(())
}

pub fn detach(handle: usize, base: usize) -> Result<()> {
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    check_dynamic(window)?;
    let found = window.attached.iter().position(|&(at, _)| at == base);
    let missing =
        || Error::new(Class::RmaAttach, format!("base {base:#x} is not attached to {}", window.display_name()));
    let index = found.ok_or_else(missing)?;
    window.attached.remove(index);
    Ok(())
}

fn check_dynamic(window: &Window) -> Result<()> {
    let other = || {
        let detail = format!("{} was not made by MPI_Win_create_dynamic", window.display_name());
        Error::new(Class::RmaFlavor, detail)
    };
    if window.flavor == Flavor::Dynamic { Ok(()) } else { Err(other()) }
}
