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

/// 3e-39 is subnormal. Tasks that add zero to it tell how their thread computes with such numbers.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn workers_compute_in_the_mode_of_the_caller() {
    use std::hint::black_box;

    use estimand_tensor::cpu::float_mode::flush_subnormals;

    let pool = Pool::new(4);
    let sums = || {
        let sums: Vec<AtomicUsize> = (0..64).map(|_| AtomicUsize::new(0)).collect();
        pool.run(64, &|i| {
            std::thread::sleep(std::time::Duration::from_micros(20));
            let sum = black_box(3e-39_f32) + black_box(0.0);
            sums[i].store(sum.to_bits() as usize, Ordering::Relaxed);
        });
        sums.into_iter().map(AtomicUsize::into_inner).collect::<Vec<_>>()
    };
    let kept = vec![3e-39_f32.to_bits() as usize; 64];
    for _ in 0..10 {
        assert_eq!(sums(), kept);
        assert_eq!(flush_subnormals(sums), vec![0; 64]);
        assert_eq!(sums(), kept, "after a run that flushes");
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

/// What a task panics with; when it is dropped it panics once more, with one more of its kind
/// inside.
struct Bomb(usize);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

/// Several tasks panic with something that panics when it is dropped. `run` gives the first to its
/// caller, and everybody is out of the caller's stack by then.
#[test]
fn payloads_that_panic_when_dropped_do_not_end_a_run_early() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    // A run that never ends is a failure too; nobody can be interrupted in it.
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let rounds = if cfg!(miri) { 3 } else { 200 };
        for round in 0..rounds {
            let pool = Pool::new(4);
            let n_inside = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                // On the caller's stack: who looks at it after `run` reads freed memory.
                let mut alive = [0x5a_u8; 256];
                pool.run(64, &|_| {
                    n_inside.fetch_add(1, Ordering::SeqCst);
                    for _ in 0..100 {
                        assert!(std::hint::black_box(&alive).iter().all(|&byte| byte == 0x5a));
                    }
                    std::thread::yield_now();
                    n_inside.fetch_sub(1, Ordering::SeqCst);
                    std::panic::panic_any(Bomb(3));
                });
                std::hint::black_box(&mut alive).fill(0);
            }));
            assert_eq!(n_inside.load(Ordering::SeqCst), 0, "run returned while a task was at work");
            let mut payload = result.unwrap_err();
            let bomb = payload.downcast_mut::<Bomb>().expect("the first payload reaches the caller");
            bomb.0 = 0;
            drop(payload);
            // Not busy for ever: another thread takes part again, sooner or later.
            let me = std::thread::current().id();
            let others = AtomicUsize::new(0);
            for _ in 0..100_000 {
                pool.run(8, &|_| {
                    std::thread::yield_now();
                    others.fetch_add(usize::from(std::thread::current().id() != me), Ordering::Relaxed);
                });
                if others.load(Ordering::Relaxed) > 0 {
                    break;
                }
            }
            assert!(others.into_inner() > 0, "round {round}: no worker takes part any more");
        }
        sender.send(()).unwrap();
    });
    let outcome = receiver.recv_timeout(std::time::Duration::from_secs(300));
    std::panic::set_hook(hook);
    outcome.expect("a run did not end, or ended with its pool busy");
}
