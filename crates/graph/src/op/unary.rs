//! Element-wise functions of one input.

use super::rules::*;

impl OpRules for Unary {
    fn name(&self) -> &'static str {
        self.tf_name()
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(self.accepts(x[0].dtype), x[0].dtype)?;
        one(self.output(x[0].dtype), x[0].shape.clone())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        spreads_to(x[0], y)
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        use Binary::*;
        let (x, y) = (&back.x[0], &back.y[0]);
        if self.output(x.dtype()) == DType::Bool {
            return back.nothing();
        }
        let dy = back.dy(0);
        let times = |factor: Tensor| back.binary(Mul, &dy, &factor);
        dense([match self {
            Unary::Neg => back.unary(Unary::Neg, &dy),
            Unary::Abs => times(back.unary(Unary::Sign, x)),
            Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => return back.nothing(),
            Unary::Exp => times(y.clone()),
            Unary::Expm1 => times(back.unary(Unary::Exp, x)),
            Unary::Log => back.binary(Div, &dy, x),
            Unary::Log1p => back.binary(Div, &dy, &back.binary(Add, &back.number(x, 1.0), x)),
            Unary::Sqrt => back.binary(SqrtGrad, y, &dy),
            Unary::Rsqrt => back.binary(RsqrtGrad, y, &dy),
            Unary::Square => times(back.binary(Mul, &back.number(x, 2.0), x)),
            Unary::Reciprocal => back.binary(ReciprocalGrad, y, &dy),
            Unary::Sin => times(back.unary(Unary::Cos, x)),
            Unary::Cos => back.unary(Unary::Neg, &times(back.unary(Unary::Sin, x))),
            Unary::Tanh => back.binary(TanhGrad, y, &dy),
            Unary::Sigmoid => back.binary(SigmoidGrad, y, &dy),
            Unary::Erf => {
                // 2 / sqrt(pi) * exp(-x^2)
                let bell = back.unary(Unary::Exp, &back.unary(Unary::Neg, &back.unary(Unary::Square, x)));
                back.binary(Mul, &times(back.number(x, std::f64::consts::FRAC_2_SQRT_PI)), &bell)
            }
            Unary::Softplus => back.binary(SoftplusGrad, &dy, x),
            Unary::Softsign => back.binary(SoftsignGrad, &dy, x),
            Unary::Relu => back.binary(ReluGrad, &dy, y),
            Unary::Relu6 => back.binary(Relu6Grad, &dy, y),
            Unary::Elu => back.binary(EluGrad, &dy, y),
            Unary::Selu => back.binary(SeluGrad, &dy, y),
            Unary::LogicalNot | Unary::IsNan | Unary::IsFinite => return back.nothing(),
        }])
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(product(operands.y[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(match self {
            Unary::LogicalNot => def,
            _ => typed(def, "T", writer.dtype(node, 0)),
        })
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        Unary::ALL.iter().map(|op| (op.tf_name(), read as ReadRule)).collect()
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let op = Unary::ALL.iter().copied().find(|op| op.tf_name() == reading.op());
    let x = reading.tensor(0)?;
    reading.add(op.ok_or_else(|| Error::internal("not a function of one input"))?, &[&x])
}
