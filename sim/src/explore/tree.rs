//! A tree of decisions, walked depth first.
//!
//! There is no tree in memory: a leaf is a run, the decisions that it made are the path to it, and the
//! next path is the last decision that has another alternative, with that one, and nothing behind it
//! (the idea of the crate `exhaustigen`). Several threads share the tree by its first decisions, and
//! what they find is put together in the order of one thread: so the number of threads changes
//! nothing but the time it takes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::choices::{Branch, Choices};

/// What is added up over leaves.
pub trait Tally: Default + Send {
    /// Adds what was found in later leaves.
    fn merge(&mut self, later: Self);
}

/// How a tree is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// After so many leaves the walk ends, whatever is left.
    pub leaves_max: u64,
    /// The tree is shared among threads by its first so many decisions.
    pub split_depth: usize,
    /// How many threads; 0 is as good as 1.
    pub jobs: usize,
}

/// Why a walk ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Each leaf was visited.
    Finished,
    /// The tree has more leaves than the walk may visit.
    Bound,
    /// At this leaf there was reason to stop.
    Stopped(Vec<Branch>),
    /// On this path other decisions were met than the time before: what a run decides does not
    /// depend on its choices alone, and nothing can be said about all of them.
    Strayed(Vec<Branch>),
}

/// What a walk came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walked<T> {
    /// How many leaves it visited.
    pub leaves: u64,
    /// The most decisions on one path.
    pub depth: usize,
    /// What was found in them.
    pub tally: T,
    /// Why it ended.
    pub end: End,
}

/// How far a walk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// How many leaves it has visited.
    pub leaves: u64,
    /// How much of the tree that is, in millionths, if at each decision all alternatives had equally
    /// much behind them.
    pub share: u64,
}

/// Progress is told once in so many leaves.
const PROGRESS_EVERY: u64 = 256;
/// The share of a whole tree, in the unit in which shares are added up.
const WHOLE: u64 = 1 << 60;

/// A run to a leaf: it draws, and adds what it found; it may be reason to stop.
pub type Leaf<'a, T> = &'a (dyn Fn(&Choices, &mut T) -> ControlFlow<()> + Sync);

/// Visits every leaf once, in order. `progress` is called now and then, from any thread.
pub fn walk<T: Tally>(
    limits: Limits,
    leaf: Leaf<'_, T>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Walked<T> {
    let walk = Walk {
        limits,
        leaf,
        progress,
        cursor: Mutex::new(Cursor { next: Some(Vec::new()), pieces: 0 }),
        merged: Mutex::new(Merged::default()),
        last_piece: AtomicUsize::new(usize::MAX),
        leaves: AtomicU64::new(0),
        share: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for _ in 1..limits.jobs.max(1) {
            scope.spawn(|| walk.work());
        }
        walk.work();
    });
    let merged = walk.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    merged.walked
}

/// A walk that is under way.
struct Walk<'a, T> {
    limits: Limits,
    leaf: Leaf<'a, T>,
    progress: &'a (dyn Fn(Progress) + Sync),
    cursor: Mutex<Cursor>,
    merged: Mutex<Merged<T>>,
    /// The first piece that was not finished: those behind it are of no interest.
    last_piece: AtomicUsize,
    leaves: AtomicU64,
    share: AtomicU64,
}

/// Where the next piece begins.
struct Cursor {
    next: Option<Vec<Branch>>,
    pieces: usize,
}

/// A part of the tree: what lies under the first decisions of a path.
struct Piece {
    number: usize,
    /// The path to its first leaf.
    first: Vec<Branch>,
    /// How many decisions of it are the piece's own.
    fixed: usize,
}

/// What is known of all pieces up to one, and of some behind it.
struct Merged<T> {
    walked: Walked<T>,
    pieces: usize,
    waiting: BTreeMap<usize, (Piece, Walked<T>)>,
}

impl<T: Tally> Default for Walked<T> {
    fn default() -> Self {
        Self { leaves: 0, depth: 0, tally: T::default(), end: End::Finished }
    }
}

impl<T: Tally> Default for Merged<T> {
    fn default() -> Self {
        Self { walked: Walked::default(), pieces: 0, waiting: BTreeMap::new() }
    }
}

impl<T: Tally> Walk<'_, T> {
    fn work(&self) {
        while let Some(piece) = self.take() {
            if let Some(walked) = self.visit(&piece, self.limits.leaves_max) {
                self.merge(piece, walked);
            }
        }
    }

    /// The next piece. Its first leaf is visited to learn which decisions there are, and once more as
    /// a part of the piece.
    fn take(&self) -> Option<Piece> {
        let mut cursor = lock(&self.cursor);
        let number = cursor.pieces;
        if number > self.last_piece.load(Ordering::Relaxed) {
            return None;
        }
        let next = cursor.next.take()?;
        let choices = Choices::path(next);
        let _ = (self.leaf)(&choices, &mut T::default());
        let first = choices.walk().branches;
        let fixed = first.len().min(self.limits.split_depth);
        cursor.next = after(first[..fixed].to_vec(), 0);
        cursor.pieces += 1;
        Some(Piece { number, first, fixed })
    }

    /// Visits the leaves of a piece, at most so many; `None` if they are of no interest any more.
    fn visit(&self, piece: &Piece, leaves_max: u64) -> Option<Walked<T>> {
        let mut walked = Walked::default();
        let mut next = Some(piece.first.clone());
        while let Some(path) = next {
            if piece.number > self.last_piece.load(Ordering::Relaxed) {
                return None;
            }
            if walked.leaves == leaves_max {
                walked.end = End::Bound;
                break;
            }
            let choices = Choices::path(path);
            let flow = (self.leaf)(&choices, &mut walked.tally);
            let walk = choices.walk();
            walked.leaves += 1;
            walked.depth = walked.depth.max(walk.branches.len());
            self.tell(&walk.branches);
            if walk.has_strayed {
                walked.end = End::Strayed(walk.branches);
                break;
            }
            if flow.is_break() {
                walked.end = End::Stopped(walk.branches);
                break;
            }
            next = after(walk.branches, piece.fixed);
        }
        if walked.end != End::Finished {
            self.last_piece.fetch_min(piece.number, Ordering::Relaxed);
        }
        Some(walked)
    }

    /// Puts pieces together in their order, for as long as none is missing.
    fn merge(&self, piece: Piece, walked: Walked<T>) {
        let mut merged = lock(&self.merged);
        if merged.walked.end != End::Finished {
            // Whatever is behind it was never to be looked at.
            return;
        }
        merged.waiting.insert(piece.number, (piece, walked));
        loop {
            let number = merged.pieces;
            let Some((piece, mut found)) = merged.waiting.remove(&number) else { return };
            merged.pieces += 1;
            let left = self.limits.leaves_max - merged.walked.leaves;
            if found.leaves > left {
                // Alone it was not too much; after those before it, it is.
                let Some(part) = self.visit(&piece, left) else { return };
                found = part;
            }
            let all = &mut merged.walked;
            all.leaves += found.leaves;
            all.depth = all.depth.max(found.depth);
            all.tally.merge(found.tally);
            all.end = found.end;
            if all.end != End::Finished {
                return;
            }
        }
    }

    fn tell(&self, path: &[Branch]) {
        let share = path.iter().fold(WHOLE, |share, branch| share / branch.bound);
        let share = self.share.fetch_add(share, Ordering::Relaxed) + share;
        let leaves = self.leaves.fetch_add(1, Ordering::Relaxed) + 1;
        if leaves.is_multiple_of(PROGRESS_EVERY) {
            (self.progress)(Progress { leaves, share: share / (WHOLE / 1_000_000) });
        }
    }
}

/// The path after this one that has the same first `fixed` decisions.
fn after(mut path: Vec<Branch>, fixed: usize) -> Option<Vec<Branch>> {
    while path.len() > fixed {
        let last = path.last_mut()?;
        if last.value + 1 < last.bound {
            last.value += 1;
            return Some(path);
        }
        path.pop();
    }
    None
}

/// A run that panicked ends the walk by itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
