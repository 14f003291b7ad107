//! Values quoted in messages, as TensorFlow Serving prints them: indented objects, lists on one
//! line, cut after 256 bytes.

use super::reader::{Kind, Read, Reader};

/// The number of bytes after which a value is cut.
const LIMIT: usize = 256;

/// The excerpt of the value that a text begins with.
pub(crate) fn excerpt(text: &[u8]) -> String {
    let mut out = Vec::new();
    // The text has been read before, so an error can only be the limit.
    let _ = value(&mut Reader::new(text), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// An open bracket: whether it is an object, and the number of members so far.
struct Level {
    is_object: bool,
    n: usize,
}

fn value(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Read<()> {
    let mut open: Vec<Level> = Vec::new();
    // TF: a value is written whole; the limit stops only the next one.
    while out.len() < LIMIT {
        match reader.kind()? {
            Kind::Object => {
                reader.open();
                out.push(b'{');
                open.push(Level { is_object: true, n: 0 });
            }
            Kind::Array => {
                reader.open();
                out.push(b'[');
                open.push(Level { is_object: false, n: 0 });
            }
            _ => {
                let start = reader.position();
                let text = reader.text_at(start);
                out.extend_from_slice(text);
                reader.go_to(start + text.len());
            }
        }
        if !next_member(reader, &mut open, out)? {
            break;
        }
    }
    Ok(())
}

/// Goes to the next value, closing the brackets before it. `false` at the end.
fn next_member(reader: &mut Reader<'_>, open: &mut Vec<Level>, out: &mut Vec<u8>) -> Read<bool> {
    loop {
        let depth = open.len();
        let Some(level) = open.last_mut() else { return Ok(false) };
        let is_first = level.n == 0;
        if level.is_object {
            if let Some(name) = reader.name(is_first)? {
                level.n += 1;
                out.extend_from_slice(if is_first { b"\n" } else { b",\n" });
                out.resize(out.len() + 4 * depth, b' ');
                out.push(b'"');
                out.extend_from_slice(&name);
                out.extend_from_slice(b"\": ");
                return Ok(true);
            }
            if !is_first {
                out.push(b'\n');
                out.resize(out.len() + 4 * (depth - 1), b' ');
            }
            out.push(b'}');
        } else {
            if reader.element(is_first)? {
                level.n += 1;
                if !is_first {
                    out.extend_from_slice(b", ");
                }
                return Ok(true);
            }
            out.push(b']');
        }
        open.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_laid_out_as_the_original_does() {
        assert_eq!(excerpt(b" [1,[2, \"x\"] , {}]"), "[1, [2, \"x\"], {}]");
        assert_eq!(
            excerpt(br#"{"a":1,"b":{"c":[true,null]}}"#),
            "{\n    \"a\": 1,\n    \"b\": {\n        \"c\": [true, null]\n    }\n}"
        );
        let long = format!("[{}]", vec!["1"; 1_000].join(","));
        assert!((LIMIT..LIMIT + 10).contains(&excerpt(long.as_bytes()).len()));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(excerpt(deep.as_bytes()).len() <= LIMIT + 1);
    }
}
