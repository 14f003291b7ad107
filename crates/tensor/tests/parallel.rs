//! The pool runs every task once, whatever the number of threads, and survives what its tasks do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_tensor::parallel::Pool;

fn count_runs(pool: &Pool, n_tasks: usize) -> Vec<usize> {
    let counts: Vec<AtomicUsize> = (0..n_tasks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(n_tasks, &|i| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    });
    counts.into_iter().map(AtomicUsize::into_inner).collect()
}

#[test]
fn every_task_runs_once() {
    for n_threads in [0, 1, 2, 3, 8] {
        let pool = Pool::new(n_threads);
        assert_eq!(pool.n_threads(), n_threads.max(1));
        for n_tasks in [0, 1, 2, 3, 7, 100] {
            for _ in 0..200 {
                assert_eq!(count_runs(&pool, n_tasks), vec![1; n_tasks], "{n_threads} threads, {n_tasks} tasks");
            }
        }
    }
}

#[test]
fn parked_workers_wake_up() {
    let pool = Pool::new(8);
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_eq!(count_runs(&pool, 16), vec![1; 16]);
    }
}

#[test]
fn nested_runs_stay_on_their_thread() {
    let pool = Pool::new(3);
    let total = AtomicUsize::new(0);
    pool.run(5, &|_| {
        let me = std::thread::current().id();
        pool.run(4, &|_| {
            assert_eq!(std::thread::current().id(), me);
            total.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(total.into_inner(), 20);
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    let pool = Pool::new(3);
    for bad in 0..6 {
        let run = AssertUnwindSafe(|| pool.run(6, &|i| assert_ne!(i, bad, "task {bad} fails")));
        let payload = catch_unwind(run).unwrap_err();
        assert!(payload.downcast_ref::<String>().unwrap().contains(&format!("task {bad} fails")));
        assert_eq!(count_runs(&pool, 9), vec![1; 9]);
    }
}

#[test]
fn several_callers_share_one_pool() {
    let pool = Pool::new(3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..300 {
                    assert_eq!(count_runs(&pool, 11), vec![1; 11]);
                }
            });
        }
    });
}

#[test]
fn a_pool_can_be_dropped_busy_or_idle() {
    for n_threads in [1, 2, 8] {
        drop(Pool::new(n_threads));
        let pool = Pool::new(n_threads);
        count_runs(&pool, 3);
        drop(pool);
    }
}
