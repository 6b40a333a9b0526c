//go:build e2e

package capture

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/pcapng"
	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// loopback gives the frames of the loopback interface, as the privileged half
// would.
func loopback(t *testing.T) *ring.Reader {
	t.Helper()
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8,
		Ifindex: lo.Index}); err != nil {
		t.Fatal(err)
	}
	from, err := ring.Open(os.NewFile(uintptr(fd), "packets of lo"))
	if err != nil {
		t.Fatal(err)
	}
	feed, read, err := ring.Pair()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- errors.Join(from.Feed(t.Context(), feed), from.Close()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	reader, err := ring.NewReader(read)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// talk sends datagrams over the loopback interface and returns the port that they went to.
func talk(t *testing.T, n int) uint16 {
	t.Helper()
	to, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := net.Dial("udp4", to.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for i := range n {
		if _, err := from.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := to.ReadFrom(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	return uint16(to.LocalAddr().(*net.UDPAddr).Port)
}

// packetsTo reads a capture and counts the datagrams to a port, leaving and
// arriving, whose times lie within the capture.
func packetsTo(t *testing.T, path string, port uint16, told wire.Capture) (outbound, inbound int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapng.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(0); ; n++ {
		var p pcapng.Packet
		err := r.Next(&p)
		if errors.Is(err, io.EOF) {
			if n != told.Packets {
				t.Errorf("%d packets in the file, %d are said to be", n, told.Packets)
			}
			return outbound, inbound
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Data) < 38 || p.Data[23] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(p.Data[36:]) != port {
			continue
		}
		if boot := p.TimeNs - told.WallOffsetOpen; boot < told.OpenBootNs || boot > told.CloseBootNs {
			t.Errorf("a packet of %d ns after the boot in a capture from %d to %d", boot, told.OpenBootNs,
				told.CloseBootNs)
		}
		if p.Direction == pcapng.Outbound {
			outbound++
		} else {
			inbound++
		}
	}
}

func TestEveryPacketIsInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "0001-a1.pcapng")
	c, err := Start(Options{Path: path, Points: []Point{{Frames: loopback(t), Interface: "lo"}}, SnapBytes: 96})
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	port := talk(t, n)
	told := c.Stop()
	if told.Error != "" || told.FileDrops != 0 {
		t.Errorf("%+v", told)
	}
	if out, in := packetsTo(t, path, port, told); told.KernelDrops == 0 && (out != n || in != n) {
		t.Errorf("%d datagrams left and %d arrived, want %d", out, in, n)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); told.SHA256 != hex.EncodeToString(sum[:]) || told.FileBytes != int64(len(data)) {
		t.Errorf("the file has %d bytes, it is said to have %d, or another sum", len(data), told.FileBytes)
	}
}

func TestAFileIsNotLargerThanItMayBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0001-a1.pcapng")
	const most = 20_000
	c, err := Start(Options{Path: path, Points: []Point{{Frames: loopback(t), Interface: "lo"}}, SnapBytes: 96,
		MaxBytes: most})
	if err != nil {
		t.Fatal(err)
	}
	port := talk(t, 1000)
	told := c.Stop()
	if told.FileDrops == 0 || told.FileBytes > most || told.Error != "" {
		t.Errorf("%+v", told)
	}
	packetsTo(t, path, port, told)
}

func TestAFileThatIsThereIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0001-a1.pcapng")
	if err := os.WriteFile(path, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Options{Path: path, Points: []Point{{Frames: loopback(t), Interface: "lo"}},
		SnapBytes: 96}); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v", err)
	}
}

// A file whose frames ended before they were asked to says so.
func TestWhatEndsEarlyIsSaid(t *testing.T) {
	feed, read, err := ring.Pair()
	if err != nil {
		t.Fatal(err)
	}
	frames, err := ring.NewReader(read)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(Options{Path: filepath.Join(t.TempDir(), "0001-a1.pcapng"),
		Points: []Point{{Frames: frames, Interface: "lo"}}, SnapBytes: 96})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if told := c.Stop(); !strings.Contains(told.Error, "the host process ended the capture") {
		t.Errorf("%+v", told)
	}
}
