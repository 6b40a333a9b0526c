package testnet

import (
	"bytes"
	"sync"
)

// Output is what a program under test writes, for a reader beside it.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
