//! Arrays as JSON, without losing a bit:
//! `{"dtype": "float32", "shape": [2], "values": [0.5, "NaN"]}`.
//!
//! Numbers are shortest decimals, so people can read them. Bytes that are no UTF-8 are
//! `{"bytes": "ff00"}`, as in the manifest.

use estimand_tensor::{Array, DType, Element, Error, Result, element_count};
use serde_json::{Map, Number, Value as Json, json};

/// TensorFlow's names of dtypes.
const NAMES: [(DType, &str); 7] = [
    (DType::F32, "float32"),
    (DType::F64, "float64"),
    (DType::I32, "int32"),
    (DType::I64, "int64"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
    (DType::Str, "string"),
];

/// Returns TensorFlow's name of a dtype.
pub fn dtype_name(dtype: DType) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == dtype).map_or("", |(_, name)| name)
}

/// Parses TensorFlow's name of a dtype.
pub fn dtype_from_name(name: &str) -> Result<DType> {
    let known = NAMES.iter().find(|(_, known)| *known == name);
    known.map(|(dtype, _)| *dtype).ok_or_else(|| Error::unknown("dtype", name, NAMES.map(|(_, name)| name)))
}

/// Converts an array to JSON.
pub fn array_to_json(array: &Array) -> Result<Json> {
    fn each<T: Element>(array: &Array, write: impl Fn(&T) -> Json) -> Result<Vec<Json>> {
        Ok(array.as_slice::<T>()?.iter().map(write).collect())
    }
    let values = match array.dtype() {
        DType::F32 => each(array, |v: &f32| float(f64::from(*v), short(*v)))?,
        DType::F64 => each(array, |v: &f64| float(*v, None))?,
        DType::I32 => each(array, |v: &i32| json!(v))?,
        DType::I64 => each(array, |v: &i64| json!(v))?,
        DType::U8 => each(array, |v: &u8| json!(v))?,
        DType::Bool => each(array, |v: &bool| json!(v))?,
        DType::Str => array.strings()?.map(text_to_json).collect(),
    };
    Ok(json!({ "dtype": dtype_name(array.dtype()), "shape": array.dims(), "values": values }))
}

/// Parses an array.
pub fn array_from_json(json: &Json) -> Result<Array> {
    let damaged = |what: &str| Error::data(format!("an array in JSON cannot be read: {what}"));
    let object: &Map<String, Json> = json.as_object().ok_or_else(|| damaged("it is not an object"))?;
    let dtype = object.get("dtype").and_then(Json::as_str).ok_or_else(|| damaged("it has no `dtype`"))?;
    let shape = object.get("shape").and_then(Json::as_array).ok_or_else(|| damaged("it has no `shape`"))?;
    let size = |size: &Json| size.as_u64().and_then(|n| usize::try_from(n).ok());
    let dims: Vec<usize> =
        shape.iter().map(size).collect::<Option<_>>().ok_or_else(|| damaged("`shape` is no list of sizes"))?;
    let values = object.get("values").and_then(Json::as_array).ok_or_else(|| damaged("it has no `values`"))?;
    if element_count(&dims)? != values.len() {
        return Err(damaged(&format!("it has {} values, and its shape is {dims:?}", values.len())));
    }
    fn each<T: Element>(dims: &[usize], values: &[Json], read: impl Fn(&Json) -> Option<T>) -> Result<Option<Array>> {
        values.iter().map(read).collect::<Option<Vec<T>>>().map(|values| Array::from_vec(dims, values)).transpose()
    }
    let array = match dtype_from_name(dtype)? {
        DType::F32 => each(&dims, values, |v| Some(number(v)? as f32))?,
        DType::F64 => each(&dims, values, number)?,
        DType::I32 => each(&dims, values, |v| i32::try_from(v.as_i64()?).ok())?,
        DType::I64 => each(&dims, values, Json::as_i64)?,
        DType::U8 => each(&dims, values, |v| u8::try_from(v.as_u64()?).ok())?,
        DType::Bool => each(&dims, values, Json::as_bool)?,
        DType::Str => {
            let texts: Option<Vec<Vec<u8>>> = values.iter().map(text_from_json).collect();
            texts.map(|texts| Array::from_strings(&dims, texts)).transpose()?
        }
    };
    array.ok_or_else(|| damaged(&format!("a value is no {dtype}")))
}

/// Converts bytes to JSON: text, or `{"bytes": "ff00"}` if they are no UTF-8.
pub fn text_to_json(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "bytes": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
    }
}

/// Parses bytes; `None` if the value is neither a text nor the digits of bytes.
pub fn text_from_json(json: &Json) -> Option<Vec<u8>> {
    if let Json::String(text) = json {
        return Some(text.clone().into_bytes());
    }
    let object = json.as_object().filter(|object| object.len() == 1)?;
    let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = object.get("bytes")?.as_str()?.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?));
    rest.is_empty().then(|| bytes.collect())?
}

/// Returns the decimal with the fewest digits that is this number, if reading it as f64 and
/// rounding gives the number back.
fn short(v: f32) -> Option<f64> {
    let decimal: f64 = v.to_string().parse().ok()?;
    ((decimal as f32).to_bits() == v.to_bits()).then_some(decimal)
}

fn float(v: f64, short: Option<f64>) -> Json {
    match Number::from_f64(short.unwrap_or(v)) {
        Some(number) => Json::Number(number),
        None if v.is_nan() => json!("NaN"),
        None => json!(if v > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

fn number(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(array: &Array) -> Array {
        let text = array_to_json(array).unwrap().to_string();
        array_from_json(&serde_json::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn every_dtype_comes_back_bit_by_bit() {
        let floats = [0.1f32, -0.0, 1e-45, f32::MAX, f32::MIN_POSITIVE, 16_777_217.0, 1.0 / 3.0, f32::INFINITY];
        let back = there_and_back(&Array::from(floats));
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(back.as_slice().unwrap()), bits(&floats));
        assert_eq!(array_to_json(&Array::from([0.1f32])).unwrap()["values"].to_string(), "[0.1]");
        assert!(there_and_back(&Array::from([f32::NAN])).item::<f32>().unwrap().is_nan());
        for array in [
            Array::from([0.1f64, 5e-324, f64::NEG_INFINITY]),
            Array::from([i64::MIN, i64::MAX]),
            Array::from_vec([1, 2], vec![i32::MIN, 7]).unwrap(),
            Array::from([0u8, 255]),
            Array::from([true, false]),
            Array::from_strings([2, 2], [&b"a"[..], b"", b"\xff\0", "\u{e9}\"".as_bytes()]).unwrap(),
            Array::zeros(DType::F32, [0, 3]).unwrap(),
        ] {
            assert_eq!(there_and_back(&array), array);
        }
    }

    #[test]
    fn what_is_no_array_is_an_error_that_says_why() {
        for (text, part) in [
            ("[]", "it is not an object"),
            (r#"{"dtype": "float23", "shape": [], "values": [1]}"#, "did you mean `float32`?"),
            (r#"{"dtype": "float32", "shape": [-1], "values": []}"#, "`shape` is no list of sizes"),
            (r#"{"dtype": "float32", "shape": [3], "values": [1]}"#, "it has 1 values, and its shape is [3]"),
            (r#"{"dtype": "float32", "shape": [4611686018427387904, 8], "values": []}"#, "4611686018427387904"),
            (r#"{"dtype": "uint8", "shape": [1], "values": [256]}"#, "a value is no uint8"),
            (r#"{"dtype": "string", "shape": [1], "values": [1]}"#, "a value is no string"),
        ] {
            let error = array_from_json(&serde_json::from_str(text).unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
