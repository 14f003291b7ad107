//! What a graph collects beside its nodes: updates and losses.

use estimand_engine::{Eval, Session};
use estimand_graph::{Graph, Initializer};

#[test]
fn updates_and_losses_are_kept_in_order() {
    let g = Graph::new();
    let v = g.variable("v", [], Initializer::Ones);
    assert_eq!(g.regularization_loss().eval().unwrap().item::<f32>().unwrap(), 0.0);
    g.add_update(&v.assign_add(2.0));
    g.add_regularization_loss(&(&v * 10.0));
    g.add_regularization_loss(&(&v * 0.5));
    let mut session = Session::new(&g).unwrap();
    let updates = g.updates();
    session.run(&updates.iter().collect::<Vec<_>>(), &[]).unwrap();
    assert_eq!(session.value("v").unwrap().item::<f32>().unwrap(), 3.0);
    // 3 * 10 + 3 * 0.5
    let loss = g.regularization_loss();
    assert_eq!(session.run(&[&loss], &[]).unwrap()[0].item::<f32>().unwrap(), 31.5);
}
