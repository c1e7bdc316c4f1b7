//! How far a run is, on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with a remark. Without a terminal it shows nothing.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over so many things, which `unit` names.
    pub(crate) fn new(length: u64, unit: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let template = format!("[{{bar:30}}] {{pos}} of {{len}} {unit}{{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// Shows a state.
    pub(crate) fn show(&self, position: u64, remark: String) {
        self.bar.set_message(remark);
        self.bar.set_position(position);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
