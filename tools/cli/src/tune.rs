//! `weft tune`: measures this machine, and keeps what is best for messages on it.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use weft_agent::tuning::{self, Finding, Fingerprint, Tuning};
use weft_fabric::selector::machine::Best;

pub const LONG_ABOUT: &str = "Measure what is best for messages on this machine, for jobs that start from now on.\n\n\
    How long packets are best, and from which length on copies pay, differs between machines. This starts pairs of ranks for \
    some seconds, prints what messages took, and keeps what is best in a small file below the user's cache directory \
    (XDG_CACHE_HOME), one for each host and version. weft run tells the ranks. What was measured on another machine, by \
    another version, or while others used the processors, is not believed; weft info says so. Without a file the ranks use \
    what did best on other machines, and learn.";

#[derive(clap::Args)]
pub struct TuneArguments {
    /// Measure nothing, and show what was measured last
    #[arg(long)]
    show: bool,
    /// Print it in JSON
    #[arg(long)]
    json: bool,
}

fn file() -> Option<PathBuf> {
    tuning::path(|name| std::env::var_os(name))
}

pub fn main(given: &TuneArguments) -> anyhow::Result<i32> {
    let path = file().context("neither XDG_CACHE_HOME nor HOME says where the result is kept")?;
    let tuning = if given.show { kept(&path)? } else { measure(&path)? };
    match given.json {
        true => println!("{:#}", in_json(&tuning)),
        false => print!("{}\n{}", weft_bench::tune_table(&tuning.figures), best(&tuning)),
    }
    if let Some(doubt) = tuning.doubt(&Fingerprint::here()) {
        eprintln!("weft tune: this is not used by jobs: {doubt}");
    }
    Ok(0)
}

fn kept(path: &std::path::Path) -> anyhow::Result<Tuning> {
    let text = std::fs::read_to_string(path).with_context(|| format!("nothing was measured: {}", path.display()))?;
    match Tuning::parse(&text) {
        Some(tuning) => Ok(tuning),
        None => bail!("{} is not one that weft tune has written", path.display()),
    }
}

/// Measures, and keeps it.
fn measure(path: &std::path::Path) -> anyhow::Result<Tuning> {
    let tuned = weft_bench::tune()?;
    let (best, figures) = (tuned.best.to_string(), tuned.figures);
    let tuning = Tuning { machine: Fingerprint::here(), busy_percent: tuned.busy_percent, best, figures };
    let folder = path.parent().context("no folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Whoever reads it meanwhile sees all of one or of the other.
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let kept = std::fs::write(&partial, tuning.to_string()).and_then(|()| std::fs::rename(&partial, path));
    kept.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(tuning)
}

fn in_json(tuning: &Tuning) -> Value {
    let Fingerprint { version, processor, processors, caches, kernel } = &tuning.machine;
    let figures: Map<String, Value> = tuning.figures.iter().map(|(name, ns)| (name.clone(), json!(ns))).collect();
    json!({
        "version": version, "processor": processor, "processors": processors, "caches": caches, "kernel": kernel,
        "busy_percent": tuning.busy_percent, "best": tuning.best, "nanoseconds": figures,
    })
}

fn best(tuning: &Tuning) -> String {
    let Some(best) = Best::parse(&tuning.best) else { return format!("best: {}\n", tuning.best) };
    let kib = |bytes: usize| if bytes == usize::MAX { "no length".into() } else { format!("{} KiB", bytes >> 10) };
    let packets: Vec<String> =
        (12..=20).step_by(2).map(|log2| format!("{} for {}", kib(best.packet(1 << log2)), kib(1 << log2))).collect();
    format!(
        "best: one packet up to {}; packets of {}; copies by the kernel tried above {}; shown memory copied by its receiver \
         from {} to {}, by both above\n",
        kib(best.whole),
        packets.join(", "),
        kib(best.offers_above),
        kib(best.shown_from),
        kib(best.alone_to),
    )
}

/// What is known of this machine, and what jobs make of it.
pub fn known() -> (Best, String) {
    let usual = |why: String| (Best::default(), why);
    let Some(path) = file() else {
        return usual("as on other machines: no HOME says where weft tune keeps more".into());
    };
    match tuning::look(&path) {
        Finding::Nothing => {
            usual("as on other machines, and learned while jobs run; weft tune measures this one".into())
        }
        Finding::Doubtful(why) => usual(format!("as on other machines: {} is not believed: {why}", path.display())),
        Finding::Good(tuning) => match Best::parse(&tuning.best) {
            Some(best) => (best, format!("as weft tune has measured ({})", path.display())),
            None => usual(format!("as on other machines: {} is not believed: no numbers", path.display())),
        },
    }
}

/// One line of `weft info`.
pub fn line() -> String {
    format!("messages go {}\n", known().1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_best_is_said_in_words_and_in_json() {
        let figures = vec![("near/8".to_owned(), 60)];
        let text = Best::default().to_string();
        let tuning = Tuning { machine: Fingerprint::here(), busy_percent: 1, best: text, figures };
        let said = best(&tuning);
        assert!(said.contains("one packet up to 8 KiB") && said.contains("16 KiB for 64 KiB"), "{said}");
        let json = in_json(&tuning);
        assert_eq!((&json["nanoseconds"]["near/8"], &json["busy_percent"]), (&json!(60), &json!(1)));
    }
}
