//! How a simulated host ends, or stands still: between two steps, in all its tasks at once.
//!
//! turmoil can end a host only between two ticks. A blown fuse keeps every task of the host pending
//! until then, so nothing after the crash point runs anywhere on it.
//!
//! A blown fuse also drops the tasks, in the order in which they were started. Left to tokio, that
//! order would follow task numbers, which a process counts across all its runtimes: connections
//! would close in another order the next time, and one seed would be two histories.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use hookproof_core::time::Millis;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use super::stage::true_now;
use crate::journal::Journal;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type Slot = Mutex<Option<Task>>;

/// One life of a host, from its start to its crash.
#[derive(Clone, Default)]
pub(super) struct Fuse {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Whose life it is.
    who: &'static str,
    journal: Journal,
    blown: AtomicBool,
    tasks: Mutex<Vec<Weak<Slot>>>,
    reap: Notify,
    /// Whether the tasks were ever to stand still: rarely, and each poll asks.
    has_stood_still: AtomicBool,
    /// Until when all tasks stand still.
    still_until: Mutex<Option<Instant>>,
    /// How often a task had to wait for that.
    held_up: AtomicU64,
}

impl Fuse {
    /// Of a life of `who`. A panic in one of its tasks is told to the journal instead of vanishing with
    /// the task.
    pub(super) fn new(who: &'static str, journal: Journal) -> Self {
        Self { state: Arc::new(State { who, journal, ..State::default() }) }
    }

    pub(super) fn blow(&self) {
        self.state.blown.store(true, Ordering::Relaxed);
        self.state.reap.notify_one();
    }

    pub(super) fn is_blown(&self) -> bool {
        self.state.blown.load(Ordering::Relaxed)
    }

    /// All tasks stand still for so long, from now on; what reaches them meanwhile waits.
    pub(super) fn stand_still(&self, span: Millis) {
        self.state.has_stood_still.store(true, Ordering::Relaxed);
        *lock(&self.state.still_until) = Some(now() + span.to_duration());
        self.state.held_up.store(0, Ordering::Relaxed);
    }

    /// How often a task had to wait because all stood still.
    pub(super) fn held_up(&self) -> u64 {
        self.state.held_up.load(Ordering::Relaxed)
    }

    fn still_until(&self) -> Option<Instant> {
        if !self.state.has_stood_still.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.state.still_until).filter(|until| *until > now())
    }

    /// `task`, which stops for ever when the fuse blows.
    pub(super) fn wrap(&self, task: impl Future<Output = ()> + Send + 'static) -> Fused {
        let slot = Arc::new(Slot::new(Some(Box::pin(task))));
        let mut tasks = lock(&self.state.tasks);
        if tasks.len() == tasks.capacity() {
            tasks.retain(|task| task.strong_count() > 0);
        }
        tasks.push(Arc::downgrade(&slot));
        Fused { fuse: self.clone(), slot, still: None }
    }

    /// Waits for the fuse to blow, then drops what is left of each task. It must run on the host
    /// itself, where connections can be closed.
    pub(super) async fn reap(self) {
        while !self.is_blown() {
            self.state.reap.notified().await;
        }
        let tasks = std::mem::take(&mut *lock(&self.state.tasks));
        for slot in tasks.iter().filter_map(Weak::upgrade) {
            let task = lock(&slot).take();
            drop(task);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "it is for no driver to see")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "nor is it for the host to wait for")]
fn still(until: Instant) -> Pin<Box<Sleep>> {
    Box::pin(sleep_until(until))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task that stops for ever when its host's fuse blows.
pub(super) struct Fused {
    fuse: Fuse,
    slot: Arc<Slot>,
    /// Until when it stands still, if it was to run meanwhile.
    still: Option<Pin<Box<Sleep>>>,
}

impl Future for Fused {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.fuse.is_blown() {
            return Poll::Pending;
        }
        if let Some(until) = self.fuse.still_until() {
            let mut still = self.still.take().unwrap_or_else(|| still(until));
            if still.as_mut().poll(cx).is_pending() {
                self.fuse.state.held_up.fetch_add(1, Ordering::Relaxed);
                self.still = Some(still);
                return Poll::Pending;
            }
        }
        self.still = None;
        let mut slot = lock(&self.slot);
        let Some(task) = slot.as_mut() else { return Poll::Ready(()) };
        match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))) {
            Ok(_) if self.fuse.is_blown() => Poll::Pending,
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                *slot = None;
                Poll::Ready(())
            }
            Err(panic) => {
                let State { who, journal, .. } = &*self.fuse.state;
                journal.breakdown(true_now(), who, &format!("panic: {}", message(&*panic)));
                Poll::Ready(())
            }
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
