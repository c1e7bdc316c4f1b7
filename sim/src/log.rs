//! Any log at level ERROR breaks a history: it says that something happened which must not happen.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Tells each error that is logged; drops everything else.
pub(crate) struct Errors<F> {
    tell: F,
}

impl<F: Fn(String) + Send + Sync + 'static> Errors<F> {
    pub(crate) fn new(tell: F) -> Self {
        Self { tell }
    }
}

impl<F: Fn(String) + Send + Sync + 'static> Subscriber for Errors<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::ERROR)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Text(&mut text));
        (self.tell)(format!("{} logged an error:{text}", event.metadata().target()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
