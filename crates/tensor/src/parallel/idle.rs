//! A lock-free pool of objects to reuse.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The largest number of kept objects: more threads than cores rarely run one program at once.
const KEPT: usize = 32;

/// A few boxes that threads take and put back. Each place holds one box or none. Taking or keeping
/// a box is one atomic exchange of a pointer.
///
/// A thread looks at its own place first. So threads that always put back what they took do not
/// write to each other's cache lines.
///
/// ```
/// use estimand_tensor::parallel::Idle;
/// let idle: Idle<Vec<u8>> = Idle::default();
/// let mut buffer = idle.take().unwrap_or_default();
/// buffer.push(1);
/// idle.keep(buffer);
/// assert_eq!(*idle.take().expect("a kept buffer"), [1]);
/// ```
pub struct Idle<T> {
    places: [Place<T>; KEPT],
}

/// A place with a cache line of its own.
#[repr(align(64))]
struct Place<T>(AtomicPtr<T>);

/// The number of threads that have used any pool.
static N_THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The place where this thread looks first, once it is known.
    static FIRST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The numbers of all places, beginning with the one of this thread.
fn in_order() -> impl Iterator<Item = usize> {
    // A thread that is ending has no such value any more, and begins at 0.
    let first = FIRST.try_with(|first| {
        first.get().unwrap_or_else(|| {
            let new = N_THREADS.fetch_add(1, Ordering::Relaxed);
            first.set(Some(new));
            new
        })
    });
    let first = first.unwrap_or(0);
    (0..KEPT).map(move |i| first.wrapping_add(i) % KEPT)
}

impl<T> Default for Idle<T> {
    fn default() -> Idle<T> {
        Idle { places: [const { Place(AtomicPtr::new(null_mut())) }; KEPT] }
    }
}

impl<T> Idle<T> {
    /// Takes a kept object, if there is one.
    pub fn take(&self) -> Option<Box<T>> {
        in_order().find_map(|i| {
            let Place(place) = &self.places[i];
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
    pub fn keep(&self, one: Box<T>) {
        let one = Box::into_raw(one);
        for i in in_order() {
            let Place(place) = &self.places[i];
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
