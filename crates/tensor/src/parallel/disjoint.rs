//! A mutable slice whose parts are written by different tasks.

use std::marker::PhantomData;

/// A mutable slice that the tasks of one run share. Each task takes its own part.
///
/// In builds with debug assertions it records the parts that were taken, and panics if a part
/// overlaps that of another task of the same run. So a test run with debug assertions checks the
/// `SAFETY` comments of all kernels that use it.
pub struct DisjointMut<'a, T> {
    start: *mut T,
    len: usize,
    #[cfg(debug_assertions)]
    ledger: ledger::Ledger,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: the parts handed out are disjoint by the contract of `slice`; sending such a part to
// another thread is sending `&mut [T]`, which requires `T: Send`.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    /// Borrows `slice` until the value is dropped.
    pub fn new(slice: &'a mut [T]) -> Self {
        DisjointMut {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            #[cfg(debug_assertions)]
            ledger: ledger::Ledger::default(),
            borrow: PhantomData,
        }
    }

    /// A pointer to the first element, for kernels that take pointers. Their writes must not
    /// overlap either.
    pub fn as_mut_ptr(&self) -> *mut T {
        self.start
    }

    /// Records that the current task takes the `len` elements from `start`, for kernels that write
    /// through [`as_mut_ptr`](Self::as_mut_ptr).
    ///
    /// # Panics
    /// In builds with debug assertions, if the elements overlap those taken by another task of the
    /// same run. Other builds record nothing.
    #[inline(always)]
    pub fn claim(&self, start: usize, len: usize) {
        #[cfg(debug_assertions)]
        self.ledger.claim(start, len);
        #[cfg(not(debug_assertions))]
        let _ = (start, len);
    }

    /// The `len` elements from `start`.
    ///
    /// # Safety
    /// Parts that are alive at the same time must not overlap.
    #[allow(clippy::mut_from_ref)] // the point of the type; the contract forbids the aliasing
    #[inline(always)]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "part {start}+{len} of a slice of {}", self.len);
        self.claim(start, len);
        // SAFETY: in bounds by the assertion, unaliased by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}

/// The task that a thread is running. The pool sets it before each task, in builds with debug
/// assertions.
#[cfg(debug_assertions)]
pub(super) mod task {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    thread_local! {
        /// The current run and the task in it, if any.
        static CURRENT: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
    }

    /// A number for a run, unique in this process.
    pub(in super::super) fn new_run() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls `body` as task `number` of `run`.
    pub(in super::super) fn during(run: u64, number: usize, body: impl FnOnce()) {
        /// A run inside a task restores the outer task when it ends, even by a panic.
        struct Restore(Option<(u64, usize)>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(Some((run, number))));
        body();
    }

    pub(super) fn current() -> Option<(u64, usize)> {
        CURRENT.get()
    }
}

#[cfg(debug_assertions)]
mod ledger {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    /// The parts taken in the current run, and the task that took each.
    #[derive(Default)]
    pub(super) struct Ledger(Mutex<Parts>);

    #[derive(Default)]
    struct Parts {
        run: u64,
        /// End and task of each part, by its start. Parts do not overlap.
        taken: BTreeMap<usize, (usize, usize)>,
    }

    impl Ledger {
        /// Records a part. Outside of tasks nothing else runs, so nothing is recorded.
        pub(super) fn claim(&self, start: usize, len: usize) {
            let (Some((run, task)), true) = (super::task::current(), len > 0) else { return };
            let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if parts.run != run {
                // The last run is over, so its parts are free again.
                parts.taken.clear();
                parts.run = run;
            }
            let (mut first, mut end) = (start, start + len);
            // An overlapping part begins before `end`, and only the last of those can reach into
            // this part.
            while let Some((&from, &(to, owner))) = parts.taken.range(..end).next_back() {
                if to <= start {
                    break;
                }
                assert_eq!(
                    owner, task,
                    "tasks {owner} and {task} of one run share elements {from}..{to} and {start}..{end}"
                );
                parts.taken.remove(&from);
                (first, end) = (first.min(from), end.max(to));
            }
            parts.taken.insert(first, (end, task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DisjointMut;
    use crate::parallel::Pool;

    /// Parts of 10 elements, `step` apart.
    #[cfg(debug_assertions)]
    fn take_parts(step: usize) {
        let mut values = vec![0_u8; 100];
        let out = DisjointMut::new(&mut values);
        // One thread: the check is about tasks, and no two parts are alive at once.
        Pool::new(1).run(5, &|task| {
            // SAFETY: one part at a time.
            unsafe { out.slice(task * step, 10) }.fill(1);
        });
    }

    #[test]
    #[cfg(debug_assertions)]
    fn tasks_that_share_elements_are_found() {
        take_parts(10);
        let payload = std::panic::catch_unwind(|| take_parts(9)).unwrap_err();
        let message = payload.downcast_ref::<String>().unwrap();
        assert!(message.contains("tasks 0 and 1 of one run share elements 0..10 and 9..19"), "{message}");
    }

    #[test]
    fn a_task_may_take_its_own_part_again_and_the_next_run_any() {
        let mut values = vec![0_u8; 100];
        let out = DisjointMut::new(&mut values);
        let pool = Pool::new(1);
        for shift in [0, 5] {
            pool.run(4, &|task| {
                for part in [0..10, 5..15, 0..20, 3..4] {
                    // SAFETY: one part at a time.
                    unsafe { out.slice(task * 20 + shift + part.start, part.len()) }.fill(2);
                }
            });
        }
        assert_eq!(values.iter().filter(|&&v| v == 2).count(), 85);
    }
}
