//! Rows selected and added up by ids, running sums, sorting, arrays, and the pool itself.

use estimand_tensor::cpu::combine::{Combiner, Lookups, combine, combine_gradient};
use estimand_tensor::cpu::gather::{GatherDims, gather, gather_nd};
use estimand_tensor::cpu::reduce;
use estimand_tensor::cpu::scan::{Direction, Running, cumulative};
use estimand_tensor::cpu::scatter;
use estimand_tensor::cpu::segment::{self, Reduction};
use estimand_tensor::cpu::sort::top_k;
use estimand_tensor::parallel::Pool;
use estimand_tensor::random::{Key, Stream};
use estimand_tensor::{Array, DType};

use crate::attack::{HALF, HUGE, in_child, none};

#[test]
fn gathers() {
    in_child("rows::gathers", |attacks| {
        let mut all = vec![];
        for huge in HUGE {
            for place in 0..5 {
                let mut sizes = [2; 5];
                sizes[place] = huge;
                all.push((sizes, true));
                for zero in (0..5).filter(|&zero| zero != place) {
                    let mut sizes = sizes;
                    sizes[zero] = 0;
                    all.push((sizes, false));
                }
            }
        }
        all.push(([HALF, HALF, 1, 1, 1], true));
        for ([batch, outer, limit, n_ids, inner], is_impossible) in all {
            let dims = GatherDims { batch, outer, limit, n_ids, inner };
            for len in [0, 4] {
                let name = format!("{dims:?}, {len}");
                let ids = vec![1_i64; len];
                let attack = |pool: &Pool| gather(pool, dims, 4, &vec![1; 16 * len], &ids, &mut vec![0; 16 * len]);
                if is_impossible {
                    attacks.refused(&name, attack)
                } else {
                    attacks.harmless(&name, attack)
                }
                attacks.harmless(&format!("nd {name}"), |pool| {
                    gather_nd(pool, &[batch, outer, limit], inner, 4, &vec![1; 16 * len], &ids, &mut vec![0; 16 * len])
                });
                attacks.harmless(&format!("scatter nd {name}"), |pool| {
                    scatter::scatter_nd(pool, &[batch, outer, limit], inner, &ids, &vec![1.0; len], &mut vec![0.0; len])
                });
            }
        }
        attacks.refused("elements of 2^62 bytes", |pool| {
            let dims = GatherDims { batch: 1, outer: 1, limit: 4, n_ids: 4, inner: 1 };
            gather(pool, dims, 1 << 62, &[], &[0_i32; 4], &mut [])
        });
    });
}

#[test]
fn scatters_and_segments() {
    in_child("rows::scatters_and_segments", |attacks| {
        for width in HUGE.into_iter().chain([0, 1, 3]) {
            for ids in [vec![], vec![0_i64], vec![-1, 0], vec![i64::MAX, i64::MIN], vec![0; 9]] {
                for len in [0, 1, 8] {
                    let name = format!("width {width}, ids {ids:?}, {len}");
                    let (x, out) = (vec![1.0_f32; 8], || vec![0.0_f32; len]);
                    attacks.harmless(&name, |p| scatter::scatter_add(p, width, &ids, &x, &mut out()));
                    let places: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
                    attacks.harmless(&name, |p| none(scatter::sum_rows(p, width, &places, &x, &mut out())));
                    attacks.harmless(&name, |p| {
                        let (mut unique, mut inverse) = (ids.clone(), places.clone());
                        let scratch = &mut vec![0; len];
                        none(scatter::unique_rows(p, width, &ids, &x, &mut unique, &mut inverse, &mut out(), scratch))
                    });
                    for how in [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod] {
                        attacks.harmless(&name, |p| segment::segment(p, how, width, &ids, &x, &mut out()));
                        attacks.harmless(&name, |p| {
                            segment::unsorted_segment(p, how, width, &ids, &x, &mut out(), &mut [])
                        });
                    }
                    for splits in [vec![], vec![0], vec![0, ids.len() as i64], vec![0, i64::MAX, 1], vec![-1, 1]] {
                        for weights in [None, Some(&[1.0_f32][..])] {
                            let lookups = Lookups { index: &ids, splits: &splits, weights };
                            attacks.harmless(&name, |p| combine(p, Combiner::Mean, width, &x, lookups, &mut out()));
                            attacks.harmless(&name, |p| {
                                combine_gradient(p, Combiner::Sum, width, &x, lookups, &mut out())
                            });
                        }
                    }
                }
            }
        }
        attacks.refused("2^63 columns of two rows", |p| {
            let (ids, x) = ([1_i32, 2], [1.0_f32; 2]);
            none(scatter::unique_rows(p, 1 << 63, &ids, &x, &mut [0; 2], &mut [0; 2], &mut [], &mut [0; 4]))
        });
    });
}

#[test]
fn scans_and_sorts() {
    in_child("rows::scans_and_sorts", |attacks| {
        for huge in HUGE {
            for dims in [[huge, 1, 1], [1, huge, 1], [1, 1, huge], [HALF, huge, 1], [1, HALF, huge], [1, huge, huge]] {
                for len in [0, 1, 8] {
                    attacks.refused(&format!("{dims:?}, {len}"), |p| {
                        let running = Direction { exclusive: false, reverse: true };
                        none(cumulative(p, Running::Sum, running, dims, &vec![1.0_f32; len], &mut vec![0.0; len]))
                    });
                }
            }
            for (n, k) in [(huge, 1), (huge, huge), (4, huge), (huge, 0)] {
                for len in [0, 8] {
                    attacks.harmless(&format!("{k} of {n}, {len}"), |p| {
                        none(top_k(p, n, k, &vec![1.0_f32; len], &mut vec![0.0; len], &mut vec![0; len]))
                    });
                }
            }
            for axes in 0..8 {
                attacks.harmless(&format!("reduction of {huge} over {axes:b}"), |_| {
                    none(reduce::scratch_len(&[huge, 4, huge], axes))
                });
            }
        }
        attacks.refused("nine axes", |_| none(reduce::scratch_len(&[2; 9], 1)));
    });
}

#[test]
fn arrays() {
    in_child("rows::arrays", |attacks| {
        // 2^32 numbers fit into some machines.
        for huge in HUGE.into_iter().skip(1) {
            for dims in [vec![huge], vec![huge, huge], vec![2, huge]] {
                for dtype in DType::ALL {
                    attacks.refused(&format!("zeros {dtype} {dims:?}"), |_| Array::zeros(dtype, &dims).map(drop));
                    attacks.refused(&format!("bytes {dtype} {dims:?}"), |_| {
                        Array::from_bytes(dtype, &dims, &[]).map(drop)
                    });
                }
                attacks.refused(&format!("{dims:?}"), |_| Array::from_vec(&dims, vec![1.0_f32; 2]).map(drop));
                attacks.refused(&format!("reuse {dims:?}"), |_| Array::from([1.0_f32]).reuse(DType::F64, &dims));
            }
            for dims in [vec![0, huge, huge], vec![3, huge, huge, 0]] {
                attacks.harmless(&format!("rows of {dims:?}"), |_| {
                    let array = Array::zeros(DType::F32, &dims)?;
                    assert!(array.rows(0..dims[0])?.is_empty());
                    array.rows(dims[0]..dims[0])?.as_slice::<f32>().map(|values| assert!(values.is_empty()))
                });
            }
            attacks.harmless(&format!("random rows of {huge}"), |_| {
                let stream = Stream::new(Key::new(1, "hostile"), 0);
                let mut out = vec![0.0; 10];
                stream.fill_uniform_f32(u64::MAX, huge, &mut out);
                stream.fill_truncated_normal_f32(u64::MAX - 1, huge, &mut out);
                none(stream.fill_integers_i32(0, huge, i32::MIN, i32::MAX, &mut [0; 10]))
            });
        }
    });
}

#[test]
fn pools() {
    in_child("rows::pools", |attacks| {
        for n_threads in HUGE {
            // As many threads as the system gives, and no more than a pool may have.
            attacks
                .harmless(&format!("{n_threads} threads"), |_| none(assert!(Pool::new(n_threads).n_threads() <= 1024)));
        }
        for n_tasks in HUGE {
            attacks.refused(&format!("{n_tasks} tasks"), |pool| none(pool.run(n_tasks, &|task| assert!(task < 1000))));
        }
    });
}
