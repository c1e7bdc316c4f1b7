//! What runs for an attempt, by whichever task: whatever it does is known to be done for that attempt.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::stage::{Stage, lock};
use super::witness::AttemptName;

pin_project! {
    /// The work of an attempt: whatever it does, it is known for which attempt.
    pub(super) struct InAttempt<T> {
        #[pin]
        work: T,
        // There except while the work runs: then the stage has it.
        name: Option<AttemptName>,
        stage: Arc<Stage>,
    }
}

impl<T> InAttempt<T> {
    pub(super) fn new(name: AttemptName, work: T, stage: Arc<Stage>) -> Self {
        Self { work, name: Some(name), stage }
    }
}

impl<T: Future> Future for InAttempt<T> {
    type Output = T::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        let attempt = self.project();
        *lock(&attempt.stage.current) = attempt.name.take();
        let polled = attempt.work.poll(cx);
        *attempt.name = lock(&attempt.stage.current).take();
        polled
    }
}
