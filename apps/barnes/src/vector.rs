//! Places, velocities and accelerations: what is calculated with them.

pub type Vector = [f64; 3];

pub fn added(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub fn subtracted(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub fn scaled(a: Vector, by: f64) -> Vector {
    a.map(|part| part * by)
}

/// The square of its length.
pub fn square(a: Vector) -> f64 {
    a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
}
