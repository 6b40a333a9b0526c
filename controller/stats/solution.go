package stats

import (
	"errors"

	"gonum.org/v1/gonum/mat"
)

// solution is a least-squares solution of some columns; those of random groups
// are lightened.
type solution struct {
	beta    []float64
	rss     float64
	design  *mat.Dense
	inverse *mat.Dense // of designᵀ·design
	random  *variances
	span    [][]float64 // an orthonormal basis of design's columns, where groups are random
}

// solve estimates the coefficients of columns. Random groups are taken out of
// columns and response first.
func solve(columns []keptColumn, y []float64, random *variances) (*solution, error) {
	s := &solution{random: random}
	if random != nil {
		random.estimate()
		y = random.lighten(y)
	}
	n, p := len(y), len(columns)
	s.design = mat.NewDense(n, p, nil)
	for j, c := range columns {
		values := c.values
		if random != nil {
			values = random.lighten(values)
		}
		s.design.SetCol(j, values)
		if random == nil {
			continue
		}
		if v, ok := independent(s.span, values); ok {
			s.span = append(s.span, v)
		}
	}
	var qr mat.QR
	qr.Factorize(s.design)
	var beta, fitted mat.VecDense
	if err := wellEnough(qr.SolveVecTo(&beta, false, mat.NewVecDense(n, y))); err != nil {
		return nil, err
	}
	s.beta = beta.RawVector().Data
	fitted.MulVec(s.design, &beta)
	for i := range y {
		s.rss += (y[i] - fitted.AtVec(i)) * (y[i] - fitted.AtVec(i))
	}
	var r, inverse mat.Dense
	qr.RTo(&r)
	if err := wellEnough(inverse.Inverse(r.Slice(0, p, 0, p))); err != nil {
		return nil, err
	}
	s.inverse = mat.NewDense(p, p, nil)
	s.inverse.Mul(&inverse, inverse.T())
	return s, nil
}

// wellEnough lets badly scaled columns pass, which are solved all the same.
func wellEnough(err error) error {
	var bad mat.Condition
	if errors.As(err, &bad) {
		return nil
	}
	return err
}

// rows is what each response counts for in a weighted sum of the coefficients.
func (s *solution) rows(weights []float64) []float64 {
	var coefficients, rows mat.VecDense
	coefficients.MulVec(s.inverse, mat.NewVecDense(len(weights), weights))
	rows.MulVec(s.design, &coefficients)
	if s.random != nil {
		return s.random.lighten(rows.RawVector().Data)
	}
	return rows.RawVector().Data
}

// variance is that of a weighted sum, as a multiple of the residual's.
func (s *solution) variance(weights []float64) float64 {
	w := mat.NewVecDense(len(weights), weights)
	return max(mat.Inner(w, s.inverse, w), 0)
}
