//! The source lines of nodes: lines of the user's program (this file), not of the library.

use estimand_graph::{Graph, Initializer, Tensor};
use estimand_nn::column::*;
use estimand_nn::layer::{Build, Config, LayerCall};
use estimand_nn::{Activation, Dense, Inputs, Layer};
use estimand_tensor::{DType, Dim};

/// The nodes that have a line of another file.
fn strangers(g: &Graph) -> Vec<String> {
    let body = g.body();
    let nodes = body.nodes().iter().map(|node| (&node.name, node.site));
    let variables = body.variables().iter().map(|(_, spec)| (&spec.name, spec.site));
    let all = nodes.chain(variables).filter(|(_, site)| site.file() != file!());
    all.map(|(name, site)| format!("{name} at {site}")).collect()
}

/// The lines of the nodes whose name ends like this.
fn lines(g: &Graph, name: &str) -> Vec<u32> {
    let body = g.body();
    body.nodes().iter().filter(|node| node.name.ends_with(name)).map(|node| node.site.line()).collect()
}

fn features(g: &Graph, columns: &Columns) -> Inputs {
    Inputs::new(g, "feature", &make_parse_example_spec(columns).unwrap())
}

#[test]
fn columns_have_lines_of_the_program() {
    for make in ALL_COLUMNS {
        let columns: Columns = [make()].into();
        let g = Graph::new();
        let inputs = features(&g, &columns);
        // The columns of the list are made by the library, so the line of the call counts.
        let column = make();
        if column.dense().is_some() {
            input_layer(&inputs, &columns);
        } else if column.sequence().is_some() {
            sequence_input_layer(&inputs, &columns);
        } else if column.categorical().is_some() {
            linear_model(&inputs, &columns);
        }
        g.check().unwrap();
        assert_eq!(strangers(&g), [""; 0]);
    }
}

#[test]
fn nodes_have_the_line_of_their_column_and_variables_that_of_the_call() {
    let (x, id) = (line!() + 1, line!() + 2);
    let x_column = numeric_column("x").z_score(1.0, 2.0);
    let id_column = categorical_column_with_identity("id", 4);
    let vectors = embedding_column(&id_column, 2);
    let embedding = line!() - 1;
    let columns: Columns = [x_column.into(), vectors.into()].into();
    let g = Graph::new();
    let inputs = features(&g, &columns);
    input_layer(&inputs, &columns);
    let call = line!() - 1;
    g.check().unwrap();
    assert_eq!(lines(&g, "x/RealDiv"), [x]);
    // The vectors are looked up by the ids of the inner column.
    assert_eq!(lines(&g, "id_embedding/GatherV2"), [id]);
    assert_eq!(lines(&g, "id_embedding/embedding_weights"), [embedding]);
    assert_eq!(lines(&g, "ConcatV2"), [call]);
    let made: Vec<u32> = g.body().variables().iter().map(|(_, spec)| spec.site.line()).collect();
    assert_eq!(made, [call]);
}

#[test]
fn functions_of_the_user_keep_their_lines() {
    let tanh = |x: &Tensor| x.tanh();
    let normalizer = line!() - 1;
    let columns: Columns = [numeric_column("x").normalizer(tanh).into()].into();
    let g = Graph::new();
    let inputs = features(&g, &columns);
    input_layer(&inputs, &columns);
    g.check().unwrap();
    assert_eq!(lines(&g, "Tanh"), [normalizer]);

    // A function of the library that is passed as a value has no line of its own.
    let columns: Columns = [numeric_column("x").normalizer(Tensor::exp).into()].into();
    let column = line!() - 1;
    let g = Graph::new();
    let inputs = features(&g, &columns);
    input_layer(&inputs, &columns);
    g.check().unwrap();
    assert_eq!(lines(&g, "Exp"), [column]);
}

#[derive(Clone, Debug, Default)]
struct Scale(Config);

impl Layer for Scale {
    fn kind(&self) -> &'static str {
        "scale"
    }
    fn config(&self) -> &Config {
        &self.0
    }
    fn build(&self, build: &mut Build<'_>) {
        build.weight("factor", &[build.channels()], Initializer::Ones, None);
    }
    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        call.input() * call.weight("factor")
    }
}

#[test]
fn layers_have_the_line_of_their_call() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
    let y = Scale::default().apply(&x);
    let scale = line!() - 1;
    let y = Dense::new(2).activation(Activation::Elu).apply(&y);
    let dense = line!() - 1;
    g.check().unwrap();
    assert!(!y.is_poisoned());
    assert_eq!(strangers(&g), [""; 0]);
    assert_eq!(lines(&g, "scale/Mul"), [scale]);
    assert_eq!(lines(&g, "dense/MatMul"), [dense]);
}
