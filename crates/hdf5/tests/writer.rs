//! Files of ours, read by ourselves. That h5py and Keras read them is a live check
//! (oracles/live/hdf5.py).

use estimand_hdf5::{File, Writer};
use estimand_tensor::{Array, DType, Limits, Result};

fn open(writer: &Writer) -> File {
    File::from_bytes(writer.to_bytes().unwrap(), &Limits::default()).unwrap()
}

fn same(a: &Array, b: &Array) -> bool {
    let strings = |array: &Array| array.strings().unwrap().map(<[u8]>::to_vec).collect::<Vec<_>>();
    let elements = match a.dtype() {
        DType::Str => b.dtype() == DType::Str && strings(a) == strings(b),
        _ => a.bytes() == b.bytes(),
    };
    a.dtype() == b.dtype() && a.dims() == b.dims() && elements
}

fn values() -> Vec<(&'static str, Array)> {
    vec![
        ("f32", Array::from_vec([2, 2], vec![1.5f32, -0.0, f32::NAN, f32::INFINITY]).unwrap()),
        ("f64", Array::from([std::f64::consts::E])),
        ("i32", Array::from([i32::MIN, -1, i32::MAX])),
        ("i64", Array::from(i64::MAX)),
        ("u8", Array::from_vec([1, 2, 1], vec![0u8, 255]).unwrap()),
        ("bool", Array::from([true, false])),
        ("empty", Array::zeros(DType::F32, [4, 0]).unwrap()),
        ("words", Array::from_strings([2, 2], ["a", "", "žluťoučký kůň", "d"]).unwrap()),
        ("word", Array::from_strings([], ["scalar"]).unwrap()),
        ("no words", Array::from_strings([0], [""; 0]).unwrap()),
    ]
}

#[test]
fn all_types_as_datasets_and_attributes() -> Result<()> {
    let mut writer = Writer::new();
    writer.group("attributes/of/group")?;
    for (name, array) in values() {
        writer.dataset(&format!("data/{name}"), &array)?;
        writer.fixed_dataset(&format!("fixed/{name}"), &array)?;
        writer.attribute("attributes/of/group", name, &array)?;
        writer.fixed_attribute(&format!("data/{name}"), "čárka", &array)?;
    }
    let file = open(&writer);
    let root = file.root();
    for (name, array) in values() {
        let found = [
            root.dataset(&format!("data/{name}"))?.read()?,
            root.dataset(&format!("fixed/{name}"))?.read()?,
            root.group("attributes/of/group")?.attribute(name)?,
            root.dataset(&format!("data/{name}"))?.attribute("čárka")?,
        ];
        assert!(found.iter().all(|found| same(found, &array)), "{name}: {found:?}");
    }
    Ok(())
}

/// Groups need several levels of their tree from 257 links on.
#[test]
fn groups_of_many_sizes() -> Result<()> {
    for n in [0, 1, 8, 9, 256, 257, 3000, 9000] {
        let mut writer = Writer::new();
        writer.group("g")?;
        let mut names: Vec<String> = (0..n).map(|i| format!("child {i}")).collect();
        names.iter().for_each(|name| writer.dataset(&format!("g/{name}"), &Array::from(1i32)).unwrap());
        names.sort();
        assert_eq!(open(&writer).root().group("g")?.names().collect::<Vec<_>>(), names);
    }
    Ok(())
}

#[test]
fn the_order_of_calls_does_not_matter() -> Result<()> {
    let mut orders = [Writer::new(), Writer::new()];
    for (i, writer) in orders.iter_mut().enumerate() {
        let mut parts = values();
        if i == 1 {
            parts.reverse();
        }
        for (name, array) in &parts {
            writer.dataset(name, array)?;
            writer.attribute("/", name, array)?;
        }
    }
    assert_eq!(orders[0].to_bytes()?, orders[1].to_bytes()?);
    Ok(())
}

#[test]
fn attributes_have_a_largest_size() -> Result<()> {
    let mut writer = Writer::new();
    let names = |n: usize| Array::from_strings([n], vec!["x".repeat(100); n]);
    // Keras divides lists from 64,512 bytes on.
    writer.fixed_attribute("/", "layer_names", &names(645)?)?;
    assert_eq!(open(&writer).root().attribute("layer_names")?.len(), 645);
    let error = writer.fixed_attribute("/", "layer_names", &names(656)?).unwrap_err().to_string();
    let expected =
        "the attribute `layer_names` of `/` has 65600 bytes; at most 64 kB fit with its name\n  help: divide it";
    assert!(error.starts_with(expected), "{error}");
    // Strings of variable length are in a heap; 16 bytes of each are here.
    writer.attribute("/", "layer_names", &names(4000)?)?;
    assert_eq!(open(&writer).root().attribute("layer_names")?.len(), 4000);
    Ok(())
}

/// The largest attribute that is accepted is read again, with names of all lengths.
#[test]
fn the_largest_attributes() -> Result<()> {
    for name in ["a", "seven77", "eight888", "a name of 26 bytes, really", "ž"] {
        let accepted = (65_300..65_600).rev().find_map(|n| {
            let mut writer = Writer::new();
            let array = Array::from(vec![7u8; n]);
            writer.attribute("/", name, &array).ok()?;
            Some((writer, array))
        });
        let (writer, array) = accepted.expect("some size is accepted");
        assert!(same(&open(&writer).root().attribute(name)?, &array), "{name}");
    }
    Ok(())
}

#[test]
fn mistakes_are_errors() -> Result<()> {
    let mut writer = Writer::new();
    let x = Array::from(1f32);
    writer.dataset("a/b", &x)?;
    let cases = [
        (writer.dataset("a/b", &x), "`a/b` exists already"),
        (writer.dataset("a/b/c", &x), "`a/b` is a dataset, expected a group or nothing"),
        (writer.dataset("a/b/c/d", &x), "the path `a/b/c` leads through a dataset"),
        (writer.dataset("/", &x), "a dataset needs a name; the path is empty"),
        (writer.dataset("a/./c", &x), "`.` in the path `a/./c` is no name"),
        (writer.group("a\0"), "`a\\0` in the path `a\\0` is no name"),
        (writer.group(&"a/".repeat(257)), "a path of 257 names; at most 256 are supported"),
        (writer.attribute("a/c", "n", &x), "there is no `a/c` to add the attribute `n` to"),
        (writer.attribute("a", "", &x), "`` is no name of an attribute"),
    ];
    for (result, expected) in cases {
        assert_eq!(result.unwrap_err().message(), expected);
    }
    // The deepest tree is read again.
    let deepest = vec!["a"; 255].join("/") + "/c";
    let mut writer = Writer::new();
    writer.dataset(&deepest, &x)?;
    assert!(open(&writer).root().dataset(&deepest).is_ok());
    Ok(())
}
