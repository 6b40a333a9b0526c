//go:build guest

package tcp

import "testing"

// The tracepoints of Debian's kernel tell as those of the kernel at hand do.
func TestGuestTracepoints(t *testing.T) {
	needTun(t)
	t.Run("kernel and wire", TestTracepointsTellWhatKernelAndWireCount)
	t.Run("others", TestOthersConnectionsAreNotTraced)
}
