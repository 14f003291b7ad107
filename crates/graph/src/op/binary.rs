//! Element-wise functions of two inputs, with broadcasting.

use super::Select;
use super::rules::*;
use crate::host::HostOp;
use crate::host::text::StringEqual;

impl OpRules for Binary {
    fn name(&self) -> &'static str {
        self.tf_name()
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        same_dtype(x[0], x[1])?;
        accepts(self.accepts(x[0].dtype), x[0].dtype)?;
        one(self.output(x[0].dtype), broadcast(&x[0].shape, &x[1].shape, inference.symbols)?)
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        x.iter().all(|dims| spreads_to(dims, y))
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        use Binary::*;
        let (x, y) = (&back.x[0], &back.x[1]);
        if self.output(x.dtype()) == DType::Bool {
            return back.nothing();
        }
        let dy = back.dy(0);
        let mul = |a: &Tensor, b: &Tensor| back.binary(Mul, a, b);
        let neg = |a: &Tensor| back.unary(Unary::Neg, a);
        // The gradient goes to the selected input; TF: to the first if both are equal.
        let winner = |compare: Binary| {
            let zero = back.number(&dy, 0.0);
            let first = back.binary(compare, x, y);
            let gx = back.node(Select, &[&first, &dy, &zero]);
            let gy = back.node(Select, &[&first, &zero, &dy]);
            back.broadcast_pair(|| gx, || gy)
        };
        match self {
            Add => back.broadcast_pair(|| dy.clone(), || dy.clone()),
            Sub => back.broadcast_pair(|| dy.clone(), || neg(&dy)),
            Mul => back.broadcast_pair(|| mul(&dy, y), || mul(x, &dy)),
            Div | DivNoNan => {
                let quotient = |a: &Tensor, b: &Tensor| back.binary(*self, a, b);
                back.broadcast_pair(|| quotient(&dy, y), || mul(&dy, &quotient(&quotient(&neg(x), y), y)))
            }
            FloorMod => back.broadcast_pair(|| dy.clone(), || neg(&mul(&dy, &back.binary(FloorDiv, x, y)))),
            Pow => power(back),
            Maximum => winner(GreaterEqual),
            Minimum => winner(LessEqual),
            SquaredDifference => {
                let scaled = mul(&mul(&back.number(x, 2.0), &dy), &back.binary(Sub, x, y));
                back.broadcast_pair(|| scaled.clone(), || neg(&scaled))
            }
            // Second derivatives need the gradients of these gradient ops.
            ReluGrad | Relu6Grad => {
                let gx = back.unbroadcast(&back.binary(*self, &dy, y), x);
                Ok(vec![Gradient::Dense(gx), Gradient::None])
            }
            TanhGrad => back
                .broadcast_pair(|| mul(&mul(&mul(&back.number(x, -2.0), &dy), y), x), || back.binary(TanhGrad, x, &dy)),
            SigmoidGrad => back.broadcast_pair(
                || mul(&mul(&dy, y), &back.binary(Sub, &back.number(x, 1.0), &mul(&back.number(x, 2.0), x))),
                || back.binary(SigmoidGrad, x, &dy),
            ),
            FloorDiv => back.nothing(),
            EluGrad | SeluGrad | SoftplusGrad | SoftsignGrad | SqrtGrad | RsqrtGrad | ReciprocalGrad => {
                Err(not_differentiable("this second derivative"))
            }
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | LogicalAnd | LogicalOr => back.nothing(),
        }
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.y[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(match self {
            Binary::LogicalAnd | Binary::LogicalOr => def,
            _ => typed(def, "T", writer.dtype(node, 0)),
        })
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        let older = [("Add", read as ReadRule)];
        Binary::ALL.iter().map(|op| (op.tf_name(), read as ReadRule)).chain(older).collect()
    }
}

fn power(back: &Backprop<'_>) -> Result<Found> {
    use Binary::*;
    let (x, y, z, dy) = (&back.x[0], &back.x[1], &back.y[0], back.dy(0));
    let one = back.number(y, 1.0);
    let base = || back.binary(Mul, &back.binary(Mul, &dy, y), &back.binary(Pow, x, &back.binary(Sub, y, &one)));
    let exponent = || {
        // TF: ln x only where x > 0, so that 0^y has gradient 0.
        let zero = back.number(x, 0.0);
        let positive = back.binary(Greater, x, &zero);
        let safe = back.node(Select, &[&positive, x, &back.number(x, 1.0)]);
        let log = back.node(Select, &[&positive, &back.unary(Unary::Log, &safe), &zero]);
        back.binary(Mul, &back.binary(Mul, &dy, z), &log)
    };
    back.broadcast_pair(base, exponent)
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let op = match reading.op() {
        "Add" => Some(Binary::Add),
        name => Binary::ALL.iter().copied().find(|op| op.tf_name() == name),
    };
    let op = op.ok_or_else(|| Error::internal("not a function of two inputs"))?;
    let (x, y) = (reading.tensor(0)?, reading.tensor(1)?);
    match op {
        Binary::Equal | Binary::NotEqual if x.dtype() == DType::Str => {
            reading.add(HostOp::new(StringEqual { negated: op == Binary::NotEqual }), &[&x, &y])
        }
        _ => reading.add(op, &[&x, &y]),
    }
}
