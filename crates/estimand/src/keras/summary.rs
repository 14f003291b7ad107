//! The table of `Model::summary`, as tf.keras 2.15 prints it.

use std::collections::{HashMap, HashSet};

use estimand_tensor::{Dim, Shape};

use super::model::{Model, ModelLayer};
use super::recipe::{Recipe, RecipeCall};

/// The positions at which columns end, of a model whose layers follow one another, and of others.
const PLAIN: [usize; 3] = [29, 55, 65];
const CONNECTED: [usize; 4] = [29, 58, 68, 98];

pub(super) fn table(model: &Model) -> String {
    let plain = is_plain(&model.recipe);
    let ends = if plain { &PLAIN[..] } else { &CONNECTED[..] };
    let width = ends[ends.len() - 1];
    let mut heading = vec!["Layer (type)".to_string(), "Output Shape".to_string(), "Param #".to_string()];
    if !plain {
        heading.push("Connected to".to_string());
    }
    let mut lines = vec![format!("Model: \"{}\"", model.name()), "_".repeat(width)];
    row(&mut lines, ends, &heading);
    lines.push("=".repeat(width));
    for layer in model.layers() {
        let mut fields = vec![
            format!("{} ({})", layer.name(), layer.class_name()),
            output_shape(&model.recipe, layer),
            layer.count_params().to_string(),
        ];
        if !plain {
            fields.push(connections(&model.recipe, layer));
        }
        row(&mut lines, ends, &fields);
        lines.push(" ".repeat(width));
    }
    lines.push("=".repeat(width));
    let (mut trained, mut others) = ((0, 0), (0, 0));
    for name in model.weight_names() {
        let spec = model.spec_of(name);
        let sum = if spec.trainable { &mut trained } else { &mut others };
        (sum.0, sum.1) = (sum.0 + spec.len(), sum.1 + spec.bytes);
    }
    let line = |what: &str, (n, bytes): (usize, usize)| format!("{what}: {n} ({})", readable(bytes));
    lines.push(line("Total params", (trained.0 + others.0, trained.1 + others.1)));
    lines.push(line("Trainable params", trained));
    lines.push(line("Non-trainable params", others));
    lines.push("_".repeat(width));
    lines.join("\n")
}

/// Keras leaves connections out if each depth has one call of one value, and no layer is shared.
fn is_plain(recipe: &Recipe) -> bool {
    let (mut depths, mut layers) = (HashSet::new(), HashSet::new());
    let alone = |call: &RecipeCall| call.inputs.len() <= 1 && depths.insert(call.depth) && layers.insert(call.layer);
    recipe.is_sequential || recipe.calls.iter().all(alone)
}

/// Sizes of memory as Keras shows them.
fn readable(bytes: usize) -> String {
    let units = [(1u64 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    let found = units.iter().find(|(size, _)| bytes as u64 / size >= 1);
    let (size, unit) = found.copied().unwrap_or((1, "Byte"));
    format!("{:.2} {unit}", bytes as f64 / size as f64)
}

/// `(None, 28, 28, 1)`.
fn tuple(shape: &Shape) -> String {
    let dim = |dim: &Dim| dim.known().map_or_else(|| "None".to_string(), |n| n.to_string());
    let dims: Vec<String> = shape.dims().iter().map(dim).collect();
    match &dims[..] {
        [only] => format!("({only},)"),
        dims => format!("({})", dims.join(", ")),
    }
}

fn output_shape(recipe: &Recipe, layer: ModelLayer<'_>) -> String {
    let calls = recipe.calls.iter().filter(|call| recipe.layers[call.layer].name == layer.name());
    let mut shapes: Vec<String> = calls
        .map(|call| {
            let shapes: Vec<String> = call.outputs.iter().map(|spec| tuple(&spec.shape)).collect();
            let is_list = layer.layer.step.is_input() || shapes.len() > 1;
            if is_list { format!("[{}]", shapes.join(", ")) } else { shapes.concat() }
        })
        .collect();
    shapes.dedup();
    // TF: a layer whose calls have different shapes shows none.
    if shapes.len() == 1 { shapes.remove(0) } else { "multiple".to_string() }
}

/// `['dense[0][0]', 'input_1[0][0]']`: the layer, its call, and the result of the call.
fn connections(recipe: &Recipe, layer: ModelLayer<'_>) -> String {
    let mut made: HashMap<usize, usize> = HashMap::new();
    let numbers: Vec<usize> = recipe
        .calls
        .iter()
        .map(|call| {
            let n = made.entry(call.layer).or_insert(0);
            *n += 1;
            *n - 1
        })
        .collect();
    let calls = recipe.calls.iter().filter(|call| recipe.layers[call.layer].name == layer.name());
    let inputs = calls.flat_map(|call| &call.inputs).map(|&(call, output)| {
        let name = &recipe.layers[recipe.calls[call].layer].name;
        format!("'{name}[{}][{output}]'", numbers[call])
    });
    format!("[{}]", inputs.collect::<Vec<_>>().join(", "))
}

/// Keras ends a line after these.
const BREAKS: [&str; 4] = ["),", "},", "],", "',"];

/// Writes the fields of a row in columns. A field that is too long goes on in the next line.
fn row(lines: &mut Vec<String>, ends: &[usize], fields: &[String]) {
    let mut rest: Vec<&str> = fields.iter().map(String::as_str).collect();
    while rest.iter().any(|field| !field.is_empty()) {
        let mut line = " ".to_string();
        for (column, field) in rest.iter_mut().enumerate() {
            let begin = if column == 0 { 0 } else { ends[column - 1] };
            // Two spaces and one for the alignment stay free, but in the last column.
            let gap = if column + 1 == ends.len() { 0 } else { 3 };
            let n = field.char_indices().nth(ends[column] - begin - gap).map_or(field.len(), |(at, _)| at);
            let breaks = BREAKS.iter().filter_map(|mark| Some(field[..n].find(mark)? + mark.len()));
            let (now, later) = field.split_at(breaks.min().unwrap_or(n));
            line += now;
            *field = later;
            let fill = ends[column].saturating_sub(line.chars().count()).max(gap.min(2));
            line.push_str(&" ".repeat(fill));
        }
        lines.push(line);
    }
}
