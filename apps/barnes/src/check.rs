//! What is known of the result: what another program finds for the same bodies, that energy stays, and what pulls a
//! body if all others are asked one by one.

use crate::force::{Puller, direct};
use crate::stars::Star;
use crate::tree::Octree;
use crate::vector::{square, subtracted};
use crate::{ACCURACY, STEP};
use weft_app_objects::AppAnswer;

/// The bodies, and kinetic energy, potential energy and terms in the first and in the eleventh step. From SPLASH-3's
/// barnes (`n16384-p1` with `tstop` 0.25), to which a line was added that prints them.
type Known = (usize, [[f64; 3]; 2]);

const KNOWN: [Known; 4] = [
    (1024, [[0.0865102479006987, -0.124573400345681, 139_080.0], [0.0862857940943278, -0.124352260655252, 138_831.0]]),
    (
        8192,
        [[0.0841991998349453, -0.121498133596204, 1_770_202.0], [0.0840098519452153, -0.121309006082867, 1_775_159.0]],
    ),
    (
        16384,
        [[0.083362856998641, -0.120669335835963, 3_864_950.0], [0.0832583918057767, -0.120564100792203, 3_888_140.0]],
    ),
    (
        65536,
        [[0.0842008549656641, -0.120402389575663, 17_684_431.0], [0.0841167517961125, -0.12031600098208, 17_683_973.0]],
    ),
];

const KNOWN_STEPS: u32 = 11;

/// How far each of them may differ: sums are in another order, and so one cube or other may be far enough after some
/// steps that was not.
const ROUNDING: [(&str, f64); 3] = [("kinetic energy", 1e-9), ("potential energy", 1e-9), ("terms", 1e-4)];

/// So much may a tree differ from all bodies one by one, as a part of the pull. Usual are 0.02 to 0.05.
const TREE_ERROR: f64 = 0.1;

/// So much of its first value may the energy change in a unit of time: leaving out what the tree leaves out, and
/// steps.
const DRIFT: f64 = 0.01;

/// So many bodies are asked.
const SAMPLE: usize = 64;

/// Checks the accounts of the first and the last step.
pub fn run(answer: &mut AppAnswer, initial: &[Star], steps: u32, accounts: [[f64; 3]; 2]) {
    let known = KNOWN.iter().find(|(count, _)| *count == initial.len());
    if let Some((_, known)) = known {
        compare(answer, "first", accounts[0], known[0]);
        if steps == KNOWN_STEPS {
            compare(answer, "last", accounts[1], known[1]);
        }
    }
    let [first, last] = accounts.map(|[kinetic, potential, _]| kinetic + potential);
    let (drift, bound) = ((last / first - 1.0).abs(), DRIFT * (1.0 + f64::from(steps) * STEP));
    answer.check(drift <= bound, || format!("energy has changed from {first} to {last}"));
    let error = tree_error(initial);
    answer.check(error <= TREE_ERROR, || format!("pulls differ by {error:.1e} from those of all bodies one by one"));
}

fn compare(answer: &mut AppAnswer, step: &str, found: [f64; 3], known: [f64; 3]) {
    for ((what, rounding), (found, known)) in ROUNDING.into_iter().zip(found.into_iter().zip(known)) {
        answer.check((found / known - 1.0).abs() <= rounding, || {
            format!("{what} in the {step} step is {found}, and should be {known}")
        });
    }
}

/// How far pulls are from right ones: the root of the mean square over some bodies, as a part of that of the pulls.
fn tree_error(initial: &[Star]) -> f64 {
    let mass = 1.0 / initial.len() as f64;
    let tree = Octree::new(initial, mass);
    let mut puller = Puller::new(&tree, mass, ACCURACY);
    let sample = SAMPLE.min(initial.len());
    let (mut wrong, mut all) = (0.0, 0.0);
    for slot in (0..sample).map(|number| number * initial.len() / sample) {
        let right = direct(&tree.stars, slot, mass, ACCURACY.softening).acceleration;
        wrong += square(subtracted(puller.pulls(slot..slot + 1)[0].acceleration, right));
        all += square(right);
    }
    (wrong / all).sqrt()
}
