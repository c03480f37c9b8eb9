//! What is known of the liquid and of the particles, in units of metres, seconds and volts.
//!
//! The values are those of the input `c3h6.i` of Orca's moca: propane-like, with the same mobility for both kinds.

/// How fast either kind diffuses.
pub const DIFFUSION: f64 = 1.264e-9;
/// How fast it moves in a field.
pub const MOBILITY: f64 = 5e-8;
/// Where the energy of two charges is that of their heat.
pub const ONSAGER: f64 = 285.157e-10;
/// A pair that is nearer recombines.
pub const REACTION: f64 = 15e-10;
/// How far electrons come from their ions at the start.
pub const SPREAD: f64 = 106e-10;

/// The unit of time: in it particles diffuse as far as the Onsager radius.
pub const UNIT: f64 = ONSAGER * ONSAGER / (2.0 * DIFFUSION);
/// A cluster is followed so long.
pub const LAST: f64 = 100.0 * UNIT;

/// The force of one charge on another at a distance of 1, as a field.
pub const FIELD: f64 = ONSAGER * DIFFUSION / MOBILITY;

/// A step is so long that the nearest pair diffuses by a tenth of its distance.
pub fn step(nearest_squared: f64) -> f64 {
    0.01 / 6.0 / (2.0 * DIFFUSION) * nearest_squared
}

/// The kinetic curve has so many points in a decade, from the first one on.
pub const POINTS: f64 = 10.0;
pub const FIRST_DECADE: f64 = -6.0;
/// Its points, up to `LAST`.
pub const CURVE: usize = 81;

/// The point of the curve at which something has happened.
pub fn point(time: f64) -> usize {
    let decades = (time / UNIT).max(1e-300).log10() - FIRST_DECADE;
    (decades * POINTS).ceil().clamp(0.0, (CURVE - 1) as f64) as usize
}

/// The probability that a pair at this distance escapes from each other for ever (Onsager 1938).
pub fn escape(distance: f64) -> f64 {
    (-ONSAGER / distance).exp()
}

/// Where the ions of the first track of Orca's input `fort.20` are.
#[rustfmt::skip]
pub const TRACK: [[f64; 3]; 17] = [
    [2.0451200E-10, 4.1983799E-12, -8.8398906E-13],
    [2.3148399E-09, 1.2932900E-09, 1.3160201E-09],
    [3.0299701E-09, 1.6195101E-09, 1.9681401E-09],
    [3.0627501E-09, 1.6302000E-09, 2.0181299E-09],
    [3.4648400E-09, 1.7968600E-09, 2.5372000E-09],
    [4.2916199E-09, 8.0698098E-10, 5.3981601E-09],
    [4.1339199E-09, 1.3770500E-09, 6.4504206E-09],
    [4.0926200E-09, 1.4131301E-09, 6.4785599E-09],
    [3.8285703E-09, 6.4568700E-10, 1.1752700E-09],
    [3.8770902E-09, 7.7867401E-10, 8.6887797E-10],
    [3.8889403E-09, 4.0054202E-10, 6.1548304E-09],
    [3.9181902E-09, 3.8639902E-10, 6.3685102E-09],
    [3.9225703E-09, 1.0030600E-09, 7.8705202E-09],
    [3.6716499E-09, 1.3562600E-09, 8.0359905E-09],
    [4.2597001E-09, 1.3915000E-09, 6.6364096E-09],
    [4.9189204E-09, 1.2782900E-09, 6.9277606E-09],
    [5.4342602E-09, 8.0716694E-10, 6.1944303E-09],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_tenths_of_decades() {
        let times = [0.0, 1e-6, 1.01e-6, 0.99, 1.01, 100.0, 1e9];
        assert_eq!(times.map(|time| point(time * UNIT)), [0, 0, 1, 60, 61, 80, 80]);
    }
}
