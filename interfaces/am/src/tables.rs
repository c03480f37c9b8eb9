//! What programs hold: bundles and endpoints, by numbers that stand in pointers of theirs.
//!
//! A pointer that a program gives is a number of a place in a table and how often that place was used before, so a
//! wrong one, or one of something that was given up, is an error and not a crash.

use crate::arrived::AmArrival;
use crate::message::EndpointId;
use crate::name::EndpointName;
use crate::stats::Stats;
use std::collections::VecDeque;
use std::ffi::c_void;

/// Handlers of an endpoint.
pub const HANDLERS: usize = 256;
/// Entries of a translation table at first, and at most.
pub const TRANSLATIONS: usize = 256;
pub const MOST_TRANSLATIONS: usize = 1 << 20;
/// Bundles, and endpoints, of a process at most.
pub const MOST_BUNDLES: usize = 255;
pub const MOST_ENDPOINTS: usize = 65_535;

/// A function of the program, of the type that its caller knows.
pub type CFunction = unsafe extern "C" fn();
pub type BeforeHandler = unsafe extern "C" fn(u32, i32, i32, *mut c_void, *mut c_void, usize, i32, *mut u32);
pub type AfterHandler = unsafe extern "C" fn(u32, i32);

/// Where an endpoint sends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    pub name: EndpointName,
    pub tag: u64,
}

/// Memory of the program in which long messages land.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOfUser {
    pub begin: usize,
    pub length: usize,
}

pub struct AmEndpoint {
    pub bundle: BundleId,
    pub tag: u64,
    pub segment: SegmentOfUser,
    pub handlers: Box<[Option<CFunction>; HANDLERS]>,
    pub translations: Vec<Option<Translation>>,
    /// `AM_SetExpectedResources` was called.
    pub is_sized: bool,
    pub before: Option<BeforeHandler>,
    pub after: Option<AfterHandler>,
    /// What has come for it.
    pub inbox: VecDeque<AmArrival>,
    pub stats: Stats,
}

impl AmEndpoint {
    pub fn new(bundle: BundleId) -> Self {
        Self {
            bundle,
            tag: 0,
            segment: SegmentOfUser::default(),
            handlers: Box::new([None; HANDLERS]),
            translations: vec![None; TRANSLATIONS],
            is_sized: false,
            before: None,
            after: None,
            inbox: VecDeque::new(),
            stats: Stats::INITIAL,
        }
    }

    #[inline]
    pub fn translation(&self, index: u32) -> Option<Translation> {
        self.translations.get(index as usize).copied().flatten()
    }

    /// The index of an endpoint in the table. Where all processes are mapped it is the rank.
    pub fn index_of(&self, rank: u32, id: EndpointId) -> Option<u32> {
        let is_it = |index: u32| self.translation(index).is_some_and(|entry| entry.name.is_of(rank, id));
        let likely = Some(rank).filter(|rank| is_it(*rank));
        likely.or_else(|| (0..self.translations.len() as u32).find(|index| is_it(*index)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleId(EndpointId);

impl BundleId {
    /// No bundle.
    pub const NONE: Self = Self(EndpointId { slot: u16::MAX, generation: u16::MAX });
}

pub struct Bundle {
    pub endpoints: Vec<EndpointId>,
    pub event_mask: i32,
}

/// Values by place; the place of one that was taken out is used again, under another generation.
pub struct PlaceTable<T> {
    places: Vec<(u16, Option<T>)>,
    most: usize,
}

impl<T> PlaceTable<T> {
    pub const fn new(most: usize) -> Self {
        Self { places: Vec::new(), most }
    }

    /// `None` if there are as many as may be.
    pub fn put(&mut self, value: T) -> Option<EndpointId> {
        let free = self.places.iter().position(|(_, value)| value.is_none());
        let slot = match free {
            Some(slot) => slot,
            None if self.places.len() < self.most => {
                self.places.push((0, None));
                self.places.len() - 1
            }
            None => return None,
        };
        let place = &mut self.places[slot];
        place.1 = Some(value);
        Some(EndpointId { slot: slot as u16, generation: place.0 })
    }

    #[inline]
    pub fn get(&mut self, id: EndpointId) -> Option<&mut T> {
        let (generation, value) = self.places.get_mut(usize::from(id.slot))?;
        value.as_mut().filter(|_| *generation == id.generation)
    }

    pub fn take(&mut self, id: EndpointId) -> Option<T> {
        self.get(id)?;
        let (generation, value) = &mut self.places[usize::from(id.slot)];
        *generation = generation.wrapping_add(1);
        value.take()
    }
}

/// A value that programs hold as a pointer; the lower bits tell what it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct AmHandle(*mut c_void);

const OF_BUNDLE: usize = 5;
const OF_ENDPOINT: usize = 9;

impl AmHandle {
    fn of(kind: usize, id: EndpointId) -> Self {
        let number = (usize::from(id.generation) << 16 | usize::from(id.slot)) << 4 | kind;
        Self(std::ptr::without_provenance_mut(number))
    }

    #[inline]
    fn id(self, kind: usize) -> Option<EndpointId> {
        let number = self.0.addr();
        let id = EndpointId { slot: (number >> 4) as u16, generation: (number >> 20) as u16 };
        (Self::of(kind, id) == self).then_some(id)
    }

    pub fn of_bundle(id: BundleId) -> Self {
        Self::of(OF_BUNDLE, id.0)
    }

    pub fn of_endpoint(id: EndpointId) -> Self {
        Self::of(OF_ENDPOINT, id)
    }

    pub fn bundle(self) -> Option<BundleId> {
        self.id(OF_BUNDLE).map(BundleId)
    }

    pub fn endpoint(self) -> Option<EndpointId> {
        self.id(OF_ENDPOINT)
    }
}

/// The bundles and endpoints of the process.
pub struct AmTables {
    bundles: PlaceTable<Bundle>,
    endpoints: PlaceTable<AmEndpoint>,
    /// Messages that wait for all of them.
    waiting: usize,
}

impl AmTables {
    pub const fn new() -> Self {
        Self { bundles: PlaceTable::new(MOST_BUNDLES), endpoints: PlaceTable::new(MOST_ENDPOINTS), waiting: 0 }
    }

    pub fn add_bundle(&mut self) -> Option<BundleId> {
        self.bundles.put(Bundle { endpoints: Vec::new(), event_mask: 0 }).map(BundleId)
    }

    pub fn bundle(&mut self, id: BundleId) -> Option<&mut Bundle> {
        self.bundles.get(id.0)
    }

    /// Gives a bundle up with its endpoints.
    pub fn remove_bundle(&mut self, id: BundleId) -> Option<()> {
        for endpoint in self.bundles.take(id.0)?.endpoints {
            self.take(endpoint);
        }
        Some(())
    }

    /// `None` if there is no such bundle, or there are as many endpoints as may be.
    pub fn add_endpoint(&mut self, bundle: BundleId) -> Option<EndpointId> {
        self.bundle(bundle)?;
        let id = self.endpoints.put(AmEndpoint::new(bundle))?;
        self.bundle(bundle)?.endpoints.push(id);
        Some(id)
    }

    #[inline]
    pub fn endpoint(&mut self, id: EndpointId) -> Option<&mut AmEndpoint> {
        self.endpoints.get(id)
    }

    /// An endpoint that is given up, with what waits for it.
    fn take(&mut self, id: EndpointId) -> Option<AmEndpoint> {
        let endpoint = self.endpoints.take(id)?;
        self.waiting -= endpoint.inbox.len();
        Some(endpoint)
    }

    /// Keeps a message until its bundle is polled, if there is the endpoint that it is for.
    pub fn keep(&mut self, id: EndpointId, message: AmArrival) {
        if let Some(endpoint) = self.endpoints.get(id) {
            endpoint.inbox.push_back(message);
            self.waiting += 1;
        }
    }

    pub fn remove_endpoint(&mut self, id: EndpointId) -> Option<()> {
        let endpoint = self.take(id)?;
        if let Some(bundle) = self.bundle(endpoint.bundle) {
            bundle.endpoints.retain(|other| *other != id);
        }
        Some(())
    }

    /// Moves an endpoint from one bundle to another; `None` if it is not in that one.
    pub fn move_endpoint(&mut self, id: EndpointId, from: BundleId, to: BundleId) -> Option<()> {
        self.bundle(to)?;
        let endpoint = self.endpoints.get(id).filter(|endpoint| endpoint.bundle == from)?;
        endpoint.bundle = to;
        self.bundle(from)?.endpoints.retain(|other| *other != id);
        self.bundle(to)?.endpoints.push(id);
        Some(())
    }

    /// The first message that waits in a bundle.
    #[inline]
    pub fn next_of(&mut self, bundle: BundleId) -> Option<AmArrival> {
        if self.waiting == 0 {
            return None;
        }
        let Self { bundles, endpoints, .. } = self;
        let ids = &bundles.get(bundle.0)?.endpoints;
        let next = ids.iter().find_map(|id| endpoints.get(*id)?.inbox.pop_front())?;
        self.waiting -= 1;
        Some(next)
    }

    /// Whether a message waits in a bundle.
    pub fn has_message(&mut self, bundle: BundleId) -> bool {
        let Self { bundles, endpoints, .. } = self;
        let Some(bundle) = bundles.get(bundle.0) else { return false };
        bundle.endpoints.iter().any(|id| endpoints.get(*id).is_some_and(|endpoint| !endpoint.inbox.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_used_again_has_another_number() {
        let mut tables = AmTables::new();
        let bundle = tables.add_bundle().expect("the first");
        let one = tables.add_endpoint(bundle).expect("the first");
        tables.remove_endpoint(one).expect("it was there");
        let two = tables.add_endpoint(bundle).expect("the second");
        assert_eq!(one.slot, two.slot);
        assert!(tables.endpoint(one).is_none() && tables.endpoint(two).is_some());
        assert_eq!(tables.remove_endpoint(one), None);
    }

    #[test]
    fn pointers_of_nothing_and_of_others_lead_nowhere() {
        let id = EndpointId { slot: 3, generation: 4 };
        assert_eq!(AmHandle::of_endpoint(id).endpoint(), Some(id));
        assert_eq!(AmHandle::of_endpoint(id).bundle(), None);
        for number in [0, 1, 0x7fff_1234_5670, usize::MAX] {
            let handle = AmHandle(std::ptr::without_provenance_mut(number));
            assert!(handle.bundle().is_none() && handle.endpoint().is_none(), "{number:x}");
        }
    }

    #[test]
    fn an_endpoint_moves_with_all_it_has() {
        let mut tables = AmTables::new();
        let (a, b) = (tables.add_bundle().expect("one"), tables.add_bundle().expect("two"));
        let id = tables.add_endpoint(a).expect("one");
        tables.endpoint(id).expect("there").tag = 7;
        assert_eq!(tables.move_endpoint(id, b, a), None);
        tables.move_endpoint(id, a, b).expect("from a to b");
        tables.remove_bundle(a).expect("empty");
        assert_eq!(tables.endpoint(id).expect("there").tag, 7);
        tables.remove_bundle(b).expect("with it");
        assert!(tables.endpoint(id).is_none());
    }

    #[test]
    fn no_more_bundles_than_may_be() {
        let mut tables = AmTables::new();
        assert!((0..MOST_BUNDLES).all(|_| tables.add_bundle().is_some()));
        assert!(tables.add_bundle().is_none());
    }
}
