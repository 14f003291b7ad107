//! Training with heads: one optimizer, several, and the names of their slots in checkpoints.

use estimand::graph::Minimize;
use estimand::prelude::*;

use crate::models::Folder;

fn data() -> Dataset {
    let x = Array::from_vec([2, 1], vec![1.0f32, 2.0]).unwrap();
    Dataset::from_arrays([("x", x), ("y", Array::from([2.0f32, 4.0]))]).label("y").batch(2)
}

/// y = 2 x from w = 0: the loss is 10, its gradient -10; a rate of 0.01 makes w 0.1.
#[test]
fn one_optimizer() -> Result<()> {
    fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
        let w = cx.graph().variable("w", [1, 1], Initializer::Zeros);
        let logits = cx.feature("x").matmul(&w);
        RegressionHead::new().spec(cx, &logits, Optimizer::new(Adagrad::default(), 0.01))
    }
    let folder = Folder::new();
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    let finished = estimator.train(data())?;
    assert_eq!((finished.global_step, finished.loss), (1, Some(10.0)));
    let names = estimator.variable_names()?;
    assert!(names.iter().any(|name| name == "training/Adagrad/w/accumulator"), "{names:?}");
    // 0.1 + 10^2
    assert_eq!(estimator.variable_value("training/Adagrad/w/accumulator")?.to_f64_vec()?, [f64::from(100.1f32)]);
    Ok(())
}

/// Two variables from one loss, each with its own rate; the step is counted once.
#[test]
fn two_optimizers() -> Result<()> {
    fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
        let (a, b) = (
            cx.graph().variable("a", [1, 1], Initializer::Zeros),
            cx.graph().variable("b", [1, 1], Initializer::Zeros),
        );
        let logits = cx.feature("x").matmul(&a) + cx.feature("x").matmul(&b);
        RegressionHead::new().spec(cx, &logits, |loss: &Tensor| {
            let slow = Optimizer::new(Sgd::default(), 0.01)
                .minimize(Minimize::new(loss).variables([&a]).global_step(cx.global_step()));
            let quick = Optimizer::new(Ftrl::default(), 0.05).minimize(Minimize::new(loss).variables([&b]));
            Ok(cx.graph().group(&[&slow, &quick]))
        })
    }
    let folder = Folder::new();
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    let finished = estimator.train(data())?;
    assert_eq!((finished.global_step, finished.loss), (1, Some(10.0)));
    // The gradient is -10 for both.
    let a: f32 = estimator.variable_value("a")?.item()?;
    assert!((a - 0.1).abs() < 1e-7, "{a}");
    let names = estimator.variable_names()?;
    for name in ["training/Ftrl/b/linear", "training/Ftrl/iter"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("SGD/iter")), "{names:?}");
    // The second step starts from the first.
    assert_eq!(estimator.train(data())?.global_step, 2);
    assert_eq!(estimator.evaluate(data())?.global_step(), 2);
    assert!(estimator.predict(data()).next().is_some());
    Ok(())
}

/// A train op function is for training: other modes do not call it, and its errors come back.
#[test]
fn a_train_op_that_fails() -> Result<()> {
    fn model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
        let logits = Dense::new(1).apply(&cx.feature("x"));
        RegressionHead::new().spec(cx, &logits, |_: &Tensor| Err(Error::config("no way to train")))
    }
    let folder = Folder::new();
    let estimator = Estimator::new(model).model_dir(folder.path()).build()?;
    assert!(estimator.evaluate(data()).is_ok());
    assert!(estimator.train(data()).unwrap_err().to_string().contains("no way to train"));
    Ok(())
}
