//! A picture of numbers, as a PNG file: from cold for the least to hot for the greatest of them.

use crate::report::AppFailure;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

type Colour = [u8; 3];

/// Of evenly rising lightness.
const SCALE: [Colour; 8] = [
    [8, 10, 40],
    [45, 20, 100],
    [110, 25, 120],
    [175, 45, 95],
    [225, 85, 60],
    [245, 145, 50],
    [250, 205, 90],
    [255, 250, 215],
];

/// Writes rows of `width` numbers, from the top. What is no number is black.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, width: usize, numbers: &[f64]) -> Result<(), AppFailure> {
    let (least, greatest) = range(numbers);
    let scale = if greatest > least { 1.0 / (greatest - least) } else { 0.0 };
    let colours = numbers.iter().map(|number| colour_at((number - least) * scale));
    write_colours(path, width, &colours.collect::<Vec<_>>())
}

/// The same with colours.
///
/// # Errors
/// The file cannot be written.
pub fn write_colours(path: &Path, width: usize, colours: &[Colour]) -> Result<(), AppFailure> {
    let height = colours.len() / width;
    let cannot = |why: String| AppFailure::Other(format!("{}: {why}", path.display()));
    let file = File::create(path).map_err(|fault| cannot(fault.to_string()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(|fault| cannot(fault.to_string()))?;
    writer.write_image_data(colours.as_flattened()).map_err(|fault| cannot(fault.to_string()))?;
    writer.finish().map_err(|fault| cannot(fault.to_string()))
}

fn range(numbers: &[f64]) -> (f64, f64) {
    let real = numbers.iter().copied().filter(|number| number.is_finite());
    real.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), number| (least.min(number), greatest.max(number)))
}

/// The colour of a place from 0 to 1 on the scale.
pub fn colour_at(place: f64) -> Colour {
    if !place.is_finite() {
        return [0; 3];
    }
    let place = place.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let step = (place as usize).min(SCALE.len() - 2);
    let share = place - step as f64;
    let mix = |from: u8, to: u8| (f64::from(from) + share * (f64::from(to) - f64::from(from)) + 0.5) as u8;
    std::array::from_fn(|part| mix(SCALE[step][part], SCALE[step + 1][part]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_cold_and_the_greatest_hot() {
        assert_eq!((colour_at(0.0), colour_at(1.0), colour_at(f64::NAN)), (SCALE[0], SCALE[7], [0; 3]));
        assert_eq!(range(&[2.0, f64::NAN, -1.0]), (-1.0, 2.0));
    }
}
