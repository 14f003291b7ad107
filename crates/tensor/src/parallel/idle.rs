//! A lock-free pool of objects to reuse.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The largest number of kept objects: more threads than cores rarely run one program at once.
const KEPT: usize = 32;

/// A few boxes. Each place holds one or none. Taking or keeping a box is one atomic exchange of a
/// pointer.
pub(super) struct Idle<T> {
    places: [AtomicPtr<T>; KEPT],
}

impl<T> Default for Idle<T> {
    fn default() -> Idle<T> {
        Idle { places: [const { AtomicPtr::new(null_mut()) }; KEPT] }
    }
}

impl<T> Idle<T> {
    /// Takes a kept object, if there is one.
    pub(super) fn take(&self) -> Option<Box<T>> {
        self.places.iter().find_map(|place| {
            // A plain load comes first: an exchange would take the cache line from the other cores.
            if place.load(Ordering::Relaxed).is_null() {
                return None;
            }
            let taken = place.swap(null_mut(), Ordering::Acquire);
            // SAFETY: the pointer came from a box in `keep`, and the exchange made it ours alone.
            (!taken.is_null()).then(|| unsafe { Box::from_raw(taken) })
        })
    }

    /// Keeps an object for later, unless enough are kept.
    pub(super) fn keep(&self, one: Box<T>) {
        let one = Box::into_raw(one);
        for place in &self.places {
            let is_free = place.load(Ordering::Relaxed).is_null();
            if is_free && place.compare_exchange(null_mut(), one, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: no place took it, so it is still ours alone.
        drop(unsafe { Box::from_raw(one) });
    }
}

impl<T> Drop for Idle<T> {
    fn drop(&mut self) {
        while self.take().is_some() {}
    }
}

// SAFETY: it moves boxes of `T` from thread to thread, and nothing accesses the content of a box
// through it.
unsafe impl<T: Send> Sync for Idle<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Idle<T> {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts the living instances.
    struct Counted(Arc<AtomicUsize>, usize);

    impl Counted {
        fn new(n: &Arc<AtomicUsize>) -> Box<Counted> {
            n.fetch_add(1, Ordering::SeqCst);
            Box::new(Counted(n.clone(), 0))
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn each_has_one_owner_and_none_is_lost() {
        let (n, uses) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let idle = Idle::default();
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    for _ in 0..2_000 {
                        let mut one = idle.take().unwrap_or_else(|| Counted::new(&n));
                        one.1 += 1;
                        uses.fetch_add(1, Ordering::Relaxed);
                        idle.keep(one);
                    }
                });
            }
        });
        let kept: Vec<Box<Counted>> = std::iter::from_fn(|| idle.take()).collect();
        assert!(kept.len() <= 8 && n.load(Ordering::SeqCst) == kept.len());
        assert_eq!(kept.iter().map(|one| one.1).sum::<usize>(), uses.into_inner());
        kept.into_iter().for_each(|one| idle.keep(one));
        (0..2 * KEPT).for_each(|_| idle.keep(Counted::new(&n)));
        assert_eq!(n.load(Ordering::SeqCst), KEPT);
        drop(idle);
        assert_eq!(n.load(Ordering::SeqCst), 0);
    }
}
