// Package golden proves that runs of earlier commits stay readable. Its
// testdata holds whole archives as the programs of their day wrote them, and
// the metrics that are computed from them today. It has no code of its own.
package golden
