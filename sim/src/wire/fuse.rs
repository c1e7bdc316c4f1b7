//! How a simulated host ends: between two steps, in all its tasks at once.
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use tokio::sync::Notify;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type Slot = Mutex<Option<Task>>;

/// One life of a host, from its start to its crash.
#[derive(Clone, Default)]
pub(super) struct Fuse {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    blown: AtomicBool,
    tasks: Mutex<Vec<Weak<Slot>>>,
    reap: Notify,
}

impl Fuse {
    pub(super) fn blow(&self) {
        self.state.blown.store(true, Ordering::Relaxed);
        self.state.reap.notify_one();
    }

    pub(super) fn is_blown(&self) -> bool {
        self.state.blown.load(Ordering::Relaxed)
    }

    /// `task`, which stops for ever when the fuse blows. A panic in it is told to `on_panic` instead
    /// of vanishing with the task.
    pub(super) fn wrap(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        on_panic: impl Fn(String) + Send + 'static,
    ) -> Fused {
        let slot = Arc::new(Slot::new(Some(Box::pin(task))));
        let mut tasks = lock(&self.state.tasks);
        if tasks.len() == tasks.capacity() {
            tasks.retain(|task| task.strong_count() > 0);
        }
        tasks.push(Arc::downgrade(&slot));
        Fused { fuse: self.clone(), slot, on_panic: Box::new(on_panic) }
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task that stops for ever when its host's fuse blows.
pub(super) struct Fused {
    fuse: Fuse,
    slot: Arc<Slot>,
    on_panic: Box<dyn Fn(String) + Send>,
}

impl Future for Fused {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.fuse.is_blown() {
            return Poll::Pending;
        }
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
                (self.on_panic)(message(&*panic));
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
