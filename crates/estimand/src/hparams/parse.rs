//! Overrides hyper-parameters from a command line: `name=value,other=[1,2],third[0]=3`.

use estimand_tensor::{Error, Result};

use super::HParams;

/// One assignment, before its value is parsed.
struct Assignment<'a> {
    name: &'a str,
    index: Option<usize>,
    value: Text<'a>,
}

enum Text<'a> {
    One(&'a str),
    List(&'a str),
}

impl HParams {
    /// Overrides values with text such as `learning_rate=0.1,hidden_units=[10,20],rates[0]=5`.
    ///
    /// Only existing names can be set, each once and with its own type. A value ends at the next
    /// comma. Elements of a list are separated by commas or spaces. Booleans are `true`, `True`,
    /// `false`, `False` or an integer. After an error nothing has changed.
    ///
    /// ```
    /// use estimand::HParams;
    ///
    /// let mut params = HParams::new().set("learning_rate", 0.1).set("hidden_units", [10, 10]);
    /// params.parse("hidden_units=[20,5],learning_rate=1")?;
    /// assert_eq!(params.to_string(), "learning_rate=1.0,hidden_units=[20,5]");
    ///
    /// let error = params.parse("learning_rat=1").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `learning_rate`?"));
    /// # Ok::<(), estimand::prelude::Error>(())
    /// ```
    pub fn parse(&mut self, text: &str) -> Result<()> {
        let mut changed = self.clone();
        let mut seen: Vec<(&str, Option<usize>)> = Vec::new();
        for assignment in assignments(text)? {
            let Assignment { name, index, value } = assignment;
            // Setting a whole list and one of its elements would depend on their order.
            if seen.iter().any(|&(n, i)| n == name && (i == index || i.is_none() || index.is_none())) {
                return Err(Error::config(format!("`{name}` is set twice in `{text}`")));
            }
            seen.push((name, index));
            changed.assign(name, index, &value).map_err(|e| e.context(format!("in `{text}`")))?;
        }
        *self = changed;
        Ok(())
    }

    fn assign(&mut self, name: &str, index: Option<usize>, text: &Text<'_>) -> Result<()> {
        let old = self.existing(name)?;
        let set = || match (text, index) {
            (Text::List(_), Some(index)) => {
                Err(Error::config(format!("element {index} is set to a list; expected one value")))
            }
            (Text::List(elements), None) => {
                let elements = elements.split([',', ' ']).filter(|element| !element.is_empty());
                old.list(elements.map(|element| old.read_element(element)).collect::<Result<_>>()?)
            }
            (Text::One(text), None) => old.cast(old.read_element(text)?),
            (Text::One(text), Some(index)) => {
                let mut list = old.clone();
                list.set_element(index, old.read_element(text)?)?;
                Ok(list)
            }
        };
        let new = set().map_err(|e| e.context(format!("for hyper-parameter `{name}`")))?;
        self.values.insert(name.to_string(), new);
        Ok(())
    }
}

fn assignments(text: &str) -> Result<Vec<Assignment<'_>>> {
    let mut rest = text.trim_start();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (assignment, after) = assignment(rest)
            .ok_or_else(|| Error::config(format!("`{rest}` does not begin with `name=value`")).help(GRAMMAR))?;
        found.push(assignment);
        rest = after;
    }
    Ok(found)
}

const GRAMMAR: &str =
    "write `name=value,list=[1,2],list[0]=3`; names begin with a letter and go on with letters, digits, `_` and `.`";

/// Returns the first assignment, and the text after its comma.
fn assignment(text: &str) -> Option<(Assignment<'_>, &str)> {
    let name_end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let (index, rest) = match rest.strip_prefix('[') {
        None => (None, rest),
        Some(rest) => {
            let (index, rest) = rest.split_once(']')?;
            (Some(index.trim().parse().ok()?), rest)
        }
    };
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (elements, rest) = rest.split_once(']')?;
            (Text::List(elements), rest)
        }
        None => {
            let (value, rest) = rest.split_at(rest.find([',', '[']).unwrap_or(rest.len()));
            (Text::One(value), rest)
        }
    };
    let rest = match rest.strip_prefix(',') {
        Some(rest) => rest.trim_start(),
        None if rest.is_empty() => rest,
        None => return None,
    };
    Some((Assignment { name, index, value }, rest))
}

#[cfg(test)]
mod tests {
    use estimand_fixture::{cases, cases_of};

    use super::*;
    use crate::mutate::{Dice, damaged};

    /// oracles/gen/hparams.py explains the cases.
    #[test]
    fn the_originals_texts_and_dictionaries() {
        let cases = cases("hparams");
        let initial = HParams::from_json(&cases[0].json("values").to_string()).unwrap();
        let (mut n_equal, mut n_refused) = (0, 0);
        for case in &cases[1..] {
            let mut params = initial.clone();
            let done = match case.name() {
                "text" => params.parse(&case.setting::<String>("text")),
                _ => params.parse_json(&case.json("dict").to_string()),
            };
            if !case.has("error") {
                done.unwrap_or_else(|e| panic!("{case}: {e}"));
                assert_eq!(params.to_json().unwrap(), case.json("values").to_string(), "{case}");
                n_equal += 1;
            } else {
                assert!(done.is_err(), "{case} gave {params}");
                assert_eq!(params, initial, "{case}");
                n_refused += 1;
            }
        }
        assert!(n_equal > 30 && n_refused > 60, "{n_equal} equal, {n_refused} refused");
    }

    fn params() -> HParams {
        HParams::new()
            .set("rate", 0.5)
            .set("steps", 10)
            .set("name", "a")
            .set("on", false)
            .set("sizes", [1, 2, 3])
            .set("rates", [0.5, 1.5])
            .set("flags", [true, false])
            .set("words", ["x", "y"])
            .set("scope.inner", 1)
    }

    fn parsed(text: &str) -> String {
        let mut params = params();
        params.parse(text).unwrap();
        params.to_string()
    }

    fn refused(text: &str) -> String {
        let mut changed = params();
        let error = changed.parse(text).unwrap_err();
        assert_eq!(changed, params(), "nothing changes when `{text}` is refused");
        error.to_string()
    }

    #[test]
    fn values_take_the_type_of_their_name() {
        let text = "rate=1,steps=-3,name=a b=c,on=True,sizes=[4],rates=[1 2.5],flags=[0,7],words=[p q,r],scope.inner=2";
        let expected = "rate=1.0,steps=-3,name=a b=c,on=true,sizes=[4],rates=[1.0,2.5],flags=[false,true],words=[p,q,r],scope.inner=2";
        assert_eq!(parsed(text), expected);
        assert_eq!(parsed(expected), expected, "what is displayed can be parsed");
    }

    #[test]
    fn damaged_texts_change_everything_or_nothing() {
        let seeds: Vec<Vec<u8>> = cases_of("hparams", "text").iter().map(|case| case.bytes("text")).collect();
        let mut dice = Dice::new(6);
        for _ in 0..20_000 {
            let bytes = damaged(&seeds, &mut dice);
            let mut changed = params();
            match changed.parse(&String::from_utf8_lossy(&bytes)) {
                // No value may change its type.
                Ok(()) => params().override_from(&changed).unwrap(),
                Err(_) => assert_eq!(changed, params()),
            }
        }
    }

    #[test]
    fn more_than_the_original() {
        // TensorFlow parsed indices and then refused to use them, and did not allow a text to begin
        // with a space.
        assert!(parsed("sizes[ 1 ]=9,sizes[0]=8").contains("sizes=[8,9,3]"));
        assert!(parsed(" steps = 7 , rate= 1e-3 ,").starts_with("rate=0.001,steps=7,name=a"));
    }

    #[test]
    fn everything_else_is_refused_and_says_why() {
        let cases = [
            ("steps=1.5", "`1.5` is not an integer\n  for hyper-parameter `steps`"),
            ("steps=", "`` is not an integer"),
            ("rate=fast", "`fast` is not a float"),
            ("on=yes", "`yes` is not a bool"),
            ("steps=[1]", "the value is a list; expected an integer"),
            ("sizes=1", "1 is an integer, expected a list of integers"),
            ("sizes=[1,x]", "`x` is not an integer"),
            ("sizes[3]=1", "there is no element 3: the list has 3"),
            ("sizes[0]=[1]", "element 0 is set to a list; expected one value"),
            ("steps[0]=1", "an index was given, but the value is an integer"),
            ("steps=1,steps=2", "`steps` is set twice"),
            ("sizes=[1],sizes[0]=2", "`sizes` is set twice"),
            ("stepz=1", "did you mean `steps`?"),
            ("steps", "does not begin with `name=value`"),
            ("steps=1,=2", "`=2` does not begin"),
            ("1steps=1", "does not begin with `name=value`"),
            ("sizes=[1,2", "does not begin with `name=value`"),
            ("sizes[x]=1", "does not begin with `name=value`"),
            ("sizes=[1]2", "does not begin with `name=value`"),
            ("name=a[0]", "does not begin with `name=value`"),
        ];
        for (text, expected) in cases {
            let error = refused(text);
            assert!(error.contains(expected), "`{text}` gave: {error}");
        }
    }
}
