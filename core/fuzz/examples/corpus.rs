//! Writes the seeds of each target into `corpus/`, where cargo-fuzz begins.

use std::path::Path;
use std::{fs, io};

use hookproof_core_fuzz::TARGETS;

fn main() -> io::Result<()> {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        fs::create_dir_all(&folder)?;
        for (nth, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{nth:03}")), seed)?;
        }
    }
    Ok(())
}
