package cmd

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestAnInterruptHidesNoOtherError(t *testing.T) {
	left := errors.New("end field: namespace is left")
	err := errors.Join(fmt.Errorf("field 1: %w", context.Canceled), errors.Join(left, nil), context.Canceled)
	if got := besidesInterrupt(err); len(got) != 1 || got[0] != left {
		t.Errorf("besides the interrupt: %v", got)
	}
	if got := besidesInterrupt(nil); len(got) != 0 {
		t.Errorf("besides nothing: %v", got)
	}
}
