package manager

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// answerTime is how long wpa_supplicant has for one answer.
const answerTime = 5 * time.Second

// idleStates are those in which wpa_supplicant leaves its interface alone once
// it was told to disconnect (wpa_supplicant/wpa_supplicant.c, enum wpa_states).
var idleStates = []string{"DISCONNECTED", "INACTIVE", "INTERFACE_DISABLED"}

// ask puts one command to the wpa_supplicant of an interface by its control
// socket. ok is false where none serves the interface.
func (m Managers) ask(iface, command string) (answer string, ok bool, err error) {
	for _, dir := range m.controls {
		answer, err = exchange(filepath.Join(dir, iface), command)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED): // none, or one that died
			continue
		case err != nil:
			return "", false, err
		}
		return answer, true, nil
	}
	return "", false, nil
}

// exchange sends a datagram from a socket of the abstract namespace, which
// leaves no file behind, and reads the answer.
func exchange(path, command string) (answer string, err error) {
	local := &net.UnixAddr{Name: fmt.Sprintf("@fieldmesh-%d", time.Now().UnixNano()), Net: "unixgram"}
	conn, err := net.DialUnix("unixgram", local, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(command)); err != nil {
		return "", err
	}
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return "", fmt.Errorf("wait for the answer to %s: %w", command, err)
		}
		if answer = string(buffer[:n]); !strings.HasPrefix(answer, "<") { // an event that came between
			return strings.TrimSpace(answer), nil
		}
	}
}

// value is the value of a key in the answer to STATUS.
func value(status, key string) string {
	for line := range strings.Lines(status) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k == key {
			return v
		}
	}
	return ""
}

// findSupplicant finds the one that serves an interface. It does not tell one
// that was told to stay disconnected from one that finds no network: either
// looks for a network when it has the interface back.
func (m Managers) findSupplicant(iface *net.Interface) (*Held, error) {
	status, ok, err := m.ask(iface.Name, "STATUS")
	if err != nil || !ok {
		return nil, err
	}
	// One in another namespace may have an interface of that name.
	if !strings.EqualFold(value(status, "address"), iface.HardwareAddr.String()) {
		return nil, nil
	}
	return &Held{Manager: Supplicant, Interface: iface.Name}, nil
}

func (m Managers) supplicantLetsGo(h Held) error {
	answer, ok, err := m.ask(h.Interface, "DISCONNECT")
	if err != nil || !ok {
		return err
	}
	if answer != "OK" {
		return fmt.Errorf("DISCONNECT was answered by %q", answer)
	}
	return await(func() (bool, string, error) {
		status, ok, err := m.ask(h.Interface, "STATUS")
		state := value(status, "wpa_state")
		return !ok || slices.Contains(idleStates, state), state, err
	})
}

func (m Managers) supplicantTakesBack(h Held) error {
	return await(func() (bool, string, error) {
		// It refuses while it has not yet seen that the interface is up again.
		answer, ok, err := m.ask(h.Interface, "RECONNECT")
		return !ok || answer == "OK", "not ready (" + answer + ")", err
	})
}
