package testnet

import (
	"os"
	"strconv"
	"testing"
)

// NeedSet skips the test, saying why, unless a variable of the environment is set.
func NeedSet(t testing.TB, variable, why string) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("%s: set %s", why, variable)
	}
}

// Number is that of a variable of the environment, or else another one.
func Number(t testing.TB, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Seed is that of FIELDMESH_SEED, or else another one. The test prints it, and
// what it repeats.
func Seed(t testing.TB, otherwise uint64, repeats string) uint64 {
	t.Helper()
	seed := Number(t, "FIELDMESH_SEED", otherwise)
	t.Logf("seed %d (FIELDMESH_SEED=%[1]d repeats %s)", seed, repeats)
	return seed
}
