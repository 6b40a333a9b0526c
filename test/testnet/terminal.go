package testnet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal opens a pseudo-terminal that changes no byte, until the test ends: a
// line, and the path of its other end, which every user may open.
func Terminal(t testing.TB) (line *os.File, path string) {
	t.Helper()
	line, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() })
	var number int
	raw, err := line.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var cerr error
	err = raw.Control(func(fd uintptr) {
		if cerr = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); cerr == nil {
			number, cerr = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err := errors.Join(err, cerr); err != nil {
		t.Fatalf("open a pseudo-terminal: %v", err)
	}
	path = fmt.Sprintf("/dev/pts/%d", number)
	// Held open, or the line would hang up before its reader has opened it.
	slave, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	settings, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	settings.Iflag, settings.Oflag, settings.Lflag = 0, 0, 0
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, settings); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // gpsd gives root up
		t.Fatal(err)
	}
	return line, path
}

// OnTerminal is what write writes to a terminal of so many columns.
func OnTerminal(t testing.TB, columns int, write func(out *os.File) error) string {
	t.Helper()
	line, path := Terminal(t)
	out, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	size := unix.Winsize{Row: 50, Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(out.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := write(out)
		_, ended := out.WriteString("\x00")
		done <- errors.Join(err, ended)
	}()
	var text []byte
	for part := make([]byte, 4096); !bytes.HasSuffix(text, []byte{0}); {
		n, err := line.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part[:n]...)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	return string(bytes.TrimSuffix(text, []byte{0}))
}
