//! Gradients of element-wise ops.

use estimand_tensor::{Binary, DType, Result, Unary};

use super::Gradient;
use super::rule::{Found, Rule, dense, not_differentiable};
use crate::op::Op;
use crate::tensor::Tensor;

impl Rule<'_> {
    pub(super) fn unary(&self, op: Unary) -> Result<Found> {
        use Binary::*;
        let (x, y) = (&self.x[0], &self.y[0]);
        if op.output(x.dtype()) == DType::Bool {
            return self.nothing();
        }
        let dy = self.dy(0);
        let times = |factor: Tensor| self.b(Mul, &dy, &factor);
        dense([match op {
            Unary::Neg => self.u(Unary::Neg, &dy),
            Unary::Abs => times(self.u(Unary::Sign, x)),
            Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => return self.nothing(),
            Unary::Exp => times(y.clone()),
            Unary::Expm1 => times(self.u(Unary::Exp, x)),
            Unary::Log => self.b(Div, &dy, x),
            Unary::Log1p => self.b(Div, &dy, &self.b(Add, &self.c(x, 1.0), x)),
            Unary::Sqrt => self.b(SqrtGrad, y, &dy),
            Unary::Rsqrt => self.b(RsqrtGrad, y, &dy),
            Unary::Square => times(self.b(Mul, &self.c(x, 2.0), x)),
            Unary::Reciprocal => self.b(ReciprocalGrad, y, &dy),
            Unary::Sin => times(self.u(Unary::Cos, x)),
            Unary::Cos => self.u(Unary::Neg, &times(self.u(Unary::Sin, x))),
            Unary::Tanh => self.b(TanhGrad, y, &dy),
            Unary::Sigmoid => self.b(SigmoidGrad, y, &dy),
            Unary::Erf => {
                // 2 / sqrt(pi) * exp(-x^2)
                let bell = self.u(Unary::Exp, &self.u(Unary::Neg, &self.u(Unary::Square, x)));
                self.b(Mul, &times(self.c(x, std::f64::consts::FRAC_2_SQRT_PI)), &bell)
            }
            Unary::Softplus => self.b(SoftplusGrad, &dy, x),
            Unary::Softsign => self.b(SoftsignGrad, &dy, x),
            Unary::Relu => self.b(ReluGrad, &dy, y),
            Unary::Relu6 => self.b(Relu6Grad, &dy, y),
            Unary::Elu => self.b(EluGrad, &dy, y),
            Unary::Selu => self.b(SeluGrad, &dy, y),
            Unary::LogicalNot | Unary::IsNan | Unary::IsFinite => return self.nothing(),
        }])
    }

    pub(super) fn binary(&self, op: Binary) -> Result<Found> {
        use Binary::*;
        let (x, y) = (&self.x[0], &self.x[1]);
        if op.output(x.dtype()) == DType::Bool {
            return self.nothing();
        }
        let dy = self.dy(0);
        let mul = |a: &Tensor, b: &Tensor| self.b(Mul, a, b);
        let neg = |a: &Tensor| self.u(Unary::Neg, a);
        // Where one of two wins, the gradient goes to it; TF: to the first if they are equal.
        let winner = |compare: Binary| {
            let zero = self.c(&dy, 0.0);
            let first = self.b(compare, x, y);
            let gx = self.node(Op::Select, &[&first, &dy, &zero]);
            let gy = self.node(Op::Select, &[&first, &zero, &dy]);
            self.pair(|| gx, || gy)
        };
        match op {
            Add => self.pair(|| dy.clone(), || dy.clone()),
            Sub => self.pair(|| dy.clone(), || neg(&dy)),
            Mul => self.pair(|| mul(&dy, y), || mul(x, &dy)),
            Div => self.pair(|| self.b(Div, &dy, y), || mul(&dy, &self.b(Div, &self.b(Div, &neg(x), y), y))),
            DivNoNan => {
                self.pair(|| self.b(DivNoNan, &dy, y), || mul(&dy, &self.b(DivNoNan, &self.b(DivNoNan, &neg(x), y), y)))
            }
            FloorMod => self.pair(|| dy.clone(), || neg(&mul(&dy, &self.b(FloorDiv, x, y)))),
            Pow => self.pow(),
            Maximum => winner(GreaterEqual),
            Minimum => winner(LessEqual),
            SquaredDifference => {
                let scaled = mul(&mul(&self.c(x, 2.0), &dy), &self.b(Sub, x, y));
                self.pair(|| scaled.clone(), || neg(&scaled))
            }
            // The gradients of gradients that a second derivative needs.
            ReluGrad | Relu6Grad => Ok(vec![Gradient::Dense(self.unbroadcast(&self.b(op, &dy, y), x)), Gradient::None]),
            TanhGrad => self.pair(|| mul(&mul(&mul(&self.c(x, -2.0), &dy), y), x), || self.b(TanhGrad, x, &dy)),
            SigmoidGrad => self.pair(
                || mul(&mul(&dy, y), &self.b(Sub, &self.c(x, 1.0), &mul(&self.c(x, 2.0), x))),
                || self.b(SigmoidGrad, x, &dy),
            ),
            FloorDiv => self.nothing(),
            EluGrad | SeluGrad | SoftplusGrad | SoftsignGrad | SqrtGrad | RsqrtGrad | ReciprocalGrad => {
                Err(not_differentiable("this second derivative"))
            }
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | LogicalAnd | LogicalOr => self.nothing(),
        }
    }

    fn pow(&self) -> Result<Found> {
        use Binary::*;
        let (x, y, z, dy) = (&self.x[0], &self.x[1], &self.y[0], self.dy(0));
        let one = self.c(y, 1.0);
        let base = || self.b(Mul, &self.b(Mul, &dy, y), &self.b(Pow, x, &self.b(Sub, y, &one)));
        let exponent = || {
            // TF: ln x only where x > 0, so that 0^y has gradient 0.
            let zero = self.c(x, 0.0);
            let positive = self.b(Greater, x, &zero);
            let safe = self.node(Op::Select, &[&positive, x, &self.c(x, 1.0)]);
            let log = self.node(Op::Select, &[&positive, &self.u(Unary::Log, &safe), &zero]);
            self.b(Mul, &self.b(Mul, &dy, z), &log)
        };
        self.pair(base, exponent)
    }
}
